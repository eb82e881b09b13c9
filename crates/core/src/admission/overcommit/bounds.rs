//! How far LimitRanges hold the results of the override.

use crate::object::limit_range::{LimitItem, LimitRangeView, LimitType};
use crate::quantity::{Format, Quantity};
use crate::resources::{ResourceList, ResourceName};

use super::{Override, Variant};

/// Least cpu, one millicore, and least memory, one MiB, whatever the namespace sets.
const CPU_FLOOR: Quantity = Quantity::from_milli(1, Format::DecimalSi);
const MEMORY_FLOOR: Quantity = Quantity::new(1 << 20, Format::BinarySi);

/// Whether the minimum in LimitRanges holds results up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// No: results may fall below the minimum, and LimitRanger then refuses the pod.
    None,
    /// Yes: results are raised to the smallest Container `min` of the namespace.
    LimitRangeMin,
}

/// Which bound a result was moved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Raised to the least value.
    Floor,
    /// Lowered to the greatest value.
    Ceiling,
}

/// The least and greatest values of one resource.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// Each in turn raises the result; the later ones win.
    floors: Vec<Quantity>,
    ceiling: Option<Quantity>,
}

impl Bounds {
    /// The bounds for cpu or memory in a namespace with these LimitRanges.
    ///
    /// Of several LimitRanges the smallest `min` and the largest `max` count, so that a stricter
    /// one can still refuse the result. Items of type Pod do not count.
    pub(super) fn new(
        configured: &Override,
        name: &ResourceName,
        limit_ranges: &[LimitRangeView],
    ) -> Bounds {
        let absolute = if *name == ResourceName::CPU {
            CPU_FLOOR
        } else {
            MEMORY_FLOOR
        };
        let least = container_values(limit_ranges, |item| &item.min, name).reduce(|a, b| a.min(b));
        let least = least.filter(|_| configured.floor == Floor::LimitRangeMin);
        let least = least.cloned();
        if configured.variant != Variant::Modern {
            let floors = std::iter::once(absolute).chain(least).collect();
            return Bounds {
                floors,
                ceiling: None,
            };
        }
        // Here the namespace's minimum replaces the absolute one, even by less.
        let most = container_values(limit_ranges, |item| &item.max, name).reduce(|a, b| a.max(b));
        Bounds {
            floors: vec![least.unwrap_or(absolute)],
            ceiling: most.cloned(),
        }
    }

    /// The quantity within the bounds, and the bound it was moved to.
    pub(super) fn clamp(&self, mut quantity: Quantity) -> (Quantity, Option<Bound>) {
        let mut bound = None;
        for floor in &self.floors {
            if quantity < *floor {
                quantity = floor.clone();
                bound = Some(Bound::Floor);
            }
        }
        if let Some(ceiling) = &self.ceiling
            && quantity > *ceiling
        {
            quantity = ceiling.clone();
            bound = Some(Bound::Ceiling);
        }
        (quantity, bound)
    }
}

fn container_values<'a>(
    limit_ranges: &'a [LimitRangeView],
    list: fn(&LimitItem) -> &ResourceList,
    name: &ResourceName,
) -> impl Iterator<Item = &'a Quantity> {
    let items = limit_ranges.iter().flat_map(|range| &range.items);
    items
        .filter(|item| item.limit_type == LimitType::Container)
        .filter_map(move |item| list(item).get(name))
}
