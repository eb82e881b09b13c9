//! `plimsoll check`.

use serde_json::Value;

use crate::{Run, plimsoll, root};

/// A machine that is the same everywhere the tests run.
const MACHINE: &str = "cpu=4,memory=32Gi,ephemeral-storage=100Gi,inodes=6553600,pid=32768,swap=0";

fn check(arguments: &[&str]) -> Run {
    let all = [&["check", "--capacity", MACHINE], arguments].concat();
    plimsoll(&all, "")
}

fn check_json(arguments: &[&str]) -> Value {
    let run = check(&[arguments, &["-o", "json"]].concat());
    serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("{e}: {}", run.transcript()))
}

/// Every example as a person sees it. A new example gets a snapshot by itself.
#[test]
fn every_example_parses() {
    let mut files = Vec::new();
    for folder in ["examples", "examples/okd", "examples/manifests"] {
        let entries = std::fs::read_dir(root().join(folder)).expect("the folder exists");
        for entry in entries {
            let entry = entry.expect("the folder is readable");
            if entry.path().is_file() {
                files.push(format!("{folder}/{}", entry.file_name().to_string_lossy()));
            }
        }
    }
    files.sort();
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        let name = file.replace(['/', '.'], "_");
        insta::assert_snapshot!(name, check(&[&file]).transcript());
    }
}

#[test]
fn a_manifest_is_compared_with_the_labels_of_its_namespace() {
    let manifest = "{apiVersion: v1, kind: Namespace, metadata: {name: ns, labels: \
         {pod-security.kubernetes.io/enforce: baseline, pod-security.kubernetes.io/warn: x}}}\n---\n\
         {apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: \
         {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: \
         {hostPID: true, containers: [{name: c, image: i}]}}}}\n";
    let run = plimsoll(
        &["check", "--capacity", MACHINE, "-o", "json", "-"],
        manifest,
    );
    let report: Value = serde_json::from_str(&run.stdout).expect("a report");
    let findings = report["findings"].as_array().expect("findings");
    let printed: Vec<(&Value, &Value)> = findings
        .iter()
        .map(|f| (&f["path"], &f["message"]))
        .collect();
    let has = |path: &str, text: &str| {
        let mut printed = printed.iter();
        printed
            .any(|(at, message)| *at == path && message.as_str().is_some_and(|m| m.contains(text)))
    };
    let level = "must be one of privileged, baseline, restricted";
    assert!(
        has("metadata.labels[pod-security.kubernetes.io/warn]", level),
        "{printed:?}"
    );
    let violation = "violates PodSecurity \"baseline:latest\": host namespaces (hostPID=true)";
    assert!(has("spec.template.spec", violation), "{printed:?}");
    assert_eq!(run.code, Some(1));
}

#[test]
fn the_32gi_example_prints_both_figures() {
    let run = check(&["examples/okd/32gi.yaml"]);
    let line = |name: &str| {
        run.stdout
            .lines()
            .find(|line| line.starts_with(name))
            .map(str::to_owned)
    };
    assert!(line("allocatable").is_some_and(|line| line.contains("28.902 Gi")));
    assert!(line("kubepods limit").is_some_and(|line| line.contains("29 Gi")));
    let report = check_json(&["examples/okd/32gi.yaml"]);
    let rows = report["documents"][0]["node"]["loadLine"]
        .as_array()
        .expect("rows");
    let memory = rows
        .iter()
        .find(|row| row["resource"] == "memory")
        .expect("memory");
    assert_eq!(memory["allocatable"], 31_033_655_296i64);
    assert_eq!(memory["kubepodsLimit"], 31_138_512_896i64);
}

#[test]
fn soft_threshold_cases_match_the_documentation() {
    let report = plimsoll(
        &[
            "check",
            "--capacity",
            "memory=100",
            "-o",
            "json",
            "examples/okd/soft-cases.yaml",
        ],
        "",
    );
    let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
    let cases = report["documents"][0]["node"]["softCases"]
        .as_array()
        .expect("cases");
    let row = |case: &Value| {
        [
            "reserved",
            "allocatable",
            "kubepodsLimit",
            "softFiresAbove",
            "hardFiresAbove",
        ]
        .map(|key| case[key].as_i64().expect("an integer"))
    };
    let rows: Vec<[i64; 5]> = cases.iter().map(row).collect();
    assert_eq!(
        rows,
        [
            [5, 90, 95, 85, 90],
            [10, 85, 90, 85, 85],
            [15, 80, 85, 85, 80]
        ]
    );
}

