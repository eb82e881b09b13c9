//! The rules one by one, the labels, the verdicts and the configuration.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::checks::violations;
use super::namespace::{Candidate, NamespaceVerdict, Survey};
use super::*;
use crate::admission::configuration::Given;
use crate::problem::Problem;

fn of(level: Level, version: &str) -> LevelVersion {
    LevelVersion {
        level,
        version: Version::parse(version).unwrap(),
    }
}

/// The violation of one rule by a pod: `reason (detail)`, empty if none.
fn violation(level: Level, version: &str, check: &str, metadata: &Value, spec: &Value) -> String {
    let pod = json!({"metadata": metadata, "spec": spec});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let subject = Subject::of_pod(&pod).unwrap();
    let mut found = violations(of(level, version), &subject);
    found.0.retain(|violation| violation.check == check);
    found.details()
}

/// A spec with containers `a`, `b` and so on, which have these fields.
fn containers(fields: &[Value]) -> Value {
    let named = fields.iter().zip('a'..).map(|(fields, name)| {
        let mut container = json!({"name": name.to_string()});
        for (field, value) in fields.as_object().into_iter().flatten() {
            container[field] = value.clone();
        }
        container
    });
    json!({"containers": named.collect::<Vec<_>>()})
}

/// A spec with containers that have these security contexts, in a pod that has another.
fn secured(pod: Value, fields: &[Value]) -> Value {
    let wrap = |security: &Value| json!({"securityContext": security});
    let mut spec = containers(&fields.iter().map(wrap).collect::<Vec<_>>());
    spec["securityContext"] = pod;
    spec
}

#[track_caller]
fn baseline(check: &str, spec: &Value, expected: &str) {
    assert_eq!(
        violation(Level::Baseline, "latest", check, &json!({}), spec),
        expected
    );
}

#[track_caller]
fn restricted(check: &str, spec: &Value, expected: &str) {
    assert_eq!(
        violation(Level::Restricted, "latest", check, &json!({}), spec),
        expected
    );
}

#[test]
fn host_namespaces() {
    let mut spec = containers(&[json!({})]);
    baseline("hostNamespaces", &spec, "");
    spec["hostPID"] = json!(true);
    baseline("hostNamespaces", &spec, "host namespaces (hostPID=true)");
    spec["hostNetwork"] = json!(true);
    spec["hostIPC"] = json!(true);
    let all = "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)";
    baseline("hostNamespaces", &spec, all);
}

#[test]
fn host_ports() {
    let ports = |ports: &[u32]| {
        let ports = ports
            .iter()
            .map(|port| json!({"containerPort": 1, "hostPort": port}));
        json!({"ports": ports.collect::<Vec<_>>()})
    };
    baseline("hostPorts", &containers(&[ports(&[0])]), "");
    let one = containers(&[ports(&[0, 80])]);
    baseline(
        "hostPorts",
        &one,
        r#"hostPort (container "a" uses hostPort 80)"#,
    );
    // Sorted as texts.
    let more = containers(&[ports(&[9000, 80]), ports(&[]), ports(&[443, 80])]);
    let expected = r#"hostPort (containers "a", "c" use hostPorts 443, 80, 9000)"#;
    baseline("hostPorts", &more, expected);
}

#[test]
fn host_addresses_in_probes_and_hooks() {
    let spec = containers(&[
        json!({"livenessProbe": {"httpGet": {"port": 1, "host": "10.0.0.1"}}}),
        json!({"readinessProbe": {"tcpSocket": {"port": 1}}}),
        json!({"lifecycle": {"preStop": {"tcpSocket": {"port": 1, "host": "10.0.0.1"}},
            "postStart": {"httpGet": {"port": 1, "host": "x"}}}}),
        json!({"startupProbe": {"httpGet": {"port": 1, "host": ""}}}),
    ]);
    let id = "hostProbesAndHostLifecycle";
    let expected = "probe or lifecycle host (containers \"a\", \"c\" use probe or lifecycle hosts \
        \"10.0.0.1\", \"x\")";
    baseline(id, &spec, expected);
    assert_eq!(
        violation(Level::Baseline, "v1.33", id, &json!({}), &spec),
        ""
    );
}

