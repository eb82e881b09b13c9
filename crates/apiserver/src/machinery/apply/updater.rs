//! The rules of ownership: how a write changes the managers of fields.
//!
//! Matches v1.36 vendor/sigs.k8s.io/structured-merge-diff/v6/merge/update.go. Each kind is served
//! in one version; entries of other versions are dropped, as upstream drops those it does not
//! serve.

use serde_json::Value;

use super::atom::Atom;
use super::conflict::Conflict;
use super::managers::{Managers, Owned};
use super::path::is_equal;
use super::reset::ResetFields;
use super::set::FieldSet;
use super::typed::{self, Comparison};

/// The endpoint that is written to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoint<'a> {
    pub(super) atom: Atom,
    pub(super) api_version: &'a str,
    pub(super) reset: &'a ResetFields,
}

/// Whether conflicts are forced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Force {
    Yes,
    No,
}

impl Endpoint<'_> {
    /// An update from `live` to `new` by the manager of `writer`, which then owns the fields it
    /// changes. An entry without fields is removed.
    pub(super) fn update(&self, live: &Value, new: &Value, managers: &mut Managers, writer: Owned) {
        self.reconcile(managers);
        let id = writer.manager.identifier();
        let compared = self
            .transfer(live, new, managers, &id, Force::Yes)
            .unwrap_or_default();
        let before = managers
            .0
            .remove(&id)
            .map(|owned| owned.set)
            .unwrap_or_default();
        let set = before
            .difference(&compared.removed)
            .union(compared.modified)
            .union(compared.added);
        let set = self.reset.filter(set);
        if !set.is_empty() {
            managers.insert(Owned { set, ..writer });
        }
    }

    /// The fields that an update from `live` to `new` changes or adds.
    pub(super) fn changed(&self, live: &Value, new: &Value) -> FieldSet {
        let compared = typed::compare(self.atom, live, new);
        self.reset.filter(compared.modified.union(compared.added))
    }

    /// Applies `config` to `live` as `writer`. `Ok(None)` means that the object stays as it is.
    pub(super) fn apply(
        &self,
        live: &Value,
        config: &Value,
        managers: &mut Managers,
        writer: Owned,
        force: Force,
    ) -> Result<Option<Value>, Vec<Conflict>> {
        self.reconcile(managers);
        let merged = typed::merge(self.atom, Some(live), Some(config)).unwrap_or_default();
        let set = self.reset.filter(typed::fields_of(self.atom, config));
        let id = writer.manager.identifier();
        let last = managers.0.get(&id).map(|owned| owned.set.clone());
        managers.insert(Owned { set, ..writer });
        let new = match last {
            Some(last) if !last.is_empty() => self.prune(&merged, managers, &last),
            _ => merged,
        };
        self.transfer(live, &new, managers, &id, force)?;
        Ok((!is_equal(live, &new)).then_some(new))
    }

    /// Removes from all other managers the fields that the writer changes or removes.
    fn transfer(
        &self,
        live: &Value,
        new: &Value,
        managers: &mut Managers,
        writer: &str,
        force: Force,
    ) -> Result<Comparison, Vec<Conflict>> {
        let mut compared = typed::compare(self.atom, live, new);
        for set in [
            &mut compared.removed,
            &mut compared.modified,
            &mut compared.added,
        ] {
            *set = self.reset.filter(std::mem::take(set));
        }
        if managers.0.keys().all(|id| id == writer) {
            return Ok(compared);
        }
        let changed = compared.modified.clone().union(compared.added.clone());
        if force == Force::No {
            let conflicts = conflicts_with(managers, writer, &changed);
            if !conflicts.is_empty() {
                return Err(conflicts);
            }
        }
        for (id, owned) in &mut managers.0 {
            if id != writer {
                let set = std::mem::take(&mut owned.set);
                owned.set = set.difference(&changed).difference(&compared.removed);
            }
        }
        managers.0.retain(|_, owned| !owned.set.is_empty());
        Ok(compared)
    }

    /// Removes fields that the manager applied last time, does not apply now, and no other manager
    /// owns.
    fn prune(&self, merged: &Value, managers: &Managers, last: &FieldSet) -> Value {
        let named = |set: &FieldSet| set.with_named_fields(self.atom);
        let pruned = typed::remove(self.atom, merged, &named(last));

        // Fields that another manager owns (the new configuration included) are put back.
        let owned = managers.0.values().fold(FieldSet::default(), |all, owned| {
            all.union(owned.set.clone())
        });
        let merged_set = named(&typed::fields_of(self.atom, merged));
        let pruned_set = named(&typed::fields_of(self.atom, &pruned));
        let gone = merged_set
            .clone()
            .difference(&pruned_set.union(named(&owned)));
        let pruned = typed::remove(self.atom, merged, &gone);

        // Fields that the manager did not own before are put back too: they were inside of a
        // removed one.
        let pruned_set = named(&typed::fields_of(self.atom, &pruned));
        let gone = merged_set
            .difference(&pruned_set)
            .intersection(&named(last));
        typed::remove(self.atom, merged, &gone)
    }

    /// Adapts the sets to the table, and drops those of versions that are not served.
    fn reconcile(&self, managers: &mut Managers) {
        managers
            .0
            .retain(|_, owned| owned.api_version == self.api_version);
        for owned in managers.0.values_mut() {
            owned.set = typed::reconcile(self.atom, std::mem::take(&mut owned.set));
        }
    }
}

fn conflicts_with(managers: &Managers, writer: &str, changed: &FieldSet) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    for (id, owned) in &managers.0 {
        if id == writer {
            continue;
        }
        for path in owned.set.intersection(changed).paths() {
            conflicts.push(Conflict {
                manager: owned.manager.clone(),
                path,
            });
        }
    }
    conflicts
}
