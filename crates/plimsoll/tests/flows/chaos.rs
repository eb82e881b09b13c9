//! Scheduler and controllers are killed at random while everything rolls.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::flow::Flow;
use crate::ledger::Ledger;

/// How many pods are rolled out. The number takes minutes with a debug build.
const PODS_VARIABLE: &str = "PLIMSOLL_CHAOS_PODS";
const DEFAULT_PODS: u32 = 400;

/// What is killed when; the same number kills alike.
const SEED_VARIABLE: &str = "PLIMSOLL_CHAOS_SEED";

const DEPLOYMENTS: u32 = 8;
const NODES: u32 = 50;
/// Milli-cores of a pod of a flow's deployment.
const POD_MILLICORES: u32 = 10;
/// In each of the two roll-outs a process is killed for so many pods.
const PODS_PER_KILL: u32 = 60;
/// How long a process may live before the next one is killed, in milliseconds.
const LIVES: std::ops::Range<u64> = 200..2500;
/// How long a roll-out may take after the last kill, per pod.
const PATIENCE_PER_POD: Duration = Duration::from_millis(500);

/// Rolls out twice, since the second time pods are deleted as well as created.
#[test]
#[ignore = "tier: tools"]
fn kills_at_random_lose_nothing_and_bind_nothing_twice() {
    let mut flow = Flow::start("chaos");
    if !flow.target.is_ours() {
        // The processes of another's cluster are not ours to kill.
        return;
    }
    let replicas = number(PODS_VARIABLE).unwrap_or(DEFAULT_PODS) / DEPLOYMENTS;
    let pods = replicas * DEPLOYMENTS;
    let seed = number(SEED_VARIABLE).unwrap_or(1);
    let mut random = fastrand::Rng::with_seed(seed.into());

    // Room for what a roll-out adds (a quarter), and not much more.
    let pods_per_node = (pods * 3 / 2).div_ceil(NODES);
    let cpu = format!("{}m", pods_per_node * POD_MILLICORES);
    for index in 0..NODES {
        let resources = json!({ "cpu": cpu, "memory": "64Gi", "pods": "250" });
        flow.node_with(&index.to_string(), &resources);
    }
    let (ledger, keeping) =
        Ledger::keep(flow.kubelets.client(), &flow.name, pods_per_node as usize);
    flow.kubelets.runtime().spawn(keeping);

    for index in 0..DEPLOYMENTS {
        flow.create(&flow.deployment(&format!("web-{index}"), replicas));
    }
    kill_at_random(&mut flow, pods / PODS_PER_KILL, &mut random);
    wait_until_rolled(&flow, "busybox:1", replicas);
    for index in 0..DEPLOYMENTS {
        flow.kubectl(&format!("set image deployment web-{index} main=busybox:2"));
    }
    kill_at_random(&mut flow, pods / PODS_PER_KILL, &mut random);
    wait_until_rolled(&flow, "busybox:2", replicas);

    let ledger = ledger.lock().expect("the lock is not poisoned");
    assert_eq!(ledger.violations(), [""; 0], "seed {seed}");
    assert!(
        ledger.bound() >= 2 * pods as usize,
        "{} pods were bound",
        ledger.bound()
    );
    let twice: Vec<(String, usize)> = bindings(&mut flow)
        .into_iter()
        .filter(|b| b.1 > 1)
        .collect();
    assert_eq!(twice, [], "pods bound more than once, seed {seed}");
}

fn number(variable: &str) -> Option<u32> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text}: expected a number")),
    )
}

fn kill_at_random(flow: &mut Flow, kills: u32, random: &mut fastrand::Rng) {
    let launched = flow.target.launched().expect("the cluster is ours");
    for _ in 0..kills {
        std::thread::sleep(Duration::from_millis(random.u64(LIVES)));
        let process = if random.bool() {
            &mut launched.scheduler
        } else {
            &mut launched.controllers
        };
        process.kill_and_restart();
    }
}

/// Every deployment has its pods, all of this image and running, and there are no others.
fn wait_until_rolled(flow: &Flow, image: &str, replicas: u32) {
    let patience = PATIENCE_PER_POD * (replicas * DEPLOYMENTS);
    let deadline = Instant::now() + patience;
    for index in 0..DEPLOYMENTS {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = left.as_secs().max(1);
        let name = format!("web-{index}");
        flow.kubectl(&format!(
            "rollout status deployment {name} --timeout={timeout}s"
        ));
        flow.until(
            &format!("get pods -l app={name} -o json"),
            "its pods",
            |shown| {
                let shown: Value = serde_json::from_str(shown).expect("kubectl prints JSON");
                let pods = shown["items"].as_array().expect("a list");
                pods.len() == replicas as usize && pods.iter().all(|pod| is_settled(pod, image))
            },
        );
    }
}

fn is_settled(pod: &Value, image: &str) -> bool {
    pod["spec"]["containers"][0]["image"] == image
        && pod["spec"]["nodeName"].is_string()
        && pod["status"]["phase"] == "Running"
        && pod["metadata"]["deletionTimestamp"].is_null()
}

/// How often each pod was bound, by the server's own account.
fn bindings(flow: &mut Flow) -> BTreeMap<String, usize> {
    let launched = flow.target.launched().expect("the cluster is ours");
    let mut bindings = BTreeMap::new();
    for line in launched.audit_log().lines() {
        let event: Value = serde_json::from_str(line).expect("audit events are JSON");
        let subject = &event["objectRef"];
        let is_answer = event["stage"] == "ResponseComplete";
        let is_binding =
            subject["subresource"] == "binding" && event["responseStatus"]["code"] == 201;
        if is_answer && is_binding {
            let pod = subject["name"]
                .as_str()
                .expect("bindings name a pod")
                .to_owned();
            *bindings.entry(pod).or_default() += 1;
        }
    }
    assert!(!bindings.is_empty(), "the audit log has no bindings");
    bindings
}
