//! NAT of the built-in network: pods reach other networks with the node's address, and host ports
//! lead to pods.
//!
//! All rules of a bridge are in one table, which is replaced as a whole: nothing is left over from
//! an agent that was killed, and open connections are not disturbed.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::address::Range;
use super::nftables::{
    self, ARRIVING, Batch, LEAVING, LOCAL, OWN, Part, REDIRECTED, compare, constant, jump, load,
    load_connection_status, load_destination_kind, load_protocol, mask, masquerade, redirect,
};
use crate::wire::{PodSandboxConfig, Protocol};

/// Registers for a value, and for another.
const ONE: u32 = 1;
const TWO: u32 = 2;

const PORTS: &str = "ports";

/// A port of the machine that leads to a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mapping {
    protocol: u8,
    /// The machine's address that it is on; all if none.
    host_ip: Option<Ipv4Addr>,
    host_port: u16,
    pod_ip: Ipv4Addr,
    pod_port: u16,
}

impl Mapping {
    /// Those of a sandbox with that address. What is of IPv6 is none of this network.
    pub(super) fn of(config: &PodSandboxConfig, pod_ip: Ipv4Addr) -> Vec<Mapping> {
        let mappings = config.port_mappings.iter().filter_map(|mapping| {
            let host_ip = match mapping.host_ip.as_str() {
                "" => None,
                text => Some(text.parse::<Ipv4Addr>().ok()?),
            };
            Some(Mapping {
                protocol: match mapping.protocol() {
                    Protocol::Tcp => 6,
                    Protocol::Udp => 17,
                    Protocol::Sctp => 132,
                },
                host_ip: host_ip.filter(|ip| !ip.is_unspecified()),
                host_port: u16::try_from(mapping.host_port).ok().filter(|p| *p > 0)?,
                pod_ip,
                pod_port: u16::try_from(mapping.container_port).ok()?,
            })
        });
        mappings.collect()
    }
}

/// The table of a bridge.
pub(super) fn table(bridge: &str) -> String {
    format!("plimsoll-{bridge}")
}

/// Has the kernel translate for a bridge from now on, by these rules and no others.
pub(super) fn replace(
    bridge: &str,
    range: Range,
    mappings: &BTreeMap<String, Vec<Mapping>>,
) -> io::Result<()> {
    let table = table(bridge);
    let mut batch = Batch::new();
    // Making it first is what makes deleting it possible whether or not it was there.
    batch.table(&table);
    batch.delete_table(&table);
    batch.table(&table);
    batch.chain(&table, PORTS, None);
    batch.chain(&table, "prerouting", Some(ARRIVING));
    batch.chain(&table, "output", Some(OWN));
    batch.chain(&table, "postrouting", Some(LEAVING));
    for mapping in mappings.values().flatten() {
        batch.rule(&table, PORTS, &mapped(mapping));
    }
    for chain in ["prerouting", "output"] {
        let to_machine = [
            load_destination_kind(ONE),
            compare(ONE, true, &LOCAL),
            jump(PORTS),
        ];
        batch.rule(&table, chain, &to_machine);
    }
    for rule in leaving(range) {
        batch.rule(&table, "postrouting", &rule);
    }
    send(batch)
}

/// Has the kernel translate for a bridge no more.
pub(super) fn remove(bridge: &str) -> io::Result<()> {
    let table = table(bridge);
    let mut batch = Batch::new();
    batch.table(&table);
    batch.delete_table(&table);
    send(batch)
}

