//! The clients of a monitor.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::super::super::frame::{self, Kind, Request};
use super::super::super::job::Resize;
use super::super::log::Stream;
use super::streams::Streams;

/// Output queued for a client before the container's output is held back for it.
const MAX_PENDING: usize = 256 * 1024;
/// A client that reads nothing for so long is disconnected: it must not block the container.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct Clients {
    clients: Vec<Client>,
}

#[derive(Debug)]
struct Client {
    socket: UnixStream,
    reader: frame::Reader,
    wants: Wants,
    pending: Vec<u8>,
    /// When it last read something, or had nothing to read.
    last_progress: Instant,
    /// Whether it is done once all is sent.
    is_leaving: bool,
}

/// The streams that a client has requested.
#[derive(Clone, Copy, Debug, Default)]
struct Wants {
    stdin: bool,
    stdout: bool,
    stderr: bool,
}

impl Clients {
    pub(super) fn add(&mut self, socket: UnixStream) {
        if socket.set_nonblocking(true).is_ok() {
            self.clients.push(Client {
                socket,
                reader: frame::Reader::default(),
                wants: Wants::default(),
                pending: Vec::new(),
                last_progress: Instant::now(),
                is_leaving: false,
            });
        }
    }

    /// What to wait for; as many as [`Self::handle`] is given events of.
    pub(super) fn polled(&self, takes_input: bool) -> Vec<PollFd<'_>> {
        let polled = self.clients.iter().map(|client| {
            let mut events = PollFlags::empty();
            events.set(PollFlags::IN, takes_input || !client.wants.stdin);
            events.set(PollFlags::OUT, !client.pending.is_empty());
            PollFd::new(&client.socket, events)
        });
        polled.collect()
    }

    pub(super) fn have_pending(&self) -> bool {
        self.clients.iter().any(|client| !client.pending.is_empty())
    }

    pub(super) fn are_behind(&self) -> bool {
        self.clients
            .iter()
            .any(|client| client.pending.len() > MAX_PENDING)
    }

    /// When to check for clients that stopped reading.
    pub(super) fn next_check(&self) -> Option<Duration> {
        self.have_pending().then_some(CLIENT_TIMEOUT)
    }

    /// Passes output on to all clients that want it.
    pub(super) fn output(&mut self, stream: Stream, bytes: &[u8]) {
        for client in &mut self.clients {
            let kind = match stream {
                Stream::Stdout if client.wants.stdout => Kind::Stdout,
                Stream::Stderr if client.wants.stderr => Kind::Stderr,
                _ => continue,
            };
            client.send(kind, bytes);
        }
    }

    pub(super) fn handle(&mut self, events: &[PollFlags], streams: &mut Streams) {
        let now = Instant::now();
        let mut events = events.iter();
        self.clients.retain_mut(|client| {
            let events = events.next().copied().unwrap_or(PollFlags::empty());
            let stays = client.handle(events, streams, now);
            if !stays && client.wants.stdin {
                streams.end_input();
            }
            stays
        });
    }
}

impl Client {
    fn send(&mut self, kind: Kind, bytes: &[u8]) {
        if self.pending.is_empty() {
            self.last_progress = Instant::now();
        }
        frame::write(kind, bytes, &mut self.pending);
        // Most of the time it can be sent at once; errors show when it is read from.
        let _ = self.flush();
    }

    fn flush(&mut self) -> std::io::Result<()> {
        while !self.pending.is_empty() {
            match self.socket.write(&self.pending) {
                Ok(written) => {
                    self.pending.drain(..written);
                    self.last_progress = Instant::now();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Handles events of the client; false when it has disconnected.
    fn handle(&mut self, events: PollFlags, streams: &mut Streams, now: Instant) -> bool {
        if self.flush().is_err() {
            return false;
        }
        if self.pending.is_empty() {
            if self.is_leaving {
                return false;
            }
        } else if now.duration_since(self.last_progress) >= CLIENT_TIMEOUT {
            return false;
        }
        if !events.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            return true;
        }
        self.receive(streams)
    }

    fn receive(&mut self, streams: &mut Streams) -> bool {
        let mut buffer = [0; 8 * 1024];
        match self.socket.read(&mut buffer) {
            Ok(0) => return false,
            Ok(length) => self.reader.push(&buffer[..length]),
            Err(error) => {
                return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
            }
        }
        loop {
            match self.reader.next() {
                Ok(None) => return true,
                Ok(Some((kind, payload))) => self.handle_frame(kind, &payload, streams),
                Err(frame::Malformed) => return false,
            }
        }
    }

    fn handle_frame(&mut self, kind: Kind, payload: &[u8], streams: &mut Streams) {
        match kind {
            Kind::Request => match serde_json::from_slice(payload) {
                Ok(Request::Attach {
                    stdin,
                    stdout,
                    stderr,
                }) => {
                    self.wants = Wants {
                        stdin,
                        stdout,
                        stderr,
                    };
                }
                Ok(Request::ReopenLog) => {
                    let message = streams.reopen_log().err();
                    let message = message.map(|error| error.to_string()).unwrap_or_default();
                    self.is_leaving = true;
                    self.send(Kind::Done, message.as_bytes());
                }
                Err(_) => self.is_leaving = true,
            },
            Kind::Stdin if self.wants.stdin => streams.push_input(payload),
            Kind::StdinEnd if self.wants.stdin => {
                self.wants.stdin = false;
                streams.end_input();
            }
            Kind::Resize => {
                if let Ok(Resize { width, height }) = serde_json::from_slice(payload) {
                    streams.resize(width, height);
                }
            }
            _ => {}
        }
    }
}
