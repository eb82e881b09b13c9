//! Writing to standard output.

use std::io::Write;

use anyhow::{Context, Result};

/// Writes a command's output. Returns whether standard output is still open: a reader that closes it
/// early, such as `head`, is not an error.
pub(crate) fn write(text: &str) -> Result<bool> {
    let mut stdout = std::io::stdout();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        written => {
            written.context("cannot write to standard output")?;
            Ok(true)
        }
    }
}
