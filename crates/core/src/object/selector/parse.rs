//! The grammar of label selector strings: `app in (web,db),!legacy,tier!=test`.
//!
//! Matches v1.36 apimachinery/pkg/labels/selector.go, down to the texts of its errors.

use crate::problem::{Problem, aggregate};

use super::requirement::key_problem;
use super::{Operator, Requirement};

/// Why a text is no label selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Something else belongs between or around the requirements.
    #[error("{0}")]
    Unexpected(Unexpected),
    /// A requirement cannot be read.
    #[error("unable to parse requirement: {0}")]
    Requirement(RequirementError),
}

/// Why a text is no requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    /// Something else belongs here.
    #[error("{0}")]
    Unexpected(Unexpected),
    /// The requirement can be read, but its key or values are wrong.
    #[error("{}", aggregate(.0))]
    Invalid(Vec<Problem>),
}

/// A token that cannot stand where it stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found '{found}'{wanted}")]
pub struct Unexpected {
    /// The token; empty at the end of the text.
    pub found: String,
    /// What could stand there, with the text that introduces it.
    pub wanted: &'static str,
}

/// Reads all requirements in the order written.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, ParseError> {
    let mut parser = Parser::new(text);
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            Token::End => return Ok(requirements),
            Token::Not | Token::Word(_) => {}
            token => {
                return Err(ParseError::Unexpected(
                    token.instead_of(", expected: !, identifier, or 'end of string'"),
                ));
            }
        }
        let requirement = parser.requirement().map_err(ParseError::Requirement)?;
        requirements.push(requirement);
        match parser.next() {
            Token::End => return Ok(requirements),
            Token::Comma => match parser.peek() {
                Token::Not | Token::Word(_) => {}
                token => {
                    return Err(ParseError::Unexpected(
                        token.instead_of(", expected: identifier after ','"),
                    ));
                }
            },
            token => {
                return Err(ParseError::Unexpected(
                    token.instead_of(", expected: ',' or 'end of string'"),
                ));
            }
        }
    }
}

/// `in` and `notin` are identifiers: whether they are operators depends on where they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    End,
    Open,
    Close,
    Comma,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    Word(&'a str),
}

impl Token<'_> {
    fn as_str(&self) -> &str {
        match self {
            Token::End => "",
            Token::Open => "(",
            Token::Close => ")",
            Token::Comma => ",",
            Token::Not => "!",
            Token::Equals => "=",
            Token::DoubleEquals => "==",
            Token::NotEquals => "!=",
            Token::Greater => ">",
            Token::Less => "<",
            Token::Word(word) => word,
        }
    }

    fn instead_of(self, wanted: &'static str) -> Unexpected {
        Unexpected {
            found: self.as_str().to_owned(),
            wanted,
        }
    }
}

/// Splits off the first token; returns it and what follows.
///
/// A NUL ends a token and is swallowed with it; where a token should begin it ends the text.
fn split_token(text: &str) -> (Token<'_>, &str) {
    const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];
    let text = text.trim_start_matches(SPACES);
    let symbols = [
        ("==", Token::DoubleEquals),
        ("!=", Token::NotEquals),
        ("=", Token::Equals),
        ("!", Token::Not),
        ("(", Token::Open),
        (")", Token::Close),
        (",", Token::Comma),
        (">", Token::Greater),
        ("<", Token::Less),
    ];
    for (symbol, token) in symbols {
        if let Some(rest) = text.strip_prefix(symbol) {
            return (token, rest.strip_prefix('\0').unwrap_or(rest));
        }
    }
    let is_word_end = |c: char| c == '\0' || SPACES.contains(&c) || "=!(),><".contains(c);
    let end = text.find(is_word_end).unwrap_or(text.len());
    match text.split_at(end) {
        ("", _) => (Token::End, ""),
        (word, rest) => (Token::Word(word), rest.strip_prefix('\0').unwrap_or(rest)),
    }
}

