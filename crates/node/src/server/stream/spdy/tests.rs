//! Connections over pipes instead of sockets.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::frame::{Decoder, Encoder, Frame, ResetStatus};
use super::{Connection, Headers, Limits, Role, Stream};

const IDLE: Duration = Duration::from_secs(3600);

const LIMITS: Limits = Limits {
    streams: 4,
    buffer: 100_000,
};

/// The other side of a server, frame by frame.
struct Peer<I = DuplexStream> {
    io: I,
    encoder: Encoder,
    decoder: Decoder,
    come: BytesMut,
}

impl Peer {
    fn new() -> (Peer, Connection, mpsc::Receiver<Stream>) {
        Peer::with_room(1 << 20)
    }

    /// With so much under way at most.
    fn with_room(bytes: usize) -> (Peer, Connection, mpsc::Receiver<Stream>) {
        let (near, far) = tokio::io::duplex(bytes);
        let (connection, streams) = Connection::start(far, Role::Server, LIMITS);
        (Peer::over(near), connection, streams)
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> Peer<I> {
    fn over(io: I) -> Peer<I> {
        Peer {
            io,
            encoder: Encoder::new(),
            decoder: Decoder::new(),
            come: BytesMut::new(),
        }
    }

    async fn say(&mut self, frame: Frame) {
        let mut bytes = BytesMut::new();
        self.encoder.encode(&frame, &mut bytes).unwrap();
        self.io.write_all(&bytes).await.unwrap();
    }

    /// The next frame, or `None` at the end.
    async fn hear(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.decoder.decode(&mut self.come).unwrap() {
                return Some(frame);
            }
            let read = self.io.read_buf(&mut self.come);
            let read = timeout(Duration::from_secs(120), read).await;
            if read.expect("something comes").ok()? == 0 {
                return None;
            }
        }
    }
}

fn open(id: u32) -> Frame {
    let headers = Headers(vec![("streamtype".to_owned(), "data".to_owned())]);
    let fin = false;
    Frame::SynStream { id, headers, fin }
}

fn data(id: u32, length: usize) -> Frame {
    let (bytes, fin) = (Bytes::from(vec![7; length]), false);
    Frame::Data { id, bytes, fin }
}

fn reset(id: u32, status: ResetStatus) -> Frame {
    let status = status as u32;
    Frame::Reset { id, status }
}

#[tokio::test(start_paused = true)]
async fn window_updates_follow_consumed_bytes() {
    let (mut peer, _connection, mut streams) = Peer::new();
    peer.say(open(1)).await;
    let mut stream = streams.recv().await.unwrap();
    stream.output.accept().await.unwrap();
    assert!(matches!(
        peer.hear().await,
        Some(Frame::SynReply { id: 1, .. })
    ));
    peer.say(data(1, 40_000)).await;
    let mut taken = vec![0; 40_000];
    stream.input.read_exact(&mut taken).await.unwrap();
    // For the connection and for the stream. The rest is below what a grant is worth.
    for id in [0, 1] {
        let delta = 32 * 1024;
        let grant = Frame::WindowUpdate { id, delta };
        assert_eq!(peer.hear().await, Some(grant));
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_and_too_many_streams_are_refused() {
    let (mut peer, _connection, mut streams) = Peer::new();
    let mut open_streams = Vec::new();
    for id in [1, 3, 5, 7] {
        peer.say(open(id)).await;
        open_streams.push(streams.recv().await.unwrap());
    }
    peer.say(open(9)).await;
    let refused = reset(9, ResetStatus::RefusedStream);
    assert_eq!(peer.hear().await, Some(refused));
    // Even ones are ours, and numbers only grow.
    for id in [2, 9, 5] {
        peer.say(open(id)).await;
        let wrong = reset(id, ResetStatus::ProtocolError);
        assert_eq!(peer.hear().await, Some(wrong));
    }
    // Streams that are no longer held make room.
    open_streams.pop();
    peer.say(open(11)).await;
    assert_eq!(streams.recv().await.unwrap().id, 11);
}

#[tokio::test(start_paused = true)]
async fn reset_ends_one_stream_and_leaves_the_others_open() {
    let (mut peer, _connection, mut streams) = Peer::new();
    peer.say(open(1)).await;
    peer.say(open(3)).await;
    let mut first = streams.recv().await.unwrap();
    let mut second = streams.recv().await.unwrap();
    let fin = Frame::Data {
        id: 1,
        bytes: Bytes::from_static(b"all"),
        fin: true,
    };
    peer.say(fin).await;
    let mut text = String::new();
    first.input.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "all");
    // Even after its end the other side may lose interest.
    peer.say(reset(1, ResetStatus::Cancel)).await;
    first.reset.cancelled().await;
    peer.say(data(1, 10)).await;
    peer.say(data(3, 2)).await;
    let mut two = [0; 2];
    second.input.read_exact(&mut two).await.unwrap();
    assert!(!second.reset.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn pings_are_answered_and_sent() {
    let (mut peer, _connection, _streams) = Peer::new();
    peer.say(Frame::Other).await;
    peer.say(Frame::Ping(5)).await;
    assert_eq!(peer.hear().await, Some(Frame::Ping(5)));
    // The next one is ours, and its answer is not answered.
    assert_eq!(peer.hear().await, Some(Frame::Ping(2)));
    peer.say(Frame::Ping(2)).await;
    peer.say(Frame::Ping(7)).await;
    assert_eq!(peer.hear().await, Some(Frame::Ping(7)));
}

#[tokio::test(start_paused = true)]
async fn closed_peer_is_noticed_while_its_input_is_blocked() {
    let (mut peer, connection, mut streams) = Peer::new();
    peer.say(open(1)).await;
    let _stream = streams.recv().await.unwrap();
    // The stream is not read, so the reader waits.
    peer.say(data(1, 500_000)).await;
    drop(peer);
    let missed = connection.link.gone.cancelled();
    timeout(Duration::from_secs(120), missed).await.unwrap();
}

/// A runtime says all it has and closes at once, while a slow client still has to take it.
#[tokio::test]
async fn data_sent_before_a_close_is_delivered() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await;
    let (client, (runtime, _)) = (client.unwrap(), listener.accept().await.unwrap());
    let (mut connection, _streams) = Connection::start(client, Role::Client, LIMITS);
    let mut runtime = Peer::over(runtime);
    let runtime = tokio::spawn(async move {
        for id in [1, 3] {
            assert!(matches!(
                runtime.hear().await,
                Some(Frame::SynStream { .. })
            ));
            let (headers, fin) = (Headers::default(), false);
            runtime.say(Frame::SynReply { id, headers, fin }).await;
        }
        for _ in 0..10 {
            runtime.say(data(3, 30_000)).await;
        }
        runtime.say(data(1, 7)).await;
        for id in [1, 3] {
            runtime.say(reset(id, ResetStatus::Cancel)).await;
        }
    });
    let mut status = connection.open(Headers::default()).await.unwrap();
    let mut output = connection.open(Headers::default()).await.unwrap();
    runtime.await.unwrap();
    let mut said = Vec::new();
    output.input.read_to_end(&mut said).await.unwrap();
    assert_eq!(said.len(), 300_000);
    let mut said = Vec::new();
    status.input.read_to_end(&mut said).await.unwrap();
    assert_eq!(said.len(), 7);
}

#[tokio::test(start_paused = true)]
async fn goaway_names_the_last_stream_and_is_awaited() {
    let (mut peer, connection, mut streams) = Peer::new();
    peer.say(open(1)).await;
    let stream = streams.recv().await.unwrap();
    stream.output.finish().await;
    let closing = tokio::spawn(async move { connection.close(&[], IDLE).await });
    let end = Frame::Data {
        id: 1,
        bytes: Bytes::new(),
        fin: true,
    };
    assert_eq!(peer.hear().await, Some(end));
    assert_eq!(peer.hear().await, Some(Frame::GoAway { last: 1 }));
    assert_eq!(peer.hear().await, None);
    drop(peer);
    timeout(Duration::from_secs(1), closing)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn slow_peer_receives_all_data_before_the_close() {
    let (mut peer, connection, mut streams) = Peer::with_room(200);
    peer.say(open(1)).await;
    let stream = streams.recv().await.unwrap();
    let closing = tokio::spawn(async move {
        for _ in 0..50 {
            let piece = Bytes::from(vec![7; 100]);
            stream.output.send(piece).await.unwrap();
        }
        stream.output.finish().await;
        connection.close(&[], IDLE).await;
    });
    let mut heard = 0;
    loop {
        tokio::time::advance(Duration::from_secs(20)).await;
        match peer.hear().await {
            Some(Frame::Data { bytes, .. }) => heard += bytes.len(),
            Some(Frame::Ping(_)) => {}
            Some(Frame::GoAway { .. }) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(heard, 5000);
    drop(peer);
    closing.await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever comes, the connection ends when the bytes do.
    #[test]
    fn no_bytes_cause_a_hang_or_panic(
        pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..8),
        opened in proptest::collection::vec(0_u32..12, 0..6),
    ) {
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build();
        tokio.unwrap().block_on(async {
            let (mut peer, connection, mut streams) = Peer::new();
            tokio::spawn(async move {
                while let Some(mut stream) = streams.recv().await {
                    let _ = stream.output.accept().await;
                    tokio::spawn(async move {
                        let mut said = Vec::new();
                        let _ = stream.input.read_to_end(&mut said).await;
                        stream.output.finish().await;
                    });
                }
            });
            for id in opened {
                peer.say(open(id)).await;
            }
            for piece in pieces {
                if peer.io.write_all(&piece).await.is_err() {
                    break;
                }
            }
            let _ = peer.io.shutdown().await;
            let mut rest = Vec::new();
            let reading = peer.io.read_to_end(&mut rest);
            let gone = connection.link.gone.cancelled();
            let both = async {
                tokio::select! {
                    () = gone => {}
                    _ = reading => {}
                }
            };
            timeout(Duration::from_secs(60), both).await.unwrap();
        });
    }
}
