//! The schemas of the served kinds, from k8s-openapi.
//!
//! `crates/apiserver/schemas` writes them to a file, which is part of the program. They are read
//! on first use, and stay in memory: about three megabytes.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use serde_json::Value;

static COMPRESSED: &[u8] = include_bytes!("definitions.json.gz");

/// All schemas by their names, such as `io.k8s.api.core.v1.Pod`. References between them are
/// `{"$ref": "#/components/schemas/<name>"}`.
pub(crate) fn definitions() -> &'static BTreeMap<String, Value> {
    static DEFINITIONS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
        serde_json::from_reader(GzDecoder::new(COMPRESSED)).expect("a test reads the embedded file")
    });
    &DEFINITIONS
}

/// The description of a field. `ty` is the name of a schema without `io.k8s.`.
pub(crate) fn description(ty: &str, field: &str) -> &'static str {
    let schema = definitions().get(&format!("io.k8s.{ty}"));
    let description = schema.and_then(|schema| schema["properties"][field]["description"].as_str());
    description.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_the_groups_has_a_schema() {
        for kind in super::super::all().filter(|kind| kind.group != "metrics.k8s.io") {
            assert!(
                definitions().contains_key(&kind.definition()),
                "{}",
                kind.kind
            );
        }
    }

    #[test]
    fn fields_have_their_descriptions() {
        let text = description("api.core.v1.NodeSystemInfo", "kubeletVersion");
        assert_eq!(text, "Kubelet Version reported by the node.");
        assert_eq!(description("api.core.v1.Nothing", "x"), "");
    }
}
