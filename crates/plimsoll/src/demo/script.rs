//! The steps of the demo.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::Client;
use kube::api::{Api, PostParams};
use plimsoll_client::clock::Clock;
use plimsoll_client::watching::wait_for;
use plimsoll_core::eviction::record::Record;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_report::text::{Table, span};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::cluster::Cluster;
use super::eviction::{Eviction, is_evicted};
use super::frame::Frames;
use super::pods::{GROWING, NAMESPACE, ROLES, Takes};
use super::sandbox::{NODE, NODE_MEMORY, THRESHOLD};
use super::screen::Screen;
use crate::explain;
use crate::kubelet::Kubelet;
use crate::next_steps::is_ready;

/// Timeout of a step, far above the usual time on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How often the demo checks whether the cluster still runs.
const CHECK_EVERY: Duration = Duration::from_millis(100);
/// Time between two frames: on a terminal, where one replaces the other, and elsewhere.
const REDRAW_EVERY: Duration = Duration::from_millis(500);
const PRINT_EVERY: Duration = Duration::from_secs(2);
/// Delay before a frame is shown: a frame from the moment of the eviction shows neither the state
/// before nor after it, and after the delay the eviction is known.
const FRAME_DELAY: Duration = Duration::from_millis(250);
/// How long the node may take to record its decision.
const RECORDED_WITHIN: Duration = Duration::from_secs(2);

/// The steps, on a cluster that was just started.
pub(super) struct Script<'a> {
    cluster: &'a mut Cluster,
    screen: &'a mut Screen,
}

impl<'a> Script<'a> {
    pub(super) fn new(cluster: &'a mut Cluster, screen: &'a mut Screen) -> Script<'a> {
        Script { cluster, screen }
    }

    /// Runs all steps.
    pub(super) async fn play(&mut self) -> Result<()> {
        let client = self.start_cluster().await?;
        self.start_pods(&client).await?;
        let eviction = self.watch_line(&client).await?;
        self.show_eviction(&eviction)?;
        self.explain(&client).await?;
        self.show_others(&client).await
    }

    /// Keeps the cluster until a signal arrives.
    pub(super) async fn stay(&mut self) -> Result<()> {
        self.screen.heading("The cluster stays until Ctrl-C")?;
        let kubeconfig = self.cluster.kubeconfig().display().to_string();
        self.screen
            .write(&format!("   export KUBECONFIG={kubeconfig}\n"))?;
        loop {
            tokio::time::sleep(CHECK_EVERY).await;
            self.cluster.check_running()?;
        }
    }

    async fn start_cluster(&mut self) -> Result<Client> {
        self.screen.heading("1. A cluster")?;
        self.screen.say(&format!(
            "API server, scheduler, controllers and node agent start in one process. A cgroup \
             of {} limits the node.",
            NODE_MEMORY.readable()
        ))?;
        let begun = Instant::now();
        let client = self.cluster.client().await?;
        let nodes: Api<Node> = Api::all(client.clone());
        let ready = async { Ok(wait_for(nodes, NODE, is_ready).await) };
        self.until("the node is Ready", ready).await?;
        let took = span(begun.elapsed().as_secs_f64());
        self.screen
            .say(&format!("The node is Ready after {took}."))?;
        Ok(client)
    }

    async fn start_pods(&mut self, client: &Client) -> Result<()> {
        self.screen.heading("2. Three pods")?;
        let mut table = Table::new(["POD", "QOS CLASS", "REQUESTS", "TAKES"]);
        for role in ROLES {
            let takes = match role.takes {
                Takes::UpTo(amount) => amount.readable(),
                Takes::EachSecond(amount) => {
                    format!("{} more each second", amount.readable())
                }
            };
            let request = role.request.map(|request| request.readable());
            let request = request.unwrap_or_else(|| "nothing".to_owned());
            table.row([role.name, role.qos_class, &request, &takes]);
        }
        self.screen.table(&table)?;
        let begun = Instant::now();
        // The API server rejects pods until their namespace has its service account.
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
        let is_there = |account: Option<&ServiceAccount>| account.is_some();
        let account = async { Ok(wait_for(accounts, "default", is_there).await) };
        self.until("the service account exists", account).await?;
        let pods = pods(client);
        for role in ROLES {
            let pod = role.pod().context("invalid pod")?;
            let created = pods.create(&PostParams::default(), &pod).await;
            created.with_context(|| format!("cannot create pod {}", role.name))?;
        }
        for role in ROLES {
            let running = wait_for(pods.clone(), role.name, has_started);
            let running = async { Ok(running.await) };
            let what = format!("pod {} runs", role.name);
            self.until(&what, running).await?;
        }
        let took = span(begun.elapsed().as_secs_f64());
        self.screen.say(&format!("All of them run after {took}."))
    }

    /// Draws the load line until the growing pod is evicted.
    async fn watch_line(&mut self, client: &Client) -> Result<Eviction> {
        self.screen.heading("3. The load line")?;
        self.screen.say(&format!(
            "When less than {} of memory is available (H), the node evicts a pod.",
            THRESHOLD.readable()
        ))?;
        let mut evicted = watch_eviction(client);
        let mut frames = Frames::new(client.clone());
        let pause = match Screen::terminal().is_interactive {
            true => REDRAW_EVERY,
            false => PRINT_EVERY,
        };
        let deadline = Instant::now() + TIMEOUT;
        let (pod, reported) = loop {
            let lines = frames.next(Screen::terminal()).await?;
            if let Ok(ended) = timeout(FRAME_DELAY, &mut evicted).await {
                break ended??;
            }
            self.screen.draw(&lines)?;
            let rest = pause.saturating_sub(FRAME_DELAY);
            if let Ok(ended) = timeout(rest, &mut evicted).await {
                break ended??;
            }
            self.cluster.check_running()?;
            if Instant::now() >= deadline {
                bail!("pod {GROWING} is not evicted after {} s", TIMEOUT.as_secs());
            }
        };
        let record = record(client).await;
        Ok(Eviction::new(&pod, record.as_ref(), reported))
    }

    fn show_eviction(&mut self, eviction: &Eviction) -> Result<()> {
        self.screen.heading("4. The eviction")?;
        let mut text = format!("Pod {GROWING} is evicted.");
        let since = |after: Duration| format!("{} ms", after.as_millis());
        if let (Some(decided), Some(reported)) = (eviction.decided_after, eviction.reported_after) {
            text += &format!(
                " The agent decided {} after {} crossed the threshold and killed the pod's \
                 processes at once; the status was in the API after {}.",
                since(decided),
                eviction.signal,
                since(reported)
            );
        }
        self.screen.say(&text)?;
        self.screen
            .say(&format!("The pod's status says: {}", eviction.message))
    }

    async fn explain(&mut self, client: &Client) -> Result<()> {
        self.screen.heading("5. Why this pod")?;
        let terminal = Screen::terminal();
        let text = explain::pod_text(client, NAMESPACE, GROWING, terminal).await?;
        self.screen
            .write(&format!("$ plimsoll explain pod {GROWING}\n{text}"))
    }

    async fn show_others(&mut self, client: &Client) -> Result<()> {
        self.screen.heading("6. The other pods")?;
        let pods = pods(client);
        let mut table = Table::new(["POD", "QOS CLASS", "STATUS", "RESTARTS"]);
        for role in ROLES.iter().filter(|role| role.name != GROWING) {
            let pod = pods.get(role.name).await?;
            let (phase, restarts) = (phase(&pod).to_owned(), restarts(&pod));
            if (phase.as_str(), restarts) != ("Running", 0) {
                bail!(
                    "pod {} is {phase} after {restarts} restarts although it stayed within its request",
                    role.name
                );
            }
            table.row([role.name, role.qos_class, &phase, &restarts.to_string()]);
        }
        self.screen.table(&table)?;
        self.screen
            .say("They were neither evicted nor restarted: they stay within their requests.")
    }

    /// Waits for an event, as long as the cluster runs.
    async fn until<T>(&mut self, what: &str, event: impl Future<Output = Result<T>>) -> Result<T> {
        let mut event = std::pin::pin!(event);
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Ok(happened) = timeout(CHECK_EVERY, &mut event).await {
                return happened;
            }
            self.cluster.check_running()?;
            if Instant::now() >= deadline {
                let seconds = TIMEOUT.as_secs();
                bail!("timed out after {seconds} s waiting until {what}");
            }
        }
    }
}

