//! Reading the files named on the command line.

use std::io::Read;

use anyhow::{Context, Result};
use plimsoll_core::config::document::MAX_BYTES;

/// The content of a file, `-` for standard input: at most one byte more than the parser's limit, so
/// that the parser reports the excess.
pub(crate) fn read_bytes(name: &str) -> Result<Vec<u8>> {
    let limit = u64::try_from(MAX_BYTES)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    let mut bytes = Vec::new();
    if name == "-" {
        let stdin = std::io::stdin().lock();
        let read = stdin.take(limit).read_to_end(&mut bytes);
        read.context("cannot read standard input")?;
    } else {
        let file = std::fs::File::open(name).with_context(|| format!("cannot open {name}"))?;
        let read = file.take(limit).read_to_end(&mut bytes);
        read.with_context(|| format!("cannot read {name}"))?;
    }
    Ok(bytes)
}
