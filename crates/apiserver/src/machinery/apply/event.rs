//! Managers of events, which are the same objects in two groups.
//!
//! Upstream compares objects in the version of each manager. The two encodings differ in the names
//! of some fields only, so that here the names of a manager's fields are translated instead.

use super::managers::Managers;
use super::path::PathElement;
use super::set::FieldSet;
use crate::machinery::event_encoding::{is_event_version, name_in};

/// Adds managers that wrote in the other encoding.
pub(super) fn adopt(managers: &mut Managers, api_version: &str) {
    for owned in managers.0.values_mut() {
        if owned.api_version != api_version && is_event_version(&owned.api_version) {
            owned.set = translated(std::mem::take(&mut owned.set), api_version);
            api_version.clone_into(&mut owned.api_version);
        }
    }
}

/// Restores the names of managers that update in the other encoding. Appliers have one entry,
/// whatever version they use, and keep the one that was written last.
pub(super) fn release(managers: &mut Managers) {
    for owned in managers.0.values_mut() {
        let version = owned.manager.api_version.clone();
        if owned.api_version != version && is_event_version(&version) {
            owned.set = translated(std::mem::take(&mut owned.set), &version);
            owned.api_version = version;
        }
    }
}

fn translated(set: FieldSet, api_version: &str) -> FieldSet {
    let rename = |element: PathElement| match element {
        PathElement::Field(name) => PathElement::Field(name_in(&name, api_version).to_owned()),
        other => other,
    };
    FieldSet {
        members: set.members.into_iter().map(rename).collect(),
        children: set
            .children
            .into_iter()
            .map(|(element, within)| (rename(element), within))
            .collect(),
    }
}
