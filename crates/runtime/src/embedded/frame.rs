//! The protocol between agent and monitor: frames of a kind, a length and so many bytes.

use serde::{Deserialize, Serialize};

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The request to the monitor, as JSON; first on each connection.
    Request,
    /// Bytes for the container.
    Stdin,
    /// No more bytes for the container.
    StdinEnd,
    /// A new size of the terminal, as JSON.
    Resize,
    /// Bytes out of the container.
    Stdout,
    Stderr,
    /// The answer to a request that is done at once: empty, or what went wrong.
    Done,
}

const KINDS: [Kind; 7] = [
    Kind::Request,
    Kind::Stdin,
    Kind::StdinEnd,
    Kind::Resize,
    Kind::Stdout,
    Kind::Stderr,
    Kind::Done,
];

/// Longest frame; a client that sends a longer one is disconnected.
const MAX_PAYLOAD: usize = 64 * 1024;
const HEADER: usize = 5;

/// The requests that a monitor serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Request {
    /// Join the streams of the first process.
    Attach {
        stdin: bool,
        stdout: bool,
        stderr: bool,
    },
    /// Reopen the log.
    ReopenLog,
}

/// Appends a frame, or several if the payload is long.
pub(super) fn write(kind: Kind, payload: &[u8], out: &mut Vec<u8>) {
    let mut write_one = |part: &[u8]| {
        let number = KINDS.iter().position(|other| *other == kind);
        out.push(
            number
                .and_then(|number| u8::try_from(number).ok())
                .unwrap_or(u8::MAX),
        );
        let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(part);
    };
    if payload.is_empty() {
        write_one(payload);
    }
    payload.chunks(MAX_PAYLOAD).for_each(&mut write_one);
}

/// Puts frames together from bytes as they come.
#[derive(Debug, Default)]
pub(super) struct Reader {
    bytes: Vec<u8>,
}

/// Bytes that are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed frame")]
pub(super) struct Malformed;

impl Reader {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame.
    pub(super) fn next(&mut self) -> Result<Option<(Kind, Vec<u8>)>, Malformed> {
        let Some((header, rest)) = self.bytes.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let [number, length @ ..] = header;
        let kind = *KINDS.get(usize::from(*number)).ok_or(Malformed)?;
        let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| Malformed)?;
        if length > MAX_PAYLOAD {
            return Err(Malformed);
        }
        if rest.len() < length {
            return Ok(None);
        }
        let payload = rest[..length].to_vec();
        self.bytes.drain(..HEADER + length);
        Ok(Some((kind, payload)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_round_trip_in_any_fragments() {
        let long = vec![7; MAX_PAYLOAD + 1];
        let mut bytes = Vec::new();
        write(Kind::Stdin, b"hello", &mut bytes);
        write(Kind::StdinEnd, b"", &mut bytes);
        write(Kind::Stdout, &long, &mut bytes);
        for cut in [1, 7, 1000, bytes.len()] {
            let mut reader = Reader::default();
            let mut frames = Vec::new();
            for chunk in bytes.chunks(cut) {
                reader.push(chunk);
                while let Some(frame) = reader.next().unwrap() {
                    frames.push(frame);
                }
            }
            assert_eq!(frames[0], (Kind::Stdin, b"hello".to_vec()));
            assert_eq!(frames[1], (Kind::StdinEnd, Vec::new()));
            let lengths: Vec<usize> = frames[2..].iter().map(|(_, bytes)| bytes.len()).collect();
            assert_eq!(lengths, [MAX_PAYLOAD, 1]);
        }
    }

    #[test]
    fn malformed_frames_are_refused() {
        for bytes in [[99, 0, 0, 0, 0], [1, 0xff, 0, 0, 0]] {
            let mut reader = Reader::default();
            reader.push(&bytes);
            assert_eq!(reader.next(), Err(Malformed));
        }
    }
}
