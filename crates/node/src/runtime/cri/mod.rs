//! Runtimes behind a socket: containerd, CRI-O.
