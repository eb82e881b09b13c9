//! Blocks of headers: names and values after their lengths, compressed over the whole connection.

use bytes::{Buf, BufMut};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::dictionary::dictionary;

/// A block may not be larger, compressed or not. Those of Kubernetes have a hundred bytes.
pub(super) const MAX_BLOCK: usize = 64 * 1024;

/// Headers in one block.
const MAX_HEADERS: u32 = 100;

/// Names in lower case, and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::server) struct Headers(pub(in crate::server) Vec<(String, String)>);

impl Headers {
    /// The first value of that name, whatever its case.
    pub(in crate::server) fn get(&self, name: &str) -> Option<&str> {
        let mut headers = self.0.iter();
        let header = headers.find(|(key, _)| key.eq_ignore_ascii_case(name));
        header.map(|(_, value)| value.as_str())
    }
}

/// A malformed block. It ends the connection, since later blocks build on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("header block is invalid or too large")]
pub(super) struct BlockError;

/// Reads blocks.
#[derive(Debug)]
pub(super) struct Inflate(Decompress);

impl Inflate {
    pub(super) fn new() -> Inflate {
        Inflate(Decompress::new(true))
    }

    pub(super) fn read(&mut self, block: &[u8]) -> Result<Headers, BlockError> {
        parse(&self.inflate(block)?)
    }

    fn inflate(&mut self, mut block: &[u8]) -> Result<Vec<u8>, BlockError> {
        let mut text = Vec::with_capacity(1024);
        loop {
            let (consumed, produced) = (self.0.total_in(), self.0.total_out());
            let step = self
                .0
                .decompress_vec(block, &mut text, FlushDecompress::Sync);
            let used = usize::try_from(self.0.total_in() - consumed).map_err(|_| BlockError)?;
            block = block.get(used..).ok_or(BlockError)?;
            match step {
                Ok(Status::StreamEnd) => return Err(BlockError),
                Ok(Status::Ok | Status::BufError) => {
                    let made = self.0.total_out() > produced;
                    if text.len() < text.capacity() && (block.is_empty() || (used == 0 && !made)) {
                        break;
                    }
                    if text.len() >= MAX_BLOCK {
                        return Err(BlockError);
                    }
                    text.reserve(1024);
                }
                Err(error) if error.needs_dictionary().is_some() => {
                    let set = self.0.set_dictionary(&dictionary());
                    set.map_err(|_| BlockError)?;
                }
                Err(_) => return Err(BlockError),
            }
        }
        if block.is_empty() {
            Ok(text)
        } else {
            Err(BlockError)
        }
    }
}

fn parse(mut text: &[u8]) -> Result<Headers, BlockError> {
    let count = text.try_get_u32().map_err(|_| BlockError)?;
    if count > MAX_HEADERS {
        return Err(BlockError);
    }
    let mut headers = Headers::default();
    for _ in 0..count {
        let name = word(&mut text)?.to_ascii_lowercase();
        let value = word(&mut text)?;
        headers.0.push((name, value));
    }
    if text.is_empty() {
        Ok(headers)
    } else {
        Err(BlockError)
    }
}

fn word(text: &mut &[u8]) -> Result<String, BlockError> {
    let length = text.try_get_u32().map_err(|_| BlockError)?;
    let length = usize::try_from(length).map_err(|_| BlockError)?;
    let (word, rest) = text.split_at_checked(length).ok_or(BlockError)?;
    *text = rest;
    Ok(String::from_utf8_lossy(word).into_owned())
}

/// Writes blocks.
#[derive(Debug)]
pub(super) struct Deflate(Compress);

impl Deflate {
    pub(super) fn new() -> Deflate {
        let mut compress = Compress::new(Compression::default(), true);
        compress
            .set_dictionary(&dictionary())
            .expect("a stream that has not begun takes a dictionary");
        Deflate(compress)
    }

