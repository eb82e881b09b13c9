//! Expansion of words: tildes, parameters, commands, arithmetic, then field splitting, pathnames
//! and the removal of quotes.

use super::arithmetic;
use super::ast::{Expansion, Operation, Part, Replacement, Word};
use super::fields::{self, Unit};
use super::glob;
use super::pattern::{self, Symbol, first_character};
use super::shell::{Flow, Shell};
use crate::numbers::number;
use crate::outcome::shown;

impl Shell {
    /// The fields to which words expand as arguments of a command.
    pub(super) fn expand_fields(&mut self, words: &[Word]) -> Result<Vec<Vec<u8>>, Flow> {
        let mut all = Vec::new();
        for word in words {
            let units = self.expand(word)?;
            let ifs = self.variables.get(b"IFS").unwrap_or(b" \t\n").to_vec();
            for field in fields::split(units, &ifs) {
                if !self.settings.noglob && pattern::is_pattern(&field) {
                    let found = glob::paths(&field);
                    if !found.is_empty() {
                        all.extend(found);
                        continue;
                    }
                }
                all.push(plain(&field));
            }
        }
        Ok(all)
    }

    /// A word as one text: values of variables, targets of redirects, subjects of `case`.
    pub(super) fn expand_text(&mut self, word: &Word) -> Result<Vec<u8>, Flow> {
        Ok(plain(&self.expand_pattern(word)?))
    }

    /// A word as one pattern.
    pub(super) fn expand_pattern(&mut self, word: &Word) -> Result<Vec<Symbol>, Flow> {
        let units = self.expand(word)?;
        Ok(units.into_iter().filter_map(Unit::symbol).collect())
    }

    fn expand(&mut self, word: &Word) -> Result<Vec<Unit>, Flow> {
        let mut units = Vec::new();
        for (place, part) in word.parts.iter().enumerate() {
            match part {
                Part::Literal(text) => {
                    let is_last = word.parts.len() == 1;
                    let rest = match place {
                        0 => self.tilde(text, is_last, &mut units),
                        _ => text,
                    };
                    units.extend(rest.iter().copied().map(Unit::Literal));
                }
                Part::Quoted(text) => quoted(text, &mut units),
                Part::Expansion {
                    expansion,
                    is_quoted,
                } => {
                    self.expansion(expansion, *is_quoted, &mut units)?;
                }
            }
        }
        Ok(units)
    }

