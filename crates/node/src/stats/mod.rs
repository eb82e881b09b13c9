//! What the node, its pods and containers use, read from the kernel.
