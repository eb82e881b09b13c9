//! Finds and removes the remains of the built-in network on the node, without a runtime.

use std::io;

use super::{bridge, nat};
use crate::Error;

/// The name of the table of a bridge, of nftables' family `ip`.
pub fn table_name(bridge: &str) -> String {
    nat::table(bridge)
}

/// Whether the kernel translates addresses for a bridge.
pub fn is_translating(bridge: &str) -> io::Result<bool> {
    nat::is_there(bridge)
}

/// Removes the rules by which the kernel translates addresses for a bridge.
pub fn stop_translating(bridge: &str) -> io::Result<()> {
    nat::remove(bridge)
}

/// Whether the machine has such a bridge.
pub fn has_bridge(bridge: &str) -> bool {
    bridge::is_there(bridge)
}

/// The network cards that are joined to a bridge.
pub fn cards_on(bridge: &str) -> io::Result<Vec<String>> {
    bridge::joined(bridge)
}

/// Removes a bridge; succeeds if it does not exist.
pub async fn remove_bridge(bridge: &str) -> Result<(), Error> {
    let removed = async { bridge::remove_bridge(&bridge::connect()?, bridge).await };
    let failed = |error| Error::failed(format!("tear down the network of {bridge}"), error);
    removed.await.map_err(failed)
}

/// The network card of a sandbox on the machine's side, if it is there.
pub fn has_card(sandbox: &str) -> Option<String> {
    bridge::has_card(sandbox).then(|| bridge::outside_name(sandbox))
}

/// Removes the network interface of a sandbox; succeeds if it does not exist.
pub async fn remove_card(sandbox: &str) -> Result<(), Error> {
    let removed = async { bridge::leave(&bridge::connect()?, sandbox).await };
    let failed =
        |error| Error::failed(format!("tear down the network of sandbox {sandbox}"), error);
    removed.await.map_err(failed)
}
