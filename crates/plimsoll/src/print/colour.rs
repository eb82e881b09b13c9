//! Whether output is coloured.

use std::io::IsTerminal;

use plimsoll_report::text::Colour;

/// For standard output.
pub(crate) fn stdout_colour() -> Colour {
    colour_of(&std::io::stdout())
}

/// For standard error.
pub(crate) fn stderr_colour() -> Colour {
    colour_of(&std::io::stderr())
}

/// On for a terminal, unless `NO_COLOR` is set to anything.
fn colour_of(stream: &impl IsTerminal) -> Colour {
    let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if stream.is_terminal() && !is_unwanted {
        Colour::On
    } else {
        Colour::Off
    }
}
