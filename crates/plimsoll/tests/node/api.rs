//! Reads objects without kubectl: a process per read would be most of the load of a slow machine.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use http::Request;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tokio::runtime::Runtime;

/// The API of a cluster.
pub(crate) struct Api {
    kubeconfig: PathBuf,
    runtime: Runtime,
    /// A client, and the kubeconfig that it was made from: a cluster that starts again may be
    /// elsewhere.
    client: RefCell<Option<(String, Client)>>,
}

impl Api {
    /// By a kubeconfig, which is read each time.
    pub(crate) fn new(kubeconfig: &Path) -> Api {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        Api {
            kubeconfig: kubeconfig.to_owned(),
            runtime: builder.enable_all().build().expect("a runtime"),
            client: RefCell::default(),
        }
    }

    /// The object: `pod NAME` and `serviceaccount NAME` of the default namespace, `node NAME` and its
    /// `lease NAME`, all `pods NAMESPACE` and `events NAMESPACE`, or the `decisions NODE` has made. The error has the
    /// reason, such as `NotFound`. Managed fields are omitted, so that a failing test prints mainly
    /// the status.
    pub(crate) fn get(&self, object: &str) -> Result<Value, String> {
        let path = match object.split_once(' ') {
            Some(("node", name)) => format!("/api/v1/nodes/{name}"),
            Some(("decisions", node)) => format!("/api/v1/nodes/{node}/proxy/plimsoll/decisions"),
            Some((kinds @ ("pods" | "events"), namespace)) => {
                format!("/api/v1/namespaces/{namespace}/{kinds}")
            }
            Some(("lease", node)) => {
                format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}")
            }
            Some((kind @ ("pod" | "serviceaccount"), name)) => {
                format!("/api/v1/namespaces/default/{kind}s/{name}")
            }
            _ => panic!("where {object:?} is read is not known here"),
        };
        let mut object = self.runtime.block_on(self.read(&path))?;
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        Ok(object)
    }

    async fn read(&self, path: &str) -> Result<Value, String> {
        let client = self.client().await?;
        let request = Request::get(path).body(Vec::new()).expect("a path");
        let answer = client.request(request).await;
        answer.map_err(|error| in_words(&error))
    }

    async fn client(&self) -> Result<Client, String> {
        let text = std::fs::read_to_string(&self.kubeconfig).map_err(|error| in_words(&error))?;
        let known = self.client.borrow().clone();
        if let Some((_, client)) = known.filter(|(known, _)| *known == text) {
            return Ok(client);
        }
        let file = Kubeconfig::from_yaml(&text).map_err(|error| in_words(&error))?;
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(file, &options).await;
        let config = config.map_err(|error| in_words(&error))?;
        let client = Client::try_from(config).map_err(|error| in_words(&error))?;
        self.client.replace(Some((text, client.clone())));
        Ok(client)
    }
}

fn in_words(error: &dyn std::fmt::Debug) -> String {
    format!("{error:?}")
}
