//! Duplicate owner references.

use serde_json::Value;

/// Where duplicate owners were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// In the request.
    InRequest,
    /// After admission.
    AfterAdmission,
}

/// Removes duplicate owner references, with a warning.
pub(super) fn remove_duplicates(object: &mut Value, found: Found, warnings: &mut Vec<String>) {
    let owners = object
        .get_mut("metadata")
        .and_then(|meta| meta.get_mut("ownerReferences"));
    let Some(Value::Array(owners)) = owners else {
        return;
    };
    let mut kept: Vec<Value> = Vec::with_capacity(owners.len());
    let mut duplicates = Vec::new();
    for owner in owners.drain(..) {
        if kept.contains(&owner) {
            let uid = owner.get("uid").and_then(Value::as_str);
            duplicates.push(uid.unwrap_or_default().to_owned());
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    if !duplicates.is_empty() {
        let when = match found {
            Found::InRequest => "",
            Found::AfterAdmission => " after mutating admission happens",
        };
        warnings.push(format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner \
             references in 1.20+, and may reject such requests as early as 1.24; please fix your \
             requests; duplicate UID(s) observed: {}",
            duplicates.join(", ")
        ));
    }
}
