//! The server: requests in, answers out, with everything below put together.
//!
//! Reading order: this file (what a server is made of), `handle` (the way of a request), `journey`
//! (what it tells of itself), `route` (what its address stands for), `operation` and `call` (what a
//! handler is given), then what is done: `list` and `watch`, `write` and `delete`, `admission` with
//! `service_account`, `pod_security`, `event_rate_limit`, `quota`, `facts` and `access`, `decisive`
//! (how fresh they are), `signing`, `subresources`, `documents`; `bounded`, the store as all of them
//! write to it. Around it: `listener` (sockets) with `tls` (certificates on them), `priority`,
//! `connections` and `resets`, `local` (the same without a socket), `bootstrap` (what a new cluster
//! starts with), `storage` (snapshots, and room), `own_events`, `limits` and `costly` (fairness), `metrics`, `annotations`, `audit`.

mod access;
mod admission;
mod annotations;
pub mod audit;
mod bootstrap;
mod bounded;
mod call;
mod clock;
mod connections;
mod costly;
mod decisive;
mod delete;
mod documents;
mod event_rate_limit;
mod facts;
mod handle;
mod identity;
mod introduction;
mod journey;
mod limits;
mod list;
mod listener;
mod local;
mod metrics;
mod operation;
mod own_events;
mod pod_security;
mod priority;
mod quota;
mod resets;
mod respond;
mod route;
mod service_account;
mod signing;
mod storage;
mod subresources;
mod tls;
mod watch;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_core::admission::event_rate_limit::EventRateLimits;
use plimsoll_core::admission::memory_pressure_toleration::AddMemoryPressureToleration;
use plimsoll_core::admission::overcommit::Override;
use plimsoll_core::admission::pod_security::PodSecurity;
use serde_json::Value;
use tokio::sync::{Semaphore, watch as channel};

pub use clock::is_over;
pub use listener::serve;
pub use metrics::Metrics;
pub use tls::TlsError;

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

/// How a server is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where keys and certificates are kept.
    pub certificates: PathBuf,
    /// What tokens name as their issuer.
    pub issuer: String,
    /// The host and port that clients are told.
    pub advertised: String,
    /// The host names and addresses that clients use; the server's certificate is made for them,
    /// and no node's is.
    pub names: Vec<String>,
    /// Reads in flight at once.
    pub max_reads: usize,
    /// Writes in flight at once.
    pub max_writes: usize,
    /// How requests are noted down, if at all.
    pub audit: Option<audit::Options>,
    /// What requests and limits of pods are made into, if anything.
    pub overcommit: Option<Arc<Override>>,
    /// Whether pods that are not BestEffort tolerate memory pressure.
    pub memory_pressure: AddMemoryPressureToleration,
    /// Which pods namespaces take.
    pub pod_security: PodSecurity,
    /// How many events are taken.
    pub event_rate_limits: EventRateLimits,
}

impl Options {
    /// The usual settings.
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

/// A server that can be asked. Clones are handles of the same one.
#[derive(Debug)]
pub struct Server {
    store: Arc<dyn Store>,
    cache: Arc<Cache>,
    access: access::Access,
    decisive: decisive::Decisive,
    facts: facts::Facts,
    authority: Arc<Authority>,
    tokens: Authenticator,
    introduction: introduction::Introduction,
    limits: limits::Limits,
    event_rates: event_rate_limit::EventRates,
    metrics: Metrics,
    audit: Option<audit::Audit>,
    options: Options,
    supervisor: Supervisor,
    /// One snapshot at a time.
    snapshots: Arc<Semaphore>,
    stop: channel::Sender<bool>,
    /// Ends the tasks of the supervisor, also when the server is dropped.
    end: DropGuard,
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Keys or certificates.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The key for tokens.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// What nodes are reached with.
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
    /// What every cluster starts with could not be stored.
    #[error("a new cluster could not be furnished: {0}")]
    Bootstrap(String),
}

impl Server {
    /// Opens a server on a store: reads everything and puts into place what every cluster has.
    pub async fn open(store: Arc<dyn Store>, options: Options) -> Result<Arc<Server>, OpenError> {
        let authority = Authority::open(&options.certificates, respond::now())?;
        let key = SigningKey::open(&options.certificates.join("service-account.key"))?;
        let audiences = vec![options.issuer.clone()];
        let tokens = Authenticator::new(key, options.issuer.clone(), audiences);
        let store: Arc<dyn Store> = Arc::new(bounded::Bounded::new(store));
        let introduction = introduction::Introduction::new(&authority)?;
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
            decisive: decisive::Decisive::default(),
            facts: facts::Facts::default(),
            authority: Arc::new(authority),
            tokens,
            introduction,
            limits: limits::Limits::new(
                options.max_reads,
                options.max_writes,
                &metrics.flow_control,
            ),
            event_rates: event_rate_limit::EventRates::new(&options.event_rate_limits),
            metrics,
            audit,
            options,
            supervisor,
            snapshots: Arc::new(Semaphore::new(1)),
            stop: channel::Sender::new(false),
            end: end.drop_guard(),
        });
        bootstrap::furnish(&server)
            .await
            .map_err(OpenError::Bootstrap)?;
        bootstrap::follow_namespaces(&server);
        signing::follow(&server);
        introduction::follow(&server);
        storage::follow_space(&server);
        own_events::follow_unreadable(&server);
        Ok(server)
    }

    /// The authority that signs what clients and nodes prove themselves with.
    pub fn authority(&self) -> &Arc<Authority> {
        &self.authority
    }

    /// The tasks of this server that run as long as it does. Health checks name each; so they do with
    /// those that are added.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// How nodes are asked.
    fn nodes(&self) -> NodeConnector {
        self.introduction.connector()
    }

    /// Ends all watches and takes no new requests.
    pub fn stop(&self) {
        self.end.token().cancel();
        self.stop.send_replace(true);
    }

    /// Becomes true when the server stops.
    pub fn stopping(&self) -> channel::Receiver<bool> {
        self.stop.subscribe()
    }

    fn rules(&self) -> Rules {
        Rules::default()
    }
}

/// Objects of the cluster as of now, for those who decide about tokens and access.
impl Objects for Server {
    fn object(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let kind = kinds::all().find(|kind| kind.group == group && kind.plural == resource)?;
        let object = self
            .cache
            .collection(kind)?
            .get(&call::key(kind, namespace, name))?;
        object.value().ok()
    }
}
