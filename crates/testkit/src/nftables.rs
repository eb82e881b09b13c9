//! The tables that the kernel has for nftables, read over netlink: `nft` need not be installed.

use std::io;

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Numbers of `linux/netlink.h` and `linux/netfilter/nf_tables.h`.
const DONE: u16 = 3;
const ERROR: u16 = 2;
const NEW_TABLE: u16 = 10 << 8;
const GET_TABLE: u16 = 10 << 8 | 1;
const REQUEST_ALL: u16 = 0x301;
const IPV4: u8 = 2;
const NAME: u16 = 1;

const HEADER: usize = 16;
/// Of netfilter's own, behind the general one.
const NETFILTER_HEADER: usize = 4;

/// The names of all tables of the family `ip`; none where the kernel has no nftables.
pub fn tables() -> Vec<String> {
    ask().unwrap_or_default()
}

fn ask() -> io::Result<Vec<String>> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::NETFILTER),
    )?;
    let mut question = Vec::new();
    question.extend(20_u32.to_ne_bytes());
    question.extend(GET_TABLE.to_ne_bytes());
    question.extend(REQUEST_ALL.to_ne_bytes());
    question.extend([0; 8]);
    question.extend([IPV4, 0, 0, 0]);
    let kernel = SocketAddrNetlink::new(0, 0);
    rustix::net::sendto(&socket, &question, SendFlags::empty(), &kernel)?;
    let mut found = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let (count, _) = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        if !read(&buffer[..count], &mut found) {
            return Ok(found);
        }
    }
}

/// Reads messages; returns whether there are more to come.
fn read(mut bytes: &[u8], found: &mut Vec<String>) -> bool {
    while let [a, b, c, d, e, f, ..] = *bytes {
        let length = u32::from_ne_bytes([a, b, c, d]) as usize;
        match u16::from_ne_bytes([e, f]) {
            DONE | ERROR => return false,
            NEW_TABLE => {
                let attributes = bytes.get(HEADER + NETFILTER_HEADER..length);
                found.extend(name(attributes.unwrap_or_default()));
            }
            _ => {}
        }
        let next = length.next_multiple_of(4).max(HEADER);
        bytes = bytes.get(next..).unwrap_or_default();
    }
    true
}

fn name(mut attributes: &[u8]) -> Option<String> {
    while let [a, b, c, d, ..] = *attributes {
        let length = usize::from(u16::from_ne_bytes([a, b])).max(4);
        if u16::from_ne_bytes([c, d]) == NAME {
            let text = attributes.get(4..length)?;
            let text = String::from_utf8_lossy(text);
            return Some(text.trim_end_matches('\0').to_owned());
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_of_tables_until_the_kernel_is_done() {
        let message = |kind: u16, rest: &[u8]| {
            let length = u32::try_from(HEADER + rest.len()).unwrap();
            let mut bytes = length.to_ne_bytes().to_vec();
            bytes.extend(kind.to_ne_bytes());
            bytes.resize(HEADER, 0);
            bytes.extend(rest);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let mut table = vec![IPV4, 0, 0, 0];
        // Another attribute before the name.
        table.extend([8, 0, 2, 0, 0, 0, 0, 0]);
        table.extend([6, 0, 1, 0, b'a', 0, 0, 0]);
        let mut found = Vec::new();
        assert!(read(&message(NEW_TABLE, &table), &mut found));
        assert!(!read(&message(DONE, &[0; 4]), &mut found));
        assert_eq!(found, ["a"]);
        assert!(read(&[1, 2, 3], &mut found));
    }
}
