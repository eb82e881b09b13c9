use crate::config::{NodeConfig, read_kubelet_configuration};

use super::*;

const ORIGINAL: &str = "\
apiVersion: v1
kind: NodeConfig
nodeName: node1.example.com
dnsIP: 172.30.0.1
dnsDomain: cluster.local
networkConfig:
  mtu: 1450
podManifestConfig:
  path: /etc/origin/node/pods
  fileCheckIntervalSeconds: 10
servingInfo:
  bindAddress: 0.0.0.0:10250
  clientCA: ca.crt
kubeletArguments:
  kube-reserved:
  - cpu=200m,memory=512Mi
  system-reserved:
  - cpu=200m,memory=512Mi
  eviction-hard:
  - memory.available<500Mi
  - nodefs.available<10%
  eviction-soft: [\"memory.available<1Gi\"]
  eviction-soft-grace-period: [\"memory.available=1m30s\"]
  eviction-pressure-transition-period: [\"5m\"]
  eviction-max-pod-grace-period: [\"30\"]
  experimental-qos-reserved: ['memory=50%']
  experimental-allocatable-ignore-eviction: ['true']
  pods-per-core: ['10']
  max-pods: ['0x64']
  node-labels: [region=infra, zone=a]
  register-with-taints: ['dedicated=infra:NoSchedule']
  docker-exec-handler: [native]
  pod-manifest-path: [/etc/pods]
  v: ['2']
  anonymous-auth: ['f']
";

fn converted() -> Conversion {
    let conversion = convert_okd_node_config(ORIGINAL.as_bytes(), Profile::Okd39);
    assert_eq!(conversion.original.problems, []);
    conversion
}

#[test]
fn only_set_fields_are_written_in_their_order() {
    insta::assert_snapshot!(converted().document.to_yaml());
}

#[test]
fn every_loss_and_change_has_a_note() {
    let notes: Vec<String> = converted().notes.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(notes.join("\n"));
}

#[test]
fn the_document_reads_back_to_the_same_settings() {
    let conversion = converted();
    let yaml = conversion.document.to_yaml();
    let reading = read_kubelet_configuration(yaml.as_bytes(), Profile::Okd39);
    assert_eq!(reading.problems, []);
    let stripped = |config: &NodeConfig| without_places(config.clone());
    assert_eq!(
        stripped(&reading.config),
        without_flags(stripped(&conversion.original.config))
    );
}

/// Places differ between the files, so they are left out of the comparison.
fn without_places(mut config: NodeConfig) -> NodeConfig {
    config.places.clear();
    let unapplied = std::mem::take(&mut config.unapplied.0);
    config.unapplied.0 = unapplied
        .into_iter()
        .map(|(field, setting)| (field, crate::config::Setting::defaulted(setting.value)))
        .collect();
    forget_origins(&mut config);
    config
}

/// What no file can say stays at its default.
fn without_flags(mut config: NodeConfig) -> NodeConfig {
    let defaults = NodeConfig::defaults(config.profile);
    config
        .unapplied
        .0
        .retain(|field, _| !field.starts_with("--") && !field.starts_with("okd."));
    config.node_labels = defaults.node_labels;
    config.root_dir = defaults.root_dir;
    config.experimental_allocatable_ignore_eviction =
        defaults.experimental_allocatable_ignore_eviction;
    config
}

fn forget_origins(config: &mut NodeConfig) {
    config.kube_reserved.origin = None;
    config.system_reserved.origin = None;
    config.eviction_hard.origin = None;
    config.eviction_soft.origin = None;
    config.eviction_soft_grace_period.origin = None;
    config.eviction_pressure_transition_period.origin = None;
    config.eviction_max_pod_grace_period.origin = None;
    config.qos_reserved.origin = None;
    config.pods_per_core.origin = None;
    config.max_pods.origin = None;
    config.register_with_taints.origin = None;
    config.static_pod_path.origin = None;
    config.file_check_frequency.origin = None;
    config.client_ca_file.origin = None;
    config.anonymous_auth.origin = None;
    config.cluster_dns.origin = None;
    config.cluster_domain.origin = None;
    config.node_labels.origin = None;
    config.experimental_allocatable_ignore_eviction.origin = None;
}
