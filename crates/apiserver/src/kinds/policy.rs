//! `policy/v1`.

use super::Group;
use super::kind::{Kind, Subresource};
use super::strategy::Generation;

const V1: (&str, &str) = ("policy", "v1");

pub(super) const GROUP: Group = Group {
    name: V1.0,
    version: V1.1,
    kinds: &[Kind::namespaced(
        V1,
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        "poddisruptionbudget",
    )
    .short(&["pdb"])
    .with(&[Subresource::view("status", "PodDisruptionBudget")])
    .generation(Generation::SPEC)
    .put_needs_version()],
};
