use serde_json::json;

use super::*;

fn with(config: serde_json::Value) -> Result<Profile, Vec<String>> {
    let list = config.as_array().unwrap();
    Profile::default()
        .with_plugin_config(list)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

#[test]
fn what_arguments_leave_out_takes_the_default() {
    let profile = with(json!([
        {"name": "NodeResourcesFit", "args": {"scoringStrategy": {
            "type": "RequestedToCapacityRatio",
            "resources": [{"name": "cpu"}],
            "requestedToCapacityRatio": {"shape": [
                {"utilization": 0, "score": 0}, {"utilization": 100, "score": 10},
            ]},
        }}},
        {"name": "InterPodAffinity", "args": {"kind": "InterPodAffinityArgs"}},
        {"name": "PodTopologySpread", "args": {}},
    ]))
    .unwrap();
    assert_eq!(profile.fit.resources, [(ResourceName::CPU, 1)]);
    let ScoringStrategy::RequestedToCapacityRatio(shape) = &profile.fit.strategy else {
        panic!("{:?}", profile.fit.strategy);
    };
    assert_eq!(shape[1].score, 100);
    assert_eq!(profile.inter_pod_affinity.hard_pod_affinity_weight, 1);
    assert!(profile.spread.is_system);
}

#[test]
fn every_wrong_argument_is_told_with_its_path() {
    let problems = with(json!([
        {"name": "NodeResourcesFit", "args": {"scoringStrategy": {
            "type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 101}],
        }}},
        {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": -1}},
        {"name": "InterPodAffinity"},
        {"name": "DefaultPreemption", "args": {"minCandidateNodesPercentages": 1}},
        {"name": "Nothing"},
    ]))
    .unwrap_err();
    assert_eq!(
        problems[0],
        "pluginConfig[0].args.scoringStrategy.resources[0].weight: Invalid value: 101: resource \
         weight of cpu not in valid range (0, 100]"
    );
    assert_eq!(
        problems[1],
        "pluginConfig[1].args.hardPodAffinityWeight: Invalid value: -1: not in valid range [0, 100]"
    );
    assert_eq!(
        problems[2],
        "pluginConfig[2]: Duplicate value: \"InterPodAffinity\""
    );
    assert!(problems[3].starts_with("pluginConfig[3].args: Invalid value:"));
    assert!(problems[4].starts_with("pluginConfig[4].name: Unsupported value: \"Nothing\""));
}

#[test]
fn fewer_nodes_are_enough_the_larger_the_cluster() {
    let mut profile = Profile::default();
    assert_eq!(profile.nodes_to_find(5000), 5000);
    profile.percentage_of_nodes_to_score = Some(0);
    for (nodes, enough) in [(99, 99), (100, 100), (1000, 420), (5000, 500), (6000, 300)] {
        assert_eq!(profile.nodes_to_find(nodes), enough, "{nodes} nodes");
    }
    profile.percentage_of_nodes_to_score = Some(100);
    assert_eq!(profile.nodes_to_find(5000), 5000);
}
