//! Backslash escapes of `echo -e` and `printf`.

/// Writes the text with its escapes replaced; false if `\c` ends the output there.
///
/// Octal numbers are `\NNN`, or `\0NNN` where `has_leading_zero`.
pub(crate) fn unescape(text: &[u8], has_leading_zero: bool, output: &mut Vec<u8>) -> bool {
    let mut at = 0;
    while let Some(byte) = text.get(at).copied() {
        at += 1;
        if byte != b'\\' {
            output.push(byte);
            continue;
        }
        let Some(letter) = text.get(at).copied() else {
            output.push(b'\\');
            break;
        };
        at += 1;
        match letter {
            b'a' => output.push(7),
            b'b' => output.push(8),
            b'c' => return false,
            b'e' => output.push(27),
            b'f' => output.push(12),
            b'n' => output.push(b'\n'),
            b'r' => output.push(b'\r'),
            b't' => output.push(b'\t'),
            b'v' => output.push(11),
            b'\\' => output.push(b'\\'),
            b'x' => {
                let digits = digits(text, at, 2, 16);
                if digits == 0 {
                    output.extend(b"\\x");
                }
                at = number(text, at, digits, 16, output);
            }
            b'0' if has_leading_zero => {
                let digits = digits(text, at, 3, 8);
                if digits == 0 {
                    output.push(0);
                }
                at = number(text, at, digits, 8, output);
            }
            b'0'..=b'7' => {
                let digits = digits(text, at - 1, 3, 8);
                at = number(text, at - 1, digits, 8, output);
            }
            other => output.extend([b'\\', other]),
        }
    }
    true
}

fn digits(text: &[u8], at: usize, most: usize, radix: u32) -> usize {
    let rest = text.iter().skip(at).take(most);
    rest.take_while(|byte| char::from(**byte).is_digit(radix))
        .count()
}

fn number(text: &[u8], at: usize, digits: usize, radix: u32, output: &mut Vec<u8>) -> usize {
    let mut value: u32 = 0;
    for byte in text.iter().skip(at).take(digits) {
        value = value * radix + char::from(*byte).to_digit(radix).unwrap_or(0);
    }
    if digits > 0 {
        // Three octal digits may exceed a byte; C drops the rest too.
        output.extend(value.to_le_bytes().first());
    }
    at + digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_escapes() {
        for (text, expected) in [
            (r"a\tb\n", "a\tb\n"),
            (r"\x41\x", "A\\x"),
            (r"\0101\060", "A0"),
            (r"\q\", "\\q\\"),
        ] {
            let mut output = Vec::new();
            assert!(unescape(text.as_bytes(), true, &mut output));
            assert_eq!(output, expected.as_bytes(), "{text}");
        }
        let mut output = Vec::new();
        assert!(!unescape(br"a\cb", false, &mut output));
        assert_eq!(output, b"a");
    }
}
