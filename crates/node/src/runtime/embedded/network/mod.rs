//! The network of sandboxes.
//!
//! With a CNI configuration on the machine its plugins are run ([`cni`]). Without one, sandboxes are
//! joined to a bridge ([`bridge`]) and get addresses of the node's range ([`address`]); the machine
//! reaches them, and they reach each other, but nothing is translated, so that they do not reach the
//! world outside. Without a range, or where the kernel has no virtual cards, a sandbox has its
//! loopback card only.

mod address;
mod bridge;
mod cni;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rtnetlink::Handle;
use tokio::sync::OnceCell;

use super::layout::Layout;
use super::table::lock;
use crate::runtime::Error;
use crate::runtime::wire::{PodSandboxConfig, RuntimeCondition};
use address::{Addresses, Range};
use bridge::BridgeError;
use cni::Cni;

/// How sandboxes get their network.
#[derive(Clone, Debug)]
pub struct NetworkOptions {
    /// Where CNI configurations are looked for; usually `/etc/cni/net.d`.
    pub cni_conf_dir: PathBuf,
    /// Where CNI plugins are; usually `/opt/cni/bin`.
    pub cni_bin_dirs: Vec<PathBuf>,
    /// The bridge of the built-in network.
    pub bridge: String,
    /// The range of addresses of the built-in network, until the node is told another.
    pub pod_cidr: Option<String>,
}

impl Default for NetworkOptions {
    fn default() -> NetworkOptions {
        NetworkOptions {
            cni_conf_dir: "/etc/cni/net.d".into(),
            cni_bin_dirs: vec!["/opt/cni/bin".into()],
            bridge: "plimsoll0".to_owned(),
            pod_cidr: None,
        }
    }
}

#[derive(Debug)]
pub(super) struct Network {
    bridge: String,
    range: Mutex<Option<Range>>,
    addresses: Addresses,
    cni: Cni,
    layout: Layout,
    /// A conversation about the machine's own network.
    machine: OnceCell<Handle>,
}

impl Network {
    pub(super) fn new(options: NetworkOptions, layout: Layout) -> Result<Network, Error> {
        let network = Network {
            bridge: options.bridge,
            range: Mutex::new(None),
            addresses: Addresses::new(layout.addresses()),
            cni: Cni::new(options.cni_conf_dir, options.cni_bin_dirs),
            layout,
            machine: OnceCell::new(),
        };
        if let Some(cidr) = options.pod_cidr {
            network.set_pod_cidr(&cidr)?;
        }
        Ok(network)
    }

    /// From now on addresses are taken from this range; those given out stay.
    pub(super) fn set_pod_cidr(&self, cidr: &str) -> Result<(), Error> {
        if cidr.is_empty() {
            return Ok(());
        }
        let range = Range::parse(cidr);
        let range = range.ok_or_else(|| {
            Error::Invalid(format!("pod CIDR {cidr:?} has no range of IPv4 addresses"))
        })?;
        *lock(&self.range) = Some(range);
        Ok(())
    }

    /// Whether pods can be given a network.
    pub(super) fn condition(&self) -> RuntimeCondition {
        RuntimeCondition {
            r#type: "NetworkReady".to_owned(),
            status: true,
            ..RuntimeCondition::default()
        }
    }

    /// Gives a sandbox its network; returns its addresses.
    pub(super) async fn attach(
        &self,
        id: &str,
        netns: &Path,
        config: &PodSandboxConfig,
    ) -> Result<Vec<IpAddr>, Error> {
        let failed = |error: BridgeError| {
            Error::failed(format!("set up the network of sandbox {id}"), error)
        };
        let inside = bridge::connect_inside(netns).await.map_err(failed)?;
        bridge::raise_loopback(&inside).await.map_err(failed)?;
        let note = self.layout.sandbox(id).cni();
        if let Some(ips) = self.cni.add(id, netns, config, &note).await? {
            return Ok(ips);
        }
        if config.port_mappings.iter().any(|port| port.host_port > 0) {
            tracing::warn!(sandbox = id, "the built-in network maps no host ports");
        }
        let range = *lock(&self.range);
        let Some(range) = range else {
            return Ok(Vec::new());
        };
        let address = self
            .addresses
            .allocate(range, id)
            .map_err(|error| Error::failed(format!("find an address for sandbox {id}"), error))?;
        let Some(address) = address else {
            let message = format!("no IP addresses available in range {range}");
            return Err(Error::Invalid(message));
        };
        let joined = async {
            let machine = self.machine().await?;
            let bridge = bridge::ensure_bridge(machine, &self.bridge, range).await?;
            bridge::join(machine, &inside, bridge, id, netns, address, range).await
        };
        match joined.await {
            Ok(()) => Ok(vec![IpAddr::V4(address)]),
            Err(BridgeError::Unsupported) => {
                tracing::warn!(sandbox = id, "no virtual network cards: loopback only");
                self.release(id)?;
                Ok(Vec::new())
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Takes back what a sandbox was given. What is gone is no error.
    pub(super) async fn detach(
        &self,
        id: &str,
        netns: Option<&Path>,
        config: &PodSandboxConfig,
    ) -> Result<(), Error> {
        let note = self.layout.sandbox(id).cni();
        self.cni.del(id, netns, config, &note).await?;
        if lock(&self.range).is_some() {
            let machine = self.machine().await;
            let left = match machine {
                Ok(machine) => bridge::leave(machine, id).await,
                Err(error) => Err(error),
            };
            left.map_err(|error| {
                Error::failed(format!("take down the network of sandbox {id}"), error)
            })?;
        }
        self.release(id)
    }

    fn release(&self, id: &str) -> Result<(), Error> {
        let released = self.addresses.release(id);
        released.map_err(|error| Error::failed(format!("free the address of sandbox {id}"), error))
    }

    /// Takes back what sandboxes have that are not among these.
    pub(super) fn retain(&self, ids: &[String]) -> Result<(), Error> {
        let retained = self.addresses.retain(ids);
        retained.map_err(|error| Error::failed("read the addresses of sandboxes", error))
    }

    async fn machine(&self) -> Result<&Handle, BridgeError> {
        self.machine
            .get_or_try_init(|| async { bridge::connect() })
            .await
    }
}