    pub(super) fn write(&mut self, headers: &Headers) -> Result<Vec<u8>, BlockError> {
        let mut text = Vec::new();
        text.put_u32(u32::try_from(headers.0.len()).map_err(|_| BlockError)?);
        for (name, value) in &headers.0 {
            for word in [name.to_ascii_lowercase().as_str(), value] {
                text.put_u32(u32::try_from(word.len()).map_err(|_| BlockError)?);
                text.extend_from_slice(word.as_bytes());
            }
        }
        let mut rest = text.as_slice();
        let mut block = Vec::with_capacity(256);
        loop {
            let consumed = self.0.total_in();
            let step = self.0.compress_vec(rest, &mut block, FlushCompress::Sync);
            step.map_err(|_| BlockError)?;
            let used = usize::try_from(self.0.total_in() - consumed).map_err(|_| BlockError)?;
            rest = rest.get(used..).ok_or(BlockError)?;
            if rest.is_empty() && block.len() < block.capacity() {
                break;
            }
            block.reserve(256);
        }
        if block.len() > MAX_BLOCK {
            return Err(BlockError);
        }
        Ok(block)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> Headers {
        let pairs = pairs.iter();
        Headers(
            pairs
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect(),
        )
    }

    /// Made with zlib at its best level.
    #[test]
    fn blocks_of_other_implementations_are_read() {
        let mut inflate = Inflate::new();
        let first = [
            0x78, 0xf9, 0xe3, 0xc6, 0xa7, 0xc2, 0x02, 0xa6, 0x23, 0x46, 0x70, 0x3a, 0x2b, 0x29,
            0x4a, 0x4d, 0xcc, 0x85, 0x16, 0x25, 0xac, 0xa9, 0xa0, 0x80, 0x06, 0x00, 0x00, 0x00,
            0xff, 0xff,
        ];
        let second = [
            0xc2, 0x2e, 0x55, 0x5c, 0x02, 0xcc, 0x2e, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff,
        ];
        let error = headers(&[("streamtype", "error")]);
        assert_eq!(inflate.read(&first), Ok(error));
        let stdin = headers(&[("streamtype", "stdin")]);
        assert_eq!(inflate.read(&second), Ok(stdin));
    }

    #[test]
    fn later_blocks_build_on_earlier_ones() {
        let mut deflate = Deflate::new();
        let mut inflate = Inflate::new();
        let cases = [
            headers(&[("streamtype", "error")]),
            headers(&[("streamtype", "stdin")]),
            headers(&[]),
            headers(&[("streamtype", "data"), ("port", "80"), ("requestid", "0")]),
        ];
        let mut sizes = Vec::new();
        for case in cases {
            let block = deflate.write(&case).unwrap();
            sizes.push(block.len());
            assert_eq!(inflate.read(&block), Ok(case));
        }
        assert!(sizes[1] < sizes[0], "{sizes:?}");
    }

    #[test]
    fn decompression_bomb_is_refused() {
        let mut deflate = Deflate::new();
        let bomb = headers(&[("a", &"x".repeat(1 << 20))]);
        let block = deflate.write(&bomb).unwrap();
        assert!(block.len() < MAX_BLOCK);
        assert_eq!(Inflate::new().read(&block), Err(BlockError));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn headers_round_trip(
            blocks in proptest::collection::vec(
                proptest::collection::vec(("[a-z-]{0,20}", ".{0,60}"), 0..6), 1..5),
        ) {
            let mut deflate = Deflate::new();
            let mut inflate = Inflate::new();
            for block in blocks {
                let headers = Headers(block);
                let bytes = deflate.write(&headers).unwrap();
                prop_assert_eq!(inflate.read(&bytes), Ok(headers));
            }
        }

        #[test]
        fn no_bytes_cause_a_panic(
            blocks in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..80), 1..4),
            start in any::<bool>(),
        ) {
            let mut inflate = Inflate::new();
            if start {
                let block = Deflate::new().write(&Headers::default()).unwrap();
                prop_assert!(inflate.read(&block).is_ok());
            }
            for block in blocks {
                let _ = inflate.read(&block);
            }
        }

        #[test]
        fn a_damaged_block_does_not_panic(at in 0_usize..64, with in any::<u8>()) {
            let mut deflate = Deflate::new();
            let mut block = deflate.write(&headers(&[("streamtype", "error")])).unwrap();
            let at = at % block.len();
            block[at] ^= with;
            let _ = Inflate::new().read(&block);
        }
    }
}
