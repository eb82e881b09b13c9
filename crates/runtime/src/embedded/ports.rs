//! Port forwarding into a sandbox.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;

use super::Embedded;
use super::spec::is_host_network;
use super::table::Sandbox;
use crate::{Connection, Error, Ports};

impl Embedded {
    pub(super) fn dial(&self, sandbox: &Arc<Sandbox>) -> Ports {
        let sandbox = Arc::clone(sandbox);
        Ports::Here(Box::new(move |port| {
            let sandbox = Arc::clone(&sandbox);
            Box::pin(async move {
                let connected = connect(&sandbox, port).await;
                let doing = || format!("connect to port {port} of sandbox {}", sandbox.id);
                let stream = connected.map_err(|error| Error::failed(doing(), error))?;
                Ok(Box::new(stream) as Box<dyn Connection>)
            })
        }))
    }
}

/// Connects to a port on the sandbox's loopback address, of whichever family listens.
async fn connect(sandbox: &Sandbox, port: u16) -> io::Result<TcpStream> {
    let v4 = IpAddr::V4(Ipv4Addr::LOCALHOST);
    match connect_to(sandbox, SocketAddr::new(v4, port)).await {
        Ok(stream) => Ok(stream),
        Err(error) => {
            let v6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
            let stream = connect_to(sandbox, SocketAddr::new(v6, port)).await;
            stream.map_err(|_| error)
        }
    }
}

async fn connect_to(sandbox: &Sandbox, address: SocketAddr) -> io::Result<TcpStream> {
    let make = move || match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    };
    let socket = if is_host_network(&sandbox.config) {
        make()?
    } else {
        let pause = sandbox.record().pause;
        if !pause.is_alive() {
            return Err(io::Error::from(io::ErrorKind::NotConnected));
        }
        let path = PathBuf::from(format!("/proc/{}/ns/net", pause.pid));
        inside_network(path, make).await?
    };
    socket.connect(address).await
}

/// Does something in another network: a socket belongs to the network of the thread that made it,
/// wherever it is used. The thread ends afterwards, so that nothing else can end up there.
pub(super) async fn inside_network<T: Send + 'static>(
    path: PathBuf,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (done, result) = oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    std::thread::Builder::new()
        .name("network".to_owned())
        .spawn(move || {
            let _runtime = runtime.enter();
            let enter = || {
                let network = File::open(path)?;
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(network.as_fd(), kind)?;
                work()
            };
            let _ = done.send(enter());
        })?;
    result
        .await
        .unwrap_or_else(|_| Err(io::Error::other("the thread has ended")))
}