/// Whether the kernel has the table of a bridge.
pub(super) fn is_there(bridge: &str) -> io::Result<bool> {
    let (bytes, answers) = nftables::look_up(&table(bridge));
    match exchange(&bytes, answers) {
        Ok(()) => Ok(true),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether there is no such table, or the kernel has no tables at all.
fn is_absent(error: &io::Error) -> bool {
    let absent = [
        libc::ENOENT,
        libc::EOPNOTSUPP,
        libc::EPROTONOSUPPORT,
        libc::EINVAL,
    ];
    error
        .raw_os_error()
        .is_some_and(|code| absent.contains(&code))
}

fn mapped(mapping: &Mapping) -> Vec<Vec<u8>> {
    let mut rule = vec![
        load_protocol(ONE),
        compare(ONE, true, &[mapping.protocol]),
        load(Part::Port, ONE),
        compare(ONE, true, &mapping.host_port.to_be_bytes()),
    ];
    if let Some(ip) = mapping.host_ip {
        rule.extend([
            load(Part::Destination, ONE),
            compare(ONE, true, &ip.octets()),
        ]);
    }
    rule.extend([
        constant(ONE, &mapping.pod_ip.octets()),
        constant(TWO, &mapping.pod_port.to_be_bytes()),
        redirect(ONE, TWO),
    ]);
    rule
}

/// Connections of pods to anything but pods get the node's source address. So do connections to a
/// host port to which replies would not return: from a pod, or from the node's own loopback
/// address.
fn leaving(range: Range) -> [Vec<Vec<u8>>; 3] {
    let within = |part: Part, range: Range, is_within: bool| {
        [
            load(part, ONE),
            mask(ONE, range.mask().octets()),
            compare(ONE, is_within, &range.base().octets()),
        ]
    };
    let redirected = || {
        [
            load_connection_status(ONE),
            mask(ONE, REDIRECTED),
            compare(ONE, false, &[0; 4]),
        ]
    };
    let to_outside = [
        within(Part::Source, range, true).as_slice(),
        &within(Part::Destination, range, false),
        &[masquerade()],
    ]
    .concat();
    let from = |source: Range| {
        [
            within(Part::Source, source, true).as_slice(),
            &redirected(),
            &[masquerade()],
        ]
        .concat()
    };
    [to_outside, from(range), from(Range::LOOPBACK)]
}

/// Sends a batch, and waits until all of it is done.
fn send(batch: Batch) -> io::Result<()> {
    let (bytes, answers) = batch.finish();
    exchange(&bytes, answers)
}

/// Sends messages, and waits until as many are acknowledged as have to be.
fn exchange(bytes: &[u8], answers: u32) -> io::Result<()> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::NETFILTER),
    )?;
    let kernel = SocketAddrNetlink::new(0, 0);
    rustix::net::sendto(&socket, bytes, SendFlags::empty(), &kernel)?;
    let mut answered = 0;
    let mut buffer = vec![0; 64 * 1024];
    while answered < answers {
        let (count, _) = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        answered += read_answers(&buffer[..count])?;
    }
    Ok(())
}

/// How many changes were done; an error if one was not.
fn read_answers(mut bytes: &[u8]) -> io::Result<u32> {
    const ERROR: u16 = 2;
    let mut done = 0;
    while let [a, b, c, d, e, f, ..] = *bytes {
        let length = u32::from_ne_bytes([a, b, c, d]) as usize;
        let code = bytes.get(16..20).unwrap_or_default();
        if let (ERROR, &[a, b, c, d]) = (u16::from_ne_bytes([e, f]), code) {
            match i32::from_ne_bytes([a, b, c, d]) {
                0 => done += 1,
                code => return Err(io::Error::from_raw_os_error(-code)),
            }
        }
        bytes = bytes
            .get(length.next_multiple_of(4).max(16)..)
            .unwrap_or_default();
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::PortMapping;

    #[test]
    fn only_ports_of_the_machine_are_mapped() {
        let mapping = |host_port, host_ip: &str| PortMapping {
            protocol: Protocol::Udp.into(),
            container_port: 53,
            host_port,
            host_ip: host_ip.to_owned(),
        };
        let config = PodSandboxConfig {
            port_mappings: vec![
                mapping(0, ""),
                mapping(5353, ""),
                mapping(5354, "0.0.0.0"),
                mapping(5355, "192.0.2.1"),
                mapping(5356, "::1"),
            ],
            ..PodSandboxConfig::default()
        };
        let pod_ip = Ipv4Addr::new(10, 88, 0, 2);
        let mapped = Mapping::of(&config, pod_ip).into_iter();
        let mapped: Vec<_> = mapped.map(|one| (one.host_port, one.host_ip)).collect();
        let one = Ipv4Addr::new(192, 0, 2, 1);
        assert_eq!(mapped, [(5353, None), (5354, None), (5355, Some(one))]);
    }

    #[test]
    fn answers_are_counted_and_errors_returned() {
        let answer = |code: i32| {
            let mut bytes = 36_u32.to_ne_bytes().to_vec();
            bytes.extend(2_u16.to_ne_bytes());
            bytes.resize(16, 0);
            bytes.extend(code.to_ne_bytes());
            bytes.resize(36, 0);
            bytes
        };
        assert_eq!(read_answers(&[answer(0), answer(0)].concat()).unwrap(), 2);
        let refused = read_answers(&[answer(0), answer(-1)].concat()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(read_answers(&[1, 2, 3]).unwrap(), 0);
    }
}
