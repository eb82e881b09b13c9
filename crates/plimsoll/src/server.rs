//! `plimsoll server`: the API server alone.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use clap::Args;
use plimsoll_apiserver::auth::authority::{Term, kubeconfig, write_private};
use plimsoll_apiserver::server::{Options, Server, is_over, serve};
use plimsoll_apiserver::store::Store;
use plimsoll_core::admission::memory_pressure_toleration::AddMemoryPressureToleration;
use plimsoll_core::admission::overcommit::{Override, Settings, Variant};
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_runtime::open_files;
use tokio::net::TcpListener;

use crate::audit::AuditArguments;
use crate::backend::{self, EtcdFiles, Limits};
use crate::data_dir::{self, Lock, Part};
use crate::exit::Exit;
use crate::failure::{Advise, usage};
use crate::help::{ADVANCED, CLUSTER, SECURITY, STORAGE};
use crate::input::read_bytes;
use crate::kubeconfig::ADMIN;
use crate::mistakes::mistakes;
use crate::{admission, listen, logging, signals};

/// How soon a failed certificate renewal is retried.
pub(crate) const RETRY: Duration = Duration::from_secs(60);

/// The objects that every new cluster gets need some space.
const MIN_QUOTA: u64 = 4 * 1024 * 1024;

/// Arguments of `plimsoll server`.
#[derive(Debug, Args)]
#[group(skip)]
#[command(after_help = "\
Examples:
  # Serve on the default address and use kubectl
  plimsoll server
  export KUBECONFIG=/var/lib/plimsoll/admin.kubeconfig
  # Let other machines reach the server
  plimsoll server --listen 0.0.0.0:6443 --tls-san api.example.org
  # Store objects in etcd
  plimsoll server --store etcd://127.0.0.1:2379")]
pub(crate) struct Arguments {
    /// Directory for the store, keys, certificates and the admin's kubeconfig.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/plimsoll")]
    data_dir: PathBuf,

    /// Store for API objects: `redb`, `etcd://HOST:PORT[,…]` or `etcds://HOST:PORT[,…]`.
    ///
    /// `redb` is a file in the data directory; `etcds` is etcd with TLS.
    #[arg(long, value_name = "STORE", default_value = "redb", value_parser = backend::parse_choice,
        help_heading = STORAGE)]
    store: backend::Choice,

    /// Maximum size of objects and their history in the `redb` store [default: size of the disk].
    ///
    /// Beyond it the server accepts only deletes and updates that do not grow an object.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(MIN_QUOTA..),
        help_heading = STORAGE)]
    storage_quota_bytes: Option<u64>,

    /// EncryptionConfiguration for encryption at rest; reloaded when it changes.
    #[arg(long, value_name = "FILE", help_heading = SECURITY)]
    encryption_provider_config: Option<PathBuf>,

    /// Create new keys if they are missing although the store has objects.
    ///
    /// Kubeconfigs, node certificates and tokens that the lost keys signed stop working.
    #[arg(long, help_heading = SECURITY)]
    new_authority: bool,

    /// Address and port to serve the Kubernetes API on.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:6443",
        value_parser = listen::parse(6443))]
    listen: SocketAddr,

    /// Additional host name or IP address for the server's certificate; may be repeated.
    #[arg(long = "tls-san", value_name = "NAME")]
    names: Vec<String>,

    /// CA certificate to verify etcd with.
    #[arg(long, value_name = "FILE", requires = "etcd_cert", help_heading = STORAGE)]
    etcd_ca: Option<PathBuf>,

    /// Client certificate for etcd.
    #[arg(long, value_name = "FILE", requires = "etcd_key", help_heading = STORAGE)]
    etcd_cert: Option<PathBuf>,

    /// Private key of the client certificate for etcd.
    #[arg(long, value_name = "FILE", requires = "etcd_ca", help_heading = STORAGE)]
    etcd_key: Option<PathBuf>,

    #[command(flatten)]
    audit: AuditArguments,

    /// Override requests and limits of pods by this ClusterResourceOverride(Config).
    #[arg(long, value_name = "FILE", help_heading = CLUSTER)]
    cluster_resource_override: Option<String>,

    /// AdmissionConfiguration for the plugins PodSecurity and EventRateLimit.
    #[arg(long, value_name = "FILE", help_heading = CLUSTER)]
    admission_control_config_file: Option<String>,

    /// Let all pods but BestEffort ones tolerate memory pressure of nodes.
    #[arg(long, help_heading = CLUSTER)]
    add_memory_pressure_toleration: bool,

    /// Maximum number of read requests in flight.
    #[arg(long, value_name = "N", default_value_t = 400, help_heading = ADVANCED)]
    max_requests_inflight: usize,

    /// Maximum number of mutating requests in flight.
    #[arg(long, value_name = "N", default_value_t = 200, help_heading = ADVANCED)]
    max_mutating_requests_inflight: usize,
}

