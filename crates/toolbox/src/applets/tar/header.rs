//! The format of archives: a block of 512 bytes per entry, then its data in whole blocks.

use std::io::{self, Read};

pub(super) const BLOCK: usize = 512;

/// The longest name, target or PAX header that is read.
const MAX_EXTENSION: u64 = 1 << 20;

pub(super) const FILE: u8 = b'0';
pub(super) const HARD_LINK: u8 = b'1';
pub(super) const SYMLINK: u8 = b'2';
pub(super) const DIRECTORY: u8 = b'5';
pub(super) const LONG_NAME: u8 = b'L';
pub(super) const LONG_LINK: u8 = b'K';

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    /// What a link points to.
    pub(super) target: Vec<u8>,
    pub(super) kind: u8,
    pub(super) mode: u32,
    pub(super) user: u32,
    pub(super) group: u32,
    pub(super) size: u64,
    /// Seconds since 1970.
    pub(super) modified: i64,
}

/// The place of a field in the block.
type Field = (usize, usize);

const NAME: Field = (0, 100);
const MODE: Field = (100, 8);
const USER: Field = (108, 8);
const GROUP: Field = (116, 8);
const SIZE: Field = (124, 12);
const MODIFIED: Field = (136, 12);
const CHECKSUM: Field = (148, 8);
const KIND: usize = 156;
const TARGET: Field = (157, 100);
const MAGIC: Field = (257, 8);
const PREFIX: Field = (345, 155);

fn field(block: &[u8], (start, length): Field) -> &[u8] {
    block.get(start..start + length).unwrap_or_default()
}

fn put(block: &mut [u8], (start, length): Field, bytes: &[u8]) {
    for (place, byte) in block.iter_mut().skip(start).take(length).zip(bytes) {
        *place = *byte;
    }
}

/// Octal digits if they fit, else a binary number with the highest bit set, as GNU tar does.
fn put_number(block: &mut [u8], place: Field, value: i64) {
    let digits = place.1 - 1;
    let octal = format!("{value:0digits$o}");
    if value >= 0 && octal.len() <= digits {
        put(block, place, octal.as_bytes());
        return;
    }
    let filler = if value < 0 { 0xff } else { 0 };
    let mut bytes = vec![filler; place.1.saturating_sub(8)];
    bytes.extend(value.to_be_bytes());
    let mut bytes = bytes.split_off(bytes.len() - place.1);
    if let Some(first) = bytes.first_mut() {
        *first = if value < 0 {
            0xff
        } else {
            *first & 0x7f | 0x80
        };
    }
    put(block, place, &bytes);
}

fn number(block: &[u8], place: Field) -> Option<i64> {
    let bytes = field(block, place);
    let first = bytes.first().copied()?;
    if first & 0x80 != 0 {
        let mut value = if first == 0xff {
            -1
        } else {
            i128::from(first & 0x7f)
        };
        for byte in bytes.iter().skip(1) {
            value = value.checked_mul(256)?.checked_add(i128::from(*byte))?;
        }
        return i64::try_from(value).ok();
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let text = text.split('\0').next()?.trim();
    if text.is_empty() {
        return Some(0);
    }
    i64::from_str_radix(text, 8).ok()
}

/// The sum of all bytes, with the sum's own field as blanks.
fn checksum(block: &[u8]) -> i64 {
    let (start, length) = CHECKSUM;
    let own = start..start + length;
    let bytes = block.iter().enumerate();
    bytes
        .map(|(place, byte)| i64::from(if own.contains(&place) { b' ' } else { *byte }))
        .sum()
}

/// The blocks of an entry's header: one, with two more for each name that is too long for it.
pub(super) fn encode(entry: &Entry) -> Vec<u8> {
    let mut blocks = Vec::new();
    if entry.name.len() > NAME.1 {
        extension(LONG_NAME, &entry.name, &mut blocks);
    }
    if entry.target.len() > TARGET.1 {
        extension(LONG_LINK, &entry.target, &mut blocks);
    }
    blocks.extend(block(entry));
    blocks
}

fn extension(kind: u8, text: &[u8], blocks: &mut Vec<u8>) {
    let size = u64::try_from(text.len() + 1).unwrap_or(u64::MAX);
    let entry = Entry {
        name: b"././@LongLink".to_vec(),
        kind,
        size,
        ..Entry::default()
    };
    blocks.extend(block(&entry));
    blocks.extend(text);
    blocks.resize((blocks.len() + 1).next_multiple_of(BLOCK), 0);
}

fn block(entry: &Entry) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    put(&mut block, NAME, &entry.name);
    put_number(&mut block, MODE, entry.mode.into());
    put_number(&mut block, USER, entry.user.into());
    put_number(&mut block, GROUP, entry.group.into());
    put_number(
        &mut block,
        SIZE,
        i64::try_from(entry.size).unwrap_or(i64::MAX),
    );
    put_number(&mut block, MODIFIED, entry.modified);
    put(&mut block, (KIND, 1), &[entry.kind]);
    put(&mut block, TARGET, &entry.target);
    put(&mut block, MAGIC, b"ustar\x0000");
    let sum = format!("{:06o}\0 ", checksum(&block));
    put(&mut block, CHECKSUM, sum.as_bytes());
    block
}

