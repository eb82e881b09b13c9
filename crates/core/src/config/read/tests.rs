use crate::config::{CgroupDriver, Enforcement, SwapBehavior};
use crate::duration::Duration;
use crate::resources::{Bytes, Count, ResourceName};

use super::*;

const HEADER: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

fn kubelet(body: &str) -> Reading {
    read_kubelet_configuration(format!("{HEADER}{body}").as_bytes(), Profile::Kubernetes136)
}

fn okd(arguments: &str) -> Reading {
    let text = format!("apiVersion: v1\nkind: NodeConfig\nkubeletArguments:\n{arguments}");
    read_okd_node_config(text.as_bytes(), Profile::Okd39)
}

fn flags(arguments: &[&str]) -> Reading {
    read_command_line(arguments, Profile::Kubernetes136)
}

/// The problems with their lines, as a person sees them.
fn lines(reading: &Reading) -> Vec<String> {
    let line = |problem: &Problem| match problem.position {
        Some(position) => format!("{}: {problem}", position.line),
        None => problem.to_string(),
    };
    reading.problems.iter().map(line).collect()
}

fn is_fine(reading: Reading) -> NodeConfig {
    assert_eq!(lines(&reading), [""; 0]);
    reading.config
}

#[test]
fn a_kubelet_configuration_is_read_into_types() {
    let config = is_fine(kubelet(
        "kubeReserved: {cpu: 200m, memory: 2Gi}\n\
         systemReserved: {memory: 1Gi, pid: '1000'}\n\
         enforceNodeAllocatable: [pods, kube-reserved]\n\
         kubeReservedCgroup: /kube\n\
         cgroupDriver: systemd\n\
         evictionHard: {memory.available: 500Mi}\n\
         evictionPressureTransitionPeriod: 1m30s\n\
         memorySwap: {swapBehavior: LimitedSwap}\n\
         failSwapOn: false\n\
         podPidsLimit: 4096\n\
         featureGates: {QOSReserved: true}\n\
         qosReserved: {memory: 50%}\n\
         containerLogMaxSize: 20Mi\n\
         registerWithTaints: [{key: dedicated, value: infra, effect: NoSchedule}]\n\
         authentication: {anonymous: {enabled: false}}\n",
    ));
    assert_eq!(
        config
            .kube_reserved
            .get(&ResourceName::CPU)
            .unwrap()
            .to_string(),
        "200m"
    );
    assert_eq!(
        *config.enforce_node_allocatable,
        [Enforcement::Pods, Enforcement::KubeReserved]
    );
    assert_eq!(*config.cgroup_driver, CgroupDriver::Systemd);
    assert_eq!(
        *config.eviction_pressure_transition_period,
        Duration::from_secs(90)
    );
    assert_eq!(*config.swap_behavior, SwapBehavior::LimitedSwap);
    assert_eq!(*config.pod_pids_limit, Some(Count(4096)));
    assert_eq!(config.qos_reserved[&ResourceName::MEMORY], 50);
    assert_eq!(*config.container_log_max_size, Bytes(20 << 20));
    assert_eq!(
        config.register_with_taints[0].to_string(),
        "dedicated=infra:NoSchedule"
    );
    assert!(config.anonymous_auth.is_set() && !*config.anonymous_auth);
}

#[test]
fn settings_remember_where_they_were_set() {
    let config = is_fine(kubelet(
        "maxPods: 110\nevictionHard:\n  memory.available: 1Gi\n",
    ));
    assert_eq!(
        config.max_pods.origin.as_ref().unwrap().to_string(),
        "maxPods (line 3)"
    );
    assert!(!config.pods_per_core.is_set());
    let origin = config.origin_of("evictionHard[memory.available]").unwrap();
    assert_eq!(
        origin.to_string(),
        "evictionHard[memory.available] (line 5)"
    );
    let origin = config.origin_of("evictionHard[pid.available]").unwrap();
    assert_eq!(origin.path, "evictionHard");
}

#[test]
fn hard_thresholds_have_defaults_in_files_only_and_lose_them_when_set() {
    let defaults = [
        "imagefs.available",
        "imagefs.inodesFree",
        "memory.available",
        "nodefs.available",
        "nodefs.inodesFree",
    ];
    let signals =
        |config: NodeConfig| -> Vec<String> { config.eviction_hard.value.into_keys().collect() };
    assert_eq!(signals(is_fine(kubelet(""))), defaults);
    assert_eq!(signals(is_fine(kubelet("evictionHard:\n"))), defaults);
    assert_eq!(signals(is_fine(kubelet("evictionHard: {}\n"))), [""; 0]);
    let one = "evictionHard: {pid.available: 10%}\n";
    assert_eq!(signals(is_fine(kubelet(one))), ["pid.available"]);
    let merged = is_fine(kubelet(&format!(
        "{one}mergeDefaultEvictionSettings: true\n"
    )));
    assert_eq!(merged.eviction_hard.len(), 6);
    assert_eq!(signals(is_fine(flags(&[]))), [""; 0]);
    assert_eq!(signals(is_fine(okd("  max-pods: ['20']\n"))).len(), 4);
}

