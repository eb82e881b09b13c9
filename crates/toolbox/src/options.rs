//! Command lines of applets: short options in clusters, long options, operands.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::outcome::{Failure, shown};

/// Which options an applet takes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Accepted {
    /// Letters without a value.
    pub(crate) flags: &'static str,
    /// Letters with a value.
    pub(crate) valued: &'static str,
    /// Long names, each with the letter that it stands for.
    pub(crate) long: &'static [(&'static str, char)],
    /// Whether options end at the first operand, as for programs that run another one.
    pub(crate) stops_at_operand: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Options {
    flags: Vec<char>,
    values: Vec<(char, Vec<u8>)>,
    pub(crate) operands: Vec<Vec<u8>>,
}

impl Options {
    pub(crate) fn parse(args: &[Vec<u8>], accepted: Accepted) -> Result<Self, Failure> {
        let mut options = Self::default();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            if arg == b"--" {
                options.operands.extend(rest.cloned());
                break;
            } else if let Some(long) = arg.strip_prefix(b"--") {
                options.long(long, &mut rest, accepted)?;
            } else if arg.len() > 1 && arg.starts_with(b"-") {
                options.cluster(arg.get(1..).unwrap_or_default(), &mut rest, accepted)?;
            } else {
                options.operands.push(arg.clone());
                if accepted.stops_at_operand {
                    options.operands.extend(rest.cloned());
                    break;
                }
            }
        }
        Ok(options)
    }

    fn long<'a>(
        &mut self,
        text: &[u8],
        rest: &mut impl Iterator<Item = &'a Vec<u8>>,
        accepted: Accepted,
    ) -> Result<(), Failure> {
        let mut halves = text.splitn(2, |byte| *byte == b'=');
        let name = halves.next().unwrap_or_default();
        let value = halves.next();
        let known = accepted.long.iter().find(|(n, _)| n.as_bytes() == name);
        let Some((_, letter)) = known else {
            let name = shown(name);
            return Err(Failure::usage(format!("unknown option --{name}")));
        };
        if !accepted.valued.contains(*letter) {
            if value.is_some() {
                let name = shown(name);
                return Err(Failure::usage(format!("option --{name} takes no value")));
            }
            self.flags.push(*letter);
            return Ok(());
        }
        let value = match value {
            Some(value) => value.to_vec(),
            None => rest
                .next()
                .cloned()
                .ok_or_else(|| Failure::usage(format!("option --{} needs a value", shown(name))))?,
        };
        self.values.push((*letter, value));
        Ok(())
    }

    fn cluster<'a>(
        &mut self,
        letters: &[u8],
        rest: &mut impl Iterator<Item = &'a Vec<u8>>,
        accepted: Accepted,
    ) -> Result<(), Failure> {
        for (place, byte) in letters.iter().enumerate() {
            let letter = char::from(*byte);
            if accepted.flags.contains(letter) {
                self.flags.push(letter);
            } else if accepted.valued.contains(letter) {
                let attached = letters.get(place + 1..).unwrap_or_default();
                let value = if attached.is_empty() {
                    rest.next().cloned()
                } else {
                    Some(attached.to_vec())
                };
                let value = value
                    .ok_or_else(|| Failure::usage(format!("option -{letter} needs a value")))?;
                self.values.push((letter, value));
                return Ok(());
            } else {
                return Err(Failure::usage(format!("unknown option -{letter}")));
            }
        }
        Ok(())
    }

    pub(crate) fn has(&self, letter: char) -> bool {
        self.flags.contains(&letter)
    }

    /// The last value given for a letter.
    pub(crate) fn value(&self, letter: char) -> Option<&[u8]> {
        let mut values = self.values.iter().rev();
        values
            .find(|(name, _)| *name == letter)
            .map(|(_, value)| value.as_slice())
    }

    pub(crate) fn values(&self, letter: char) -> impl Iterator<Item = &[u8]> {
        let values = self.values.iter();
        values
            .filter(move |(name, _)| *name == letter)
            .map(|(_, value)| value.as_slice())
    }

    pub(crate) fn text(&self, letter: char) -> Result<Option<&str>, Failure> {
        self.value(letter)
            .map(|value| {
                std::str::from_utf8(value)
                    .map_err(|_| Failure::usage(format!("the value of -{letter} is not UTF-8")))
            })
            .transpose()
    }

    pub(crate) fn number(&self, letter: char) -> Result<Option<u64>, Failure> {
        self.value(letter)
            .map(|value| {
                number(value).ok_or_else(|| {
                    let value = shown(value);
                    Failure::usage(format!("-{letter} {value}: not a number from 0 on"))
                })
            })
            .transpose()
    }

    /// The operands, or a usage error if there are none.
    pub(crate) fn some_operands(&self, what: &str) -> Result<&[Vec<u8>], Failure> {
        if self.operands.is_empty() {
            return Err(Failure::usage(format!("name at least one {what}")));
        }
        Ok(&self.operands)
    }
}

pub(crate) fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Bytes with a unit: `k`, `M`, `G` and `Ki`, `Mi`, `Gi` mean 1024 of the one below, as in dd.
pub(crate) fn size(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (amount, unit) = text.split_at(digits);
    let factor: u64 = match unit {
        b"" | b"B" | b"c" => 1,
        b"k" | b"K" | b"Ki" | b"KiB" => 1 << 10,
        b"M" | b"Mi" | b"MiB" => 1 << 20,
        b"G" | b"Gi" | b"GiB" => 1 << 30,
        b"T" | b"Ti" | b"TiB" => 1 << 40,
        _ => return None,
    };
    number(amount)?.checked_mul(factor)
}

pub(crate) fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

pub(crate) fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, Failure> {
        let args: Vec<Vec<u8>> = line.split(' ').map(|word| word.into()).collect();
        let accepted = Accepted {
            flags: "ab",
            valued: "n",
            long: &[("all", 'a'), ("number", 'n')],
            ..Accepted::default()
        };
        Options::parse(&args, accepted)
    }

    #[test]
    fn reads_clusters_values_and_operands_in_any_order() {
        let options = parse("x -abn3 y --number=4 -- -z").unwrap();
        assert!(options.has('a') && options.has('b'));
        assert_eq!(options.values('n').collect::<Vec<_>>(), [b"3", b"4"]);
        assert_eq!(
            options.operands,
            [b"x".to_vec(), b"y".to_vec(), b"-z".to_vec()]
        );
    }

    #[test]
    fn rejects_unknown_options_and_missing_values() {
        for (line, expected) in [
            ("-q", "unknown option -q"),
            ("--some", "unknown option --some"),
            ("--all=1", "option --all takes no value"),
            ("-n", "option -n needs a value"),
            ("--number", "option --number needs a value"),
        ] {
            match parse(line) {
                Err(Failure::Usage(message)) => assert_eq!(message, expected),
                other => panic!("{line}: {other:?}"),
            }
        }
    }

    #[test]
    fn sizes_have_units() {
        for (text, expected) in [("0", Some(0)), ("4k", Some(4096)), ("50Mi", Some(50 << 20))] {
            assert_eq!(size(text.as_bytes()), expected, "{text}");
        }
        for text in ["", "k", "4x", "99999999999G", "-1"] {
            assert_eq!(size(text.as_bytes()), None, "{text}");
        }
    }
}
