//! What travels in requests and answers, here and to nodes.

use bytes::Bytes;
use futures::Stream;
use futures::StreamExt;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::Frame;

/// What goes wrong while a body travels.
pub type BodyError = std::io::Error;

/// The body of a request or an answer, whatever it comes from.
pub type Body = UnsyncBoxBody<Bytes, BodyError>;

/// A whole body.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// Nothing.
pub fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A body that is made while it is sent.
pub fn stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    let frames = pieces.map(|piece| Ok::<_, BodyError>(Frame::data(piece)));
    BodyExt::boxed_unsync(StreamBody::new(frames))
}

/// A body that keeps something until it has been sent or dropped.
pub(crate) fn with(body: Body, kept: impl Send + 'static) -> Body {
    let body = body.map_frame(move |frame| {
        let _ = &kept;
        frame
    });
    BodyExt::boxed_unsync(body)
}
