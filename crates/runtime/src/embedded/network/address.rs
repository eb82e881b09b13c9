//! Addresses for sandboxes: one file per allocated address, named by it, with the sandbox's id
//! inside.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    base: u32,
    pub(super) prefix: u8,
}

impl Range {
    /// Reads `10.88.0.0/24`; of several, joined by commas, the first of this family.
    pub(super) fn parse(text: &str) -> Option<Range> {
        text.split(',').find_map(|one| {
            let (address, prefix) = one.trim().split_once('/')?;
            let (address, prefix): (Ipv4Addr, u8) = (address.parse().ok()?, prefix.parse().ok()?);
            // Smaller ranges have no room for a gateway and a sandbox.
            (8..=30).contains(&prefix).then(|| Range {
                base: u32::from(address) & mask(prefix),
                prefix,
            })
        })
    }

    /// The machine talking to itself.
    pub(super) const LOOPBACK: Range = Range {
        base: 127 << 24,
        prefix: 8,
    };

    /// The first address, the network's own, which is never given out.
    pub(super) fn base(self) -> Ipv4Addr {
        Ipv4Addr::from(self.base)
    }

    /// Ones for the bits that all its addresses share.
    pub(super) fn mask(self) -> Ipv4Addr {
        Ipv4Addr::from(mask(self.prefix))
    }

    /// The machine's own address in the range: the first.
    pub(super) fn gateway(self) -> Ipv4Addr {
        Ipv4Addr::from(self.base + 1)
    }

    /// The first and the last address for sandboxes.
    fn bounds(self) -> (u32, u32) {
        (self.base + 2, (self.base | !mask(self.prefix)) - 1)
    }
}

fn mask(prefix: u8) -> u32 {
    u32::MAX << (32 - u32::from(prefix))
}

impl fmt::Display for Range {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", Ipv4Addr::from(self.base), self.prefix)
    }
}

/// The addresses that are given out.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    dir: PathBuf,
}

const LAST: &str = "last";

impl Addresses {
    pub(super) fn new(dir: PathBuf) -> Addresses {
        Addresses { dir }
    }

    /// Gives an address of the range out, the next after the last one that was: an address that
    /// has just become free is the last to be used again. `None` if all are taken.
    pub(super) fn allocate(&self, range: Range, id: &str) -> io::Result<Option<Ipv4Addr>> {
        fs::create_dir_all(&self.dir)?;
        let (first, end) = range.bounds();
        let last = fs::read_to_string(self.dir.join(LAST)).unwrap_or_default();
        let last = last.trim().parse::<Ipv4Addr>().map(u32::from);
        let start = match last {
            Ok(last) if (first..end).contains(&last) => last + 1,
            _ => first,
        };
        for number in (start..=end).chain(first..start) {
            let address = Ipv4Addr::from(number);
            let path = self.dir.join(address.to_string());
            match File::options().write(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    file.write_all(id.as_bytes())?;
                    fs::write(self.dir.join(LAST), address.to_string())?;
                    return Ok(Some(address));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Takes the addresses of a sandbox back.
    pub(super) fn release(&self, id: &str) -> io::Result<()> {
        self.remove_where(|holder| holder == id)
    }

    /// Takes all addresses back that none of these sandboxes has.
    pub(super) fn retain(&self, ids: &[String]) -> io::Result<()> {
        self.remove_where(|holder| !ids.iter().any(|id| id == holder))
    }

    fn remove_where(&self, is_unwanted: impl Fn(&str) -> bool) -> io::Result<()> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            if entry.file_name() == LAST {
                continue;
            }
            let looked = fs::read_to_string(entry.path()).and_then(|holder| {
                if is_unwanted(&holder) {
                    fs::remove_file(entry.path())?;
                }
                Ok(())
            });
            match looked {
                // Another sandbox gave it back meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                looked => looked?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_clusters_write_them() {
        let range = Range::parse("10.88.3.7/24").unwrap();
        assert_eq!(range.to_string(), "10.88.3.0/24");
        assert_eq!(range.gateway(), Ipv4Addr::new(10, 88, 3, 1));
        assert_eq!(Range::parse("fd00::/64, 10.0.0.0/16").unwrap().prefix, 16);
        for bad in ["", "10.0.0.0", "10.0.0.0/31", "10.0.0.0/33", "fd00::/64"] {
            assert_eq!(Range::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn addresses_are_allocated_in_turn_and_never_twice() {
        let dir = tempfile::tempdir().unwrap();
        let addresses = Addresses::new(dir.path().join("addresses"));
        let range = Range::parse("10.0.0.0/29").unwrap();
        let next = |id: &str| {
            let address = addresses.allocate(range, id).unwrap();
            address.map(|address| address.octets()[3])
        };
        assert_eq!(
            [next("a"), next("b"), next("c")],
            [Some(2), Some(3), Some(4)]
        );
        addresses.release("b").unwrap();
        addresses.release("nobody").unwrap();
        assert_eq!(
            [next("d"), next("e"), next("f")],
            [Some(5), Some(6), Some(3)]
        );
        assert_eq!(next("g"), None);
        addresses.release("a").unwrap();
        assert_eq!(next("g"), Some(2));
        addresses.retain(&["g".to_owned()]).unwrap();
        assert_eq!([next("h"), next("i")], [Some(3), Some(4)]);
    }

    #[test]
    fn addresses_are_released_concurrently() {
        let dir = tempfile::tempdir().unwrap();
        let addresses = Addresses::new(dir.path().join("addresses"));
        let range = Range::parse("10.0.0.0/24").unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let addresses = &addresses;
                scope.spawn(move || {
                    for turn in 0..50 {
                        let id = format!("{thread}-{turn}");
                        addresses.allocate(range, &id).unwrap().unwrap();
                        addresses.release(&id).unwrap();
                    }
                });
            }
        });
    }
}
