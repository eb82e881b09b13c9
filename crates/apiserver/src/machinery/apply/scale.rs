//! Managers of the `scale` subresource: the replicas of the object, as a field of another type.
//!
//! Matches v1.36 apimachinery/pkg/util/managedfields/scalehandler.go for kinds whose replicas are
//! `spec.replicas`, which all built-in ones are.

use serde_json::Value;

use super::managers::{Managers, Owned};
use super::path::PathElement;
use super::set::FieldSet;

const SCALE_VERSION: &str = "autoscaling/v1";

fn replicas() -> FieldSet {
    FieldSet::of_fields(&[&["spec", "replicas"]])
}

fn owns_replicas(owned: &Owned) -> bool {
    let path = ["spec", "replicas"].map(|name| PathElement::Field(name.to_owned()));
    owned.set.has(&path)
}

/// The entries of `parent` that own its replicas, as entries of its scale.
pub fn to_scale(parent: &[Value], api_version: &str) -> Result<Option<Value>, String> {
    let mut managers = Managers::decode(parent)?;
    managers
        .0
        .retain(|_, owned| owned.api_version == api_version && owns_replicas(owned));
    for owned in managers.0.values_mut() {
        owned.set = replicas();
        SCALE_VERSION.clone_into(&mut owned.api_version);
    }
    Ok(managers.encode())
}

/// The entries of `parent` after a write to its scale has left `scale` there.
pub fn to_parent(
    parent: &[Value],
    scale: &[Value],
    api_version: &str,
) -> Result<Option<Value>, String> {
    let parent = Managers::decode(parent)?;
    let mut scale = Managers::decode(scale)?;
    let mut out = Managers::default();
    for (id, mut owned) in parent.0.clone() {
        if owned.api_version != api_version {
            continue;
        }
        if owns_replicas(&owned) && scale.0.remove(&id).is_none() {
            owned.set = std::mem::take(&mut owned.set).difference(&replicas());
            if owned.set.is_empty() {
                continue;
            }
        }
        out.0.insert(id, owned);
    }
    for (id, owned) in scale.0 {
        if owns_replicas(&owned) {
            let time = parent.0.get(&id).and_then(|before| before.time.clone());
            out.0.insert(
                id,
                Owned {
                    set: replicas(),
                    api_version: api_version.to_owned(),
                    time,
                    ..owned
                },
            );
        }
    }
    Ok(out.encode())
}
