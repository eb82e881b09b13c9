//! Changes of a terminal's size, as clients send them.

use bytes::BytesMut;
use plimsoll_runtime::TerminalSize;
use serde::Deserialize;

/// A change is a few bytes; more input without an end is no change.
const MAX_PENDING: usize = 1024;

/// Reads `{"Width":80,"Height":24}` again and again, however it is cut into pieces.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    pending: BytesMut,
    is_broken: bool,
}

#[derive(Deserialize)]
struct Size {
    #[serde(default, alias = "width", rename = "Width")]
    width: u16,
    #[serde(default, alias = "height", rename = "Height")]
    height: u16,
}

impl Sizes {
    /// The last size that this piece completes. After malformed input nothing is read, as
    /// upstream's decoder stops there.
    pub(super) fn read(&mut self, piece: &[u8]) -> Option<TerminalSize> {
        if self.is_broken {
            return None;
        }
        self.pending.extend_from_slice(piece);
        let mut sizes = serde_json::Deserializer::from_slice(&self.pending).into_iter::<Size>();
        let mut last = None;
        let mut used = 0;
        loop {
            match sizes.next() {
                Some(Ok(Size { width, height })) => {
                    last = Some(TerminalSize { width, height });
                    used = sizes.byte_offset();
                }
                Some(Err(error)) if error.is_eof() => break,
                Some(Err(_)) => {
                    self.is_broken = true;
                    break;
                }
                None => {
                    used = self.pending.len();
                    break;
                }
            }
        }
        let _ = self.pending.split_to(used.min(self.pending.len()));
        self.is_broken |= self.pending.len() > MAX_PENDING;
        last
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn terminal_sizes_are_read_from_any_fragments() {
        let mut sizes = Sizes::default();
        assert_eq!(sizes.read(b"{\"Width\":80,"), None);
        let size = |width, height| Some(TerminalSize { width, height });
        assert_eq!(sizes.read(b"\"Height\":24}\n"), size(80, 24));
        let two = b"{\"width\":1,\"height\":2}{\"Width\":3,\"Height\":4}";
        assert_eq!(sizes.read(two), size(3, 4));
        assert_eq!(sizes.read(b"x"), None);
        assert_eq!(sizes.read(two), None);
    }

    proptest! {
        #[test]
        fn no_input_causes_a_panic_or_growth(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..9)
        ) {
            let mut sizes = Sizes::default();
            for piece in pieces {
                let _ = sizes.read(&piece);
                prop_assert!(sizes.pending.len() <= MAX_PENDING + 300);
            }
        }
    }
}
