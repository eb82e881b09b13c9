//! Identities that the server generates for new objects.

use crate::machinery::write::Identity;

/// Letters and digits that cannot form words.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Every request and every object gets a uid.
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// How many characters follow a `generateName`.
const SUFFIX: usize = 5;

/// A new object's uid and the suffix of its generated name.
#[derive(Debug)]
pub(crate) struct GeneratedIdentity {
    uid: String,
    suffix: String,
}

/// A new identity.
pub(crate) fn new() -> GeneratedIdentity {
    GeneratedIdentity {
        uid: uid(),
        suffix: suffix(),
    }
}

impl GeneratedIdentity {
    /// In the form that the object machinery takes.
    pub(crate) fn as_ref(&self) -> Identity<'_> {
        Identity {
            uid: &self.uid,
            name_suffix: &self.suffix,
        }
    }
}

/// A random uid, version 4.
pub(crate) fn uid() -> String {
    let bits = fastrand::u128(..);
    let bits = bits & !(0xf << 76) | 0x4 << 76;
    let bits = bits & !(0x3 << 62) | 0x2 << 62;
    let mut text = String::with_capacity(36);
    for (at, byte) in bits.to_be_bytes().into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 0xf] {
            text.push(char::from(DIGITS[usize::from(digit)]));
        }
    }
    text
}

/// The suffix of a generated name.
pub(crate) fn suffix() -> String {
    let letter = |_| char::from(ALPHABET[fastrand::usize(..ALPHABET.len())]);
    (0..SUFFIX).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uid_is_version_4() {
        for _ in 0..100 {
            let uid = uid();
            assert_eq!(uid.len(), 36);
            assert_eq!(&uid[14..15], "4");
            assert!(matches!(&uid[19..20], "8" | "9" | "a" | "b"), "{uid}");
        }
    }
}