#[test]
fn json_and_yaml_are_equivalent() {
    let json = check(&["-o", "json", "examples/node-config.yaml"]);
    let yaml = check(&["-o", "yaml", "examples/node-config.yaml"]);
    insta::assert_snapshot!("node_config_json", json.stdout);
    insta::assert_snapshot!("node_config_yaml", yaml.stdout);
    assert_eq!((json.code, yaml.code), (Some(0), Some(0)));
}

#[test]
fn exit_codes_distinguish_success_errors_and_usage() {
    assert_eq!(check(&["examples/node-config.yaml"]).code, Some(0));
    assert_eq!(
        check(&["examples/manifests/daemon-set.yaml"]).code,
        Some(0),
        "warnings are no errors"
    );
    assert_eq!(check(&["examples/okd/eviction-hard.yaml"]).code, Some(1));
    assert_eq!(check(&["no-such-file.yaml"]).code, Some(1));
    assert_eq!(plimsoll(&["check"], "").code, Some(2));
    assert_eq!(plimsoll(&["check", "-o", "xml", "-"], "").code, Some(2));
    assert_eq!(
        plimsoll(&["check", "--capacity", "memory=x", "-"], "").code,
        Some(2)
    );
    assert_eq!(
        plimsoll(&["check", "--compat", "okd-4", "-"], "").code,
        Some(2)
    );
}

#[test]
fn standard_input_and_several_files_are_checked_together() {
    let pod = "kind: Pod\napiVersion: v1\nmetadata: {name: p, namespace: web}\n\
               spec: {containers: [{name: c}]}\n";
    let arguments = [
        "check",
        "--capacity",
        MACHINE,
        "-o",
        "json",
        "examples/manifests/overcommit.yaml",
        "-",
    ];
    let run = plimsoll(&arguments, pod);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let documents = report["documents"].as_array().expect("documents");
    let piped = documents
        .iter()
        .find(|document| document["file"] == "-")
        .expect("the pod");
    let changes = piped["workload"]["admission"]["changes"]
        .as_array()
        .expect("changes");
    assert!(changes.iter().any(|line| {
        line.as_str()
            .is_some_and(|line| line.contains("LimitRange limits"))
    }));
}

#[test]
fn an_override_below_the_minimum_is_refused_by_the_old_rules() {
    let run = check(&["--compat", "okd-3.6", "examples/manifests/overcommit.yaml"]);
    assert_eq!(run.code, Some(1));
    insta::assert_snapshot!(run.transcript());
}

#[test]
fn colour_is_for_terminals() {
    let run = check(&["examples/okd/eviction-hard.yaml"]);
    assert!(!run.stdout.contains('\u{1b}'));
}

/// Mistakes of all sorts in one file: all are reported, with their lines.
#[test]
fn all_mistakes_of_a_file_are_reported() {
    let text = "apiVersion: kubelet.config.k8s.io/v1beta1\n\
                kind: KubeletConfiguration\n\
                kubeReserved: {memory: 1GB}\n\
                evictionHrad: {memory.available: 100Mi}\n\
                evictionSoft: {memory.available: 500Mi, disk.available: 1Gi}\n\
                maxPods: many\n\
                maxPods: 10\n\
                enforceNodeAllocatable: [pods, pods, system-reserved]\n";
    let run = plimsoll(&["check", "--capacity", MACHINE, "-"], text);
    assert_eq!(run.code, Some(1));
    insta::assert_snapshot!(run.transcript());
}

#[test]
fn mistakes_in_manifests_are_reported_with_their_lines() {
    let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  \
                - name: c\n    resources:\n      requests: {cpu: 2, memory: 1GB}\n      \
                limts: {cpu: 1}\n---\nkind: Deployment\napiVersion: apps/v1\nspec: {replicas: three}\n\
                ---\nfoo: bar\n";
    let run = plimsoll(&["check", "--capacity", MACHINE, "-"], text);
    assert_eq!(run.code, Some(1));
    insta::assert_snapshot!(run.transcript());
}

