//! The create path of the API server, for manifests that no server gets.

use std::sync::Arc;

use plimsoll_apiserver::machinery::admission::Cluster;
use plimsoll_apiserver::machinery::manifest::{self, Recognized, recognize};
use plimsoll_core::config::document::Node;
use plimsoll_core::problem::Problem;
use plimsoll_report::check::server::{Created, Facts, Manifest, Read, Server};
use serde_json::Value;

/// The server of this program.
#[derive(Debug)]
pub(super) struct ApiServer;

#[derive(Debug)]
struct ServedManifest(manifest::Manifest);

impl Server for ApiServer {
    fn read(&self, tree: &Node) -> Read {
        match recognize(tree) {
            Recognized::Served(kind) => {
                Read::Object(Box::new(ServedManifest(manifest::read(tree, kind))))
            }
            Recognized::Elsewhere(reason) => Read::Elsewhere(reason),
            Recognized::Nothing(problems) => Read::Nothing(problems),
        }
    }
}

impl Manifest for ServedManifest {
    fn kind(&self) -> &'static str {
        self.0.kind.kind
    }

    fn is_namespaced(&self) -> bool {
        self.0.kind.is_namespaced()
    }

    fn object(&self) -> &Value {
        &self.0.object
    }

    fn problems(&self) -> &[Problem] {
        &self.0.problems
    }

    fn create(&self, facts: &Facts<'_>) -> Created {
        let created = manifest::create(
            &self.0,
            &manifest::Facts {
                priority_classes: facts.priority_classes.to_vec(),
                runtime_classes: facts.runtime_classes.to_vec(),
                resources: Cluster {
                    limit_ranges: Arc::new(facts.limit_ranges.to_vec()),
                    overcommit: facts.overcommit.cloned().map(Arc::new),
                    ..Cluster::default()
                },
            },
        );
        Created {
            problems: created.problems,
            warnings: created.warnings,
        }
    }
}
