//! The program as containers and users run it: called by the names of its applets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod files;
mod first_process;
mod hog;
mod http;
mod shell;
mod shell_input;
mod tar;
mod text;
mod toolbox;
