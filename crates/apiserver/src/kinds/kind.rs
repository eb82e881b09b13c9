//! One row of the table.

use super::selectable::Selectable;
use super::strategy::{Cascade, Generation, Strategy};

/// The verbs of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// POST.
    Create,
    /// DELETE of one object.
    Delete,
    /// DELETE of a collection.
    DeleteCollection,
    /// GET of one object.
    Get,
    /// GET of a collection.
    List,
    /// PATCH.
    Patch,
    /// PUT.
    Update,
    /// GET of changes.
    Watch,
}

impl Verb {
    /// As discovery, RBAC and errors write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verb::Create => "create",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Patch => "patch",
            Verb::Update => "update",
            Verb::Watch => "watch",
        }
    }
}

/// Whether objects live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Cluster-scoped.
    Cluster,
    /// Names are unique within a namespace.
    Namespaced,
}

/// A subresource.
#[derive(Clone, Copy, Debug)]
pub struct Subresource {
    /// The last part of the path: `status`.
    pub name: &'static str,
    /// The kind of its requests and responses.
    pub kind: &'static str,
    /// The group and version of `kind` where they are not the parent's.
    pub group_version: Option<(&'static str, &'static str)>,
    /// The verbs.
    pub verbs: &'static [Verb],
}

impl Subresource {
    /// A view of the parent that is read and written like it: `status`, `resize`.
    pub(super) const fn view(name: &'static str, kind: &'static str) -> Subresource {
        Subresource {
            name,
            kind,
            group_version: None,
            verbs: READ_WRITE,
        }
    }

    /// The number of replicas, the same for all kinds that have one.
    pub(super) const fn scale() -> Subresource {
        Subresource::view("scale", "Scale").of("autoscaling", "v1")
    }

    /// An action: POSTed, never read.
    pub(super) const fn action(name: &'static str, kind: &'static str) -> Subresource {
        Subresource::view(name, kind).verbs(&[Verb::Create])
    }

    pub(super) const fn of(self, group: &'static str, version: &'static str) -> Subresource {
        Subresource {
            group_version: Some((group, version)),
            ..self
        }
    }

    pub(super) const fn verbs(self, verbs: &'static [Verb]) -> Subresource {
        Subresource { verbs, ..self }
    }
}

const READ_WRITE: &[Verb] = &[Verb::Get, Verb::Patch, Verb::Update];

/// The verbs of a kind that is stored.
const STORED: &[Verb] = &[
    Verb::Create,
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Update,
    Verb::Watch,
];

/// The name of a type of objects, whether it is served as a resource or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupVersionKind {
    /// The API group, empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
}

impl GroupVersionKind {
    /// As objects have it: `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        super::group_version(self.group, self.version)
    }
}

/// One kind: its names, verbs, field selectors and strategy.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The API group, empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind: `Deployment`.
    pub kind: &'static str,
    /// The resource in paths: `deployments`.
    pub plural: &'static str,
    /// The resource's name for people: `deployment`.
    pub singular: &'static str,
    /// Abbreviations that kubectl accepts.
    pub short_names: &'static [&'static str],
    /// Sets that the kind belongs to, such as `all`.
    pub categories: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// The verbs, in alphabetical order.
    pub verbs: &'static [Verb],
    /// Subresources, in alphabetical order.
    pub subresources: &'static [Subresource],
    /// The fields that can be selected on.
    pub selectable: Selectable,
    /// The strategy for writes.
    pub strategy: Strategy,
    /// The kind's prefix in the store's keys, as upstream has it in etcd. Kinds
    /// with the same prefix are encodings of the same objects. `None`: never stored.
    pub storage: Option<&'static str>,
    /// Why nothing acts on the objects, if so. A create returns a warning.
    pub inert: Option<&'static str>,
}

impl Kind {
    /// A stored namespaced kind, with upstream's most common strategy.
    pub(super) const fn namespaced(
        (group, version): (&'static str, &'static str),
        kind: &'static str,
        plural: &'static str,
        singular: &'static str,
    ) -> Kind {
        Kind {
            group,
            version,
            kind,
            plural,
            singular,
            short_names: &[],
            categories: &[],
            scope: Scope::Namespaced,
            verbs: STORED,
            subresources: &[],
            selectable: Selectable::METADATA,
            strategy: Strategy::COMMON,
            storage: Some(plural),
            inert: None,
        }
    }

