//! What was read of a node, by whatever reads nodes.

use k8s_openapi::api::core::v1::{Node, Pod};
use plimsoll_core::config::document::Node as Tree;
use plimsoll_core::config::{NodeConfig, Notation, read_document};
use plimsoll_core::eviction::record::distances::LinesRecord;
use plimsoll_core::eviction::summary::{FsStats, Summary};
use plimsoll_core::object::pod::is_terminal;
use plimsoll_core::problem::Position;
use plimsoll_core::threshold::DiskLayout;
use serde_json::Value;

/// What was read of a node.
#[derive(Clone, Debug)]
pub struct Reading {
    pub node: Node,
    /// Pods bound to it.
    pub pods: Vec<Pod>,
    /// Its configuration, or why it is unknown.
    pub config: Result<NodeConfig, String>,
    /// Its usage, the latest sample last.
    pub samples: Vec<Summary>,
    /// Why there is no new sample.
    pub no_sample: Option<String>,
    /// The distances to its thresholds, if its agent serves them.
    pub lines: Option<LinesRecord>,
}

/// Whether the pod still holds its requests.
pub fn holds_resources(pod: &Pod) -> bool {
    !is_terminal(pod)
}

/// File systems of the same capacity and number of inodes are taken for one.
pub fn layout(summary: &Summary) -> DiskLayout {
    let size = |fs: &FsStats| (fs.capacity_bytes, fs.inodes);
    let node_fs = summary.node.fs.as_ref().map(size);
    let runtime = summary.node.runtime.as_ref();
    let image_fs = runtime.and_then(|runtime| runtime.image_fs.as_ref());
    let image_fs = image_fs.map(size).or(node_fs);
    let container_fs = runtime.and_then(|runtime| runtime.container_fs.as_ref());
    let container_fs = container_fs.map(size).or(image_fs);
    DiskLayout::from_dedicated(image_fs != node_fs, container_fs != image_fs)
}

/// Parses a configuration from configz. Ignores unknown fields of other releases.
pub fn configuration(shown: &Value) -> NodeConfig {
    let tree = Tree::from_json(shown, Position { line: 1, column: 1 });
    let notation = Notation::KubeletConfiguration;
    read_document(&tree, notation, notation.default_profile()).config
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parses_a_configuration_without_api_version_and_kind() {
        let shown = json!({
            "enableServer": true, "syncFrequency": "1m0s", "unheardOf": {"a": 1},
            "evictionHard": { "memory.available": "300Mi", "nodefs.available": "10%" },
            "systemReserved": { "memory": "1Gi" },
        });
        let config = configuration(&shown);
        assert_eq!(config.eviction_hard["memory.available"], "300Mi");
        assert_eq!(config.eviction_hard.len(), 2);
        assert_eq!(config.system_reserved.len(), 1);
    }
}
