//! What `plimsoll node`, `plimsoll up` and `plimsoll check --node` are told about a node.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use plimsoll_client::process::hostname;
use plimsoll_core::allocatable::Machine;
use plimsoll_core::config::{NodeConfig, Profile, parse_taint, read_file};
use plimsoll_core::object::syntax::check_dns_subdomain;
use plimsoll_core::quantity::Quantity;
use plimsoll_node::agent::{Directories, EmbeddedChoice, Options, RuntimeChoice, Serving};
use plimsoll_node::image::MaxImageSize;
use plimsoll_node::preflight::Subject;

use super::confinement::{ConfinementArguments, DefaultConfinement};
use super::eviction::EvictionArguments;
use crate::check::overridden_machine;
use crate::demo_image;
use crate::failure::{Advise, usage};
use crate::input::read_bytes;
use crate::listen;
use crate::mistakes::checkable;

/// The hidden word by which this binary becomes a helper of its own runtime.
pub(crate) const RUNTIME_HELPER: &str = "runtime-helper";

/// The hidden word by which it becomes the process that walks over directories.
pub(crate) const DISK_WALKER: &str = "disk-walker";

/// Where everything is kept unless something else is said.
pub(crate) const DEFAULT_DATA_DIR: &str = "/var/lib/plimsoll";

/// Arguments about a node.
#[derive(Debug, Args)]
pub(crate) struct NodeArguments {
    /// A KubeletConfiguration or an OKD node-config.yaml.
    #[arg(long, value_name = "FILE")]
    config: Option<String>,

    /// The name of the node; the machine's host name if not given.
    #[arg(long, value_name = "NAME", alias = "hostname-override")]
    node_name: Option<String>,

    /// The address of the node; the one it listens on, or the one that leads to the network, if not
    /// given.
    #[arg(long, value_name = "ADDRESS")]
    node_ip: Option<IpAddr>,

    /// Labels of the node.
    #[arg(long, value_name = "NAME=VALUE,…", value_delimiter = ',')]
    node_labels: Vec<String>,

    /// Taints of the node when it registers.
    #[arg(long, value_name = "KEY=VALUE:EFFECT,…", value_delimiter = ',')]
    register_with_taints: Vec<String>,

    /// Who runs containers: `embedded`, or the socket of containerd or CRI-O.
    #[arg(long, value_name = "RUNTIME", default_value = "embedded")]
    runtime: String,

    /// Where logs, commands and figures of pods are asked for.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:10250",
        value_parser = listen::parse(10250))]
    kubelet_listen: SocketAddr,

    /// Where health is served on this machine, without TLS; `off` for nowhere.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:10248",
        value_parser = parse_healthz)]
    healthz_listen: Healthz,

    /// The cgroup below which all pods run, if the configuration names none.
    #[arg(long, value_name = "CGROUP")]
    cgroup_root: Option<String>,

    /// Manifests of static pods, if the configuration names no directory.
    #[arg(long, value_name = "DIR")]
    pod_manifest_path: Option<PathBuf>,

    /// What the node has, where that is not what the machine has: `cpu=2,memory=1Gi`.
    #[arg(long, value_name = "NAME=QUANTITY,…")]
    capacity: Option<String>,

    /// Addresses of pods where no network plugin is configured (embedded runtime).
    #[arg(long, value_name = "CIDR", default_value = "10.88.0.0/16")]
    pod_cidr: String,

    /// The bridge that joins pods where no network plugin is configured (embedded runtime). Agents
    /// side by side on one machine each have one of their own.
    #[arg(long, value_name = "NAME", default_value = "plimsoll0", value_parser = parse_bridge)]
    bridge: String,

    /// Where network plugins are configured (embedded runtime).
    #[arg(long, value_name = "DIR", default_value = "/etc/cni/net.d")]
    cni_conf_dir: PathBuf,

    /// Where network plugins are (embedded runtime).
    #[arg(long, value_name = "DIR", default_value = "/opt/cni/bin")]
    cni_bin_dir: PathBuf,

    /// Registries to be spoken to without TLS (embedded runtime); those on this machine always are.
    #[arg(long, value_name = "HOST[:PORT],…", value_delimiter = ',')]
    insecure_registry: Vec<String>,

    /// How much one image may unpack to, as a quantity (embedded runtime); half of the disk that
    /// holds images if not given.
    #[arg(long, value_name = "QUANTITY", value_parser = parse_image_size)]
    max_image_size: Option<u64>,

    /// Leave kernel settings (vm.overcommit_memory and others) as they are.
    #[arg(long)]
    keep_kernel_settings: bool,

    #[command(flatten)]
    eviction: EvictionArguments,

    #[command(flatten)]
    confinement: ConfinementArguments,
}

