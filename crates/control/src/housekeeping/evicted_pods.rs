//! Keeps some evicted pods as a record, for some time.
//!
//! Upstream has no such loop; the rules are in `plimsoll_core::lifecycle::retention`. The records
//! that are kept show workload loops when a pod is evicted again and again:
//! [`wait_before_recreating`].

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Client};
use plimsoll_core::lifecycle::recreation;
use plimsoll_core::lifecycle::retention::{EvictedPod, Settings, plan};
use plimsoll_core::object::timestamp::Timestamp;
use tokio_util::sync::CancellationToken;

use plimsoll_client::clock::Clock;
use plimsoll_client::informer::{Informer, Informers};

/// The settings of the loop.
#[derive(Clone, Debug)]
pub struct Options {
    /// The limits of what is kept.
    pub settings: Settings,
    /// How often the loop looks.
    pub period: Duration,
    /// The clock.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            settings: Settings::default(),
            period: Duration::from_secs(30),
            clock: Clock::system(),
        }
    }
}

/// Runs the loop until `stop`.
pub async fn run(informers: Arc<Informers>, options: Options, stop: CancellationToken) {
    let client = informers.client().clone();
    let pods: Arc<Informer<Pod>> = informers.of();
    let looking = async {
        pods.synced().await;
        loop {
            collect(&client, &pods, &options).await;
            tokio::time::sleep(options.period).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = looking => {}
    }
}

/// How long the owner of evicted pods should wait before it makes another; nothing if it need not.
pub fn wait_before_recreating(
    pods: &Informer<Pod>,
    owner_uid: &str,
    settings: recreation::Settings,
    now: Timestamp,
) -> Option<Duration> {
    let pods = pods.owned_by(owner_uid);
    let evicted = pods.iter().filter_map(|pod| EvictedPod::from_api(pod));
    let evicted: Vec<EvictedPod> = evicted.filter(|pod| pod.owner == owner_uid).collect();
    let until = recreation::wait_until(settings, &evicted, now)?;
    Some(until.saturating_since(now))
}

async fn collect(client: &Client, pods: &Informer<Pod>, options: &Options) {
    let pods = pods.list();
    let evicted = pods.iter().filter_map(|pod| EvictedPod::from_api(pod));
    let evicted: Vec<EvictedPod> = evicted.collect();
    for (pod, because) in plan(options.settings, &evicted, options.clock.now()) {
        let api: Api<Pod> = Api::namespaced(client.clone(), &pod.pod.namespace);
        let params = DeleteParams::default().preconditions(Preconditions {
            uid: Some(pod.uid.as_str().to_owned()),
            resource_version: None,
        });
        match api.delete(&pod.pod.name, &params).await {
            Ok(_) => tracing::info!(pod = %pod.pod, reason = ?because, "removed evicted pod"),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(error) => tracing::warn!(pod = %pod.pod, %error, "failed to remove evicted pod"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use plimsoll_client::testing::{Cluster, virtual_clock};

    /// A pod made and evicted at these minutes.
    fn evicted(name: &str, created: u8, evicted: u8) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "namespace": "default",
                "name": name,
                "creationTimestamp": format!("2026-01-01T00:{created:02}:00Z"),
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet",
                                     "name": "rs", "uid": "rs", "controller": true}],
            },
            "spec": {"containers": []},
            "status": {"phase": "Failed", "reason": "Evicted", "conditions": [{
                "type": "DisruptionTarget",
                "status": "True",
                "lastTransitionTime": format!("2026-01-01T00:{evicted:02}:00Z"),
            }]},
        })
    }

    #[tokio::test]
    async fn owner_waits_while_its_replacements_are_evicted() {
        let cluster = Cluster::new();
        let pods = Informers::new(cluster.client()).of::<Pod>();
        let now = Timestamp::from_rfc3339("2026-01-01T00:03:00Z").unwrap();
        let settings = recreation::Settings::default();
        let wait = |owner: &str| wait_before_recreating(&pods, owner, settings, now);
        pods.synced().await;
        assert_eq!(wait("rs"), None);
        cluster.put(evicted("a", 0, 1));
        cluster.put(evicted("b", 1, 2));
        cluster.put(evicted("c", 2, 3));
        while pods.list().len() < 3 {
            tokio::task::yield_now().await;
        }
        assert_eq!(wait("rs"), Some(Duration::from_secs(20)));
        assert_eq!(wait("another"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_five_of_an_owner_are_kept_for_a_day() {
        let cluster = Cluster::new();
        for number in 0..8 {
            cluster.put(evicted(&format!("p{number}"), 0, number));
        }
        let stop = CancellationToken::new();
        let options = Options {
            clock: virtual_clock(),
            ..Options::default()
        };
        tokio::spawn(run(Informers::new(cluster.client()), options, stop.clone()));
        tokio::time::sleep(Duration::from_secs(60)).await;
        let names = cluster.list("pods").into_iter();
        let names: Vec<_> = names.map(|pod| pod["metadata"]["name"].clone()).collect();
        assert_eq!(names, ["p3", "p4", "p5", "p6", "p7"]);
        tokio::time::sleep(Duration::from_secs(24 * 60 * 60 + 600)).await;
        assert!(cluster.list("pods").is_empty());
        stop.cancel();
    }
}
