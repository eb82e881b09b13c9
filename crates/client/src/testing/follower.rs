//! What every component that follows the objects of a kind has to do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::Cluster;
use crate::informer::Key;

/// Names and uids of the pods that a component knows of.
pub type Known = BTreeMap<String, String>;

/// Checks that a component which follows the pods of `cluster` knows the pods that exist: the first
/// ones, later ones, those whose changes a watch has missed, and those beside one that cannot be
/// read. `pod` makes a pod of that name.
///
/// # Panics
///
/// If the component does not know of the pods that exist within a minute.
pub async fn check_follows_pods(
    cluster: &Arc<Cluster>,
    pod: impl Fn(&str) -> Value,
    mut known: impl AsyncFnMut() -> Known,
) {
    let put = |name: &str| {
        let mut object = pod(name);
        object["metadata"]["uid"] = Value::Null;
        cluster.put(object);
    };
    let key = |name: &str| Key::new("default", name);
    let mut until_known = async |what: &str| {
        let mut last = Known::new();
        for _ in 0..6000 {
            last = known().await;
            if last == existing(cluster) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!(
            "{what}: known are {last:?}, existing are {:?}",
            existing(cluster)
        );
    };
    put("a");
    put("b");
    until_known("after the first list").await;
    put("c");
    cluster.remove("pods", &key("b"));
    cluster.change("pods", &key("a"), |pod| {
        pod["metadata"]["labels"] = json!({"is": "changed"})
    });
    until_known("after changes").await;

    cluster.remove("pods", &key("a"));
    put("d");
    cluster.compact();
    until_known("after changes that the watch missed").await;
    cluster.remove("pods", &key("c"));
    put("c");
    cluster.compact();
    until_known("after a deletion and a creation that the watch missed").await;

    cluster.change("pods", &key("c"), |pod| {
        pod["metadata"]["labels"] = json!(7)
    });
    put("e");
    until_known("beside a pod that cannot be read").await;
    cluster.remove("pods", &key("c"));
    until_known("after the deletion of a pod that cannot be read").await;
}

fn existing(cluster: &Cluster) -> Known {
    let pods = cluster.list("pods");
    let text = |pod: &Value, field: &str| pod["metadata"][field].as_str().unwrap().to_owned();
    pods.iter()
        .map(|pod| (text(pod, "name"), text(pod, "uid")))
        .collect()
}
