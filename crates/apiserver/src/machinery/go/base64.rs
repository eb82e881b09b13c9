//! Base64 as Go decodes and encodes it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as STANDARD;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Checks a text and returns it without the line breaks that Go skips and with the bits that pad
/// the last byte cleared.
///
/// Matches Go's encoding/base64, `StdEncoding.Decode`, which names the offending byte.
pub(crate) fn normalize(text: &str) -> Result<String, usize> {
    let mut digits: Vec<(usize, u8)> = Vec::new();
    let mut bytes = text
        .bytes()
        .enumerate()
        .filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    while let Some((at, byte)) = bytes.next() {
        if byte == b'=' {
            // Padding completes a group of four and ends the text.
            match digits.len() % 4 {
                2 => match bytes.next() {
                    Some((_, b'=')) => {}
                    Some((at, _)) => return Err(at - 1),
                    None => return Err(text.len()),
                },
                3 => {}
                _ => return Err(at),
            }
            return match bytes.next() {
                Some((at, _)) => Err(at),
                None => Ok(padded(&digits)),
            };
        }
        match ALPHABET.iter().position(|digit| *digit == byte) {
            Some(_) => digits.push((at, byte)),
            None => return Err(at),
        }
    }
    match digits.len() % 4 {
        0 => Ok(padded(&digits)),
        left => {
            // Go reports the start of the incomplete group.
            let first = digits[digits.len() - left].0;
            Err(first)
        }
    }
}

/// The text of some bytes.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn padded(digits: &[(usize, u8)]) -> String {
    let mut text: String = digits.iter().map(|(_, byte)| char::from(*byte)).collect();
    let unused_bits = match digits.len() % 4 {
        2 => 4,
        3 => 2,
        _ => return text,
    };
    let last = text
        .pop()
        .and_then(|c| ALPHABET.iter().position(|digit| char::from(*digit) == c));
    let last = last.unwrap_or_default() >> unused_bits << unused_bits;
    text.push(char::from(ALPHABET[last]));
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_validated_and_normalized() {
        assert_eq!(normalize("YQ==").unwrap(), "YQ==");
        assert_eq!(normalize("Y\nR==").unwrap(), "YQ==");
        assert_eq!(normalize("").unwrap(), "");
        for (text, byte) in [
            ("Y", 0),
            ("YWJjY", 4),
            ("Y!==", 1),
            ("YQ=x", 2),
            ("YQ==x", 4),
            ("YQ=", 3),
        ] {
            assert_eq!(normalize(text), Err(byte), "{text}");
        }
    }
}
