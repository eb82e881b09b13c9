//! Asking a node, through the API server: what it uses, how it is set up, and what it decided.

use std::time::Duration;

use kube::Client;
use plimsoll_core::config::document::Node as Tree;
use plimsoll_core::config::{NodeConfig, Notation, read_document};
use plimsoll_core::eviction::record::Record;
use plimsoll_core::eviction::record::lines::LinesRecord;
use plimsoll_core::eviction::record::ranking::RankingRecord;
use plimsoll_core::eviction::summary::Summary;
use plimsoll_core::problem::Position;
use plimsoll_core::threshold::Signal;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use crate::cluster::reason;

/// How long a node may take to answer. One that is gone should not hold up the others.
const PATIENCE: Duration = Duration::from_secs(5);

/// A node's own interface.
#[derive(Clone)]
pub(crate) struct Kubelet {
    client: Client,
    node: String,
}

#[derive(Deserialize)]
struct Items<T> {
    items: Vec<T>,
}

#[derive(Deserialize)]
struct Configz {
    kubeletconfig: Value,
}

impl Kubelet {
    pub(crate) fn new(client: &Client, node: &str) -> Kubelet {
        Kubelet {
            client: client.clone(),
            node: node.to_owned(),
        }
    }

    /// What it uses, or why it does not say.
    pub(crate) async fn summary(&self) -> Result<Summary, String> {
        self.get("stats/summary").await
    }

    /// How it is set up, or why it does not say.
    pub(crate) async fn configuration(&self) -> Result<NodeConfig, String> {
        let shown: Configz = self.get("configz").await?;
        Ok(configuration(&shown.kubeletconfig))
    }

    /// How far its lines are; only our own agent says.
    pub(crate) async fn lines(&self) -> Result<LinesRecord, String> {
        self.get("plimsoll/lines").await
    }

    /// The order in which it would evict its pods for a signal; only our own agent says.
    pub(crate) async fn ranking(&self, signal: Signal) -> Result<RankingRecord, String> {
        self.get(&format!("plimsoll/ranking?signal={signal}")).await
    }

    /// Its latest decisions about evictions, oldest first; only our own agent says.
    pub(crate) async fn decisions(&self, query: &str) -> Result<Vec<Record>, String> {
        let page: Items<Record> = self.get(&format!("plimsoll/decisions?{query}")).await?;
        Ok(page.items)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, String> {
        let address = format!("/api/v1/nodes/{}/proxy/{path}", self.node);
        let request = http::Request::get(address).body(Vec::new());
        let request = request.map_err(|error| error.to_string())?;
        let answer = timeout(PATIENCE, self.client.request_text(request)).await;
        let answer = answer.map_err(|_| "no answer in time".to_owned())?;
        let text = answer.map_err(|error| reason(&error).trim().to_owned())?;
        serde_json::from_str(&text).map_err(|error| format!("not understood: {error}"))
    }
}

/// A configuration as a node shows it. What other releases have that is not known here does not
/// matter.
pub(crate) fn configuration(shown: &Value) -> NodeConfig {
    let tree = Tree::from_json(shown, Position { line: 1, column: 1 });
    let notation = Notation::KubeletConfiguration;
    read_document(&tree, notation, notation.default_profile()).config
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_configuration_is_read_though_it_does_not_say_what_it_is() {
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
