//! The machine that a check assumes.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use plimsoll_core::allocatable::{HugePages, Machine};
use plimsoll_core::config::NodeConfig;
use plimsoll_core::lint::MachineFacts;
use plimsoll_core::quantity::Quantity;
use plimsoll_core::resources::{Bytes, Count, ResourceName};
use plimsoll_node::machine::read_local_machine;

use crate::exit::Exit;
use crate::failure::Advise;

/// The machine as given on the command line.
#[derive(Debug, Default)]
pub(super) struct Subject {
    given: Option<BTreeMap<String, Quantity>>,
    daemons: Option<Bytes>,
}

/// The machine a configuration is checked against.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) machine: Machine,
    pub(super) facts: MachineFacts,
    /// Resources with a known capacity; the load line omits others.
    pub(super) known: Vec<ResourceName>,
    pub(super) source: &'static str,
}

const NAMES: &str = "cpu, memory, ephemeral-storage, inodes, pid, swap or hugepages-SIZE";

impl Subject {
    pub(super) fn new(capacity: Option<&str>, daemons: Option<&str>) -> Result<Subject> {
        let given = capacity
            .map(|text| parse_list("--capacity", text))
            .transpose()?;
        for name in given.iter().flat_map(BTreeMap::keys) {
            let is_known = [
                "cpu",
                "memory",
                "ephemeral-storage",
                "inodes",
                "pid",
                "swap",
            ]
            .contains(&name.as_str())
                || huge_page_size(name).is_some();
            if !is_known {
                bail!("--capacity: unknown name {name:?}; expected {NAMES}");
            }
        }
        let daemons = match daemons
            .map(|text| parse_list("--daemons", text))
            .transpose()?
        {
            None => None,
            Some(list) => match (list.get("memory"), list.len()) {
                (Some(memory), 1) => Some(Bytes::from_quantity(memory)),
                _ => bail!("--daemons: only memory=QUANTITY is supported"),
            },
        };
        Ok(Subject { given, daemons })
    }

    /// Memory of the given machine, or of this one; `None` if --capacity does not name it.
    pub(super) fn memory(&self) -> Option<Bytes> {
        match &self.given {
            Some(given) => given.get("memory").map(Bytes::from_quantity),
            None => read_local_machine(Path::new("/"))
                .ok()
                .map(|local| local.memory),
        }
    }

    /// The given machine, or this one.
    pub(super) fn resolve(&self, config: &NodeConfig) -> Result<Resolved> {
        match &self.given {
            Some(given) => resolve_given(given, self.daemons),
            None => resolve_local(config, self.daemons),
        }
    }
}

fn resolve_given(given: &BTreeMap<String, Quantity>, daemons: Option<Bytes>) -> Result<Resolved> {
    let bytes = |name: &str| given.get(name).map(Bytes::from_quantity);
    let count = |name: &str| given.get(name).map(Count::from_quantity);
    let cores = match given.get("cpu") {
        Some(cpu) => cpu
            .as_i64()
            .ok_or_else(|| anyhow!("--capacity: cpu={cpu} must be a whole number of cores"))?,
        None => 0,
    };
    let mut huge_pages = Vec::new();
    for (name, quantity) in given {
        if let Some(page_size) = huge_page_size(name) {
            huge_pages.push(HugePages {
                page_size,
                count: quantity.value() / page_size.0.max(1),
            });
        }
    }
    let mut known: Vec<ResourceName> = given.keys().map(ResourceName::new).collect();
    if given.contains_key("cpu") {
        known.push(ResourceName::PODS);
    }
    Ok(Resolved {
        machine: Machine {
            cores,
            memory: bytes("memory").unwrap_or_default(),
            huge_pages,
            root_fs: bytes("ephemeral-storage"),
            max_pid: count("pid"),
        },
        facts: MachineFacts {
            memory: bytes("memory"),
            swap: bytes("swap"),
            root_fs: bytes("ephemeral-storage"),
            root_fs_inodes: count("inodes"),
            max_pid: count("pid"),
            daemons,
        },
        known,
        source: "--capacity",
    })
}

fn resolve_local(config: &NodeConfig, daemons: Option<Bytes>) -> Result<Resolved> {
    let local = read_local_machine(Path::new(config.root_dir.as_str()))?;
    let machine = local.to_shared_out();
    let mut known: Vec<ResourceName> = machine.capacity().names().cloned().collect();
    known.push(ResourceName::PODS);
    Ok(Resolved {
        machine,
        facts: MachineFacts {
            memory: Some(local.memory),
            swap: Some(local.swap),
            root_fs: Some(local.root_fs),
            root_fs_inodes: Some(local.root_fs_inodes),
            max_pid: Some(local.max_pid),
            daemons,
        },
        known,
        source: "this machine",
    })
}

/// This machine with the capacities of `--capacity` instead of its own.
pub(crate) fn overridden_machine(text: &str, root_dir: &Path) -> Result<Machine> {
    let subject = Subject::new(Some(text), None).exit(Exit::Usage)?;
    let given = subject.given.unwrap_or_default();
    let stated = resolve_given(&given, None)?.machine;
    let mut machine = read_local_machine(root_dir)?.to_shared_out();
    if given.contains_key("cpu") {
        machine.cores = stated.cores;
    }
    if given.contains_key("memory") {
        machine.memory = stated.memory;
    }
    if !stated.huge_pages.is_empty() {
        machine.huge_pages = stated.huge_pages;
    }
    machine.root_fs = stated.root_fs.or(machine.root_fs);
    machine.max_pid = stated.max_pid.or(machine.max_pid);
    Ok(machine)
}

fn huge_page_size(name: &str) -> Option<Bytes> {
    let name = ResourceName::new(name);
    let size: Quantity = name.huge_page_size()?.parse().ok()?;
    (size.value() > 0).then(|| Bytes::from_quantity(&size))
}

fn parse_list(flag: &str, text: &str) -> Result<BTreeMap<String, Quantity>> {
    let mut list = BTreeMap::new();
    for item in text.split(',') {
        let Some((name, value)) = item.split_once('=') else {
            bail!("{flag}: {item:?} must be NAME=QUANTITY");
        };
        let (name, value) = (name.trim(), value.trim());
        let quantity: Quantity = value
            .parse()
            .map_err(|error| anyhow!("{flag}: {name}={value}: {error}"))?;
        if quantity.signum() < 0 {
            bail!("{flag}: {name}={value} must not be negative");
        }
        if list.insert(name.to_owned(), quantity).is_some() {
            bail!("{flag}: {name} is given twice");
        }
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_not_given_are_those_of_this_machine() {
        let machine = overridden_machine("memory=1Gi", Path::new("/")).unwrap();
        assert_eq!(machine.memory, Bytes(1 << 30));
        assert!(machine.cores >= 1);
        assert!(machine.root_fs.is_some());
    }

    #[test]
    fn errors_name_flag_and_value() {
        let error = |text| Subject::new(Some(text), None).unwrap_err().to_string();
        assert_eq!(
            error("memory=32GB"),
            "--capacity: memory=32GB: quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        );
        assert_eq!(
            error("memory"),
            "--capacity: \"memory\" must be NAME=QUANTITY"
        );
        assert_eq!(
            error("memory=1,memory=2"),
            "--capacity: memory is given twice"
        );
        assert!(error("disk=1").starts_with("--capacity: unknown name \"disk\""));
    }
}
