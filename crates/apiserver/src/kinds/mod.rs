//! The served kinds: one row per kind, independent of requests and the store.
//!
//! A row says how a kind is named, which verbs and subresources it has, which of its fields can be
//! selected on, and by which of upstream's strategies it is written. Discovery, OpenAPI, routing
//! and the object machinery all read the same rows; a kind is added by adding its row.
//!
//! Reading order: [`Kind`] (a row), [`Strategy`] (how it is written), [`Selectable`] (field
//! selectors), then one file of rows per API group.

mod apps;
mod authentication;
mod authorization;
mod batch;
mod certificates;
mod coordination;
mod core;
mod events;
mod kind;
mod metrics;
mod node;
mod policy;
mod rbac;
mod resource;
mod scheduling;
pub(crate) mod schemas;
mod selectable;
mod storage;
mod strategy;

pub(crate) use kind::definition;
pub use kind::{GroupVersionKind, Kind, Scope, Subresource, Verb};
pub use selectable::{Selectable, UnsupportedField};
pub use strategy::{Cascade, Generation, Strategy};

/// An API group in the one version that is served.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// The name, empty for the core group.
    pub name: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kinds, sorted by their plural names as discovery lists them.
    pub kinds: &'static [Kind],
}

impl Group {
    /// As `apiVersion` has it: `v1`, `apps/v1`.
    pub fn group_version(&self) -> String {
        group_version(self.name, self.version)
    }

    /// Where its resources are: `/api/v1`, `/apis/apps/v1`.
    pub fn path(&self) -> String {
        if self.name.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.name, self.version)
        }
    }
}

/// All groups, the core group first, the rest in the order of upstream's discovery.
pub const GROUPS: &[Group] = &[
    core::GROUP,
    apps::GROUP,
    events::GROUP,
    authentication::GROUP,
    authorization::GROUP,
    batch::GROUP,
    certificates::GROUP,
    policy::GROUP,
    rbac::GROUP,
    storage::GROUP,
    scheduling::GROUP,
    coordination::GROUP,
    node::GROUP,
    resource::GROUP,
    metrics::GROUP,
];

/// Every kind.
pub fn all() -> impl Iterator<Item = &'static Kind> {
    GROUPS.iter().flat_map(|group| group.kinds)
}

/// The group of that name and version.
pub fn group(name: &str, version: &str) -> Option<&'static Group> {
    GROUPS
        .iter()
        .find(|group| group.name == name && group.version == version)
}

/// The kind behind a path such as `/apis/apps/v1/deployments`.
pub fn by_resource(name: &str, version: &str, plural: &str) -> Option<&'static Kind> {
    let kinds = group(name, version)?.kinds;
    kinds.iter().find(|kind| kind.plural == plural)
}

/// The kind of an object's `apiVersion` and `kind`.
pub fn by_kind(api_version: &str, kind: &str) -> Option<&'static Kind> {
    all().find(|row| row.kind == kind && row.api_version() == api_version)
}

/// Joins a group and a version as `apiVersion` does.
pub(crate) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// A resource or kind with its group, as errors name it: `deployments.apps`, `pods`.
pub(crate) fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}

#[cfg(test)]
mod tests;
