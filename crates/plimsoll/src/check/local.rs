//! The machine that the check runs on.

use std::path::Path;

use anyhow::Result;
use plimsoll_core::config::NodeConfig;
use plimsoll_core::lint::MachineFacts;
use plimsoll_core::resources::{Bytes, ResourceName};
use plimsoll_node::machine::read_local_machine;
use plimsoll_report::check::Subject;

/// This machine, for a node with that configuration.
pub(super) fn subject(config: &NodeConfig) -> Result<Subject> {
    let local = read_local_machine(Path::new(config.root_dir.as_str()))?;
    let machine = local.to_shared_out();
    let mut known: Vec<ResourceName> = machine.capacity().names().cloned().collect();
    known.push(ResourceName::PODS);
    Ok(Subject {
        machine,
        facts: MachineFacts {
            memory: Some(local.memory),
            swap: Some(local.swap),
            root_fs: Some(local.root_fs),
            root_fs_inodes: Some(local.root_fs_inodes),
            max_pid: Some(local.max_pid),
            daemons: None,
        },
        known,
        source: "this machine",
    })
}

/// The memory of this machine.
pub(super) fn memory() -> Option<Bytes> {
    let local = read_local_machine(Path::new("/"));
    local.ok().map(|local| local.memory)
}
