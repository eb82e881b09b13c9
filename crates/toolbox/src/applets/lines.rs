//! `cut tr sort uniq`: text line by line or character by character.

use std::cmp::Ordering;
use std::io::{self, BufRead, Write};

use super::input;
use crate::character_class;
use crate::options::{Accepted, Options};
use crate::outcome::{Failure, Outcome, shown};

/// The most that `sort` holds.
const MAX_SORTED: usize = 1 << 30;

/// Ranges such as `1,3-5,7-`, from 1 on.
fn ranges(text: &str) -> Option<Vec<(usize, usize)>> {
    let range = |part: &str| {
        let (first, last) = match part.split_once('-') {
            None => (part, part),
            Some(("", "")) => return None,
            Some(halves) => halves,
        };
        if part.is_empty() {
            return None;
        }
        let first = if first.is_empty() {
            1
        } else {
            first.parse().ok()?
        };
        let last = if last.is_empty() {
            usize::MAX
        } else {
            last.parse().ok()?
        };
        (first >= 1 && first <= last).then_some((first, last))
    };
    text.split(',').map(range).collect()
}

pub(crate) fn cut(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "s",
            valued: "dfcb",
            ..Accepted::default()
        },
    )?;
    let bytes = options.text('c')?.or(options.text('b')?);
    let (list, is_fields) = match (options.text('f')?, bytes) {
        (Some(list), None) => (list, true),
        (None, Some(list)) => (list, false),
        _ => return Err(Failure::usage("give either -f or -c")),
    };
    let ranges = ranges(list)
        .ok_or_else(|| Failure::usage(format!("{list}: not a list such as 1,3-5,7-")))?;
    let delimiter = match options.value('d').unwrap_or(b"\t") {
        [only] => *only,
        _ => return Err(Failure::usage("the delimiter is one byte")),
    };
    let is_chosen = |place: usize| {
        ranges
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&place))
    };
    input::each("cut", &options.operands, |_, input| {
        let mut line = Vec::new();
        while input::read_line(input, &mut line)? {
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            let chosen = if !is_fields {
                let numbered = text.iter().zip(1..);
                numbered
                    .filter(|(_, place)| is_chosen(*place))
                    .map(|(byte, _)| *byte)
                    .collect()
            } else if text.contains(&delimiter) {
                let fields = text.split(|byte| *byte == delimiter).zip(1..);
                let chosen = fields
                    .filter(|(_, place)| is_chosen(*place))
                    .map(|(field, _)| field);
                chosen.collect::<Vec<_>>().join(&delimiter)
            } else if options.has('s') {
                continue;
            } else {
                text.to_vec()
            };
            output.write_all(&chosen)?;
            output.write_all(b"\n")?;
        }
        Ok(())
    })
}

/// The bytes of a set: ranges `a-z`, classes `[:upper:]`, escapes.
fn set(text: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut plain = Vec::new();
    crate::escapes::unescape(text, false, &mut plain);
    let mut bytes = Vec::new();
    let mut rest = plain.as_slice();
    while let Some((first, after)) = rest.split_first() {
        if let Some(inside) = rest.strip_prefix(b"[:")
            && let Some(end) = inside.windows(2).position(|pair| pair == b":]")
        {
            let (name, after) = inside.split_at(end);
            let members: Vec<u8> = (0..=127)
                .filter(|byte| character_class::contains(name, char::from(*byte)))
                .collect();
            if members.is_empty() {
                return Err(Failure::usage(format!(
                    "[:{}:]: unknown class",
                    shown(name)
                )));
            }
            bytes.extend(members);
            rest = after.get(2..).unwrap_or_default();
        } else if let [b'-', last, after @ ..] = after {
            if first > last {
                return Err(Failure::usage("a range ends before it begins"));
            }
            bytes.extend(*first..=*last);
            rest = after;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    Ok(bytes)
}

pub(crate) fn tr(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "dsc",
            ..Accepted::default()
        },
    )?;
    let (first, second) = match options.operands.as_slice() {
        [first] if options.has('d') || options.has('s') => (set(first)?, None),
        [first, second] if !options.has('d') => (set(first)?, Some(set(second)?)),
        _ => return Err(Failure::usage("give two sets, or one with -d or -s")),
    };
    let is_member = |byte: u8| first.contains(&byte) != options.has('c');
    let replace = |byte: u8| {
        let Some(second) = second.as_ref().filter(|_| is_member(byte)) else {
            return byte;
        };
        let place = first.iter().position(|known| *known == byte);
        // A set that is too short repeats its last byte.
        let found = place.and_then(|place| second.get(place)).or(second.last());
        found.copied().unwrap_or(byte)
    };
    let squeezed = |byte: u8| match &second {
        Some(second) => second.contains(&byte),
        None => is_member(byte),
    };
    let mut input = io::stdin().lock();
    let mut last = None;
    loop {
        let piece = input.fill_buf()?;
        let length = piece.len();
        if length == 0 {
            return Ok(0);
        }
        let mut result = Vec::with_capacity(length);
        for byte in piece.iter().copied() {
            if options.has('d') && is_member(byte) {
                continue;
            }
            let byte = replace(byte);
            if options.has('s') && last == Some(byte) && squeezed(byte) {
                continue;
            }
            last = Some(byte);
            result.push(byte);
        }
        output.write_all(&result)?;
        input.consume(length);
    }
}

