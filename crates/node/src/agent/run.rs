//! The agent as a whole: everything made ready, then run side by side until it is stopped.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::api::core::v1::ContainerImage;
use kube::Client;
use plimsoll_client::clock::Clock;
use plimsoll_client::events::{EventType, Recorder};
use plimsoll_core::admission::node_admit::PressureRule;
use plimsoll_core::cgroup::{CgroupPath, Driver};
use plimsoll_core::duration;
use plimsoll_core::object::identity::PodUid;
use plimsoll_runtime::cgroup::{NodeCgroups, is_unaccounted};
use plimsoll_runtime::walk::Walker;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::heartbeat::Heartbeat;
use super::host::{NodeHost, chain};
use super::kubelet_api::KubeletApi;
use super::measure::Meter;
use super::node_object::{NodeFacts, NodeIdentity};
use super::options::{Options, RuntimeChoice, Serving, own_cgroup};
use super::prepare::{Prepared, StartError, claim, prepare};
use super::pressure;
use super::priority_lane::PriorityLane;
use super::serving::{keep_serving_certificate, show_given_certificates};
use super::settings;
use super::system_info::read_system_info;
use super::upkeep::{self, RuntimeHealth};
use super::vitals::Vitals;
use crate::eviction::begun_before;
use crate::identity::request::{KeyedCertificate, self_signed};
use crate::pods::admission::{Confinement, Support};
use crate::pods::spec::dns::parse_resolv_conf;
use crate::pods::{self, Pods};
use crate::project_quota::ProjectQuotas;
use crate::server::access::{Authenticator, Authorizer, Reviews, TokenReviews};
use crate::server::tls::{ClientAuthority, ServerCertificate};
use crate::server::{self, Server};
use crate::teardown::holder::Claim;
use crate::volumes::{KubeSources, Sources, Volumes};
use plimsoll_client::supervision::{Supervisor, Weight};

/// How long an answer of the API server about a caller is good, as upstream.
const TOKEN_LIFE: Duration = Duration::from_secs(120);
const ALLOWED_LIFE: Duration = Duration::from_secs(300);
const DENIED_LIFE: Duration = Duration::from_secs(30);
/// How long nothing may happen on an upgraded connection.
const STREAM_IDLE: Duration = Duration::from_secs(4 * 60 * 60);
const STREAM_CREATION: Duration = Duration::from_secs(30);
const MAX_CONNECTIONS: usize = 1024;
/// What `/logs/` shows, as upstream.
const SYSTEM_LOGS: &str = "/var/log";
/// How long the first status waits for eviction to begin, which needs a first measurement.
const EVICTION_PATIENCE: Duration = Duration::from_secs(10);

/// Runs a node until `stop` is cancelled. Containers keep running, and are found again by the next
/// one. `ready` is called once the node is known to the API.
pub async fn run(
    client: Client,
    options: Options,
    stop: CancellationToken,
    ready: impl FnOnce() + Send,
) -> Result<(), StartError> {
    let agent = launch(client, options, &stop).await?;
    ready();
    stop.cancelled().await;
    agent.supervisor.wait().await;
    Ok(())
}

/// An agent that has begun, for as long as it is kept.
pub(super) struct Launched {
    pub(super) supervisor: Supervisor,
    _claim: Claim,
}

/// Starts a node.
pub(super) async fn launch(
    client: Client,
    options: Options,
    stop: &CancellationToken,
) -> Result<Launched, StartError> {
    let claim = claim(&options).await?;
    pressure::check(&options)?;
    let prepared = prepare(&options).await?;
    let listener = TcpListener::bind(options.listen).await;
    let listener = listener.map_err(|source| StartError::Listen {
        address: options.listen,
        source,
    })?;
    let agent = Agent::assemble(client, &options, &prepared, &listener, stop.clone())?;
    let interrupted = agent.set_up_cgroups(&options).await?;
    let supervisor = agent.supervisor.clone();
    agent.start(&options, listener, interrupted).await?;
    Ok(Launched {
        supervisor,
        _claim: claim,
    })
}