impl Arguments {
    /// The data directory.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }
}

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    open_files::raise_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(serve_until_stopped(arguments))?;
    Ok(Exit::Success.into())
}

/// A server that listens but does not serve yet.
pub(crate) struct Opened {
    pub(crate) server: Arc<Server>,
    pub(crate) address: SocketAddr,
    /// The admin's kubeconfig.
    pub(crate) kubeconfig: PathBuf,
    /// The absolute path of the data directory.
    pub(crate) directory: PathBuf,
    store: Arc<dyn Store>,
    listener: TcpListener,
    advertised: String,
    /// Until when the admin's kubeconfig is valid, and when to renew it.
    term: Term,
    _lock: Lock,
}

/// Opens the store and listens. A failure leaves nothing behind.
pub(crate) async fn open(arguments: &Arguments) -> Result<Opened> {
    let plugins = admission::read(arguments.admission_control_config_file.as_deref())?;
    let directory = data_dir::make(&arguments.data_dir)?;
    let lock = data_dir::lock(&directory, Part::Server)?;
    let listener = TcpListener::bind(arguments.listen)
        .await
        .with_context(|| format!("cannot listen on {}", arguments.listen))
        .map_err(|error| listen::advise(error, arguments.listen, "--listen"))?;
    let address = listener
        .local_addr()
        .context("cannot determine the listen address")?;
    if arguments.storage_quota_bytes.is_some() && arguments.store != backend::Choice::Redb {
        let error = "--storage-quota-bytes applies to --store redb only";
        return Err(usage(error).hint("etcd has a quota of its own: etcd --quota-backend-bytes"));
    }
    let limits = Limits::of_a_server(arguments.storage_quota_bytes);
    let store = backend::open(&directory, &arguments.store, etcd_files(arguments), limits).await?;
    let store = match &arguments.encryption_provider_config {
        Some(file) => backend::encrypted(store, file)?,
        None => store,
    };
    let certificates = directory.join("pki");
    if !arguments.new_authority {
        backend::refuse_new_keys(store.as_ref(), &certificates).await?;
    }
    let advertised = advertised(address);
    let options = Options {
        pod_security: plugins.pod_security,
        event_rate_limits: plugins.event_rate_limits,
        advertised: advertised.clone(),
        names: names(arguments, address),
        audit: arguments.audit.options()?,
        overcommit: overcommit(arguments)?.map(Arc::new),
        memory_pressure: match arguments.add_memory_pressure_toleration {
            true => AddMemoryPressureToleration::Yes,
            false => AddMemoryPressureToleration::No,
        },
        max_reads: arguments.max_requests_inflight,
        max_writes: arguments.max_mutating_requests_inflight,
        ..Options::new(certificates)
    };
    let server = Server::open(Arc::clone(&store), options)
        .await
        .context("cannot open the cluster")?;
    let kubeconfig = directory.join(ADMIN);
    let term = write_kubeconfig(&server, &advertised, &kubeconfig)?;
    Ok(Opened {
        server,
        address,
        kubeconfig,
        directory,
        store,
        listener,
        advertised,
        term,
        _lock: lock,
    })
}

