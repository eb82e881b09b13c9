//! Values with rules of their own: reservations, enforcement, CPUs, taints, sizes.

use std::collections::BTreeMap;

use crate::object::taint::{Effect, Taint};
use crate::problem::{Problem, quoted};
use crate::resources::{Bytes, ResourceList, ResourceName};

use super::super::document::{child_path, item_path};
use super::super::reserved::{self, Reserved};
use super::super::{CpuSet, Enforcement, Setting};
use super::fields::{Fields, raw_text};

impl Fields<'_> {
    /// Matches v1.36 pkg/kubelet/logs/container_log_manager.go, parseMaxSize.
    pub(super) fn log_size(&mut self, field: &str, setting: &mut Setting<Bytes>) {
        let empty_is_default = self.zero_is_default;
        self.try_set(field, setting, |assignment, problems| {
            let text = raw_text(&assignment.node);
            match text.parse() {
                Ok(quantity) => Some(Bytes::from_quantity(&quantity)),
                Err(_) if text.is_empty() && empty_is_default => None,
                Err(error) => {
                    let what = "failed to parse container log max size";
                    let problem = assignment.problem(format!("{what} {}: {error}", quoted(text)));
                    problems.push(problem);
                    None
                }
            }
        });
    }

    /// Matches v1.36 pkg/kubelet/apis/config/validation, reservedSystemCPUs.
    pub(super) fn cpu_set(&mut self, field: &str, setting: &mut Setting<CpuSet>) {
        self.try_set(field, setting, |assignment, problems| {
            let text = assignment.node.as_text()?;
            CpuSet::parse(text)
                .map_err(|error| {
                    let what = "unable to parse reservedSystemCPUs (--reserved-cpus)";
                    problems.push(assignment.refuse(format!("{what} {text}, error: {error}")));
                })
                .ok()
        });
    }

    pub(super) fn reservation(
        &mut self,
        field: &str,
        reserved: Reserved,
        setting: &mut Setting<ResourceList>,
    ) {
        self.try_set(field, setting, |assignment, problems| {
            let mut list = ResourceList::new();
            for entry in assignment.node.as_mapping()? {
                let text = raw_text(&entry.value).to_owned();
                let one = BTreeMap::from([(entry.key.clone(), text)]);
                if let Ok(quantity) = reserved::parse(reserved, &one) {
                    list.add(&quantity);
                }
                let origin = assignment.origin_of(child_path, &entry.key, &entry.value);
                problems.extend(
                    reserved::problems(reserved, &one)
                        .into_iter()
                        .map(|problem| {
                            let path = origin.path.clone();
                            Problem { path, ..problem }.at(origin.position)
                        }),
                );
            }
            Some(list)
        });
    }

    /// Matches v1.36 pkg/kubelet/cm/container_manager.go, ParseQOSReserved.
    pub(super) fn percentages(
        &mut self,
        field: &str,
        setting: &mut Setting<BTreeMap<ResourceName, u8>>,
    ) {
        self.try_set(field, setting, |assignment, problems| {
            let mut percentages = BTreeMap::new();
            for entry in assignment.node.as_mapping()? {
                match reserved_percentage(&entry.key, raw_text(&entry.value)) {
                    Ok(percentage) => {
                        percentages.insert(ResourceName::new(entry.key.as_str()), percentage);
                    }
                    Err(reason) => {
                        let origin = assignment.origin_of(child_path, &entry.key, &entry.value);
                        let sentence = format!("--qos-reserved value failed to parse: {reason}");
                        problems.push(Problem::refused(origin.path, sentence).at(origin.position));
                    }
                }
            }
            Some(percentages)
        });
    }

    pub(super) fn enforcements(&mut self, field: &str, setting: &mut Setting<Vec<Enforcement>>) {
        self.try_set(field, setting, |assignment, problems| {
            let mut enforcements = Vec::new();
            for item in assignment.node.as_sequence()? {
                let word = raw_text(item);
                match Enforcement::from_word(word) {
                    Some(enforcement) => enforcements.push(enforcement),
                    None => problems.push(assignment.refuse(unknown_enforcement(word))),
                }
            }
            Some(enforcements)
        });
    }

    pub(super) fn taints(&mut self, field: &str, setting: &mut Setting<Vec<Taint>>) {
        self.try_set(field, setting, |assignment, problems| {
            let mut taints = Vec::new();
            for (index, item) in assignment.node.as_sequence()?.iter().enumerate() {
                let text = |key| item.get(key).map(raw_text).unwrap_or_default().to_owned();
                let (key, value, effect) = (text("key"), text("value"), text("effect"));
                match Effect::from_name(&effect) {
                    effect if effect.is_known() && !key.is_empty() => {
                        taints.push(Taint { key, value, effect });
                    }
                    _ => {
                        let path = item_path(&assignment.origin.path, index);
                        let sentence = format!("invalid taint: {key}={value}:{effect}");
                        let position = assignment.origin.position.map(|_| item.position);
                        problems.push(Problem::refused(path, sentence).at(position));
                    }
                }
            }
            Some(taints)
        });
    }
}

fn reserved_percentage(name: &str, text: &str) -> Result<u8, String> {
    if name != ResourceName::MEMORY.as_str() {
        return Err(format!("cannot reserve {} resource", quoted(name)));
    }
    let parsed = match text.strip_suffix('%') {
        None => Err(format!("percentage expected, got '{text}'")),
        Some(_) => match text.trim_end_matches('%').parse::<i64>() {
            Err(_) => Err(format!("invalid number in percentage '{text}'")),
            Ok(number @ 0..=100) => Ok(u8::try_from(number).unwrap_or(100)),
            Ok(_) => Err("percentage must be between 0 and 100".to_owned()),
        },
    };
    parsed.map_err(|error| {
        let (text, name) = (quoted(text), quoted(name));
        format!("failed to parse percentage {text} for {name} resource: {error}")
    })
}

fn unknown_enforcement(word: &str) -> String {
    let options = [
        Enforcement::Pods,
        Enforcement::SystemReserved,
        Enforcement::SystemReservedCompressible,
        Enforcement::KubeReserved,
        Enforcement::KubeReservedCompressible,
    ];
    let options: Vec<String> = options.map(|o| format!("{:?}", o.as_str())).to_vec();
    format!(
        "option {} specified for enforceNodeAllocatable (--enforce-node-allocatable). \
         Valid options are {} or {:?}",
        quoted(word),
        options.join(", "),
        Enforcement::None.as_str()
    )
}
