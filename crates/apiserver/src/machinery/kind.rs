//! Which sort of object.

/// A kind and where it is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The API group; empty for core.
    pub group: &'static str,
    /// The version within the group.
    pub version: &'static str,
    /// The name: `Pod`.
    pub kind: &'static str,
    /// The name in paths: `pods`.
    pub resource: &'static str,
    /// Whether its objects live in namespaces.
    pub is_namespaced: bool,
}

impl Kind {
    /// As objects carry it: `apps/v1`, `v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// With its group, as messages name it: `Deployment.apps`, `Pod`.
    pub fn qualified_kind(&self) -> String {
        qualified(self.kind, self.group)
    }

    /// The resource with its group: `deployments.apps`, `pods`.
    pub fn qualified_resource(&self) -> String {
        qualified(self.resource, self.group)
    }
}

fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}