impl Opened {
    /// Serves until the server is stopped.
    pub(crate) async fn serve(self) -> Result<()> {
        let keeping = tokio::spawn(keep_kubeconfig(
            Arc::clone(&self.server),
            self.advertised,
            self.kubeconfig,
            self.term,
        ));
        let served = serve(self.server, self.listener).await;
        keeping.abort();
        served.context("cannot serve")?;
        self.store.close().await.context("cannot close the store")
    }
}

async fn serve_until_stopped(arguments: &Arguments) -> Result<()> {
    let opened = open(arguments).await?;
    // Signal handlers come first: a script may stop the server as soon as it prints its address.
    let stop = signals::stop_token();
    announce(opened.address, &opened.kubeconfig);
    let stopping = Arc::clone(&opened.server);
    tokio::spawn(async move {
        stop.cancelled().await;
        stopping.stop();
    });
    opened.serve().await
}

fn announce(address: SocketAddr, kubeconfig: &Path) {
    logging::announce(&[
        format!("serving on https://{address}"),
        format!("export KUBECONFIG={}", kubeconfig.display()),
    ]);
}

/// OKD's configuration selects OKD's plugin, the operator's kind the operator's webhook.
fn overcommit(arguments: &Arguments) -> Result<Option<Override>> {
    let Some(file) = &arguments.cluster_resource_override else {
        return Ok(None);
    };
    let text = String::from_utf8(read_bytes(file)?);
    let text = text.with_context(|| format!("{file} is not text"))?;
    let is_modern = text
        .lines()
        .any(|line| line.trim() == "kind: ClusterResourceOverride");
    let variant = match is_modern {
        true => Variant::Modern,
        false => Variant::Okd39,
    };
    match Settings::from_yaml(&text, variant) {
        Ok(settings) => Ok(Some(Override::new(variant, settings))),
        Err(problems) => Err(mistakes(file, &problems)),
    }
}

/// All three or none: clap enforces it.
fn etcd_files(arguments: &Arguments) -> Option<EtcdFiles<'_>> {
    Some(EtcdFiles {
        ca: arguments.etcd_ca.as_deref()?,
        certificate: arguments.etcd_cert.as_deref()?,
        key: arguments.etcd_key.as_deref()?,
    })
}

/// The address in the admin's kubeconfig: loopback if the server listens on all addresses.
fn advertised(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        format!("127.0.0.1:{}", address.port())
    } else {
        address.to_string()
    }
}

fn names(arguments: &Arguments, address: SocketAddr) -> Vec<String> {
    let mut names: Vec<String> = [
        "localhost",
        "127.0.0.1",
        "::1",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ]
    .map(str::to_owned)
    .to_vec();
    if !address.ip().is_unspecified() {
        names.push(address.ip().to_string());
    }
    names.extend(arguments.names.iter().cloned());
    names.sort();
    names.dedup();
    names
}

/// Renews the admin's kubeconfig before its certificate expires.
async fn keep_kubeconfig(server: Arc<Server>, advertised: String, path: PathBuf, mut term: Term) {
    loop {
        is_over(term).await;
        match write_kubeconfig(&server, &advertised, &path) {
            Ok(next) => {
                term = next;
                tracing::info!(path = %path.display(), "renewed admin kubeconfig");
            }
            Err(error) => {
                let error = format!("{error:#}");
                tracing::warn!(error, "failed to renew admin kubeconfig");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Returns until when it is valid.
fn write_kubeconfig(server: &Server, advertised: &str, path: &Path) -> Result<Term> {
    let authority = server.authority();
    let admin = authority
        .admin(now())
        .context("cannot sign the admin's certificate")?;
    let url = format!("https://{advertised}");
    let text = kubeconfig(
        &url,
        authority.certificate_pem(),
        "kubernetes-admin",
        &admin,
    );
    write_private(path, &text).context("cannot write the admin's kubeconfig")?;
    Ok(authority.term(&admin))
}

pub(crate) fn now() -> Timestamp {
    let elapsed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seconds = elapsed.map_or(0, |elapsed| elapsed.as_secs());
    Timestamp::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX))
}