struct Parser<'a> {
    current: Token<'a>,
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        let (current, rest) = split_token(text);
        Parser { current, rest }
    }

    fn peek(&self) -> Token<'a> {
        self.current
    }

    /// Takes the current token. The end can be taken any number of times.
    fn next(&mut self) -> Token<'a> {
        let (following, rest) = split_token(self.rest);
        self.rest = rest;
        std::mem::replace(&mut self.current, following)
    }

    fn requirement(&mut self) -> Result<Requirement, RequirementError> {
        let is_negated = self.peek() == Token::Not;
        if is_negated {
            self.next();
        }
        let key = match self.next() {
            Token::Word(key) => key,
            token => return Err(unexpected(token, ", expected: identifier")),
        };
        // The parser of upstream checks the key before it knows of any path.
        if let Some(problem) = key_problem("<nil>", key) {
            return Err(RequirementError::Invalid(vec![problem]));
        }
        let (operator, values) = if is_negated {
            (Operator::DoesNotExist, Vec::new())
        } else if matches!(self.peek(), Token::End | Token::Comma) {
            (Operator::Exists, Vec::new())
        } else {
            let operator = self.operator()?;
            let values = match operator {
                Operator::In | Operator::NotIn => self.value_set()?,
                _ => vec![self.value()?.to_owned()],
            };
            (operator, values)
        };
        Requirement::new("", key, operator, Some(values)).map_err(RequirementError::Invalid)
    }

    fn operator(&mut self) -> Result<Operator, RequirementError> {
        match self.next() {
            Token::Word("in") => Ok(Operator::In),
            Token::Word("notin") => Ok(Operator::NotIn),
            Token::Equals => Ok(Operator::Equals),
            Token::DoubleEquals => Ok(Operator::DoubleEquals),
            Token::NotEquals => Ok(Operator::NotEquals),
            Token::Greater => Ok(Operator::GreaterThan),
            Token::Less => Ok(Operator::LessThan),
            token => Err(unexpected(
                token,
                ", expected: in, notin, =, ==, !=, gt, lt",
            )),
        }
    }

    /// The value behind `=` and its like, which may be missing.
    fn value(&mut self) -> Result<&'a str, RequirementError> {
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok("");
        }
        match self.next() {
            Token::Word(value) => Ok(value),
            token => Err(unexpected(token, ", expected: identifier")),
        }
    }

    /// The values between parentheses, sorted, each once. Nothing between two commas, or between
    /// a comma and a parenthesis, is the empty value.
    fn value_set(&mut self) -> Result<Vec<String>, RequirementError> {
        match self.next() {
            Token::Open => {}
            token => return Err(unexpected(token, " expected: '('")),
        }
        let mut values = Vec::new();
        match self.peek() {
            Token::Close => values.push(""),
            Token::Word(_) | Token::Comma => self.value_list(&mut values)?,
            token => {
                return Err(unexpected(token, ", expected: ',', ')' or identifier"));
            }
        }
        // Both ways lead up to the closing parenthesis.
        self.next();
        values.sort_unstable();
        values.dedup();
        Ok(values.into_iter().map(str::to_owned).collect())
    }

    fn value_list(&mut self, values: &mut Vec<&'a str>) -> Result<(), RequirementError> {
        loop {
            match self.next() {
                Token::Word(value) => {
                    values.push(value);
                    match self.peek() {
                        Token::Comma => {}
                        Token::Close => return Ok(()),
                        token => return Err(unexpected(token, ", expected: ',' or ')'")),
                    }
                }
                Token::Comma => {
                    if values.is_empty() || matches!(self.peek(), Token::Comma | Token::Close) {
                        values.push("");
                    }
                    if self.peek() == Token::Close {
                        return Ok(());
                    }
                }
                token => {
                    return Err(unexpected(token, ", expected: ',', or identifier"));
                }
            }
        }
    }
}

fn unexpected(token: Token<'_>, wanted: &'static str) -> RequirementError {
    RequirementError::Unexpected(token.instead_of(wanted))
}

#[cfg(test)]
mod tests {
    use crate::object::selector::LabelSelector;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let rendered = match text.parse::<LabelSelector>() {
            Ok(selector) => selector.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(rendered, expected);
    }

    #[test]
    fn selectors_are_rendered_in_key_order_with_sorted_values() {
        check("", "");
        check(
            " z==1 , a in (c , b,c) ,!m, n>07",
            "a in (b,c),!m,n>07,z==1",
        );
        check("x in (,),y notin(a,,b), z=", "x in (),y notin (,a,b),z=");
        check("in in (notin),notin", "in in (notin),notin");
    }

    #[test]
    fn errors_name_found_and_expected_token() {
        check("a,", "found '', expected: identifier after ','");
        check("a,=", "found '=', expected: identifier after ','");
        check(
            "=a",
            "found '=', expected: !, identifier, or 'end of string'",
        );
        check("!a=b", "found '=', expected: ',' or 'end of string'");
        check(
            "!",
            "unable to parse requirement: found '', expected: identifier",
        );
        check(
            "a in b",
            "unable to parse requirement: found 'b' expected: '('",
        );
        check(
            "a b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        );
        check(
            "a in (=",
            "unable to parse requirement: found '=', expected: ',', ')' or identifier",
        );
        check(
            "a in (b c)",
            "unable to parse requirement: found 'c', expected: ',' or ')'",
        );
        check(
            "a in (b,",
            "unable to parse requirement: found '', expected: ',', or identifier",
        );
        check(
            "a=(",
            "unable to parse requirement: found '(', expected: identifier",
        );
    }

    #[test]
    fn a_nul_ends_a_token_or_the_text() {
        check("a=\0b", "a=b");
        check("a\0in\0(b\0)", "a in (b)");
        check("a \0,b", "a");
    }
}
