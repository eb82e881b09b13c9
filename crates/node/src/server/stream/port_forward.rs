//! Ports over SPDY: each connection has a stream for its data and one for what goes wrong.
//!
//! Matches v1.36 cri-streaming/pkg/streaming/portforward/httpstream.go.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use plimsoll_runtime::{Connection as PortConnection, Dial};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::spdy::{Connection, Limits, Role, Stream};

/// Connections of one client are pairs of streams.
const LIMITS: Limits = Limits {
    streams: 512,
    buffer: 64 * 1024,
};

/// How much of one direction is sent at a time.
const PIECE: usize = 32 * 1024;

/// The pod whose ports they are.
#[derive(Clone, Debug)]
pub(in crate::server) struct Target {
    pub(in crate::server) name: String,
    pub(in crate::server) uid: String,
}

/// Two streams that belong together, as far as they are open.
struct Pair {
    data: Option<Stream>,
    error: Option<Stream>,
    deadline: Instant,
}

/// A stream that makes sense.
struct Asked {
    port: u16,
    request: String,
    is_error: bool,
}

/// Connects the client's streams to ports until it goes away or nothing happens any more.
pub(super) async fn serve(
    upgraded: Upgraded,
    dial: Dial,
    target: Target,
    patience: Duration,
    idle: Duration,
) {
    let io = TokioIo::new(upgraded);
    let (connection, mut streams) = Connection::start(io, Role::Server, LIMITS);
    let link = Arc::clone(&connection.link);
    let (dial, target) = (Arc::new(dial), Arc::new(target));
    let stall = link.activity.stall(idle);
    tokio::pin!(stall);
    let mut pairs: HashMap<String, Pair> = HashMap::new();
    let mut forwards = JoinSet::new();
    loop {
        let deadline = pairs.values().map(|pair| pair.deadline).min();
        tokio::select! {
            Some(stream) = streams.recv() => {
                let Some((port, data, error)) = pair_up(&mut pairs, stream, patience).await else {
                    continue;
                };
                let (dial, target) = (Arc::clone(&dial), Arc::clone(&target));
                forwards.spawn(async move { forward(&dial, &target, port, data, error).await });
            }
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                give_up(&mut pairs, Instant::now()).await;
            }
            Some(_) = forwards.join_next(), if !forwards.is_empty() => {}
            () = link.gone.cancelled() => return,
            () = &mut stall => break,
        }
    }
    connection.close(&[], idle).await;
}

/// Takes a stream; both of a pair when it is the second.
async fn pair_up(
    pairs: &mut HashMap<String, Pair>,
    stream: Stream,
    patience: Duration,
) -> Option<(u16, Stream, Stream)> {
    let Some(asked) = asked(&stream) else {
        stream.output.reset().await;
        return None;
    };
    stream.output.accept().await.ok()?;
    let pair = pairs.entry(asked.request.clone()).or_insert_with(|| Pair {
        data: None,
        error: None,
        deadline: Instant::now() + patience,
    });
    let (place, kind) = if asked.is_error {
        (&mut pair.error, "error")
    } else {
        (&mut pair.data, "data")
    };
    if place.is_some() {
        let request = &asked.request;
        let text = format!(
            "error processing stream for request {request}: {kind} stream already assigned"
        );
        if let Some(error) = &pair.error {
            let _ = error.output.send(text.into()).await;
        }
        stream.output.reset().await;
        return None;
    }
    *place = Some(stream);
    if pair.data.is_none() || pair.error.is_none() {
        return None;
    }
    let pair = pairs.remove(&asked.request)?;
    Some((asked.port, pair.data?, pair.error?))
}

/// What a stream is for; `None` if its headers do not say.
fn asked(stream: &Stream) -> Option<Asked> {
    let port: u16 = stream.headers.get("port")?.parse().ok()?;
    let is_error = match stream.headers.get("streamtype")? {
        "error" => true,
        "data" => false,
        _ => return None,
    };
    // Clients that do not name requests open the stream for errors just before that for data.
    let named = stream.headers.get("requestid").filter(|id| !id.is_empty());
    let request = match named {
        Some(id) => id.to_owned(),
        None if is_error => stream.id.to_string(),
        None => stream.id.checked_sub(2)?.to_string(),
    };
    (port > 0).then_some(Asked {
        port,
        request,
        is_error,
    })
}

/// Reports to half a pair that it has waited too long.
async fn give_up(pairs: &mut HashMap<String, Pair>, now: Instant) {
    let late = |(_, pair): &(&String, &Pair)| pair.deadline <= now;
    let late: Vec<String> = pairs
        .iter()
        .filter(late)
        .map(|(id, _)| id.clone())
        .collect();
    for request in late {
        let Some(pair) = pairs.remove(&request) else {
            continue;
        };
        if let Some(error) = pair.error {
            let text = format!("(request={request}) timed out waiting for streams");
            let _ = error.output.send(text.into()).await;
            error.output.finish().await;
        }
        if let Some(data) = pair.data {
            data.output.reset().await;
        }
    }
}

/// One connection to a port.
async fn forward(dial: &Dial, target: &Target, port: u16, data: Stream, error: Stream) {
    let failure = match dial(port).await {
        Ok(connection) => tokio::select! {
            copied = join(connection, &data.output, data.input) => copied.err(),
            () = data.reset.cancelled() => None,
        },
        Err(error) => Some(error.chain()),
    };
    if let Some(failure) = failure {
        let Target { name, uid } = target;
        let text = format!("error forwarding port {port} to pod {name}, uid {uid}: {failure}");
        tracing::debug!(text, "failed to forward port");
        let _ = error.output.send(text.into()).await;
        data.output.reset().await;
    }
    error.output.finish().await;
}

/// Both directions, each to its own end.
async fn join(
    connection: Box<dyn PortConnection>,
    output: &super::spdy::Outflow,
    mut input: tokio::io::DuplexStream,
) -> Result<(), String> {
    let (mut from_port, mut to_port) = tokio::io::split(connection);
    let outward = async {
        loop {
            let mut piece = BytesMut::with_capacity(PIECE);
            let count = from_port.read_buf(&mut piece).await;
            if count.map_err(|error| error.to_string())? == 0 {
                output.finish().await;
                return Ok(());
            }
            let bytes: Bytes = piece.freeze();
            if output.send(bytes).await.is_err() {
                return Ok(());
            }
        }
    };
    let inward = async {
        // A port that does not listen any more may still have something to say.
        let _ = tokio::io::copy(&mut input, &mut to_port).await;
        let _ = to_port.shutdown().await;
        // Further input of the client is discarded, so that it does not block other streams.
        let _ = tokio::io::copy(&mut input, &mut tokio::io::sink()).await;
        Ok(())
    };
    tokio::try_join!(outward, inward).map(|_| ())
}
