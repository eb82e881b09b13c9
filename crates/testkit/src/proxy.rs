//! A network between clients and a server that can be cut, slowed down, and made to lose what goes one
//! way. Its address stays the same when the server restarts elsewhere.
//!
//! What is lost waits, as TCP sends it again until it arrives: connections outlive a short loss, and
//! no new ones are made meanwhile.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked whether there is a client.
const ACCEPT_EVERY: Duration = Duration::from_millis(5);

/// Pieces on their way in one direction of a connection.
const ON_THE_WAY: usize = 256;

/// How the network is in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// As networks are.
    Fine,
    /// What is sent waits; no connection ends.
    Cut,
    /// What is sent arrives later: by the first, and up to the second more.
    Slow(Duration, Duration),
}

/// A network to one server.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    to_server: Link,
    to_client: Link,
    server: SocketAddr,
    /// Connections of earlier numbers are dead, and neither side learns of it.
    generation: u64,
    is_over: bool,
    /// To end them.
    connections: Vec<TcpStream>,
}

#[derive(Clone, Copy, Debug)]
enum Direction {
    ToServer,
    ToClient,
}

impl Proxy {
    /// A network to that server, at an address of its own.
    ///
    /// # Errors
    ///
    /// If there is no address to be had.
    pub fn start(server: SocketAddr) -> io::Result<Proxy> {
        Proxy::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), server)
    }

    /// A network to that server, at this address.
    ///
    /// # Errors
    ///
    /// If the address is taken.
    pub fn start_at(address: SocketAddr, server: SocketAddr) -> io::Result<Proxy> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let state = State {
            to_server: Link::Fine,
            to_client: Link::Fine,
            server,
            generation: 0,
            is_over: false,
            connections: Vec::new(),
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &accepting));
        Ok(Proxy { address, shared })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets both directions.
    pub fn set_link(&self, link: Link) {
        self.set_links(link, link);
    }

    /// Sets each direction.
    pub fn set_links(&self, to_server: Link, to_client: Link) {
        self.change(|state| {
            state.to_server = to_server;
            state.to_client = to_client;
        });
    }

    /// New connections go there.
    pub fn set_server(&self, server: SocketAddr) {
        self.change(|state| state.server = server);
    }

    /// Nothing arrives any more on the connections that there are, and neither side learns of it: what
    /// happens when a machine between both ends is exchanged.
    pub fn forget_connections(&self) {
        self.change(|state| state.generation += 1);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.shared.state());
        self.shared.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.change(|state| {
            state.is_over = true;
            for connection in &state.connections {
                // Fails only if it has ended already.
                let _ = connection.shutdown(Shutdown::Both);
            }
        });
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `look` finds something; nothing if it is over.
    fn wait_for<T>(&self, look: impl Fn(&State) -> Option<T>) -> Option<T> {
        let mut state = self.state();
        loop {
            if state.is_over {
                return None;
            }
            if let Some(found) = look(&state) {
                return Some(found);
            }
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl State {
    fn link(&self, direction: Direction) -> Link {
        match direction {
            Direction::ToServer => self.to_server,
            Direction::ToClient => self.to_client,
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while !shared.state().is_over {
        match listener.accept() {
            Ok((client, _)) => {
                let shared = Arc::clone(shared);
                thread::spawn(move || connect(client, &shared));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(ACCEPT_EVERY),
            Err(_) => return,
        }
    }
}

/// A connection is made of packets in both directions.
fn connect(client: TcpStream, shared: &Arc<Shared>) -> Option<()> {
    client.set_nonblocking(false).ok()?;
    let (server, generation) = shared.wait_for(|state| {
        let is_whole = state.to_server != Link::Cut && state.to_client != Link::Cut;
        is_whole.then_some((state.server, state.generation))
    })?;
    let server = TcpStream::connect(server).ok()?;
    for (from, to, direction) in [
        (&client, &server, Direction::ToServer),
        (&server, &client, Direction::ToClient),
    ] {
        let (from, to) = (from.try_clone().ok()?, to.try_clone().ok()?);
        let _ = from.set_nodelay(true);
        shared.state().connections.push(from.try_clone().ok()?);
        let (sender, receiver) = sync_channel(ON_THE_WAY);
        let shared_too = Arc::clone(shared);
        let shared = Arc::clone(shared);
        thread::spawn(move || take_in(from, direction, &shared, &sender));
        thread::spawn(move || deliver(&to, direction, generation, &shared_too, &receiver));
    }
    Some(())
}

/// A piece, and when it arrives.
type Piece = (Instant, Vec<u8>);

fn take_in(mut from: TcpStream, direction: Direction, shared: &Shared, on: &SyncSender<Piece>) {
    let mut buffer = vec![0; 64 * 1024];
    let mut last = Instant::now();
    while let Ok(length) = from.read(&mut buffer) {
        if length == 0 {
            return;
        }
        let delay = match shared.state().link(direction) {
            Link::Slow(delay, jitter) => delay + jitter.mul_f64(random()),
            Link::Fine | Link::Cut => Duration::ZERO,
        };
        // In the order in which they were sent.
        last = last.max(Instant::now() + delay);
        if on.send((last, buffer[..length].to_vec())).is_err() {
            return;
        }
    }
}

/// Either way's end ends both: half-closed connections do not occur with TLS.
fn deliver(
    mut to: &TcpStream,
    direction: Direction,
    generation: u64,
    shared: &Shared,
    pieces: &Receiver<Piece>,
) {
    let arrives = || {
        shared.wait_for(|state| {
            let is_known = state.generation == generation;
            (is_known && state.link(direction) != Link::Cut).then_some(())
        })
    };
    while let Ok((due, piece)) = pieces.recv() {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if arrives().is_none() || to.write_all(&piece).is_err() {
            break;
        }
    }
    // The end of a connection is a packet, too.
    if arrives().is_some() {
        let _ = to.shutdown(Shutdown::Both);
    }
}

/// Below one, by the clock.
fn random() -> f64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    f64::from(now.map_or(0, |now| now.subsec_nanos()) % 1000) / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that says everything back, behind a network, and a client of it.
    fn echo() -> (Proxy, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy::start(listener.local_addr().unwrap()).unwrap();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || {
                    let mut back = stream.try_clone().unwrap();
                    let _ = io::copy(&mut &stream, &mut back);
                });
            }
        });
        let client = TcpStream::connect(proxy.address()).unwrap();
        client
            .set_read_timeout(Some(Duration::from_millis(300)))
            .unwrap();
        (proxy, client)
    }

    /// Says a word; whether it comes back soon.
    fn says(mut client: &TcpStream, word: &[u8]) -> bool {
        client.write_all(word).unwrap();
        hears(client, word)
    }

    fn hears(mut client: &TcpStream, word: &[u8]) -> bool {
        let mut heard = vec![0; word.len()];
        client.read_exact(&mut heard).is_ok() && heard == word
    }

    #[test]
    fn data_cut_in_either_direction_arrives_after_the_link_heals() {
        let (proxy, client) = echo();
        assert!(says(&client, b"first"));
        for (to_server, to_client) in [(Link::Cut, Link::Fine), (Link::Fine, Link::Cut)] {
            proxy.set_links(to_server, to_client);
            assert!(!says(&client, b"second"));
            let other = TcpStream::connect(proxy.address()).unwrap();
            other
                .set_read_timeout(Some(Duration::from_millis(100)))
                .unwrap();
            assert!(!says(&other, b"new"));
            proxy.set_link(Link::Fine);
            assert!(hears(&client, b"second"));
        }
    }

    #[test]
    fn slow_link_delivers_late_and_in_order() {
        let (proxy, client) = echo();
        proxy.set_link(Link::Slow(
            Duration::from_millis(50),
            Duration::from_millis(20),
        ));
        let begun = Instant::now();
        for word in [b"one", b"two"] {
            (&client).write_all(word).unwrap();
        }
        assert!(hears(&client, b"onetwo"));
        assert!(begun.elapsed() >= Duration::from_millis(100));
    }

    #[test]
    fn connections_that_are_forgotten_are_dead_and_new_ones_work() {
        let (proxy, client) = echo();
        assert!(says(&client, b"first"));
        proxy.forget_connections();
        assert!(!says(&client, b"second"));
        let next = TcpStream::connect(proxy.address()).unwrap();
        next.set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        assert!(says(&next, b"third"));
    }
}
