//! Bodies of requests and responses, here and to nodes.

use bytes::Bytes;
use futures::Stream;
use futures::StreamExt;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::Frame;

/// An error while a body is transferred.
pub type BodyError = std::io::Error;

/// The body of a request or a response, whatever its source.
pub type Body = UnsyncBoxBody<Bytes, BodyError>;

/// A complete body.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// An empty body.
pub fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A body that is generated while it is sent.
pub fn stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    let frames = pieces.map(|piece| Ok::<_, BodyError>(Frame::data(piece)));
    BodyExt::boxed_unsync(StreamBody::new(frames))
}

/// A body that holds a value until it has been sent or dropped.
pub(crate) fn with(body: Body, kept: impl Send + 'static) -> Body {
    let body = body.map_frame(move |frame| {
        let _ = &kept;
        frame
    });
    BodyExt::boxed_unsync(body)
}
