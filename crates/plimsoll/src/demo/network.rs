//! A free subnet for the pods.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, bail};

/// Private networks, and the benchmarking network of RFC 2544, as pairs of address and prefix
/// length.
const PRIVATE: [(Ipv4Addr, u32); 4] = [
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
];
/// The prefix length of a node's pod network.
const LENGTH: u32 = 24;

/// A network and its mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    address: u32,
    mask: u32,
}

impl Network {
    fn new(address: u32, length: u32) -> Network {
        let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
        Network {
            address: address & mask,
            mask,
        }
    }

    fn overlaps(self, other: Network) -> bool {
        let common = self.mask & other.mask;
        self.address & common == other.address & common
    }
}

/// A network without a route. The first candidate depends on `seed`, so that two demos that start at
/// the same time find different ones.
pub(super) fn free_subnet(seed: u32) -> Result<String> {
    let file = "/proc/net/route";
    let routes = std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
    match choose(&parse_routes(&routes), seed) {
        Some(network) => Ok(format!("{}/{LENGTH}", Ipv4Addr::from(network.address))),
        None => bail!("no free subnet for pods: the routing table covers all private networks"),
    }
}

fn choose(routes: &[Network], seed: u32) -> Option<Network> {
    let candidates = PRIVATE.iter().flat_map(|(address, length)| {
        let count = 1_u32 << (LENGTH - length);
        let base = u32::from(*address);
        // An odd stride visits each subnet once, and consecutive candidates are far apart.
        (0..count).map(move |step| {
            let place = seed.wrapping_add(step).wrapping_mul(0x9e37_79b1) % count;
            Network::new(base + (place << (32 - LENGTH)), LENGTH)
        })
    });
    let mut free =
        candidates.filter(|candidate| !routes.iter().any(|used| used.overlaps(*candidate)));
    free.next()
}

/// Destinations of `/proc/net/route`, which prints them in host byte order, without the default
/// route.
fn parse_routes(text: &str) -> Vec<Network> {
    let number = |field: &str| u32::from_str_radix(field, 16).ok().map(u32::from_be);
    let routes = text.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        Some(Network {
            address: number(fields.get(1)?)?,
            mask: number(fields.get(7)?)?,
        })
    });
    routes.filter(|route| route.mask != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        let (address, length) = text.split_once('/').unwrap();
        let address: Ipv4Addr = address.parse().unwrap();
        Network::new(u32::from(address), length.parse().unwrap())
    }

    #[test]
    fn reads_destinations_without_the_default_route() {
        let text = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\n\
                    eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\n\
                    eth0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\n\
                    plimsoll0\t0000580A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\n";
        assert_eq!(
            parse_routes(text),
            [network("10.0.0.0/8"), network("10.88.0.0/16")]
        );
    }

    #[test]
    fn chooses_a_network_without_a_route() {
        let routes = [network("10.0.0.0/8"), network("172.16.0.0/13")];
        for seed in [0, 1, 4711, u32::MAX] {
            let chosen = choose(&routes, seed).unwrap();
            assert!(network("172.24.0.0/13").overlaps(chosen), "{chosen:?}");
        }
        assert_ne!(choose(&[], 1), choose(&[], 2));
    }

    #[test]
    fn finds_the_last_free_subnet_or_none() {
        let mut routes = vec![
            network("10.0.0.0/8"),
            network("172.16.0.0/12"),
            network("198.18.0.0/15"),
        ];
        routes.extend(
            (0..256)
                .filter(|third| *third != 77)
                .map(|third| network(&format!("192.168.{third}.0/24"))),
        );
        assert_eq!(choose(&routes, 5), Some(network("192.168.77.0/24")));
        routes.push(network("192.168.0.0/16"));
        assert_eq!(choose(&routes, 5), None);
    }
}
