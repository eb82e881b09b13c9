//! Reads what begins with `$` or a backquote.

use super::ast::{Expansion, Operation, Part, Replacement, Word};
use super::lexer::{Mode, is_name_byte, is_name_start};
use super::parser::{ParseError, Parsed, Parser};

/// Parameters that are one byte long, beside the digits.
const SPECIAL: &[u8] = b"@*#?-$!";

impl Parser<'_> {
    pub(super) fn dollar(&mut self, word: &mut Word, mode: Mode) -> Parsed<()> {
        self.at += 1;
        let expansion = match self.byte() {
            Some(b'(') if self.byte_after(1) == Some(b'(') => self.arithmetic_or_command()?,
            Some(b'(') => self.command_substitution()?,
            Some(b'{') => {
                self.at += 1;
                self.nested(|parser| parser.braces(mode))?
            }
            Some(byte) if is_name_start(byte) => value_of(self.name()),
            Some(byte) if byte.is_ascii_digit() || SPECIAL.contains(&byte) => {
                self.at += 1;
                value_of(vec![byte])
            }
            _ => {
                word.parts.push(if mode.is_quoted() {
                    Part::Quoted(b"$".to_vec())
                } else {
                    Part::Literal(b"$".to_vec())
                });
                return Ok(());
            }
        };
        let is_quoted = mode.is_quoted();
        word.parts.push(Part::Expansion {
            expansion,
            is_quoted,
        });
        Ok(())
    }

    fn name(&mut self) -> Vec<u8> {
        let rest = self.input.get(self.at..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| is_name_byte(**byte)).count();
        self.at += length;
        rest.get(..length).unwrap_or_default().to_vec()
    }

    fn arithmetic_or_command(&mut self) -> Parsed<Expansion> {
        self.at += 2;
        if !self.is_arithmetic_ahead()? {
            self.at -= 2;
            return self.command_substitution();
        }
        let mut word = Word::default();
        self.nested(|parser| parser.parts(&mut word, Mode::Arithmetic))?;
        Ok(Expansion::Arithmetic(word))
    }

    fn is_arithmetic_ahead(&self) -> Parsed<bool> {
        match self.is_arithmetic() {
            // Only the full reading can decide what is missing.
            Err(ParseError::Incomplete(_)) if self.is_final => Ok(true),
            other => other,
        }
    }

    fn command_substitution(&mut self) -> Parsed<Expansion> {
        self.at += 1;
        let list = self.nested(|parser| {
            let list = parser.list(&[")"], true)?;
            parser.expect(")")?;
            Ok(list)
        })?;
        Ok(Expansion::Command(list))
    }

    pub(super) fn backquotes(&mut self, word: &mut Word, mode: Mode) -> Parsed<()> {
        self.at += 1;
        let mut script = Vec::new();
        loop {
            let Some(byte) = self.byte() else {
                return Err(ParseError::Incomplete("a closing backquote"));
            };
            self.at += 1;
            match (byte, self.byte()) {
                (b'`', _) => break,
                (b'\\', Some(next))
                    if b"$`\\".contains(&next) || next == b'"' && mode == Mode::DoubleQuotes =>
                {
                    self.at += 1;
                    script.push(next);
                }
                _ => script.push(byte),
            }
        }
        let list = self.within(&script, |parser| {
            let list = parser.list(&[], true)?;
            parser.expect_end()?;
            Ok(list)
        })?;
        word.parts.push(Part::Expansion {
            expansion: Expansion::Command(list),
            is_quoted: mode.is_quoted(),
        });
        Ok(())
    }

    /// What follows `${`.
    fn braces(&mut self, mode: Mode) -> Parsed<Expansion> {
        if self.byte() == Some(b'#')
            && !matches!(
                self.byte_after(1),
                Some(b'}' | b'-' | b'=' | b'?' | b'+' | b':' | b'%' | b'#')
            )
        {
            self.at += 1;
            let name = self.parameter_name()?;
            self.close_braces()?;
            return Ok(Expansion::Parameter {
                name,
                operation: Operation::Length,
            });
        }
        if self.byte() == Some(b'#')
            && matches!(
                (self.byte_after(1), self.byte_after(2)),
                (Some(b'-' | b'?' | b'#'), Some(b'}'))
            )
        {
            let name = self.byte_after(1).into_iter().collect();
            self.at += 2;
            self.close_braces()?;
            return Ok(Expansion::Parameter {
                name,
                operation: Operation::Length,
            });
        }
        let name = self.parameter_name()?;
        let operation = self.operation(mode)?;
        Ok(Expansion::Parameter { name, operation })
    }

    fn parameter_name(&mut self) -> Parsed<Vec<u8>> {
        match self.byte() {
            Some(byte) if is_name_start(byte) => Ok(self.name()),
            Some(byte) if byte.is_ascii_digit() => {
                let name = self.name();
                if name.iter().all(u8::is_ascii_digit) {
                    return Ok(name);
                }
                Err(ParseError::Syntax("bad substitution".to_owned()))
            }
            Some(byte) if SPECIAL.contains(&byte) => {
                self.at += 1;
                Ok(vec![byte])
            }
            Some(_) => Err(ParseError::Syntax("bad substitution".to_owned())),
            None => Err(ParseError::Incomplete("}")),
        }
    }

    fn close_braces(&mut self) -> Parsed<()> {
        match self.byte() {
            Some(b'}') => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(ParseError::Syntax("bad substitution".to_owned())),
            None => Err(ParseError::Incomplete("}")),
        }
    }

    fn operation(&mut self, mode: Mode) -> Parsed<Operation> {
        let is_empty_unset = self.byte() == Some(b':');
        if is_empty_unset {
            self.at += 1;
        }
        let Some(byte) = self.byte() else {
            return Err(ParseError::Incomplete("}"));
        };
        self.at += 1;
        let replacement = match byte {
            b'}' if !is_empty_unset => return Ok(Operation::Value),
            b'-' => Replacement::Default,
            b'=' => Replacement::Assign,
            b'?' => Replacement::Fail,
            b'+' => Replacement::Alternative,
            b'#' | b'%' if !is_empty_unset => return self.trim(byte),
            _ => return Err(ParseError::Syntax("bad substitution".to_owned())),
        };
        let mut word = Word::default();
        let is_quoted = mode.is_quoted();
        self.parts(&mut word, Mode::Braces { is_quoted })?;
        Ok(Operation::Replace {
            replacement,
            is_empty_unset,
            word,
        })
    }

    /// Patterns stay patterns inside of double quotes.
    fn trim(&mut self, sign: u8) -> Parsed<Operation> {
        let is_longest = self.byte() == Some(sign);
        if is_longest {
            self.at += 1;
        }
        let mut pattern = Word::default();
        self.parts(&mut pattern, Mode::Braces { is_quoted: false })?;
        Ok(Operation::Trim {
            from_end: sign == b'%',
            is_longest,
            pattern,
        })
    }
}

fn value_of(name: Vec<u8>) -> Expansion {
    Expansion::Parameter {
        name,
        operation: Operation::Value,
    }
}
