//! The server under many clients: watchers of one kind while objects change, and creates.
//!
//!     cargo bench -p plimsoll-apiserver --bench clients
//!     cargo bench -p plimsoll-apiserver --bench clients -- shared|own|creates
//!
//! Server and clients share this machine and this process; everything goes over TLS on loopback.
//! The store's file lies in the temporary folder (`TMPDIR`). 1,000 watchers with a connection each
//! need `ulimit -n 4096`.

#![expect(clippy::print_stdout, reason = "the numbers are the product")]

mod creates;
mod link;
mod times;
mod watchers;

use std::sync::Arc;

use link::Cluster;
use plimsoll_apiserver::server::{Options, Server, serve};
use plimsoll_apiserver::store::{RedbOptions, RedbStore};
use tokio::net::TcpListener;

fn main() {
    let wanted = std::env::args()
        .nth(1)
        .filter(|word| !word.starts_with('-'));
    let is_wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    if is_wanted("shared") {
        run("1,000 watchers over 8 connections", |cluster| async move {
            watchers::measure(&cluster, watchers::Sharing::Connections(8)).await;
        });
    }
    if is_wanted("own") {
        run(
            "1,000 watchers with a connection each",
            |cluster| async move {
                watchers::measure(&cluster, watchers::Sharing::None).await;
            },
        );
    }
    if is_wanted("creates") {
        run("creates by 32 clients", |cluster| async move {
            creates::measure(&cluster).await;
        });
    }
}

/// Starts a server and measures.
fn run<F: Future<Output = ()>>(title: &str, measure: impl FnOnce(Arc<Cluster>) -> F) {
    println!("{title}");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("store.redb");
        let options = RedbOptions {
            watch_buffer: 65_536,
            ..RedbOptions::default()
        };
        let store = RedbStore::open(&path, &options).expect("a store");
        let options = Options::new(folder.path().join("pki"));
        let opened = Server::open(Arc::new(store), options).await;
        let server = opened.expect("a server");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let names = ["127.0.0.1".to_owned()];
        let serving = Arc::clone(&server);
        let serving = tokio::spawn(async move { serve(serving, listener, &names).await });
        let cluster = Cluster::new(Arc::clone(&server), address);
        measure(Arc::new(cluster)).await;
        server.stop();
        serving.abort();
    });
}
