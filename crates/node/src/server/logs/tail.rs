//! Where the last lines of a file begin.

use std::io::{self, SeekFrom};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncSeek, AsyncSeekExt};

const BLOCK: u64 = 8 * 1024;

/// The offset of the last `lines` lines. An unfinished last line is not counted, so it comes on
/// top.
pub(super) async fn start_of_last(
    file: &mut (impl AsyncRead + AsyncSeek + Unpin),
    lines: u64,
) -> io::Result<u64> {
    let mut right = file.seek(SeekFrom::End(0)).await?;
    let mut ends = 0;
    let mut block = Vec::new();
    while right > 0 {
        let left = right.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(left)).await?;
        block.clear();
        (&mut *file)
            .take(right - left)
            .read_to_end(&mut block)
            .await?;
        let mut before = right;
        for byte in block.iter().rev() {
            if *byte == b'\n' {
                ends += 1;
                if ends > lines {
                    return Ok(before);
                }
            }
            before = before.saturating_sub(1);
        }
        right = left;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn tail(text: &[u8], lines: u64) -> u64 {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let mut file = Cursor::new(text);
        runtime
            .unwrap()
            .block_on(start_of_last(&mut file, lines))
            .unwrap()
    }

    #[test]
    fn finished_lines_are_counted_from_the_end() {
        let cases: &[(&[u8], u64, u64)] = &[
            (b"", 0, 0),
            (b"", 3, 0),
            (b"a\nb\nc\n", 0, 6),
            (b"a\nb\nc\n", 1, 4),
            (b"a\nb\nc\n", 3, 0),
            (b"a\nb\nc\n", 9, 0),
            (b"a\nb\nc", 0, 4),
            (b"a\nb\nc", 1, 2),
            (b"abc", 0, 0),
        ];
        for (text, lines, expected) in cases {
            let shown = String::from_utf8_lossy(text);
            assert_eq!(tail(text, *lines), *expected, "{lines} of {shown:?}");
        }
    }

    proptest! {
        #[test]
        fn blocks_do_not_show(
            lengths in proptest::collection::vec(0_usize..5000, 0..12),
            lines in 0_u64..14,
            rest in 0_usize..3,
        ) {
            let mut text = Vec::new();
            let mut starts = vec![0_u64];
            for length in lengths {
                text.extend(vec![b'x'; length]);
                text.push(b'\n');
                starts.push(u64::try_from(text.len()).unwrap());
            }
            text.extend(vec![b'x'; rest]);
            let back = usize::try_from(lines).unwrap() + 1;
            let expected = starts.len().checked_sub(back).map_or(0, |at| starts[at]);
            prop_assert_eq!(tail(&text, lines), expected);
        }
    }
}
