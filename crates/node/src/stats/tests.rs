//! Figures from folders that pose as a machine, and as root from the kernel's own.

mod documents;
mod kernel;
mod node;