#[test]
fn mistakes_in_a_scheduler_configuration_are_reported_with_their_lines() {
    let text = "apiVersion: kubescheduler.config.k8s.io/v1beta3\n\
                kind: KubeSchedulerConfiguration\n\
                percentageOfNodesToScore: 0\n\
                parallelism: 0\n\
                extenders:\n\
                - urlPrefix: http://localhost\n\
                profiles:\n\
                - plugins:\n    \
                    score:\n      \
                      enabled: [{name: ImageLocalty}]\n    \
                    postFilter:\n      \
                      disabled: [{name: '*'}]\n  \
                  pluginConfig:\n  \
                  - name: InterPodAffinity\n    \
                    args: {hardPodAffinityWeight: 101}\n";
    let run = plimsoll(&["check", "--capacity", MACHINE, "-"], text);
    assert_eq!(run.code, Some(1));
    insta::assert_snapshot!(run.transcript());
}

#[test]
fn scheduler_profiles_are_reported_as_data() {
    let report = check_json(&["examples/scheduler-config.yaml"]);
    let profiles = &report["documents"][0]["scheduler"]["profiles"];
    assert_eq!(profiles[0]["schedulerName"], "default-scheduler");
    assert_eq!(profiles[0]["arguments"], serde_json::json!([]));
    let packing = &profiles[1];
    let first = serde_json::json!({"plugin": "NodeResourcesFit", "weight": 5});
    assert_eq!(packing["scores"][0], first);
    assert_eq!(packing["arguments"][0]["value"], "MostAllocated");
}

#[test]
fn hostile_input_is_an_error_and_never_a_crash() {
    let deep = "[".repeat(10_000);
    let laughs = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n\
                  c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n\
                  e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n";
    for text in [
        deep.as_str(),
        laughs,
        "\0",
        "",
        "- - -",
        "kind: Pod",
        "kind: KubeSchedulerConfiguration",
        "kind: List\nitems: [1, null]",
    ] {
        let run = plimsoll(&["check", "--capacity", MACHINE, "-"], text);
        assert!(
            matches!(run.code, Some(0 | 1)),
            "{text:.40}: {}",
            run.transcript()
        );
    }
}

/// This machine's own capacity.
#[test]
fn without_a_capacity_this_machine_is_used() {
    let run = plimsoll(&["check", "-o", "json", "examples/okd/reserved.yaml"], "");
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let node = &report["documents"][0]["node"];
    assert_eq!(node["capacityFrom"], "this machine");
    assert!(
        node["loadLine"]
            .as_array()
            .is_some_and(|rows| rows.len() >= 3)
    );
}

/// What kubeadm writes: many fields, most of them zero, which means the default.
#[test]
fn a_configuration_full_of_zeros_is_clean() {
    let text = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n\
                authentication: {anonymous: {enabled: false}, webhook: {cacheTTL: 0s, enabled: true}}\n\
                authorization: {mode: Webhook}\nclusterDNS: [10.96.0.10]\ncontainerRuntimeEndpoint: ''\n\
                cpuManagerReconcilePeriod: 0s\ncrashLoopBackOff: {}\nevictionPressureTransitionPeriod: 0s\n\
                healthzBindAddress: 127.0.0.1\nhealthzPort: 10248\nhttpCheckFrequency: 0s\n\
                imageMinimumGCAge: 0s\nlogging: {flushFrequency: 0, verbosity: 0, options: \
                {json: {infoBufferSize: '0'}, text: {infoBufferSize: '0'}}}\nmemorySwap: {}\n\
                nodeStatusReportFrequency: 0s\nnodeStatusUpdateFrequency: 0s\nrotateCertificates: true\n\
                staticPodPath: /etc/kubernetes/manifests\nsyncFrequency: 0s\nvolumeStatsAggPeriod: 0s\n";
    let run = plimsoll(&["check", "--capacity", MACHINE, "-o", "json", "-"], text);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(
        report["findings"],
        serde_json::json!([]),
        "{}",
        run.transcript()
    );
}

#[test]
fn items_of_a_list_are_checked_under_their_own_paths() {
    let text = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [
            {"name": "x", "image": "i", "resources": {
                "limits": {"cpu": 0.5, "memory": "64Mi"}, "requests": {"memory": "128Mi"}}}
        ]}}
    ]}"#;
    let run = plimsoll(&["check", "--capacity", MACHINE, "-o", "json", "-"], text);
    assert_eq!(run.code, Some(1));
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let finding = &report["findings"][0];
    assert_eq!(
        finding["path"],
        "items[1].spec.containers[0].resources.requests"
    );
    assert_eq!(finding["line"], 5);
    let pod = &report["documents"][1];
    assert_eq!(pod["workload"]["qosClass"], "Burstable");
    assert_eq!(pod["workload"]["requests"]["cpu"], 500);
}
