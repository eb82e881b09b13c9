//! `tail`: the end of files, and what is appended to them.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use super::input::{self, Input};
use super::text::with_old_count;
use crate::options::{Accepted, Options, number, path};
use crate::outcome::{Failure, Outcome, shown};

/// How often `-f` looks.
const INTERVAL: Duration = Duration::from_millis(250);

/// The most that is held of a pipe, which cannot be read backwards.
const MAX_HELD: usize = 1 << 28;

#[derive(Debug, Clone, Copy)]
struct Part {
    is_bytes: bool,
    /// `+N`: from the Nth on, counted from 1.
    is_from_start: bool,
    count: u64,
}

pub(crate) fn run(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let accepted = Accepted {
        flags: "fFq",
        valued: "nc",
        ..Accepted::default()
    };
    let options = Options::parse(&with_old_count(args), accepted)?;
    let part = part(&options)?;
    let follows = options.has('f') || options.has('F');
    if follows && options.operands.len() != 1 {
        return Err(Failure::usage("-f needs exactly one file"));
    }
    if let Some(name) = options.operands.first().filter(|_| follows) {
        let failed = |error: io::Error| Failure::on(shown(name), error);
        let file = File::open(path(name)).map_err(failed)?;
        // The copy shares the place in the file, so that nothing is left out in between.
        let copy: Box<dyn Read> = Box::new(file.try_clone().map_err(failed)?);
        print(part, &mut Input::new(copy), output)?;
        output.flush()?;
        follow(name, file, output).map_err(failed)?;
    }
    let has_titles = options.operands.len() > 1 && !options.has('q');
    let mut gap = "";
    input::each("tail", &options.operands, |name, input| {
        if has_titles {
            writeln!(output, "{gap}==> {} <==", shown(name))?;
            gap = "\n";
        }
        print(part, input, output)
    })
}

fn part(options: &Options) -> Result<Part, Failure> {
    let (is_bytes, text) = match (options.value('c'), options.value('n')) {
        (Some(text), _) => (true, text),
        (None, Some(text)) => (false, text),
        (None, None) => (false, b"10".as_slice()),
    };
    let is_from_start = text.starts_with(b"+");
    let digits = text
        .strip_prefix(b"+")
        .or(text.strip_prefix(b"-"))
        .unwrap_or(text);
    let count = number(digits)
        .ok_or_else(|| Failure::usage(format!("{}: not a number such as 5 or +5", shown(text))))?;
    Ok(Part {
        is_bytes,
        is_from_start,
        count,
    })
}

fn print(part: Part, input: &mut Input, output: &mut dyn Write) -> Result<(), Failure> {
    if part.is_from_start {
        let before = part.count.saturating_sub(1);
        if part.is_bytes {
            input::copy(input, &mut io::sink(), Some(before))?;
        } else {
            let mut line = Vec::new();
            for _ in 0..before {
                if !input::read_line(input, &mut line)? {
                    return Ok(());
                }
            }
        }
        input::copy(input, output, None)?;
        return Ok(());
    }
    if part.is_bytes {
        last_bytes(part.count, input, output)
    } else {
        last_lines(part.count, input, output)
    }
}

fn too_much() -> Failure {
    Failure::Work(format!("more than {} MiB to hold", MAX_HELD >> 20))
}

fn last_bytes(count: u64, input: &mut Input, output: &mut dyn Write) -> Result<(), Failure> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let mut held: VecDeque<u8> = VecDeque::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = input.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        held.extend(buffer.get(..length).unwrap_or_default());
        let surplus = held.len().saturating_sub(count);
        held.drain(..surplus);
        if held.len() > MAX_HELD {
            return Err(too_much());
        }
    }
    let (first, second) = held.as_slices();
    output.write_all(first)?;
    output.write_all(second)?;
    Ok(())
}

fn last_lines(count: u64, input: &mut Input, output: &mut dyn Write) -> Result<(), Failure> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let mut held: VecDeque<Vec<u8>> = VecDeque::new();
    let mut size = 0;
    let mut line = Vec::new();
    while input::read_line(input, &mut line)? {
        size += line.len();
        held.push_back(line.clone());
        while held.len() > count {
            size -= held.pop_front().map_or(0, |dropped| dropped.len());
        }
        if size > MAX_HELD {
            return Err(too_much());
        }
    }
    for line in held {
        output.write_all(&line)?;
    }
    Ok(())
}

/// Prints appended text without end. A file that became shorter, or another one of the same name as
/// when logs are rotated, is read from its beginning.
fn follow(name: &[u8], mut file: File, output: &mut dyn Write) -> io::Result<()> {
    // A pipe or a device has no place.
    let mut at = file.stream_position().unwrap_or(0);
    loop {
        std::thread::sleep(INTERVAL);
        let open = file.metadata()?;
        if let Ok(named) = fs::metadata(path(name))
            && (named.dev(), named.ino()) != (open.dev(), open.ino())
        {
            io::copy(&mut file, output)?;
            file = File::open(path(name))?;
            at = 0;
        } else if open.is_file() && open.len() < at {
            at = file.seek(SeekFrom::Start(0))?;
        }
        at += io::copy(&mut file, output)?;
        output.flush()?;
    }
}
