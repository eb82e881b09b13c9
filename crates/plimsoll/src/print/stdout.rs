//! Where answers go.

use std::io::Write;

use anyhow::{Context, Result};

/// Writes a command's answer. A reader that goes away early, such as `head`, is no error: the
/// answer is then whether anybody still reads.
pub(crate) fn write(text: &str) -> Result<bool> {
    let mut stdout = std::io::stdout();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        written => {
            written.context("cannot write the answer")?;
            Ok(true)
        }
    }
}
