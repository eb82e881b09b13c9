//! `plimsoll check` of node configurations: what a node makes of each setting.

use crate::check_manifests::findings;
use crate::plimsoll;

fn configured(settings: &str) -> String {
    format!("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n{settings}")
}

/// The check finds what the start of a node refuses, at the same place and in the same words.
#[test]
fn refused_values_are_errors_in_the_words_of_the_node() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("node.yaml");
    let settings = "cpuManagerPolicy: static\nmaxPods: 50\nreadOnlyPort: 10255\n\
                    authentication: {}\nenableServer: false\n";
    std::fs::write(&file, configured(settings)).expect("a file");
    let name = file.display().to_string();
    let data = folder.path().join("data").display().to_string();
    let node = plimsoll(&["node", "--config", &name, "--data-dir", &data], "");
    let check = plimsoll(&["check", "--capacity", "cpu=4,memory=32Gi", &name], "");
    assert_eq!((node.code, check.code), (Some(1), Some(1)));
    let errors = node.stderr.lines();
    let errors = errors.filter_map(|line| line.strip_prefix("error: "));
    let refused: Vec<&str> = errors.filter(|line| line.starts_with(&name)).collect();
    assert_eq!(refused.len(), 3, "{}", node.transcript());
    for line in refused {
        let (place, text) = line.split_once(": ").expect("a place and a text");
        let expected = format!("{place}: error: {text} [L24]");
        assert!(
            check.stdout.lines().any(|line| line == expected),
            "{expected}\n{}",
            check.transcript()
        );
    }
    assert_eq!(
        findings(&configured(settings)),
        [
            "3:1 error cpuManagerPolicy: \"static\" is not supported: no pod gets CPUs of its own; \
             supported: \"\", \"none\"",
            "5:1 error readOnlyPort: \"10255\" is not supported: everything is served with TLS and \
             authorization; supported: \"0\"",
            "7:1 error enableServer: \"false\" is not supported: without it nothing could read logs, \
             or run commands in containers; supported: \"true\"",
        ]
    );
}

#[test]
fn settings_without_effect_are_warnings_with_the_reason() {
    let text = configured("hairpinMode: none\ntracing:\n  samplingRatePerMillion: 7\n");
    let expected = [
        "3:1 warning hairpinMode: has no effect: the bridge plugin or the CNI plugin decides",
        "5:3 warning tracing.samplingRatePerMillion: has no effect: traces are not exported",
    ];
    assert_eq!(findings(&text), expected);
    let run = plimsoll(&["check", "--capacity", "cpu=4,memory=32Gi", "-"], &text);
    assert_eq!(run.code, Some(0), "{}", run.transcript());
}

/// An OKD file has fields and flags, some of them empty.
#[test]
fn settings_of_an_okd_file_have_their_own_names() {
    let text = "apiVersion: v1\nkind: NodeConfig\nnetworkPluginName: ''\nnetworkConfig:\n  mtu: 1450\n\
                dnsNameservers: []\nservingInfo:\n  minTLSVersion: VersionTLS13\nkubeletArguments:\n  \
                housekeeping-interval: ['10s']\n  cpu-manager-policy: ['static']\n  \
                cgroup-driver: [systemd]\n";
    let found = findings(text);
    let settings: Vec<&str> = found
        .iter()
        .filter(|finding| finding.contains("has no effect") || finding.contains("not supported"))
        .map(|finding| finding.split(": ").next().unwrap_or_default())
        .collect();
    assert_eq!(
        settings,
        [
            "5:3 warning networkConfig.mtu",
            "8:3 error servingInfo.minTLSVersion",
            "10:27 warning kubeletArguments.housekeeping-interval",
            "11:24 error kubeletArguments.cpu-manager-policy",
        ],
        "{found:?}"
    );
}

/// The flags of the node are not known, so that no such setting is an error.
#[test]
fn settings_that_differ_from_the_default_of_a_flag_are_information() {
    let text = configured(
        "port: 10260\naddress: 0.0.0.0\nhealthzPort: 10248\n\
         containerRuntimeEndpoint: unix:///run/containerd/containerd.sock\n",
    );
    let expected = [
        "3:1 info port: 10260 differs from --kubelet-listen 0.0.0.0:10250; give --kubelet-listen to \
         plimsoll node",
        "6:1 info containerRuntimeEndpoint: unix:///run/containerd/containerd.sock differs from \
         --runtime embedded; give --runtime to plimsoll node",
    ];
    assert_eq!(findings(&text), expected);
}

#[test]
fn a_value_that_cannot_be_read_is_reported_once() {
    let found = findings(&configured("runOnce: true\nhairpinMode: [a]\n"));
    let paths: Vec<&str> = found
        .iter()
        .map(|finding| finding.split(": ").next().unwrap_or_default())
        .collect();
    assert_eq!(
        paths,
        ["3:1 error runOnce", "4:14 error hairpinMode"],
        "{found:?}"
    );
}
