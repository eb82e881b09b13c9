//! The `Warning` header.

/// The value of the header for a text.
///
/// Matches v1.36 apimachinery/pkg/util/net/http.go, `NewWarningHeader`: quotes and backslashes are
/// escaped, and characters that are invalid in a header are removed.
pub fn header_value(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !c.is_control()) {
        if c == '"' || c == '\\' {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    format!("299 - \"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_escaped() {
        assert_eq!(
            header_value("unknown field \"a\""),
            "299 - \"unknown field \\\"a\\\"\""
        );
    }
}
