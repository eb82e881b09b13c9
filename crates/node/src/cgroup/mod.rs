//! Core's cgroup plan, written into the kernel.
