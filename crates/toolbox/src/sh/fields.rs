//! Field splitting.

use super::pattern::Symbol;

/// One piece of an expanded word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// As written: may be part of a pattern, is not split.
    Literal(u8),
    /// Stands for itself.
    Quoted(u8),
    /// From an unquoted expansion: may be part of a pattern, and is split at IFS.
    Expanded(u8),
    /// Makes a field even if nothing else is in it.
    Nothing,
    /// Between two fields of `$@`.
    Break,
}

impl Unit {
    /// As part of a text that is not split: `$@` is joined with blanks.
    pub(super) fn symbol(self) -> Option<Symbol> {
        let (byte, is_quoted) = match self {
            Self::Literal(byte) | Self::Expanded(byte) => (byte, false),
            Self::Quoted(byte) => (byte, true),
            Self::Break => (b' ', true),
            Self::Nothing => return None,
        };
        Some(Symbol { byte, is_quoted })
    }
}

/// White space of IFS separates as a run and is dropped at both ends; any other byte of IFS ends one
/// field, empty or not.
pub(super) fn split(units: Vec<Unit>, ifs: &[u8]) -> Vec<Vec<Symbol>> {
    let mut fields = Vec::new();
    let mut field: Option<Vec<Symbol>> = None;
    let mut is_after_blank = false;
    for unit in units {
        match unit {
            Unit::Break => {
                fields.extend(field.take());
                is_after_blank = false;
            }
            Unit::Nothing => {
                field.get_or_insert_default();
                is_after_blank = false;
            }
            Unit::Expanded(byte) if ifs.contains(&byte) => {
                let is_blank = byte.is_ascii_whitespace();
                match field.take() {
                    Some(ended) => {
                        fields.push(ended);
                        is_after_blank = is_blank;
                    }
                    None if is_blank => {}
                    None if is_after_blank => is_after_blank = false,
                    None => fields.push(Vec::new()),
                }
            }
            unit => {
                field.get_or_insert_default().extend(unit.symbol());
                is_after_blank = false;
            }
        }
    }
    fields.extend(field);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_at_blanks_and_at_other_separators() {
        for (text, ifs, expected) in [
            ("  a  b ", " ", vec!["a", "b"]),
            ("a:b:", ":", vec!["a", "b"]),
            (":a", ":", vec!["", "a"]),
            ("a::b", ":", vec!["a", "", "b"]),
            ("a : b", " :", vec!["a", "b"]),
            ("a :: b", " :", vec!["a", "", "b"]),
            ("a b", "", vec!["a b"]),
            ("", " ", vec![]),
            (" ", " ", vec![]),
        ] {
            let units = text.bytes().map(Unit::Expanded).collect();
            let fields: Vec<String> = split(units, ifs.as_bytes())
                .iter()
                .map(|field| field.iter().map(|symbol| char::from(symbol.byte)).collect())
                .collect();
            assert_eq!(fields, expected, "{text:?} {ifs:?}");
        }
    }
}
