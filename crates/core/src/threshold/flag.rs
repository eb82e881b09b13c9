//! Maps on the command line: `memory.available<1Gi,nodefs.available<10%`.
//!
//! Matches v1.36 component-base/cli/flag. Values may be empty, a later key wins, and the text of
//! one flag adds to that of the flag before it.

use std::collections::BTreeMap;

/// The separator between key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// `<`, for `--eviction-hard` and `--eviction-soft`.
    LessThan,
    /// `=`, for every other map.
    Equals,
}

/// A pair without its separator. The messages are upstream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed pair, expect string{}string", .0.as_char())]
pub struct MalformedPair(Separator);

impl Separator {
    fn as_char(self) -> char {
        match self {
            Separator::LessThan => '<',
            Separator::Equals => '=',
        }
    }
}

/// Reads comma-separated pairs; the space around keys and values is dropped. Of two equal keys
/// the later one wins.
pub fn parse_map(
    text: &str,
    separator: Separator,
) -> Result<BTreeMap<String, String>, MalformedPair> {
    Ok(parse_pairs(text, separator)?.into_iter().collect())
}

/// Reads the same pairs in their order, equal keys included.
pub fn parse_pairs(
    text: &str,
    separator: Separator,
) -> Result<Vec<(String, String)>, MalformedPair> {
    text.split(',')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair
                .split_once(separator.as_char())
                .ok_or(MalformedPair(separator))?;
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        })
        .collect()
}

/// The pairs in key order, joined by commas. The inverse of [`parse_map`].
pub fn render_map(map: &BTreeMap<String, String>, separator: Separator) -> String {
    let pairs: Vec<String> = map
        .iter()
        .map(|(key, value)| format!("{key}{}{value}", separator.as_char()))
        .collect();
    pairs.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_and_empty_pairs_are_dropped_and_later_keys_win() {
        let map = parse_map(" a < 1 ,,b<,a<2<3", Separator::LessThan).unwrap();
        assert_eq!(render_map(&map, Separator::LessThan), "a<2<3,b<");
    }

    #[test]
    fn a_pair_without_separator_is_refused() {
        let error = parse_map("a<1", Separator::Equals).unwrap_err();
        assert_eq!(error.to_string(), "malformed pair, expect string=string");
    }
}
