//! What applets read: files by name, `-` for standard input, lines of bounded length.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};

use crate::options::path;
use crate::outcome::{Failure, Outcome, shown, warn};

/// The longest line. What is longer is hardly text, and would take all memory.
const MAX_LINE: u64 = 64 << 20;

pub(super) type Input = BufReader<Box<dyn Read>>;

pub(super) fn open(name: &[u8]) -> io::Result<Input> {
    let reader: Box<dyn Read> = if name == b"-" {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(path(name))?;
        if file.metadata()?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Box::new(file)
    };
    Ok(BufReader::with_capacity(1 << 16, reader))
}

/// Reads a line with its newline; false at the end.
pub(super) fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let count = input.take(MAX_LINE).read_until(b'\n', line)?;
    if u64::try_from(count).unwrap_or(u64::MAX) == MAX_LINE && line.last() != Some(&b'\n') {
        let most = MAX_LINE >> 20;
        return Err(io::Error::other(format!("a line of {most} MiB or more")));
    }
    Ok(count > 0)
}

/// The names, or standard input if there are none.
pub(super) fn names(operands: &[Vec<u8>]) -> Vec<Vec<u8>> {
    if operands.is_empty() {
        return vec![b"-".to_vec()];
    }
    operands.to_vec()
}

/// Does something with every file; one that cannot be read does not stop the others. Errors of the
/// output, which `action` reports as `Failure`, do.
pub(super) fn each(
    applet: &str,
    operands: &[Vec<u8>],
    mut action: impl FnMut(&[u8], &mut Input) -> Result<(), Failure>,
) -> Outcome {
    let mut status = 0;
    for name in names(operands) {
        match open(&name) {
            Ok(mut input) => action(&name, &mut input)?,
            Err(error) => {
                warn(applet, format_args!("{}: {error}", shown(&name)));
                status = 1;
            }
        }
    }
    Ok(status)
}

/// Copies at most that many bytes, or everything.
pub(super) fn copy(
    input: &mut dyn Read,
    output: &mut dyn Write,
    most: Option<u64>,
) -> io::Result<u64> {
    io::copy(&mut input.take(most.unwrap_or(u64::MAX)), output)
}
