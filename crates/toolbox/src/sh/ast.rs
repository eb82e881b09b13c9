//! What a script is after parsing. Execution borrows it and never changes it.

use std::cell::OnceCell;
use std::rc::Rc;

/// A word before expansion: parts that are joined.
#[derive(Debug, Default)]
pub(super) struct Word {
    pub(super) parts: Vec<Part>,
}

#[derive(Debug)]
pub(super) enum Part {
    /// Outside of quotes: may be a pattern or begin with a tilde.
    Literal(Vec<u8>),
    /// From quotes or behind a backslash. Empty for `''`, which still makes a field.
    Quoted(Vec<u8>),
    Expansion {
        expansion: Expansion,
        is_quoted: bool,
    },
}

#[derive(Debug)]
pub(super) enum Expansion {
    Parameter { name: Vec<u8>, operation: Operation },
    Command(List),
    Arithmetic(Word),
}

/// What is done with the value of a parameter.
#[derive(Debug)]
pub(super) enum Operation {
    Value,
    /// `${#x}`
    Length,
    /// `${x-w}`, `${x=w}`, `${x?w}`, `${x+w}`; with a colon, an empty value counts as unset.
    Replace {
        replacement: Replacement,
        is_empty_unset: bool,
        word: Word,
    },
    /// `${x#p}`, `${x##p}`, `${x%p}`, `${x%%p}`
    Trim {
        from_end: bool,
        is_longest: bool,
        pattern: Word,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replacement {
    Default,
    Assign,
    Fail,
    Alternative,
}

#[derive(Debug)]
pub(super) struct Redirect {
    pub(super) descriptor: i32,
    pub(super) target: Target,
}

#[derive(Debug)]
pub(super) enum Target {
    Read(Word),
    Write(Word),
    /// `>|`: also over a file that `set -C` protects.
    Overwrite(Word),
    Append(Word),
    ReadWrite(Word),
    /// `2>&1`, `2>&-`
    Duplicate(Word),
    /// `<<EOF`: the body follows the line and is filled in when that has been read.
    Document(Rc<OnceCell<Word>>),
}

#[derive(Debug, Default)]
pub(super) struct List {
    pub(super) items: Vec<Item>,
}

#[derive(Debug)]
pub(super) struct Item {
    pub(super) and_or: AndOr,
    pub(super) is_background: bool,
}

#[derive(Debug)]
pub(super) struct AndOr {
    pub(super) first: Pipeline,
    pub(super) rest: Vec<(Connective, Pipeline)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connective {
    And,
    Or,
}

#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) is_negated: bool,
    pub(super) commands: Vec<Command>,
}

#[derive(Debug)]
pub(super) enum Command {
    Simple(Simple),
    Compound(Compound, Vec<Redirect>),
    Function { name: Vec<u8>, body: Rc<Command> },
}

#[derive(Debug, Default)]
pub(super) struct Simple {
    pub(super) assignments: Vec<(Vec<u8>, Word)>,
    pub(super) words: Vec<Word>,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Debug)]
pub(super) enum Compound {
    Group(List),
    Subshell(List),
    If {
        branches: Vec<(List, List)>,
        otherwise: Option<List>,
    },
    Loop {
        is_until: bool,
        condition: List,
        body: List,
    },
    For {
        name: Vec<u8>,
        /// Without `in`, the positional parameters.
        words: Option<Vec<Word>>,
        body: List,
    },
    Case {
        subject: Word,
        branches: Vec<(Vec<Word>, List)>,
    },
}
