//! Patterns of pathnames, `case` and `${x%…}`: `*`, `?` and `[…]`, without backtracking beyond the
//! last star, so that a match takes at most pattern times text steps.

/// One byte of a pattern; a quoted one stands for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Symbol {
    pub(super) byte: u8,
    pub(super) is_quoted: bool,
}

impl Symbol {
    fn is(self, byte: u8) -> bool {
        self.byte == byte && !self.is_quoted
    }
}

/// Whether any symbol makes this more than a plain text.
pub(super) fn is_pattern(symbols: &[Symbol]) -> bool {
    symbols
        .iter()
        .any(|symbol| symbol.is(b'*') || symbol.is(b'?') || symbol.is(b'['))
}

pub(super) fn matches(pattern: &[Symbol], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to continue if the part after the last star does not match.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let rest = text.get(t..).unwrap_or_default();
        match pattern.get(p) {
            None if rest.is_empty() => return true,
            Some(symbol) if symbol.is(b'*') => {
                p += 1;
                retry = Some((p, t));
                continue;
            }
            Some(_) => {
                if let Some((pattern_length, text_length)) = step(pattern, p, rest) {
                    p += pattern_length;
                    t += text_length;
                    continue;
                }
            }
            None => {}
        }
        match retry {
            Some((after_star, from)) if from < text.len() => {
                let next = from + first_character(text.get(from..).unwrap_or_default()).1;
                retry = Some((after_star, next));
                (p, t) = (after_star, next);
            }
            _ => return false,
        }
    }
}

/// Matches one symbol or bracket at `p` with the first character of `rest`: their lengths.
fn step(pattern: &[Symbol], p: usize, rest: &[u8]) -> Option<(usize, usize)> {
    let symbol = *pattern.get(p)?;
    let first = *rest.first()?;
    if symbol.is(b'?') {
        return Some((1, first_character(rest).1));
    }
    if symbol.is(b'[') {
        let inside = pattern.get(p + 1..).unwrap_or_default();
        if let Some((is_match, length)) = bracket(inside, first_character(rest).0) {
            return is_match.then(|| (length + 1, first_character(rest).1));
        }
    }
    (symbol.byte == first).then_some((1, 1))
}

/// The first character and its length; a byte that is not UTF-8 counts as one character.
pub(super) fn first_character(text: &[u8]) -> (u32, usize) {
    let Some(first) = text.first() else {
        return (0, 0);
    };
    let length = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    let character = text
        .get(..length)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .and_then(|text| text.chars().next());
    match character {
        Some(character) => (u32::from(character), length),
        None => (u32::from(*first), 1),
    }
}

/// What follows `[`: whether the character is in the set, and the length up to and with `]`.
/// `None` if there is no closing bracket, so that `[` stands for itself.
fn bracket(inside: &[Symbol], character: u32) -> Option<(bool, usize)> {
    let is_negated = inside.first().is_some_and(|s| s.is(b'!') || s.is(b'^'));
    let start = usize::from(is_negated);
    let mut at = start;
    let mut is_in_set = false;
    loop {
        let symbol = *inside.get(at)?;
        if symbol.is(b']') && at > start {
            return Some((is_in_set != is_negated, at + 1));
        }
        if let Some((name, length)) = class(inside.get(at..).unwrap_or_default()) {
            is_in_set |= is_in_class(&name, character);
            at += length;
            continue;
        }
        let (low, length) = member(inside, at);
        at += length;
        let is_range = inside.get(at).is_some_and(|s| s.is(b'-'))
            && inside.get(at + 1).is_some_and(|s| !s.is(b']'));
        let mut high = low;
        if is_range {
            let (end, length) = member(inside, at + 1);
            high = end;
            at += length + 1;
        }
        is_in_set |= (low..=high).contains(&character);
    }
}

fn member(inside: &[Symbol], at: usize) -> (u32, usize) {
    let rest = inside.iter().skip(at).take(4);
    let bytes: Vec<u8> = rest.map(|symbol| symbol.byte).collect();
    first_character(&bytes)
}

/// `[:name:]`
fn class(symbols: &[Symbol]) -> Option<(Vec<u8>, usize)> {
    if !(symbols.first()?.is(b'[') && symbols.get(1)?.is(b':')) {
        return None;
    }
    let name = symbols.get(2..)?;
    let end = name.iter().position(|symbol| symbol.byte == b':')?;
    if !name.get(end + 1)?.is(b']') {
        return None;
    }
    let name = name.get(..end)?.iter().map(|symbol| symbol.byte).collect();
    Some((name, end + 4))
}

fn is_in_class(name: &[u8], character: u32) -> bool {
    let Some(character) = char::from_u32(character) else {
        return false;
    };
    crate::character_class::contains(name, character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(text: &str) -> Vec<Symbol> {
        let mut is_quoted = false;
        let mut symbols = Vec::new();
        for byte in text.bytes() {
            if byte == b'\\' && !is_quoted {
                is_quoted = true;
                continue;
            }
            symbols.push(Symbol { byte, is_quoted });
            is_quoted = false;
        }
        symbols
    }

    #[test]
    fn matches_as_the_shell_does() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("a*b*c", "aXXbYYc", true),
            ("a*b*c", "aXXbYY", false),
            ("?", "ä", true),
            ("??", "ä", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]", "]", true),
            ("[a", "[a", true),
            ("[[:digit:]]*", "7up", true),
            ("[[:alpha:]_]", "1", false),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("[a-", "[a-", true),
            ("[ä-ö]", "ö", true),
            ("*.tar.gz", "x.tar.gz.tar.gz", true),
        ] {
            assert_eq!(
                matches(&symbols(pattern), text.as_bytes()),
                expected,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn many_stars_run_in_polynomial_time() {
        let pattern = symbols(&"*a".repeat(50));
        assert!(!matches(&pattern, "a".repeat(49).as_bytes()));
        let text = "a".repeat(10_000) + "b";
        assert!(!matches(&pattern, text.as_bytes()));
    }
}
