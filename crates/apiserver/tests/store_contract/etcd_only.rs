//! Failures that only a store on the network has.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_apiserver::store::{Error, EtcdOptions, EtcdStore, EtcdTls, Outcome, Store, Txn};
use plimsoll_testkit::certificates::Authority;
use plimsoll_testkit::etcd::Etcd;

use crate::backend::{commit, connect};
use crate::watches::{change, watch};

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tier: tools"]
async fn watch_survives_a_restart_of_etcd() {
    let mut etcd = Etcd::start();
    let store = connect(&etcd).await;
    let mut watch = watch(&store, "/", 1).await;
    commit(&store, Txn::create("/before", "")).await;
    assert_eq!(change(&mut watch).await.key, "/before");
    tokio::task::block_in_place(|| etcd.restart());
    create_with_retries(&store, "/after").await;
    assert_eq!(change(&mut watch).await.key, "/after");
}

/// Creates a key on a store that may not be reachable yet.
async fn create_with_retries(store: &Arc<dyn Store>, key: &'static str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match store.txn(Txn::create(key, "")).await {
            // An attempt whose response was lost may have succeeded.
            Ok(Outcome::Committed { .. } | Outcome::Conflict { .. }) => return,
            Err(error) => {
                assert!(
                    error.is_retryable() && Instant::now() < deadline,
                    "{error:?}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tier: tools"]
async fn servers_on_one_etcd_see_each_other() {
    let etcd = Etcd::start();
    let (one, other) = (connect(&etcd).await, connect(&etcd).await);
    let mut watch = watch(&one, "/", 1).await;
    let revision = commit(&other, Txn::create("/a", "1")).await;
    assert_eq!(change(&mut watch).await.revision, revision);
    let found = one.get(b"/a", None).await.unwrap();
    assert_eq!(found.entry.unwrap().value, "1");
    let outcome = one.txn(Txn::create("/a", "2")).await.unwrap();
    assert!(matches!(outcome, Outcome::Conflict { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tier: tools"]
async fn both_sides_of_an_encrypted_connection_need_a_trusted_certificate() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let etcd = Etcd::start_with_tls(&authority);
    let connect = async |trusted: &Authority, client: Option<&Authority>| {
        let client = client.map(|authority| authority.sign("plimsoll"));
        let tls = EtcdTls {
            ca_pem: trusted.pem().to_owned(),
            client_pem: client.map(|client| (client.certificate_pem, client.key_pem)),
        };
        let options = EtcdOptions {
            endpoints: vec![etcd.endpoint()],
            tls: Some(tls),
            ..EtcdOptions::default()
        };
        EtcdStore::connect(&options).await
    };
    let store = connect(&authority, Some(&authority)).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    commit(&store, Txn::create("/a", "1")).await;
    for (trusted, client) in [
        (&stranger, Some(&authority)),
        (&authority, Some(&stranger)),
        (&authority, None),
    ] {
        let refused = connect(trusted, client).await.unwrap_err();
        assert!(matches!(refused, Error::Unavailable { .. }), "{refused:?}");
    }
}

#[tokio::test]
async fn unreachable_etcd_is_unavailable() {
    let options = EtcdOptions {
        // The discard port of this machine, without a listener.
        endpoints: vec!["http://127.0.0.1:9".to_owned()],
        ..EtcdOptions::default()
    };
    let error = EtcdStore::connect(&options).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "etcd at http://127.0.0.1:9 is unavailable"
    );
    assert!(error.is_retryable());
}
