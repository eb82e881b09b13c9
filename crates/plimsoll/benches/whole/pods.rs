//! Pods that run, created through the API.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;

use crate::client::connect;
use crate::stage::{IMAGE, NODE};

const PATIENCE: Duration = Duration::from_secs(120);

/// Pods of the default namespace.
pub(crate) struct Pods {
    api: Api<Pod>,
    nodes: Api<Node>,
    /// Where they run, if no scheduler is there to say so.
    assigned: Option<&'static str>,
}

impl Pods {
    /// With the credentials in a file.
    pub(crate) async fn connect(kubeconfig: &Path, assigned: Option<&'static str>) -> Result<Pods> {
        let client = connect(kubeconfig).await?;
        Ok(Pods {
            api: Api::default_namespaced(client.clone()),
            nodes: Api::all(client),
            assigned,
        })
    }

    /// Waits for the node.
    pub(crate) async fn until_node_is_ready(&self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let node = self.nodes.get_opt(NODE).await.ok().flatten();
            let conditions = node.and_then(|node| node.status?.conditions);
            let mut conditions = conditions.into_iter().flatten();
            if conditions.any(|known| known.type_ == "Ready" && known.status == "True") {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bail!("the node does not become ready")
    }

    /// Starts pods and waits until all run.
    pub(crate) async fn start_all(&self, serials: Range<usize>) -> Result<()> {
        for serial in serials {
            self.start(&format!("many-{serial}")).await?;
        }
        Ok(())
    }

    /// Starts a pod and deletes it; returns how long it took to run.
    pub(crate) async fn start_and_remove(&self, name: &str) -> Result<Duration> {
        let took = self.start(name).await?;
        let at_once = DeleteParams::default().grace_period(0);
        self.api
            .delete(name, &at_once)
            .await
            .context("cannot delete")?;
        Ok(took)
    }

    async fn start(&self, name: &str) -> Result<Duration> {
        let only = WatchParams::default().fields(&format!("metadata.name={name}"));
        let began = Instant::now();
        let made = self
            .api
            .create(&PostParams::default(), &self.pod(name)?)
            .await;
        let version = made
            .context("cannot create a pod")?
            .metadata
            .resource_version;
        let version = version.unwrap_or_default();
        let mut changes = self.api.watch(&only, &version).await?.boxed();
        loop {
            let change = tokio::time::timeout(PATIENCE, changes.try_next()).await;
            let change = change.with_context(|| format!("{name} does not run"))??;
            let Some(WatchEvent::Modified(pod)) = change else {
                bail!("the watch of {name} ended");
            };
            if pod.status.and_then(|status| status.phase).as_deref() == Some("Running") {
                return Ok(began.elapsed());
            }
        }
    }

    fn pod(&self, name: &str) -> Result<Pod> {
        let container = json!({
            "name": "main", "image": IMAGE, "imagePullPolicy": "Never",
            "command": ["sleep", "100000"],
        });
        let spec = json!({
            "nodeName": self.assigned, "containers": [container],
            "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false,
        });
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        serde_json::from_value(pod).context("not a pod")
    }
}
