//! Base64 as Go reads and writes it.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Checks a text and returns it without the line breaks that Go skips and with the bits that pad
/// the last byte cleared.
///
/// Matches Go's encoding/base64, `StdEncoding.Decode`, which names the byte it stumbles over.
pub(super) fn canonical(text: &str) -> Result<String, String> {
    let wrong = |at: usize| format!("illegal base64 data at input byte {at}");
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
                    Some((at, _)) => return Err(wrong(at)),
                    None => return Err(wrong(text.len())),
                },
                3 => {}
                _ => return Err(wrong(at)),
            }
            return match bytes.next() {
                Some((at, _)) => Err(wrong(at)),
                None => Ok(padded(&digits)),
            };
        }
        match ALPHABET.iter().position(|digit| *digit == byte) {
            Some(_) => digits.push((at, byte)),
            None => return Err(wrong(at)),
        }
    }
    match digits.len() % 4 {
        0 => Ok(padded(&digits)),
        left => {
            // Go blames where the incomplete group begins.
            let first = digits[digits.len() - left].0;
            Err(wrong(first))
        }
    }
}

/// The text of some bytes.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let number = group
            .iter()
            .fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        for (index, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            if index > chunk.len() {
                text.push('=');
            } else {
                text.push(char::from(ALPHABET[number >> shift & 63]));
            }
        }
    }
    text
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
    fn texts_are_checked_and_cleaned() {
        assert_eq!(canonical("YQ==").unwrap(), "YQ==");
        assert_eq!(canonical("Y\nR==").unwrap(), "YQ==");
        assert_eq!(canonical("").unwrap(), "");
        for (text, byte) in [
            ("Y", 0),
            ("YWJjY", 4),
            ("Y!==", 1),
            ("YQ=x", 3),
            ("YQ==x", 4),
            ("YQ=", 3),
        ] {
            assert_eq!(
                canonical(text).unwrap_err(),
                format!("illegal base64 data at input byte {byte}"),
                "{text}"
            );
        }
    }
}