#[test]
fn zero_means_the_default_in_a_file_but_not_in_flags() {
    let body = "maxPods: 0\nevictionPressureTransitionPeriod: 0s\nimageGCLowThresholdPercent: 0\n";
    let config = is_fine(kubelet(body));
    assert_eq!(*config.max_pods, 110);
    assert_eq!(
        *config.eviction_pressure_transition_period,
        Duration::from_secs(300)
    );
    assert_eq!(*config.image_gc_low_threshold_percent, 0);
    let config = is_fine(flags(&[
        "--max-pods=0",
        "--eviction-pressure-transition-period=0",
    ]));
    assert_eq!(*config.max_pods, 0);
    assert_eq!(*config.eviction_pressure_transition_period, Duration::ZERO);
}

#[test]
fn the_report_frequency_follows_the_update_frequency_in_a_file() {
    let config = is_fine(kubelet("nodeStatusUpdateFrequency: 20s\n"));
    assert_eq!(
        *config.node_status_report_frequency,
        Duration::from_secs(20)
    );
    let config = is_fine(flags(&["--node-status-update-frequency=20s"]));
    assert_eq!(
        *config.node_status_report_frequency,
        Duration::from_secs(300)
    );
}

#[test]
fn every_error_in_kubelet_configuration_is_reported_with_its_line() {
    let reading = kubelet(
        "evictonHard: {}\n\
         maxPods: many\n\
         kubeReserved: {cpu: 1}\n\
         failSwapOn: false\n\
         failSwapOn: true\n\
         memorySwap: {swapBehaviour: NoSwap}\n\
         pod-manifest-path: /x\n\
         evictionSoft: [a]\n\
         syncFrequency: 5\n\
         nodeStatusUpdateFrequency: 5 m\n",
    );
    assert_eq!(
        lines(&reading),
        [
            "7: failSwapOn: Duplicate value: \"failSwapOn\": the key is already set in line 6",
            "3: evictonHard: Unknown field: did you mean \"evictionHard\"?",
            "4: maxPods: Invalid value: \"many\": must be a whole number of 32 bits",
            "5: kubeReserved.cpu: Invalid value: 1: must be a text; put it in quotes",
            "8: memorySwap.swapBehaviour: Unknown field: did you mean \"swapBehavior\"?",
            "9: pod-manifest-path: Unknown field: did you mean \"staticPodPath\"?",
            "10: evictionSoft: Invalid value: a list: must be a mapping",
            "11: syncFrequency: Invalid value: 5: must be a duration such as \"5m\"",
            "12: nodeStatusUpdateFrequency: Invalid value: \"5 m\": time: unknown unit \" m\" in \
             duration \"5 m\"",
        ]
    );
}

#[test]
fn the_type_of_a_file_is_checked() {
    let reading = read_kubelet_configuration(
        b"kind: Kubelet\napiVersion: kubelet.config.k8s.io/v1\n",
        Profile::Kubernetes136,
    );
    assert_eq!(
        lines(&reading),
        [
            "2: apiVersion: Unsupported value: \"kubelet.config.k8s.io/v1\": supported values: \
             \"kubelet.config.k8s.io/v1beta1\"",
            "1: kind: Unsupported value: \"Kubelet\": supported values: \"KubeletConfiguration\"",
        ]
    );
    let reading = read_file(b"", None);
    assert_eq!(lines(&reading), ["kind: Required value: the file is empty"]);
    let reading = read_file(b"[1]", None);
    assert_eq!(
        lines(&reading),
        ["1: Invalid value: a list: the document must be a mapping"]
    );
}

#[test]
fn a_file_is_read_by_its_kind() {
    let node_config = b"kind: NodeConfig\napiVersion: v1\n";
    assert_eq!(
        is_fine(read_file(node_config, None)).profile,
        Profile::Okd39
    );
    let json = br#"{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","maxPods":5}"#;
    assert_eq!(*is_fine(read_file(json, None)).max_pods, 5);
    let two = format!("{HEADER}---\n{HEADER}");
    let reading = read_file(two.as_bytes(), None);
    assert_eq!(
        lines(&reading),
        ["4: Forbidden: the file holds a second document, which would not be read"]
    );
}

