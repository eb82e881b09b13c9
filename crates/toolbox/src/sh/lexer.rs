//! Bytes to tokens. Quotes and expansions are read here, which calls back into the parser for
//! `$(…)`: one `Parser` reads both.

use std::cell::OnceCell;
use std::rc::Rc;

use super::ast::{Part, Word};
use super::parser::{ParseError, Parsed, Parser, unexpected_text};

#[derive(Debug)]
pub(super) enum Token {
    Word(Word),
    /// Digits right before `<` or `>`.
    Descriptor(i32),
    Operator(&'static str),
    Newline,
    End,
}

/// Longest first, so that the first match is the right one.
const OPERATORS: [&str; 18] = [
    "<<-", "&&", "||", ";;", "<<", ">>", "<&", ">&", "<>", ">|", "&", "|", ";", "(", ")", "<", ">",
    "\n",
];

/// A here-document of which only the delimiter has been read.
#[derive(Debug)]
pub(super) struct PendingDocument {
    pub(super) delimiter: Vec<u8>,
    pub(super) is_literal: bool,
    pub(super) strips_tabs: bool,
    pub(super) body: Rc<OnceCell<Word>>,
}

/// What a run of parts is read for: which bytes end it and which are special.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Word,
    DoubleQuotes,
    /// The word in `${x:-word}`.
    Braces {
        is_quoted: bool,
    },
    /// The body of a here-document.
    Document,
    /// Inside of `$((…))`.
    Arithmetic,
}

impl Mode {
    pub(super) fn is_quoted(self) -> bool {
        !matches!(self, Self::Word | Self::Braces { is_quoted: false })
    }

    /// Whether a backslash takes away the meaning of this byte, and stays otherwise.
    fn is_escapable(self, byte: u8) -> bool {
        match self {
            Self::Word | Self::Braces { is_quoted: false } => true,
            Self::DoubleQuotes => b"$`\"\\".contains(&byte),
            Self::Braces { is_quoted: true } => b"$`\"\\}".contains(&byte),
            Self::Document | Self::Arithmetic => b"$`\\".contains(&byte),
        }
    }
}

pub(super) fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

pub(super) fn is_name(bytes: &[u8]) -> bool {
    bytes.first().copied().is_some_and(is_name_start) && bytes.iter().copied().all(is_name_byte)
}

