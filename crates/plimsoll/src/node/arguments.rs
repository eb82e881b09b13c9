//! The flags about a node of `plimsoll node`, `plimsoll up` and `plimsoll check --node`.

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
use plimsoll_node::devices::standard_path::STANDARD;
use plimsoll_node::machine::read_local_machine;
use plimsoll_node::preflight::Subject;
use plimsoll_report::check::Capacity;
use plimsoll_report::node_flags::NodeFlags;
use plimsoll_runtime::image::MaxImageSize;

use super::confinement::{ConfinementArguments, DefaultConfinement};
use super::eviction::EvictionArguments;
use super::settings;
use crate::data_dir::DEFAULT_DATA_DIR;
use crate::demo_image;
use crate::failure::{Advise, usage};
use crate::help::{ADVANCED, NETWORKING, NODE, STORAGE};
use crate::input::read_bytes;
use crate::listen;
use crate::mistakes::{checkable, mistakes};

/// The hidden first argument that runs this binary as a helper of the embedded runtime.
pub(crate) const RUNTIME_HELPER: &str = "runtime-helper";

/// The hidden first argument that runs this binary as the process that walks over directories.
pub(crate) const DISK_WALKER: &str = "disk-walker";

/// Arguments about a node.
#[derive(Debug, Args)]
pub(crate) struct NodeArguments {
    /// KubeletConfiguration or OKD node-config.yaml.
    #[arg(long, value_name = "FILE")]
    config: Option<String>,

    /// Name of the node [default: host name].
    #[arg(long, value_name = "NAME", alias = "hostname-override")]
    node_name: Option<String>,

    /// IP address of the node [default: the listen address or the address of the default route].
    #[arg(long, value_name = "ADDRESS", help_heading = NODE)]
    node_ip: Option<IpAddr>,

    /// Labels of the node.
    #[arg(long, value_name = "NAME=VALUE,…", value_delimiter = ',', help_heading = NODE)]
    node_labels: Vec<String>,

    /// Taints to register the node with.
    #[arg(long, value_name = "KEY=VALUE:EFFECT,…", value_delimiter = ',', help_heading = NODE)]
    register_with_taints: Vec<String>,

    /// Container runtime: `embedded`, or the socket of containerd or CRI-O.
    #[arg(long, value_name = "RUNTIME", default_value = "embedded", help_heading = NODE)]
    runtime: String,

    /// Address and port of the kubelet API: logs, exec, port-forward, metrics.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:10250",
        value_parser = listen::parse(10250), help_heading = NETWORKING)]
    kubelet_listen: SocketAddr,

    /// Address and port of the health endpoint, without TLS; `off` to disable.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:10248",
        value_parser = parse_healthz, help_heading = NETWORKING)]
    healthz_listen: Healthz,

    /// Parent cgroup of all pods; overrides cgroupRoot.
    #[arg(long, value_name = "CGROUP", help_heading = NODE)]
    cgroup_root: Option<String>,

    /// Directory of static pod manifests; overrides staticPodPath.
    #[arg(long, value_name = "DIR", help_heading = NODE)]
    pod_manifest_path: Option<PathBuf>,

    /// Capacity of the node if it differs from the machine's, such as `cpu=2,memory=1Gi`.
    #[arg(long, value_name = "NAME=QUANTITY,…", help_heading = NODE)]
    capacity: Option<String>,

    /// Pod network if no CNI plugin is configured (embedded runtime).
    #[arg(long, value_name = "CIDR", default_value = "10.88.0.0/16", help_heading = NETWORKING)]
    pod_cidr: String,

    /// Bridge of the pod network if no CNI plugin is configured (embedded runtime).
    ///
    /// Each agent on a machine needs a bridge of its own.
    #[arg(long, value_name = "NAME", default_value = "plimsoll0", value_parser = parse_bridge,
        help_heading = NETWORKING)]
    bridge: String,

    /// Directory of CNI configurations (embedded runtime).
    #[arg(long, value_name = "DIR", default_value = "/etc/cni/net.d", help_heading = NETWORKING)]
    cni_conf_dir: PathBuf,

    /// Directory of CNI plugins (embedded runtime).
    #[arg(long, value_name = "DIR", default_value = "/opt/cni/bin", help_heading = NETWORKING)]
    cni_bin_dir: PathBuf,

    /// Registries to use without TLS, besides those on loopback addresses (embedded runtime).
    #[arg(long, value_name = "HOST[:PORT],…", value_delimiter = ',', help_heading = NETWORKING)]
    insecure_registry: Vec<String>,

    /// Maximum unpacked size of an image (embedded runtime) [default: half of the image disk].
    #[arg(long, value_name = "QUANTITY", value_parser = parse_image_size, help_heading = STORAGE)]
    max_image_size: Option<u64>,

    /// Do not change kernel settings such as vm.overcommit_memory.
    #[arg(long, help_heading = ADVANCED)]
    keep_kernel_settings: bool,

    #[command(flatten)]
    eviction: EvictionArguments,

    #[command(flatten)]
    confinement: ConfinementArguments,
}

