//! The maximum number of managers per object.
//!
//! Matches v1.36 apimachinery/pkg/util/managedfields/internal/capmanagers.go.

use std::collections::BTreeMap;

use super::managers::{Manager, Managers, Operation, Owned, seconds};

/// If there are more managers that update, they are merged into one.
const MOST_UPDATERS: usize = 10;
const OLD_UPDATERS: &str = "ancient-changes";

/// Merges the oldest updaters of each version into one until no more than the allowed number is
/// left.
pub(super) fn cap_updaters(mut managers: Managers) -> Managers {
    let mut updaters: Vec<(i64, String)> = managers
        .0
        .iter()
        .filter(|(_, owned)| owned.manager.operation == Operation::Update)
        .map(|(id, owned)| (seconds(owned.time.as_deref()), id.clone()))
        .collect();
    updaters.sort();
    let mut count = updaters.len();
    let mut first_of_version: BTreeMap<String, String> = BTreeMap::new();
    for (_, id) in updaters {
        if count <= MOST_UPDATERS {
            break;
        }
        let Some(owned) = managers.0.get(&id).cloned() else {
            continue;
        };
        let Some(first) = first_of_version.get(&owned.api_version) else {
            first_of_version.insert(owned.api_version.clone(), id);
            continue;
        };
        let bucket = Manager {
            name: OLD_UPDATERS.to_owned(),
            operation: Operation::Update,
            api_version: owned.api_version.clone(),
            subresource: String::new(),
        };
        let bucket_id = bucket.identifier();
        // The first merge turns the oldest entry itself into the bucket.
        let before = match managers.0.remove(&bucket_id) {
            Some(before) => before.set,
            None => managers
                .0
                .remove(first)
                .map(|first| first.set)
                .unwrap_or_default(),
        };
        managers.0.remove(&id);
        managers.insert(Owned {
            manager: bucket,
            set: owned.set.clone().union(before),
            ..owned
        });
        count -= 1;
    }
    managers
}
