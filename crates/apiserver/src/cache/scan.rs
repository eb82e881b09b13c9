//! The wanted parts of an object that this process has encoded.
//!
//! Such an object has no white space, and what is not wanted of it is checked for its syntax only and
//! not read. Every create and update passes here; parsing all of an object takes several times as
//! long.

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::extract::Tree;
use crate::bounds::MAX_DEPTH;

/// The wanted parts of an encoded object; `None` if it is not encoded as expected, or too deep.
pub(super) fn scan(tree: &Tree, encoded: &[u8]) -> Option<Value> {
    let mut scanner = Scanner {
        text: encoded,
        at: 0,
        depth: 0,
    };
    let found = scanner.value(tree)?;
    (scanner.at == encoded.len()).then_some(found)
}

/// The bytes at which a text ends, has an escape, or is not valid.
const ENDS_TEXT: [bool; 256] = {
    let mut ends = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        ends[byte] = true;
        byte += 1;
    }
    ends[b'"' as usize] = true;
    ends[b'\\' as usize] = true;
    ends
};

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// The next byte, which has to be this one.
    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// The wanted parts of the next value; a leaf is wanted whole.
    fn value(&mut self, tree: &Tree) -> Option<Value> {
        if tree.is_leaf() {
            let start = self.at;
            self.skip()?;
            return serde_json::from_slice(&self.text[start..self.at]).ok();
        }
        match self.peek()? {
            b'{' => self.object(tree),
            b'[' => self.array(tree),
            _ => self.skip().map(|()| Value::Null),
        }
    }

    fn object(&mut self, tree: &Tree) -> Option<Value> {
        let mut found = Map::new();
        self.enter()?;
        if self.peek()? == b'}' {
            self.leave()?;
            return Some(Value::Object(found));
        }
        loop {
            let key = self.text_between_quotes()?;
            self.take(b':')?;
            // No wanted name has a character that is escaped.
            let name = std::str::from_utf8(key).ok()?;
            match tree.child(name) {
                Some(tree) => {
                    let value = self.value(tree)?;
                    found.insert(name.to_owned(), value);
                }
                None => self.skip()?,
            }
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => break self.leave()?,
                _ => return None,
            }
        }
        Some(Value::Object(found))
    }

    fn array(&mut self, tree: &Tree) -> Option<Value> {
        let mut found = Vec::new();
        self.enter()?;
        if self.peek()? == b']' {
            self.leave()?;
            return Some(Value::Array(found));
        }
        loop {
            // Positions before a selected one keep their place.
            let value = match tree.child(&found.len().to_string()) {
                Some(tree) => self.value(tree)?,
                None => self.skip().map(|()| Value::Null)?,
            };
            found.push(value);
            match self.peek()? {
                b',' => self.at += 1,
                b']' => break self.leave()?,
                _ => return None,
            }
        }
        Some(Value::Array(found))
    }

    /// Passes the next value.
    fn skip(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.text_between_quotes().map(|_| ()),
            b'{' => {
                self.enter()?;
                if self.peek()? == b'}' {
                    return self.leave();
                }
                loop {
                    self.text_between_quotes()?;
                    self.take(b':')?;
                    self.skip()?;
                    match self.peek()? {
                        b',' => self.at += 1,
                        b'}' => return self.leave(),
                        _ => return None,
                    }
                }
            }
            b'[' => {
                self.enter()?;
                if self.peek()? == b']' {
                    return self.leave();
                }
                loop {
                    self.skip()?;
                    match self.peek()? {
                        b',' => self.at += 1,
                        b']' => return self.leave(),
                        _ => return None,
                    }
                }
            }
            _ => self.skip_word(),
        }
    }

    /// Passes an opening bracket.
    fn enter(&mut self) -> Option<()> {
        self.depth += 1;
        self.at += 1;
        (self.depth <= MAX_DEPTH).then_some(())
    }

    /// Passes a closing bracket.
    fn leave(&mut self) -> Option<()> {
        self.depth -= 1;
        self.at += 1;
        Some(())
    }

    /// Passes a number, a boolean or null.
    fn skip_word(&mut self) -> Option<()> {
        let rest = &self.text[self.at..];
        let end = rest
            .iter()
            .position(|byte| matches!(byte, b',' | b'}' | b']'));
        let word = &rest[..end.unwrap_or(rest.len())];
        let is_plain = match word {
            b"true" | b"false" | b"null" | b"0" => true,
            [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
            _ => false,
        };
        self.at += word.len();
        (is_plain || serde_json::from_slice::<IgnoredAny>(word).is_ok()).then_some(())
    }

    /// Passes a text; the result still has its escapes.
    fn text_between_quotes(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let start = self.at;
        loop {
            let rest = &self.text[self.at..];
            self.at += rest.iter().position(|byte| ENDS_TEXT[usize::from(*byte)])?;
            match self.peek()? {
                b'"' => break,
                b'\\' => match self.text.get(self.at + 1)? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
                    b'u' => {
                        let digits = self.text.get(self.at + 2..self.at + 6)?;
                        digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
                        self.at += 6;
                    }
                    _ => return None,
                },
                _ => return None,
            }
        }
        let text = &self.text[start..self.at];
        self.at += 1;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::encode;
    use super::super::extract::SelectorPaths;
    use super::*;

    #[test]
    fn scanned_parts_are_those_that_a_parser_finds() {
        for object in [
            json!({"kind": "Pod", "apiVersion": "v1", "metadata": {
                "labels": {"b": "\"]}", "a": "\\", "c\n\"": "{"}, "name": "x\u{e9}",
                "annotations": {"metadata": "{\"labels\":{}}"}},
                "spec": {"nodeName": "n", "hostNetwork": true, "priority": -1.5e3,
                    "containers": [{"name": "nodeName", "args": ["\\\"", "[", "]"]}, {}]},
                "status": {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}], "phase": null}}),
            json!({"metadata": {"labels": ["a"]}, "spec": "none", "status": null}),
            json!({"metadata": {}, "status": {"podIPs": []}}),
            json!({}),
        ] {
            let encoded = encode(&object);
            let wanted = SelectorPaths::of_storage("pods");
            let parsed = wanted.parse(&encoded).unwrap();
            assert_eq!(scan(wanted.tree(), &encoded), Some(parsed), "{object}");
        }
    }

    #[test]
    fn truncated_or_invalid_json_is_not_scanned() {
        let wanted = SelectorPaths::of_storage("pods");
        let whole = r#"{"metadata":{"labels":{"a":"b"}},"spec":{"x":[1,{"y":"\""}]}}"#;
        assert!(scan(wanted.tree(), whole.as_bytes()).is_some());
        for end in 0..whole.len() {
            assert_eq!(scan(wanted.tree(), &whole.as_bytes()[..end]), None, "{end}");
        }
        for text in [
            "",
            "{}}",
            "{\"a\" :1}",
            "{\"spec\":{}]",
            "{\"metadata\":{\"labels\":x}}",
        ] {
            assert_eq!(scan(wanted.tree(), text.as_bytes()), None, "{text}");
        }
    }
}