#[test]
fn host_path_volumes() {
    let mut spec = containers(&[json!({})]);
    spec["volumes"] =
        json!([{"name": "v", "hostPath": {"path": "/"}}, {"name": "e", "emptyDir": {}}]);
    baseline("hostPathVolumes", &spec, r#"hostPath volumes (volume "v")"#);
    spec["volumes"][1] = json!({"name": "w", "hostPath": {"path": "/"}});
    baseline(
        "hostPathVolumes",
        &spec,
        r#"hostPath volumes (volumes "v", "w")"#,
    );
}

#[test]
fn privileged_containers_of_all_sorts() {
    let bad = json!({"securityContext": {"privileged": true}});
    let mut spec = containers(&[
        bad.clone(),
        json!({"securityContext": {"privileged": false}}),
    ]);
    let one = r#"privileged (container "a" must not set securityContext.privileged=true)"#;
    baseline("privileged", &spec, one);
    spec["initContainers"] = json!([{"name": "i", "securityContext": {"privileged": true}}]);
    spec["ephemeralContainers"] = json!([{"name": "e", "securityContext": {"privileged": true}}]);
    let all =
        r#"privileged (containers "i", "a", "e" must not set securityContext.privileged=true)"#;
    baseline("privileged", &spec, all);
}

#[test]
fn capabilities() {
    let caps = |add: &[&str], drop: &[&str]| json!({"capabilities": {"add": add, "drop": drop}});
    let spec = secured(
        json!({}),
        &[
            caps(&["CHOWN", "NET_RAW"], &[]),
            caps(&["SYS_ADMIN"], &["ALL"]),
        ],
    );
    let expected = "non-default capabilities (containers \"a\", \"b\" must not include \"NET_RAW\", \
        \"SYS_ADMIN\" in securityContext.capabilities.add)";
    baseline("capabilities_baseline", &spec, expected);
    let expected = "unrestricted capabilities (container \"a\" must set \
        securityContext.capabilities.drop=[\"ALL\"]; containers \"a\", \"b\" must not include \
        \"CHOWN\", \"NET_RAW\", \"SYS_ADMIN\" in securityContext.capabilities.add)";
    restricted("capabilities_restricted", &spec, expected);
    let good = secured(json!({}), &[caps(&["NET_BIND_SERVICE"], &["X", "ALL"])]);
    restricted("capabilities_restricted", &good, "");
    let mut windows = containers(&[json!({})]);
    windows["os"] = json!({"name": "windows"});
    restricted("capabilities_restricted", &windows, "");
}

#[test]
fn app_armor_profiles_by_field_and_annotation() {
    let profile = |sort: &str| json!({"appArmorProfile": {"type": sort}});
    let good = secured(
        profile("RuntimeDefault"),
        &[profile("Localhost"), json!({})],
    );
    baseline("appArmorProfile", &good, "");
    let spec = secured(profile("Unconfined"), &[profile("Unconfined")]);
    let expected = "forbidden AppArmor profile (pod and container \"a\" must not set AppArmor \
        profile type to \"Unconfined\")";
    baseline("appArmorProfile", &spec, expected);
    let key = "container.apparmor.security.beta.kubernetes.io/a";
    let annotated = |value: &str| {
        let metadata = json!({"annotations": {key: value}});
        let spec = containers(&[json!({})]);
        violation(Level::Baseline, "v1.0", "appArmorProfile", &metadata, &spec)
    };
    assert_eq!(annotated("localhost/x"), "");
    assert_eq!(annotated("runtime/default"), "");
    assert_eq!(
        annotated("unconfined"),
        format!(
            "forbidden AppArmor profile (annotation must not set AppArmor profile type to \
             \"{key}=\"unconfined\"\")"
        )
    );
}

#[test]
fn se_linux_options() {
    let options = |options: Value| json!({"seLinuxOptions": options});
    let good = secured(
        options(json!({"type": "container_kvm_t"})),
        &[options(json!({}))],
    );
    baseline("seLinuxOptions", &good, "");
    let spec = secured(
        options(json!({"user": "u"})),
        &[
            options(json!({"type": "spc_t"})),
            json!({}),
            options(json!({"role": "r"})),
        ],
    );
    let expected = "seLinuxOptions (pod and containers \"a\", \"c\" set forbidden \
        securityContext.seLinuxOptions: type \"spc_t\"; user may not be set; role may not be set)";
    baseline("seLinuxOptions", &spec, expected);
    let engine = secured(options(json!({"type": "container_engine_t"})), &[json!({})]);
    baseline("seLinuxOptions", &engine, "");
    let old = violation(
        Level::Baseline,
        "v1.30",
        "seLinuxOptions",
        &json!({}),
        &engine,
    );
    assert!(old.contains("type \"container_engine_t\""), "{old}");
}

#[test]
fn seccomp_profiles() {
    let profile = |sort: &str| json!({"seccompProfile": {"type": sort}});
    let bad = secured(profile("Unconfined"), &[profile("Unconfined"), json!({})]);
    let expected = "seccompProfile (pod and container \"a\" must not set \
        securityContext.seccompProfile.type to \"Unconfined\")";
    baseline("seccompProfile_baseline", &bad, expected);
    restricted("seccompProfile_restricted", &bad, expected);
    let silent = secured(json!({}), &[profile("Localhost"), json!({})]);
    baseline("seccompProfile_baseline", &silent, "");
    let expected = "seccompProfile (pod or container \"b\" must set \
        securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")";
    restricted("seccompProfile_restricted", &silent, expected);
    restricted(
        "seccompProfile_restricted",
        &secured(profile("RuntimeDefault"), &[json!({})]),
        "",
    );
}

