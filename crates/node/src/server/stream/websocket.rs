//! The streams of a process over a WebSocket: each message begins with its channel.
//!
//! Matches v1.36 streaming/pkg/httpstream/wsstream and
//! cri-streaming/pkg/streaming/remotecommand/websocket.go.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut, Bytes, BytesMut};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use plimsoll_runtime::TerminalSize;
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

use super::agreement::Encoding;
use super::session::{Client, Gone, Link, Outlet};
use super::sizes::Sizes;
use super::status::Form;
use crate::server::command::Wanted;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// Closes the channel of the next byte; only in the fifth version.
const CLOSE: u8 = 255;

/// A message must fit into memory whole; clients send a few kilobytes.
const MAX_MESSAGE: usize = 1 << 20;

/// Input that the process has not taken yet.
const MAX_INPUT: usize = 256 * 1024;

/// Messages that the client has not taken yet.
const MAX_QUEUE: usize = 4;

/// How often the client is pinged. One that is gone while its input is stuck
/// would else not be missed.
const HEARTBEAT: Duration = Duration::from_secs(30);

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// A WebSocket and the tasks that move it along.
pub(super) struct Connection {
    reader: JoinHandle<()>,
    writer: JoinHandle<()>,
    outgoing: mpsc::Sender<Message>,
    link: Arc<Link>,
}

/// A channel towards the client.
pub(super) struct Channel {
    number: u8,
    encoding: Encoding,
    outgoing: mpsc::Sender<Message>,
}

impl Channel {
    pub(super) async fn send(&self, bytes: Bytes) -> Result<(), Gone> {
        let message = encode(self.encoding, self.number, &bytes);
        self.outgoing.send(message).await.map_err(|_| Gone)
    }
}

/// Opens the channels of a client.
pub(super) async fn open(
    upgraded: Upgraded,
    protocol: &str,
    encoding: Encoding,
    wanted: Wanted,
) -> (Client, Connection) {
    let config = WebSocketConfig::default()
        .read_buffer_size(32 * 1024)
        .write_buffer_size(0)
        .max_write_buffer_size(2 * MAX_MESSAGE)
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    let io = TokioIo::new(upgraded);
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let (sink, stream) = socket.split();

    let link = Arc::new(Link::default());
    let (outgoing, queue) = mpsc::channel(MAX_QUEUE);
    let (stdin, input) = tokio::io::duplex(MAX_INPUT);
    let (resize, sizes) = watch::channel(None);
    let reader = Reader {
        encoding,
        closes_streams: protocol == "v5.channel.k8s.io",
        stdin: wanted.stdin.then_some(stdin),
        resize,
        sizes: Sizes::default(),
        link: Arc::clone(&link),
    };
    let connection = Connection {
        reader: tokio::spawn(reader.run(stream)),
        writer: tokio::spawn(write(queue, sink, Arc::clone(&link))),
        outgoing: outgoing.clone(),
        link: Arc::clone(&link),
    };
    let channel = |number| {
        Outlet::WebSocket(Channel {
            number,
            encoding,
            outgoing: outgoing.clone(),
        })
    };
    let client = Client {
        stdin: wanted.stdin.then_some(input),
        stdout: wanted.stdout.then(|| channel(STDOUT)),
        stderr: wanted.stderr.then(|| channel(STDERR)),
        error: channel(ERROR),
        form: if protocol.starts_with('v') {
            Form::Json
        } else {
            Form::Text
        },
        resize: Some(Box::pin(futures::stream::unfold(sizes, next_size))),
        link,
    };
    // An empty message on the lowest channel reports to the client that the connection is established.
    let outputs = [client.stdout.as_ref(), client.stderr.as_ref()];
    let lowest = outputs.into_iter().flatten().next();
    let _ = lowest.unwrap_or(&client.error).send(Bytes::new()).await;
    (client, connection)
}

