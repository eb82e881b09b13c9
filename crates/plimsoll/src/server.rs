//! `plimsoll server`: the API server alone.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use clap::Args;
use plimsoll_apiserver::auth::authority::{kubeconfig, write_private};
use plimsoll_apiserver::server::{Options, Server, serve};
use plimsoll_apiserver::store::{EtcdOptions, EtcdStore, EtcdTls, RedbOptions, RedbStore, Store};
use plimsoll_core::admission::memory_pressure_toleration::AddMemoryPressureToleration;
use plimsoll_core::admission::overcommit::{Override, Settings, Variant};
use plimsoll_core::object::timestamp::Timestamp;
use tokio::net::TcpListener;

use crate::input::read_bytes;
use crate::signals;

/// Changes that the store keeps for the server while it is busy.
const WATCH_BUFFER: usize = 65_536;

/// Arguments of `plimsoll server`.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// Where everything is kept: the store, keys and certificates, the admin's kubeconfig.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/plimsoll")]
    data_dir: PathBuf,

    /// What objects are stored in: `redb` (a file in the data directory) or
    /// `etcd://HOST:PORT[,HOST:PORT…]` (`etcds://` with TLS).
    #[arg(long, value_name = "STORE", default_value = "redb")]
    store: String,

    /// The address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6443")]
    listen: SocketAddr,

    /// Further host names and addresses that clients reach this server by.
    #[arg(long = "tls-san", value_name = "NAME")]
    names: Vec<String>,

    /// The authority that signs etcd's certificate.
    #[arg(long, value_name = "FILE", requires = "etcd_cert")]
    etcd_ca: Option<PathBuf>,

    /// The certificate to show to etcd.
    #[arg(long, value_name = "FILE", requires = "etcd_key")]
    etcd_cert: Option<PathBuf>,

    /// The key of that certificate.
    #[arg(long, value_name = "FILE", requires = "etcd_ca")]
    etcd_key: Option<PathBuf>,

    /// Note down every request in this file, as audit.k8s.io/v1 Events of level Metadata.
    #[arg(long, value_name = "FILE")]
    audit_log_path: Option<PathBuf>,

    /// Make requests and limits of pods into what this ClusterResourceOverride(Config) says.
    #[arg(long, value_name = "FILE")]
    cluster_resource_override: Option<String>,

    /// Let only BestEffort pods be kept away from nodes under memory pressure.
    #[arg(long)]
    add_memory_pressure_toleration: bool,

    /// Reads that are answered at once.
    #[arg(long, value_name = "N", default_value_t = 400)]
    max_requests_inflight: usize,

    /// Writes that are answered at once.
    #[arg(long, value_name = "N", default_value_t = 200)]
    max_mutating_requests_inflight: usize,
}

impl Arguments {
    /// Where everything is kept.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }
}

/// Serves until told to stop.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(serve_until_stopped(arguments))?;
    Ok(ExitCode::SUCCESS)
}

/// A server that listens, before it serves.
pub(crate) struct Opened {
    pub(crate) server: Arc<Server>,
    pub(crate) address: SocketAddr,
    /// The admin's kubeconfig.
    pub(crate) kubeconfig: PathBuf,
    /// The data directory, in full.
    pub(crate) directory: PathBuf,
    store: Arc<dyn Store>,
    listener: TcpListener,
    names: Vec<String>,
}

/// Opens the store and listens. Nothing is left half done if that fails.
pub(crate) async fn open(arguments: &Arguments) -> Result<Opened> {
    // What is told to people has to be right wherever they are.
    let directory = std::path::absolute(&arguments.data_dir)
        .with_context(|| format!("no data directory {}", arguments.data_dir.display()))?;
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make the data directory {}", directory.display()))?;
    let listener = TcpListener::bind(arguments.listen)
        .await
        .with_context(|| format!("cannot listen on {}", arguments.listen))?;
    let address = listener.local_addr().context("cannot tell the address")?;
    let store = open_store(arguments).await?;
    let advertised = advertised(address);
    let options = Options {
        advertised: advertised.clone(),
        audit_log: arguments.audit_log_path.clone(),
        overcommit: overcommit(arguments)?.map(Arc::new),
        memory_pressure: match arguments.add_memory_pressure_toleration {
            true => AddMemoryPressureToleration::Yes,
            false => AddMemoryPressureToleration::No,
        },
        max_reads: arguments.max_requests_inflight,
        max_writes: arguments.max_mutating_requests_inflight,
        ..Options::new(directory.join("pki"))
    };
    let server = Server::open(Arc::clone(&store), options)
        .await
        .context("cannot open the cluster")?;
    let kubeconfig = directory.join("admin.kubeconfig");
    write_kubeconfig(&server, &advertised, &kubeconfig)?;
    Ok(Opened {
        server,
        address,
        kubeconfig,
        directory,
        store,
        names: names(arguments, address),
        listener,
    })
}

