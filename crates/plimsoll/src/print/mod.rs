//! Output: standard output, its terminal, and the alternate screen. Texts are rendered by
//! `plimsoll_report`.

mod alternate_screen;
mod colour;
mod stdout;
mod terminal;

pub(crate) use alternate_screen::AlternateScreen;
pub(crate) use colour::{stderr_colour, stdout_colour};
pub(crate) use stdout::write;
pub(crate) use terminal::terminal;