fn wrong(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}

/// Up to the first NUL.
fn text(bytes: &[u8]) -> Vec<u8> {
    bytes
        .iter()
        .copied()
        .take_while(|byte| *byte != 0)
        .collect()
}

/// The next entry, or `None` at the end of the archive. The caller reads its data, and then the
/// padding, before the next one.
pub(super) fn read(input: &mut impl Read) -> io::Result<Option<Entry>> {
    let mut name = None;
    let mut target = None;
    let mut size = None;
    loop {
        let mut block = [0; BLOCK];
        if !fill(input, &mut block)? || block == [0; BLOCK] {
            return Ok(None);
        }
        let mut entry = decode(&block)?;
        match entry.kind {
            LONG_NAME => name = Some(text(&contents(input, entry.size)?)),
            LONG_LINK => target = Some(text(&contents(input, entry.size)?)),
            b'x' => {
                for (key, value) in records(&contents(input, entry.size)?)? {
                    match key.as_slice() {
                        b"path" => name = Some(value),
                        b"linkpath" => target = Some(value),
                        b"size" => {
                            let number = std::str::from_utf8(&value)
                                .ok()
                                .and_then(|text| text.parse().ok());
                            size =
                                Some(number.ok_or_else(|| wrong("a PAX header has a wrong size"))?);
                        }
                        _ => {}
                    }
                }
            }
            // About all entries; nothing in it concerns what is kept.
            b'g' => drop(contents(input, entry.size)?),
            _ => {
                entry.name = name.unwrap_or(entry.name);
                entry.target = target.unwrap_or(entry.target);
                entry.size = size.unwrap_or(entry.size);
                if matches!(entry.kind, HARD_LINK | SYMLINK | DIRECTORY) {
                    entry.size = 0;
                }
                return Ok(Some(entry));
            }
        }
    }
}

