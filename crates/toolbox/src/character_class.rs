//! The classes of characters that patterns and regular expressions name: `[[:alpha:]]`.

/// Whether the character is in the class; an unknown class has no members.
pub(crate) fn contains(name: &[u8], character: char) -> bool {
    match name {
        b"alnum" => character.is_alphanumeric(),
        b"alpha" => character.is_alphabetic(),
        b"blank" => matches!(character, ' ' | '\t'),
        b"cntrl" => character.is_control(),
        b"digit" => character.is_ascii_digit(),
        b"graph" => !character.is_control() && !character.is_whitespace(),
        b"lower" => character.is_lowercase(),
        b"print" => !character.is_control(),
        b"punct" => character.is_ascii_punctuation(),
        b"space" => character.is_whitespace(),
        b"upper" => character.is_uppercase(),
        b"xdigit" => character.is_ascii_hexdigit(),
        _ => false,
    }
}
