//! Properties of the configuration readers.

use plimsoll_core::config::document::{self, Content, Entry, Node, ScalarValue};
use plimsoll_core::config::{
    CpuSet, Profile, convert_okd_node_config, parse_taint, read_command_line, read_file,
    read_kubelet_configuration, read_okd_node_config,
};
use plimsoll_core::problem::Position;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

const HERE: Position = Position { line: 1, column: 1 };

/// Pieces that configuration files are made of, in any order.
fn yaml_like() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\n"),
        Just("  "),
        Just("- "),
        Just(": "),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(", "),
        Just("&a "),
        Just("*a"),
        Just("<<: "),
        Just("!!int "),
        Just("? "),
        Just("---\n"),
        Just("| \n"),
        Just("\""),
        Just("'"),
        Just("#"),
        Just("%YAML 1.1\n"),
        Just("kind: KubeletConfiguration\n"),
        Just("kubeletArguments:\n"),
        Just("eviction-hard"),
        Just("evictionHard"),
        Just("memory.available<1Gi"),
        Just("memory.available"),
        Just("100%"),
        Just("kube-reserved"),
        Just("cpu=1"),
        Just("null"),
        Just("-1"),
        Just("1e400"),
        Just("0x"),
        Just(".nan"),
        Just("true"),
        Just("é"),
        Just("\u{0}"),
        Just("\t"),
    ];
    vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn read_everywhere(bytes: &[u8]) {
    let parsed = document::parse(bytes);
    for document in &parsed.documents {
        document.to_json("", &mut Vec::new());
        document.to_yaml();
    }
    read_file(bytes, None);
    read_kubelet_configuration(bytes, Profile::Kubernetes136);
    read_okd_node_config(bytes, Profile::Okd36);
    convert_okd_node_config(bytes, Profile::Okd39);
}

/// Values of every type, keys unique as a file should have them.
fn tree() -> impl Strategy<Value = Node> {
    let scalar = prop_oneof![
        Just(Node::scalar("null", ScalarValue::Null, HERE)),
        any::<bool>().prop_map(|b| Node::scalar(b.to_string(), ScalarValue::Bool(b), HERE)),
        any::<i64>().prop_map(|n| Node::scalar(n.to_string(), ScalarValue::Int(n), HERE)),
        ".*".prop_map(|text| Node::text(text, HERE)),
        "(yes|0x1F|~|1e3|a: b|- x|#c|\\PC{0,8})".prop_map(|text| Node::text(text, HERE)),
    ];
    scalar.prop_recursive(4, 32, 5, |inner| {
        let node = |content| Node {
            position: HERE,
            content,
        };
        let entry = |(key, value)| Entry {
            key,
            key_position: HERE,
            value,
        };
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(move |items| node(Content::Sequence(items))),
            btree_map(".{0,12}", inner, 0..5).prop_map(move |entries| {
                node(Content::Mapping(entries.into_iter().map(entry).collect()))
            }),
        ]
    })
}

fn json(node: &Node) -> serde_json::Value {
    let mut problems = Vec::new();
    let value = node.to_json("", &mut problems);
    assert_eq!(problems, []);
    value
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..300)) {
        read_everywhere(&bytes);
    }

    #[test]
    fn no_yaml_like_text_causes_a_panic(text in yaml_like()) {
        read_everywhere(text.as_bytes());
    }

    #[test]
    fn arbitrary_field_values_never_panic(
        field in "(evictionHard|kubeReserved|maxPods|registerWithTaints|enforceNodeAllocatable|qosReserved|reservedSystemCPUs|memorySwap)",
        value in tree(),
    ) {
        let mapping = Content::Mapping(vec![Entry { key: field, key_position: HERE, value }]);
        let text = Node { position: HERE, content: mapping }.to_yaml();
        read_everywhere(text.as_bytes());
    }

    #[test]
    fn arbitrary_arguments_never_panic(
        names in vec("(--)?[a-z-]{0,12}|--(eviction-hard|max-pods|reserved-memory|node-labels|register-with-taints|manifest-url-header|reserved-cpus)", 0..4),
        values in vec("=?[ -~é]{0,20}", 0..4),
    ) {
        let arguments: Vec<String> = names
            .iter()
            .zip(values.iter().chain(std::iter::repeat(&String::new())))
            .map(|(name, value)| format!("{name}{value}"))
            .collect();
        read_command_line(&arguments, Profile::Kubernetes136);
    }

    #[test]
    fn trees_read_back_as_they_were_rendered(tree in tree()) {
        let text = tree.to_yaml();
        let parsed = document::parse(text.as_bytes());
        prop_assert_eq!(&parsed.problems, &[], "{}", text);
        let expected = json(&tree);
        match parsed.documents.as_slice() {
            [] => prop_assert!(expected.is_null()),
            documents => prop_assert_eq!(json(&documents[0]), expected, "{}", text),
        }
    }

    #[test]
    fn cpu_sets_read_back_as_they_were_printed(cpus in vec(0u32..300, 0..20)) {
        let list = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let set = CpuSet::parse(&list).unwrap();
        prop_assert_eq!(CpuSet::parse(&set.to_string()).unwrap(), set);
    }

    #[test]
    fn taints_read_back_as_they_were_printed(
        key in "[a-z./-]{1,10}",
        value in "[a-z0-9]{0,5}",
        effect in "(NoSchedule|PreferNoSchedule|NoExecute)",
    ) {
        let taint = parse_taint(&format!("{key}={value}:{effect}")).unwrap();
        prop_assert_eq!(parse_taint(&taint.to_string()).unwrap(), taint);
    }

    #[test]
    fn converted_arguments_keep_their_meaning(
        max_pods in 1i32..1000,
        memory in 1u32..1000,
        threshold in 1u32..100,
        seconds in 1u32..10_000,
        driver in "(systemd|cgroupfs)",
    ) {
        let text = format!(
            "apiVersion: v1\nkind: NodeConfig\nkubeletArguments:\n  max-pods: ['{max_pods}']\n  \
             kube-reserved: ['memory={memory}Mi']\n  \
             eviction-hard: ['memory.available<{memory}Mi,nodefs.available<{threshold}%']\n  \
             eviction-pressure-transition-period: ['{seconds}s']\n  cgroup-driver: ['{driver}']\n"
        );
        let conversion = convert_okd_node_config(text.as_bytes(), Profile::Okd39);
        prop_assert_eq!(&conversion.original.problems, &[]);
        let yaml = conversion.document.to_yaml();
        let reading = read_kubelet_configuration(yaml.as_bytes(), Profile::Kubernetes136);
        prop_assert_eq!(&reading.problems, &[]);
        let (before, after) = (conversion.original.config, reading.config);
        prop_assert_eq!(before.max_pods.value, after.max_pods.value);
        prop_assert_eq!(before.kube_reserved.value, after.kube_reserved.value);
        prop_assert_eq!(before.eviction_hard.value, after.eviction_hard.value);
        prop_assert_eq!(
            before.eviction_pressure_transition_period.value,
            after.eviction_pressure_transition_period.value
        );
        prop_assert_eq!(before.cgroup_driver.value, after.cgroup_driver.value);
    }
}
