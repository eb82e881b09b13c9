//! The face as its clients see it, over real sockets.

mod access;
mod exec;
mod face;
mod logs;
mod pages;
mod runtime;
