//! Requests to a kubelet through the API server: usage, configuration and eviction decisions.

use std::time::Duration;

use kube::Client;
use plimsoll_core::config::NodeConfig;
use plimsoll_core::eviction::record::Record;
use plimsoll_core::eviction::record::distances::LinesRecord;
use plimsoll_core::eviction::record::ranking::RankingRecord;
use plimsoll_core::eviction::summary::Summary;
use plimsoll_core::threshold::Signal;
use plimsoll_report::reading::configuration;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use crate::cluster::reason;

/// Timeout of a request. A node that does not answer must not delay the others for long.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The kubelet API of a node.
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

    /// The resource usage, or the error.
    pub(crate) async fn summary(&self) -> Result<Summary, String> {
        self.get("stats/summary").await
    }

    /// The configuration, or the error.
    pub(crate) async fn configuration(&self) -> Result<NodeConfig, String> {
        let shown: Configz = self.get("configz").await?;
        Ok(configuration(&shown.kubeletconfig))
    }

    /// The distances to eviction thresholds; only Plimsoll's agent serves them.
    pub(crate) async fn lines(&self) -> Result<LinesRecord, String> {
        self.get("plimsoll/lines").await
    }

    /// The order in which it would evict its pods for a signal; only Plimsoll's agent serves it.
    pub(crate) async fn ranking(&self, signal: Signal) -> Result<RankingRecord, String> {
        self.get(&format!("plimsoll/ranking?signal={signal}")).await
    }

    /// The latest eviction decisions, oldest first; only Plimsoll's agent serves them.
    pub(crate) async fn decisions(&self, query: &str) -> Result<Vec<Record>, String> {
        let page: Items<Record> = self.get(&format!("plimsoll/decisions?{query}")).await?;
        Ok(page.items)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, String> {
        let address = format!("/api/v1/nodes/{}/proxy/{path}", self.node);
        let request = http::Request::get(address).body(Vec::new());
        let request = request.map_err(|error| error.to_string())?;
        let answer = timeout(REQUEST_TIMEOUT, self.client.request_text(request)).await;
        let answer = answer.map_err(|_| "no answer in time".to_owned())?;
        let text = answer.map_err(|error| reason(&error).trim().to_owned())?;
        serde_json::from_str(&text).map_err(|error| format!("cannot parse the response: {error}"))
    }
}
