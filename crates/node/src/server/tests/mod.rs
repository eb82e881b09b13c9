//! The kubelet API as its clients see it, over real sockets.

mod access;
mod elsewhere;
mod exec;
mod kubectl;
mod kubelet_api;
mod logs;
mod pages;
pub(super) mod runtime;
mod spdy;
