//! A network between clients and the server that can be cut and slowed down. Its address stays the
//! same when the server starts anew elsewhere.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How the network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Fine,
    /// What is sent waits; no connection ends.
    Cut,
    /// What is sent arrives so much later.
    Slow(Duration),
}

#[derive(Clone, Copy, Debug)]
struct State {
    link: Link,
    server: SocketAddr,
}

pub(crate) struct Proxy {
    address: SocketAddr,
    state: watch::Sender<State>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn start(server: SocketAddr) -> io::Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let link = Link::Fine;
        let (state, seen) = watch::channel(State { link, server });
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let seen = seen.clone();
                tokio::spawn(connect(client, seen));
            }
        });
        Ok(Proxy {
            address,
            state,
            accepting,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn set_link(&self, link: Link) {
        self.state.send_modify(|state| state.link = link);
    }

    /// New connections go there.
    pub(crate) fn set_server(&self, server: SocketAddr) {
        self.state.send_modify(|state| state.server = server);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn connect(client: TcpStream, mut state: watch::Receiver<State>) {
    if passable(&mut state).await.is_err() {
        return;
    }
    let address = state.borrow().server;
    let Ok(server) = TcpStream::connect(address).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // Either way's end ends both: half-closed connections do not occur with TLS.
    tokio::select! {
        _ = pass(from_client, to_server, state.clone()) => {}
        _ = pass(from_server, to_client, state) => {}
    }
}

async fn pass(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut state: watch::Receiver<State>,
) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        let link = passable(&mut state).await?;
        if let Link::Slow(delay) = link {
            tokio::time::sleep(delay).await;
        }
        to.write_all(&buffer[..length]).await?;
    }
}

/// Waits while the network is cut.
async fn passable(state: &mut watch::Receiver<State>) -> io::Result<Link> {
    let passable = state.wait_for(|state| state.link != Link::Cut).await;
    passable
        .map(|state| state.link)
        .map_err(|_| io::ErrorKind::ConnectionAborted.into())
}
