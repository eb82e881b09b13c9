use serde_json::{Value, json};

use super::*;
use crate::object::node::NodeView;
use crate::scheduling::cluster::{Cluster, DisruptionBudget};
use crate::scheduling::plugin_names::PostFilterPlugin;
use crate::scheduling::profile::Profile;
use crate::scheduling::reference::{Search, filter_nodes};

fn pod(name: &str, priority: i32, node: &str, started: Option<&str>) -> Arc<SchedulingPod> {
    let mut api = json!({
        "metadata": {
            "name": name, "namespace": "default", "uid": name, "labels": {"app": name},
        },
        "spec": {
            "priority": priority, "nodeName": node,
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        },
        "status": {},
    });
    if let Some(time) = started {
        api["status"]["startTime"] = json!(time);
    }
    Arc::new(SchedulingPod::from_api(&serde_json::from_value(api).unwrap()).unwrap())
}

fn cluster(nodes: &[&str], pods: &[Arc<SchedulingPod>]) -> Cluster {
    let mut cluster = Cluster::new();
    for name in nodes {
        let api = json!({
            "metadata": {"name": name},
            "status": {"allocatable": {"cpu": "2", "pods": "10"}},
        });
        cluster.set_node(NodeView::from_api(&serde_json::from_value(api).unwrap()).unwrap());
    }
    for pod in pods {
        cluster.set_pod(Arc::clone(pod));
    }
    cluster
}

fn budget(selector: Value, allowed: i32) -> DisruptionBudget {
    let api = json!({
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": selector},
        "status": {"disruptionsAllowed": allowed},
    });
    DisruptionBudget::from_api(&serde_json::from_value(api).unwrap())
}

fn run(cluster: &Cluster, pod: &SchedulingPod) -> Preemption {
    run_with(&Profile::default(), cluster, pod)
}

fn run_with(profile: &Profile, cluster: &Cluster, pod: &SchedulingPod) -> Preemption {
    let cycle = Cycle {
        cluster,
        profile,
        pod,
    };
    let filtered = filter_nodes(&cycle, Search::All);
    preempt(&cycle, &filtered, 0)
}

fn victims(preemption: &Preemption) -> Vec<(u32, Vec<&str>, usize)> {
    let Preemption::Tried { candidates, .. } = preemption else {
        panic!("{preemption:?}");
    };
    let candidates = candidates.iter();
    candidates
        .map(|c| {
            let names = c.victims.iter().map(|pod| pod.pod_ref.name.as_str());
            (c.slot.0, names.collect(), c.pdb_violations)
        })
        .collect()
}

#[test]
fn preempts_least_important_pod() {
    let pods = [
        pod("old", 0, "n1", Some("2026-01-01T00:00:00Z")),
        pod("young", 0, "n1", Some("2026-01-02T00:00:00Z")),
    ];
    let preemption = run(&cluster(&["n1"], &pods), &pod("p", 10, "", None));
    assert_eq!(victims(&preemption), [(0, vec!["young"], 0)]);
    assert_eq!(preemption.message(1), "");
}

#[test]
fn preempts_no_pod_if_profile_has_no_preemption() {
    let pods = [pod("a", 0, "n1", None), pod("b", 0, "n1", None)];
    let cluster = cluster(&["n1"], &pods);
    for (post_filters, message) in [
        (vec![], ""),
        (
            vec![PostFilterPlugin::DynamicResources],
            "no new claims to deallocate",
        ),
    ] {
        let profile = Profile {
            post_filters,
            ..Profile::default()
        };
        let preemption = run_with(&profile, &cluster, &pod("p", 10, "", None));
        assert!(matches!(preemption, Preemption::SwitchedOff(_)));
        assert_eq!(preemption.message(1), message);
    }
}

#[test]
fn exhausted_budget_protects_its_pods_if_others_can_be_preempted() {
    let pods = [
        pod("old", 0, "n1", Some("2026-01-01T00:00:00Z")),
        pod("young", 0, "n1", Some("2026-01-02T00:00:00Z")),
    ];
    let mut cluster = cluster(&["n1"], &pods);
    cluster.set_budget(budget(json!({"matchLabels": {"app": "young"}}), 0));
    let preemptor = pod("p", 10, "", None);
    assert_eq!(victims(&run(&cluster, &preemptor)), [(0, vec!["old"], 0)]);
    cluster.set_budget(budget(json!({}), 0));
    assert_eq!(victims(&run(&cluster, &preemptor)), [(0, vec!["young"], 0)]);
}

#[test]
fn chooses_node_with_lowest_highest_victim_priority() {
    let pods = [
        pod("a", 5, "n1", None),
        pod("b", 5, "n1", None),
        pod("c", 3, "n2", None),
        pod("d", 4, "n2", None),
    ];
    let preemption = run(&cluster(&["n1", "n2"], &pods), &pod("p", 10, "", None));
    // Of pods that have not started the last is the most important.
    assert_eq!(victims(&preemption), [(0, vec!["a"], 0), (1, vec!["c"], 0)]);
    let best: Vec<u32> = preemption.best().iter().map(|c| c.slot.0).collect();
    assert_eq!(best, [1]);
}

#[test]
fn message_reports_no_victims() {
    let pods = [pod("a", 5, "n1", None), pod("b", 5, "n1", None)];
    let cluster = cluster(&["n1"], &pods);
    let preemption = run(&cluster, &pod("p", 5, "", None));
    assert_eq!(
        preemption.message(2),
        "no new claims to deallocate, preemption: 0/2 nodes are available: 1 No preemption victims \
         found for incoming pod, 1 Preemption is not helpful for scheduling."
    );
    assert!(preemption.best().is_empty());
}

#[test]
fn search_ends_after_enough_candidates() {
    let wanted = |percentage: i32, absolute: i32, nodes: usize| {
        let args = PreemptionArgs {
            min_candidate_nodes_percentage: percentage,
            min_candidate_nodes_absolute: absolute,
        };
        candidates_wanted(args, nodes)
    };
    assert_eq!(wanted(10, 100, 50), 50);
    assert_eq!(wanted(10, 100, 5000), 500);
    assert_eq!(wanted(10, 100, 500), 100);
}
