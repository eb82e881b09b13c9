//! Properties of the reader of scheduler configurations.

use plimsoll_core::scheduling::configuration::{Configuration, read};
use plimsoll_core::scheduling::plugin_names::{FilterPlugin, ScorePlugin};
use plimsoll_core::scheduling::registry::{DEFAULT_PLUGINS, ExtensionPoint, REGISTRY};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

fn file(rest: &Value) -> Vec<u8> {
    let mut file = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    });
    for (key, value) in rest.as_object().into_iter().flatten() {
        file[key] = value.clone();
    }
    file.to_string().into_bytes()
}

/// Plugins that can act at a point, each once, in any order.
fn plugins_at(point: ExtensionPoint) -> impl Strategy<Value = Vec<&'static str>> {
    let able = REGISTRY.iter().filter(move |p| p.points.contains(&point));
    let able: Vec<&'static str> = able.map(|plugin| plugin.name).collect();
    let most = able.len();
    proptest::sample::subsequence(able, 0..=most).prop_shuffle()
}

fn named(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name})).collect()
}

/// Pieces of configurations, in any order.
const PIECES: &[&str] = &[
    "apiVersion: kubescheduler.config.k8s.io/v1\n",
    "kind: KubeSchedulerConfiguration\n",
    "profiles:\n",
    "- schedulerName: a\n",
    "  plugins:\n",
    "    multiPoint:\n",
    "    score:\n",
    "    queueSort:\n",
    "      enabled:\n",
    "      disabled:\n",
    "      - name: '*'\n",
    "      - name: NodeAffinity\n",
    "      - name: PrioritySort\n",
    "        weight: -2147483648\n",
    "  pluginConfig:\n",
    "  - name: NodeResourcesFit\n",
    "  - name: DynamicResources\n",
    "    args:\n",
    "      scoringStrategy: {type: RequestedToCapacityRatio}\n",
    "      filterTimeout: 1h\n",
    "extenders: [{}]\n",
    "percentageOfNodesToScore: 300\n",
    "podMaxBackoffSeconds: 9223372036854775807\n",
    "leaderElection: {leaseDuration: -1s}\n",
    "~",
    "- ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    "\n",
];

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }

    #[test]
    fn pieces_of_configurations_never_panic(pieces in vec(select(PIECES), 0..24)) {
        let configuration = read(pieces.concat().as_bytes()).configuration;
        prop_assert!(!configuration.profiles.is_empty());
        let _ = configuration.queue_settings();
    }

    #[test]
    fn extension_point_runs_enabled_and_not_disabled_default_plugins(
        enabled in plugins_at(ExtensionPoint::Score),
        disabled in plugins_at(ExtensionPoint::Score),
    ) {
        let score = json!({"enabled": named(&enabled), "disabled": named(&disabled)});
        let reading = read(&file(&json!({"profiles": [{"plugins": {"score": score}}]})));
        prop_assert_eq!(&reading.problems, &[]);
        let plugins = &reading.configuration.plugins["default-scheduler"];
        let active = plugins.at(ExtensionPoint::Score).iter();
        let mut active: Vec<&str> = active.map(|active| active.name).collect();
        let able = |name: &str| {
            let mut all = REGISTRY.iter();
            all.any(|p| p.name == name && p.points.contains(&ExtensionPoint::Score))
        };
        let defaults = DEFAULT_PLUGINS.iter().map(|(name, _)| *name);
        let kept = defaults.filter(|name| able(name) && !disabled.contains(name));
        let mut expected: Vec<&str> = kept.chain(enabled).collect();
        active.sort_unstable();
        expected.sort_unstable();
        expected.dedup();
        prop_assert_eq!(active, expected);
    }

    #[test]
    fn with_defaults_off_the_order_is_that_of_the_file(
        filters in plugins_at(ExtensionPoint::Filter), scores in plugins_at(ExtensionPoint::Score),
    ) {
        let only = |names: &[&str]| json!({"enabled": named(names), "disabled": [{"name": "*"}]});
        let plugins = json!({"filter": only(&filters), "score": only(&scores)});
        let reading = read(&file(&json!({"profiles": [{"plugins": plugins}]})));
        prop_assert_eq!(&reading.problems, &[]);
        let profile = &reading.configuration.profiles[0];
        let expected = filters.iter().filter_map(|name| FilterPlugin::from_name(name));
        prop_assert_eq!(&profile.filters, &expected.collect::<Vec<_>>());
        let expected = scores.iter().filter_map(|name| ScorePlugin::from_name(name));
        let expected: Vec<_> = expected.map(|plugin| (plugin, 1)).collect();
        prop_assert_eq!(&profile.scores, &expected);
    }

    #[test]
    fn every_problem_has_a_line(name in "[A-Za-z*]{0,8}", number in any::<i64>()) {
        let list = json!([{"name": name, "weight": number}]);
        let set = json!({"enabled": list, "disabled": list});
        let reading = read(&file(&json!({
            "profiles": [{"plugins": {"filter": set, "multiPoint": set}, "pluginConfig": list}],
            "parallelism": number, "podInitialBackoffSeconds": number, &name: name,
        })));
        prop_assert!(reading.problems.iter().all(|problem| problem.position.is_some()));
    }
}

#[test]
fn the_default_configuration_is_that_of_a_bare_file() {
    let reading = read(&file(&json!({})));
    let default = format!("{:?}", Configuration::default());
    assert_eq!(format!("{:?}", reading.configuration), default);
}
