//! `scheduler/*.json`: a cluster, an incoming pod, and what the scheduler makes of it.

use std::sync::Arc;

use plimsoll_core::object::node::NodeView;
use plimsoll_core::object::taint::ComparisonOperators;
use plimsoll_core::scheduling::cluster::{Cluster, DisruptionBudget, NodeSlot, NodeState};
use plimsoll_core::scheduling::filter_results::FilterResults;
use plimsoll_core::scheduling::filters::Cycle;
use plimsoll_core::scheduling::plugin_names::{FilterPlugin, Rejection};
use plimsoll_core::scheduling::pod::{Request, SchedulingPod};
use plimsoll_core::scheduling::preemption::{Preemption, ineligibility, preempt};
use plimsoll_core::scheduling::profile::Profile;
use plimsoll_core::scheduling::reference::{
    Scored, Search, all_rejecters, filter_nodes, score_nodes,
};
use plimsoll_core::scheduling::scores::PluginScore;
use plimsoll_testkit::vectors::{Outcome, compare};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

pub(crate) fn check(case: &Value) -> Outcome {
    let (cluster, profile) = (cluster(case), profile(&case["config"]));
    let pod = pod(&case["pod"]);
    let cycle = Cycle {
        cluster: &cluster,
        profile: &profile,
        pod: &pod,
    };
    compare(&answer(&cycle), &case["expected"])
}

fn read<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn pod(json: &Value) -> Arc<SchedulingPod> {
    Arc::new(SchedulingPod::from_api(&read(json)).unwrap())
}

fn cluster(case: &Value) -> Cluster {
    let mut cluster = Cluster::new();
    for namespace in items(&case["namespaces"]) {
        let labels: Option<_> = read(&namespace["metadata"]["labels"]);
        let name = namespace["metadata"]["name"].as_str().unwrap();
        cluster.set_namespace(name, labels.unwrap_or_default());
    }
    for node in items(&case["nodes"]) {
        cluster.set_node(NodeView::from_api(&read(node)).unwrap());
    }
    for existing in items(&case["pods"]) {
        cluster.set_pod(pod(existing));
    }
    for service in items(&case["services"]) {
        cluster.owners.set_service(&read(service));
    }
    for set in items(&case["replicaSets"]) {
        cluster.owners.set_replica_set(&read(set));
    }
    for set in items(&case["statefulSets"]) {
        cluster.owners.set_stateful_set(&read(set));
    }
    for controller in items(&case["replicationControllers"]) {
        let owners = &mut cluster.owners;
        owners.set_replication_controller(&read(controller));
    }
    for budget in items(&case["podDisruptionBudgets"]) {
        cluster.set_budget(DisruptionBudget::from_api(&read(budget)));
    }
    cluster
}

fn profile(config: &Value) -> Profile {
    let list = config["pluginConfig"].as_array();
    let mut profile = Profile::default()
        .with_plugin_config(list.map_or(&[], Vec::as_slice))
        .unwrap();
    if config["featureGates"]["TaintTolerationComparisonOperators"] == json!(true) {
        profile.comparison_operators = ComparisonOperators::Enabled;
    }
    profile
}

fn answer(cycle: &Cycle<'_>) -> Value {
    let filtered = filter_nodes(cycle, Search::All);
    let scored = score_nodes(cycle, &filtered).unwrap();
    let requests = &cycle.pod.requests;
    let mut answer = json!({
        "podRequest": amounts(
            &requests.incoming, requests.non_zero_milli_cpu, requests.non_zero_memory,
        ),
        "preFilter": {
            "status": match &filtered.pre_filter.rejection {
                None => json!({"code": "Success"}),
                Some(rejection) => described(rejection),
            },
            "nodeNames": filtered.pre_filter.node_names.as_ref().map(|names| {
                names.iter().map(|name| name.as_str()).collect::<Vec<_>>()
            }),
            "skippedFilterPlugins": names(&filtered.pre_filter.skipped),
        },
        "feasibleCount": scored.nodes.len(),
        "nodes": nodes(cycle, &filtered, &scored),
    });
    if let Some((total, best)) = scored.best() {
        let skipped = scored.skipped.iter().map(|plugin| plugin.as_str());
        answer["skippedScorePlugins"] = json!(skipped.collect::<Vec<_>>());
        answer["bestTotal"] = json!(total);
        answer["bestNodes"] = sorted_names(cycle, best.into_iter());
    } else {
        let preemption = preempt(cycle, &filtered, 0);
        let node_count = cycle.cluster.node_count();
        let message = preemption.message(node_count);
        answer["failureMessage"] = json!(filtered.diagnosis(node_count).message(&message));
        answer["unschedulablePlugins"] = json!(filtered.unschedulable_plugins());
        answer["preemption"] = described_preemption(cycle, &preemption);
        answer["preemption"]["message"] = json!(Some(message).filter(|text| !text.is_empty()));
        let code_of = |slot: NodeSlot| filtered.rejection(slot).map(|rejection| rejection.code);
        let ineligibility = ineligibility(cycle, code_of);
        answer["preemption"]["eligible"] = json!(ineligibility.is_none());
        answer["preemption"]["ineligibleMessage"] = json!(ineligibility);
    }
    answer
}

