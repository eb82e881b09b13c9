//! What is sent over a connection.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::header::{BlockError, Deflate, Headers, Inflate, MAX_BLOCK};

const VERSION: u16 = 3;
const CONTROL: u16 = 0x8000;
const FIN: u8 = 0x01;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const SETTINGS: u16 = 4;
const PING: u16 = 6;
const GO_AWAY: u16 = 7;
const HEADERS: u16 = 8;
const WINDOW_UPDATE: u16 = 9;

/// A frame begins with two words: what it is, and flags with its length.
const HEAD: usize = 8;

/// Data is handed on in pieces of at most this, however long its frame is.
const PIECE: usize = 32 * 1024;

/// Why a stream was reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum ResetStatus {
    ProtocolError = 1,
    RefusedStream = 3,
    Cancel = 5,
}

/// One frame, or a piece of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    SynStream {
        id: u32,
        headers: Headers,
        fin: bool,
    },
    SynReply {
        id: u32,
        headers: Headers,
        fin: bool,
    },
    Reset {
        id: u32,
        status: u32,
    },
    Ping(u32),
    GoAway {
        last: u32,
    },
    /// More headers; neither clients nor runtimes need them.
    Headers {
        id: u32,
        fin: bool,
    },
    WindowUpdate {
        id: u32,
        delta: u32,
    },
    Data {
        id: u32,
        bytes: Bytes,
        fin: bool,
    },
    /// Settings, and what is not known.
    Other,
}

/// Why the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FrameError {
    #[error("unsupported SPDY version {0}")]
    Version(u16),
    #[error("control frame too long: {0} bytes")]
    TooLong(usize),
    #[error("invalid frame of type {0}: too short or without stream id")]
    Malformed(u16),
    #[error(transparent)]
    Block(#[from] BlockError),
}

/// Reads frames.
#[derive(Debug)]
pub(super) struct Decoder {
    inflate: Inflate,
    /// The rest of a data frame that is under way.
    data: Option<Rest>,
}

#[derive(Clone, Copy, Debug)]
struct Rest {
    id: u32,
    left: usize,
    fin: bool,
}

impl Decoder {
    pub(super) fn new() -> Decoder {
        Decoder {
            inflate: Inflate::new(),
            data: None,
        }
    }

    /// Takes a frame out of the received bytes; `None` if it is incomplete.
    pub(super) fn decode(&mut self, come: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        if let Some(rest) = self.data {
            return Ok(self.piece(rest, come));
        }
        let mut head = come.as_ref();
        let (Ok(first), Ok(second)) = (head.try_get_u32(), head.try_get_u32()) else {
            return Ok(None);
        };
        let [flags, ..] = second.to_be_bytes();
        let length = usize::try_from(second & 0x00ff_ffff).unwrap_or(usize::MAX);
        let [high, low] = [first >> 16, first & 0xffff].map(|half| u16::try_from(half).ok());
        let (high, low) = (high.unwrap_or_default(), low.unwrap_or_default());
        if high & CONTROL == 0 {
            come.advance(HEAD);
            if first == 0 {
                return Err(FrameError::Malformed(0));
            }
            let rest = Rest {
                id: first,
                left: length,
                fin: flags & FIN != 0,
            };
            self.data = Some(rest);
            return Ok(self.piece(rest, come));
        }
        if length > MAX_BLOCK {
            return Err(FrameError::TooLong(length));
        }
        if high & !CONTROL != VERSION {
            return Err(FrameError::Version(high & !CONTROL));
        }
        if come.len() < HEAD + length {
            return Ok(None);
        }
        come.advance(HEAD);
        let body = come.split_to(length);
        self.control(low, flags & FIN != 0, &body).map(Some)
    }

    fn piece(&mut self, rest: Rest, come: &mut BytesMut) -> Option<Frame> {
        let Rest { id, left, fin } = rest;
        if come.is_empty() && left > 0 {
            return None;
        }
        let bytes = come.split_to(left.min(come.len()).min(PIECE)).freeze();
        let left = left - bytes.len();
        self.data = (left > 0).then_some(Rest { id, left, fin });
        let fin = fin && left == 0;
        Some(Frame::Data { id, bytes, fin })
    }