#[test]
fn seccomp_profiles_before_there_was_a_field() {
    let pod = "seccomp.security.alpha.kubernetes.io/pod";
    let container = "container.seccomp.security.alpha.kubernetes.io/a";
    let metadata = json!({"annotations": {pod: "unconfined", container: "localhost/x"}});
    let spec = containers(&[json!({})]);
    let id = "seccompProfile_baseline";
    let old = violation(Level::Restricted, "v1.18", id, &metadata, &spec);
    let expected = format!("seccompProfile (forbidden annotation {pod}=\"unconfined\")");
    assert_eq!(old, expected);
    assert_eq!(
        violation(Level::Baseline, "v1.19", id, &metadata, &spec),
        ""
    );
}

#[test]
fn sysctls_that_a_release_knew_to_be_safe() {
    let mut spec = containers(&[json!({})]);
    spec["securityContext"] = json!({"sysctls": [
        {"name": "net.ipv4.tcp_rmem", "value": "1"},
        {"name": "net.ipv4.ip_local_reserved_ports", "value": "1"},
        {"name": "kernel.msgmax", "value": "1"},
    ]});
    baseline("sysctls", &spec, "forbidden sysctls (kernel.msgmax)");
    for (version, expected) in [
        (
            "v1.26",
            "net.ipv4.tcp_rmem, net.ipv4.ip_local_reserved_ports, kernel.msgmax",
        ),
        ("v1.27", "net.ipv4.tcp_rmem, kernel.msgmax"),
        ("v1.31", "net.ipv4.tcp_rmem, kernel.msgmax"),
        ("v1.32", "kernel.msgmax"),
    ] {
        let found = violation(Level::Baseline, version, "sysctls", &json!({}), &spec);
        assert_eq!(
            found,
            format!("forbidden sysctls ({expected})"),
            "{version}"
        );
    }
}

#[test]
fn proc_mount_and_user_namespaces() {
    let mut spec = secured(
        json!({}),
        &[
            json!({"procMount": "Unmasked"}),
            json!({"procMount": "Default"}),
        ],
    );
    let expected =
        r#"procMount (container "a" must not set securityContext.procMount to "Unmasked")"#;
    baseline("procMount", &spec, expected);
    restricted("procMount_restricted", &spec, expected);
    spec["hostUsers"] = json!(false);
    baseline("procMount", &spec, "");
    restricted("procMount_restricted", &spec, expected);
    let old = violation(Level::Baseline, "v1.34", "procMount", &json!({}), &spec);
    assert_eq!(old, expected);
}

#[test]
fn windows_host_processes() {
    let host = json!({"windowsOptions": {"hostProcess": true}});
    let spec = secured(host.clone(), &[json!({}), host]);
    let expected = "hostProcess (pod and container \"b\" must not set \
        securityContext.windowsOptions.hostProcess=true)";
    baseline("windowsHostProcess", &spec, expected);
}

