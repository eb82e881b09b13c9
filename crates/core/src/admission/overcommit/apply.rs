//! The arithmetic of the override.

use std::collections::BTreeMap;

use crate::admission::draft::{Part, Place, PodDraft};
use crate::admission::ratio::{float, truncated};
use crate::object::limit_range::LimitRangeView;
use crate::object::pod::Requirements;
use crate::quantity::{Format, Quantity};
use crate::resources::ResourceName;

use super::bounds::{Bound, Bounds};
use super::{ORIGINAL_CPU_REQUEST_ANNOTATION, Override, Settings, Variant};

/// One core for each GiB of memory, in millicores per byte.
const MILLICORES_PER_BYTE: f64 = 1000.0 / (1024.0 * 1024.0 * 1024.0);

/// One value that the override set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overridden {
    /// The container.
    pub place: Place,
    /// Which percentage did it.
    pub rule: Rule,
    /// The value before, if any.
    pub from: Option<Quantity>,
    /// The value after.
    pub to: Quantity,
    /// The bound the result was moved to.
    pub bound: Option<Bound>,
}

/// The percentages, by what they set and from what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Memory request from memory limit.
    MemoryRequestToLimit,
    /// Cpu limit from memory limit.
    LimitCpuToMemory,
    /// Cpu request from cpu limit.
    CpuRequestToLimit,
    /// Cpu request from the cpu request before the override.
    CpuRequestToRequest,
}

impl Rule {
    /// The cpu limit is set before the request is taken from it.
    const IN_ORDER: [Rule; 4] = [
        Rule::MemoryRequestToLimit,
        Rule::LimitCpuToMemory,
        Rule::CpuRequestToLimit,
        Rule::CpuRequestToRequest,
    ];

    /// The resource and list it sets.
    pub fn target(self) -> (ResourceName, Part) {
        match self {
            Rule::MemoryRequestToLimit => (ResourceName::MEMORY, Part::Request),
            Rule::LimitCpuToMemory => (ResourceName::CPU, Part::Limit),
            Rule::CpuRequestToLimit | Rule::CpuRequestToRequest => {
                (ResourceName::CPU, Part::Request)
            }
        }
    }

    /// The value that the percentage applies to.
    fn basis<'a>(
        self,
        resources: &'a Requirements,
        original_cpu_request: Option<&'a Quantity>,
    ) -> Option<&'a Quantity> {
        match self {
            Rule::MemoryRequestToLimit | Rule::LimitCpuToMemory => {
                resources.limits.get(&ResourceName::MEMORY)
            }
            Rule::CpuRequestToLimit => resources.limits.get(&ResourceName::CPU),
            Rule::CpuRequestToRequest => original_cpu_request,
        }
    }

    fn percent(self, settings: &Settings) -> i64 {
        match self {
            Rule::MemoryRequestToLimit => settings.memory_request_to_limit_percent,
            Rule::LimitCpuToMemory => settings.limit_cpu_to_memory_percent,
            Rule::CpuRequestToLimit => settings.cpu_request_to_limit_percent,
            Rule::CpuRequestToRequest => settings.cpu_request_to_request_percent,
        }
    }

    /// The amount by this rule; `basis` is what the percentage is taken of.
    ///
    /// Memory goes through whole percents made from a float, so that 29 acts as 28, and down to
    /// whole MiB, or MB for decimal formats. A limit too large for 64 bits wraps, as upstream's.
    fn amount(self, percent: i64, basis: &Quantity) -> Quantity {
        let ratio = float(percent) / 100.0;
        match self {
            Rule::MemoryRequestToLimit => {
                let percent = truncated(ratio * 100.0);
                let amount = basis.value().wrapping_mul(percent) / 100;
                let step = match basis.format() {
                    Format::BinarySi => 1 << 20,
                    Format::DecimalSi | Format::DecimalExponent => 1_000_000,
                };
                Quantity::new(amount - amount % step, basis.format())
            }
            Rule::LimitCpuToMemory => {
                let amount = float(basis.value()) * ratio * MILLICORES_PER_BYTE;
                Quantity::from_milli(truncated(amount), Format::DecimalSi)
            }
            Rule::CpuRequestToLimit | Rule::CpuRequestToRequest => {
                let amount = float(basis.milli_value()) * ratio;
                Quantity::from_milli(truncated(amount), basis.format())
            }
        }
    }
}

impl Override {
    /// Overrides each container; returns what was set.
    ///
    /// The caller checks [`Override::applies_to`] before.
    pub fn apply(&self, draft: &mut PodDraft, limit_ranges: &[LimitRangeView]) -> Vec<Overridden> {
        let cpu = Bounds::new(self, &ResourceName::CPU, limit_ranges);
        let memory = Bounds::new(self, &ResourceName::MEMORY, limit_ranges);
        let mut annotations = std::mem::take(&mut draft.annotations);
        let mut all = Vec::new();
        for (place, container) in draft.containers_mut() {
            let resources = &mut container.resources;
            let original = self.original_cpu_request(&place, resources, &mut annotations);
            for rule in Rule::IN_ORDER {
                let percent = rule.percent(&self.settings);
                let basis = rule.basis(resources, original.as_ref());
                let Some(basis) = basis.filter(|_| percent != 0) else {
                    continue;
                };
                let (resource, part) = rule.target();
                let is_cpu = resource == ResourceName::CPU;
                let bounds = if is_cpu { &cpu } else { &memory };
                let (to, bound) = bounds.clamp(rule.amount(percent, basis));
                all.push(Overridden {
                    place: place.clone(),
                    rule,
                    from: replace(resources, part, resource, to.clone()),
                    to,
                    bound,
                });
            }
        }
        draft.annotations = annotations;
        all
    }

    /// The cpu request before any override, recorded on the pod so that a second round finds it.
    fn original_cpu_request(
        &self,
        place: &Place,
        resources: &Requirements,
        annotations: &mut BTreeMap<String, String>,
    ) -> Option<Quantity> {
        if self.variant != Variant::Modern || self.settings.cpu_request_to_request_percent == 0 {
            return None;
        }
        let key = format!("{ORIGINAL_CPU_REQUEST_ANNOTATION}-{}", place.name);
        if !annotations.contains_key(&key) {
            let request = resources.requests.get(&ResourceName::CPU);
            let request = request.filter(|request| !request.is_zero())?;
            annotations.insert(key.clone(), request.to_string());
        }
        // The text may be the user's own; what is no quantity is passed over.
        let noted: Quantity = annotations.get(&key)?.parse().ok()?;
        Some(noted).filter(|request| !request.is_zero())
    }
}

/// Sets the value and gives back the one before.
fn replace(
    resources: &mut Requirements,
    part: Part,
    resource: ResourceName,
    quantity: Quantity,
) -> Option<Quantity> {
    let list = match part {
        Part::Request => &mut resources.requests,
        Part::Limit => &mut resources.limits,
    };
    let before = list.get(&resource).cloned();
    list.insert(resource, quantity);
    before
}
