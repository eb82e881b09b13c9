//! Every parser on arbitrary input: it may refuse, it may not panic or hang.
//!
//! `scripts/test fuzz` runs each on a million inputs; `PROPTEST_CASES` sets another number.

use std::collections::BTreeMap;

use plimsoll_core::admission::overcommit::{Settings, Variant};
use plimsoll_core::config::reserved::{self, Reserved};
use plimsoll_core::config::{
    CpuSet, Profile, convert_okd_node_config, document, parse_taint, read_command_line, read_file,
};
use plimsoll_core::object::selector::{FieldSelector, LabelSelector};
use plimsoll_core::quantity::Quantity;
use plimsoll_core::scheduling::configuration;
use plimsoll_core::threshold::flag::{Separator, parse_map};
use plimsoll_core::threshold::{Duration, Statements};
use proptest::prelude::*;

/// Arbitrary input, and texts made of the tokens of a grammar, which get further into its parser.
fn input(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    let near = proptest::collection::vec(proptest::sample::select(words), 0..24);
    prop_oneof![
        1 => any::<String>(),
        3 => near.prop_map(|words| words.concat()),
    ]
}

const NUMBER: &[&str] = &[
    "0",
    "1",
    "5",
    "9",
    "00",
    "999999999",
    ".",
    "+",
    "-",
    "e",
    "E",
    "i",
    "n",
    "u",
    "m",
    "k",
    "K",
    "M",
    "G",
    "T",
    "P",
    "Ki",
    "Ei",
    "_",
    "0x",
    "p",
    "inf",
    "NaN",
    "%",
    " ",
];

const DURATION: &[&str] = &[
    "0",
    "1",
    "9",
    "9223372036854775807",
    ".",
    "+",
    "-",
    "ns",
    "us",
    "µs",
    "ms",
    "s",
    "m",
    "h",
    " ",
];

const SELECTOR: &[&str] = &[
    "a", "b/c", "app", "=", "==", "!=", "!", ",", "(", ")", "in", "notin", " ", "<", ">", "1", "-",
    "\\", "x.y/z", "\u{e9}",
];

const FLAG: &[&str] = &[
    "memory.available",
    "nodefs.inodesFree",
    "pid.available",
    "<",
    "=",
    ",",
    "1Gi",
    "10%",
    "1m30s",
    "0",
    "-1",
    " ",
    "cpu",
    "memory",
    "pods",
    ":",
    "NoSchedule",
    "key",
    "0-3",
    "-",
];

const DOCUMENT: &[&str] = &[
    "apiVersion: kubelet.config.k8s.io/v1beta1\n",
    "kind: KubeletConfiguration\n",
    "kind: NodeConfig\n",
    "apiVersion: v1\n",
    "kubeletArguments:\n",
    "  eviction-hard:\n",
    "  - memory.available<500Mi\n",
    "evictionHard:\n",
    "  memory.available: 1Gi\n",
    "  nodefs.available: 10%\n",
    "maxPods: 1\n",
    "featureGates: {A: true}\n",
    "  kube-reserved: [",
    "'cpu=1,memory=1Gi'",
    "]\n",
    "{",
    "}",
    "[",
    "]",
    "- ",
    ": ",
    "\n",
    "  ",
    "&a ",
    "*a ",
    "\"",
    "'",
    "|\n",
    ">\n",
    "---\n",
    "...\n",
    "!!str ",
    "? ",
    "#",
    "~",
    "1e400",
    "0x7fffffffffffffff",
    "cpuRequestToLimitPercent: 25\n",
    "qosReserved: {memory: 50%}\n",
    "reservedSystemCPUs: 0-3\n",
];