    /// The same for a cluster-scoped kind.
    pub(super) const fn cluster(
        group_version: (&'static str, &'static str),
        kind: &'static str,
        plural: &'static str,
        singular: &'static str,
    ) -> Kind {
        Kind {
            scope: Scope::Cluster,
            ..Kind::namespaced(group_version, kind, plural, singular)
        }
    }

    pub(super) const fn short(self, short_names: &'static [&'static str]) -> Kind {
        Kind {
            short_names,
            ..self
        }
    }

    /// Part of `kubectl get all`.
    pub(super) const fn in_all(self) -> Kind {
        Kind {
            categories: &["all"],
            ..self
        }
    }

    pub(super) const fn with(self, subresources: &'static [Subresource]) -> Kind {
        Kind {
            subresources,
            ..self
        }
    }

    pub(super) const fn selectable(self, selectable: Selectable) -> Kind {
        Kind { selectable, ..self }
    }

    pub(super) const fn stored_as(self, prefix: &'static str) -> Kind {
        Kind {
            storage: Some(prefix),
            ..self
        }
    }

    /// Answered directly, never stored.
    pub(super) const fn not_stored(self, verbs: &'static [Verb]) -> Kind {
        Kind {
            storage: None,
            verbs,
            ..self
        }
    }

    pub(super) const fn verbs(self, verbs: &'static [Verb]) -> Kind {
        Kind { verbs, ..self }
    }

    /// Stored, but nothing acts on it.
    pub(super) const fn inert(self, why: &'static str) -> Kind {
        Kind {
            inert: Some(why),
            ..self
        }
    }

    pub(super) const fn generation(mut self, generation: Generation) -> Kind {
        self.strategy.generation = generation;
        self
    }

    pub(super) const fn put_creates(mut self) -> Kind {
        self.strategy.put_creates = true;
        self
    }

    pub(super) const fn put_needs_version(mut self) -> Kind {
        self.strategy.allows_unconditional_update = false;
        self
    }

    pub(super) const fn returns_deleted(mut self) -> Kind {
        self.strategy.returns_deleted_object = true;
        self
    }

    pub(super) const fn cascade(mut self, cascade: Cascade) -> Kind {
        self.strategy.default_cascade = cascade;
        self
    }

    /// As objects have it: `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        super::group_version(self.group, self.version)
    }

    /// The name of its objects' type.
    pub fn group_version_kind(&self) -> GroupVersionKind {
        GroupVersionKind {
            group: self.group,
            version: self.version,
            kind: self.kind,
        }
    }

    /// The kind of a list of these.
    pub fn list_kind(&self) -> String {
        format!("{}List", self.kind)
    }

    /// `deployments.apps`, as errors name a resource; without a dot for the core group.
    pub fn group_resource(&self) -> String {
        super::qualified(self.plural, self.group)
    }

    /// `Deployment.apps`, as errors name a kind; without a dot for the core group.
    pub fn qualified_kind(&self) -> String {
        super::qualified(self.kind, self.group)
    }

    /// Whether objects live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Whether the verb is served.
    pub fn allows(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }

    /// The subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// Whether `status` is written through its own path only: the object's own path keeps the
    /// stored status, the status path keeps the stored spec.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// The warning for a caller that creates one, if nothing acts on it.
    pub fn inert_warning(&self) -> Option<String> {
        let why = self.inert?;
        Some(format!(
            "{} is stored, but nothing acts on it: {why}",
            self.kind
        ))
    }

    /// The name of its schema in OpenAPI documents.
    pub fn definition(&self) -> String {
        definition(self.group, self.version, self.kind)
    }
}

/// `io.k8s.api.apps.v1.Deployment`: a group's Go package is named after the first part of its
/// name, and the metrics API lives in a repository of its own.
pub(crate) fn definition(group: &str, version: &str, kind: &str) -> String {
    match group.split('.').next().unwrap_or_default() {
        "" => format!("io.k8s.api.core.{version}.{kind}"),
        "metrics" => format!("io.k8s.metrics.pkg.apis.metrics.{version}.{kind}"),
        package => format!("io.k8s.api.{package}.{version}.{kind}"),
    }
}
