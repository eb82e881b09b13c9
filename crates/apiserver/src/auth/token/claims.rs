//! The claims of a service account token.
//!
//! Matches v1.36 pkg/serviceaccount/claims.go. Fields are in the order in which upstream's
//! encoder prints them.

use serde::{Deserialize, Deserializer, Serialize};

/// The claims of a token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claims {
    /// The audiences.
    #[serde(default, deserialize_with = "one_or_more")]
    pub(super) aud: Vec<String>,
    /// When it expires, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) exp: Option<i64>,
    /// When it was issued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) iat: Option<i64>,
    /// The issuer.
    #[serde(default)]
    pub(super) iss: String,
    /// The id of the token.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) jti: String,
    /// The account and what the token is bound to.
    #[serde(default, rename = "kubernetes.io")]
    pub(super) kubernetes: Kubernetes,
    /// From when it is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) nbf: Option<i64>,
    /// The user name.
    #[serde(default)]
    pub(super) sub: String,
}

/// The account and what the token is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kubernetes {
    #[serde(default)]
    pub(super) namespace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pod: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<Reference>,
    #[serde(default)]
    pub(super) serviceaccount: Reference,
    /// When the client should have requested a new token, although this one is still valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) warnafter: Option<i64>,
}

/// One object, identified by its uid: another object of the same name has another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reference {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) uid: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

/// RFC 7519 allows a single audience without a list.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(match OneOrMore::deserialize(deserializer)? {
        OneOrMore::One(one) => vec![one],
        OneOrMore::More(more) => more,
    })
}
