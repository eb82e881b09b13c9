//! `authentication.k8s.io/v1`: reviews, which are not stored.

use super::Group;
use super::kind::{Kind, Verb};

const V1: (&str, &str) = ("authentication.k8s.io", "v1");

pub(super) const GROUP: Group = Group {
    name: V1.0,
    version: V1.1,
    kinds: &[
        Kind::cluster(
            V1,
            "SelfSubjectReview",
            "selfsubjectreviews",
            "selfsubjectreview",
        )
        .not_stored(&[Verb::Create]),
        Kind::cluster(V1, "TokenReview", "tokenreviews", "tokenreview").not_stored(&[Verb::Create]),
    ],
};
