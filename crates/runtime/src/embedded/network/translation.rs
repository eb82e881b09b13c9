//! The host ports of each sandbox, and their rules in the kernel.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::Ipv4Addr;

use tokio::sync::Mutex;

use super::super::blocking;
use super::address::Range;
use super::bridge;
use super::nat::{self, Mapping};
use crate::Error;
use crate::sysctl::Sysctls;
use crate::wire::PodSandboxConfig;

const FORWARDING: &str = "net/ipv4/ip_forward";

/// The translation of a bridge.
#[derive(Debug)]
pub(super) struct Translation {
    bridge: String,
    forwarding: Option<Sysctls>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Ports by sandbox.
    mappings: BTreeMap<String, Vec<Mapping>>,
    /// Whether the rules were written since the agent started.
    is_applied: bool,
}

impl Translation {
    pub(super) fn new(bridge: String, forwarding: Option<Sysctls>) -> Translation {
        Translation {
            bridge,
            forwarding,
            known: Mutex::default(),
        }
    }

    /// Takes a sandbox in. Without ports of the machine it can do without translation.
    pub(super) async fn add(
        &self,
        id: &str,
        range: Range,
        config: &PodSandboxConfig,
        address: Ipv4Addr,
    ) -> Result<(), Error> {
        let mut known = self.known.lock().await;
        let mappings = Mapping::of(config, address);
        let has_ports = !mappings.is_empty();
        if has_ports {
            known.mappings.insert(id.to_owned(), mappings);
        } else if known.is_applied {
            return Ok(());
        }
        match self.apply(&mut known, range).await {
            Err(error) if has_ports => {
                known.mappings.remove(id);
                Err(error)
            }
            Err(error) => {
                let error = error.chain();
                tracing::warn!(
                    error,
                    "failed to set up NAT; pods cannot reach other networks"
                );
                // Retried with the next sandbox.
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Removes the rules of a sandbox.
    pub(super) async fn remove(&self, id: &str, range: Range) -> Result<(), Error> {
        let mut known = self.known.lock().await;
        if known.mappings.remove(id).is_none() {
            return Ok(());
        }
        if !bridge::is_there(&self.bridge) {
            // The machine was booted since, or the bridge removed by hand: no rule leads anywhere.
            known.is_applied = false;
            return Ok(());
        }
        self.apply(&mut known, range).await
    }

    /// Restores a sandbox whose rules an earlier agent wrote.
    pub(super) async fn restore(&self, id: &str, config: &PodSandboxConfig, address: Ipv4Addr) {
        let mappings = Mapping::of(config, address);
        if !mappings.is_empty() {
            let mut known = self.known.lock().await;
            known.mappings.insert(id.to_owned(), mappings);
        }
    }

    async fn apply(&self, known: &mut Known, range: Range) -> Result<(), Error> {
        let (bridge, mappings) = (self.bridge.clone(), known.mappings.clone());
        let (is_first, forwarding) = (!known.is_applied, self.forwarding.clone());
        blocking("set up NAT", move || {
            let run = || -> io::Result<()> {
                if is_first {
                    prepare(&bridge, forwarding.as_ref())?;
                }
                nat::replace(&bridge, range, &mappings)
            };
            run().map_err(|error| Error::failed(format!("set up NAT for bridge {bridge}"), error))
        })
        .await?;
        known.is_applied = true;
        Ok(())
    }
}

/// Lets packets through that the rules are about.
fn prepare(bridge: &str, forwarding: Option<&Sysctls>) -> io::Result<()> {
    // Ports are reached from the machine itself by its loopback address, too.
    fs::write(
        format!("/proc/sys/net/ipv4/conf/{bridge}/route_localnet"),
        "1",
    )?;
    if let Some(sysctls) = forwarding {
        sysctls.set(FORWARDING, "1")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{PortMapping, Protocol};

    #[tokio::test]
    async fn port_mappings_are_removed_if_the_bridge_is_missing() {
        let config = PodSandboxConfig {
            port_mappings: vec![PortMapping {
                protocol: Protocol::Tcp.into(),
                container_port: 80,
                host_port: 8080,
                host_ip: String::new(),
            }],
            ..PodSandboxConfig::default()
        };
        let translation = Translation::new("no-such-bridge".to_owned(), None);
        let address = Ipv4Addr::new(10, 88, 0, 2);
        translation.restore("sandbox", &config, address).await;
        let range = Range::parse("10.88.0.0/16").unwrap();
        translation.remove("sandbox", range).await.unwrap();
        assert!(translation.known.lock().await.mappings.is_empty());
    }
}
