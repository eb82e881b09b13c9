//! Bytes in JSON: standard base64 with padding, line breaks ignored.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text as Go writes the bytes it reads from `text`, or the place where reading fails.
///
/// Line breaks go, and bits beyond the last byte become zero, as v1.36's encoding/base64 leaves
/// them unread.
pub(crate) fn normalize(text: &str) -> Result<String, usize> {
    let mut digits: Vec<(usize, u8)> = Vec::with_capacity(text.len());
    let mut padding = None;
    for (position, byte) in text.bytes().enumerate() {
        match byte {
            b'\r' | b'\n' => {}
            b'=' => {
                let count: &mut usize = padding.get_or_insert(0);
                *count += 1;
                // Padding may stand only where it fills a group of four.
                let filled = digits.len() % 4 + *count;
                if digits.len() % 4 < 2 || filled > 4 {
                    return Err(position);
                }
            }
            _ if padding.is_some() => return Err(position),
            _ => match ALPHABET.iter().position(|&letter| letter == byte) {
                Some(value) => digits.push((position, u8::try_from(value).expect("below 64"))),
                None => return Err(position),
            },
        }
    }
    let rest = digits.len() % 4;
    if rest != 0 && padding.unwrap_or(0) + rest != 4 {
        // Go names the start of the group that stays incomplete, or the end of the input.
        return Err(digits[digits.len() - rest].0);
    }
    if let Some((_, last)) = digits.last_mut() {
        *last &= match rest {
            2 => 0b11_0000,
            3 => 0b11_1100,
            _ => 0b11_1111,
        };
    }
    let mut out: String = digits
        .iter()
        .map(|&(_, value)| char::from(ALPHABET[usize::from(value)]))
        .collect();
    while !out.len().is_multiple_of(4) {
        out.push('=');
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_texts_come_back_in_their_plain_form() {
        for (text, want) in [
            ("", ""),
            ("dg==", "dg=="),
            ("dh==", "dg=="),
            ("Zm9v\nYmE=", "Zm9vYmE="),
        ] {
            assert_eq!(normalize(text), Ok(want.to_owned()), "{text}");
        }
    }

    #[test]
    fn bad_texts_name_the_place() {
        for (text, want) in [("v", 0), ("dg=", 0), ("d*==", 1), ("dg==x", 4), ("d===", 1)] {
            assert_eq!(normalize(text), Err(want), "{text}");
        }
    }
}