/// The parts of a running agent.
pub(super) struct Agent {
    pub(super) client: Client,
    pub(super) heartbeat: Arc<Heartbeat>,
    pub(super) host: Arc<NodeHost>,
    pub(super) pods: Pods,
    pub(super) health: watch::Sender<RuntimeHealth>,
    prepared_facts: NodeFacts,
    runtime_name: String,
    walker: Walker,
    pub(super) supervisor: Supervisor,
    pub(super) stop: CancellationToken,
}

impl Agent {
    fn assemble(
        client: Client,
        options: &Options,
        prepared: &Prepared,
        listener: &TcpListener,
        stop: CancellationToken,
    ) -> Result<Agent, StartError> {
        let name = &options.node_name;
        let (urgent, priority_lane) = (client.clone(), PriorityLane::new());
        let client = priority_lane.behind(client);
        let recorder = Recorder::counted(client.clone(), "kubelet", stop.clone());
        let address = listener.local_addr();
        let port = address.map_or(options.listen.port(), |address| address.port());
        let config = &options.config;
        let identity = NodeIdentity {
            name: name.clone(),
            hostname: name.clone(),
            addresses: options.node_ips.clone(),
            port,
            labels: config.node_labels.value.clone(),
            taints: config.register_with_taints.value.clone(),
            system: read_system_info(prepared.runtime_version.clone()),
        };
        let (node, _) = watch::channel(None);
        let heartbeat = Heartbeat {
            client: urgent,
            priority_lane,
            clock: Clock::system(),
            identity,
            recorder: recorder.clone(),
            node,
            lease_duration: seconds(i64::from(*config.node_lease_duration_seconds)),
            update_every: std_duration(*config.node_status_update_frequency),
            report_every: std_duration(*config.node_status_report_frequency),
            at_once: Arc::new(Notify::new()),
            is_rehearsal: AtomicBool::default(),
        };
        let sources: Arc<dyn Sources> = Arc::new(KubeSources::new(client.clone()));
        let allocatable = prepared.allocatable.allocatable();
        let root = options.directories.root.clone();
        let volumes = Volumes::new(root, allocatable, Arc::clone(&sources))
            .with_quotas(ProjectQuotas::configured(config));
        let resolver = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        let host = NodeHost {
            facts: prepared.facts.clone(),
            sources,
            volumes: Arc::new(volumes),
            cgroups: Arc::clone(&prepared.cgroups),
            user_namespaces: Arc::clone(&prepared.user_namespaces),
            runtime: Arc::clone(&prepared.runtime),
            recorder,
            resolver: parse_resolv_conf(&resolver).ok(),
            network_problem: std::sync::Mutex::default(),
            node: heartbeat.node.subscribe(),
            pressure: watch::channel(BTreeSet::new()).0,
            pressure_rule: PressureRule::of(config.profile),
            allowed_unsafe_sysctls: settings::texts(config, "allowedUnsafeSysctls"),
            confinement: confinement(options),
            shutting_down: watch::channel(false).0,
            pods_changed: Arc::new(Notify::new()),
            devices: prepared.devices.clone(),
        };
        let host = Arc::new(host);
        let pods = Pods::new(
            Arc::clone(&prepared.runtime),
            prepared.runtime_name.clone(),
            Arc::clone(&host) as Arc<dyn pods::Host>,
            pods::Clock::system(),
            pods::Settings {
                container_logs_dir: Some(options.directories.container_logs.clone()),
                ..pods::Settings::from_config(config)
            },
        );
        Ok(Agent {
            client,
            supervisor: Supervisor::new(stop.clone(), Arc::clone(&heartbeat.at_once)),
            heartbeat: Arc::new(heartbeat),
            host,
            pods,
            health: watch::channel(RuntimeHealth::default()).0,
            prepared_facts: NodeFacts {
                machine: prepared.machine.clone(),
                settings: prepared.settings.clone(),
                ..NodeFacts::default()
            },
            runtime_name: prepared.runtime_name.clone(),
            walker: prepared.walker.clone(),
            stop,
        })
    }