pub(crate) fn sort(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "rnu",
            ..Accepted::default()
        },
    )?;
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let mut total = 0;
    let status = input::each("sort", &options.operands, |_, input| {
        let mut line = Vec::new();
        while input::read_line(input, &mut line)? {
            total += line.len();
            if total > MAX_SORTED {
                return Err(Failure::Work("more than 1 GiB to sort".to_owned()));
            }
            lines.push(line.strip_suffix(b"\n").unwrap_or(&line).to_vec());
        }
        Ok(())
    })?;
    let compare = |a: &Vec<u8>, b: &Vec<u8>| {
        let by_number = if options.has('n') {
            number(a).total_cmp(&number(b))
        } else {
            Ordering::Equal
        };
        // Equal numbers are one with -u, and otherwise in the order of their texts.
        if by_number.is_eq() && !(options.has('n') && options.has('u')) {
            a.cmp(b)
        } else {
            by_number
        }
    };
    lines.sort_by(compare);
    if options.has('u') {
        lines.dedup_by(|a, b| compare(a, b).is_eq());
    }
    if options.has('r') {
        lines.reverse();
    }
    for line in lines {
        output.write_all(&line)?;
        output.write_all(b"\n")?;
    }
    Ok(status)
}

/// The number that a line begins with, or 0.
fn number(line: &[u8]) -> f64 {
    let text = line.trim_ascii_start();
    let length = text
        .iter()
        .take_while(|byte| byte.is_ascii_digit() || b"-.".contains(byte))
        .count();
    let number = text.get(..length).unwrap_or_default();
    std::str::from_utf8(number)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0.0)
}

pub(crate) fn uniq(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "c",
            ..Accepted::default()
        },
    )?;
    if options.operands.len() > 1 {
        return Err(Failure::usage("takes one file"));
    }
    let mut print = |line: &[u8], count: u64| -> Result<(), Failure> {
        if options.has('c') {
            write!(output, "{count:>7} ")?;
        }
        output.write_all(line)?;
        output.write_all(b"\n")?;
        Ok(())
    };
    input::each("uniq", &options.operands, |_, input| {
        let mut run: Option<(Vec<u8>, u64)> = None;
        let mut line = Vec::new();
        while input::read_line(input, &mut line)? {
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            match &mut run {
                Some((known, count)) if known == text => *count += 1,
                _ => {
                    if let Some((known, count)) = run.replace((text.to_vec(), 1)) {
                        print(&known, count)?;
                    }
                }
            }
        }
        match run {
            Some((known, count)) => print(&known, count),
            None => Ok(()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_fields_are_ranges() {
        assert_eq!(
            ranges("1,3-5,7-"),
            Some(vec![(1, 1), (3, 5), (7, usize::MAX)])
        );
        assert_eq!(ranges("-2"), Some(vec![(1, 2)]));
        for text in ["", "0", "-", "3-2", "a"] {
            assert_eq!(ranges(text), None, "{text}");
        }
    }

    #[test]
    fn sets_have_ranges_and_classes() {
        assert_eq!(set(b"a-c\\n-").unwrap(), b"abc\n-");
        assert_eq!(set(b"[:digit:]x").unwrap(), b"0123456789x");
        assert!(set(b"z-a").is_err() && set(b"[:what:]").is_err());
    }
}
