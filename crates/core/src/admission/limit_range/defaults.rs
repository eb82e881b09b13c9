//! Requests and limits for containers that state none.

use crate::admission::draft::{Part, Place, PodDraft};
use crate::object::limit_range::{LimitRangeView, LimitType};
use crate::object::pod::Requirements;
use crate::quantity::Quantity;
use crate::resources::{ResourceList, ResourceName};

/// The annotation that records on a pod what was set. Each LimitRange that sets something replaces
/// its value.
pub const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// One value that a container did not state and a LimitRange gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defaulted {
    /// The LimitRange it came from.
    pub limit_range: String,
    /// The container that got it.
    pub place: Place,
    /// Where in the container it went.
    pub part: Part,
    /// The resource.
    pub resource: ResourceName,
    /// The value.
    pub quantity: Quantity,
}

/// Gives each container the defaults of each LimitRange in turn; returns what was set.
///
/// A value, once there, is never replaced: the first LimitRange that has a default wins. Giving
/// the same defaults again changes nothing.
pub fn apply_defaults(draft: &mut PodDraft, limit_ranges: &[LimitRangeView]) -> Vec<Defaulted> {
    let mut all = Vec::new();
    for limit_range in limit_ranges {
        let defaults = container_defaults(limit_range);
        let mut set = Vec::new();
        for (place, container) in draft.containers_mut() {
            let resources = &mut container.resources;
            for (part, list, defaults) in [
                (Part::Request, &mut resources.requests, &defaults.requests),
                (Part::Limit, &mut resources.limits, &defaults.limits),
            ] {
                for (resource, quantity) in fill(list, defaults) {
                    set.push(Defaulted {
                        limit_range: limit_range.name.clone(),
                        place: place.clone(),
                        part,
                        resource,
                        quantity,
                    });
                }
            }
        }
        if !set.is_empty() {
            let text = annotation_text(&set);
            draft.annotations.insert(ANNOTATION.to_owned(), text);
        }
        all.append(&mut set);
    }
    all
}

/// The defaults of all Container items together; of two for one resource the later counts.
fn container_defaults(limit_range: &LimitRangeView) -> Requirements {
    let mut defaults = Requirements::default();
    for item in &limit_range.items {
        if item.limit_type != LimitType::Container {
            continue;
        }
        for (name, quantity) in &item.default_request {
            defaults.requests.insert(name.clone(), quantity.clone());
        }
        for (name, quantity) in &item.default {
            defaults.limits.insert(name.clone(), quantity.clone());
        }
    }
    defaults
}

/// Sets the missing values, and returns them.
fn fill(list: &mut ResourceList, defaults: &ResourceList) -> ResourceList {
    let missing = defaults.filtered(|name| !list.contains(name));
    list.fill_from(&missing);
    missing
}

/// `LimitRanger plugin set: cpu, memory request for container a; cpu limit for container a`.
fn annotation_text(set: &[Defaulted]) -> String {
    let lines = set
        .chunk_by(|a, b| (a.part, &a.place) == (b.part, &b.place))
        .map(|values| {
            let names: Vec<&str> = values.iter().map(|v| v.resource.as_str()).collect();
            let Defaulted { part, place, .. } = &values[0];
            format!("{} {part} for {place}", names.join(", "))
        });
    let lines: Vec<String> = lines.collect();
    format!("LimitRanger plugin set: {}", lines.join("; "))
}
