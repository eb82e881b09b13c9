//! `test` and `[`: conditions about files, texts and numbers, with `!`, `-a`, `-o` and parentheses.

use std::fs::{self, Metadata};
use std::io::{IsTerminal, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};

use crate::options::path;
use crate::outcome::{Failure, Outcome, shown};
use crate::sys;

/// How deep `!` and parentheses may be nested.
const MAX_DEPTH: usize = 100;

pub(crate) fn run(args: &[Vec<u8>], _: &mut dyn Write) -> Outcome {
    if args.is_empty() {
        return Ok(1);
    }
    let mut reader = Reader {
        words: args,
        at: 0,
        depth: 0,
    };
    let is_true = reader.by_count()?;
    if let Some(word) = args.get(reader.at) {
        return Err(Failure::usage(format!("unexpected \"{}\"", shown(word))));
    }
    Ok(u8::from(!is_true))
}

pub(crate) fn run_bracket(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    match args.split_last() {
        Some((last, args)) if last == b"]" => run(args, output),
        _ => Err(Failure::usage("the last argument must be ]")),
    }
}

struct Reader<'a> {
    words: &'a [Vec<u8>],
    at: usize,
    depth: usize,
}

const BINARY: [&[u8]; 14] = [
    b"=", b"==", b"!=", b"<", b">", b"-eq", b"-ne", b"-lt", b"-le", b"-gt", b"-ge", b"-nt", b"-ot",
    b"-ef",
];

impl<'a> Reader<'a> {
    fn peek(&self, distance: usize) -> Option<&'a [u8]> {
        self.words.get(self.at + distance).map(Vec::as_slice)
    }

    fn left(&self) -> usize {
        self.words.len() - self.at
    }

    /// Up to four words mean what POSIX defines, whatever their content.
    fn by_count(&mut self) -> Result<bool, Failure> {
        match self.left() {
            1 => self.text(),
            2 if self.peek(0) == Some(b"!") => {
                self.at += 1;
                Ok(!self.text()?)
            }
            3 if self.peek(1).is_some_and(|word| BINARY.contains(&word)) => self.binary(),
            4 if self.peek(0) == Some(b"!") => {
                self.at += 1;
                Ok(!self.by_count()?)
            }
            _ => self.or(),
        }
    }

    fn text(&mut self) -> Result<bool, Failure> {
        let is_true = self.peek(0).is_some_and(|word| !word.is_empty());
        self.at += 1;
        Ok(is_true)
    }

    fn or(&mut self) -> Result<bool, Failure> {
        let mut is_true = self.and()?;
        while self.peek(0) == Some(b"-o") {
            self.at += 1;
            is_true |= self.and()?;
        }
        Ok(is_true)
    }

    fn and(&mut self) -> Result<bool, Failure> {
        let mut is_true = self.not()?;
        while self.peek(0) == Some(b"-a") {
            self.at += 1;
            is_true &= self.not()?;
        }
        Ok(is_true)
    }

    fn not(&mut self) -> Result<bool, Failure> {
        if self.depth >= MAX_DEPTH {
            return Err(Failure::usage(format!(
                "nested more than {MAX_DEPTH} levels deep"
            )));
        }
        self.depth += 1;
        let result = self.primary();
        self.depth -= 1;
        result
    }

    fn primary(&mut self) -> Result<bool, Failure> {
        let Some(first) = self.peek(0) else {
            return Err(Failure::usage("the expression ends too early"));
        };
        if self.peek(1).is_some_and(|word| BINARY.contains(&word)) && self.left() > 2 {
            return self.binary();
        }
        match first {
            b"!" if self.left() > 1 => {
                self.at += 1;
                Ok(!self.not()?)
            }
            b"(" if self.left() > 1 => {
                self.at += 1;
                let is_true = self.or()?;
                if self.peek(0) != Some(b")") {
                    return Err(Failure::usage("a closing ) is missing"));
                }
                self.at += 1;
                Ok(is_true)
            }
            [b'-', letter] if self.left() > 1 && b"bcdefghkLnoprsStuwxz".contains(letter) => {
                let operand = self.peek(1).unwrap_or_default();
                self.at += 2;
                unary(*letter, operand)
            }
            _ => self.text(),
        }
    }

    fn binary(&mut self) -> Result<bool, Failure> {
        let word = |distance| self.peek(distance).unwrap_or_default();
        let (left, operator, right) = (word(0), word(1), word(2));
        self.at += 3;
        Ok(match operator {
            b"=" | b"==" => left == right,
            b"!=" => left != right,
            b"<" => left < right,
            b">" => left > right,
            b"-nt" => modified(left) > modified(right),
            b"-ot" => modified(left) < modified(right),
            b"-ef" => place(left).is_some() && place(left) == place(right),
            _ => {
                let (left, right) = (number(left)?, number(right)?);
                match operator {
                    b"-eq" => left == right,
                    b"-ne" => left != right,
                    b"-lt" => left < right,
                    b"-le" => left <= right,
                    b"-gt" => left > right,
                    _ => left >= right,
                }
            }
        })
    }
}

