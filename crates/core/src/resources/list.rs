//! Quantities by resource name.

use std::collections::BTreeMap;
use std::collections::btree_map;

use crate::quantity::Quantity;

use super::ResourceName;

/// Quantities by resource name, in name order. Sums keep upstream's formats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceList(BTreeMap<ResourceName, Quantity>);

impl ResourceList {
    /// An empty list.
    pub const fn new() -> ResourceList {
        ResourceList(BTreeMap::new())
    }

    /// The quantity of that name.
    pub fn get(&self, name: &ResourceName) -> Option<&Quantity> {
        self.0.get(name)
    }

    /// The quantity of that name, or zero.
    pub fn get_or_zero(&self, name: &ResourceName) -> Quantity {
        self.0.get(name).cloned().unwrap_or_default()
    }

    /// Whether the name is listed, even with zero.
    pub fn contains(&self, name: &ResourceName) -> bool {
        self.0.contains_key(name)
    }

    /// Lists the quantity under the name, replacing what was there.
    pub fn insert(&mut self, name: ResourceName, quantity: Quantity) {
        self.0.insert(name, quantity);
    }

    /// Takes the name off the list.
    pub fn remove(&mut self, name: &ResourceName) -> Option<Quantity> {
        self.0.remove(name)
    }

    /// True if nothing is listed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of names listed.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Names and quantities in name order.
    pub fn iter(&self) -> btree_map::Iter<'_, ResourceName, Quantity> {
        self.0.iter()
    }

    /// Names in order.
    pub fn names(&self) -> impl Iterator<Item = &ResourceName> {
        self.0.keys()
    }

    /// Adds each quantity of the other list to the one of the same name.
    pub fn add(&mut self, other: &ResourceList) {
        for (name, quantity) in &other.0 {
            match self.0.get_mut(name) {
                Some(sum) => sum.add(quantity),
                None => self.insert(name.clone(), quantity.clone()),
            }
        }
    }

    /// Lists what the other list has and this one does not.
    pub fn fill_from(&mut self, other: &ResourceList) {
        for (name, quantity) in &other.0 {
            if !self.contains(name) {
                self.insert(name.clone(), quantity.clone());
            }
        }
    }

    /// Rounds each quantity up to thousandths, the finest the API stores.
    ///
    /// Matches v1.36 pkg/apis/core/v1/defaults.go, `SetDefaults_ResourceList`.
    pub fn round_up_to_milli(&mut self) {
        for quantity in self.0.values_mut() {
            quantity.round_up(-3);
        }
    }

    /// The entries whose name passes.
    #[must_use]
    pub fn filtered(&self, is_kept: impl Fn(&ResourceName) -> bool) -> ResourceList {
        let kept = self.0.iter().filter(|(name, _)| is_kept(name));
        kept.map(|(name, quantity)| (name.clone(), quantity.clone()))
            .collect()
    }

    /// Raises each quantity to the one of the same name in the other list.
    pub fn raise_to(&mut self, other: &ResourceList) {
        for (name, quantity) in &other.0 {
            if self.0.get(name).is_none_or(|own| own < quantity) {
                self.insert(name.clone(), quantity.clone());
            }
        }
    }
}

impl FromIterator<(ResourceName, Quantity)> for ResourceList {
    fn from_iter<I: IntoIterator<Item = (ResourceName, Quantity)>>(items: I) -> Self {
        ResourceList(items.into_iter().collect())
    }
}

impl IntoIterator for ResourceList {
    type Item = (ResourceName, Quantity);
    type IntoIter = btree_map::IntoIter<ResourceName, Quantity>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a ResourceList {
    type Item = (&'a ResourceName, &'a Quantity);
    type IntoIter = btree_map::Iter<'a, ResourceName, Quantity>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
