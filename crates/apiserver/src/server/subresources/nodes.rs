//! Requests that nodes answer: logs, commands, ports, kubelet endpoints, and resource usage.

use http::{Request, Response};
use plimsoll_core::object::selector::{FieldSelector, LabelSelector};
use serde_json::{Value, json};

use crate::auth::Objects;
use crate::body::Body;
use crate::http::negotiation::Endpoint;
use crate::http::query::ListOptions;
use crate::kinds;
use crate::node_proxy::{ProxyTarget, node_metrics, pod_metrics};
use crate::server::call::Call;
use crate::status::Status;

/// Nodes that are queried at once.
const CONCURRENT_NODES: usize = 16;

impl Call<'_> {
    /// The pod that the path names, and its node if that exists.
    async fn pod_and_node(&self) -> Result<(Value, Option<Value>), Status> {
        let pod = self.stored("").await?.value()?;
        let name = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        let node = self.server.object("", "nodes", "", name);
        Ok((pod, node))
    }

    /// Handles a GET of a pod's log.
    pub(crate) async fn log(&self, request: Request<Body>) -> Result<Response<Body>, Status> {
        let (pod, node) = self.pod_and_node().await?;
        Ok(self.server.nodes().log(request, &pod, node.as_ref()).await)
    }

    /// Connects the client to a process or a port of a pod.
    pub(crate) async fn stream(&self, request: Request<Body>) -> Result<Response<Body>, Status> {
        let (pod, node) = self.pod_and_node().await?;
        let (nodes, node) = (self.server.nodes(), node.as_ref());
        Ok(match self.target.subresource.as_str() {
            "exec" => nodes.exec(request, &pod, node).await,
            "attach" => nodes.attach(request, &pod, node).await,
            _ => nodes.port_forward(request, &pod, node).await,
        })
    }

    /// Forwards a request to a node or a pod.
    pub(crate) async fn proxy(&self, request: Request<Body>) -> Result<Response<Body>, Status> {
        let kind = self.kind.singular;
        let target = ProxyTarget::parse(&self.target.name, kind).map_err(|refusal| *refusal)?;
        self.wait_until_fresh("").await?;
        if self.kind.kind == "Pod" {
            let pod = self
                .server
                .object("", "pods", &self.target.namespace, target.name);
            let pod = pod.ok_or_else(|| Status::not_found(self.kind, target.name))?;
            let nodes = self.server.nodes();
            let path = &self.target.rest;
            return Ok(nodes.pod_proxy(request, &pod, &target, path).await);
        }
        let node = self.server.object("", "nodes", "", target.name);
        let node = node.ok_or_else(|| Status::not_found(self.kind, target.name))?;
        let nodes = self.server.nodes();
        Ok(nodes
            .node_proxy(request, &node, &target, &self.target.rest)
            .await)
    }

    /// Handles a GET of resource usage of nodes or pods (`metrics.k8s.io`).
    pub(crate) async fn usage(&self) -> Result<Response<Body>, Status> {
        let output = self.output(Endpoint::Objects)?;
        self.wait_until_fresh("").await?;
        let name = self.target.name.as_str();
        let options = ListOptions::from_query(self.query, self.kind, None)?;
        let mut items = match self.kind.kind {
            "NodeMetrics" => self.node_usage(&options).await,
            _ => self.pod_usage(&options).await,
        };
        if name.is_empty() {
            let list = json!({
                "kind": self.kind.list_kind(),
                "apiVersion": self.kind.api_version(),
                "metadata": {},
                "items": items,
            });
            return self.value_as(200, &list, output);
        }
        items.retain(|item| item["metadata"]["name"] == name);
        let mut item = items
            .pop()
            .ok_or_else(|| Status::not_found(self.kind, &self.target.name))?;
        item["kind"] = json!(self.kind.kind);
        item["apiVersion"] = json!(self.kind.api_version());
        self.value_as(200, &item, output)
    }

    /// Nodes that do not respond are left out, as metrics-server does.
    async fn node_usage(&self, options: &ListOptions) -> Vec<Value> {
        let nodes = self.nodes(&options.label_selector, |name| {
            self.target.name.is_empty() || self.target.name == name
        });
        let requests = nodes.into_iter().map(|node| async move {
            let summary = self.server.nodes().summary(&node).await.ok()?;
            node_metrics(&summary, &node)
        });
        buffered_results(requests).await
    }

    async fn pod_usage(&self, options: &ListOptions) -> Vec<Value> {
        // Only the nodes with selected pods are queried.
        let pods = kinds::by_resource("", "v1", "pods");
        let pods = pods.and_then(|kind| self.server.cache.collection(kind));
        let Some(pods) = pods else {
            return Vec::new();
        };
        let everything = FieldSelector::new(Vec::new());
        let mut pods = pods.list(&self.list_prefix(), None);
        pods.retain(|pod| {
            let is_named = self.target.name.is_empty() || pod.name() == self.target.name;
            is_named && pod.matches(&options.label_selector, &everything)
        });
        let mut hosts: Vec<String> = pods
            .iter()
            .filter_map(|pod| Some(pod.value().ok()?["spec"]["nodeName"].as_str()?.to_owned()))
            .collect();
        hosts.sort();
        hosts.dedup();
        let all = LabelSelector::everything();
        let nodes = self.nodes(&all, |name| hosts.iter().any(|host| host == name));
        let requests = nodes.into_iter().map(|node| async move {
            let summary = self.server.nodes().summary(&node).await.ok()?;
            Some(pod_metrics(&summary))
        });
        let used: Vec<Vec<Value>> = buffered_results(requests).await;
        let mut used: Vec<Value> = used.into_iter().flatten().collect();
        for item in &mut used {
            let key = |field: &str| item["metadata"][field].as_str().unwrap_or_default();
            let found = pods
                .iter()
                .find(|pod| pod.namespace() == key("namespace") && pod.name() == key("name"));
            match found {
                Some(pod) => {
                    let labels = pod.value().unwrap_or_default()["metadata"]["labels"].take();
                    if !labels.is_null() {
                        item["metadata"]["labels"] = labels;
                    }
                }
                None => *item = Value::Null,
            }
        }
        used.retain(|item| !item.is_null());
        used
    }

    fn nodes(&self, labels: &LabelSelector, is_wanted: impl Fn(&str) -> bool) -> Vec<Value> {
        let kind = kinds::by_resource("", "v1", "nodes");
        let collection = kind.and_then(|kind| self.server.cache.collection(kind));
        let everything = FieldSelector::new(Vec::new());
        let nodes = collection
            .map(|nodes| nodes.list("", None))
            .unwrap_or_default();
        let nodes = nodes.iter();
        let nodes =
            nodes.filter(|node| is_wanted(node.name()) && node.matches(labels, &everything));
        nodes.filter_map(|node| node.value().ok()).collect()
    }
}

/// Runs a few queries at a time, and keeps the results in order.
async fn buffered_results<T>(
    requests: impl Iterator<Item = impl Future<Output = Option<T>>>,
) -> Vec<T> {
    use futures::StreamExt;
    let results = futures::stream::iter(requests).buffered(CONCURRENT_NODES);
    results.filter_map(std::future::ready).collect().await
}
