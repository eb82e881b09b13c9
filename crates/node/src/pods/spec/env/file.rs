//! Files of variables, for `fileKeyRef`.
//!
//! Matches v1.36 pkg/kubelet/util/env: values are in single quotes, may span lines and mean what
//! they say; `#` begins a comment.

/// Why a file of variables is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid environment variable format at line {line}: {rule}")]
pub struct Malformed {
    /// Counted from one.
    pub line: usize,
    /// What is wrong there.
    pub rule: &'static str,
}

/// The value of the key; empty where the file does not give it one. What follows it is not read.
pub fn value_in_file(text: &str, key: &str) -> Result<String, Malformed> {
    let mut lines = text.lines().enumerate();
    while let Some((i, line)) = lines.next() {
        let malformed = |i: usize, rule| Malformed { line: i + 1, rule };
        let line = line.trim_start_matches([' ', '\t']);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once('=').ok_or(malformed(i, "missing '='"))?;
        let trimmed = name.trim_end_matches([' ', '\t']);
        if trimmed.is_empty() {
            return Err(malformed(i, "empty variable name"));
        }
        if trimmed != name {
            return Err(malformed(i, "whitespace before '=' is not allowed"));
        }
        if value.starts_with([' ', '\t']) {
            // A shell takes `NAME= 'value'` for an empty value too.
            if name == key {
                return Ok(String::new());
            }
            continue;
        }
        let mut rest = value
            .strip_prefix('\'')
            .ok_or(malformed(i, "value must be enclosed in single quotes"))?;
        let mut found = String::new();
        let mut at = i;
        let behind = loop {
            match rest.split_once('\'') {
                Some((end, behind)) => {
                    found.push_str(end);
                    break behind;
                }
                None => {
                    found.push_str(rest);
                    found.push('\n');
                    (at, rest) = lines.next().ok_or(malformed(i, "unclosed single quote"))?;
                }
            }
        };
        let behind = behind.trim_start_matches([' ', '\t']);
        if !behind.is_empty() && !behind.starts_with('#') {
            return Err(malformed(at, "unexpected content after closing quote"));
        }
        if name == key {
            return Ok(found);
        }
    }
    Ok(String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_values_are_literal() {
        for (text, want) in [
            ("KEY='value'", "value"),
            (
                "\n  # note\n  KEY='a \"$(B)\" \\n'  # why",
                "a \"$(B)\" \\n",
            ),
            ("A='1'\nKEY='two\nlines'\nB='3'", "two\nlines"),
            ("KEY='first'\nKEY='second'", "first"),
            ("KEY= 'value'", ""),
            ("OTHER='x'", ""),
            ("", ""),
        ] {
            assert_eq!(value_in_file(text, "KEY").unwrap(), want, "{text}");
        }
    }

    #[test]
    fn values_with_shell_syntax_are_refused() {
        for (text, line, rule) in [
            ("A='1'\nKEY", 2, "missing '='"),
            ("='1'", 1, "empty variable name"),
            ("KEY ='1'", 1, "whitespace before '=' is not allowed"),
            ("KEY=1", 1, "value must be enclosed in single quotes"),
            ("KEY='1", 1, "unclosed single quote"),
            ("KEY='a\nb' c", 2, "unexpected content after closing quote"),
        ] {
            assert_eq!(
                value_in_file(text, "KEY"),
                Err(Malformed { line, rule }),
                "{text}"
            );
        }
    }
}
