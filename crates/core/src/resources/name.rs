//! Names of resources.

use std::borrow::Cow;
use std::fmt;

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

impl From<&str> for ResourceName {
    fn from(name: &str) -> Self {
        ResourceName::new(name)
    }
}
