//! What runs as long as the agent does.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::api::core::v1::{ContainerImage, Node};
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use plimsoll_client::events::Note;
use plimsoll_client::informer::{Store, follow};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::heartbeat::Heartbeat;
use super::host::NodeHost;
use super::options::Options;
use super::run::{Agent, NodeStatusSource, std_duration};
use super::upkeep;
use crate::pods::api::{keep_mirrors, watch_pods, write_statuses};
use crate::pods::manifest;
use crate::pods::set::Source;
use crate::shutdown;
use plimsoll_client::supervision::Weight;

/// Manifests are read no more often than this, whatever is configured: changes are seen at once
/// anyhow.
const SHORTEST_FILE_CHECK: Duration = Duration::from_secs(1);

impl Agent {
    /// Starts the tasks that keep the node as it should be and report it to the API.
    pub(super) fn keep_node(
        self,
        options: &Options,
        images: watch::Sender<Vec<ContainerImage>>,
        status_source: NodeStatusSource,
    ) {
        let supervisor = &self.supervisor;
        let (own, name) = (self.client.clone(), options.node_name.clone());
        let (node, stop) = (self.heartbeat.node.clone(), self.stop.clone());
        supervisor.keep("nodeWatch", Weight::Minor, move || {
            follow_node(own.clone(), name.clone(), node.clone(), stop.clone()).map(Ok)
        });
        let (cgroups, pods) = (Arc::clone(&self.host.cgroups), self.pods.clone());
        let (changed, stop) = (Arc::clone(&self.host.pods_changed), self.stop.clone());
        supervisor.keep("qosCgroups", Weight::Minor, move || {
            let (cgroups, changed) = (Arc::clone(&cgroups), Arc::clone(&changed));
            upkeep::keep_tiers(cgroups, pods.clone(), changed, stop.clone()).map(Ok)
        });
        let (cgroups, pods) = (Arc::clone(&self.host.cgroups), self.pods.clone());
        let (heartbeat, stop) = (Arc::clone(&self.heartbeat), self.stop.clone());
        supervisor.complete("podsLimit", Weight::Minor, move || {
            let (cgroups, heartbeat) = (Arc::clone(&cgroups), Arc::clone(&heartbeat));
            upkeep::enforce_limit(cgroups, pods.clone(), heartbeat, stop.clone()).map(Ok)
        });
        let (heartbeat, stop) = (Arc::clone(&self.heartbeat), self.stop.clone());
        supervisor.keep("nodeLease", Weight::Minor, move || {
            let (heartbeat, stop) = (Arc::clone(&heartbeat), stop.clone());
            async move {
                heartbeat.renew_lease(stop).await;
                Ok(())
            }
        });
        let (runtime, stop) = (Arc::clone(&self.host.runtime), self.stop.clone());
        supervisor.keep("imageList", Weight::Minor, move || {
            upkeep::watch_images(Arc::clone(&runtime), images.clone(), stop.clone()).map(Ok)
        });
        let periods = shutdown::plan::periods(&options.config);
        let (pods, host) = (self.pods.clone(), Arc::clone(&self.host));
        let (heartbeat, stop) = (Arc::clone(&self.heartbeat), self.stop.clone());
        supervisor.complete("nodeShutdown", Weight::Minor, move || {
            let announcer = Announcer {
                host: Arc::clone(&host),
                heartbeat: Arc::clone(&heartbeat),
            };
            let (periods, pods) = (periods.clone(), pods.clone());
            shutdown::watch::watch(periods, pods, announcer, stop.clone()).map(Ok)
        });
        let (heartbeat, status_source) = (Arc::clone(&self.heartbeat), Arc::new(status_source));
        let stop = self.stop.clone();
        supervisor.keep("nodeStatus", Weight::Vital, move || {
            let (heartbeat, status_source) = (Arc::clone(&heartbeat), Arc::clone(&status_source));
            let stop = stop.clone();
            async move {
                heartbeat
                    .report_status(|| status_source.facts(), stop)
                    .await;
                Ok(())
            }
        });
        let (host, health) = (Arc::clone(&self.host), self.health.clone());
        let (at_once, stop) = (Arc::clone(&self.heartbeat.at_once), self.stop.clone());
        supervisor.keep("runtimeHealth", Weight::Vital, move || {
            let (host, health) = (Arc::clone(&host), health.clone());
            upkeep::watch_runtime(host, health, Arc::clone(&at_once), stop.clone()).map(Ok)
        });
    }

