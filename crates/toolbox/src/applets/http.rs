//! What `wget` and `httpd` share about HTTP/1.1: heads, and bodies in chunks.

use std::io::{self, BufRead, Read};

/// The largest head, and the largest line about a chunk.
const MAX_HEAD: usize = 16 << 10;

/// The first line and the header fields.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) first: String,
    pub(super) fields: Vec<(String, String)>,
}

impl Head {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let field = self
            .fields
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        field.map(|(_, value)| value.as_str())
    }
}

fn wrong(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

fn read_line(input: &mut impl BufRead, most: usize) -> io::Result<String> {
    let mut line = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX);
    input.take(limit).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if line.last() != Some(&b'\n') {
        return Err(wrong("the head is too large or cut off"));
    }
    Ok(String::from_utf8_lossy(&line)
        .trim_end_matches(['\r', '\n'])
        .to_owned())
}

pub(super) fn read_head(input: &mut impl BufRead) -> io::Result<Head> {
    let mut left = MAX_HEAD;
    let mut head = Head::default();
    loop {
        let line = read_line(input, left)?;
        left = left.saturating_sub(line.len() + 1);
        if line.is_empty() {
            if head.first.is_empty() {
                // Empty lines before a request are allowed.
                continue;
            }
            return Ok(head);
        }
        if head.first.is_empty() {
            head.first = line;
            continue;
        }
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| wrong("a header field has no colon"))?;
        head.fields.push((name.to_owned(), value.trim().to_owned()));
    }
}

/// A body in chunks, without its framing.
pub(super) struct Chunks<R> {
    input: R,
    left: u64,
    is_first: bool,
    is_done: bool,
}

impl<R: BufRead> Chunks<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            left: 0,
            is_first: true,
            is_done: false,
        }
    }

    fn next_chunk(&mut self) -> io::Result<()> {
        if !self.is_first && !read_line(&mut self.input, MAX_HEAD)?.is_empty() {
            return Err(wrong("a chunk is longer than it says"));
        }
        self.is_first = false;
        let line = read_line(&mut self.input, MAX_HEAD)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        self.left = u64::from_str_radix(size, 16).map_err(|_| wrong("a chunk has no size"))?;
        if self.left == 0 {
            self.is_done = true;
            // Trailing fields, up to an empty line.
            while !read_line(&mut self.input, MAX_HEAD)?.is_empty() {}
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Chunks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !self.is_done {
            self.next_chunk()?;
        }
        if self.is_done || buffer.is_empty() {
            return Ok(0);
        }
        let count = self.input.by_ref().take(self.left).read(buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= u64::try_from(count).unwrap_or(self.left);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_heads() {
        let text = b"\r\nGET / HTTP/1.1\r\nHost: x\r\nEmpty:\r\n\r\nrest";
        let head = read_head(&mut text.as_slice()).unwrap();
        assert_eq!(head.first, "GET / HTTP/1.1");
        assert_eq!(
            (head.get("host"), head.get("empty"), head.get("none")),
            (Some("x"), Some(""), None)
        );
        for text in [
            "",
            "GET /",
            "GET /\r\nno colon\r\n\r\n",
            "GET /\r\nHost: x\r\n",
        ] {
            assert!(read_head(&mut text.as_bytes()).is_err(), "{text}");
        }
        let endless = "GET /\r\n".to_owned() + &"a: b\r\n".repeat(10_000);
        assert!(read_head(&mut endless.as_bytes()).is_err());
    }

    #[test]
    fn reads_chunks() {
        let read = |text: &str| {
            let mut body = String::new();
            Chunks::new(text.as_bytes())
                .read_to_string(&mut body)
                .map(|_| body)
        };
        assert_eq!(
            read("3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: 1\r\n\r\n").unwrap(),
            "abcde"
        );
        for text in [
            "",
            "3\r\nab",
            "x\r\n",
            "1\r\nab\r\n0\r\n\r\n",
            "fffffffffffffffffff\r\n",
            "1\r\na\r\n0\r\n",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