    /// Makes the cgroups that all pods are below. A node does not start without. Answers which pods an
    /// earlier agent was killing when it was killed itself.
    async fn set_up_cgroups(&self, options: &Options) -> Result<BTreeSet<PodUid>, StartError> {
        let cgroups = Arc::clone(&self.host.cgroups);
        let own = options.config.kubelet_cgroups.value.clone();
        let proc_self = options.system_root.join("proc/self/cgroup");
        let done = tokio::task::spawn_blocking(move || {
            cgroups.set_up(&[]).map_err(StartError::SetUp)?;
            if let Some(own) = CgroupPath::parse(&own).ok().filter(|_| !own.is_empty()) {
                enter(&cgroups, &own)?;
            } else {
                be_accounted(&cgroups, &proc_self);
            }
            let interrupted = cgroups.cgroups().finish_kills();
            let interrupted = interrupted.unwrap_or_else(|error| {
                tracing::warn!(error = chain(&error), "failed to thaw frozen pods");
                BTreeSet::new()
            });
            let enforced = cgroups.enforce_reserved();
            let enforced = enforced.map_err(|event| StartError::Reserved(event.message))?;
            Ok::<_, StartError>((enforced, interrupted))
        });
        let done = done
            .await
            .map_err(|error| StartError::Runtime(error.to_string()))?;
        let (events, interrupted) = done?;
        for event in events {
            upkeep::record_event(&self.heartbeat, event);
        }
        tracing::info!(node = %options.node_name, "set up node cgroups");
        Ok(interrupted)
    }

    async fn start(
        self,
        options: &Options,
        listener: TcpListener,
        interrupted: BTreeSet<PodUid>,
    ) -> Result<(), StartError> {
        let heartbeat = Arc::clone(&self.heartbeat);
        let stop = self.stop.clone();
        let meter = Arc::new(Meter::new(
            Arc::clone(&self.host),
            self.pods.clone(),
            options,
            &self.runtime_name,
            self.walker.clone(),
        ));
        let vitals = self.watch_node(options, &meter);
        self.serve_device_plugins(options);
        self.serve(options, listener, meter, vitals.clone())?;
        heartbeat.record_event(
            EventType::Normal,
            "Starting",
            "Starting kubelet.".to_owned(),
        );
        // Asked once before the first status, so that a node is not ready for an instant only.
        let health = upkeep::ask_runtime(&*self.host.runtime).await;
        self.host.set_network_problem(health.network.clone());
        self.health.send_replace(health);
        let (images, _) = watch::channel(upkeep::list_images(&*self.host.runtime).await);
        vitals.begun(EVICTION_PATIENCE).await;
        let status_source = NodeStatusSource {
            known: self.prepared_facts.clone(),
            health: self.health.subscribe(),
            images: images.subscribe(),
            host: Arc::clone(&self.host),
            vitals,
        };
        let facts = status_source.facts();
        tokio::select! {
            () = heartbeat.register(&facts) => {}
            () = stop.cancelled() => return Ok(()),
        }
        let begun = begun_before(&pressure::decisions_dir(options), &interrupted);
        self.pods.remember_begun(begun);
        self.follow_pods(options);
        self.keep_node(options, images, status_source);
        Ok(())
    }

    /// Measures the node, and begins to evict: pods are safe from each other from here on.
    fn watch_node(&self, options: &Options, meter: &Arc<Meter>) -> Vitals {
        let supervisor = &self.supervisor;
        let journal = pressure::start(
            options,
            self.pods.clone(),
            Arc::clone(&self.host),
            Arc::clone(&self.heartbeat),
            Arc::clone(meter),
            supervisor,
            &self.stop,
        );
        let (own, stop) = (Arc::clone(meter), self.stop.clone());
        supervisor.keep("stats", Weight::Vital, move || {
            Arc::clone(&own).run(stop.clone()).map(Ok)
        });
        Vitals {
            supervisor: supervisor.clone(),
            journal,
            pods: self.pods.clone(),
        }
    }

