//! Names of resources.

use std::borrow::Cow;
use std::fmt;

use super::Bytes;

/// The name of a resource: `cpu`, `memory`, `hugepages-2Mi`, `example.com/gpu`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceName(Cow<'static, str>);

impl ResourceName {
    /// CPU time, in cores.
    pub const CPU: ResourceName = ResourceName(Cow::Borrowed("cpu"));
    /// Memory, in bytes.
    pub const MEMORY: ResourceName = ResourceName(Cow::Borrowed("memory"));
    /// Local disk for writable layers, logs and emptyDir volumes, in bytes.
    pub const EPHEMERAL_STORAGE: ResourceName = ResourceName(Cow::Borrowed("ephemeral-storage"));
    /// Volume size, in bytes.
    pub const STORAGE: ResourceName = ResourceName(Cow::Borrowed("storage"));
    /// Number of pods.
    pub const PODS: ResourceName = ResourceName(Cow::Borrowed("pods"));
    /// Number of process ids; reservable, never in node.status.
    pub const PID: ResourceName = ResourceName(Cow::Borrowed("pid"));

    const HUGE_PAGES_PREFIX: &str = "hugepages-";
    /// Names with this in front of the slash, or no slash at all, belong to Kubernetes itself.
    const DEFAULT_NAMESPACE: &str = "kubernetes.io/";

    /// Takes any text; whether it is a legal name is for validation to say.
    pub fn new(name: impl Into<String>) -> ResourceName {
        ResourceName(Cow::Owned(name.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The page size part of `hugepages-<size>`.
    pub fn huge_page_size(&self) -> Option<&str> {
        self.0.strip_prefix(Self::HUGE_PAGES_PREFIX)
    }

    /// `hugepages-<size>` for pages of that size.
    pub fn huge_pages(page_size: Bytes) -> ResourceName {
        ResourceName::new(format!("{}{page_size}", Self::HUGE_PAGES_PREFIX))
    }

    /// The name with a prefix in front: `requests.` and `limits.` in quotas.
    pub fn prefixed(&self, prefix: &str) -> ResourceName {
        ResourceName::new(format!("{prefix}{}", self.0))
    }

    /// Whether it is Kubernetes' own: without a domain or below `kubernetes.io`.
    ///
    /// Looks for `kubernetes.io/` anywhere in the name, as upstream does, so that
    /// `notkubernetes.io/x` counts too. Matches v1.36 pkg/apis/core/helper/helpers.go.
    pub fn is_native(&self) -> bool {
        !self.0.contains('/') || self.0.contains(Self::DEFAULT_NAMESPACE)
    }

    /// Whether a limit may be above the request.
    pub fn allows_overcommit(&self) -> bool {
        self.is_native() && self.huge_page_size().is_none()
    }

    /// Whether amounts of it are bytes.
    pub fn is_in_bytes(&self) -> bool {
        let bytes = [
            ResourceName::MEMORY,
            ResourceName::EPHEMERAL_STORAGE,
            ResourceName::STORAGE,
        ];
        bytes.contains(self) || self.huge_page_size().is_some()
    }

    /// Whether a pod may state it for all its containers together.
    pub fn is_supported_at_pod_level(&self) -> bool {
        *self == ResourceName::CPU
            || *self == ResourceName::MEMORY
            || self.huge_page_size().is_some()
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The names that occur in every pod are not copied.
impl From<&str> for ResourceName {
    fn from(name: &str) -> Self {
        let known = [
            ResourceName::CPU,
            ResourceName::MEMORY,
            ResourceName::EPHEMERAL_STORAGE,
            ResourceName::PODS,
        ];
        let found = known.into_iter().find(|known| known.as_str() == name);
        found.unwrap_or_else(|| ResourceName::new(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_named_by_their_canonical_size() {
        let name = ResourceName::huge_pages(Bytes(2 << 20));
        assert_eq!(name.as_str(), "hugepages-2Mi");
        assert_eq!(name.huge_page_size(), Some("2Mi"));
    }
}
