//! A runtime's streams for a client that speaks what the runtime does not.
//!
//! Runtimes serve SPDY and the older WebSocket protocols. A client of the fifth, which can close
//! its input, is served here, out of SPDY streams to the runtime. Matches v1.36
//! apiserver/pkg/util/proxy/streamtranslator.go, which the kubelet uses for this.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use hyper_util::rt::TokioIo;
use plimsoll_runtime::{Error, Input, Output, ProcessStreams, TerminalSize};
use serde_json::Value;
use tokio::io::{AsyncReadExt, DuplexStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::agreement::{SPDY, STREAM_PROTOCOL};
use super::proxy::{PassError, exchange, refusal};
use super::session::Gone;
use super::spdy::{Connection, Headers, Limits, Outflow, Role, Stream};
use crate::server::answer::Refusal;
use crate::server::command::Wanted;

const LIMITS: Limits = Limits {
    streams: 16,
    buffer: 256 * 1024,
};

/// Longer than any status.
const MAX_STATUS: u64 = 64 * 1024;

/// How long the runtime may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What runtimes put before the reason, and the server puts there again.
const PREFIXES: [&str; 3] = [
    "Internal error occurred: ",
    "error executing command in container: ",
    "error attaching to container: ",
];

/// The streams of a process that the runtime serves at this address.
pub(in crate::server) async fn translate(
    url: &str,
    wanted: Wanted,
) -> Result<Box<ProcessStreams>, Refusal> {
    let mut headers = HeaderMap::new();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(SPDY));
    let protocol = HeaderValue::from_static("v4.channel.k8s.io");
    headers.insert(STREAM_PROTOCOL, protocol);
    let asked = timeout(PATIENCE, exchange(url, Method::POST, headers)).await;
    let mut response = asked.unwrap_or(Err(PassError::Late))?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(Box::new(refusal(response).await));
    }
    let upgraded = hyper::upgrade::on(&mut response).await;
    let io = TokioIo::new(upgraded.map_err(PassError::Exchange)?);
    let (connection, _) = Connection::start(io, Role::Client, LIMITS);
    let opened = open(connection, wanted).await;
    Ok(Box::new(opened.map_err(|Gone| PassError::Late)?))
}

async fn open(mut connection: Connection, wanted: Wanted) -> Result<ProcessStreams, Gone> {
    let mut error = named(&mut connection, "error").await?;
    let mut stdin = None;
    if wanted.stdin {
        let stream = named(&mut connection, "stdin").await?;
        let (near, far) = tokio::io::duplex(LIMITS.buffer);
        tokio::spawn(send_input(far, stream));
        stdin = Some(Box::new(near) as Input);
    }
    let mut stdout = None;
    if wanted.stdout {
        let stream = named(&mut connection, "stdout").await?;
        stdout = Some(output(stream));
    }
    let mut stderr = None;
    if wanted.stderr {
        let stream = named(&mut connection, "stderr").await?;
        stderr = Some(output(stream));
    }
    let mut resize = None;
    if wanted.tty {
        let stream = named(&mut connection, "resize").await?;
        let (sizes, changes) = mpsc::channel(1);
        tokio::spawn(send_sizes(changes, stream.output));
        resize = Some(sizes);
    }
    let exit = Box::pin(async move {
        let mut status = Vec::new();
        let mut error = (&mut error.input).take(MAX_STATUS);
        let _ = error.read_to_end(&mut status).await;
        // All output arrives before the status; the connection is done.
        drop(connection);
        exit_code(&status)
    });
    Ok(ProcessStreams {
        stdin,
        stdout,
        stderr,
        resize,
        exit,
    })
}

async fn named(connection: &mut Connection, kind: &str) -> Result<Stream, Gone> {
    let header = ("streamtype".to_owned(), kind.to_owned());
    connection.open(Headers(vec![header])).await
}

fn output(stream: Stream) -> Output {
    Box::new(stream.input)
}

async fn send_input(mut from: DuplexStream, to: Stream) {
    let mut piece = BytesMut::new();
    while let Ok(1..) = from.read_buf(&mut piece).await {
        if to.output.send(piece.split().freeze()).await.is_err() {
            return;
        }
    }
    to.output.finish().await;
}

async fn send_sizes(mut from: mpsc::Receiver<TerminalSize>, to: Outflow) {
    while let Some(TerminalSize { width, height }) = from.recv().await {
        let size = format!("{{\"Width\":{width},\"Height\":{height}}}\n");
        if to.send(Bytes::from(size)).await.is_err() {
            return;
        }
    }
}

/// What a status of the runtime says.
fn exit_code(status: &[u8]) -> Result<i32, Error> {
    let Ok(status) = serde_json::from_slice::<Value>(status) else {
        let text = "the runtime did not say how the command ended".to_owned();
        return Err(Error::Invalid(text));
    };
    if status["status"] == "Success" {
        return Ok(0);
    }
    let causes = status["details"]["causes"].as_array();
    let mut causes = causes.into_iter().flatten();
    let code = causes.find(|cause| cause["reason"] == "ExitCode");
    let code = code.and_then(|cause| cause["message"].as_str()?.parse().ok());
    if let Some(code) = code {
        return Ok(code);
    }
    let mut message = status["message"].as_str().unwrap_or_default();
    for prefix in PREFIXES {
        message = message.strip_prefix(prefix).unwrap_or(message);
    }
    Err(Error::Invalid(message.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtimes_status_is_an_exit_code_or_a_reason() {
        let exit = |text: &str| exit_code(text.as_bytes()).map_err(|error| error.to_string());
        assert_eq!(exit(r#"{"metadata":{},"status":"Success"}"#), Ok(0));
        let failed = r#"{"status":"Failure","reason":"NonZeroExitCode",
            "details":{"causes":[{"reason":"ExitCode","message":"9"}]}}"#;
        assert_eq!(exit(failed), Ok(9));
        let broken = r#"{"status":"Failure","message":
            "Internal error occurred: error executing command in container: no such file"}"#;
        assert_eq!(exit(broken), Err("no such file".to_owned()));
        let nothing = "the runtime did not say how the command ended".to_owned();
        assert_eq!(exit(""), Err(nothing));
    }
}