#[test]
fn privilege_escalation() {
    let set = |value: bool| json!({"allowPrivilegeEscalation": value});
    let mut spec = secured(json!({}), &[set(false), set(true), json!({})]);
    let expected = "allowPrivilegeEscalation != false (containers \"b\", \"c\" must set \
        securityContext.allowPrivilegeEscalation=false)";
    restricted("allowPrivilegeEscalation", &spec, expected);
    spec["os"] = json!({"name": "windows"});
    restricted("allowPrivilegeEscalation", &spec, "");
    let id = "allowPrivilegeEscalation";
    assert_eq!(
        violation(Level::Restricted, "v1.24", id, &json!({}), &spec),
        expected
    );
}

#[test]
fn restricted_volumes() {
    let mut spec = containers(&[json!({})]);
    spec["volumes"] = json!([
        {"name": "a", "emptyDir": {}}, {"name": "b", "image": {"reference": "x"}},
        {"name": "c", "hostPath": {"path": "/"}}, {"name": "d", "nfs": {"path": "/", "server": "s"}},
        {"name": "e", "configMap": {"name": "x"}}, {"name": "f"},
    ]);
    let expected = "restricted volume types (volumes \"c\", \"d\", \"f\" use restricted volume \
        types \"hostPath\", \"nfs\", \"unknown\")";
    restricted("restrictedVolumes", &spec, expected);
    spec["volumes"] = json!([{"name": "c", "iscsi": {"iqn": "i", "lun": 0, "targetPortal": "t"}}]);
    let expected = r#"restricted volume types (volume "c" uses restricted volume type "iscsi")"#;
    restricted("restrictedVolumes", &spec, expected);
}

#[test]
fn run_as_non_root() {
    let set = |value: bool| json!({"runAsNonRoot": value});
    restricted("runAsNonRoot", &secured(set(true), &[json!({})]), "");
    restricted("runAsNonRoot", &secured(json!({}), &[set(true)]), "");
    let mut bad = secured(set(false), &[set(false), json!({})]);
    let expected = "runAsNonRoot != true (pod and container \"a\" must not set \
        securityContext.runAsNonRoot=false)";
    restricted("runAsNonRoot", &bad, expected);
    bad["hostUsers"] = json!(false);
    restricted("runAsNonRoot", &bad, "");
    let old = violation(Level::Restricted, "v1.34", "runAsNonRoot", &json!({}), &bad);
    assert_eq!(old, expected);
    let silent = secured(json!({}), &[set(true), json!({})]);
    let expected = "runAsNonRoot != true (pod or container \"b\" must set \
        securityContext.runAsNonRoot=true)";
    restricted("runAsNonRoot", &silent, expected);
}

#[test]
fn run_as_user() {
    let set = |user: i64| json!({"runAsUser": user});
    restricted("runAsUser", &secured(set(1), &[json!({}), set(2)]), "");
    let mut bad = secured(set(0), &[json!({}), set(0)]);
    let expected = r#"runAsUser=0 (pod and container "b" must not set runAsUser=0)"#;
    restricted("runAsUser", &bad, expected);
    bad["hostUsers"] = json!(false);
    restricted("runAsUser", &bad, "");
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| (format!("{PREFIX}{key}"), (*value).to_owned()))
        .collect()
}

fn policy(pairs: &[(&str, &str)]) -> (String, Vec<String>) {
    let read = NamespacePolicy::of_labels(&labels(pairs), Policy::default());
    let text = Mode::ALL
        .map(|mode| read.policy.of(mode).to_string())
        .join(" ");
    let problems = read.problems.iter().map(Problem::to_string).collect();
    (text, problems)
}

#[test]
fn labels_choose_levels_and_versions() {
    let none = Vec::<String>::new();
    for (given, expected) in [
        (
            &[][..],
            "privileged:latest privileged:latest privileged:latest",
        ),
        (
            &[("enforce", "restricted"), ("enforce-version", "v1.25")],
            "restricted:v1.25 privileged:latest restricted:v1.25",
        ),
        (
            &[("enforce", "restricted"), ("warn-version", "v1.30")],
            "restricted:latest privileged:latest restricted:v1.30",
        ),
        (
            &[
                ("enforce", "restricted"),
                ("warn", "privileged"),
                ("audit", "baseline"),
            ],
            "restricted:latest baseline:latest privileged:latest",
        ),
    ] {
        assert_eq!(
            policy(given),
            (expected.to_owned(), none.clone()),
            "{given:?}"
        );
    }
}

