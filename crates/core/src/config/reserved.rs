//! `kubeReserved` and `systemReserved`: what is kept from pods.

use std::collections::BTreeMap;

use crate::problem::{Problem, quoted};
use crate::quantity::{self, Format, Quantity};
use crate::resources::{ResourceList, ResourceName};

/// What resources are reserved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// `kubeReserved`: the node agent and the container runtime.
    Kube,
    /// `systemReserved`: everything else that is no pod.
    System,
}

impl Reserved {
    fn flag(self) -> &'static str {
        match self {
            Reserved::Kube => "--kube-reserved",
            Reserved::System => "--system-reserved",
        }
    }

    fn field(self) -> &'static str {
        match self {
            Reserved::Kube => "kubeReserved",
            Reserved::System => "systemReserved",
        }
    }
}

/// The first thing wrong with a reservation. The messages are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} value failed to parse: {mistake}", .reserved.flag())]
pub struct ReservedError {
    reserved: Reserved,
    mistake: ReservedErrorKind,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum ReservedErrorKind {
    #[error("failed to parse quantity {} for {} resource: {error}", quoted(.text), quoted(.name))]
    Quantity {
        name: String,
        text: String,
        error: quantity::ParseError,
    },
    #[error("resource quantity for {} cannot be negative: {text}", quoted(.name))]
    Negative { name: String, text: String },
    #[error("cannot reserve {} resource", quoted(.name))]
    NotReservable { name: String },
}

const RESERVABLE: [ResourceName; 4] = [
    ResourceName::CPU,
    ResourceName::MEMORY,
    ResourceName::EPHEMERAL_STORAGE,
    ResourceName::PID,
];

/// Parses one reservation map, or returns the kubelet's error at start.
///
/// Matches v1.36 parseResourceList in cmd/kubelet/app/server.go.
pub fn parse(
    reserved: Reserved,
    map: &BTreeMap<String, String>,
) -> Result<ResourceList, ReservedError> {
    map.iter()
        .map(|(name, text)| parse_entry(name, text))
        .collect::<Result<ResourceList, ReservedErrorKind>>()
        .map_err(|mistake| ReservedError { reserved, mistake })
}

/// All mistakes of the map, each with the path of its entry.
pub fn problems(reserved: Reserved, map: &BTreeMap<String, String>) -> Vec<Problem> {
    map.iter()
        .filter_map(|(name, text)| {
            let mistake = parse_entry(name, text).err()?;
            let path = format!("{}[{name}]", reserved.field());
            Some(match mistake {
                ReservedErrorKind::NotReservable { name } => {
                    let names = RESERVABLE.each_ref().map(ResourceName::as_str);
                    Problem::not_supported(path, &name, &names)
                }
                mistake => Problem::invalid(path, text, mistake.to_string()),
            })
        })
        .collect()
}

fn parse_entry(name: &str, text: &str) -> Result<(ResourceName, Quantity), ReservedErrorKind> {
    let (name, text) = (name.to_owned(), text.to_owned());
    let resource = ResourceName::new(&name);
    if !RESERVABLE.contains(&resource) {
        return Err(ReservedErrorKind::NotReservable { name });
    }
    match text.parse::<Quantity>() {
        Err(error) => Err(ReservedErrorKind::Quantity { name, text, error }),
        Ok(quantity) if quantity.signum() < 0 => Err(ReservedErrorKind::Negative { name, text }),
        Ok(quantity) => Ok((resource, quantity)),
    }
}

/// Lets `reservedSystemCPUs` take the place of both cpu reservations; a set of none changes
/// nothing.
pub fn replace_cpu(kube: &mut ResourceList, system: &mut ResourceList, cpus: u32) {
    if cpus > 0 {
        kube.remove(&ResourceName::CPU);
        let quantity = Quantity::new(cpus.into(), Format::DecimalSi);
        system.insert(ResourceName::CPU, quantity);
    }
}