    /// Serves the kubelet's interface.
    fn serve(
        &self,
        options: &Options,
        listener: TcpListener,
        meter: Arc<Meter>,
        vitals: Vitals,
    ) -> Result<(), StartError> {
        let supervisor = &self.supervisor;
        let name = &options.node_name;
        let names = self.names();
        let shown = match &options.serving {
            Serving::Given(given) => given.borrow().clone(),
            Serving::Requested | Serving::SelfSigned => self_signed(name, &names)?,
        };
        let KeyedCertificate {
            certificate_pem,
            key_pem,
        } = &shown;
        let certificate = ServerCertificate::new(certificate_pem.as_bytes(), key_pem.as_bytes())?;
        let certificate = Arc::new(certificate);
        if let Serving::Given(given) = &options.serving {
            let (given, own, stop) = (given.clone(), Arc::clone(&certificate), self.stop.clone());
            supervisor.complete("givenCertificate", Weight::Minor, move || {
                show_given_certificates(given.clone(), Arc::clone(&own), stop.clone()).map(Ok)
            });
        }
        if matches!(options.serving, Serving::Requested) {
            let (client, name) = (self.client.clone(), name.clone());
            let (own, stop) = (Arc::clone(&certificate), self.stop.clone());
            let node = self.heartbeat.node.subscribe();
            supervisor.keep("servingCertificate", Weight::Minor, move || {
                let (client, name, names) = (client.clone(), name.clone(), names.clone());
                let (own, node) = (Arc::clone(&own), node.clone());
                let stop = stop.clone();
                async move {
                    keep_serving_certificate(client, name, names, own, node, stop).await;
                    Ok(())
                }
            });
        }
        let authority = options.client_ca_pem.as_deref();
        let authority = authority
            .map(|pem| ClientAuthority::new(pem.as_bytes()))
            .transpose()?;
        let reviews = Reviews::new(self.client.clone(), name, ALLOWED_LIFE, DENIED_LIFE);
        let is_on = |path: &str, default| settings::is_on(&options.config, path, default);
        let server_options = server::Options {
            authenticator: Authenticator {
                authority: authority.map(Arc::new),
                tokens: Some(TokenReviews::new(self.client.clone(), TOKEN_LIFE)),
                anonymous: is_on("authentication.anonymous.enabled", false),
            },
            authorizer: Authorizer::Webhook(Box::new(reviews)),
            debugging_handlers: is_on("enableDebuggingHandlers", true),
            system_logs: is_on("enableSystemLogHandler", true).then(|| SYSTEM_LOGS.into()),
            idle: STREAM_IDLE,
            stream_creation: STREAM_CREATION,
            max_connections: MAX_CONNECTIONS,
        };
        let runtime = Arc::clone(&self.host.runtime);
        let kubelet_api = KubeletApi::new(self.pods.clone(), runtime, meter, vitals, options);
        let server = Server::new(Arc::new(kubelet_api), server_options);
        let address = listener.local_addr().unwrap_or(options.listen);
        let mut bound = Some(listener);
        let stop = self.stop.clone();
        supervisor.keep("server", Weight::Vital, move || {
            let (server, certificate) = (Arc::clone(&server), Arc::clone(&certificate));
            let (stop, bound) = (stop.clone(), bound.take());
            async move {
                let listener = listening(bound, address).await?;
                let served = server.serve(listener, certificate, stop).await;
                served.map_err(|error| chain(&error))
            }
        });
        if let Some(address) = options.healthz {
            let stop = self.stop.clone();
            supervisor.keep("healthz", Weight::Minor, move || {
                let stop = stop.clone();
                async move {
                    let listener = listening(None, address).await?;
                    Server::serve_health(listener, stop).await;
                    Ok(())
                }
            });
        }
        Ok(())
    }