#[test]
fn malformed_labels_are_strict_where_pods_are_refused() {
    let (text, problems) = policy(&[
        ("enforce", "x"),
        ("enforce-version", "v2.0"),
        ("audit", ""),
        ("warn", "Baseline"),
        ("warn-version", "v1.01"),
    ]);
    assert_eq!(
        text,
        "restricted:latest privileged:latest privileged:latest"
    );
    let level = "must be one of privileged, baseline, restricted";
    let version = "must be \"latest\" or \"v1.x\"";
    let path = |label: &str| format!("metadata.labels[{PREFIX}{label}]: Invalid value");
    assert_eq!(
        problems,
        [
            format!("{}: \"x\": {level}", path("enforce")),
            format!("{}: \"v2.0\": {version}", path("enforce-version")),
            format!("{}: \"\": {level}", path("audit")),
            format!("{}: \"Baseline\": {level}", path("warn")),
            format!("{}: \"v1.01\": {version}", path("warn-version")),
        ]
    );
}

#[test]
fn versions_are_read_as_upstream_reads_them() {
    for good in ["latest", "v1.0", "v1.36", "v1.9223372036854775807"] {
        assert_eq!(Version::parse(good).unwrap().to_string(), good);
    }
    for bad in [
        "",
        "v1",
        "v1.",
        "1.25",
        "v1.25.1",
        "v1.+5",
        "v1.9223372036854775808",
        "Latest",
    ] {
        assert!(Version::parse(bad).is_err(), "{bad}");
    }
    assert!(Version::Minor(u64::MAX) < Version::Latest);
}

fn pod(spec: &Value) -> Pod {
    serde_json::from_value(json!({"spec": spec})).unwrap()
}

fn verdict(plugin: &PodSecurity, target: Target, given: &[(&str, &str)], spec: &Value) -> Verdict {
    let namespace = plugin.policy_of(&labels(given));
    let pod = pod(spec);
    plugin.judge(target, &namespace, &Subject::of_pod(&pod).unwrap())
}

#[test]
fn a_pod_is_refused_with_every_reason() {
    let mut spec = containers(&[json!({"securityContext": {"privileged": true}})]);
    spec["hostPID"] = json!(true);
    let given = [("enforce", "baseline"), ("audit", "restricted")];
    let verdict = verdict(&PodSecurity::default(), Target::Pod, &given, &spec);
    assert_eq!(
        verdict.denial.as_deref(),
        Some(
            "violates PodSecurity \"baseline:latest\": host namespaces (hostPID=true), privileged \
             (container \"a\" must not set securityContext.privileged=true)"
        )
    );
    assert_eq!(verdict.warnings, Vec::<String>::new());
    assert_eq!(verdict.annotations["enforce-policy"], "baseline:latest");
    let audited = &verdict.annotations["audit-violations"];
    let begin = "would violate PodSecurity \"restricted:latest\": host namespaces (hostPID=true)";
    assert!(audited.starts_with(begin), "{audited}");
    let seen: Vec<(Mode, bool)> = verdict
        .evaluations
        .iter()
        .map(|e| (e.mode, e.is_allowed))
        .collect();
    assert_eq!(seen, [(Mode::Enforce, false), (Mode::Audit, false)]);
}

#[test]
fn a_workload_is_never_refused_but_warned_about() {
    let mut spec = containers(&[json!({})]);
    spec["hostPID"] = json!(true);
    let given = [("enforce", "baseline")];
    let verdict = verdict(&PodSecurity::default(), Target::Template, &given, &spec);
    assert_eq!(verdict.denial, None);
    let warning = "would violate PodSecurity \"baseline:latest\": host namespaces (hostPID=true)";
    assert_eq!(verdict.warnings, [warning]);
    assert_eq!(verdict.annotations, BTreeMap::new());
}