impl NodeArguments {
    /// The configuration with what the command line adds. All mistakes are told at once.
    fn node_config(&self, confinement: DefaultConfinement) -> Result<NodeConfig> {
        let mut config = match &self.config {
            None => NodeConfig::defaults(Profile::Kubernetes136),
            Some(file) => {
                let reading = read_file(&read_bytes(file)?, None);
                if !reading.problems.is_empty() {
                    return Err(checkable(file, &reading.problems));
                }
                reading.config
            }
        };
        self.confinement.apply(confinement, &mut config);
        if let Some(root) = &self.cgroup_root {
            config.cgroup_root.value.clone_from(root);
        }
        if let Some(path) = &self.pod_manifest_path {
            config.static_pod_path.value = absolute(path)?.display().to_string();
        }
        for label in &self.node_labels {
            let Some((name, value)) = label.split_once('=') else {
                return Err(usage(format!(
                    "invalid value {label:?} for --node-labels: expected NAME=VALUE"
                )));
            };
            let labels: &mut BTreeMap<_, _> = &mut config.node_labels.value;
            labels.insert(name.to_owned(), value.to_owned());
        }
        for taint in &self.register_with_taints {
            match parse_taint(taint) {
                Ok(taint) => config.register_with_taints.value.push(taint),
                Err(error) => {
                    return Err(usage(format!(
                        "invalid value {taint:?} for --register-with-taints: {error}"
                    )));
                }
            }
        }
        Ok(config)
    }

    /// Everything an agent is told. `serving` and `client_ca_pem` depend on how it joins.
    pub(crate) fn options(
        &self,
        confinement: DefaultConfinement,
        data_dir: &Path,
        serving: Serving,
        client_ca_pem: Option<String>,
    ) -> Result<Options> {
        let config = self.node_config(confinement)?;
        let node_name = self.node_name()?;
        let capacity = self.capacity.as_deref().map(|text| machine(text, &config));
        Ok(Options {
            node_name,
            node_ips: vec![self.main_ip()],
            capacity: capacity.transpose()?,
            directories: directories(data_dir, &config)?,
            system_root: "/".into(),
            runtime: self.runtime_choice()?,
            walker: own_command(DISK_WALKER)?,
            listen: self.kubelet_listen,
            healthz: self.healthz_listen.0,
            client_ca_pem,
            serving,
            adjusts_kernel: !self.keep_kernel_settings,
            eviction: self.eviction.choice(),
            config,
        })
    }

    /// The name of the node.
    pub(crate) fn node_name(&self) -> Result<String> {
        let name = self.node_name.clone().unwrap_or_else(hostname);
        let name = name.trim().to_lowercase();
        if let Some(problem) = check_dns_subdomain(&name).first() {
            return Err(
                usage(format!("the node cannot be called {name:?}: {problem}"))
                    .hint("give another name with --node-name"),
            );
        }
        Ok(name)
    }

    /// The names and addresses by which others reach the node.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let mut names = vec![self.node_name()?, hostname(), self.main_ip().to_string()];
        names.push(Ipv4Addr::LOCALHOST.to_string());
        names.dedup();
        Ok(names)
    }

    /// Where others reach the node: what it was told, or what it listens on, or what leads out.
    fn main_ip(&self) -> IpAddr {
        let listened = Some(self.kubelet_listen.ip()).filter(|ip| !ip.is_unspecified());
        self.node_ip.or(listened).unwrap_or_else(main_address)
    }

    fn runtime_choice(&self) -> Result<RuntimeChoice> {
        if self.runtime != "embedded" {
            return Ok(RuntimeChoice::Cri {
                endpoint: self.runtime.clone(),
            });
        }
        Ok(RuntimeChoice::Embedded(EmbeddedChoice {
            helper: helper_command()?,
            pod_cidr: self.pod_cidr.clone(),
            bridge: self.bridge.clone(),
            cni_config: self.cni_conf_dir.clone(),
            cni_plugins: self.cni_bin_dir.clone(),
            insecure_registries: self.insecure_registry.clone(),
            max_image_size: image_size(self.max_image_size),
            builtin_image: Some(demo_image::IMAGE),
        }))
    }
}

/// The command by which this binary becomes a helper of its own runtime.
pub(crate) fn helper_command() -> Result<Vec<OsString>> {
    own_command(RUNTIME_HELPER)
}

fn own_command(word: &str) -> Result<Vec<OsString>> {
    let program = std::env::current_exe().context("cannot tell which file this program is")?;
    Ok(vec![program.into(), OsString::from(word)])
}

