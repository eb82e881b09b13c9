//! Fields that an endpoint does not write, so that managers do not own them by writing there.
//!
//! Matches `GetResetFields` of v1.36 pkg/registry/*/strategy.go.

use super::path::PathElement;
use super::set::FieldSet;

/// The fields that an endpoint leaves alone.
#[derive(Clone, Debug)]
pub enum ResetFields {
    /// These fields and everything within.
    Exclude(FieldSet),
    /// All except those below one of these prefixes; `None` is any element.
    IncludeOnly(Vec<Vec<Option<&'static str>>>),
}

impl ResetFields {
    /// The reset fields of a kind's endpoint; `subresource` is empty for the object itself.
    pub fn of(api_version: &str, kind: &str, subresource: &str) -> ResetFields {
        let whole: &[&[&str]] = match (kind, subresource) {
            ("CertificateSigningRequest", "") => &[&["spec"], &["status"]],
            ("CertificateSigningRequest", "status") => &[&["spec"], &["status", "conditions"]],
            ("CertificateSigningRequest", "approval") => &[&["spec"], &["status", "certificate"]],
            ("Pod", "status") => &[
                &["spec"],
                &["metadata", "deletionTimestamp"],
                &["metadata", "ownerReferences"],
            ],
            ("Deployment", "status") => &[&["spec"], &["metadata", "labels"]],
            ("ResourceClaim" | "VolumeAttachment" | "ServiceCIDR", "status") => {
                &[&["metadata"], &["spec"]]
            }
            ("Pod", "resize") => {
                return include_in_containers(
                    &["containers", "initContainers"],
                    &["resources", "resizePolicy"],
                );
            }
            ("Pod", "ephemeralcontainers") => {
                return ResetFields::IncludeOnly(vec![vec![
                    Some("spec"),
                    Some("ephemeralContainers"),
                ]]);
            }
            (_, "status") => &[&["spec"]],
            _ if has_status(api_version, kind) => &[&["status"]],
            _ => &[],
        };
        ResetFields::Exclude(FieldSet::of_fields(whole))
    }

    pub(super) fn filter(&self, set: FieldSet) -> FieldSet {
        match self {
            ResetFields::Exclude(fields) => set.recursive_difference(fields),
            ResetFields::IncludeOnly(patterns) => {
                let patterns: Vec<&[Option<&str>]> = patterns.iter().map(Vec::as_slice).collect();
                include(&set, &patterns)
            }
        }
    }
}

/// Whether the kind has a status that its own endpoint does not write.
fn has_status(api_version: &str, kind: &str) -> bool {
    let schema = crate::machinery::schema::schema();
    schema
        .kind(api_version, kind)
        .is_some_and(|id| schema.get(id).field("status").is_some())
}

fn include_in_containers(lists: &[&'static str], fields: &[&'static str]) -> ResetFields {
    let mut patterns = Vec::new();
    for list in lists {
        for field in fields {
            patterns.push(vec![Some("spec"), Some(*list), None, Some(*field)]);
        }
    }
    ResetFields::IncludeOnly(patterns)
}

fn include(set: &FieldSet, patterns: &[&[Option<&str>]]) -> FieldSet {
    if patterns.iter().any(|pattern| pattern.is_empty()) {
        return set.clone();
    }
    let matching = |element: &PathElement| -> Vec<&[Option<&str>]> {
        patterns
            .iter()
            .filter_map(|pattern| {
                let (first, rest) = pattern.split_first()?;
                let is_match = match (first, element) {
                    (None, _) => true,
                    (Some(name), PathElement::Field(field)) => name == field,
                    _ => false,
                };
                is_match.then_some(rest)
            })
            .collect()
    };
    FieldSet {
        members: set
            .members
            .iter()
            .filter(|element| !matching(element).is_empty())
            .cloned()
            .collect(),
        children: set
            .children
            .iter()
            .filter_map(|(element, within)| {
                let rest = matching(element);
                let kept = if rest.is_empty() {
                    return None;
                } else {
                    include(within, &rest)
                };
                (!kept.is_empty()).then(|| (element.clone(), kept))
            })
            .collect(),
    }
}
