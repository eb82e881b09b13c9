//! Network interfaces.

use plimsoll_core::eviction::summary::{InterfaceStats, NetworkStats};
use plimsoll_core::object::timestamp::Timestamp;

/// An interface, since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) received: Direction,
    pub(super) sent: Direction,
}

/// What went one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Direction {
    pub(super) bytes: u64,
    pub(super) packets: u64,
    pub(super) errors: u64,
    pub(super) dropped: u64,
}

/// Interfaces that carry no traffic of their own, as upstream leaves out.
const IGNORED_PREFIXES: [&str; 4] = ["lo", "veth", "docker", "nerdctl"];
/// The interface of a pod or node where the API has only one.
const DEFAULT_INTERFACE: &str = "eth0";

/// Reads `/proc/<pid>/net/dev`, whose first two lines are titles. `None` if a line has not the
/// fields it should have, because then no other can be trusted either.
pub(super) fn parse_net_dev(text: &str) -> Option<Vec<Interface>> {
    let mut interfaces = Vec::new();
    for line in text.lines().skip(2) {
        let (name, numbers) = line.split_once(':')?;
        let name = name.trim();
        let numbers: Vec<u64> = numbers
            .split_whitespace()
            .map(|number| number.parse().ok())
            .collect::<Option<_>>()?;
        let [
            rx_bytes,
            rx_packets,
            rx_errors,
            rx_dropped,
            _,
            _,
            _,
            _,
            rest @ ..,
        ] = numbers.as_slice()
        else {
            return None;
        };
        let [tx_bytes, tx_packets, tx_errors, tx_dropped, ..] = rest else {
            return None;
        };
        let lower = name.to_ascii_lowercase();
        if IGNORED_PREFIXES
            .iter()
            .any(|prefix| lower.starts_with(prefix))
        {
            continue;
        }
        interfaces.push(Interface {
            name: name.to_owned(),
            received: Direction {
                bytes: *rx_bytes,
                packets: *rx_packets,
                errors: *rx_errors,
                dropped: *rx_dropped,
            },
            sent: Direction {
                bytes: *tx_bytes,
                packets: *tx_packets,
                errors: *tx_errors,
                dropped: *tx_dropped,
            },
        });
    }
    Some(interfaces)
}

/// The interfaces as the summary has them.
pub(super) fn network_stats(interfaces: &[Interface], time: Timestamp) -> NetworkStats {
    let stats: Vec<InterfaceStats> = interfaces.iter().map(Interface::stats).collect();
    let default = stats
        .iter()
        .find(|interface| interface.name == DEFAULT_INTERFACE);
    NetworkStats {
        time: Some(time),
        default: default.cloned().unwrap_or_default(),
        interfaces: stats,
    }
}

impl Interface {
    fn stats(&self) -> InterfaceStats {
        InterfaceStats {
            name: self.name.clone(),
            rx_bytes: Some(self.received.bytes),
            rx_errors: Some(self.received.errors),
            tx_bytes: Some(self.sent.bytes),
            tx_errors: Some(self.sent.errors),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    1300      13    0    0    0     0          0         0     1300      13    0    0    0     0       0          0
  eth0: 1000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0
veth123: 9 9 9 9 0 0 0 0 9 9 9 9 0 0 0 0
  net1:5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0
";

    #[test]
    fn physical_interfaces_are_read_and_eth0_is_the_default() {
        let interfaces = parse_net_dev(TEXT).unwrap();
        let names: Vec<&str> = interfaces.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, ["eth0", "net1"]);
        assert_eq!(interfaces[0].received.dropped, 2);
        assert_eq!(interfaces[0].sent.dropped, 4);
        let stats = network_stats(&interfaces, Timestamp::from_secs(1));
        assert_eq!(stats.default.rx_bytes, Some(1000));
        assert_eq!(stats.default.tx_errors, Some(3));
        assert_eq!(stats.interfaces.len(), 2);
        let none = network_stats(&interfaces[1..], Timestamp::from_secs(1));
        assert_eq!(none.default, InterfaceStats::default());
    }

    #[test]
    fn short_line_makes_the_text_invalid() {
        assert_eq!(parse_net_dev("a\nb\neth0: 1 2 3\n"), None);
        assert_eq!(parse_net_dev("a\nb\n"), Some(Vec::new()));
    }
}
