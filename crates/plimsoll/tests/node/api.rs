//! Reading single objects. A process per look would be most of what a slow machine does.

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
}

impl Api {
    /// By a kubeconfig, which is read each time: a cluster that starts again may be elsewhere.
    pub(crate) fn new(kubeconfig: &Path) -> Api {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        Api {
            kubeconfig: kubeconfig.to_owned(),
            runtime: builder.enable_all().build().expect("a runtime"),
        }
    }

    /// The object: `pod NAME` and `serviceaccount NAME` of the default namespace, `node NAME`, all
    /// `pods NAMESPACE`, or the `decisions NODE` has made. The error says why there is none, with
    /// `NotFound` if that is why.
    pub(crate) fn get(&self, object: &str) -> Result<Value, String> {
        let path = match object.split_once(' ') {
            Some(("node", name)) => format!("/api/v1/nodes/{name}"),
            Some(("decisions", node)) => format!("/api/v1/nodes/{node}/proxy/plimsoll/decisions"),
            Some(("pods", namespace)) => format!("/api/v1/namespaces/{namespace}/pods"),
            Some((kind @ ("pod" | "serviceaccount"), name)) => {
                format!("/api/v1/namespaces/default/{kind}s/{name}")
            }
            _ => panic!("where {object:?} is read is not known here"),
        };
        self.runtime.block_on(self.read(&path))
    }

    async fn read(&self, path: &str) -> Result<Value, String> {
        let in_words = |error: &dyn std::fmt::Debug| format!("{error:?}");
        let file = Kubeconfig::read_from(&self.kubeconfig).map_err(|error| in_words(&error))?;
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(file, &options).await;
        let config = config.map_err(|error| in_words(&error))?;
        let client = Client::try_from(config).map_err(|error| in_words(&error))?;
        let request = Request::get(path).body(Vec::new()).expect("a path");
        let answer = client.request(request).await;
        answer.map_err(|error| in_words(&error))
    }
}