    fn names(&self) -> Vec<String> {
        let identity = &self.heartbeat.identity;
        let addresses = identity.addresses.iter().map(ToString::to_string);
        let mut names: Vec<String> = addresses.collect();
        names.extend([identity.name.clone(), identity.hostname.clone()]);
        names.sort();
        names.dedup();
        names
    }
}

/// Which profiles and labels of containers can be enforced: what the kernel has, and the runtime
/// uses. The embedded one has none of its own.
fn confinement(options: &Options) -> Confinement {
    let of = |file: &str, is_enabled: fn(&str) -> bool| {
        let text = std::fs::read_to_string(options.system_root.join(file));
        match (text.is_ok_and(|text| is_enabled(&text)), &options.runtime) {
            (false, _) => Support::NotOnHost,
            (true, RuntimeChoice::Embedded(_)) => Support::NotInRuntime,
            (true, RuntimeChoice::Cri { .. }) => Support::Full,
        }
    };
    Confinement {
        app_armor: of("sys/module/apparmor/parameters/enabled", |text| {
            text.starts_with('Y')
        }),
        selinux: of("sys/fs/selinux/enforce", |_| true),
    }
}

/// The socket that is bound already, or another at the same address.
async fn listening(bound: Option<TcpListener>, address: SocketAddr) -> Result<TcpListener, String> {
    if let Some(bound) = bound {
        return Ok(bound);
    }
    let opened = TcpListener::bind(address).await;
    opened.map_err(|error| format!("cannot listen on {address}: {error}"))
}

/// Moves the agent into the cgroup it is to be accounted in (`kubeletCgroups`).
fn enter(cgroups: &NodeCgroups, own: &CgroupPath) -> Result<(), StartError> {
    let entered = cgroups.cgroups().enter(own, std::process::id());
    entered.map_err(StartError::SetUp)
}

/// Moves an agent without a configured cgroup into one of its own, below that of all pods' root,
/// so that its usage is measured apart from the machine's. The agent runs without one if that fails.
fn be_accounted(cgroups: &NodeCgroups, proc_self: &Path) {
    let cgroups_of_node = cgroups.cgroups();
    let is_unaccounted = std::fs::read_to_string(proc_self)
        .is_ok_and(|text| is_unaccounted(&text, cgroups_of_node.version()));
    if !is_unaccounted || cgroups_of_node.driver() != Driver::Cgroupfs {
        return;
    }
    let root = cgroups_of_node.path(cgroups_of_node.root());
    let own = own_cgroup(&root);
    let entered = CgroupPath::parse(&own).map(|own| enter(cgroups, &own));
    if let Ok(Err(error)) = entered {
        tracing::warn!(
            cgroup = own,
            error = chain(&error),
            "failed to move agent into its own cgroup"
        );
    }
}

/// Where the node status is computed from.
pub(super) struct NodeStatusSource {
    known: NodeFacts,
    health: watch::Receiver<RuntimeHealth>,
    images: watch::Receiver<Vec<ContainerImage>>,
    host: Arc<NodeHost>,
    vitals: Vitals,
}

impl NodeStatusSource {
    /// The current state of the node.
    pub(super) fn facts(&self) -> NodeFacts {
        let mut not_ready = self.health.borrow().problems();
        if *self.host.shutting_down.borrow() {
            not_ready.push("node is shutting down".to_owned());
        }
        not_ready.extend(self.vitals.problems());
        NodeFacts {
            images: self.images.borrow().clone(),
            not_ready,
            devices: self.host.devices.resources(),
            pressure: self.host.pressure.borrow().clone(),
            ..self.known.clone()
        }
    }
}

fn seconds(secs: i64) -> Duration {
    Duration::from_secs(u64::try_from(secs).unwrap_or_default())
}

fn std_duration(duration: duration::Duration) -> Duration {
    Duration::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or_default())
}
