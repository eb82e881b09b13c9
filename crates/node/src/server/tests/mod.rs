//! The face as its clients see it, over real sockets.

mod access;
mod elsewhere;
mod exec;
mod face;
mod kubectl;
mod logs;
mod pages;
pub(super) mod runtime;
mod spdy;