    fn control(&mut self, kind: u16, fin: bool, mut body: &[u8]) -> Result<Frame, FrameError> {
        let malformed = FrameError::Malformed(kind);
        let mut word = || body.try_get_u32().map_err(|_| malformed);
        let stream = |id: u32| match id & 0x7fff_ffff {
            0 => Err(malformed),
            id => Ok(id),
        };
        Ok(match kind {
            SYN_STREAM => {
                let (id, _associated) = (stream(word()?)?, word()?);
                // Priority and slot.
                let block = body.get(2..).ok_or(malformed)?;
                let headers = self.inflate.read(block)?;
                Frame::SynStream { id, headers, fin }
            }
            SYN_REPLY => {
                let id = stream(word()?)?;
                let headers = self.inflate.read(body)?;
                Frame::SynReply { id, headers, fin }
            }
            HEADERS => {
                let id = stream(word()?)?;
                self.inflate.read(body)?;
                Frame::Headers { id, fin }
            }
            RST_STREAM => Frame::Reset {
                id: stream(word()?)?,
                status: word()?,
            },
            PING => Frame::Ping(word()?),
            GO_AWAY => Frame::GoAway { last: word()? },
            WINDOW_UPDATE => Frame::WindowUpdate {
                id: word()? & 0x7fff_ffff,
                delta: word()?,
            },
            SETTINGS => Frame::Other,
            _ => Frame::Other,
        })
    }
}

/// Writes frames.
#[derive(Debug)]
pub(super) struct Encoder(Deflate);

impl Encoder {
    pub(super) fn new() -> Encoder {
        Encoder(Deflate::new())
    }

    pub(super) fn encode(&mut self, frame: &Frame, out: &mut BytesMut) -> Result<(), FrameError> {
        match frame {
            Frame::SynStream { id, headers, fin } => {
                let block = self.0.write(headers)?;
                control(out, SYN_STREAM, *fin, 10 + block.len());
                out.put_u32(*id);
                out.put_u32(0);
                out.put_u16(0);
                out.put_slice(&block);
            }
            Frame::SynReply { id, headers, fin } => {
                let block = self.0.write(headers)?;
                control(out, SYN_REPLY, *fin, 4 + block.len());
                out.put_u32(*id);
                out.put_slice(&block);
            }
            Frame::Headers { id, fin } => {
                let block = self.0.write(&Headers::default())?;
                control(out, HEADERS, *fin, 4 + block.len());
                out.put_u32(*id);
                out.put_slice(&block);
            }
            Frame::Reset { id, status } => pair(out, RST_STREAM, *id, *status),
            Frame::Ping(id) => {
                control(out, PING, false, 4);
                out.put_u32(*id);
            }
            Frame::GoAway { last } => pair(out, GO_AWAY, *last, 0),
            Frame::WindowUpdate { id, delta } => pair(out, WINDOW_UPDATE, *id, *delta),
            Frame::Data { id, bytes, fin } => {
                out.put_u32(*id);
                flags_and_length(out, *fin, bytes.len());
                out.put_slice(bytes);
            }
            Frame::Other => {
                control(out, SETTINGS, false, 4);
                out.put_u32(0);
            }
        }
        Ok(())
    }
}

fn pair(out: &mut BytesMut, kind: u16, first: u32, second: u32) {
    control(out, kind, false, 8);
    out.put_u32(first);
    out.put_u32(second);
}

fn control(out: &mut BytesMut, kind: u16, fin: bool, length: usize) {
    out.put_u16(CONTROL | VERSION);
    out.put_u16(kind);
    flags_and_length(out, fin, length);
}

