//! `printf`: `%s %b %c %d %i %u %o %x %X %f %%` with flags, width and precision. The format is used
//! again while arguments are left.

use std::io::Write;

use crate::escapes::unescape;
use crate::numbers::number;
use crate::outcome::{Failure, Outcome, shown, warn};

/// The widest field, so that a format cannot allocate all memory.
const MAX_WIDTH: usize = 65_536;

pub(crate) fn run(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let args = match args.split_first() {
        Some((first, rest)) if first == b"--" => rest,
        _ => args,
    };
    let Some((format, args)) = args.split_first() else {
        return Err(Failure::usage("give a format"));
    };
    let mut printer = Printer {
        args: args.iter(),
        text: Vec::new(),
        has_failed: false,
    };
    loop {
        let before = printer.args.len();
        let goes_on = printer.print(format)?;
        output.write_all(&printer.text)?;
        printer.text.clear();
        let is_using_arguments = printer.args.len() < before;
        if !goes_on || printer.args.len() == 0 || !is_using_arguments {
            break;
        }
    }
    Ok(u8::from(printer.has_failed))
}

struct Printer<'a> {
    args: std::slice::Iter<'a, Vec<u8>>,
    text: Vec<u8>,
    has_failed: bool,
}

#[derive(Default)]
struct Field {
    is_left: bool,
    has_zeros: bool,
    has_plus: bool,
    has_blank: bool,
    has_prefix: bool,
    width: usize,
    precision: Option<usize>,
}

