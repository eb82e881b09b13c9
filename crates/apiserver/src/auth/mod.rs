//! Authentication and authorization.
//!
//! The HTTP layer calls in here; nothing in here knows HTTP beyond the text of a header. Time is
//! an argument everywhere. The only files touched are those of [`authority`] and the signing key
//! of [`token`], and no other user of the machine can read either of them.
//!
//! Reading order:
//!
//! 1. [`identity`] – users: from certificates, tokens, or anonymous; impersonation headers.
//! 2. [`authority`] – the cluster's own certificate authority and what it signs.
//! 3. [`token`] – service account tokens, join tokens, and the documents that describe the keys.
//! 4. [`attributes`] – the target of a request, and the text of the 403.
//! 5. [`rbac`] – roles and bindings, indexed by subject; the default ones; escalation checks.
//! 6. [`node`] – what a kubelet may read and write.
//! 7. [`authorize`] – the three authorizers in a row, the access reviews, impersonation.
//! 8. [`signing_request`] and [`signer`] – parsing, approving and signing certificate requests.

use serde_json::Value;

use crate::pointer::at;

pub mod attributes;
pub mod authority;
pub mod authorize;
pub mod identity;
pub mod node;
pub mod rbac;
pub mod signer;
pub mod signing_request;
pub mod token;

/// Lookup of objects of the cluster.
///
/// Tokens are checked against the objects they are bound to, and requests of nodes against the
/// pods they refer to. Implementations use their cache of the latest state.
pub trait Objects {
    /// The object of that plural `resource`, if it exists. `namespace` is empty for cluster-scoped
    /// objects.
    fn object(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Value>;
}

/// The text at `pointer`, or an empty one.
fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    at(object, pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The list at `pointer`, or an empty one.
fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    let items = at(object, pointer).and_then(Value::as_array);
    items.map_or(&[], Vec::as_slice)
}

/// A list of texts as Go's `%q` prints it.
fn quoted_list(texts: &[String]) -> String {
    let quoted: Vec<String> = texts
        .iter()
        .map(|text| plimsoll_core::problem::quoted(text))
        .collect();
    format!("[{}]", quoted.join(" "))
}