/// The terminal follows the newest size; those in between may be passed over.
async fn next_size(
    mut sizes: watch::Receiver<Option<TerminalSize>>,
) -> Option<(TerminalSize, watch::Receiver<Option<TerminalSize>>)> {
    loop {
        sizes.changed().await.ok()?;
        let newest = *sizes.borrow_and_update();
        if let Some(size) = newest {
            return Some((size, sizes));
        }
    }
}

impl Connection {
    /// Says goodbye when all that was said before has been taken, which may last as long as
    /// something moves; then waits a little for the client to do so.
    pub(super) async fn close(mut self, idle: Duration) {
        // Without a reason, clients take it for an accident.
        let normally = CloseFrame {
            code: CloseCode::Normal,
            reason: "".into(),
        };
        let taken = async {
            let _ = self.outgoing.send(Message::Close(Some(normally))).await;
            let _ = (&mut self.writer).await;
        };
        self.link.part(taken, idle).await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reader.abort();
        self.writer.abort();
    }
}

async fn write(
    mut queue: mpsc::Receiver<Message>,
    mut sink: SplitSink<Socket, Message>,
    link: Arc<Link>,
) {
    let mut heartbeat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    loop {
        let next = tokio::select! {
            next = queue.recv() => next,
            _ = heartbeat.tick() => Some(Message::Ping(Bytes::new())),
        };
        let Some(message) = next else {
            return;
        };
        let (is_last, is_beat) = (message.is_close(), message.is_ping());
        if sink.send(message).await.is_err() {
            link.gone.cancel();
            return;
        }
        if !is_beat {
            link.activity.note();
        }
        if is_last {
            return;
        }
    }
}

struct Reader {
    encoding: Encoding,
    closes_streams: bool,
    stdin: Option<DuplexStream>,
    resize: watch::Sender<Option<TerminalSize>>,
    sizes: Sizes,
    link: Arc<Link>,
}

impl Reader {
    /// Hands on what the client says until it is gone.
    async fn run(mut self, mut stream: SplitStream<Socket>) {
        let link = Arc::clone(&self.link);
        while let Some(Ok(message)) = stream.next().await {
            if !message.is_pong() {
                link.activity.note();
            }
            let bytes = match message {
                Message::Binary(bytes) => bytes,
                Message::Text(text) => Bytes::from(text),
                Message::Close(_) => break,
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
            };
            if !self.take(&bytes).await {
                break;
            }
        }
        link.gone.cancel();
    }

    /// Takes one message; `false` if the client does not keep to the protocol.
    async fn take(&mut self, message: &[u8]) -> bool {
        let Some((&first, rest)) = message.split_first() else {
            return true;
        };
        if self.closes_streams && first == CLOSE {
            let [channel @ STDIN..=RESIZE] = rest else {
                return false;
            };
            if *channel == STDIN {
                self.stdin = None;
            }
            return true;
        }
        let (channel, decoded);
        let data = match self.encoding {
            Encoding::Binary => {
                channel = first;
                rest
            }
            Encoding::Base64 => {
                channel = first.wrapping_sub(b'0');
                decoded = STANDARD.decode(rest).unwrap_or_default();
                &decoded
            }
        };
        match channel {
            STDIN => {
                if let Some(stdin) = &mut self.stdin
                    && stdin.write_all(data).await.is_err()
                {
                    self.stdin = None;
                }
            }
            RESIZE => {
                if let Some(size) = self.sizes.read(data) {
                    self.resize.send_replace(Some(size));
                }
            }
            _ => {}
        }
        true
    }
}

fn encode(encoding: Encoding, channel: u8, bytes: &[u8]) -> Message {
    match encoding {
        Encoding::Binary => {
            let mut message = BytesMut::with_capacity(1 + bytes.len());
            message.put_u8(channel);
            message.put_slice(bytes);
            Message::Binary(message.freeze())
        }
        Encoding::Base64 => {
            let mut message = String::from(char::from(b'0' + channel));
            STANDARD.encode_string(bytes, &mut message);
            Message::text(message)
        }
    }
}
