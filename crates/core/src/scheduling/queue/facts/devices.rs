//! Objects about devices.

/// A claim for devices.
#[derive(Clone, Debug, Default)]
pub struct ResourceClaimFacts {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Whether devices are allocated to it.
    pub is_allocated: bool,
    /// The whole status, to see whether anything in it changed.
    pub status: serde_json::Value,
}

/// A class of devices.
#[derive(Clone, Debug, Default)]
pub struct DeviceClassFacts {
    /// Its name.
    pub name: String,
    /// The extended resource under which pods may request its devices.
    pub extended_resource_name: Option<String>,
}