fn nodes(cycle: &Cycle<'_>, filtered: &FilterResults, scored: &Scored) -> Vec<Value> {
    let described_node = |(slot, rejection): &(NodeSlot, Option<Rejection>)| {
        let node = node(cycle, *slot);
        // Zeros among the scalars are left out.
        let mut requested = node.requested().clone();
        requested.scalars.retain(|_, amount| *amount != 0);
        let mut used = amounts(
            &requested,
            node.non_zero_milli_cpu(),
            node.non_zero_memory(),
        );
        used["pods"] = json!(node.pods().len());
        let mut got = json!({
            "name": node.view.name.as_str(),
            "fits": rejection.is_none(),
            "used": used,
        });
        if let Some(rejection) = rejection {
            got["rejection"] = described(rejection);
            if filtered.pre_filter.reject(&node.view.name).is_none() {
                got["allRejecters"] = names(&all_rejecters(cycle, filtered, *slot));
            }
        }
        let scores = scored.nodes.iter().find(|(scored, _)| scored == slot);
        if let Some((_, scores)) = scores {
            let by = |part: fn(&PluginScore) -> i64| -> Map<String, Value> {
                let scores = scores.by_plugin.iter();
                scores
                    .map(|score| (score.plugin.to_string(), json!(part(score))))
                    .collect()
            };
            got["rawScores"] = json!(by(|score| score.raw));
            got["scores"] = json!(by(|score| score.normalized));
            got["total"] = json!(scores.total);
        }
        got
    };
    filtered.nodes.iter().map(described_node).collect()
}

fn described_preemption(cycle: &Cycle<'_>, preemption: &Preemption) -> Value {
    let Preemption::Tried {
        candidates,
        rejected,
    } = preemption
    else {
        return json!({});
    };
    let mut candidates: Vec<Value> = candidates
        .iter()
        .map(|candidate| {
            let victims = candidate.victims.iter().map(|pod| pod.pod_ref.to_string());
            json!({
                "node": node_name(cycle, candidate.slot),
                "victims": victims.collect::<Vec<_>>(),
                "pdbViolations": candidate.pdb_violations,
            })
        })
        .collect();
    let mut rejected: Vec<Value> = rejected
        .iter()
        .map(|(slot, rejection)| {
            let mut got = described(rejection);
            got["node"] = json!(node_name(cycle, *slot));
            got
        })
        .collect();
    for list in [&mut candidates, &mut rejected] {
        list.sort_by_key(|entry| entry["node"].as_str().map(str::to_owned));
    }
    let best = preemption.best();
    json!({
        "candidates": candidates,
        "nonCandidates": rejected,
        "nominated": sorted_names(cycle, best.iter().map(|candidate| candidate.slot)),
    })
}

fn described(rejection: &Rejection) -> Value {
    json!({
        "plugin": rejection.plugin.map(FilterPlugin::as_str),
        "code": rejection.code.as_str(),
        "reasons": rejection.reasons,
    })
}

fn amounts(request: &Request, non_zero_milli_cpu: i64, non_zero_memory: i64) -> Value {
    let scalars = request.scalars.iter();
    let scalars = scalars.map(|(name, amount)| (name.to_string(), json!(amount)));
    json!({
        "milliCPU": request.milli_cpu,
        "memory": request.memory,
        "ephemeralStorage": request.ephemeral_storage,
        "scalar": scalars.collect::<Map<String, Value>>(),
        "nonZeroMilliCPU": non_zero_milli_cpu,
        "nonZeroMemory": non_zero_memory,
    })
}

fn node<'a>(cycle: &Cycle<'a>, slot: NodeSlot) -> &'a NodeState {
    cycle.cluster.node(slot).unwrap()
}

fn node_name<'a>(cycle: &Cycle<'a>, slot: NodeSlot) -> &'a str {
    node(cycle, slot).view.name.as_str()
}

fn sorted_names(cycle: &Cycle<'_>, slots: impl Iterator<Item = NodeSlot>) -> Value {
    let mut names: Vec<&str> = slots.map(|slot| node_name(cycle, slot)).collect();
    names.sort_unstable();
    json!(names)
}

fn names(plugins: &[FilterPlugin]) -> Value {
    let names = plugins.iter().map(|plugin| plugin.as_str());
    json!(names.collect::<Vec<_>>())
}