#[test]
fn okd_arguments_are_lists_of_texts() {
    let config = is_fine(okd("  kube-reserved:\n  - cpu=200m,memory=512Mi\n\
         \x20 eviction-hard:\n  - memory.available<500Mi\n  - nodefs.available<10%\n\
         \x20 experimental-qos-reserved: ['memory=50%']\n\
         \x20 experimental-allocatable-ignore-eviction: ['true']\n\
         \x20 node-labels: [region=primary, 'zone=a,rack=']\n\
         \x20 enforce-node-allocatable: ['pods']\n\
         \x20 pods-per-core: ['10']\n\
         \x20 docker-exec-handler: [native]\n"));
    assert_eq!(config.kube_reserved.len(), 2);
    assert_eq!(config.eviction_hard["memory.available"], "500Mi");
    assert_eq!(config.eviction_hard.len(), 2);
    assert_eq!(config.qos_reserved[&ResourceName::MEMORY], 50);
    assert!(*config.experimental_allocatable_ignore_eviction);
    assert_eq!(config.node_labels.len(), 3);
    assert_eq!(
        config.eviction_hard.origin.as_ref().unwrap().to_string(),
        "kubeletArguments.eviction-hard (line 7)"
    );
    assert_eq!(
        config.unapplied.0["--docker-exec-handler"].value,
        serde_json::json!("native")
    );
}

#[test]
fn okd_defaults_are_openshifts() {
    let config = is_fine(okd("  v: ['2']\n"));
    assert_eq!(*config.cgroup_driver, CgroupDriver::Systemd);
    assert_eq!((*config.max_pods, *config.pods_per_core), (250, 10));
    assert!(!*config.fail_cgroup_v1);
}

#[test]
fn okd_fields_lead_to_the_kubelets() {
    let text = "apiVersion: v1\nkind: NodeConfig\nnodeName: n1\ndnsIP: 10.0.0.1\n\
                dnsDomain: cluster.local\npodManifestConfig: {path: /etc/pods}\n\
                volumeDirectory: /var/lib/origin\nkubeletArguments: {root-dir: [/var/lib/kubelet]}\n\
                networkConfig: {mtu: 1450, networkPluginName: redhat/openshift-ovs-subnet}\n";
    let config = is_fine(read_okd_node_config(text.as_bytes(), Profile::Okd39));
    assert_eq!(*config.static_pod_path, "/etc/pods");
    assert_eq!(*config.root_dir, "/var/lib/kubelet", "arguments win");
    assert_eq!(*config.cluster_dns, ["10.0.0.1"]);
    assert_eq!(
        config.unapplied.0["okd.networkConfig.mtu"].value,
        serde_json::json!(1450)
    );
}

#[test]
fn scalar_instead_of_list_is_reported_with_correction() {
    let reading = okd("  eviction-pressure-transition-period: \"5m\"\n  max-pods: 5\n");
    assert_eq!(
        lines(&reading),
        [
            "4: kubeletArguments.eviction-pressure-transition-period: Invalid value: \"5m\": must \
             be a list of texts, write eviction-pressure-transition-period: [\"5m\"]",
            "5: kubeletArguments.max-pods: Invalid value: 5: must be a list of texts, write \
             max-pods: [\"5\"]",
        ]
    );
    let reading = okd("  max-pods: [5]\n");
    assert_eq!(
        lines(&reading),
        ["4: kubeletArguments.max-pods[0]: Invalid value: 5: must be a text; put it in quotes"]
    );
}

#[test]
fn an_argument_written_as_in_a_shell_is_explained() {
    let explanation = "eviction-pressure-transition-period=\"5m\" is not YAML for an argument, \
                       write eviction-pressure-transition-period: [\"5m\"]";
    let alone = okd("  eviction-pressure-transition-period=\"5m\"\n");
    assert_eq!(alone.problems.len(), 1);
    assert!(
        alone.problems[0].detail == explanation,
        "{:?}",
        alone.problems
    );
    let among = okd("  max-pods: ['5']\n  eviction-pressure-transition-period=\"5m\"\n");
    let last = among.problems.last().unwrap();
    assert_eq!(last.detail, explanation);
    assert_eq!(last.position.unwrap().line, 5);
    assert_eq!(
        among.problems.len(),
        2,
        "the syntax error itself is reported too"
    );
}