fn number(text: &[u8]) -> Result<i64, Failure> {
    let trimmed = text.trim_ascii();
    let number = std::str::from_utf8(trimmed)
        .ok()
        .and_then(|text| text.parse().ok());
    number.ok_or_else(|| Failure::usage(format!("{}: not a number", shown(text))))
}

fn modified(name: &[u8]) -> Option<std::time::SystemTime> {
    fs::metadata(path(name)).ok()?.modified().ok()
}

fn place(name: &[u8]) -> Option<(u64, u64)> {
    let found = fs::metadata(path(name)).ok()?;
    Some((found.dev(), found.ino()))
}

fn unary(letter: u8, operand: &[u8]) -> Result<bool, Failure> {
    let follows = || fs::metadata(path(operand)).ok();
    let is = |test: fn(&Metadata) -> bool| follows().is_some_and(|found| test(&found));
    let may = |bit: u32| follows().is_some_and(|found| is_permitted(&found, bit));
    Ok(match letter {
        b'n' => !operand.is_empty(),
        b'z' => operand.is_empty(),
        b'e' => is(|_| true),
        b'f' => is(Metadata::is_file),
        b'd' => is(Metadata::is_dir),
        b's' => is(|found| found.len() > 0),
        b'b' => is(|found| found.file_type().is_block_device()),
        b'c' => is(|found| found.file_type().is_char_device()),
        b'p' => is(|found| found.file_type().is_fifo()),
        b'S' => is(|found| found.file_type().is_socket()),
        b'u' => is(|found| found.mode() & 0o4000 != 0),
        b'g' => is(|found| found.mode() & 0o2000 != 0),
        b'k' => is(|found| found.mode() & 0o1000 != 0),
        b'o' => is(|found| found.uid() == sys::effective_user()),
        b'L' | b'h' => fs::symlink_metadata(path(operand)).is_ok_and(|found| found.is_symlink()),
        b'r' => may(4),
        b'w' => may(2),
        b'x' => may(1),
        b't' => match number(operand)? {
            0 => std::io::stdin().is_terminal(),
            1 => std::io::stdout().is_terminal(),
            2 => std::io::stderr().is_terminal(),
            _ => false,
        },
        other => {
            let other = char::from(other);
            return Err(Failure::usage(format!("-{other}: unknown condition")));
        }
    })
}

/// By the permissions of the file: supplementary groups, access lists and read-only file systems are
/// not looked at.
fn is_permitted(found: &Metadata, bit: u32) -> bool {
    let mode = found.permissions().mode();
    if sys::effective_user() == 0 {
        return bit != 1 || found.is_dir() || mode & 0o111 != 0;
    }
    let shift = if found.uid() == sys::effective_user() {
        6
    } else if found.gid() == sys::group() {
        3
    } else {
        0
    };
    mode & (bit << shift) != 0
}
