//! Decompression, detected by the first bytes: media types of layers are often wrong.

use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// Compressions that no image builder uses today, named so that people need not guess.
const REFUSED: [(&[u8], &str); 2] = [(&[0xfd, b'7', b'z', b'X', b'Z'], "xz"), (b"BZh", "bzip2")];

/// The bytes themselves, whatever compression they came in: gzip, zstd or none.
pub fn decompressed<'a>(mut bytes: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let start = bytes.fill_buf()?;
    if start.starts_with(GZIP) {
        return Ok(Box::new(MultiGzDecoder::new(bytes)));
    }
    if start.starts_with(ZSTD) {
        return Ok(Box::new(zstd::Decoder::with_buffer(bytes)?));
    }
    match REFUSED.iter().find(|(magic, _)| start.starts_with(magic)) {
        Some((_, name)) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("{name} compression is not supported"),
        )),
        None => Ok(Box::new(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_testkit::images::gzip;

    use super::*;

    fn check(bytes: &[u8]) -> String {
        let mut text = String::new();
        decompressed(bytes)
            .and_then(|mut reader| reader.read_to_string(&mut text))
            .map_or_else(|error| error.to_string(), |_| text)
    }

    #[test]
    fn compression_is_detected_from_the_first_bytes() {
        assert_eq!(check(b"plain"), "plain");
        assert_eq!(check(b""), "");
        assert_eq!(check(&gzip(b"gzip")), "gzip");
        assert_eq!(
            check(&[gzip(b"two "), gzip(b"parts")].concat()),
            "two parts"
        );
        assert_eq!(check(&zstd::encode_all(&b"zstd"[..], 0).unwrap()), "zstd");
        assert_eq!(check(b"BZh9..."), "bzip2 compression is not supported");
    }
}
