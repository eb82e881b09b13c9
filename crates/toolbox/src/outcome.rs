//! What an applet comes to, and how it reports what went wrong.

use std::fmt::Display;
use std::io::{self, Write};

/// The exit status of an applet, or its error.
pub(crate) type Outcome = Result<u8, Failure>;

#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line is wrong: exit status 2.
    Usage(String),
    /// The work failed: exit status 1.
    Work(String),
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// The exit status and the message.
    pub(crate) fn parts(self) -> (u8, String) {
        match self {
            Self::Usage(message) => (2, message),
            Self::Work(message) => (1, message),
        }
    }

    /// What failed on which object.
    pub(crate) fn on(object: impl Display, error: impl Display) -> Self {
        Self::Work(format!("{object}: {error}"))
    }
}

/// Input and output that carries no name of its own: mostly standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Work(error.to_string())
    }
}

/// Reports a problem that does not stop the applet.
pub(crate) fn warn(applet: &str, message: impl Display) {
    // A closed standard error leaves no place to report to.
    let _ = writeln!(io::stderr().lock(), "{applet}: {message}");
}

/// Readable text of bytes that need not be UTF-8.
pub(crate) fn shown(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
