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

    /// Whether it is in the domain of someone else than Kubernetes: `example.com/gpu`.
    ///
    /// Matches v1.36 IsExtendedResourceName in pkg/apis/core/v1/helper/helpers.go.
    pub fn is_extended(&self) -> bool {
        let is_native = !self.0.contains('/') || self.0.contains("kubernetes.io/");
        !is_native && !self.0.starts_with("requests.") && is_qualified(&self.0)
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

/// Whether `requests.<name>` is a qualified name, which is what quota would call it.
fn is_qualified(name: &str) -> bool {
    const MAX_DOMAIN: usize = 253 - "requests.".len();
    let Some((domain, local)) = name.split_once('/') else {
        return false;
    };
    let is_bounded_by_alphanumerics = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    let is_label = |label: &str| {
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        is_bounded_by_alphanumerics(label) && label.chars().all(is_allowed)
    };
    let is_local = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    domain.len() <= MAX_DOMAIN
        && domain.split('.').all(is_label)
        && local.len() <= 63
        && is_bounded_by_alphanumerics(local)
        && local.chars().all(is_local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_names_have_a_foreign_domain_and_are_qualified() {
        let is_extended = |name: &str| ResourceName::new(name).is_extended();
        assert!(is_extended("example.com/gpu"));
        for name in [
            "cpu",
            "kubernetes.io/x",
            "sub.kubernetes.io/x",
            "requests.example.com/x",
            "Example.com/x",
            "example..com/x",
            "example.com/",
            "example.com/a/b",
            "example.com/-a",
        ] {
            assert!(!is_extended(name), "{name}");
        }
    }

    #[test]
    fn huge_pages_are_named_by_their_canonical_size() {
        let name = ResourceName::huge_pages(Bytes(2 << 20));
        assert_eq!(name.as_str(), "hugepages-2Mi");
        assert_eq!(name.huge_page_size(), Some("2Mi"));
    }
}
