//! From options to a machine that is ready for pods, or a clear reason why it is not.

use std::path::Path;
use std::sync::Arc;

use plimsoll_client::clock::Clock;
use plimsoll_core::allocatable::{
    Allocatable, DevicePlugins, Machine, NodeResources, Settings, compute_allocatable,
};
use plimsoll_core::resources::{Bytes, ResourceName};
use plimsoll_runtime::Runtime;
use plimsoll_runtime::cgroup::{Cgroups, NodeCgroups, Refusal, container_settings};
use plimsoll_runtime::cri::{self, Cri};
use plimsoll_runtime::embedded::{self, Embedded};
use plimsoll_runtime::image::{ImageService, Registries, Store};
use plimsoll_runtime::sysctl::tunables;
use plimsoll_runtime::walk::Walker;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::host::chain;
use super::options::{EmbeddedChoice, Options, RuntimeChoice};
use super::settings;
use super::user_namespaces::{UserNamespaceError, UserNamespaces};
use super::walks::walker;
use crate::devices::{self, DeviceManager};
use crate::machine::{self, LocalMachine, read_local_machine};
use crate::pods::spec::NodeFacts;
use crate::pods::spec::security::thermal_throttle_paths;
use crate::teardown::holder::{Claim, ClaimError};

/// Why an agent does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The machine cannot be read.
    #[error("cannot read the machine")]
    Machine(#[from] machine::Error),
    /// More is reserved than there is.
    #[error("{0}")]
    OverReserved(String),
    /// Its cgroups cannot be used.
    #[error("{refusal}; {}", .refusal.remedy())]
    Cgroups {
        /// Why.
        refusal: Box<Refusal>,
    },
    /// Its cgroups cannot be set up.
    #[error("cannot set up the cgroups of pods")]
    SetUp(#[source] plimsoll_runtime::cgroup::Error),
    /// Reservations cannot be enforced.
    #[error("{0}")]
    Reserved(String),
    /// Kernel settings are not what they should be.
    #[error("invalid kernel settings: {0}")]
    Kernel(String),
    /// The runtime cannot be used.
    #[error("cannot use the container runtime: {0}")]
    Runtime(String),
    /// A directory cannot be made.
    #[error("cannot create directory {path}")]
    Directory {
        /// Which.
        path: std::path::PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Another agent uses the data directory.
    #[error("cannot use the data directory")]
    Claim(#[from] ClaimError),
    /// Which ids pods have cannot be known.
    #[error("cannot read the user namespaces of pods")]
    UserNamespaces(#[from] UserNamespaceError),
    /// What the agent uses cannot be noted.
    #[error("cannot record in {data_dir} which machine resources the agent uses")]
    Footprint {
        /// Where.
        data_dir: std::path::PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Eviction thresholds cannot be used: a node that cannot evict does not start.
    #[error("cannot start eviction")]
    Thresholds(#[source] plimsoll_core::threshold::StatementError),
    /// The address of the kubelet API cannot be bound.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: std::net::SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A certificate cannot be used.
    #[error("cannot use the node's certificates")]
    Tls(#[from] crate::server::tls::TlsError),
    /// A certificate cannot be made.
    #[error("cannot create the node's certificate")]
    Certificate(#[from] crate::identity::request::RequestError),
}

/// A machine that is ready for pods.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) machine: Machine,
    pub(super) settings: Settings,
    /// Without devices.
    pub(super) allocatable: Allocatable,
    pub(super) cgroups: Arc<NodeCgroups>,
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) runtime_version: String,
    /// `containerd`, `plimsoll`: the prefix of container ids.
    pub(super) runtime_name: String,
    pub(super) facts: NodeFacts,
    /// What walks over directories for the agent and its runtime.
    pub(super) walker: Walker,
    pub(super) user_namespaces: Arc<UserNamespaces>,
    pub(super) devices: DeviceManager,
}

/// Takes the data directory for this agent alone, and notes what the agent is going to use of the
/// machine, so that it can be removed however the agent ends.
pub(super) async fn claim(options: &Options) -> Result<Claim, StartError> {
    let data_dir = options.directories.data.clone();
    let footprint = options.footprint();
    let claimed = tokio::task::spawn_blocking(move || {
        let made = std::fs::create_dir_all(&data_dir);
        made.map_err(|source| StartError::Directory {
            path: data_dir.clone(),
            source,
        })?;
        let claim = Claim::take(&data_dir)?;
        let noted = footprint.note(&data_dir);
        noted.map_err(|source| StartError::Footprint { data_dir, source })?;
        Ok(claim)
    });
    claimed
        .await
        .map_err(|error| StartError::Runtime(error.to_string()))?
}

/// Makes everything ready. Nothing is left half done: what was made is what a next start needs.
pub(super) async fn prepare(options: &Options) -> Result<Prepared, StartError> {
    let local = read_local_machine(&options.directories.root)?;
    let machine = options.capacity.clone();
    let machine = machine.unwrap_or_else(|| local.to_shared_out());
    let reservations = Settings::from_config(&options.config);
    let allocatable = compute_allocatable(
        &machine,
        &reservations,
        &DevicePlugins::default(),
        &NodeResources::default(),
    );
    if let Some(over) = allocatable.over_reserved().first() {
        return Err(StartError::OverReserved(over.to_string()));
    }
    adjust_kernel(options)?;
    raise_file_limit(options);
    make_directories(options)?;
    let walker = walker(options);
    let user_namespaces = UserNamespaces::load(&options.directories.root, &options.config)?;
    let devices = open_devices(options)?;
    let runtime = open_runtime(options, walker.clone()).await?;
    let version = runtime.version().await;
    let version = version.map_err(|error| StartError::Runtime(error.chain()))?;
    let reported = runtime.cgroup_driver().await;
    let reported = reported.map_err(|error| StartError::Runtime(error.chain()))?;
    let driver = reported.unwrap_or(options.cgroup_driver());
    let root = options.config.cgroup_root.as_str();
    let cgroups = Cgroups::detect(&options.system_root, driver, root);
    let cgroups = cgroups.map_err(|refusal| StartError::Cgroups {
        refusal: Box::new(refusal),
    })?;
    let starting = walker.clone();
    // One that does not start is started again when it is needed, and the log says why it did not.
    let _ = tokio::task::spawn_blocking(move || starting.start()).await;
    let facts = facts(options, &local, &allocatable, &cgroups);
    let cgroups = NodeCgroups::new(cgroups, &options.config, &allocatable, None);
    Ok(Prepared {
        machine,
        settings: reservations,
        allocatable,
        cgroups: Arc::new(cgroups),
        runtime,
        runtime_version: format!("{}://{}", version.runtime_name, version.runtime_version),
        runtime_name: version.runtime_name,
        facts,
        walker,
        user_namespaces: Arc::new(user_namespaces),
        devices,
    })
}

fn adjust_kernel(options: &Options) -> Result<(), StartError> {
    let behavior = match (
        *options.config.protect_kernel_defaults,
        options.adjusts_kernel,
    ) {
        (true, _) => tunables::Behavior::Error,
        (false, true) => tunables::Behavior::Modify,
        (false, false) => return Ok(()),
    };
    match tunables::apply(&options.sysctls(), behavior) {
        Ok(_) => Ok(()),
        Err(errors) if *options.config.protect_kernel_defaults => {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            Err(StartError::Kernel(errors.join("; ")))
        }
        Err(errors) => {
            for error in errors {
                tracing::warn!(%error, "kernel setting left unchanged");
            }
            Ok(())
        }
    }
}

/// Has as many files open as `maxOpenFiles` says, or as the machine lets.
fn raise_file_limit(options: &Options) {
    const DEFAULT: u64 = 1_000_000;
    let configured = options.config.carried.get("maxOpenFiles");
    let wanted = configured
        .and_then(|setting| setting.value.as_u64())
        .unwrap_or(DEFAULT);
    let before = getrlimit(Resource::Nofile);
    let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= wanted);
    if enough(before.current) {
        return;
    }
    let hard = match enough(before.maximum) {
        true => before.maximum,
        false => Some(wanted),
    };
    let all = Rlimit {
        current: Some(wanted),
        maximum: hard,
    };
    // Only some may raise the hard limit.
    let some = Rlimit {
        current: before.maximum,
        maximum: before.maximum,
    };
    let raised = setrlimit(Resource::Nofile, all).or_else(|_| setrlimit(Resource::Nofile, some));
    if let Err(error) = raised {
        tracing::warn!(wanted, %error, "failed to raise limit of open files");
    }
}

fn make_directories(options: &Options) -> Result<(), StartError> {
    let directories = &options.directories;
    let wanted = [
        directories.root.join("pods"),
        directories.pod_logs.clone(),
        directories.container_logs.clone(),
        directories.runtime.clone(),
        directories.images.clone(),
    ];
    for path in wanted {
        std::fs::create_dir_all(&path).map_err(|source| StartError::Directory { path, source })?;
    }
    Ok(())
}

fn open_devices(options: &Options) -> Result<DeviceManager, StartError> {
    let path = options.directories.root.join(devices::DIRECTORY);
    let opened = DeviceManager::open(path.clone(), Clock::system());
    if let Some(usual) = options.directories.device_plugins_link.as_ref()
        && let Err(error) = devices::standard_path::link(usual, &path)
    {
        let usual = usual.display();
        tracing::warn!(link = %usual, %error, "device plugins do not find the agent at the usual path");
    }
    opened.map_err(|source| StartError::Directory { path, source })
}

async fn open_runtime(options: &Options, walker: Walker) -> Result<Arc<dyn Runtime>, StartError> {
    match &options.runtime {
        RuntimeChoice::Cri { endpoint } => {
            let cri = Cri::new(&cri::Options::at(endpoint));
            let cri = cri.map_err(|error| StartError::Runtime(error.chain()))?;
            Ok(Arc::new(cri))
        }
        RuntimeChoice::Embedded(choice) => {
            let runtime = Embedded::new(embedded_options(options, choice, walker)?).await;
            let runtime = runtime.map_err(|error| StartError::Runtime(error.chain()))?;
            Ok(Arc::new(runtime))
        }
    }
}

fn embedded_options(
    options: &Options,
    choice: &EmbeddedChoice,
    walker: Walker,
) -> Result<embedded::Options, StartError> {
    let store = Store::open_with(&options.directories.images, choice.max_image_size);
    let store = store.map_err(|error| StartError::Runtime(chain(&error)))?;
    let store = store.with_walker(walker);
    if let Some(image) = &choice.builtin_image {
        let installed = store.install_builtin(image);
        installed.map_err(|error| StartError::Runtime(chain(&error)))?;
    }
    let registries = Registries {
        insecure: choice.insecure_registries.clone(),
    };
    Ok(embedded::Options {
        root: options.directories.runtime.clone(),
        helper: choice.helper.clone(),
        images: Arc::new(ImageService::new(store, registries)),
        cgroup_driver: options.cgroup_driver(),
        network: embedded::NetworkOptions {
            cni_conf_dir: choice.cni_config.clone(),
            cni_bin_dirs: vec![choice.cni_plugins.clone()],
            pod_cidr: Some(choice.pod_cidr.clone()),
            bridge: choice.bridge.clone(),
            forwarding: options.adjusts_kernel.then(|| options.sysctls()),
        },
    })
}

fn facts(
    options: &Options,
    local: &LocalMachine,
    allocatable: &Allocatable,
    cgroups: &Cgroups,
) -> NodeFacts {
    let config = &options.config;
    let absolute = allocatable.absolute();
    let memory = absolute.get(&ResourceName::MEMORY);
    let allocatable_memory = memory.map_or(Bytes::ZERO, Bytes::from_quantity);
    let machine_memory = options.capacity.as_ref().map_or(local.memory, |m| m.memory);
    let swap = (local.swap > Bytes::ZERO).then_some(local.swap);
    let text = |path: &str| {
        let setting = config.carried.get(path)?;
        setting.value.as_str().map(str::to_owned)
    };
    let cluster_dns = config
        .carried
        .get("clusterDNS")
        .map(|setting| &setting.value);
    let cluster_dns = cluster_dns.and_then(|value| value.as_array());
    NodeFacts {
        ips: options.node_ips.clone(),
        allocatable: allocatable.allocatable(),
        cluster_dns: (cluster_dns.into_iter().flatten())
            .filter_map(|address| address.as_str()?.parse().ok())
            .collect(),
        cluster_domain: text("clusterDomain").unwrap_or_default(),
        root_dir: options.directories.root.clone(),
        pod_logs_dir: options.directories.pod_logs.clone(),
        hosts_file: "/etc/hosts".into(),
        seccomp_default: settings::is_on(config, "seccompDefault", false),
        supports_recursive_read_only: false,
        has_selinux: Path::new("/sys/fs/selinux/enforce").exists(),
        masked_paths: thermal_throttle_paths(Path::new("/sys/devices/system/cpu")),
        kubepods: cgroups.kubepods(),
        cgroup_driver: cgroups.driver(),
        container_settings: container_settings(
            config,
            cgroups.host(),
            machine_memory,
            allocatable_memory,
            swap,
        ),
    }
}