    /// Replaces `~` by the home directory; returns what is left of the text.
    fn tilde<'t>(&self, text: &'t [u8], is_last: bool, units: &mut Vec<Unit>) -> &'t [u8] {
        let is_alone = match text.get(1) {
            None => is_last,
            Some(byte) => *byte == b'/',
        };
        match (text.split_first(), self.variables.get(b"HOME")) {
            (Some((b'~', rest)), Some(home)) if is_alone => {
                quoted(home, units);
                rest
            }
            _ => text,
        }
    }

    fn expansion(
        &mut self,
        expansion: &Expansion,
        is_quoted: bool,
        units: &mut Vec<Unit>,
    ) -> Result<(), Flow> {
        match expansion {
            Expansion::Parameter { name, operation } => {
                self.parameter(name, operation, is_quoted, units)
            }
            Expansion::Command(list) => {
                let output = self.substitute(list)?;
                push(&output, is_quoted, units);
                Ok(())
            }
            Expansion::Arithmetic(word) => {
                let text = self.expand_text(word)?;
                let value = arithmetic::evaluate(&text, self).map_err(|e| self.abort(e))?;
                push(value.to_string().as_bytes(), is_quoted, units);
                Ok(())
            }
        }
    }

    fn parameter(
        &mut self,
        name: &[u8],
        operation: &Operation,
        is_quoted: bool,
        units: &mut Vec<Unit>,
    ) -> Result<(), Flow> {
        let is_list = matches!(name, b"@" | b"*");
        match operation {
            Operation::Value if is_list => {
                self.list(name, is_quoted, units);
                Ok(())
            }
            Operation::Value => {
                let value = self.value_or_unset(name)?;
                push(&value, is_quoted, units);
                Ok(())
            }
            Operation::Length => {
                let length = if is_list {
                    self.arguments.len()
                } else {
                    characters(&self.value_or_unset(name)?)
                };
                push(length.to_string().as_bytes(), is_quoted, units);
                Ok(())
            }
            Operation::Replace {
                replacement,
                is_empty_unset,
                word,
            } => {
                let value = self.value(name);
                let is_set = match value.as_deref() {
                    None => false,
                    Some(b"") => !is_empty_unset,
                    Some(_) => true,
                };
                match (replacement, is_set) {
                    (Replacement::Alternative, false) => {
                        push(b"", is_quoted, units);
                        Ok(())
                    }
                    (Replacement::Alternative, true) | (Replacement::Default, false) => {
                        self.replacement(word, is_quoted, units)
                    }
                    (_, true) => self.parameter(name, &Operation::Value, is_quoted, units),
                    (Replacement::Assign, false) => {
                        let value = self.expand_text(word)?;
                        if !super::lexer::is_name(name) {
                            let name = shown(name);
                            return Err(self.abort(format_args!("${name}: cannot be assigned to")));
                        }
                        self.set_variable(name, value.clone())
                            .map_err(|e| self.abort(e))?;
                        push(&value, is_quoted, units);
                        Ok(())
                    }
                    (Replacement::Fail, false) => {
                        let message = self.expand_text(word)?;
                        let message = if message.is_empty() {
                            "parameter not set".into()
                        } else {
                            shown(&message)
                        };
                        Err(self.abort(format_args!("{}: {message}", shown(name))))
                    }
                }
            }
            Operation::Trim {
                from_end,
                is_longest,
                pattern,
            } => {
                let value = self.value_or_unset(name)?;
                let pattern = self.expand_pattern(pattern)?;
                let rest = trim(&value, &pattern, *from_end, *is_longest);
                push(rest, is_quoted, units);
                Ok(())
            }
        }
    }

    /// The word of `${x:-word}`: unquoted, its plain text is split like a value.
    fn replacement(
        &mut self,
        word: &Word,
        is_quoted: bool,
        units: &mut Vec<Unit>,
    ) -> Result<(), Flow> {
        let before = units.len();
        for unit in self.expand(word)? {
            units.push(match unit {
                Unit::Literal(byte) if is_quoted => Unit::Quoted(byte),
                Unit::Literal(byte) => Unit::Expanded(byte),
                unit => unit,
            });
        }
        if is_quoted && units.len() == before {
            units.push(Unit::Nothing);
        }
        Ok(())
    }

    /// `$@` and `$*`.
    fn list(&self, name: &[u8], is_quoted: bool, units: &mut Vec<Unit>) {
        let ifs = self.variables.get(b"IFS");
        let separator = ifs.map_or(Some(b' '), |ifs| ifs.first().copied());
        for (place, argument) in self.arguments.iter().enumerate() {
            if place > 0 {
                match separator {
                    Some(byte) if name == b"*" && is_quoted => units.push(Unit::Quoted(byte)),
                    None if name == b"*" && is_quoted => {}
                    _ => units.push(Unit::Break),
                }
            }
            push(argument, is_quoted, units);
        }
        if name == b"*" && is_quoted && self.arguments.is_empty() {
            units.push(Unit::Nothing);
        }
    }

    fn value_or_unset(&mut self, name: &[u8]) -> Result<Vec<u8>, Flow> {
        match self.value(name) {
            Some(value) => Ok(value),
            None if self.settings.nounset => {
                Err(self.abort(format_args!("{}: parameter not set", shown(name))))
            }
            None => Ok(Vec::new()),
        }
    }

    fn value(&self, name: &[u8]) -> Option<Vec<u8>> {
        let number = |value: i64| Some(value.to_string().into_bytes());
        match name {
            b"?" => number(self.status.into()),
            b"$" => number(self.process.into()),
            b"!" => number(self.last_background?.into()),
            b"#" => Some(self.arguments.len().to_string().into_bytes()),
            b"-" => Some(self.settings_text()),
            b"0" => Some(self.name.clone()),
            b"@" | b"*" => (!self.arguments.is_empty()).then(|| self.arguments.join(&b' ')),
            [digit, ..] if digit.is_ascii_digit() => {
                let place: usize = std::str::from_utf8(name).ok()?.parse().ok()?;
                self.arguments.get(place.checked_sub(1)?).cloned()
            }
            _ => self.variables.get(name).map(<[u8]>::to_vec),
        }
    }
}

impl arithmetic::Scope for Shell {
    fn get(&mut self, name: &[u8]) -> Result<i64, String> {
        let Some(value) = self.variables.get(name) else {
            if self.settings.nounset {
                return Err(format!("{}: parameter not set", shown(name)));
            }
            return Ok(0);
        };
        if value.trim_ascii().is_empty() {
            return Ok(0);
        }
        number(value).ok_or_else(|| {
            let (name, value) = (shown(name), shown(value));
            format!("arithmetic: the value of {name} is \"{value}\", not a number")
        })
    }

    fn set(&mut self, name: &[u8], value: i64) -> Result<(), String> {
        self.set_variable(name, value.to_string().into_bytes())
    }
}

fn quoted(text: &[u8], units: &mut Vec<Unit>) {
    push(text, true, units);
}

/// The value of an expansion; an empty one makes a field only in quotes.
fn push(text: &[u8], is_quoted: bool, units: &mut Vec<Unit>) {
    if !is_quoted {
        units.extend(text.iter().copied().map(Unit::Expanded));
        return;
    }
    if text.is_empty() {
        units.push(Unit::Nothing);
    }
    units.extend(text.iter().copied().map(Unit::Quoted));
}

fn plain(symbols: &[Symbol]) -> Vec<u8> {
    symbols.iter().map(|symbol| symbol.byte).collect()
}

fn characters(mut text: &[u8]) -> usize {
    let mut count = 0;
    while !text.is_empty() {
        let (_, length) = first_character(text);
        text = text.get(length..).unwrap_or_default();
        count += 1;
    }
    count
}

/// What is left of a value without the part at one end that the pattern matches.
fn trim<'v>(value: &'v [u8], pattern: &[Symbol], from_end: bool, is_longest: bool) -> &'v [u8] {
    let parts = |cut: usize| {
        let (head, tail) = value.split_at(cut);
        if from_end { (tail, head) } else { (head, tail) }
    };
    let fits = |cut: &usize| pattern::matches(pattern, parts(*cut).0);
    // The longest head is cut last, the longest tail first.
    let cut = if is_longest == from_end {
        (0..=value.len()).find(fits)
    } else {
        (0..=value.len()).rev().find(fits)
    };
    cut.map_or(value, |cut| parts(cut).1)
}
