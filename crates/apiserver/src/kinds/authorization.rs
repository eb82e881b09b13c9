//! `authorization.k8s.io/v1`: reviews, which are not stored.

use super::Group;
use super::kind::{Kind, Verb};

const V1: (&str, &str) = ("authorization.k8s.io", "v1");

pub(super) const GROUP: Group = Group {
    name: V1.0,
    version: V1.1,
    kinds: &[
        Kind::namespaced(
            V1,
            "LocalSubjectAccessReview",
            "localsubjectaccessreviews",
            "localsubjectaccessreview",
        )
        .not_stored(&[Verb::Create]),
        Kind::cluster(
            V1,
            "SelfSubjectAccessReview",
            "selfsubjectaccessreviews",
            "selfsubjectaccessreview",
        )
        .not_stored(&[Verb::Create]),
        Kind::cluster(
            V1,
            "SelfSubjectRulesReview",
            "selfsubjectrulesreviews",
            "selfsubjectrulesreview",
        )
        .not_stored(&[Verb::Create]),
        Kind::cluster(
            V1,
            "SubjectAccessReview",
            "subjectaccessreviews",
            "subjectaccessreview",
        )
        .not_stored(&[Verb::Create]),
    ],
};