impl Parser<'_> {
    pub(super) fn byte(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    pub(super) fn byte_after(&self, distance: usize) -> Option<u8> {
        self.input.get(self.at + distance).copied()
    }

    fn starts_with(&self, text: &str) -> bool {
        let rest = self.input.get(self.at..).unwrap_or_default();
        rest.starts_with(text.as_bytes())
    }

    /// Blanks, comments and continued lines.
    fn skip_blanks(&mut self) {
        loop {
            match self.byte() {
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(b'\\') if self.byte_after(1) == Some(b'\n') => self.at += 2,
                Some(b'#') => {
                    while self.byte().is_some_and(|byte| byte != b'\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    pub(super) fn token(&mut self) -> Parsed<Token> {
        self.skip_blanks();
        let Some(byte) = self.byte() else {
            if !self.pending.is_empty() {
                self.read_documents()?;
            }
            return Ok(Token::End);
        };
        if byte == b'\n' {
            self.at += 1;
            self.read_documents()?;
            return Ok(Token::Newline);
        }
        if let Some(operator) = OPERATORS.into_iter().find(|text| self.starts_with(text)) {
            self.at += operator.len();
            return Ok(Token::Operator(operator));
        }
        if let Some(descriptor) = self.descriptor() {
            return Ok(Token::Descriptor(descriptor));
        }
        let mut word = Word::default();
        self.parts(&mut word, Mode::Word)?;
        Ok(Token::Word(word))
    }

    fn descriptor(&mut self) -> Option<i32> {
        let rest = self.input.get(self.at..)?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !matches!(rest.get(digits), Some(b'<' | b'>')) {
            return None;
        }
        let number = std::str::from_utf8(rest.get(..digits)?)
            .ok()?
            .parse()
            .ok()?;
        self.at += digits;
        Some(number)
    }

    /// Reads up to the end of the mode; a closing quote or brace is consumed.
    pub(super) fn parts(&mut self, word: &mut Word, mode: Mode) -> Parsed<()> {
        let mut open_parentheses = 0_usize;
        loop {
            let Some(byte) = self.byte() else {
                return match mode {
                    Mode::Word | Mode::Document => Ok(()),
                    Mode::DoubleQuotes => Err(ParseError::Incomplete("a closing double quote")),
                    Mode::Braces { .. } => Err(ParseError::Incomplete("}")),
                    Mode::Arithmetic => Err(ParseError::Incomplete("))")),
                };
            };
            match (byte, mode) {
                (
                    b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')',
                    Mode::Word,
                ) => {
                    return Ok(());
                }
                (b'"', Mode::DoubleQuotes) | (b'}', Mode::Braces { .. }) => {
                    self.at += 1;
                    return Ok(());
                }
                (b'(', Mode::Arithmetic) => {
                    open_parentheses += 1;
                    self.literal(word, mode);
                }
                (b')', Mode::Arithmetic) if open_parentheses == 0 => {
                    if self.byte_after(1) != Some(b')') {
                        return Err(unexpected_text(")"));
                    }
                    self.at += 2;
                    return Ok(());
                }
                (b')', Mode::Arithmetic) => {
                    open_parentheses -= 1;
                    self.literal(word, mode);
                }
                (b'\\', _) => self.backslash(word, mode),
                (b'\'', Mode::Word | Mode::Braces { is_quoted: false }) => {
                    self.single_quotes(word)?;
                }
                (b'"', Mode::Word | Mode::Braces { .. }) => self.double_quotes(word)?,
                (b'$', _) => self.dollar(word, mode)?,
                (b'`', _) => self.backquotes(word, mode)?,
                _ => self.literal(word, mode),
            }
        }
    }

    fn literal(&mut self, word: &mut Word, mode: Mode) {
        let Some(byte) = self.byte() else { return };
        self.at += 1;
        push(word, byte, mode.is_quoted());
    }

    fn backslash(&mut self, word: &mut Word, mode: Mode) {
        self.at += 1;
        match self.byte() {
            Some(b'\n') => self.at += 1,
            Some(byte) if mode.is_escapable(byte) => {
                self.at += 1;
                push(word, byte, true);
            }
            _ => push(word, b'\\', true),
        }
    }

    fn single_quotes(&mut self, word: &mut Word) -> Parsed<()> {
        let rest = self.input.get(self.at + 1..).unwrap_or_default();
        let Some(length) = rest.iter().position(|byte| *byte == b'\'') else {
            return Err(ParseError::Incomplete("a closing single quote"));
        };
        let text = rest.get(..length).unwrap_or_default();
        word.parts.push(Part::Quoted(text.to_vec()));
        self.at += length + 2;
        Ok(())
    }

    fn double_quotes(&mut self, word: &mut Word) -> Parsed<()> {
        self.at += 1;
        let mut inside = Word::default();
        self.nested(|parser| parser.parts(&mut inside, Mode::DoubleQuotes))?;
        if inside.parts.is_empty() {
            inside.parts.push(Part::Quoted(Vec::new()));
        }
        word.parts.append(&mut inside.parts);
        Ok(())
    }

    /// Whether what follows `$((` ends as arithmetic does, with both parentheses at once, or is a
    /// subshell in a command substitution. Looks ahead without recursion, so that deep nesting is
    /// not read twice per level.
    pub(super) fn is_arithmetic(&self) -> Parsed<bool> {
        let mut depth = 0_usize;
        let mut at = self.at;
        while let Some(byte) = self.input.get(at).copied() {
            at += 1;
            match byte {
                b'\\' => at += 1,
                b'\'' | b'"' => {
                    let rest = self.input.get(at..).unwrap_or_default();
                    let closing = rest.iter().position(|other| *other == byte);
                    at += closing.map_or(rest.len(), |length| length + 1);
                }
                b'(' => depth += 1,
                b')' if depth == 0 => return Ok(self.input.get(at) == Some(&b')')),
                b')' => depth -= 1,
                _ => {}
            }
        }
        Err(ParseError::Incomplete("))"))
    }

    /// Reads the bodies of the documents that were announced on the line that has just ended.
    pub(super) fn read_documents(&mut self) -> Parsed<()> {
        for document in std::mem::take(&mut self.pending) {
            let mut body = Vec::new();
            loop {
                let rest = self.input.get(self.at..).unwrap_or_default();
                if rest.is_empty() {
                    if self.is_final {
                        break;
                    }
                    return Err(ParseError::Incomplete("the end of a here-document"));
                }
                let end = rest.iter().position(|byte| *byte == b'\n');
                let mut line = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
                self.at += end.map_or(rest.len(), |length| length + 1);
                while document.strips_tabs && line.first() == Some(&b'\t') {
                    line = line.get(1..).unwrap_or_default();
                }
                if line == document.delimiter {
                    break;
                }
                body.extend_from_slice(line);
                if end.is_some() {
                    body.push(b'\n');
                }
            }
            let word = if document.is_literal {
                Word {
                    parts: vec![Part::Quoted(body)],
                }
            } else {
                self.within(&body, |parser| {
                    let mut word = Word::default();
                    parser.parts(&mut word, Mode::Document)?;
                    Ok(word)
                })?
            };
            // Each document is announced once, so the cell is still empty.
            let _ = document.body.set(word);
        }
        Ok(())
    }
}

/// Adds a byte to the last part if that is of the same kind.
fn push(word: &mut Word, byte: u8, is_quoted: bool) {
    match (word.parts.last_mut(), is_quoted) {
        (Some(Part::Literal(text)), false) | (Some(Part::Quoted(text)), true) => text.push(byte),
        (_, false) => word.parts.push(Part::Literal(vec![byte])),
        (_, true) => word.parts.push(Part::Quoted(vec![byte])),
    }
}
