//! `echo`, with busybox' options: `-n`, `-e`, `-E`.

use std::io::Write;

use crate::escapes::unescape;
use crate::outcome::Outcome;

pub(crate) fn run(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let mut ends_line = true;
    let mut has_escapes = false;
    let mut words = args;
    // Anything else that begins with a dash is text.
    while let Some((first, rest)) = words.split_first() {
        let letters = first.strip_prefix(b"-").unwrap_or_default();
        if letters.is_empty() || !letters.iter().all(|letter| b"neE".contains(letter)) {
            break;
        }
        for letter in letters {
            match letter {
                b'n' => ends_line = false,
                letter => has_escapes = *letter == b'e',
            }
        }
        words = rest;
    }
    let mut text = words.join(&b' ');
    if has_escapes {
        let mut unescaped = Vec::new();
        ends_line &= unescape(&text, true, &mut unescaped);
        text = unescaped;
    }
    if ends_line {
        text.push(b'\n');
    }
    output.write_all(&text)?;
    Ok(0)
}