impl NodeArguments {
    /// The configuration with the flags applied. Reports all mistakes at once.
    fn node_config(&self, confinement: DefaultConfinement) -> Result<NodeConfig> {
        let mut config = match &self.config {
            None => NodeConfig::defaults(Profile::Kubernetes136),
            Some(file) => {
                let reading = read_file(&read_bytes(file)?, None);
                if !reading.problems.is_empty() {
                    return Err(checkable(file, &reading.problems));
                }
                let mut config = reading.config;
                settings::resolve_paths(&mut config, Path::new(file));
                let problems = settings::problems(&config, self.flags());
                if !problems.is_empty() {
                    return Err(mistakes(file, &problems));
                }
                config
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

    /// The flags that settings of the configuration may only repeat.
    fn flags(&self) -> NodeFlags<'_> {
        NodeFlags {
            kubelet_listen: self.kubelet_listen,
            healthz_listen: self.healthz_listen.0,
            runtime: &self.runtime,
        }
    }

    /// The agent's options. `serving` and `client_ca_pem` depend on how the node joins.
    pub(crate) fn options(
        &self,
        confinement: DefaultConfinement,
        data_dir: &Path,
        serving: Serving,
        client_ca_pem: Option<String>,
    ) -> Result<Options> {
        let config = self.node_config(confinement)?;
        let node_name = self.node_name()?;
        let client_ca_pem = settings::client_authority(&config)?.or(client_ca_pem);
        let serving = match (settings::serving(&config)?, serving) {
            (Some(given), _) => given,
            (None, Serving::SelfSigned) if *config.server_tls_bootstrap => Serving::Requested,
            (None, serving) => serving,
        };
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
            return Err(usage(format!("invalid node name {name:?}: {problem}"))
                .hint("give another name with --node-name"));
        }
        Ok(name)
    }

    /// The host names and addresses of the node.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let mut names = vec![self.node_name()?, hostname(), self.main_ip().to_string()];
        names.push(Ipv4Addr::LOCALHOST.to_string());
        names.dedup();
        Ok(names)
    }

    /// The node's address: `--node-ip`, else the listen address, else that of the default route.
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

/// The command that runs this binary as a helper of the embedded runtime.
pub(crate) fn helper_command() -> Result<Vec<OsString>> {
    own_command(RUNTIME_HELPER)
}

fn own_command(word: &str) -> Result<Vec<OsString>> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    Ok(vec![program.into(), OsString::from(word)])
}

/// The address of the health endpoint; `None` if it is off.
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

/// The maximum unpacked size of an image.
pub(crate) fn image_size(bytes: Option<u64>) -> MaxImageSize {
    bytes.map_or(MaxImageSize::default(), MaxImageSize::Bytes)
}

pub(crate) fn parse_image_size(text: &str) -> Result<u64, String> {
    let quantity: Quantity = text.parse().map_err(|error| format!("{error}"))?;
    match u64::try_from(quantity.value()) {
        Ok(bytes) if bytes > 0 => Ok(bytes),
        _ => Err("must be greater than 0, such as 20Gi".to_owned()),
    }
}

/// Checks the kernel's rules for names of network links; the kernel would expand `%`.
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

/// What the preflight checks of such an agent cover.
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

/// A custom data directory holds everything; with the default one, logs are at the kubelet's
/// usual paths.
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
        device_plugins_link: is_default.then(|| STANDARD.into()),
        data: data_dir,
    })
}

pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("invalid directory {}", path.display()))
}

/// The machine that `--capacity` describes; resources not named are those of this machine.
fn machine(text: &str, config: &NodeConfig) -> Result<Machine> {
    let capacity = Capacity::parse(text).map_err(usage)?;
    let local = read_local_machine(Path::new(config.root_dir.as_str()))?;
    Ok(capacity.override_machine(local.to_shared_out()))
}

/// The source address of this machine's default route. Connecting a UDP socket sends nothing; it
/// only consults the routing table.
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
    use clap::Parser;

    use super::*;

    /// `plimsoll check` assumes them.
    #[test]
    fn flags_have_the_documented_defaults() {
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            node: NodeArguments,
        }
        let line = Line::try_parse_from(["node"]).expect("no flag is required");
        assert_eq!(line.node.flags(), NodeFlags::default());
    }

    #[test]
    fn bridge_names_follow_the_rules_of_the_kernel() {
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