fn pods(client: &Client) -> Api<Pod> {
    Api::namespaced(client.clone(), NAMESPACE)
}

fn phase(pod: &Pod) -> &str {
    let status = pod.status.as_ref();
    status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or("Unknown")
}

fn restarts(pod: &Pod) -> i32 {
    let status = pod.status.as_ref();
    let containers = status.and_then(|status| status.container_statuses.as_ref());
    containers
        .into_iter()
        .flatten()
        .map(|one| one.restart_count)
        .sum()
}

/// Whether the pod has started; the growing one may already be evicted.
fn has_started(pod: Option<&Pod>) -> bool {
    pod.is_some_and(|pod| matches!(phase(pod), "Running" | "Failed"))
}

/// The growing pod, and when its eviction was in the API.
fn watch_eviction(client: &Client) -> JoinHandle<Result<(Pod, Timestamp)>> {
    let pods = pods(client);
    tokio::spawn(async move {
        let is_over = |pod: Option<&Pod>| pod.is_none_or(is_evicted);
        let pod = wait_for(pods, GROWING, is_over).await;
        let pod = pod.with_context(|| format!("pod {GROWING} was deleted"))?;
        Ok((pod, Clock::system().now()))
    })
}

/// The node's record of the eviction.
async fn record(client: &Client) -> Option<Record> {
    let kubelet = Kubelet::new(client, NODE);
    let query = format!("pod={NAMESPACE}/{GROWING}");
    let deadline = Instant::now() + RECORDED_WITHIN;
    loop {
        let found = kubelet.decisions(&query).await.ok();
        let found = found.and_then(|mut records| records.pop());
        if found.is_some() || Instant::now() >= deadline {
            return found;
        }
        tokio::time::sleep(CHECK_EVERY).await;
    }
}