const SCHEDULER: &[&str] = &[
    "apiVersion: kubescheduler.config.k8s.io/v1\n",
    "kind: KubeSchedulerConfiguration\n",
    "profiles:\n",
    "- schedulerName: a\n",
    "  plugins:\n",
    "    multiPoint:\n",
    "    score: {disabled: [{name: '*'}]}\n",
    "      enabled:\n",
    "      disabled:\n",
    "      - name: NodeResourcesFit\n",
    "        weight: 2147483647\n",
    "  pluginConfig:\n",
    "  - name: NodeResourcesFit\n",
    "  - name: PodTopologySpread\n",
    "  - name: NodeAffinity\n",
    "    args:\n",
    "      scoringStrategy: {type: MostAllocated, resources: [{name: cpu}]}\n",
    "      defaultConstraints: [{maxSkew: 1, topologyKey: a}]\n",
    "      addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}\n",
    "percentageOfNodesToScore: 50\n",
    "podInitialBackoffSeconds: -1\n",
    "leaderElection: {leaseDuration: 1h}\n",
    "extenders: [{}]\n",
    "{",
    "}",
    "[",
    "]",
    "~",
    "- ",
    ": ",
    "\n",
];

proptest! {
    #[test]
    fn quantity(text in input(NUMBER)) {
        if let Ok(quantity) = text.parse::<Quantity>() {
            let _ = (quantity.to_string(), quantity.value(), quantity.milli_value());
            let _ = quantity.as_approximate_f64();
        }
        let _ = Quantity::from_json_token(&text);
    }

    #[test]
    fn duration(text in input(DURATION)) {
        if let Ok(duration) = text.parse::<Duration>() {
            prop_assert_eq!(duration.to_string().parse::<Duration>(), Ok(duration));
        }
    }

    #[test]
    fn label_selector(text in input(SELECTOR)) {
        if let Ok(selector) = text.parse::<LabelSelector>() {
            let _ = selector.matches(&BTreeMap::from([("a".to_owned(), "b".to_owned())]));
        }
    }

    #[test]
    fn field_selector(text in input(SELECTOR)) {
        if let Ok(selector) = text.parse::<FieldSelector>() {
            let _ = selector.to_string();
        }
    }

    #[test]
    fn threshold(text in input(NUMBER), grace in input(DURATION)) {
        let map = |text: &str| BTreeMap::from([("memory.available".to_owned(), text.to_owned())]);
        let statements = Statements {
            hard: map(&text),
            soft: map(&text),
            soft_grace_period: map(&grace),
            minimum_reclaim: map(&text),
            enforce_node_allocatable: vec!["pods".to_owned()],
        };
        for threshold in statements.readable() {
            let _ = threshold.value.at_capacity(&"32Gi".parse().expect("a quantity"));
        }
        prop_assert_eq!(statements.parse().is_ok(), statements.problems().is_empty());
    }

    #[test]
    fn flag_texts(text in input(FLAG)) {
        for separator in [Separator::LessThan, Separator::Equals] {
            let _ = parse_map(&text, separator);
        }
        let _ = (CpuSet::parse(&text), parse_taint(&text));
        let map = BTreeMap::from([("memory".to_owned(), text)]);
        let _ = reserved::parse(Reserved::Kube, &map);
    }

    #[test]
    fn command_line(text in input(FLAG)) {
        let arguments = ["--eviction-hard", &text, "--kube-reserved", &text, &text];
        let _ = read_command_line(&arguments, Profile::Kubernetes136);
    }

    #[test]
    fn node_configuration(text in input(DOCUMENT)) {
        let _ = read_file(text.as_bytes(), None);
        let _ = convert_okd_node_config(text.as_bytes(), Profile::Okd39);
    }

    #[test]
    fn scheduler_configuration(text in input(SCHEDULER)) {
        let _ = configuration::read(text.as_bytes());
    }

    #[test]
    fn document_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        for tree in document::parse(&bytes).documents {
            let _ = tree.to_json("", &mut Vec::new());
            let _ = tree.to_yaml();
        }
    }

    #[test]
    fn override_settings(text in input(DOCUMENT)) {
        let _ = Settings::from_yaml(&text, Variant::Modern);
    }
}
