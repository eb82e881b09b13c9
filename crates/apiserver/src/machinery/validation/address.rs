//! IP addresses and networks, with upstream's strict rules.
//!
//! Matches v1.36 apimachinery/pkg/util/validation/ip.go with strict validation on.

use std::net::{IpAddr, Ipv4Addr};

use super::path::Path;
use super::problems::Problems;

const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const NO_NETWORK: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// Validates an address. An unchanged one is accepted.
pub(super) fn check_ip(text: &str, known: &[String], path: &Path<'_>, problems: &mut Problems) {
    if known.iter().any(|known| known == text) {
        return;
    }
    let Some(address) = parse_sloppily(text) else {
        return problems.invalid(path, text, NO_ADDRESS);
    };
    if text.parse::<IpAddr>().is_err() {
        problems.invalid(path, text, "must not have leading 0s");
    } else if is_mapped(address, text) {
        problems.invalid(path, text, "must not be an IPv4-mapped IPv6 address");
    }
}

/// Validates a network.
pub(super) fn check_cidr(text: &str, path: &Path<'_>, problems: &mut Problems) {
    let parsed = text.split_once('/').and_then(|(address, bits)| {
        let address = parse_sloppily(address)?;
        let number: u32 = bits
            .parse()
            .ok()
            .filter(|_| bits.bytes().all(|b| b.is_ascii_digit()))?;
        let is_v4 = address.is_ipv4() && !text.contains(':');
        (number <= if is_v4 { 32 } else { 128 }).then_some((address, number))
    });
    let Some((address, bits)) = parsed else {
        return problems.invalid(path, text, NO_NETWORK);
    };
    let (written, digits) = text.split_once('/').unwrap_or((text, ""));
    let has_leading_zero = digits.len() > 1 && digits.starts_with('0');
    if written.parse::<IpAddr>().is_err() || has_leading_zero {
        problems.invalid(
            path,
            text,
            "must not have leading 0s in IP or prefix length",
        );
    } else if is_mapped(address, written) {
        problems.invalid(path, text, "must not have an IPv4-mapped IPv6 address");
    } else if has_bits_beyond(address, bits) {
        problems.invalid(
            path,
            text,
            "must not have bits set beyond the prefix length",
        );
    }
}

/// Whether the text is an address, even in an unusual format.
pub(super) fn is_ip(text: &str) -> bool {
    parse_sloppily(text).is_some()
}

/// An address that other hosts can reach.
pub(super) fn check_endpoint_ip(text: &str, path: &Path<'_>, problems: &mut Problems) {
    let Some(address) = parse_sloppily(text) else {
        return problems.invalid(path, text, "must be a valid IP address");
    };
    let is_link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    let is_link_local_multicast = match address {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    };
    if address.is_unspecified() {
        problems.invalid(path, text, format!("may not be unspecified ({text})"));
    }
    if address.is_loopback() {
        let detail = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
        problems.invalid(path, text, detail);
    }
    if is_link_local {
        let detail = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        problems.invalid(path, text, detail);
    }
    if is_link_local_multicast {
        let detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        problems.invalid(path, text, detail);
    }
}

/// Whether the texts are addresses or networks of both families; `None` if one is neither.
pub(super) fn is_dual_stack<'a>(texts: impl Iterator<Item = &'a str>) -> Option<bool> {
    let mut families = (false, false);
    for text in texts {
        let address = text.split_once('/').map_or(text, |(address, _)| address);
        match parse_sloppily(address)? {
            IpAddr::V4(_) => families.0 = true,
            IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => families.0 = true,
            IpAddr::V6(_) => families.1 = true,
        }
    }
    Some(families == (true, true))
}

/// The warning about an address that is valid but in an unusual format.
pub(super) fn warning_for_ip(text: &str, path: &Path<'_>) -> Option<String> {
    let address = parse_sloppily(text)?;
    if text.parse::<IpAddr>().is_err() {
        return Some(format!(
            "{path}: non-standard IP address {text:?} will be considered invalid in a future Kubernetes release: use {:?}",
            address.to_string()
        ));
    }
    if is_mapped(address, text) {
        let IpAddr::V6(v6) = address else { return None };
        let v4 = v6.to_ipv4_mapped()?;
        return Some(format!(
            "{path}: non-standard IP address {text:?} will be considered invalid in a future Kubernetes release: use {:?}",
            v4.to_string()
        ));
    }
    let canonical = address.to_string();
    (address.is_ipv6() && canonical != text).then(|| {
        format!(
            "{path}: IPv6 address {text:?} should be in RFC 5952 canonical format ({canonical:?})"
        )
    })
}

/// Leading zeros are decimal digits, as in Go until 1.17.
fn parse_sloppily(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() != 4 {
        return None;
    }
    let mut octets = [0; 4];
    for (octet, part) in octets.iter_mut().zip(parts) {
        let is_number = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        *octet = is_number.then(|| part.parse().ok())??;
    }
    Some(IpAddr::V4(Ipv4Addr::from(octets)))
}

fn is_mapped(address: IpAddr, text: &str) -> bool {
    text.contains(':') && matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

fn has_bits_beyond(address: IpAddr, bits: u32) -> bool {
    match address {
        IpAddr::V4(v4) => v4.to_bits().checked_shl(bits).is_some_and(|rest| rest != 0),
        IpAddr::V6(v6) => v6.to_bits().checked_shl(bits).is_some_and(|rest| rest != 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> Vec<String> {
        let mut problems = Problems::default();
        check_ip(text, &[], &Path::new("x"), &mut problems);
        problems.into_vec().into_iter().map(|p| p.detail).collect()
    }

    fn cidr(text: &str) -> Vec<String> {
        let mut problems = Problems::default();
        check_cidr(text, &Path::new("x"), &mut problems);
        problems.into_vec().into_iter().map(|p| p.detail).collect()
    }

    #[test]
    fn addresses_are_parsed_strictly() {
        assert_eq!(ip("10.0.0.1"), [""; 0]);
        assert_eq!(ip("::1"), [""; 0]);
        assert_eq!(ip("10.0.0.01"), ["must not have leading 0s"]);
        assert_eq!(
            ip("::ffff:1.2.3.4"),
            ["must not be an IPv4-mapped IPv6 address"]
        );
        assert_eq!(ip("x"), [NO_ADDRESS]);
    }

    #[test]
    fn networks_are_parsed_strictly() {
        assert_eq!(cidr("10.0.0.0/8"), [""; 0]);
        assert_eq!(cidr("0.0.0.0/0"), [""; 0]);
        assert_eq!(cidr("2001:db8::/64"), [""; 0]);
        assert_eq!(
            cidr("10.0.0.1/8"),
            ["must not have bits set beyond the prefix length"]
        );
        assert_eq!(
            cidr("10.0.0.0/08"),
            ["must not have leading 0s in IP or prefix length"]
        );
        assert_eq!(cidr("10.0.0.0/33"), [NO_NETWORK]);
        assert_eq!(cidr("10.0.0.0"), [NO_NETWORK]);
    }
}
