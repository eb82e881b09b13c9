//! Numbers as C writes them.

/// Parses a number: decimal, 0x hexadecimal, 0 octal, with a sign.
pub(crate) fn number(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii();
    let (is_negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let (radix, digits) = match digits {
        [b'0', b'x' | b'X', rest @ ..] => (16, rest),
        [b'0', rest @ ..] if !rest.is_empty() => (8, rest),
        rest => (10, rest),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value = 0_i64;
    for byte in digits {
        let digit = char::from(*byte).to_digit(radix)?;
        value = value.wrapping_mul(radix.into()).wrapping_add(digit.into());
    }
    Some(if is_negative {
        value.wrapping_neg()
    } else {
        value
    })
}
