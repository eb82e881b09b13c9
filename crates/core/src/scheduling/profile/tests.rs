use serde_json::json;

use super::*;

fn with(config: serde_json::Value) -> Result<Profile, Vec<String>> {
    let list = config.as_array().unwrap();
    Profile::default()
        .with_plugin_config(list)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

#[test]
fn omitted_arguments_take_defaults() {
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
fn reports_every_invalid_argument_with_its_path() {
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
    assert_eq!(
        problems[3],
        "pluginConfig[3].args.minCandidateNodesPercentages: Unknown field: did you mean \
         \"minCandidateNodesPercentage\"?"
    );
    assert_eq!(
        problems[4],
        "pluginConfig[4].name: Invalid value: \"Nothing\": plugin \"Nothing\" does not exist"
    );
}

#[test]
fn arguments_of_every_plugin_are_checked() {
    let problem_of = |name: &str, args: serde_json::Value| {
        let problems = with(json!([{"name": name, "args": args}])).unwrap_err();
        let [problem] = problems.as_slice() else {
            panic!("{problems:?}");
        };
        let problem = problem.strip_prefix("pluginConfig[0]").unwrap();
        problem.to_owned()
    };
    for (name, args, expected) in [
        (
            "VolumeBinding",
            json!({"bindTimeoutSeconds": -1}),
            ".args.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not \
             be a negative value",
        ),
        (
            "VolumeBinding",
            json!({"shape": [{"utilization": 0, "score": 10}]}),
            ".args.shape: Invalid value: [{\"Utilization\":0,\"Score\":10}]: unexpected field \
             `shape`, remove it or turn on the feature gate StorageCapacityScoring",
        ),
        (
            "DynamicResources",
            json!({"filterTimeout": "-1s"}),
            ".args.filterTimeout: Invalid value: \"-1s\": must be zero or positive",
        ),
        (
            "DynamicResources",
            json!({"bindingTimeout": "999ms"}),
            ".args.bindingTimeout: Invalid value: \"999ms\": must be at least 1 second",
        ),
        (
            "DefaultPreemption",
            json!({"kind": "InterPodAffinityArgs"}),
            ".args.kind: Invalid value: \"InterPodAffinityArgs\": args for plugin \
             DefaultPreemption were not of type \
             DefaultPreemptionArgs.kubescheduler.config.k8s.io, got \
             InterPodAffinityArgs.kubescheduler.config.k8s.io",
        ),
        (
            "NodeResourcesFit",
            json!({"apiVersion": "kubescheduler.config.k8s.io/v1beta3"}),
            ".args.apiVersion: Unsupported value: \"kubescheduler.config.k8s.io/v1beta3\": \
             supported values: \"kubescheduler.config.k8s.io/v1\"",
        ),
        (
            "NodeResourcesFit",
            json!({"scoringStrategy": {"type": "LeastAllocated", "resources": [{"Name": "cpu"}]}}),
            ".args.scoringStrategy.resources[0].Name: Unknown field: did you mean \"name\"?",
        ),
        (
            "NodeResourcesFit",
            json!("fast"),
            ".args: Invalid value: \"fast\": must be a mapping",
        ),
        (
            "EBSLimits",
            json!({}),
            ": Invalid value: \"EBSLimits\": was invalid in version \"v1\" \
             (KubeSchedulerConfiguration is version \"kubescheduler.config.k8s.io/v1\")",
        ),
        (
            "NodeAfinity",
            json!({}),
            ".name: Invalid value: \"NodeAfinity\": plugin \"NodeAfinity\" does not exist, did you \
             mean \"NodeAffinity\"?",
        ),
    ] {
        assert_eq!(problem_of(name, args), expected, "{name}");
    }
    assert!(with(json!([{"name": "ImageLocality", "args": {"any": "thing"}}])).is_ok());
}

#[test]
fn larger_clusters_score_smaller_share_of_nodes() {
    let mut profile = Profile::default();
    assert_eq!(profile.nodes_to_find(5000), 5000);
    profile.percentage_of_nodes_to_score = Some(0);
    for (nodes, enough) in [(99, 99), (100, 100), (1000, 420), (5000, 500), (6000, 300)] {
        assert_eq!(profile.nodes_to_find(nodes), enough, "{nodes} nodes");
    }
    profile.percentage_of_nodes_to_score = Some(100);
    assert_eq!(profile.nodes_to_find(5000), 5000);
}
