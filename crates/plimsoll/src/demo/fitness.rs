//! Preflight checks of the demo.

use anyhow::{Context, Result, bail};
use plimsoll_core::config::read_file;
use plimsoll_core::resources::Bytes;
use plimsoll_node::preflight::{Level, Subject, judge, observe};

use super::sandbox::{CONFIGURATION, NODE_MEMORY};
use crate::node::refuse_by;

/// Memory of the cluster itself and a margin, so that the machine does not run out of memory.
const BESIDE_NODE: Bytes = Bytes(256 << 20);

/// Fails if the machine cannot run the demo.
pub(super) fn refuse_unfit() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!(
            "plimsoll demo runs containers and needs root: sudo {} demo",
            program_name()
        );
    }
    let subject = Subject {
        system_root: "/".into(),
        directories: Vec::new(),
        listens: Vec::new(),
        runtime_socket: None,
    };
    let config = read_file(CONFIGURATION.as_bytes(), None).config;
    // Warnings about a node do not matter to the demo.
    refuse_by(judge(&observe(&subject), &config), Level::Error)?;
    check_memory()
}

/// The program as invoked, so that the command in the message works.
fn program_name() -> String {
    let name = std::env::args_os().next();
    name.map_or("plimsoll".to_owned(), |name| {
        name.to_string_lossy().into_owned()
    })
}

fn check_memory() -> Result<()> {
    let text = std::fs::read_to_string("/proc/meminfo").context("cannot read /proc/meminfo")?;
    let Some(available) = parse_available(&text) else {
        bail!("/proc/meminfo has no MemAvailable");
    };
    let needed = Bytes(NODE_MEMORY.0 + BESIDE_NODE.0);
    if available < needed {
        bail!(
            "the demo uses {} of memory, and this machine has {} available; {} are required",
            NODE_MEMORY.readable(),
            available.readable(),
            needed.readable()
        );
    }
    Ok(())
}

fn parse_available(text: &str) -> Option<Bytes> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(kibibytes.checked_mul(1024)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_how_much_memory_is_available() {
        let text = "MemTotal:  32768 kB\nMemAvailable:     100 kB\n";
        assert_eq!(parse_available(text), Some(Bytes(102_400)));
        assert_eq!(parse_available("MemTotal: 1 kB\n"), None);
    }
}