impl Opened {
    /// Serves until the server is stopped.
    pub(crate) async fn serve(self) -> Result<()> {
        let served = serve(self.server, self.listener, &self.names).await;
        served.context("cannot serve")?;
        self.store.close().await.context("cannot close the store")
    }
}

async fn serve_until_stopped(arguments: &Arguments) -> Result<()> {
    let opened = open(arguments).await?;
    announce(opened.address, &opened.kubeconfig);
    let stopping = Arc::clone(&opened.server);
    tokio::spawn(async move {
        signals::stopped().await;
        stopping.stop();
    });
    opened.serve().await
}

#[expect(clippy::print_stderr, reason = "people wait for this line")]
fn announce(address: SocketAddr, kubeconfig: &Path) {
    eprintln!("serving on https://{address}");
    eprintln!("export KUBECONFIG={}", kubeconfig.display());
}

async fn open_store(arguments: &Arguments) -> Result<Arc<dyn Store>> {
    let store = arguments.store.as_str();
    if store == "redb" {
        let path = arguments.data_dir.join("store.redb");
        let options = RedbOptions {
            watch_buffer: WATCH_BUFFER,
            ..RedbOptions::default()
        };
        let store = tokio::task::spawn_blocking(move || RedbStore::open(&path, &options));
        let store = store.await.context("the store did not open")?;
        return Ok(Arc::new(store.context("cannot open the store")?));
    }
    let (scheme, members) = match store.split_once("://") {
        Some(("etcd", members)) => ("http", members),
        Some(("etcds", members)) => ("https", members),
        _ => bail!("--store {store}: expected redb, etcd://HOST:PORT or etcds://HOST:PORT"),
    };
    let endpoints = members.split(',').filter(|member| !member.is_empty());
    let endpoints: Vec<String> = endpoints.map(|m| format!("{scheme}://{m}")).collect();
    if endpoints.is_empty() {
        bail!("--store {store}: names no member of an etcd cluster");
    }
    let options = EtcdOptions {
        endpoints,
        tls: etcd_tls(arguments)?,
        watch_buffer: WATCH_BUFFER,
        ..EtcdOptions::default()
    };
    let store = EtcdStore::connect(&options).await;
    Ok(Arc::new(store.context("cannot reach etcd")?))
}

/// OKD's configuration means OKD's plugin; the operator's kind means the webhook of today.
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
        Err(problems) => {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            bail!("{file} cannot be used: {}", problems.join("; "))
        }
    }
}

fn etcd_tls(arguments: &Arguments) -> Result<Option<EtcdTls>> {
    let (Some(ca), Some(certificate), Some(key)) = (
        &arguments.etcd_ca,
        &arguments.etcd_cert,
        &arguments.etcd_key,
    ) else {
        return Ok(None);
    };
    let read = |path: &PathBuf| {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    Ok(Some(EtcdTls {
        ca_pem: read(ca)?,
        client_pem: Some((read(certificate)?, read(key)?)),
    }))
}

/// The address in the admin's kubeconfig: this machine, when the server listens everywhere.
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

fn write_kubeconfig(server: &Server, advertised: &str, path: &Path) -> Result<()> {
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
    write_private(path, &text).context("cannot write the admin's kubeconfig")
}

pub(crate) fn now() -> Timestamp {
    let elapsed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seconds = elapsed.map_or(0, |elapsed| elapsed.as_secs());
    Timestamp::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX))
}
