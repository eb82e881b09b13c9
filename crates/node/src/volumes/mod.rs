//! Directories and files that pods mount.