    /// Starts the tasks that take pods from the API and from files and report their status.
    pub(super) fn follow_pods(&self, options: &Options) {
        let supervisor = &self.supervisor;
        let (pods, stop) = (self.pods.clone(), self.stop.clone());
        supervisor.keep("podLifecycle", Weight::Vital, move || {
            let (pods, stop) = (pods.clone(), stop.clone());
            async move {
                pods.run(stop).await;
                Ok(())
            }
        });
        let part = || {
            let (client, name) = (self.client.clone(), options.node_name.clone());
            (client, name, self.pods.clone(), self.stop.clone())
        };
        let own = part();
        supervisor.keep("podWatch", Weight::Vital, move || {
            let (client, name, pods, stop) = own.clone();
            async move {
                watch_pods(client, &name, &pods, stop).await;
                Ok(())
            }
        });
        let own = part();
        supervisor.keep("podStatuses", Weight::Vital, move || {
            let (client, _, pods, stop) = own.clone();
            async move {
                write_statuses(client, &pods, stop).await;
                Ok(())
            }
        });
        let own = part();
        supervisor.keep("mirrorPods", Weight::Minor, move || {
            let (client, name, pods, stop) = own.clone();
            async move {
                keep_mirrors(client, &name, &pods, stop).await;
                Ok(())
            }
        });
        let manifests = options.config.static_pod_path.value.clone();
        if manifests.is_empty() {
            self.pods.replace(Source::Files, Vec::new());
            return;
        }
        let every = std_duration(*options.config.file_check_frequency).max(SHORTEST_FILE_CHECK);
        let own = part();
        supervisor.keep("staticPods", Weight::Vital, move || {
            let ((_, name, pods, stop), manifests) = (own.clone(), manifests.clone());
            async move {
                let path = Path::new(manifests.as_str());
                manifest::folder::watch(path, &name, every, &pods, stop).await;
                Ok(())
            }
        });
    }
}

/// Keeps the node as the API has it.
async fn follow_node(
    client: Client,
    name: String,
    node: watch::Sender<Option<Arc<Node>>>,
    stop: CancellationToken,
) {
    let api: Api<Node> = Api::all(client);
    let own = Config::default().fields(&format!("metadata.name={name}"));
    stop.run_until_cancelled(follow(api, own, &OwnNode(node)))
        .await;
}

/// The last known state of the node; the heartbeat notices a deletion.
struct OwnNode(watch::Sender<Option<Arc<Node>>>);

impl Store<Node> for OwnNode {
    type Kept = Node;

    fn reduce(&self, node: Node) -> Node {
        node
    }

    async fn replace(&self, nodes: Vec<Node>) {
        for node in nodes {
            self.apply(node).await;
        }
    }

    async fn apply(&self, node: Node) {
        self.0.send_replace(Some(Arc::new(node)));
    }

    async fn delete(&self, _: Node) {}
}

/// Reports that the machine is being shut down.
struct Announcer {
    host: Arc<NodeHost>,
    heartbeat: Arc<Heartbeat>,
}

impl shutdown::watch::Announce for Announcer {
    fn shutting_down(&self, is_shutting_down: bool) {
        let message = match is_shutting_down {
            true => "Shutdown manager detected shutdown event",
            false => "Shutdown manager detected shutdown cancellation",
        };
        self.heartbeat
            .record_event(Note::normal("Shutdown", message));
        self.host.shutting_down.send_replace(is_shutting_down);
        self.heartbeat.at_once.notify_one();
    }
}
