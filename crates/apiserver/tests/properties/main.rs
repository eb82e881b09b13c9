//! Properties that hold for every input. One program for all of them: it is linked once.

mod auth;
mod http;
mod patch;
mod write;