/// Lengths have 24 bits; blocks and pieces are far shorter.
fn flags_and_length(out: &mut BytesMut, fin: bool, length: usize) {
    out.put_u8(if fin { FIN } else { 0 });
    out.put_uint(u64::try_from(length).unwrap_or(u64::MAX), 3);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames() -> impl Strategy<Value = Frame> {
        let id = 1_u32..0x7fff_ffff;
        let headers = proptest::collection::vec(("[a-z]{1,9}", "[ -~]{0,20}"), 0..4);
        let headers = headers.prop_map(Headers);
        let bytes = proptest::collection::vec(any::<u8>(), 0..300).prop_map(Bytes::from);
        prop_oneof![
            (id.clone(), headers.clone(), any::<bool>())
                .prop_map(|(id, headers, fin)| Frame::SynStream { id, headers, fin }),
            (id.clone(), headers, any::<bool>()).prop_map(|(id, headers, fin)| Frame::SynReply {
                id,
                headers,
                fin
            }),
            (id.clone(), any::<bool>()).prop_map(|(id, fin)| Frame::Headers { id, fin }),
            (id.clone(), any::<u32>()).prop_map(|(id, status)| Frame::Reset { id, status }),
            any::<u32>().prop_map(Frame::Ping),
            any::<u32>().prop_map(|last| Frame::GoAway { last }),
            (id.clone(), any::<u32>()).prop_map(|(id, delta)| Frame::WindowUpdate { id, delta }),
            (id, bytes, any::<bool>()).prop_map(|(id, bytes, fin)| Frame::Data { id, bytes, fin }),
            Just(Frame::Other),
        ]
    }

    /// Puts pieces of one data frame together again; empty pieces without an end say nothing.
    fn join(frames: Vec<Frame>) -> Vec<Frame> {
        let mut joined: Vec<Frame> = Vec::new();
        for frame in frames {
            match (joined.last_mut(), frame) {
                (
                    Some(Frame::Data {
                        id: before,
                        bytes: head,
                        fin: false,
                    }),
                    Frame::Data { id, bytes, fin },
                ) if *before == id => {
                    let bytes = [head.as_ref(), &bytes].concat().into();
                    *joined.last_mut().unwrap() = Frame::Data { id, bytes, fin };
                }
                (_, frame) => joined.push(frame),
            }
        }
        joined
    }

    fn decode_all(bytes: &[u8], cut: usize) -> Result<Vec<Frame>, FrameError> {
        let mut decoder = Decoder::new();
        let mut come = BytesMut::new();
        let mut frames = Vec::new();
        for piece in bytes.chunks(cut.max(1)) {
            come.extend_from_slice(piece);
            while let Some(frame) = decoder.decode(&mut come)? {
                frames.push(frame);
            }
        }
        Ok(frames)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn frames_round_trip_in_any_fragments(
            frames in proptest::collection::vec(frames(), 0..12),
            cut in 1_usize..400,
        ) {
            let mut encoder = Encoder::new();
            let mut bytes = BytesMut::new();
            for frame in &frames {
                encoder.encode(frame, &mut bytes).unwrap();
            }
            let read = decode_all(&bytes, cut).unwrap();
            prop_assert_eq!(join(read), join(frames));
        }

        #[test]
        fn no_bytes_cause_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = decode_all(&bytes, 64);
        }

        /// Bytes that look like control frames get further than arbitrary ones.
        #[test]
        fn no_control_frames_cause_a_panic(
            frames in proptest::collection::vec(
                (0_u16..12, any::<u8>(), proptest::collection::vec(any::<u8>(), 0..60)), 0..8),
        ) {
            let mut bytes = BytesMut::new();
            for (kind, flags, body) in frames {
                bytes.put_u16(CONTROL | VERSION);
                bytes.put_u16(kind);
                bytes.put_u8(flags);
                bytes.put_uint(u64::try_from(body.len()).unwrap(), 3);
                bytes.put_slice(&body);
            }
            let _ = decode_all(&bytes, 17);
        }
    }

    #[test]
    fn long_data_is_split_and_long_control_frames_are_refused() {
        let mut encoder = Encoder::new();
        let mut bytes = BytesMut::new();
        let data = Frame::Data {
            id: 1,
            bytes: vec![7; 3 * PIECE + 1].into(),
            fin: true,
        };
        encoder.encode(&data, &mut bytes).unwrap();
        let frames = decode_all(&bytes, usize::MAX).unwrap();
        let fins = frames.iter().map(|frame| match frame {
            Frame::Data { fin, bytes, .. } => (bytes.len(), *fin),
            other => panic!("{other:?}"),
        });
        let expected = [(PIECE, false), (PIECE, false), (PIECE, false), (1, true)];
        assert_eq!(fins.collect::<Vec<_>>(), expected);

        let long = [0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff];
        let refused = Err(FrameError::TooLong(0x00ff_ffff));
        assert_eq!(decode_all(&long, 8), refused);
        let other = [0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1];
        assert_eq!(decode_all(&other, 12), Err(FrameError::Version(2)));
    }
}
