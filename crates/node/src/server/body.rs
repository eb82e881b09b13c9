//! What travels in requests and answers.

use std::io;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::Frame;

/// The body of an answer, whatever it comes from.
pub(super) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// A whole body.
pub(super) fn full(bytes: impl Into<Bytes>) -> Body {
    let body = Full::new(bytes.into());
    body.map_err(|never| match never {}).boxed_unsync()
}

/// Nothing.
pub(super) fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A body that is made while it is sent.
pub(super) fn stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    let frames = pieces.map(|piece| Ok::<_, io::Error>(Frame::data(piece)));
    BodyExt::boxed_unsync(StreamBody::new(frames))
}
