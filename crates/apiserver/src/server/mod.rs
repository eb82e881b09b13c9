//! The API server: HTTP requests in, responses out, assembled from the modules below.
//!
//! Reading order: this file (the parts of a server), `request` (the path of a request), `objects` (the
//! verbs on objects), `admission` (the checks of writes), `access` and `consistency` (permissions, and how
//! fresh all of it is), `bounded` (the store as all of them write to it), `documents` (discovery and
//! OpenAPI). Around them: `transport` (connections), `limits` (fairness), `background` (default objects, space,
//! certificates), `metrics`, `audit`.

mod access;
mod admission;
pub mod audit;
mod background;
mod bounded;
mod consistency;
mod documents;
mod limits;
mod metrics;
mod objects;
mod request;
mod transport;

use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_core::admission::event_rate_limit::EventRateLimits;
use plimsoll_core::admission::memory_pressure_toleration::AddMemoryPressureToleration;
use plimsoll_core::admission::overcommit::Override;
use plimsoll_core::admission::pod_security::PodSecurity;
use serde_json::Value;
use tokio::sync::{Semaphore, watch as channel};

pub use metrics::Metrics;
pub use request::clock::is_over;
pub use transport::listener::serve;
pub use transport::tls::TlsError;

use crate::auth::Objects;
use crate::auth::authority::{Authority, AuthorityError};
use crate::auth::token::{Authenticator, KeyError, SigningKey};
use crate::cache::Cache;
use crate::kinds;
use crate::machinery::write::Rules;
use crate::node_proxy::{ConnectorError, NodeConnector};
use crate::store::Store;
use plimsoll_client::supervision::Supervisor;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where keys and certificates are kept.
    pub certificates: PathBuf,
    /// The issuer of tokens.
    pub issuer: String,
    /// The host and port that are advertised to clients.
    pub advertised: String,
    /// The host names and addresses that clients use: the server's certificate is issued for them,
    /// and no node's certificate is.
    pub names: Vec<String>,
    /// Maximum of concurrent reads.
    pub max_reads: usize,
    /// Maximum of concurrent writes.
    pub max_writes: usize,
    /// The audit log, if any.
    pub audit: Option<audit::Options>,
    /// The overcommit settings for requests and limits of pods, if any.
    pub overcommit: Option<Arc<Override>>,
    /// Whether pods that are not BestEffort get a toleration for memory pressure.
    pub memory_pressure: AddMemoryPressureToleration,
    /// The PodSecurity settings.
    pub pod_security: PodSecurity,
    /// The EventRateLimit settings.
    pub event_rate_limits: EventRateLimits,
}

impl Options {
    /// The default settings.
    pub fn new(certificates: impl Into<PathBuf>) -> Options {
        Options {
            certificates: certificates.into(),
            issuer: "https://kubernetes.default.svc.cluster.local".to_owned(),
            advertised: "127.0.0.1:6443".to_owned(),
            names: vec!["localhost".to_owned(), "127.0.0.1".to_owned()],
            max_reads: 400,
            max_writes: 200,
            audit: None,
            overcommit: None,
            memory_pressure: AddMemoryPressureToleration::No,
            pod_security: PodSecurity::default(),
            event_rate_limits: EventRateLimits::default(),
        }
    }
}

/// A running server. Clones are handles of the same one.
#[derive(Debug)]
pub struct Server {
    store: Arc<dyn Store>,
    cache: Arc<Cache>,
    access: access::Access,
    consistency: consistency::Barrier,
    facts: admission::facts::Facts,
    authority: Arc<Authority>,
    tokens: Authenticator,
    node_client: background::node_client::NodeClient,
    limits: limits::Limits,
    event_rates: admission::event_rate_limit::EventRates,
    metrics: Metrics,
    audit: Option<audit::Audit>,
    options: Options,
    supervisor: Supervisor,
    /// One snapshot at a time.
    snapshots: Arc<Semaphore>,
    stop: channel::Sender<bool>,
    /// Stops the tasks of the supervisor, also when the server is dropped.
    end: DropGuard,
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Keys or certificates.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The signing key of service account tokens.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The connection to nodes.
    #[error(transparent)]
    Nodes(#[from] ConnectorError),
    /// The store.
    #[error("the store cannot be read")]
    Store(#[from] crate::store::Error),
    /// The audit log.
    #[error("the audit log {} cannot be written", path.display())]
    Audit {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The default objects of a cluster could not be stored.
    #[error("cannot create the default objects of the cluster: {0}")]
    Bootstrap(String),
}

impl Server {
    /// Opens a server on a store: loads everything and creates the default objects of a cluster.
    pub async fn open(store: Arc<dyn Store>, options: Options) -> Result<Arc<Server>, OpenError> {
        let authority = Authority::open(&options.certificates, request::respond::now())?;
        let key = SigningKey::open(&options.certificates.join("service-account.key"))?;
        let audiences = vec![options.issuer.clone()];
        let tokens = Authenticator::new(key, options.issuer.clone(), audiences);
        let store: Arc<dyn Store> = Arc::new(bounded::Bounded::new(store));
        let node_client = background::node_client::NodeClient::new(&authority)?;
        let cache = Cache::start(Arc::clone(&store)).await?;
        let metrics = Metrics::default();
        let audit = options.audit.as_ref().map(|audit| {
            let opened = audit::Audit::open(audit, metrics.audit.clone());
            opened.map_err(|source| OpenError::Audit {
                path: audit.path.clone(),
                source,
            })
        });
        let audit = audit.transpose()?;
        let end = CancellationToken::new();
        let supervisor = Supervisor::new(end.clone(), Arc::default());
        let server = Arc::new(Server {
            store,
            cache,
            access: access::Access::default(),
            consistency: consistency::Barrier::default(),
            facts: admission::facts::Facts::default(),
            authority: Arc::new(authority),
            tokens,
            node_client,
            limits: limits::Limits::new(
                options.max_reads,
                options.max_writes,
                &metrics.flow_control,
            ),
            event_rates: admission::event_rate_limit::EventRates::new(&options.event_rate_limits),
            metrics,
            audit,
            options,
            supervisor,
            snapshots: Arc::new(Semaphore::new(1)),
            stop: channel::Sender::new(false),
            end: end.drop_guard(),
        });
        background::bootstrap::ensure_defaults(&server)
            .await
            .map_err(OpenError::Bootstrap)?;
        background::bootstrap::follow_namespaces(&server);
        background::signing::follow(&server);
        background::node_client::follow(&server);
        background::storage::follow_space(&server);
        background::own_events::follow_unreadable(&server);
        Ok(server)
    }

    /// The authority that signs the certificates of clients and nodes.
    pub fn authority(&self) -> &Arc<Authority> {
        &self.authority
    }

    /// The background tasks of this server. Each has a health check; tasks that other components
    /// add get one, too.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// The connector to nodes.
    fn nodes(&self) -> NodeConnector {
        self.node_client.connector()
    }

    /// Ends all watches and accepts no new requests.
    pub fn stop(&self) {
        self.end.token().cancel();
        self.stop.send_replace(true);
    }

    /// Becomes true when the server shuts down.
    pub fn stopping(&self) -> channel::Receiver<bool> {
        self.stop.subscribe()
    }

    fn rules(&self) -> Rules {
        Rules::default()
    }
}

/// The current objects of the cluster, for decisions about tokens and access.
impl Objects for Server {
    fn object(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let kind = kinds::all().find(|kind| kind.group == group && kind.plural == resource)?;
        let object = self
            .cache
            .collection(kind)?
            .get(&request::call::key(kind, namespace, name))?;
        object.value().ok()
    }
}
