//! Wrapping of text.

/// Wraps a text at whitespace into lines of at most `width` characters; longer words stay whole, and
/// numbers stay with their units.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match parts.last_mut().filter(|_| is_unit(word)) {
            Some(number) => *number = format!("{number} {word}"),
            None => parts.push(word.to_owned()),
        }
    }
    join_wrapped(&parts, " ", width)
}

fn is_unit(word: &str) -> bool {
    let word = word.trim_end_matches(|c: char| !c.is_alphabetic());
    let word = word.strip_suffix("/s").unwrap_or(word);
    matches!(word, "B" | "Ki" | "Mi" | "Gi" | "Ti" | "s")
}

/// Joins parts with `gap` into lines of at most `width` characters; parts stay whole.
pub fn join_wrapped(parts: &[String], gap: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        let room = |line: &String| {
            let length = line.chars().count() + gap.chars().count() + part.chars().count();
            length <= width
        };
        match lines.last_mut().filter(|line| room(line)) {
            Some(line) => {
                line.push_str(gap);
                line.push_str(part);
            }
            None => lines.push(part.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("unbreakable", 4), ["unbreakable"]);
        assert_eq!(wrap("of 5 Mi/s, or", 7), ["of", "5 Mi/s,", "or"]);
        let parts = ["a b".to_owned(), "c".to_owned(), "d e".to_owned()];
        assert_eq!(join_wrapped(&parts, ", ", 6), ["a b, c", "d e"]);
    }
}
