//! What Go's JSON scanner says of a text that is no JSON.

/// The scanner's error for the first bad byte; `None` if the text is JSON.
pub(crate) fn syntax_error(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner { text, at: 0 };
    match scanner.document() {
        Ok(()) => None,
        Err(Bad::End) => Some("unexpected end of JSON input".to_owned()),
        Err(Bad::Byte(byte, context)) => {
            Some(format!("invalid character {} {context}", quote_byte(byte)))
        }
    }
}

enum Bad {
    End,
    Byte(u8, String),
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

/// What is open around the scanner.
enum Open {
    Object,
    Array,
}

impl Scanner<'_> {
    /// Lists and objects are kept on a stack of their own: texts may nest deeper than this program
    /// can recurse.
    fn document(&mut self) -> Result<(), Bad> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            let has_opened = self.value_or_opening(&mut open)?;
            if has_opened {
                continue;
            }
            // A value is complete: close what ends here, or go on behind a comma.
            loop {
                let Some(innermost) = open.last() else {
                    return self.only_space_left();
                };
                let byte = self.next_visible()?;
                match (innermost, byte) {
                    (Open::Object, b',') => {
                        self.key("looking for beginning of object key string")?;
                        break;
                    }
                    (Open::Array, b',') => break,
                    (Open::Object, b'}') | (Open::Array, b']') => {
                        open.pop();
                    }
                    (Open::Object, _) => return bad(byte, "after object key:value pair"),
                    (Open::Array, _) => return bad(byte, "after array element"),
                }
            }
        }
    }

    /// Reads a scalar or an empty list or object (false), or opens one with content (true).
    fn value_or_opening(&mut self, open: &mut Vec<Open>) -> Result<bool, Bad> {
        match self.next_visible()? {
            b'{' => {
                if self.peek_visible()? == b'}' {
                    self.at += 1;
                    return Ok(false);
                }
                self.key("looking for beginning of object key string")?;
                open.push(Open::Object);
                Ok(true)
            }
            b'[' => {
                if self.peek_visible()? == b']' {
                    self.at += 1;
                    return Ok(false);
                }
                open.push(Open::Array);
                Ok(true)
            }
            b'"' => self.string().map(|()| false),
            b't' => self.literal("true").map(|()| false),
            b'f' => self.literal("false").map(|()| false),
            b'n' => self.literal("null").map(|()| false),
            byte @ (b'-' | b'0'..=b'9') => self.number(byte).map(|()| false),
            byte => bad(byte, "looking for beginning of value"),
        }
    }

    fn key(&mut self, context: &str) -> Result<(), Bad> {
        match self.next_visible()? {
            b'"' => self.string()?,
            byte => return bad(byte, context),
        }
        match self.next_visible()? {
            b':' => Ok(()),
            byte => bad(byte, "after object key"),
        }
    }

    fn only_space_left(&mut self) -> Result<(), Bad> {
        match self.next_visible() {
            Err(Bad::End) => Ok(()),
            Ok(byte) => bad(byte, "after top-level value"),
            Err(other) => Err(other),
        }
    }

    fn string(&mut self) -> Result<(), Bad> {
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.next()? {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => {
                        for _ in 0..4 {
                            let byte = self.next()?;
                            if !byte.is_ascii_hexdigit() {
                                return bad(byte, "in \\u hexadecimal character escape");
                            }
                        }
                    }
                    byte => return bad(byte, "in string escape code"),
                },
                byte if byte < 0x20 => return bad(byte, "in string literal"),
                _ => {}
            }
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), Bad> {
        for wanted in word.bytes().skip(1) {
            let byte = self.next()?;
            if byte != wanted {
                let context = format!("in literal {word} (expecting '{}')", char::from(wanted));
                return bad(byte, &context);
            }
        }
        Ok(())
    }

    fn number(&mut self, first: u8) -> Result<(), Bad> {
        let mut lead = first;
        if first == b'-' {
            lead = self.next()?;
            if !lead.is_ascii_digit() {
                return bad(lead, "in numeric literal");
            }
        }
        if lead != b'0' {
            self.digits();
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.one_digit("after decimal point in numeric literal")?;
            self.digits();
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.text.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.one_digit("in exponent of numeric literal")?;
            self.digits();
        }
        Ok(())
    }

    fn one_digit(&mut self, context: &str) -> Result<(), Bad> {
        match self.next()? {
            byte if byte.is_ascii_digit() => Ok(()),
            byte => bad(byte, context),
        }
    }

    fn digits(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    fn next(&mut self) -> Result<u8, Bad> {
        let byte = *self.text.get(self.at).ok_or(Bad::End)?;
        self.at += 1;
        Ok(byte)
    }

    fn peek_visible(&mut self) -> Result<u8, Bad> {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.text.get(self.at).copied().ok_or(Bad::End)
    }

    fn next_visible(&mut self) -> Result<u8, Bad> {
        let byte = self.peek_visible()?;
        self.at += 1;
        Ok(byte)
    }
}

fn bad<T>(byte: u8, context: &str) -> Result<T, Bad> {
    Err(Bad::Byte(byte, context.to_owned()))
}

/// Go prints the byte as the character of that number.
fn quote_byte(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        byte => {
            let quoted = super::print::quote(&char::from(byte).to_string());
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_go() {
        for (text, want) in [
            ("", "unexpected end of JSON input"),
            ("{\"a\":1", "unexpected end of JSON input"),
            (
                "{a}",
                "invalid character 'a' looking for beginning of object key string",
            ),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("[1 2]", "invalid character '2' after array element"),
            (
                "{\"a\":1 \"b\"}",
                "invalid character '\"' after object key:value pair",
            ),
            (
                "nul!",
                "invalid character '!' in literal null (expecting 'l')",
            ),
            (
                "1.x",
                "invalid character 'x' after decimal point in numeric literal",
            ),
            ("{} x", "invalid character 'x' after top-level value"),
            (
                "'",
                "invalid character '\\'' looking for beginning of value",
            ),
            (
                "[1,]",
                "invalid character ']' looking for beginning of value",
            ),
            (
                "{\"a\":1,}",
                "invalid character '}' looking for beginning of object key string",
            ),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("01", "invalid character '1' after top-level value"),
        ] {
            assert_eq!(
                syntax_error(text.as_bytes()).as_deref(),
                Some(want),
                "{text}"
            );
        }
    }

    #[test]
    fn json_has_no_error() {
        for text in [
            "{}",
            "[]",
            " [1, {\"a\": [true, null, -1.5e+3]}] ",
            "\"\\u00e9\"",
            "0",
        ] {
            assert_eq!(syntax_error(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_no_problem() {
        assert_eq!(
            syntax_error("[".repeat(1_000_000).as_bytes()).as_deref(),
            Some("unexpected end of JSON input")
        );
    }
}
