//! A JSON parser with the errors of Go's scanner.
//!
//! Matches v1.36 vendor/sigs.k8s.io/json, scanner.go and decode.go.

use std::borrow::Cow;
use std::fmt;

use super::document::Document;
use crate::bounds::MAX_DEPTH;

/// Go's error for too deep nesting.
pub(super) const TOO_DEEP: &str = "exceeded max depth";

/// A syntax error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SyntaxError {
    /// The input ends too early.
    End,
    /// An unexpected byte, and the context.
    Byte(u8, &'static str),
    /// Too deep nesting.
    Depth,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SyntaxError::End => f.write_str("unexpected end of JSON input"),
            SyntaxError::Depth => f.write_str(TOO_DEEP),
            SyntaxError::Byte(byte, place) => {
                write!(f, "invalid character {} {place}", quoted_byte(*byte))
            }
        }
    }
}

/// The byte as Go shows it, taken as a character of Latin-1.
fn quoted_byte(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        _ => {
            let quoted = plimsoll_core::problem::quoted(&char::from(byte).to_string());
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    }
}

const VALUE: &str = "looking for beginning of value";

/// Parses one value with nothing after it.
pub(super) fn parse(text: &[u8]) -> Result<Document<'_>, SyntaxError> {
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
    };
    let document = parser.value()?;
    match parser.peek_token() {
        None => Ok(document),
        Some(byte) => Err(SyntaxError::Byte(byte, "after top-level value")),
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// The next byte that is not white space.
    fn peek_token(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
        self.peek()
    }

    fn value(&mut self) -> Result<Document<'a>, SyntaxError> {
        match self.peek_token().ok_or(SyntaxError::End)? {
            b'{' => self.nested(Self::object),
            b'[' => self.nested(Self::array),
            b'"' => self.string().map(Document::String),
            b't' => self.word("true", TRUE).map(|()| Document::Bool(true)),
            b'f' => self.word("false", FALSE).map(|()| Document::Bool(false)),
            b'n' => self.word("null", NULL).map(|()| Document::Null),
            b'-' | b'0'..=b'9' => self.number(),
            other => Err(SyntaxError::Byte(other, VALUE)),
        }
    }

    fn nested(
        &mut self,
        parse: fn(&mut Self) -> Result<Document<'a>, SyntaxError>,
    ) -> Result<Document<'a>, SyntaxError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(SyntaxError::Depth);
        }
        self.at += 1;
        let document = parse(self)?;
        self.depth -= 1;
        Ok(document)
    }

    fn array(&mut self) -> Result<Document<'a>, SyntaxError> {
        let mut items = Vec::new();
        if self.peek_token() == Some(b']') {
            self.at += 1;
            return Ok(Document::Array(items));
        }
        loop {
            items.push(self.value()?);
            match self.peek_token().ok_or(SyntaxError::End)? {
                b',' => self.at += 1,
                b']' => break self.at += 1,
                other => return Err(SyntaxError::Byte(other, "after array element")),
            }
        }
        Ok(Document::Array(items))
    }

    fn object(&mut self) -> Result<Document<'a>, SyntaxError> {
        let mut members = Vec::new();
        if self.peek_token() == Some(b'}') {
            self.at += 1;
            return Ok(Document::Object(members));
        }
        loop {
            match self.peek_token().ok_or(SyntaxError::End)? {
                b'"' => {}
                other => {
                    return Err(SyntaxError::Byte(
                        other,
                        "looking for beginning of object key string",
                    ));
                }
            }
            let key = self.string()?;
            match self.peek_token().ok_or(SyntaxError::End)? {
                b':' => self.at += 1,
                other => return Err(SyntaxError::Byte(other, "after object key")),
            }
            members.push((key, self.value()?));
            match self.peek_token().ok_or(SyntaxError::End)? {
                b',' => self.at += 1,
                b'}' => break self.at += 1,
                other => return Err(SyntaxError::Byte(other, "after object key:value pair")),
            }
        }
        Ok(Document::Object(members))
    }

    /// A literal, letter by letter; `places` is the expectation for each letter but the first.
    fn word(&mut self, word: &str, places: &[&'static str]) -> Result<(), SyntaxError> {
        self.at += 1;
        for (expected, place) in word.bytes().skip(1).zip(places) {
            let found = self.peek().ok_or(SyntaxError::End)?;
            if found != expected {
                return Err(SyntaxError::Byte(found, place));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Document<'a>, SyntaxError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek().ok_or(SyntaxError::End)? {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.skip_digits(),
            other => return Err(SyntaxError::Byte(other, "in numeric literal")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.expect_digit("after decimal point in numeric literal")?;
            self.skip_digits();
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.expect_digit("in exponent of numeric literal")?;
            self.skip_digits();
        }
        let text = String::from_utf8_lossy(&self.text[start..self.at]);
        Ok(Document::Number(text))
    }

    fn expect_digit(&self, place: &'static str) -> Result<(), SyntaxError> {
        match self.peek().ok_or(SyntaxError::End)? {
            b'0'..=b'9' => Ok(()),
            other => Err(SyntaxError::Byte(other, place)),
        }
    }

    fn skip_digits(&mut self) {
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
    }

    /// A string; bytes that are not UTF-8 become replacement characters, as in Go.
    fn string(&mut self) -> Result<Cow<'a, str>, SyntaxError> {
        self.at += 1;
        let plain = self.plain_text();
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(match std::str::from_utf8(plain) {
                Ok(text) => Cow::Borrowed(text),
                Err(_) => String::from_utf8_lossy(plain),
            });
        }
        let mut bytes = plain.to_vec();
        loop {
            bytes.extend_from_slice(self.plain_text());
            match self.peek().ok_or(SyntaxError::End)? {
                b'"' => break self.at += 1,
                b'\\' => self.escape(&mut bytes)?,
                control => return Err(SyntaxError::Byte(control, "in string literal")),
            }
        }
        Ok(Cow::Owned(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }))
    }

    /// The bytes up to the end of a string or an escape.
    fn plain_text(&mut self) -> &'a [u8] {
        let rest = &self.text[self.at..];
        let end = rest
            .iter()
            .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
        let plain = &rest[..end.unwrap_or(rest.len())];
        self.at += plain.len();
        plain
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), SyntaxError> {
        self.at += 1;
        let escaped = self.peek().ok_or(SyntaxError::End)?;
        self.at += 1;
        bytes.push(match escaped {
            b'"' | b'\\' | b'/' => escaped,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let c = self.unicode_escape()?;
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            other => return Err(SyntaxError::Byte(other, "in string escape code")),
        });
        Ok(())
    }

    /// The character behind `\u`; halves of a pair that stand alone are replaced.
    fn unicode_escape(&mut self) -> Result<char, SyntaxError> {
        let first = self.hex4()?;
        let is_high = (0xd800..0xdc00).contains(&first);
        if is_high && self.text[self.at..].starts_with(b"\\u") {
            let back = self.at;
            self.at += 2;
            let second = self.hex4()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = back;
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex4(&mut self) -> Result<u32, SyntaxError> {
        let mut code = 0;
        for _ in 0..4 {
            let byte = self.peek().ok_or(SyntaxError::End)?;
            let digit = char::from(byte).to_digit(16);
            let digit = digit.ok_or(SyntaxError::Byte(
                byte,
                "in \\u hexadecimal character escape",
            ))?;
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }
}

const TRUE: &[&str] = &[
    "in literal true (expecting 'r')",
    "in literal true (expecting 'u')",
    "in literal true (expecting 'e')",
];
const FALSE: &[&str] = &[
    "in literal false (expecting 'a')",
    "in literal false (expecting 'l')",
    "in literal false (expecting 's')",
    "in literal false (expecting 'e')",
];
const NULL: &[&str] = &[
    "in literal null (expecting 'u')",
    "in literal null (expecting 'l')",
    "in literal null (expecting 'l')",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn errors_match_go() {
        assert_eq!(error(""), "unexpected end of JSON input");
        assert_eq!(error("{\"a\":"), "unexpected end of JSON input");
        assert_eq!(
            error("x"),
            "invalid character 'x' looking for beginning of value"
        );
        assert_eq!(
            error("{a}"),
            "invalid character 'a' looking for beginning of object key string"
        );
        assert_eq!(error("[1 2]"), "invalid character '2' after array element");
        assert_eq!(error("{\"a\" 1}"), "invalid character '1' after object key");
        assert_eq!(error("1 1"), "invalid character '1' after top-level value");
        assert_eq!(error("nul"), "unexpected end of JSON input");
        assert_eq!(
            error("trie"),
            "invalid character 'i' in literal true (expecting 'u')"
        );
        assert_eq!(error("\"\n\""), "invalid character '\\n' in string literal");
        assert_eq!(error("01"), "invalid character '1' after top-level value");
        assert_eq!(
            error("1.x"),
            "invalid character 'x' after decimal point in numeric literal"
        );
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert_eq!(error(&nested(MAX_DEPTH + 1)), "exceeded max depth");
    }

    #[test]
    fn escapes_are_read() {
        let parsed = parse(br#""a\u00e9\ud83d\ude00\ud800x\n""#).unwrap();
        assert_eq!(parsed, Document::String("aé😀\u{fffd}x\n".into()));
    }

    #[test]
    fn order_and_duplicates_are_kept() {
        let Document::Object(members) = parse(br#"{"b": 1.50, "a": [], "b": null}"#).unwrap()
        else {
            panic!()
        };
        let keys: Vec<&str> = members.iter().map(|(key, _)| &**key).collect();
        assert_eq!(keys, ["b", "a", "b"]);
        assert_eq!(members[0].1, Document::Number("1.50".into()));
    }
}
