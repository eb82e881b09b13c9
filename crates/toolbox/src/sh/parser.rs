//! Tokens to commands, by recursive descent with a bound on its depth.

use std::cell::OnceCell;
use std::rc::Rc;

use super::ast::{
    AndOr, Command, Compound, Connective, Item, List, Part, Pipeline, Redirect, Simple, Target,
    Word,
};
use super::lexer::{PendingDocument, Token, is_name};
use crate::outcome::shown;

/// How deep commands and expansions may be nested. Reading and running one level takes a few
/// kilobytes of an 8 MiB stack; scripts by people stay below ten.
const MAX_DEPTH: usize = 100;

const RESERVED: [&str; 16] = [
    "!", "{", "}", "case", "do", "done", "elif", "else", "esac", "fi", "for", "if", "in", "then",
    "until", "while",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ParseError {
    /// The input ends too early; what is missing.
    Incomplete(&'static str),
    Syntax(String),
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Incomplete(missing) => {
                write!(f, "syntax error: the script ends before {missing}")
            }
            Self::Syntax(message) => write!(f, "syntax error: {message}"),
        }
    }
}

pub(super) type Parsed<T> = Result<T, ParseError>;

#[derive(Debug)]
pub(super) struct Parser<'a> {
    pub(super) input: &'a [u8],
    pub(super) at: usize,
    /// Whether no further input can come, so that an open here-document ends with it.
    pub(super) is_final: bool,
    pub(super) pending: Vec<PendingDocument>,
    peeked: Option<Token>,
    depth: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(input: &'a [u8], is_final: bool) -> Self {
        Self {
            input,
            at: 0,
            is_final,
            pending: Vec::new(),
            peeked: None,
            depth: 0,
        }
    }

    /// The commands up to the end of a line, or `None` at the end of the input.
    pub(super) fn line(&mut self) -> Parsed<Option<List>> {
        self.skip_newlines()?;
        if matches!(self.peek()?, Token::End) {
            return Ok(None);
        }
        let mut list = List::default();
        loop {
            let is_separated = self.item(&mut list)?;
            match self.peek()? {
                Token::Newline => {
                    self.next()?;
                    return Ok(Some(list));
                }
                Token::End => return Ok(Some(list)),
                _ if is_separated => {}
                _ => return Err(self.unexpected()),
            }
        }
    }

    /// Whether nothing but blanks and comments is left; a syntax error counts as something.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.skip_newlines().is_ok() && matches!(self.peek(), Ok(Token::End))
    }

    /// Commands up to one of these reserved words or operators, which is left to the caller;
    /// without any, up to the end of the input.
    pub(super) fn list(&mut self, ends: &[&'static str], may_be_empty: bool) -> Parsed<List> {
        let mut list = List::default();
        let mut is_separated = true;
        loop {
            if matches!(self.peek()?, Token::Newline) {
                self.skip_newlines()?;
                is_separated = true;
            }
            if matches!(self.peek()?, Token::End) {
                match ends.first() {
                    None => return Ok(list),
                    Some(end) => return Err(ParseError::Incomplete(end)),
                }
            }
            if self.peek_is(ends)? {
                if list.items.is_empty() && !may_be_empty {
                    return Err(self.unexpected());
                }
                return Ok(list);
            }
            if !is_separated {
                return Err(self.unexpected());
            }
            is_separated = self.item(&mut list)?;
        }
    }

    /// One and-or list and its separator; returns whether there was one.
    fn item(&mut self, list: &mut List) -> Parsed<bool> {
        let and_or = self.and_or()?;
        let is_background = self.peek_is(&["&"])?;
        let is_separated = is_background || self.peek_is(&[";"])?;
        if is_separated {
            self.next()?;
        }
        list.items.push(Item {
            and_or,
            is_background,
        });
        Ok(is_separated)
    }

    fn and_or(&mut self) -> Parsed<AndOr> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            let connective = match self.peek()? {
                Token::Operator("&&") => Connective::And,
                Token::Operator("||") => Connective::Or,
                _ => return Ok(AndOr { first, rest }),
            };
            self.next()?;
            self.skip_newlines()?;
            rest.push((connective, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> Parsed<Pipeline> {
        let is_negated = self.peek_is(&["!"])?;
        if is_negated {
            self.next()?;
        }
        let mut commands = vec![self.nested(Self::command)?];
        while self.peek_is(&["|"])? {
            self.next()?;
            self.skip_newlines()?;
            commands.push(self.nested(Self::command)?);
        }
        Ok(Pipeline {
            is_negated,
            commands,
        })
    }

    fn command(&mut self) -> Parsed<Command> {
        let compound = match self.peek()? {
            Token::Operator("(") => {
                self.next()?;
                let list = self.list(&[")"], false)?;
                self.expect(")")?;
                Compound::Subshell(list)
            }
            Token::Word(word) => match reserved(word) {
                None => return self.simple(),
                Some("{") => {
                    self.next()?;
                    let list = self.list(&["}"], false)?;
                    self.expect("}")?;
                    Compound::Group(list)
                }
                Some("if") => self.conditional()?,
                Some("while") => self.repetition(false)?,
                Some("until") => self.repetition(true)?,
                Some("for") => self.iteration()?,
                Some("case") => self.case()?,
                Some("in") => return self.simple(),
                Some(_) => return Err(self.unexpected()),
            },
            _ => return self.simple(),
        };
        let mut redirects = Vec::new();
        while let Some(redirect) = self.redirect()? {
            redirects.push(redirect);
        }
        Ok(Command::Compound(compound, redirects))
    }

    fn conditional(&mut self) -> Parsed<Compound> {
        let mut branches = Vec::new();
        let mut otherwise = None;
        loop {
            // `if` or `elif`
            self.next()?;
            let condition = self.list(&["then"], false)?;
            self.expect("then")?;
            let body = self.list(&["fi", "else", "elif"], false)?;
            branches.push((condition, body));
            if !self.peek_is(&["elif"])? {
                break;
            }
        }
        if self.peek_is(&["else"])? {
            self.next()?;
            otherwise = Some(self.list(&["fi"], false)?);
        }
        self.expect("fi")?;
        Ok(Compound::If {
            branches,
            otherwise,
        })
    }

    fn repetition(&mut self, is_until: bool) -> Parsed<Compound> {
        self.next()?;
        let condition = self.list(&["do"], false)?;
        let body = self.body()?;
        Ok(Compound::Loop {
            is_until,
            condition,
            body,
        })
    }

    fn body(&mut self) -> Parsed<List> {
        self.expect("do")?;
        let body = self.list(&["done"], false)?;
        self.expect("done")?;
        Ok(body)
    }

    fn iteration(&mut self) -> Parsed<Compound> {
        self.next()?;
        let name = match self.next()? {
            Token::Word(word) => plain_name(&word),
            _ => None,
        };
        let Some(name) = name else {
            return Err(ParseError::Syntax(
                "`for` needs the name of a variable".to_owned(),
            ));
        };
        self.skip_newlines()?;
        let mut words = None;
        if self.peek_is(&["in"])? {
            self.next()?;
            let mut list = Vec::new();
            while matches!(self.peek()?, Token::Word(_)) {
                list.extend(self.next_word()?);
            }
            words = Some(list);
        }
        if self.peek_is(&[";"])? {
            self.next()?;
        }
        self.skip_newlines()?;
        let body = self.body()?;
        Ok(Compound::For { name, words, body })
    }

    fn case(&mut self) -> Parsed<Compound> {
        self.next()?;
        let Some(subject) = self.next_word()? else {
            return Err(self.unexpected());
        };
        self.skip_newlines()?;
        self.expect("in")?;
        let mut branches = Vec::new();
        loop {
            self.skip_newlines()?;
            if self.peek_is(&["esac"])? {
                break;
            }
            if self.peek_is(&["("])? {
                self.next()?;
            }
            let mut patterns = Vec::new();
            loop {
                let Some(pattern) = self.next_word()? else {
                    return Err(self.unexpected());
                };
                patterns.push(pattern);
                if !self.peek_is(&["|"])? {
                    break;
                }
                self.next()?;
            }
            self.expect(")")?;
            let body = self.list(&["esac", ";;"], true)?;
            branches.push((patterns, body));
            if !self.peek_is(&[";;"])? {
                break;
            }
            self.next()?;
        }
        self.expect("esac")?;
        Ok(Compound::Case { subject, branches })
    }

    fn simple(&mut self) -> Parsed<Command> {
        let mut simple = Simple::default();
        loop {
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                continue;
            }
            if self.peek_is(&["("])?
                && simple.assignments.is_empty()
                && let [word] = simple.words.as_slice()
            {
                let name = plain_name(word).ok_or_else(|| self.unexpected())?;
                return self.function(name);
            }
            let Some(word) = self.next_word()? else {
                break;
            };
            if !simple.words.is_empty() {
                simple.words.push(word);
                continue;
            }
            match assignment(word) {
                Ok(assignment) => simple.assignments.push(assignment),
                Err(word) => simple.words.push(word),
            }
        }
        let is_empty =
            simple.assignments.is_empty() && simple.words.is_empty() && simple.redirects.is_empty();
        if is_empty {
            return Err(self.unexpected());
        }
        Ok(Command::Simple(simple))
    }

    fn function(&mut self, name: Vec<u8>) -> Parsed<Command> {
        self.expect("(")?;
        self.expect(")")?;
        self.skip_newlines()?;
        let body = self.nested(Self::command)?;
        if !matches!(body, Command::Compound(..)) {
            let name = shown(&name);
            return Err(ParseError::Syntax(format!(
                "the body of function {name} is not a compound command such as {{ …; }}"
            )));
        }
        Ok(Command::Function {
            name,
            body: Rc::new(body),
        })
    }

    fn redirect(&mut self) -> Parsed<Option<Redirect>> {
        let mut descriptor = None;
        if let Token::Descriptor(number) = self.peek()? {
            descriptor = Some(*number);
            self.next()?;
        }
        let Token::Operator(operator) = *self.peek()? else {
            return Ok(None);
        };
        if !operator.starts_with(['<', '>']) {
            return Ok(None);
        }
        self.next()?;
        let Some(word) = self.next_word()? else {
            return Err(self.unexpected());
        };
        let target = match operator {
            "<" => Target::Read(word),
            ">" => Target::Write(word),
            ">|" => Target::Overwrite(word),
            ">>" => Target::Append(word),
            "<>" => Target::ReadWrite(word),
            "<&" | ">&" => Target::Duplicate(word),
            _ => self.document(&word, operator == "<<-")?,
        };
        let descriptor = descriptor.unwrap_or(i32::from(operator.starts_with('>')));
        Ok(Some(Redirect { descriptor, target }))
    }

    fn document(&mut self, word: &Word, strips_tabs: bool) -> Parsed<Target> {
        let mut delimiter = Vec::new();
        let mut is_literal = false;
        for part in &word.parts {
            match part {
                Part::Literal(text) => delimiter.extend_from_slice(text),
                Part::Quoted(text) => {
                    is_literal = true;
                    delimiter.extend_from_slice(text);
                }
                Part::Expansion { .. } => {
                    let message = "the delimiter of a here-document has an expansion";
                    return Err(ParseError::Syntax(message.to_owned()));
                }
            }
        }
        let body = Rc::new(OnceCell::new());
        self.pending.push(PendingDocument {
            delimiter,
            is_literal,
            strips_tabs,
            body: Rc::clone(&body),
        });
        Ok(Target::Document(body))
    }

    fn peek(&mut self) -> Parsed<&Token> {
        if self.peeked.is_none() {
            self.peeked = Some(self.token()?);
        }
        Ok(self.peeked.as_ref().unwrap_or(&Token::End))
    }

    fn next(&mut self) -> Parsed<Token> {
        match self.peeked.take() {
            Some(token) => Ok(token),
            None => self.token(),
        }
    }

    fn next_word(&mut self) -> Parsed<Option<Word>> {
        if !matches!(self.peek()?, Token::Word(_)) {
            return Ok(None);
        }
        match self.next()? {
            Token::Word(word) => Ok(Some(word)),
            _ => Ok(None),
        }
    }

    fn peek_is(&mut self, texts: &[&'static str]) -> Parsed<bool> {
        Ok(match self.peek()? {
            Token::Operator(operator) => texts.contains(operator),
            Token::Word(word) => reserved(word).is_some_and(|name| texts.contains(&name)),
            _ => false,
        })
    }

    pub(super) fn expect(&mut self, text: &'static str) -> Parsed<()> {
        if self.peek_is(&[text])? {
            self.next()?;
            return Ok(());
        }
        match self.peek()? {
            Token::End => Err(ParseError::Incomplete(text)),
            _ => Err(self.unexpected()),
        }
    }

    pub(super) fn expect_end(&mut self) -> Parsed<()> {
        match self.peek()? {
            Token::End => Ok(()),
            _ => Err(self.unexpected()),
        }
    }

    fn skip_newlines(&mut self) -> Parsed<()> {
        while matches!(self.peek()?, Token::Newline) {
            self.next()?;
        }
        Ok(())
    }

    /// The error about the token that comes next.
    fn unexpected(&mut self) -> ParseError {
        let text = match self.peek() {
            Err(error) => return error,
            Ok(Token::End) => return ParseError::Incomplete("a command"),
            Ok(Token::Newline) => "end of line".to_owned(),
            Ok(Token::Operator(operator)) => (*operator).to_owned(),
            Ok(Token::Descriptor(number)) => number.to_string(),
            Ok(Token::Word(word)) => match word.parts.as_slice() {
                [Part::Literal(text) | Part::Quoted(text)] => shown(text).into_owned(),
                _ => "a word with expansions".to_owned(),
            },
        };
        unexpected_text(&text)
    }

    /// Reads one level further down, unless that is too deep.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(ParseError::Syntax(message));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Reads text that was cut out of the input, such as the body of a here-document.
    pub(super) fn within<T>(
        &mut self,
        text: &[u8],
        read: impl FnOnce(&mut Parser) -> Parsed<T>,
    ) -> Parsed<T> {
        self.nested(|outer| {
            let mut parser = Parser::new(text, true);
            parser.depth = outer.depth;
            read(&mut parser).map_err(|error| match error {
                ParseError::Incomplete(missing) => {
                    ParseError::Syntax(format!("a substitution ends before {missing}"))
                }
                error @ ParseError::Syntax(_) => error,
            })
        })
    }
}

pub(super) fn unexpected_text(text: &str) -> ParseError {
    ParseError::Syntax(format!("unexpected \"{text}\""))
}

/// The reserved word that this word is where a command may begin.
fn reserved(word: &Word) -> Option<&'static str> {
    match word.parts.as_slice() {
        [Part::Literal(text)] => RESERVED.into_iter().find(|name| name.as_bytes() == text),
        _ => None,
    }
}

fn plain_name(word: &Word) -> Option<Vec<u8>> {
    match word.parts.as_slice() {
        [Part::Literal(text)] if is_name(text) => Some(text.clone()),
        _ => None,
    }
}

/// Splits `name=word`, or gives the word back.
fn assignment(mut word: Word) -> Result<(Vec<u8>, Word), Word> {
    let Some(Part::Literal(text)) = word.parts.first_mut() else {
        return Err(word);
    };
    let Some(place) = text.iter().position(|byte| *byte == b'=') else {
        return Err(word);
    };
    let name = text.get(..place).unwrap_or_default().to_vec();
    if !is_name(&name) {
        return Err(word);
    }
    text.drain(..=place);
    if text.is_empty() {
        word.parts.remove(0);
    }
    Ok((name, word))
}
