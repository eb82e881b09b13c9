//! The server of one test: own directory, free port, stopped when dropped.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use futures::FutureExt;
use plimsoll_apiserver::auth::authority::{Certificate, kubeconfig};
use plimsoll_apiserver::auth::identity::{MASTERS, User};
use plimsoll_apiserver::server::{Options, Server, serve};
use plimsoll_apiserver::store::{RedbOptions, RedbStore, Store};
use plimsoll_core::object::timestamp::Timestamp;
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::caller::Caller;

/// A generous limit for things that should happen soon, on a busy machine.
const SOON: Duration = Duration::from_secs(20);

/// A running server.
pub(crate) struct Cluster {
    pub(crate) server: Arc<Server>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) address: SocketAddr,
    pub(crate) folder: Arc<TempDir>,
}

impl Cluster {
    /// A new cluster on the embedded store.
    pub(crate) async fn start() -> Cluster {
        Cluster::start_with(|_| {}, RedbOptions::default()).await
    }

    pub(crate) async fn start_with(adapt: impl FnOnce(&mut Options), redb: RedbOptions) -> Cluster {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let file = folder.path().join("store.redb");
        let store = RedbStore::open(&file, &redb).unwrap();
        Cluster::open(Arc::new(store), folder, adapt).await
    }

    /// A server on a store that others may use too; keys are kept in the directory.
    pub(crate) async fn open(
        store: Arc<dyn Store>,
        folder: Arc<TempDir>,
        adapt: impl FnOnce(&mut Options),
    ) -> Cluster {
        watch_for_panics();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut options = Options::new(folder.path().join("pki"));
        options.advertised = address.to_string();
        options.names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        adapt(&mut options);
        let server = Server::open(Arc::clone(&store), options).await.unwrap();
        let serving = Arc::clone(&server);
        tokio::spawn(async move { serve(serving, listener).await.unwrap() });
        let cluster = Cluster {
            server,
            store,
            address,
            folder,
        };
        // By then its certificates are written, and another server may share the directory.
        assert_eq!(cluster.bearer("").get("/readyz").await.code, 200);
        cluster
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The administrator, over the socket.
    pub(crate) fn admin(&self) -> Caller {
        self.user("admin", &[MASTERS])
    }

    /// The administrator, in process.
    pub(crate) fn local_admin(&self) -> Caller {
        Caller::new(self.server.client(User::new("admin", &[MASTERS])))
    }

    /// A user with a client certificate, over the socket.
    pub(crate) fn user(&self, name: &str, groups: &[&str]) -> Caller {
        Caller::new(kube::Client::try_from(self.config(name, groups)).unwrap())
    }

    /// A client with that certificate.
    pub(crate) fn caller(&self, own: &Certificate) -> Caller {
        let ca = self.server.authority().certificate_pem();
        let config = config(&kubeconfig(&self.url(), ca, "own", own));
        Caller::new(kube::Client::try_from(config).unwrap())
    }

    /// The kubelet of a node.
    pub(crate) fn kubelet(&self, node: &str) -> Caller {
        self.user(&format!("system:node:{node}"), &["system:nodes"])
    }

    /// A user with a token; an empty one is anonymous.
    pub(crate) fn bearer(&self, token: &str) -> Caller {
        let mut config = self.config("unused", &[]);
        config.auth_info = kube::config::AuthInfo::default();
        if !token.is_empty() {
            config.auth_info.token = Some(token.to_owned().into());
        }
        Caller::new(kube::Client::try_from(config).unwrap())
    }

    pub(crate) fn certificate(&self, name: &str, groups: &[&str]) -> Certificate {
        self.server.authority().client(name, groups, now()).unwrap()
    }

    pub(crate) fn kubeconfig(&self, name: &str, groups: &[&str]) -> String {
        let ca = self.server.authority().certificate_pem();
        kubeconfig(&self.url(), ca, name, &self.certificate(name, groups))
    }

    fn config(&self, name: &str, groups: &[&str]) -> kube::Config {
        config(&self.kubeconfig(name, groups))
    }
}

fn config(text: &str) -> kube::Config {
    let parsed = kube::config::Kubeconfig::from_yaml(text).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let loaded = kube::Config::from_custom_kubeconfig(parsed, &options);
    let loaded = loaded.now_or_never();
    let mut config = loaded.expect("made of texts, it is ready at once").unwrap();
    // Many tests are about this error.
    config.default_retry = false;
    config
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.server.stop();
        let panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::thread::panicking() {
            assert!(panics.is_empty(), "the server panicked: {panics:?}");
        }
    }
}

static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Records every panic that does not come from a test.
fn watch_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let is_own = info
                .location()
                .is_some_and(|at| at.file().contains("tests/"));
            if !is_own {
                let mut panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
                panics.push(info.to_string());
            }
            before(info);
        }));
    });
}

pub(crate) fn now() -> Timestamp {
    let elapsed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Timestamp::from_secs(i64::try_from(elapsed.unwrap().as_secs()).unwrap())
}

/// Waits until the object exists.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not within {SOON:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits for a response that should come soon.
pub(crate) async fn soon<T>(what: &str, answer: impl Future<Output = T>) -> T {
    let answer = tokio::time::timeout(SOON, answer).await;
    answer.unwrap_or_else(|_| panic!("{what}: not within {SOON:?}"))
}
