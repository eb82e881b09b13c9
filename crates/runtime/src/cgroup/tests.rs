//! The same checks on folders that pose as cgroup v1 and v2 and, as root, on the kernel's own.

mod machines;
mod node;
mod pod_rows;
