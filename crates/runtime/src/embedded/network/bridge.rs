//! The built-in network: a bridge on the node, and a veth pair per sandbox.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;
use std::path::Path;

use futures::TryStreamExt;
use rtnetlink::packet_route::link::{InfoData, InfoKind, InfoVeth};
use rtnetlink::{
    Handle, LinkBridge, LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder,
    new_connection,
};

use super::super::ports::inside_network;
use super::address::Range;

/// The card inside a sandbox.
const INSIDE: &str = "eth0";
/// Where the kernel shows the machine's cards.
const CARDS: &str = "/sys/class/net";
/// Every network has its loopback card first.
const LOOPBACK: u32 = 1;

/// Why a network could not be set up.
#[derive(Debug, thiserror::Error)]
pub(super) enum BridgeError {
    #[error("cannot open a netlink connection")]
    Connect(#[source] io::Error),
    #[error("cannot {doing} {name}")]
    Change {
        doing: &'static str,
        name: String,
        #[source]
        source: rtnetlink::Error,
    },
    #[error("network interface {name} not found")]
    Gone { name: String },
    #[error("the kernel does not support veth interfaces")]
    Unsupported,
}

/// The name of the card on the machine's side of a sandbox.
pub(super) fn outside_name(id: &str) -> String {
    format!("veth{}", id.get(..11).unwrap_or(id))
}

/// A conversation about the machine's own network.
pub(super) fn connect() -> Result<Handle, BridgeError> {
    let (connection, handle, _) = new_connection().map_err(BridgeError::Connect)?;
    tokio::spawn(connection);
    Ok(handle)
}

/// A conversation about the network of a sandbox.
pub(super) async fn connect_inside(netns: &Path) -> Result<Handle, BridgeError> {
    let made = inside_network(netns.to_owned(), new_connection).await;
    let (connection, handle, _) = made.map_err(BridgeError::Connect)?;
    tokio::spawn(connection);
    Ok(handle)
}

/// Switches the loopback card on.
pub(super) async fn raise_loopback(inside: &Handle) -> Result<(), BridgeError> {
    let up = LinkUnspec::new_with_index(LOOPBACK).up().build();
    let done = inside.link().set(up).execute().await;
    done.map_err(|source| change("switch on", "lo", source))
}

fn change(doing: &'static str, name: &str, source: rtnetlink::Error) -> BridgeError {
    BridgeError::Change {
        doing,
        name: name.to_owned(),
        source,
    }
}

fn errno(error: &rtnetlink::Error) -> Option<i32> {
    match error {
        rtnetlink::Error::NetlinkError(message) => Some(-message.raw_code()),
        _ => None,
    }
}

/// Whether the machine has such a bridge.
pub(super) fn is_there(name: &str) -> bool {
    Path::new(CARDS).join(name).join("bridge").is_dir()
}

/// The network cards that are joined to a bridge.
pub(super) fn joined(name: &str) -> io::Result<Vec<String>> {
    let mut cards = Vec::new();
    for entry in std::fs::read_dir(Path::new(CARDS).join(name).join("brif"))? {
        cards.extend(entry?.file_name().into_string());
    }
    Ok(cards)
}

/// Whether the machine's side of the card of a sandbox is there.
pub(super) fn has_card(id: &str) -> bool {
    Path::new(CARDS).join(outside_name(id)).exists()
}

async fn index_of(handle: &Handle, name: &str) -> Result<Option<u32>, BridgeError> {
    let mut links = handle.link().get().match_name(name.to_owned()).execute();
    match links.try_next().await {
        Ok(link) => Ok(link.map(|link| link.header.index)),
        Err(error) if errno(&error) == Some(libc::ENODEV) => Ok(None),
        Err(error) => Err(change("find", name, error)),
    }
}

/// Makes the bridge if it is not there, with the machine's address in the range.
pub(super) async fn ensure_bridge(
    handle: &Handle,
    name: &str,
    range: Range,
) -> Result<u32, BridgeError> {
    let index = match index_of(handle, name).await? {
        Some(index) => index,
        None => {
            // A bridge takes the least address of its ports unless it has one of its own, and
            // sandboxes would lose sight of it whenever that changes.
            let bridge = LinkBridge::new(name).address(hardware_address(range.gateway()));
            match handle.link().add(bridge.build()).execute().await {
                Ok(()) => {}
                Err(error) if errno(&error) == Some(libc::EEXIST) => {}
                Err(error) if errno(&error) == Some(libc::EOPNOTSUPP) => {
                    return Err(BridgeError::Unsupported);
                }
                Err(error) => return Err(change("create bridge", name, error)),
            }
            let index = index_of(handle, name).await?;
            index.ok_or_else(|| BridgeError::Gone {
                name: name.to_owned(),
            })?
        }
    };
    let address = IpAddr::V4(range.gateway());
    let added = handle.address().add(index, address, range.prefix);
    match added.execute().await {
        Ok(()) => {}
        Err(error) if errno(&error) == Some(libc::EEXIST) => {}
        Err(error) => return Err(change("give an address to", name, error)),
    }
    let up = LinkUnspec::new_with_index(index).up().build();
    let done = handle.link().set(up).execute().await;
    done.map_err(|source| change("switch on", name, source))?;
    Ok(index)
}

/// A locally administered address made of a sandbox's or the machine's own.
fn hardware_address(address: Ipv4Addr) -> Vec<u8> {
    let mut bytes = vec![0x0a, 0x58];
    bytes.extend(address.octets());
    bytes
}

/// Joins a sandbox to the bridge.
pub(super) async fn join(
    handle: &Handle,
    inside: &Handle,
    bridge: u32,
    id: &str,
    netns: &Path,
    address: Ipv4Addr,
    range: Range,
) -> Result<(), BridgeError> {
    let outside = outside_name(id);
    let network = File::open(netns).map_err(BridgeError::Connect)?;
    let peer = LinkMessageBuilder::<LinkUnspec>::new()
        .name(INSIDE.to_owned())
        .address(hardware_address(address))
        .setns_by_fd(network.as_raw_fd())
        .build();
    let pair = LinkMessageBuilder::<LinkVeth>::new_with_info_kind(InfoKind::Veth)
        .name(outside.clone())
        .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
        .controller(bridge)
        .build();
    match handle.link().add(pair).execute().await {
        Ok(()) => {}
        Err(error) if errno(&error) == Some(libc::EOPNOTSUPP) => {
            return Err(BridgeError::Unsupported);
        }
        Err(error) => return Err(change("create veth interface", &outside, error)),
    }
    // Cards cannot be switched on before they are a pair.
    let up = LinkUnspec::new_with_name(&outside).up().build();
    let done = handle.link().set(up).execute().await;
    done.map_err(|source| change("switch on", &outside, source))?;
    let index = index_of(inside, INSIDE).await?;
    let index = index.ok_or_else(|| BridgeError::Gone {
        name: INSIDE.to_owned(),
    })?;
    let up = LinkUnspec::new_with_index(index).up().build();
    let done = inside.link().set(up).execute().await;
    done.map_err(|source| change("switch on", INSIDE, source))?;
    let added = inside
        .address()
        .add(index, IpAddr::V4(address), range.prefix);
    let done = added.execute().await;
    done.map_err(|source| change("give an address to", INSIDE, source))?;
    let route = RouteMessageBuilder::<Ipv4Addr>::new()
        .gateway(range.gateway())
        .output_interface(index)
        .build();
    let done = inside.route().add(route).execute().await;
    done.map_err(|source| change("set the route of", INSIDE, source))
}

/// Removes the card of a sandbox, if it is still there.
pub(super) async fn leave(handle: &Handle, id: &str) -> Result<(), BridgeError> {
    remove(handle, "remove the network card", &outside_name(id)).await
}

/// Removes a bridge, if it is still there.
pub(super) async fn remove_bridge(handle: &Handle, name: &str) -> Result<(), BridgeError> {
    remove(handle, "remove the bridge", name).await
}

async fn remove(handle: &Handle, doing: &'static str, name: &str) -> Result<(), BridgeError> {
    let Some(index) = index_of(handle, name).await? else {
        return Ok(());
    };
    match handle.link().del(index).execute().await {
        Ok(()) => Ok(()),
        Err(error) if errno(&error) == Some(libc::ENODEV) => Ok(()),
        Err(error) => Err(change(doing, name, error)),
    }
}
