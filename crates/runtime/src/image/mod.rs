//! Images on disk: pulled, imported, unpacked, mounted.
//!
//! [`store::Store`] is the whole of it under one directory, [`service::ImageService`] what the
//! embedded runtime sees of it. The agent and the command line may use one directory at the same
//! time: changes happen under a lock that is never held for long, long work happens in
//! workspaces, and those that a crash leaves are removed by the next process.
//!
//! Reading order: [`digest`], [`reference`](mod@reference), [`manifest`], [`configuration`] (what
//! images are made of); [`catalogue`], [`layers`], [`roots`], [`store`] (what is kept);
//! [`workspace`], [`installation`] (how it gets there); [`import`], [`pull`], [`builtin`] (where it comes from);
//! [`tarball`], [`compression`], [`unpack`], [`tree`] (untrusted files);
//! [`file`](mod@file), [`lock`] (our own files).

pub mod builtin;
pub mod catalogue;
pub mod compression;
pub mod configuration;
pub mod digest;
pub mod file;
pub mod import;
pub mod installation;
pub mod layers;
pub mod lock;
pub mod manifest;
pub mod pull;
pub mod reference;
pub mod room;
pub mod roots;
pub mod service;
pub mod store;
pub mod tarball;
pub mod tree;
pub mod unpack;
pub mod workspace;

/// Where a node keeps its images, in its data directory.
pub const DIRECTORY: &str = "images";

pub use builtin::BuiltinImage;
pub use pull::Registries;
pub use reference::Reference;
pub use room::MaxImageSize;
pub use service::ImageService;
pub use store::Store;
