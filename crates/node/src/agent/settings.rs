//! Fields of the configuration that no decision is computed from, and that the agent acts on itself.

use plimsoll_core::config::NodeConfig;
use serde_json::Value;

/// Whether a field is on; what holds where it is not set.
pub(super) fn is_on(config: &NodeConfig, path: &str, default: bool) -> bool {
    let set = config.carried.get(path);
    set.and_then(|setting| setting.value.as_bool())
        .unwrap_or(default)
}

/// A field that is a list of texts; empty where it is not set.
pub(super) fn texts(config: &NodeConfig, path: &str) -> Vec<String> {
    let set = config.carried.get(path);
    let list = set.and_then(|setting| setting.value.as_array());
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}