fn fill(input: &mut impl Read, block: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(block) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn decode(block: &[u8; BLOCK]) -> io::Result<Entry> {
    if number(block, CHECKSUM) != Some(checksum(block)) {
        return Err(wrong(
            "not a tar archive, or a damaged one: a checksum is wrong",
        ));
    }
    let small = |place, what: &str| {
        let value = number(block, place).and_then(|value| u32::try_from(value).ok());
        value.ok_or_else(|| wrong(format!("the {what} of an entry is wrong")))
    };
    let mut name = text(field(block, NAME));
    // Only POSIX' own variant has the front of long names there.
    let prefix = text(field(block, PREFIX));
    if field(block, MAGIC).starts_with(b"ustar\0") && !prefix.is_empty() {
        name = [prefix.as_slice(), b"/", &name].concat();
    }
    let kind = match block.get(KIND) {
        // The oldest archives know no types.
        Some(0 | b'7') if name.ends_with(b"/") => DIRECTORY,
        Some(0 | b'7') => FILE,
        Some(kind) => *kind,
        None => FILE,
    };
    let size = number(block, SIZE).and_then(|size| u64::try_from(size).ok());
    Ok(Entry {
        name,
        target: text(field(block, TARGET)),
        kind,
        mode: small(MODE, "mode")?,
        user: small(USER, "user")?,
        group: small(GROUP, "group")?,
        size: size.ok_or_else(|| wrong("the size of an entry is wrong"))?,
        modified: number(block, MODIFIED).ok_or_else(|| wrong("the time of an entry is wrong"))?,
    })
}

/// The bytes behind an entry's data up to the next block.
pub(super) fn padding(size: u64) -> u64 {
    let block = u64::try_from(BLOCK).unwrap_or(u64::MAX);
    (block - size % block) % block
}

fn contents(input: &mut impl Read, size: u64) -> io::Result<Vec<u8>> {
    if size > MAX_EXTENSION {
        return Err(wrong(format!(
            "a header of {size} bytes, more than {MAX_EXTENSION}"
        )));
    }
    let mut bytes = Vec::new();
    let whole = size + padding(size);
    input.take(whole).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) < whole {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    bytes.truncate(usize::try_from(size).unwrap_or(usize::MAX));
    Ok(bytes)
}

type Record = (Vec<u8>, Vec<u8>);

/// `LENGTH key=value\n`, where the length is that of the whole record.
fn records(mut bytes: &[u8]) -> io::Result<Vec<Record>> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let record = record(bytes).ok_or_else(|| wrong("a PAX header is damaged"))?;
        records.push(record.0);
        bytes = record.1;
    }
    Ok(records)
}

fn record(bytes: &[u8]) -> Option<(Record, &[u8])> {
    let digits = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let length: usize = std::str::from_utf8(bytes.get(..digits)?)
        .ok()?
        .parse()
        .ok()?;
    let whole = bytes.get(..length)?;
    let inside = whole
        .get(digits..)?
        .strip_prefix(b" ")?
        .strip_suffix(b"\n")?;
    let place = inside.iter().position(|byte| *byte == b'=')?;
    let (key, value) = inside.split_at(place);
    Some((
        (key.to_vec(), value.get(1..)?.to_vec()),
        bytes.get(length..)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> Entry {
        Entry {
            name: name.into(),
            kind: FILE,
            mode: 0o644,
            user: 1000,
            group: 1_000_000_000,
            size: 0,
            modified: 1_700_000_000,
            ..Entry::default()
        }
    }

    #[test]
    fn headers_round_trip() {
        let long = "d/".repeat(100) + "f";
        let mut link = entry(&long);
        (link.kind, link.target) = (SYMLINK, "t".repeat(300).into());
        let mut old = entry("old");
        old.modified = -5;
        for expected in [entry("a"), entry(&"n".repeat(100)), entry(&long), link, old] {
            let bytes = encode(&expected);
            assert_eq!(bytes.len() % BLOCK, 0);
            assert_eq!(read(&mut bytes.as_slice()).unwrap(), Some(expected));
        }
    }

    #[test]
    fn numbers_beyond_octal_are_binary() {
        for value in [
            0,
            0o77_777_777_777,
            1 << 33,
            1 << 40,
            i64::MAX,
            -1,
            i64::MIN,
        ] {
            let mut block = [0; BLOCK];
            put_number(&mut block, SIZE, value);
            assert_eq!(number(&block, SIZE), Some(value), "{value}");
        }
    }

    #[test]
    fn pax_records_replace_names() {
        let body = b"17 path=long/name\n".to_vec();
        assert_eq!(body.len(), 18);
        assert!(records(&body).is_err());
        let body = b"18 path=long/name\n9 size=3\n";
        let found = records(body).unwrap();
        assert_eq!(found[0], (b"path".to_vec(), b"long/name".to_vec()));
        for text in ["x", "5", "999 a=b\n", "3 a", "0 ", "7 a=bcd"] {
            assert!(records(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn damage_is_an_error() {
        let mut bytes = encode(&entry("a"));
        bytes[0] = b'b';
        assert!(read(&mut bytes.as_slice()).is_err());
        let mut huge = Entry {
            kind: LONG_NAME,
            size: 1 << 40,
            ..entry("x")
        };
        assert!(read(&mut block(&huge).as_slice()).is_err());
        huge.size = 600;
        assert!(read(&mut block(&huge).as_slice()).is_err());
    }
}