#[test]
fn two_values_for_one_signal_are_reported_and_the_last_wins() {
    let reading = okd("  eviction-hard:\n  - memory.available<1Gi\n  - memory.available<2Gi\n");
    assert_eq!(
        lines(&reading),
        [
            "6: kubeletArguments.eviction-hard[1]: Duplicate value: \"memory.available\": given \
          twice, the last one, \"2Gi\", wins"
        ]
    );
    assert_eq!(reading.config.eviction_hard["memory.available"], "2Gi");
}

#[test]
fn unknown_flags_are_refused_with_a_suggestion() {
    let reading = okd("  evictionHard: ['a<1']\n  evicton-soft: ['a<1']\n  nonsense: ['1']\n");
    assert_eq!(
        lines(&reading),
        [
            "4: kubeletArguments.evictionHard: Unknown field: is not a valid flag, did you mean \
             \"eviction-hard\"?",
            "5: kubeletArguments.evicton-soft: Unknown field: is not a valid flag, did you mean \
             \"eviction-soft\"?",
            "6: kubeletArguments.nonsense: Unknown field: is not a valid flag",
        ]
    );
}

#[test]
fn flag_values_may_follow_a_space_or_an_equals_sign() {
    let config = is_fine(flags(&[
        "--max-pods",
        "42",
        "--kernel-memcg-notification",
        "--eviction-hard=memory.available<1Gi",
        "--eviction-hard",
        "nodefs.available<10%",
        "--feature-gates=A=true,B=false",
        "--register-with-taints=a=b:NoSchedule,c:NoExecute",
        "--v=2",
        "--reserved-memory",
        "0:memory=1Gi;1:memory=2Gi",
        "--housekeeping_interval=10s",
    ]));
    assert_eq!(*config.max_pods, 42);
    assert_eq!(config.unapplied.0["kernelMemcgNotification"].value, true);
    assert_eq!(config.eviction_hard.len(), 2);
    assert_eq!(config.feature_gates.len(), 2);
    assert_eq!(config.register_with_taints.len(), 2);
    assert_eq!(
        config.max_pods.origin.as_ref().unwrap().to_string(),
        "--max-pods"
    );
    assert_eq!(
        config.unapplied.0["reservedMemory"].value,
        serde_json::json!([
            {"numaNode": 0, "limits": {"memory": "1Gi"}},
            {"numaNode": 1, "limits": {"memory": "2Gi"}},
        ])
    );
}

#[test]
fn malformed_flags_are_refused_with_kubelets_messages() {
    let reading = flags(&[
        "--max-pods=x",
        "--fail-swap-on=maybe",
        "--kube-reserved=cpu",
        "--feature-gates=A=b",
        "--sync-frequency=1d",
        "--max-pds=1",
        "serve",
        "--allow-privileged=true",
        "--max-pods",
    ]);
    assert_eq!(
        lines(&reading),
        [
            "--max-pds: Unknown field: is not a valid flag, did you mean \"max-pods\"?",
            "argument 7: unknown command serve",
            "--allow-privileged: Unknown field: is gone from the kubelet (let pods run privileged \
             containers); use Pod Security admission",
            "--max-pods: flag needs an argument: --max-pods",
            "--max-pods: invalid argument \"x\" for \"--max-pods\" flag: strconv.ParseInt: parsing \
             \"x\": invalid syntax",
            "--fail-swap-on: invalid argument \"maybe\" for \"--fail-swap-on\" flag: \
             strconv.ParseBool: parsing \"maybe\": invalid syntax",
            "--kube-reserved: invalid argument \"cpu\" for \"--kube-reserved\" flag: malformed \
             pair, expect string=string",
            "--feature-gates: invalid argument \"A=b\" for \"--feature-gates\" flag: invalid value \
             of A: b, err: strconv.ParseBool: parsing \"b\": invalid syntax",
            "--sync-frequency: invalid argument \"1d\" for \"--sync-frequency\" flag: time: \
             unknown unit \"d\" in duration \"1d\"",
        ]
    );
}

#[test]
fn okd_files_have_flags_for_settings() {
    let okd = Notation::OkdNodeConfig;
    assert_eq!(
        okd.own_words("add evictionSoft[memory.available], or remove it; failSwapOn is true."),
        "add eviction-soft[memory.available], or remove it; fail-swap-on is true."
    );
    assert_eq!(
        okd.own_path("evictionMaxPodGracePeriod"),
        "kubeletArguments.eviction-max-pod-grace-period"
    );
    let path = "kubeletArguments.eviction-hard[nodefs.available]";
    assert_eq!(okd.own_path(path), path);
    let kubelet = Notation::KubeletConfiguration;
    assert_eq!(kubelet.own_path("evictionHard"), "evictionHard");
}