/// Where health is served, if anywhere.
#[derive(Clone, Copy, Debug)]
struct Healthz(Option<SocketAddr>);

fn parse_healthz(text: &str) -> Result<Healthz, String> {
    if text == "off" {
        return Ok(Healthz(None));
    }
    let address = listen::parse(10248)(text);
    let address = address.map_err(|error| format!("{error}, or off"))?;
    Ok(Healthz(Some(address)))
}

/// What one image may unpack to.
pub(crate) fn image_size(bytes: Option<u64>) -> MaxImageSize {
    bytes.map_or(MaxImageSize::default(), MaxImageSize::Bytes)
}

pub(crate) fn parse_image_size(text: &str) -> Result<u64, String> {
    let quantity: Quantity = text.parse().map_err(|error| format!("{error}"))?;
    match u64::try_from(quantity.value()) {
        Ok(bytes) if bytes > 0 => Ok(bytes),
        _ => Err("the size of an image is above zero, as 20Gi".to_owned()),
    }
}

/// The kernel's rules for the name of a network link, and `%`, which it would fill in.
fn parse_bridge(text: &str) -> Result<String, String> {
    const MOST: usize = 15;
    let is_allowed = |c: char| c.is_ascii_graphic() && !['/', ':', '%'].contains(&c);
    let problem = match text {
        "" => "the name is empty".to_owned(),
        "." | ".." => format!("{text:?} names a directory"),
        _ if text.len() > MOST => format!("the name has {} bytes", text.len()),
        _ => match text.chars().find(|c| !is_allowed(*c)) {
            Some(wrong) => format!("the name contains {wrong:?}"),
            None => return Ok(text.to_owned()),
        },
    };
    Err(format!(
        "{problem}; the name of a bridge has 1 to {MOST} visible ASCII characters without \"/\", \
         \":\" and \"%\", and is neither \".\" nor \"..\""
    ))
}

/// What is to be looked at before such an agent starts.
pub(crate) fn subject(options: &Options) -> Subject {
    let directories = &options.directories;
    let mut listens = vec![("kubelet", options.listen)];
    listens.extend(options.healthz.map(|address| ("healthz", address)));
    let runtime_socket = match &options.runtime {
        RuntimeChoice::Embedded(_) => None,
        RuntimeChoice::Cri { endpoint } => {
            let path = endpoint.strip_prefix("unix://").unwrap_or(endpoint);
            Some(PathBuf::from(path))
        }
    };
    Subject {
        system_root: options.system_root.clone(),
        directories: vec![directories.root.clone(), directories.pod_logs.clone()],
        listens,
        runtime_socket,
    }
}

/// A data directory of one's own keeps everything in it; otherwise things are where people look
/// for them.
fn directories(data_dir: &Path, config: &NodeConfig) -> Result<Directories> {
    let data_dir = absolute(data_dir)?;
    let is_default = data_dir == Path::new(DEFAULT_DATA_DIR);
    let root = match config.root_dir.is_set() {
        true => PathBuf::from(config.root_dir.as_str()),
        false => data_dir.join("kubelet"),
    };
    let pod_logs = match config.pod_logs_dir.is_set() || is_default {
        true => PathBuf::from(config.pod_logs_dir.as_str()),
        false => data_dir.join("log").join("pods"),
    };
    let container_logs = match is_default {
        true => PathBuf::from("/var/log/containers"),
        false => data_dir.join("log").join("containers"),
    };
    Ok(Directories {
        root,
        pod_logs,
        container_logs,
        runtime: data_dir.join("runtime"),
        images: data_dir.join("images"),
        data: data_dir,
    })
}

pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("no directory {}", path.display()))
}

/// The machine that `--capacity` describes; what it leaves out is this machine's.
fn machine(text: &str, config: &NodeConfig) -> Result<Machine> {
    overridden_machine(text, Path::new(config.root_dir.as_str()))
}

/// The address of this machine that others would reach it by. Connecting a UDP socket sends
/// nothing; it only asks the routing table.
fn main_address() -> IpAddr {
    let ask = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    let found = ask().filter(|address| !address.is_unspecified());
    found.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bridge_has_a_name_that_the_kernel_takes() {
        for name in ["plimsoll0", "a", "br-0.1", "0123456789abcde"] {
            assert_eq!(parse_bridge(name).as_deref(), Ok(name));
        }
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "a b",
            "a:b",
            "a%d",
            "ä",
            "0123456789abcdef",
            "a\n",
        ] {
            assert!(parse_bridge(name).is_err(), "{name:?}");
        }
    }
}
