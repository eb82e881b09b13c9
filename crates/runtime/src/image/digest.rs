//! Digests: what content is called.

use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A sha256 digest, the only algorithm that registries use in practice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// A text that is no sha256 digest.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a sha256 digest")]
pub struct NotADigest(pub String);

impl Digest {
    /// Of some bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// Its 64 hexadecimal digits, which are also a file name.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// From 64 lower-case hexadecimal digits.
    pub fn from_hex(hex: &str) -> Option<Digest> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        if hex.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Digest(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Digest, NotADigest> {
        text.strip_prefix("sha256:")
            .and_then(Digest::from_hex)
            .ok_or_else(|| NotADigest(text.to_owned()))
    }
}

impl TryFrom<String> for Digest {
    type Error = NotADigest;

    fn try_from(text: String) -> Result<Digest, NotADigest> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

/// The name of a stack of layers, which says what lies below a layer as well as what is in it:
/// the digest of the stack below, a space and the digest of the top layer's tar.
pub fn compute_chain(below: Option<&Digest>, diff_id: &Digest) -> Digest {
    match below {
        None => *diff_id,
        Some(below) => Digest::of(format!("{below} {diff_id}").as_bytes()),
    }
}

/// Passes bytes on and hashes them.
#[derive(Debug)]
pub struct Hashing<T> {
    inner: T,
    sum: Sha256,
    bytes: u64,
}

impl<T> Hashing<T> {
    /// Around a reader or a writer.
    pub fn new(inner: T) -> Hashing<T> {
        Hashing {
            inner,
            sum: Sha256::new(),
            bytes: 0,
        }
    }

    /// The digest of what passed, and how much it was.
    pub fn finish(self) -> (Digest, u64) {
        (Digest(self.sum.finalize().into()), self.bytes)
    }

    fn note(&mut self, bytes: &[u8]) {
        self.sum.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.note(&buffer[..count]);
        Ok(count)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(buffer)?;
        self.note(&buffer[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn digests_round_trip() {
        assert_eq!(Digest::of(b"").to_string(), EMPTY);
        assert_eq!(EMPTY.parse(), Ok(Digest::of(b"")));
    }

    #[test]
    fn other_texts_are_no_digests() {
        let short = &EMPTY[..EMPTY.len() - 1];
        let upper = EMPTY.to_uppercase();
        let sha512 = EMPTY.replace("sha256", "sha512");
        for text in ["", "sha256:", short, &upper, &sha512, "sha256:../../x"] {
            assert_eq!(text.parse::<Digest>(), Err(NotADigest(text.to_owned())));
        }
    }

    #[test]
    fn a_chain_names_all_layers_below() {
        let bottom = Digest::of(b"a");
        let top = Digest::of(b"b");
        assert_eq!(compute_chain(None, &bottom), bottom);
        let expected = Digest::of(format!("{bottom} {top}").as_bytes());
        assert_eq!(compute_chain(Some(&bottom), &top), expected);
    }

    #[test]
    fn bytes_are_hashed_as_they_pass() {
        let mut passed = Vec::new();
        let mut reader = Hashing::new(&b"some bytes"[..]);
        reader.read_to_end(&mut passed).unwrap();
        assert_eq!(reader.finish(), (Digest::of(b"some bytes"), 10));
        assert_eq!(passed, b"some bytes");
    }
}