#[test]
fn exempt_callers_namespaces_and_runtime_classes_are_not_checked() {
    let text = "apiVersion: pod-security.admission.config.k8s.io/v1\n\
        kind: PodSecurityConfiguration\n\
        defaults: {enforce: baseline, enforce-version: v1.30}\n\
        exemptions: {usernames: [u], namespaces: [ns], runtimeClasses: [kata]}\n";
    let given = Given::from_file(text.as_bytes()).unwrap();
    let plugin = PodSecurity::read(&given).unwrap();
    let silent = plugin.policy_of(&BTreeMap::new());
    assert_eq!(silent.policy.enforce.to_string(), "baseline:v1.30");
    let unseen = |namespace, user| plugin.verdict_unseen(Target::Pod, namespace, user, &silent);
    assert_eq!(
        unseen("ns", "u").unwrap().exemption,
        Some(Exemption::Namespace)
    );
    assert_eq!(unseen("m", "u").unwrap().exemption, Some(Exemption::User));
    assert_eq!(unseen("m", "v"), None);
    let mut spec = containers(&[json!({})]);
    spec["hostPID"] = json!(true);
    assert!(verdict(&plugin, Target::Pod, &[], &spec).denial.is_some());
    spec["runtimeClassName"] = json!("kata");
    let exempt = verdict(&plugin, Target::Pod, &[], &spec);
    assert_eq!(exempt, Verdict::exempt(Exemption::RuntimeClass));
    // Workloads are not enforced, and no other mode was set.
    let unseen = plugin.verdict_unseen(Target::Template, "m", "v", &silent);
    assert_eq!(unseen, Some(Verdict::default()));
}

#[test]
fn invalid_configuration_is_refused() {
    let text = "apiVersion: pod-security.admission.config.k8s.io/v1\n\
        kind: PodSecurityConfiguration\n\
        defaults: {enforce: strict, warn-version: 1.25, Audit: baseline}\n\
        exemptions: {usernames: ['', a, a], namespaces: [A, a.b], runtimeClasses: [5, '-']}\n";
    let given = Given::from_file(text.as_bytes()).unwrap();
    let problems = PodSecurity::read(&given).unwrap_err();
    let problems: Vec<String> = problems
        .iter()
        .map(|problem| {
            let text = problem.to_string();
            text.split(" (e.g.").next().unwrap_or_default().to_owned()
        })
        .collect();
    assert_eq!(
        problems,
        [
            "defaults.Audit: Unknown field: known fields: enforce, audit, warn, enforce-version, \
             audit-version, warn-version",
            "defaults.enforce: Invalid value: \"strict\": must be one of privileged, baseline, \
             restricted",
            "defaults.warn-version: Invalid value: the number 1.25: must be a text",
            "exemptions.namespaces[0]: Invalid value: \"A\": a lowercase RFC 1123 label must \
             consist of lower case alphanumeric characters or '-', and must start and end with an \
             alphanumeric character",
            "exemptions.namespaces[1]: Invalid value: \"a.b\": must not contain dots",
            "exemptions.runtimeClasses[0]: Invalid value: the number 5: must be a text",
            "exemptions.runtimeClasses[1]: Invalid value: \"-\": a lowercase RFC 1123 subdomain \
             must consist of lower case alphanumeric characters, '-' or '.', and must start and \
             end with an alphanumeric character",
            "exemptions.usernames[0]: Invalid value: \"\": username must not be empty",
            "exemptions.usernames[2]: Duplicate value: \"a\"",
        ]
    );
}

#[test]
fn namespace_labels_are_checked_when_they_change() {
    let plugin = PodSecurity::default();
    let judge = |new: &[(&str, &str)], old: Option<&[(&str, &str)]>| {
        let old = old.map(labels);
        plugin.judge_namespace("n", &labels(new), old.as_ref())
    };
    let invalid = |verdict| matches!(verdict, NamespaceVerdict::Invalid(_));
    let restricted = &[("enforce", "restricted")][..];
    let malformed = &[("enforce", "x")][..];
    assert_eq!(judge(restricted, None), NamespaceVerdict::Allowed);
    assert!(invalid(judge(malformed, None)));
    assert!(invalid(judge(malformed, Some(restricted))));
    assert_eq!(judge(malformed, Some(malformed)), NamespaceVerdict::Allowed);
    let tightened = NamespaceVerdict::Tightened(of(Level::Restricted, "latest"));
    assert_eq!(judge(restricted, Some(&[])), tightened);
    assert_eq!(
        judge(restricted, Some(&[("enforce", "baseline")])),
        tightened
    );
    assert_eq!(
        judge(restricted, Some(restricted)),
        NamespaceVerdict::Allowed
    );
    assert_eq!(judge(&[], Some(restricted)), NamespaceVerdict::Allowed);
    let relaxed = judge(&[("enforce", "baseline")], Some(restricted));
    assert_eq!(relaxed, NamespaceVerdict::Allowed);
    // Another version may be stricter.
    let pinned = &[("enforce", "baseline"), ("enforce-version", "v1.0")][..];
    let expected = NamespaceVerdict::Tightened(of(Level::Baseline, "v1.0"));
    assert_eq!(judge(pinned, Some(restricted)), expected);
}

