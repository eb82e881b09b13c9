//! Quantities whose unit does not suit their resource: `memory: 512m` is half a byte.

use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;

use crate::quantity::{Format, Quantity};
use crate::resources::ResourceName;

use super::{Finding, Level, Rule};

/// No container runs with less memory, in bytes.
const LEAST_MEMORY: i64 = 1 << 20;
/// More cores than a container is likely to want.
const MANY_CORES: i64 = 100;

/// Requests and limits of a pod with unlikely units. `path` is the path of the spec.
pub fn lint_units(spec: &PodSpec, path: &str) -> Vec<Finding> {
    let init = spec.init_containers.iter().flatten();
    let lists: [(&str, Vec<&Container>); 2] = [
        ("initContainers", init.collect()),
        ("containers", spec.containers.iter().collect()),
    ];
    let mut findings = Vec::new();
    for (list, containers) in lists {
        for (index, container) in containers.into_iter().enumerate() {
            let Some(resources) = &container.resources else {
                continue;
            };
            let parts = [
                ("requests", &resources.requests),
                ("limits", &resources.limits),
            ];
            for (part, amounts) in parts {
                for (name, amount) in amounts.iter().flatten() {
                    let Some((message, fix)) = unlikely(&ResourceName::new(name), amount) else {
                        continue;
                    };
                    findings.push(Finding {
                        rule: Rule::UnlikelyUnit,
                        level: Level::Warning,
                        path: format!("{path}.{list}[{index}].resources.{part}[{name}]"),
                        position: None,
                        message,
                        fix,
                    });
                }
            }
        }
    }
    findings
}

/// What the quantity means, and what is probably meant.
fn unlikely(resource: &ResourceName, amount: &ApiQuantity) -> Option<(String, String)> {
    let text = amount.0.as_str();
    let quantity: Quantity = text.parse().ok()?;
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let fraction = text.ends_with('m') && !text.ends_with("mm");
    if *resource == ResourceName::CPU {
        let is_size = quantity.format() == Format::BinarySi || text.ends_with(['k', 'M', 'G']);
        let is_unlikely = is_size || quantity.value() >= MANY_CORES;
        return is_unlikely.then(|| {
            let cores = quantity.value();
            (
                format!("cpu {text} is {cores} cores"),
                format!("{digits}m is {digits} thousandths of a core"),
            )
        });
    }
    let is_memory = *resource == ResourceName::MEMORY;
    if !is_memory && *resource != ResourceName::EPHEMERAL_STORAGE || quantity.signum() <= 0 {
        return None;
    }
    if fraction {
        return Some((
            format!("{resource} {text} is {digits} thousandths of a byte"),
            format!("{digits}Mi, or {digits}M for megabytes of 1000 kilobytes"),
        ));
    }
    (is_memory && quantity.value() < LEAST_MEMORY).then(|| {
        (
            format!("memory {text} is {} bytes", quantity.value()),
            format!("{digits}Mi is {digits} mebibytes"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(resource: &str, amount: &str) -> Option<String> {
        let resource = ResourceName::new(resource);
        unlikely(&resource, &ApiQuantity(amount.to_owned())).map(|(message, _)| message)
    }

    #[test]
    fn units_that_do_not_suit_the_resource_are_found() {
        for (resource, amount, message) in [
            ("memory", "512m", "memory 512m is 512 thousandths of a byte"),
            ("memory", "512", "memory 512 is 512 bytes"),
            ("cpu", "500", "cpu 500 is 500 cores"),
            ("cpu", "100Mi", "cpu 100Mi is 104857600 cores"),
        ] {
            assert_eq!(judged(resource, amount).as_deref(), Some(message));
        }
        for (resource, amount) in [
            ("memory", "64Mi"),
            ("memory", "128974848"),
            ("memory", "0"),
            ("cpu", "0.5"),
            ("cpu", "250m"),
            ("cpu", "64"),
            ("example.com/widget", "5"),
        ] {
            assert_eq!(judged(resource, amount), None, "{resource} {amount}");
        }
    }
}
