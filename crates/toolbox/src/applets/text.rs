//! `cat head wc tee seq yes`: text as it comes.

use std::fs::OpenOptions;
use std::io::{self, BufRead, Read, Write};

use super::input;
use crate::options::{Accepted, Options, path};
use crate::outcome::{Failure, Outcome, shown, warn};

pub(crate) fn cat(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "u",
            ..Accepted::default()
        },
    )?;
    input::each("cat", &options.operands, |_, input| {
        // Piece by piece: what arrives on a pipe or a terminal is passed on at once.
        loop {
            let piece = input.fill_buf()?;
            let length = piece.len();
            if length == 0 {
                return Ok(());
            }
            output.write_all(piece)?;
            output.flush()?;
            input.consume(length);
        }
    })
}

/// `-5` as an old way to write `-n 5`.
pub(super) fn with_old_count(args: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut args = args.to_vec();
    if let Some(first) = args.first_mut()
        && first.len() > 1
        && first.starts_with(b"-")
        && first.iter().skip(1).all(u8::is_ascii_digit)
    {
        first.splice(..1, *b"-n");
    }
    args
}

pub(crate) fn head(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let accepted = Accepted {
        flags: "q",
        valued: "nc",
        ..Accepted::default()
    };
    let options = Options::parse(&with_old_count(args), accepted)?;
    let bytes = options.number('c')?;
    let lines = options.number('n')?.unwrap_or(10);
    let has_titles = options.operands.len() > 1 && !options.has('q');
    let mut gap = "";
    input::each("head", &options.operands, |name, input| {
        if has_titles {
            writeln!(output, "{gap}==> {} <==", shown(name))?;
            gap = "\n";
        }
        if bytes.is_some() {
            input::copy(input, output, bytes)?;
            return Ok(());
        }
        let mut line = Vec::new();
        for _ in 0..lines {
            if !input::read_line(input, &mut line)? {
                break;
            }
            output.write_all(&line)?;
        }
        Ok(())
    })
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    lines: u64,
    words: u64,
    bytes: u64,
}

pub(crate) fn wc(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "lwc",
            ..Accepted::default()
        },
    )?;
    let mut total = Counts::default();
    let status = input::each("wc", &options.operands, |name, input| {
        let counts = count(input)?;
        total.lines += counts.lines;
        total.words += counts.words;
        total.bytes += counts.bytes;
        let name = if options.operands.is_empty() {
            b""
        } else {
            name
        };
        print(&options, counts, name, output)
    })?;
    if options.operands.len() > 1 {
        print(&options, total, b"total", output)?;
    }
    Ok(status)
}

fn count(input: &mut impl BufRead) -> io::Result<Counts> {
    let mut counts = Counts::default();
    let mut is_in_word = false;
    loop {
        let piece = input.fill_buf()?;
        if piece.is_empty() {
            return Ok(counts);
        }
        for byte in piece {
            counts.lines += u64::from(*byte == b'\n');
            let is_blank = byte.is_ascii_whitespace();
            counts.words += u64::from(!is_blank && !is_in_word);
            is_in_word = !is_blank;
        }
        let length = piece.len();
        counts.bytes += u64::try_from(length).unwrap_or(u64::MAX);
        input.consume(length);
    }
}

fn print(
    options: &Options,
    counts: Counts,
    name: &[u8],
    output: &mut dyn Write,
) -> Result<(), Failure> {
    let all = [
        ('l', counts.lines),
        ('w', counts.words),
        ('c', counts.bytes),
    ];
    let has_any = all.iter().any(|(letter, _)| options.has(*letter));
    let chosen = all
        .iter()
        .filter(|(letter, _)| !has_any || options.has(*letter));
    let numbers: Vec<String> = chosen.map(|(_, number)| number.to_string()).collect();
    output.write_all(numbers.join(" ").as_bytes())?;
    if !name.is_empty() {
        output.write_all(b" ")?;
        output.write_all(name)?;
    }
    output.write_all(b"\n")?;
    Ok(())
}

pub(crate) fn tee(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "a",
            ..Accepted::default()
        },
    )?;
    let mut status = 0;
    let mut files = Vec::new();
    for name in &options.operands {
        let mut how = OpenOptions::new();
        how.create(true);
        if options.has('a') {
            how.append(true)
        } else {
            how.write(true).truncate(true)
        };
        match how.open(path(name)) {
            Ok(file) => files.push((name, file)),
            Err(error) => {
                warn("tee", format_args!("{}: {error}", shown(name)));
                status = 1;
            }
        }
    }
    let mut input = io::stdin().lock();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = input.read(&mut buffer)?;
        let piece = buffer.get(..count).unwrap_or_default();
        if piece.is_empty() {
            return Ok(status);
        }
        output.write_all(piece)?;
        output.flush()?;
        for (name, file) in &mut files {
            file.write_all(piece)
                .map_err(|error| Failure::on(shown(name), error))?;
        }
    }
}

pub(crate) fn seq(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let number = |text: &[u8]| -> Result<i64, Failure> {
        let number = std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse().ok());
        number.ok_or_else(|| Failure::usage(format!("{}: not a whole number", shown(text))))
    };
    let (first, step, last) = match args {
        [last] => (1, 1, number(last)?),
        [first, last] => (number(first)?, 1, number(last)?),
        [first, step, last] => (number(first)?, number(step)?, number(last)?),
        _ => return Err(Failure::usage("give one to three numbers")),
    };
    if step == 0 {
        return Err(Failure::usage("the step is 0"));
    }
    let mut value = first;
    while if step > 0 {
        value <= last
    } else {
        value >= last
    } {
        writeln!(output, "{value}")?;
        match value.checked_add(step) {
            Some(next) => value = next,
            None => break,
        }
    }
    Ok(0)
}

pub(crate) fn yes(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let mut line = if args.is_empty() {
        b"y".to_vec()
    } else {
        args.join(&b' ')
    };
    line.push(b'\n');
    loop {
        output.write_all(&line)?;
    }
}