#[test]
fn labels_of_an_exempt_namespace_are_warned_about() {
    let plugin = PodSecurity {
        exempt_namespaces: ["n".to_owned()].into(),
        ..PodSecurity::default()
    };
    let new = labels(&[
        ("enforce", "restricted"),
        ("enforce-version", "v1.0"),
        ("audit", "restricted"),
        ("warn", "baseline"),
    ]);
    let expected = NamespaceVerdict::Warned(
        "namespace \"n\" is exempt from Pod Security, and the policy (enforce=restricted:v1.0, \
         audit=restricted:latest, warn=baseline:latest) will be ignored"
            .to_owned(),
    );
    assert_eq!(plugin.judge_namespace("n", &new, None), expected);
    assert_eq!(
        plugin.judge_namespace("n", &new, Some(&BTreeMap::new())),
        expected
    );
    let other = plugin.judge_namespace("m", &new, None);
    assert_eq!(other, NamespaceVerdict::Allowed);
}

#[test]
fn a_survey_names_the_first_of_the_pods_with_one_fault() {
    let mut bad = containers(&[json!({})]);
    bad["hostPID"] = json!(true);
    let mut worse = bad.clone();
    worse["volumes"] = json!([{"name": "v", "hostPath": {"path": "/"}}]);
    let mut survey = Survey::new(of(Level::Baseline, "latest"));
    for (name, spec) in [
        ("c", &bad),
        ("b", &bad),
        ("d", &worse),
        ("e", &bad),
        ("f", &containers(&[])),
    ] {
        let pod = pod(spec);
        survey.look_at(name, &Subject::of_pod(&pod).unwrap());
    }
    assert_eq!(
        survey.warnings("n", 9),
        [
            "new PodSecurity enforce level only checked against the first 5 of 9 existing pods",
            "existing pods in namespace \"n\" violate the new PodSecurity enforce level \
             \"baseline:latest\"",
            "b (and 2 other pods): host namespaces",
            "d: host namespaces, hostPath volumes",
        ]
    );
    let empty = Survey::new(of(Level::Baseline, "latest"));
    assert_eq!(empty.warnings("n", 0), Vec::<String>::new());
}

#[test]
fn a_survey_looks_at_one_pod_of_each_controller_first() {
    let plugin = PodSecurity {
        exempt_runtime_classes: ["kata".to_owned()].into(),
        ..PodSecurity::default()
    };
    let candidate = |class: &str, controller: &str| Candidate {
        runtime_class: (!class.is_empty()).then(|| class.to_owned()),
        controller: (!controller.is_empty()).then(|| controller.to_owned()),
    };
    let pods = [
        candidate("kata", ""),
        candidate("", "1"),
        candidate("", "1"),
        candidate("runc", "2"),
        candidate("", ""),
        candidate("", "1"),
    ];
    assert_eq!(plugin.survey_order(&pods), [1, 3, 4, 2, 5]);
}

#[test]
fn only_images_and_new_containers_matter_in_updates() {
    let spec = |spec: Value| pod(&spec).spec.unwrap();
    let old = spec(json!({"containers": [{"name": "a", "image": "x"}],
        "ephemeralContainers": [{"name": "e", "image": "x"}]}));
    let same = spec(
        json!({"containers": [{"name": "b", "image": "x"}], "hostPID": true,
        "ephemeralContainers": [{"name": "e", "image": "x"}]}),
    );
    assert!(!is_significant_update(&same, &old));
    for change in [
        json!({"containers": [{"name": "a", "image": "y"}]}),
        json!({"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]}),
        json!({"containers": [{"name": "a", "image": "x"}],
            "initContainers": [{"name": "i", "image": "x"}]}),
        json!({"containers": [{"name": "a", "image": "x"}],
            "ephemeralContainers": [{"name": "f", "image": "x"}]}),
        json!({"containers": [{"name": "a", "image": "x"}],
            "ephemeralContainers": [{"name": "e", "image": "y"}]}),
    ] {
        assert!(
            is_significant_update(&spec(change.clone()), &old),
            "{change}"
        );
    }
}