impl Printer<'_> {
    /// Prints the format once; false if an argument stops the output.
    fn print(&mut self, format: &[u8]) -> Result<bool, Failure> {
        let mut rest = format;
        while let Some(place) = rest.iter().position(|byte| *byte == b'%') {
            let (plain, after) = rest.split_at(place);
            if !unescape(plain, false, &mut self.text) {
                return Ok(false);
            }
            rest = after.get(1..).unwrap_or_default();
            if let Some(after) = rest.strip_prefix(b"%") {
                self.text.push(b'%');
                rest = after;
                continue;
            }
            let field = self.field(&mut rest)?;
            let Some((conversion, after)) = rest.split_first() else {
                return Err(Failure::usage("the format ends in a conversion"));
            };
            rest = after;
            if !self.convert(*conversion, &field)? {
                return Ok(false);
            }
        }
        Ok(unescape(rest, false, &mut self.text))
    }

    fn field(&mut self, rest: &mut &[u8]) -> Result<Field, Failure> {
        let mut field = Field::default();
        while let Some((flag, after)) = rest.split_first() {
            match flag {
                b'-' => field.is_left = true,
                b'0' => field.has_zeros = true,
                b'+' => field.has_plus = true,
                b' ' => field.has_blank = true,
                b'#' => field.has_prefix = true,
                _ => break,
            }
            *rest = after;
        }
        if let Some(width) = self.size(rest)? {
            field.width = width.unsigned_abs();
            field.is_left |= width < 0;
        }
        if let Some(after) = rest.strip_prefix(b".") {
            *rest = after;
            let precision = self.size(rest)?.unwrap_or(0);
            field.precision = usize::try_from(precision).ok();
        }
        Ok(field)
    }

    /// Digits, or `*` for an argument.
    fn size(&mut self, rest: &mut &[u8]) -> Result<Option<isize>, Failure> {
        let size = if let Some(after) = rest.strip_prefix(b"*") {
            *rest = after;
            isize::try_from(self.integer()).unwrap_or(isize::MAX)
        } else {
            let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if count == 0 {
                return Ok(None);
            }
            let (digits, after) = rest.split_at(count);
            *rest = after;
            shown(digits).parse().unwrap_or(isize::MAX)
        };
        if size.unsigned_abs() > MAX_WIDTH {
            return Err(Failure::usage(format!(
                "a field of more than {MAX_WIDTH} characters"
            )));
        }
        Ok(Some(size))
    }

    fn argument(&mut self) -> &[u8] {
        self.args.next().map(Vec::as_slice).unwrap_or_default()
    }

    fn complain(&mut self, text: &[u8]) {
        warn("printf", format_args!("{}: not a number", shown(text)));
        self.has_failed = true;
    }

    fn integer(&mut self) -> i64 {
        let text = self.argument().to_vec();
        if let Some((b'\'' | b'"', character)) = text.split_first() {
            let character = shown(character).chars().next();
            return character.map_or(0, |character| i64::from(u32::from(character)));
        }
        if text.is_empty() {
            return 0;
        }
        number(&text).unwrap_or_else(|| {
            self.complain(&text);
            // What stands before the part that is no number.
            let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            number(text.get(..count).unwrap_or_default()).unwrap_or(0)
        })
    }

    fn convert(&mut self, conversion: u8, field: &Field) -> Result<bool, Failure> {
        let mut goes_on = true;
        match conversion {
            b's' => {
                let text = self.argument().to_vec();
                self.pad_text(&text, field);
            }
            b'b' => {
                let mut text = Vec::new();
                goes_on = unescape(self.argument(), true, &mut text);
                self.pad_text(&text, field);
            }
            b'c' => {
                let first = self.argument().first().copied();
                self.pad_text(&first.into_iter().collect::<Vec<_>>(), field);
            }
            b'd' | b'i' => {
                let value = self.integer();
                self.pad_number(value < 0, &value.unsigned_abs().to_string(), "", field);
            }
            b'u' => {
                let value = self.integer().cast_unsigned();
                self.pad_number(false, &value.to_string(), "", field);
            }
            b'o' => {
                let value = self.integer().cast_unsigned();
                let prefix = if field.has_prefix { "0" } else { "" };
                self.pad_number(false, &format!("{value:o}"), prefix, field);
            }
            b'x' | b'X' => {
                let value = self.integer().cast_unsigned();
                let is_lower = conversion == b'x';
                let digits = if is_lower {
                    format!("{value:x}")
                } else {
                    format!("{value:X}")
                };
                let prefix = match (field.has_prefix && value != 0, is_lower) {
                    (false, _) => "",
                    (true, true) => "0x",
                    (true, false) => "0X",
                };
                self.pad_number(false, &digits, prefix, field);
            }
            b'f' => {
                let text = shown(self.argument()).into_owned();
                let value: f64 = match text.parse() {
                    Ok(value) => value,
                    Err(_) if text.is_empty() => 0.0,
                    Err(_) => {
                        self.complain(text.as_bytes());
                        0.0
                    }
                };
                let precision = field.precision.unwrap_or(6);
                let digits = format!("{:.precision$}", value.abs());
                let field = Field {
                    precision: None,
                    ..*field
                };
                self.pad_number(value.is_sign_negative(), &digits, "", &field);
            }
            other => {
                let other = char::from(other);
                return Err(Failure::usage(format!("%{other}: unknown conversion")));
            }
        }
        Ok(goes_on)
    }

    fn pad_text(&mut self, text: &[u8], field: &Field) {
        let text = match field.precision {
            Some(precision) => text.get(..precision).unwrap_or(text),
            None => text,
        };
        let padding = field.width.saturating_sub(text.len());
        let blanks = vec![b' '; padding];
        if !field.is_left {
            self.text.extend(&blanks);
        }
        self.text.extend(text);
        if field.is_left {
            self.text.extend(&blanks);
        }
    }

    fn pad_number(&mut self, is_negative: bool, digits: &str, prefix: &str, field: &Field) {
        let sign = match (is_negative, field.has_plus, field.has_blank) {
            (true, _, _) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            (false, false, false) => "",
        };
        let mut zeros = field.precision.map_or(0, |digits_wanted| {
            digits_wanted.saturating_sub(digits.len())
        });
        if field.has_zeros && !field.is_left && field.precision.is_none() {
            let taken = sign.len() + prefix.len() + digits.len();
            zeros = field.width.saturating_sub(taken);
        }
        let text = format!("{sign}{prefix}{}{digits}", "0".repeat(zeros));
        let field = Field {
            precision: None,
            ..*field
        };
        self.pad_text(text.as_bytes(), &field);
    }
}
