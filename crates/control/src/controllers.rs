//! All controllers in one process: the loops about nodes, workloads and housekeeping, sharing one
//! set of watches, led by one of several processes.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use futures::FutureExt;
use kube::Client;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::leadership::Election;
use crate::loops::Loops;
use crate::serving::{self, Check, Handlers};
use crate::{housekeeping, nodes, work_queue, workloads};
use plimsoll_client::events::Recorder;
use plimsoll_client::informer::Informers;
use plimsoll_client::process;
use plimsoll_client::supervision::{Supervisor, Weight};

/// The Lease. It has the name of upstream's, so that never both act on one cluster.
const LEASE: (&str, &str) = ("kube-system", "kube-controller-manager");

/// How the controllers are run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether one of several processes is elected to act.
    pub elects_leader: bool,
    /// Where health is served, if anywhere.
    pub listen: Option<SocketAddr>,
    /// When silent nodes are given up.
    pub node_lifecycle: nodes::lifecycle::Options,
    /// How evicted pods are kept.
    pub evicted_pods: housekeeping::evicted_pods::Options,
    /// The default objects of namespaces; nothing if the API server creates them.
    pub namespace_defaults: Option<housekeeping::namespace_defaults::Options>,
    /// When finished and orphaned pods are removed.
    pub pod_gc: housekeeping::pod_gc::Options,
}

/// Runs all controllers until `stop`, or until leadership is lost.
pub async fn run(client: Client, options: Options, stop: CancellationToken) -> anyhow::Result<()> {
    // Everything that runs here ends with it, however it ends.
    let stop = stop.child_token();
    let _all_ends = stop.clone().drop_guard();
    let supervisor = Supervisor::new(stop.clone(), Arc::default());
    if let Some(address) = options.listen {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address}"))?;
        let health = Arc::new(Health(supervisor.clone()));
        let until = stop.clone();
        let (listener, handlers) = (Arc::new(listener), health as Arc<dyn Handlers>);
        supervisor.keep("healthServer", Weight::Vital, move || {
            serving::serve(Arc::clone(&listener), Arc::clone(&handlers), until.clone()).map(Ok)
        });
    }
    if !options.elects_leader {
        supervise(&supervisor, client, options, &stop);
        supervisor.wait().await;
        return Ok(());
    }
    let identity = process::identity();
    let recorder = Recorder::counted(client.clone(), LEASE.1, stop.clone());
    let election = Election::new(LEASE.0, LEASE.1, &identity);
    let leading = client.clone();
    let lead = async move |stop: CancellationToken| {
        supervise(&supervisor, leading, options, &stop);
        stop.cancelled().await;
    };
    election.run(client, Some(recorder), stop, lead).await?;
    Ok(())
}

/// Has all controllers run until `stop`, each in a task of its own that `supervisor` starts again if
/// it fails. Their names are those of upstream's health checks.
pub fn supervise(
    supervisor: &Supervisor,
    client: Client,
    options: Options,
    stop: &CancellationToken,
) {
    use housekeeping::{
        evicted_pods, garbage_collector, namespace, namespace_defaults, pod_gc, resource_quota,
        ttl_after_finished,
    };
    let loops = Loops {
        supervisor,
        informers: &Informers::new(client),
        stop,
    };
    let (keeping, collecting) = (options.evicted_pods, options.pod_gc);
    loops.keep(
        "node-lifecycle-controller",
        options.node_lifecycle,
        nodes::lifecycle::run,
    );
    loops.keep(
        "taint-eviction-controller",
        Default::default(),
        nodes::taint_eviction::run,
    );
    workloads::supervise(&loops, &workloads::Options::default());
    loops.keep("evicted-pods-controller", keeping, evicted_pods::run);
    loops.keep("pod-garbage-collector-controller", collecting, pod_gc::run);
    loops.keep(
        "ttl-after-finished-controller",
        Default::default(),
        ttl_after_finished::run,
    );
    loops.keep("namespace-controller", Default::default(), namespace::run);
    loops.keep(
        "garbage-collector-controller",
        Default::default(),
        garbage_collector::run,
    );
    loops.keep(
        "resourcequota-controller",
        Default::default(),
        resource_quota::run,
    );
    if let Some(given) = options.namespace_defaults {
        loops.keep("serviceaccount-controller", given, namespace_defaults::run);
    }
}

/// The process is healthy as long as its loops run; they retry whatever fails.
struct Health(Supervisor);

impl Handlers for Health {
    fn health(&self) -> Vec<Check> {
        let checks = self.0.checks().into_iter();
        checks.map(|(name, is_ok)| Check { name, is_ok }).collect()
    }

    fn metrics(&self) -> String {
        work_queue::metrics::text()
    }

    fn configuration(&self) -> serde_json::Value {
        serde_json::json!({})
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_client::testing::Cluster;
    use serde_json::{Value, json};

    use super::*;

    /// A pod of another type, and one that is deeper than readers go.
    fn unreadable_pods() -> [Value; 2] {
        let nested = (0..200).fold(json!({}), |inner, _| json!({"f:a": inner}));
        let meta = |name: &str| json!({"name": name, "namespace": "tenant"});
        let mut deep = meta("deep");
        deep["labels"] = nested;
        [
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta("odd"), "spec": 5}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": deep}),
        ]
    }

    fn pods_of(cluster: &Cluster, app: &str) -> usize {
        let pods = cluster.list("pods");
        let of_app = pods
            .iter()
            .filter(|pod| pod["metadata"]["labels"]["app"] == app);
        of_app.count()
    }

    #[tokio::test(start_paused = true)]
    async fn unreadable_pods_of_one_tenant_stop_no_controller() {
        for is_streaming in [true, false] {
            let cluster = match is_streaming {
                true => Cluster::new(),
                false => Cluster::without_streamed_lists(),
            };
            // They are there when the controllers start, as after a restart.
            for pod in unreadable_pods() {
                cluster.put(pod);
            }
            let template = json!({"metadata": {"labels": {"app": "set"}},
                "spec": {"containers": [{"name": "main", "image": "i"}]}});
            cluster.put(json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": {"name": "set", "namespace": "other"},
                "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "set"}},
                    "template": template},
            }));
            let mut template = template;
            template["metadata"]["labels"]["app"] = json!("job");
            template["spec"]["restartPolicy"] = json!("Never");
            cluster.put(json!({
                "apiVersion": "batch/v1", "kind": "Job",
                "metadata": {"name": "job", "namespace": "other"},
                "spec": {"parallelism": 2, "completions": 2, "backoffLimit": 1,
                    "completionMode": "NonIndexed",
                    "selector": {"matchLabels": {"app": "job"}}, "template": template},
            }));
            let stop = CancellationToken::new();
            let running = run(cluster.client(), Options::default(), stop.clone());
            let running = tokio::spawn(running);
            let pods = |cluster: &Cluster| (pods_of(cluster, "set"), pods_of(cluster, "job"));
            cluster
                .eventually("pods of both owners", |cluster| pods(cluster) == (3, 2))
                .await;
            stop.cancel();
            running.await.unwrap().unwrap();
            let supervisor = Supervisor::new(stop.clone(), Arc::default());
            let metrics = Health(supervisor).metrics();
            let counted = "reflector_decode_errors_total{resource=\"pods\"}";
            assert!(metrics.contains(counted), "{metrics}");
        }
    }
}
