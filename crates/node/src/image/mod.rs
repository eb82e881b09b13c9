//! Images on disk: pulled, imported, unpacked, mounted.
