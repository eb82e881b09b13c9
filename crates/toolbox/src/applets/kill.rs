//! `kill`.

use std::io::Write;

use crate::outcome::{Failure, Outcome, shown, warn};
use crate::{signals, sys};

pub(crate) fn run(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let mut signal = sys::SIGTERM;
    let mut words = args;
    if let Some((first, rest)) = words.split_first()
        && let Some(option) = first.strip_prefix(b"-")
    {
        let name = match option {
            b"l" => return list(rest, output),
            b"-" => None,
            b"s" | b"n" => {
                let Some((name, rest)) = rest.split_first() else {
                    return Err(Failure::usage("-s needs the name of a signal"));
                };
                words = rest;
                Some(name.as_slice())
            }
            option => {
                words = rest;
                Some(option)
            }
        };
        if let Some(name) = name {
            signal = signals::number(name).ok_or_else(|| {
                Failure::usage(format!("{}: not a signal; see kill -l", shown(name)))
            })?;
        }
    }
    if let Some((first, rest)) = words.split_first()
        && first == b"--"
    {
        words = rest;
    }
    if words.is_empty() {
        return Err(Failure::usage("name at least one process id"));
    }
    let mut status = 0;
    for word in words {
        let process = std::str::from_utf8(word)
            .ok()
            .and_then(|text| text.parse::<i32>().ok());
        let Some(process) = process else {
            return Err(Failure::usage(format!("{}: not a process id", shown(word))));
        };
        if let Err(error) = sys::kill(process, signal) {
            warn("kill", format_args!("process {process}: {error}"));
            status = 1;
        }
    }
    Ok(status)
}

/// All names, or the name of each number: also of a status such as 143.
fn list(words: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    if words.is_empty() {
        for (place, name) in signals::NAMES.iter().enumerate() {
            writeln!(output, "{:>2} {name}", place + 1)?;
        }
        return Ok(0);
    }
    for word in words {
        let number = std::str::from_utf8(word)
            .ok()
            .and_then(|text| text.parse::<i32>().ok());
        let name = match number {
            Some(number) => signals::name(number & 0x7f).map(str::to_owned),
            None => signals::number(word).map(|number| number.to_string()),
        };
        let name = name.ok_or_else(|| Failure::usage(format!("{}: not a signal", shown(word))))?;
        writeln!(output, "{name}")?;
    }
    Ok(0)
}
