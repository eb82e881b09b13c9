//! The network of sandboxes.
//!
//! With a CNI configuration on the machine its plugins are run ([`cni`]). Without one, sandboxes are
//! joined to a bridge ([`bridge`]) and get addresses of the node's range ([`address`]); the machine
//! reaches them, they reach each other, and other networks by the machine's address ([`nat`], over
//! [`nftables`]). Without a range, or where the kernel has no veth support, a sandbox has its
//! loopback interface only.

mod address;
mod bridge;
mod cni;
mod nat;
mod nftables;
mod removal;
mod translation;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rtnetlink::Handle;
use tokio::sync::OnceCell;

use super::layout::Layout;
use super::table::lock;
use crate::Error;
use crate::sysctl::Sysctls;
use crate::wire::{PodSandboxConfig, RuntimeCondition};
use address::{Addresses, Range};
use bridge::BridgeError;
use cni::Cni;
pub use removal::{
    cards_on, has_bridge, has_card, is_translating, remove_bridge, remove_card, stop_translating,
    table_name,
};
use translation::Translation;

/// How sandboxes get their network.
#[derive(Clone, Debug)]
pub struct NetworkOptions {
    /// Where CNI configurations are looked for; usually `/etc/cni/net.d`.
    pub cni_conf_dir: PathBuf,
    /// Where CNI plugins are; usually `/opt/cni/bin`.
    pub cni_bin_dirs: Vec<PathBuf>,
    /// The bridge of the built-in network.
    pub bridge: String,
    /// The range of addresses of the built-in network, until the node gets another.
    pub pod_cidr: Option<String>,
    /// With what the machine is made to forward packets; `None` leaves that as it is.
    pub forwarding: Option<Sysctls>,
}

impl Default for NetworkOptions {
    fn default() -> NetworkOptions {
        NetworkOptions {
            cni_conf_dir: "/etc/cni/net.d".into(),
            cni_bin_dirs: vec!["/opt/cni/bin".into()],
            bridge: "plimsoll0".to_owned(),
            pod_cidr: None,
            forwarding: None,
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
    translation: Translation,
    /// A conversation about the machine's own network.
    machine: OnceCell<Handle>,
}

impl Network {
    pub(super) fn new(options: NetworkOptions, layout: Layout) -> Result<Network, Error> {
        let network = Network {
            translation: Translation::new(options.bridge.clone(), options.forwarding),
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
            Ok(()) => {
                self.translation.add(id, range, config, address).await?;
                Ok(vec![IpAddr::V4(address)])
            }
            Err(BridgeError::Unsupported) => {
                tracing::warn!(
                    sandbox = id,
                    "kernel lacks veth support; sandbox has loopback only"
                );
                self.release(id)?;
                Ok(Vec::new())
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Releases the address and the interface of a sandbox. Succeeds if they do not exist.
    pub(super) async fn detach(
        &self,
        id: &str,
        netns: Option<&Path>,
        config: &PodSandboxConfig,
    ) -> Result<(), Error> {
        let note = self.layout.sandbox(id).cni();
        self.cni.del(id, netns, config, &note).await?;
        let range = *lock(&self.range);
        if let Some(range) = range {
            self.translation.remove(id, range).await?;
            let machine = self.machine().await;
            let left = match machine {
                Ok(machine) => bridge::leave(machine, id).await,
                Err(error) => Err(error),
            };
            left.map_err(|error| {
                Error::failed(format!("tear down the network of sandbox {id}"), error)
            })?;
        }
        self.release(id)
    }

    fn release(&self, id: &str) -> Result<(), Error> {
        let released = self.addresses.release(id);
        released.map_err(|error| Error::failed(format!("free the address of sandbox {id}"), error))
    }

    /// Finds the ports of a sandbox again that was there before.
    pub(super) async fn restore(&self, id: &str, config: &PodSandboxConfig, ips: &[IpAddr]) {
        let is_of_cni = self.layout.sandbox(id).cni().exists();
        if let ([IpAddr::V4(address), ..], false) = (ips, is_of_cni) {
            self.translation.restore(id, config, *address).await;
        }
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
