//! Which ports lead to which sandbox at the moment, and having the kernel know it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::Ipv4Addr;

use tokio::sync::Mutex;

use super::super::blocking;
use super::address::Range;
use super::nat::{self, Mapping};
use crate::runtime::Error;
use crate::runtime::wire::PodSandboxConfig;

const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";

/// The translation of a bridge.
#[derive(Debug)]
pub(super) struct Translation {
    bridge: String,
    enables_forwarding: bool,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Ports by sandbox.
    mappings: BTreeMap<String, Vec<Mapping>>,
    /// Whether the kernel has been told since the agent began.
    is_told: bool,
}

impl Translation {
    pub(super) fn new(bridge: String, enables_forwarding: bool) -> Translation {
        Translation {
            bridge,
            enables_forwarding,
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
        } else if known.is_told {
            return Ok(());
        }
        match self.tell(&mut known, range).await {
            Err(error) if has_ports => {
                known.mappings.remove(id);
                Err(error)
            }
            Err(error) => {
                let error = error.chain();
                tracing::warn!(error, "pods do not reach the world outside");
                // Tried again when the next one needs it.
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Lets a sandbox go.
    pub(super) async fn remove(&self, id: &str, range: Range) -> Result<(), Error> {
        let mut known = self.known.lock().await;
        match known.mappings.remove(id) {
            Some(_) => self.tell(&mut known, range).await,
            None => Ok(()),
        }
    }

    /// Takes a sandbox in that the kernel has been told of before.
    pub(super) async fn restore(&self, id: &str, config: &PodSandboxConfig, address: Ipv4Addr) {
        let mappings = Mapping::of(config, address);
        if !mappings.is_empty() {
            let mut known = self.known.lock().await;
            known.mappings.insert(id.to_owned(), mappings);
        }
    }

    async fn tell(&self, known: &mut Known, range: Range) -> Result<(), Error> {
        let (bridge, mappings) = (self.bridge.clone(), known.mappings.clone());
        let (is_first, enables_forwarding) = (!known.is_told, self.enables_forwarding);
        blocking("translate addresses", move || {
            let told = || -> io::Result<()> {
                if is_first {
                    prepare(&bridge, enables_forwarding)?;
                }
                nat::replace(&bridge, range, &mappings)
            };
            told().map_err(|error| {
                Error::failed(format!("translate addresses of bridge {bridge}"), error)
            })
        })
        .await?;
        known.is_told = true;
        Ok(())
    }
}

/// Lets packets through that the rules are about.
fn prepare(bridge: &str, enables_forwarding: bool) -> io::Result<()> {
    // Ports are reached from the machine itself by its loopback address, too.
    fs::write(
        format!("/proc/sys/net/ipv4/conf/{bridge}/route_localnet"),
        "1",
    )?;
    let is_forwarding = fs::read_to_string(FORWARDING)?.trim() == "1";
    if enables_forwarding && !is_forwarding {
        fs::write(FORWARDING, "1")?;
    }
    Ok(())
}
