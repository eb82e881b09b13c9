//! The machine that a check assumes.

use std::collections::BTreeMap;

use plimsoll_core::allocatable::{HugePages, Machine};
use plimsoll_core::lint::MachineFacts;
use plimsoll_core::quantity::Quantity;
use plimsoll_core::resources::{Bytes, Count, ResourceName};

/// Capacities that are given instead of a machine, such as `cpu=4,memory=32Gi`.
#[derive(Clone, Debug, Default)]
pub struct Capacity(BTreeMap<String, Quantity>);

/// The machine a configuration is checked against.
#[derive(Clone, Debug)]
pub struct Subject {
    pub machine: Machine,
    pub facts: MachineFacts,
    /// Resources with a known capacity; the load line omits others.
    pub known: Vec<ResourceName>,
    /// Where the capacities come from, as the report shows it.
    pub source: &'static str,
}

const NAMES: &str = "cpu, memory, ephemeral-storage, inodes, pid, swap or hugepages-SIZE";

impl Capacity {
    /// Parses the value of `--capacity`.
    pub fn parse(text: &str) -> Result<Capacity, String> {
        let given = parse_list("--capacity", text)?;
        for name in given.keys() {
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
                return Err(format!(
                    "--capacity: unknown name {name:?}; expected {NAMES}"
                ));
            }
        }
        if let Some(cpu) = given.get("cpu")
            && cpu.as_i64().is_none()
        {
            return Err(format!(
                "--capacity: cpu={cpu} must be a whole number of cores"
            ));
        }
        Ok(Capacity(given))
    }

    /// The memory, if it is given.
    pub fn memory(&self) -> Option<Bytes> {
        self.bytes("memory")
    }

    /// A machine of these capacities.
    pub fn subject(&self) -> Subject {
        let count = |name: &str| self.0.get(name).map(Count::from_quantity);
        let mut huge_pages = Vec::new();
        for (name, quantity) in &self.0 {
            if let Some(page_size) = huge_page_size(name) {
                huge_pages.push(HugePages {
                    page_size,
                    count: quantity.value() / page_size.0.max(1),
                });
            }
        }
        let mut known: Vec<ResourceName> = self.0.keys().map(ResourceName::new).collect();
        if self.0.contains_key("cpu") {
            known.push(ResourceName::PODS);
        }
        Subject {
            machine: Machine {
                cores: self.0.get("cpu").and_then(Quantity::as_i64).unwrap_or(0),
                memory: self.memory().unwrap_or_default(),
                huge_pages,
                root_fs: self.bytes("ephemeral-storage"),
                max_pid: count("pid"),
            },
            facts: MachineFacts {
                memory: self.memory(),
                swap: self.bytes("swap"),
                root_fs: self.bytes("ephemeral-storage"),
                root_fs_inodes: count("inodes"),
                max_pid: count("pid"),
                daemons: None,
            },
            known,
            source: "--capacity",
        }
    }

    /// The machine with these capacities instead of its own.
    pub fn override_machine(&self, mut machine: Machine) -> Machine {
        let stated = self.subject().machine;
        if self.0.contains_key("cpu") {
            machine.cores = stated.cores;
        }
        if self.0.contains_key("memory") {
            machine.memory = stated.memory;
        }
        if !stated.huge_pages.is_empty() {
            machine.huge_pages = stated.huge_pages;
        }
        machine.root_fs = stated.root_fs.or(machine.root_fs);
        machine.max_pid = stated.max_pid.or(machine.max_pid);
        machine
    }

    fn bytes(&self, name: &str) -> Option<Bytes> {
        self.0.get(name).map(Bytes::from_quantity)
    }
}

/// Parses the value of `--daemons`: the memory that daemons use.
pub fn parse_daemons(text: &str) -> Result<Bytes, String> {
    let list = parse_list("--daemons", text)?;
    match (list.get("memory"), list.len()) {
        (Some(memory), 1) => Ok(Bytes::from_quantity(memory)),
        _ => Err("--daemons: only memory=QUANTITY is supported".to_owned()),
    }
}

fn huge_page_size(name: &str) -> Option<Bytes> {
    let name = ResourceName::new(name);
    let size: Quantity = name.huge_page_size()?.parse().ok()?;
    (size.value() > 0).then(|| Bytes::from_quantity(&size))
}

fn parse_list(flag: &str, text: &str) -> Result<BTreeMap<String, Quantity>, String> {
    let mut list = BTreeMap::new();
    for item in text.split(',') {
        let Some((name, value)) = item.split_once('=') else {
            return Err(format!("{flag}: {item:?} must be NAME=QUANTITY"));
        };
        let (name, value) = (name.trim(), value.trim());
        let quantity: Quantity = value
            .parse()
            .map_err(|error| format!("{flag}: {name}={value}: {error}"))?;
        if quantity.signum() < 0 {
            return Err(format!("{flag}: {name}={value} must not be negative"));
        }
        if list.insert(name.to_owned(), quantity).is_some() {
            return Err(format!("{flag}: {name} is given twice"));
        }
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_capacities_stay() {
        let local = Machine {
            cores: 8,
            memory: Bytes(1 << 34),
            root_fs: Some(Bytes(1 << 40)),
            ..Machine::default()
        };
        let capacity = Capacity::parse("memory=1Gi").unwrap();
        let machine = capacity.override_machine(local.clone());
        let expected = Machine {
            memory: Bytes(1 << 30),
            ..local
        };
        assert_eq!(machine, expected);
    }

    #[test]
    fn errors_name_flag_and_value() {
        let error = |text| Capacity::parse(text).unwrap_err();
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
