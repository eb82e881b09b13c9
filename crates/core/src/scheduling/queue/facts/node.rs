//! A node.

use std::ops::Deref;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;

use crate::object::node::NodeView;
use crate::problem::Problem;

/// The view of a node, and what only hints ask about. It can be used as the view.
#[derive(Clone, Debug, Default)]
pub struct NodeFacts {
    /// The fields that all decisions read.
    pub view: Arc<NodeView>,
    /// The features it declares, in order.
    pub declared_features: Vec<String>,
}

impl NodeFacts {
    /// Reads a node; all its malformed parts are reported.
    pub fn from_api(node: &Node) -> Result<NodeFacts, Vec<Problem>> {
        let status = node.status.as_ref();
        Ok(NodeFacts {
            declared_features: status
                .and_then(|status| status.declared_features.clone())
                .unwrap_or_default(),
            ..NodeFacts::new(Arc::new(NodeView::from_api(node)?))
        })
    }

    /// A node that declares no features.
    pub fn new(view: Arc<NodeView>) -> NodeFacts {
        NodeFacts {
            view,
            declared_features: Vec::new(),
        }
    }
}

impl Deref for NodeFacts {
    type Target = NodeView;

    fn deref(&self) -> &NodeView {
        &self.view
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn declared_features_are_read_beside_the_view() {
        let node = json!({"metadata": {"name": "n"}, "status": {"declaredFeatures": ["x"]}});
        let node = NodeFacts::from_api(&serde_json::from_value(node).unwrap()).unwrap();
        assert_eq!(node.name.as_str(), "n");
        assert_eq!(node.declared_features, ["x"]);
    }
}
