//! Which process holds a port, or the lock of a file.
//!
//! The kernel is the source, never a file that a process wrote about itself: that one may be stale.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Its command: `plimsoll up`, or the name of any other program.
    pub command: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} (pid {})", self.command, self.pid)
    }
}

/// The process that listens where `address` would be; `None` if none does, or if this process may
/// not see it.
pub fn of_port(address: SocketAddr) -> Option<Holder> {
    let mut sockets = BTreeSet::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = fs::read_to_string(table).unwrap_or_default();
        let listening = text.lines().filter_map(parse_listening);
        let clashing = listening.filter(|(taken, _)| clash(*taken, address));
        sockets.extend(clashing.map(|(_, inode)| format!("socket:[{inode}]")));
    }
    if sockets.is_empty() {
        return None;
    }
    let holds = |pid: &u32| {
        descriptors(*pid).any(|descriptor| {
            let target = fs::read_link(descriptor).unwrap_or_default();
            target
                .to_str()
                .is_some_and(|target| sockets.contains(target))
        })
    };
    processes().find(holds).map(describe)
}

/// The process that has locked the file with flock(2).
pub fn of_lock(path: &Path) -> Option<Holder> {
    let file = fs::metadata(path).ok()?;
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let lockers = locks.lines().filter_map(parse_flock);
    let mut lockers = lockers.filter(|(_, inode)| *inode == file.ino());
    // Files of other disks may have the same number.
    let has_open = |pid: u32| {
        descriptors(pid).any(|descriptor| {
            let open = fs::metadata(descriptor);
            open.is_ok_and(|open| (open.dev(), open.ino()) == (file.dev(), file.ino()))
        })
    };
    let (pid, _) = lockers.find(|(pid, _)| has_open(*pid))?;
    Some(describe(pid))
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn descriptors(pid: u32) -> impl Iterator<Item = std::path::PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
}

fn describe(pid: u32) -> Holder {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line);
    Holder {
        pid,
        command: command_of(name.trim(), &line.split('\0').collect::<Vec<_>>()),
    }
}

/// Our own processes by the command that they run, others by their name.
fn command_of(name: &str, line: &[&str]) -> String {
    let program = line.first().and_then(|path| path.rsplit('/').next());
    match (program, line.get(1)) {
        (Some("plimsoll"), Some(command)) if is_word(command) => format!("plimsoll {command}"),
        _ if name.is_empty() => "another process".to_owned(),
        _ => name.to_owned(),
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// A line of /proc/net/tcp or tcp6: where it listens, and the socket's inode.
fn parse_listening(line: &str) -> Option<(SocketAddr, u64)> {
    const LISTEN: &str = "0A";
    let words: Vec<&str> = line.split_whitespace().collect();
    let (local, state, inode) = (words.get(1)?, words.get(3)?, words.get(9)?);
    if *state != LISTEN {
        return None;
    }
    let (ip, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some((SocketAddr::new(parse_ip(ip)?, port), inode.parse().ok()?))
}

/// The kernel prints addresses as words of 32 bits, each in the machine's order of bytes.
fn parse_ip(digits: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let word = u32::from_str_radix(digits.get(at..at + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    match digits.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let mut bytes = [0; 16];
            for (part, word) in bytes.chunks_exact_mut(4).zip(words) {
                part.copy_from_slice(&word);
            }
            Some(IpAddr::V6(Ipv6Addr::from(bytes)))
        }
        _ => None,
    }
}

/// Whether listening on both is impossible.
fn clash(taken: SocketAddr, wanted: SocketAddr) -> bool {
    let is_everywhere = taken.ip().is_unspecified() || wanted.ip().is_unspecified();
    taken.port() == wanted.port()
        && (is_everywhere || taken.ip().to_canonical() == wanted.ip().to_canonical())
}

/// A line of /proc/locks about flock(2): the process, and the file's inode.
fn parse_flock(line: &str) -> Option<(u32, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    // Those that wait for the lock have an arrow in place of the kind.
    let [_, "FLOCK", _, "WRITE", pid, file, ..] = words.as_slice() else {
        return None;
    };
    let inode = file.rsplit(':').next()?;
    Some((pid.parse().ok()?, inode.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_process_that_listens() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let own = std::process::id();
        assert_eq!(of_port(address).map(|holder| holder.pid), Some(own));
        let everywhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port());
        assert_eq!(of_port(everywhere).map(|holder| holder.pid), Some(own));
        let elsewhere = SocketAddr::new(Ipv4Addr::new(127, 0, 0, 9).into(), address.port());
        assert_eq!(of_port(elsewhere), None);
        drop(listener);
        assert_eq!(of_port(address), None);
    }

    #[test]
    fn finds_the_process_that_listens_on_ipv6() {
        let Ok(listener) = std::net::TcpListener::bind("[::1]:0") else {
            return;
        };
        let address = listener.local_addr().unwrap();
        let own = std::process::id();
        assert_eq!(of_port(address).map(|holder| holder.pid), Some(own));
    }

    #[test]
    fn finds_the_process_that_has_locked_a_file() {
        let name = format!("plimsoll-lock-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = fs::File::create(&path).unwrap();
        assert_eq!(of_lock(&path), None);
        file.lock().unwrap();
        let own = std::process::id();
        assert_eq!(of_lock(&path).map(|holder| holder.pid), Some(own));
        drop(file);
        assert_eq!(of_lock(&path), None);
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn names_our_own_processes_by_their_command() {
        let up = ["/usr/bin/plimsoll", "up", "--data-dir", "/x"];
        assert_eq!(command_of("plimsoll", &up), "plimsoll up");
        assert_eq!(command_of("plimsoll", &["plimsoll", "-v", "3"]), "plimsoll");
        assert_eq!(command_of("nginx", &["nginx: master"]), "nginx");
        assert_eq!(command_of("", &[""]), "another process");
    }

    #[test]
    fn reads_the_tables_of_the_kernel() {
        let line = "   0: 0100007F:192B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0";
        if cfg!(target_endian = "little") {
            let expected = ("127.0.0.1:6443".parse().unwrap(), 4711);
            assert_eq!(parse_listening(line), Some(expected));
        }
        assert_eq!(parse_listening(&line.replace(" 0A ", " 01 ")), None);
        let lock = "1: FLOCK  ADVISORY  WRITE 123 08:01:4711 0 EOF";
        assert_eq!(parse_flock(lock), Some((123, 4711)));
        assert_eq!(
            parse_flock("1: -> FLOCK ADVISORY WRITE 5 08:01:4711 0 EOF"),
            None
        );
        assert_eq!(
            parse_flock("2: POSIX  ADVISORY  WRITE 1 08:01:1 0 EOF"),
            None
        );
    }
}
