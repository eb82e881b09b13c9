//! `grep`; what its patterns may be is in `regex`.

use std::io::Write;

use super::input;
use super::regex::Regex;
use crate::options::{Accepted, Options, number};
use crate::outcome::{Failure, Outcome, shown, warn};

/// One pattern of several.
enum Matcher {
    Fixed { text: String, ignores_case: bool },
    Regex(Regex),
}

impl Matcher {
    fn find(&self, text: &str, line: &[char], from: usize) -> Option<(usize, usize)> {
        match self {
            Self::Regex(regex) => regex.find(line, from),
            Self::Fixed {
                text: wanted,
                ignores_case,
            } => {
                let rest: String = text.chars().skip(from).collect();
                let rest = if *ignores_case {
                    rest.to_lowercase()
                } else {
                    rest
                };
                let place = rest.find(wanted.as_str())?;
                let before = rest.get(..place).unwrap_or_default().chars().count();
                Some((from + before, from + before + wanted.chars().count()))
            }
        }
    }

    fn is_match(&self, text: &str, line: &[char]) -> bool {
        match self {
            Self::Regex(regex) => regex.is_match(line),
            Self::Fixed {
                text: wanted,
                ignores_case: false,
            } => text.contains(wanted.as_str()),
            Self::Fixed {
                text: wanted,
                ignores_case: true,
            } => text.to_lowercase().contains(wanted.as_str()),
        }
    }
}

pub(crate) fn run(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let accepted = Accepted {
        flags: "EFGvicnqlhHoxsw",
        valued: "em",
        ..Accepted::default()
    };
    let mut options = Options::parse(args, accepted)?;
    let mut patterns: Vec<Vec<u8>> = options.values('e').map(<[u8]>::to_vec).collect();
    if patterns.is_empty() {
        if options.operands.is_empty() {
            return Err(Failure::usage("give a pattern"));
        }
        patterns.push(options.operands.remove(0));
    }
    let mut matchers = Vec::new();
    for pattern in patterns
        .iter()
        .flat_map(|pattern| pattern.split(|byte| *byte == b'\n'))
    {
        matchers.push(matcher(pattern, &options)?);
    }
    let most = options.value('m').map(|text| {
        number(text).ok_or_else(|| Failure::usage(format!("-m {}: not a number", shown(text))))
    });
    let search = Search {
        has_names: options.has('H') || options.operands.len() > 1 && !options.has('h'),
        most: most.transpose()?.unwrap_or(u64::MAX),
        options: &options,
        matchers,
    };
    let mut has_found = false;
    let mut has_failed = false;
    for name in input::names(&options.operands) {
        let result = input::open(&name).map_err(Failure::from);
        match result.and_then(|mut input| search.file(&name, &mut input, output)) {
            Ok(is_found) => has_found |= is_found,
            Err(failure) if !options.has('s') => {
                warn(
                    "grep",
                    format_args!("{}: {}", shown(&name), failure.parts().1),
                );
                has_failed = true;
            }
            Err(_) => has_failed = true,
        }
        if has_found && options.has('q') {
            return Ok(0);
        }
    }
    Ok(if has_failed { 2 } else { u8::from(!has_found) })
}

fn matcher(pattern: &[u8], options: &Options) -> Result<Matcher, Failure> {
    let text = shown(pattern);
    let ignores_case = options.has('i');
    let is_extended = options.has('E');
    if options.has('F') && !options.has('x') && !options.has('w') {
        let text = if ignores_case {
            text.to_lowercase()
        } else {
            text.into_owned()
        };
        return Ok(Matcher::Fixed { text, ignores_case });
    }
    let mut text = text.into_owned();
    if options.has('F') {
        let special = if is_extended {
            ".[]*^$\\+?{}()|"
        } else {
            ".[]*^$\\"
        };
        let quote = |c: char| {
            if special.contains(c) {
                format!("\\{c}")
            } else {
                c.to_string()
            }
        };
        text = text.chars().map(quote).collect();
    }
    let (open, close) = if is_extended {
        ("(", ")")
    } else {
        ("\\(", "\\)")
    };
    if options.has('w') {
        text = format!("\\b{open}{text}{close}\\b");
    }
    if options.has('x') {
        text = format!("^{open}{text}{close}$");
    }
    let regex = Regex::new(&text, is_extended, ignores_case);
    let regex =
        regex.map_err(|message| Failure::usage(format!("{}: {message}", shown(pattern))))?;
    Ok(Matcher::Regex(regex))
}

struct Search<'a> {
    options: &'a Options,
    matchers: Vec<Matcher>,
    has_names: bool,
    most: u64,
}

impl Search<'_> {
    /// Whether a line was selected.
    fn file(
        &self,
        name: &[u8],
        input: &mut input::Input,
        output: &mut dyn Write,
    ) -> Result<bool, Failure> {
        let name: &[u8] = if name == b"-" {
            b"(standard input)"
        } else {
            name
        };
        let mut bytes = Vec::new();
        let mut place = 0_u64;
        let mut count = 0_u64;
        while count < self.most && input::read_line(input, &mut bytes)? {
            place += 1;
            let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
            let text = shown(line);
            let characters: Vec<char> = text.chars().collect();
            let is_match = self
                .matchers
                .iter()
                .any(|matcher| matcher.is_match(&text, &characters));
            if is_match == self.options.has('v') {
                continue;
            }
            count += 1;
            if self.options.has('q') {
                return Ok(true);
            }
            if self.options.has('l') {
                output.write_all(&[name, b"\n"].concat())?;
                return Ok(true);
            }
            if self.options.has('c') {
                continue;
            }
            if self.options.has('o') {
                for part in self.parts(&text, &characters) {
                    self.print(name, place, part.as_bytes(), output)?;
                }
            } else {
                self.print(name, place, line, output)?;
            }
        }
        if self.options.has('c') {
            if self.has_names {
                output.write_all(&[name, b":"].concat())?;
            }
            writeln!(output, "{count}")?;
        }
        Ok(count > 0)
    }

    fn print(
        &self,
        name: &[u8],
        place: u64,
        line: &[u8],
        output: &mut dyn Write,
    ) -> Result<(), Failure> {
        if self.has_names {
            output.write_all(&[name, b":"].concat())?;
        }
        if self.options.has('n') {
            write!(output, "{place}:")?;
        }
        output.write_all(line)?;
        output.write_all(b"\n")?;
        Ok(())
    }

    /// The parts of a line that match, for `-o`.
    fn parts(&self, text: &str, line: &[char]) -> Vec<String> {
        let mut parts = Vec::new();
        let mut from = 0;
        while from <= line.len() {
            let found = self
                .matchers
                .iter()
                .filter_map(|matcher| matcher.find(text, line, from));
            // The first one, and of those the longest.
            let Some((start, end)) = found.min_by_key(|(start, end)| (*start, usize::MAX - end))
            else {
                break;
            };
            if end > start {
                parts.push(line.get(start..end).unwrap_or_default().iter().collect());
            }
            from = end.max(start + 1);
        }
        parts
    }
}
