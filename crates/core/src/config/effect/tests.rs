use crate::config::read::shape::Shape;
use crate::config::{Profile, read_kubelet_configuration, read_okd_node_config};

use super::*;

fn read(body: &str) -> NodeConfig {
    let text =
        format!("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n{body}\n");
    let reading = read_kubelet_configuration(text.as_bytes(), Profile::Kubernetes136);
    reading.config
}

/// A line of YAML that sets the field to a value.
fn line(path: &str, value: &str) -> String {
    let mut parts: Vec<&str> = path.split('.').collect();
    let last = parts.pop().unwrap_or_default();
    let mut text = String::new();
    for (depth, part) in parts.iter().enumerate() {
        text += &format!("{}{part}:\n", "  ".repeat(depth));
    }
    text + &format!("{}{last}: {value}\n", "  ".repeat(parts.len()))
}

/// A value of the type that no field has by default; words of fields with a fixed list.
fn sample(field: &Field) -> &'static str {
    match field.path {
        "authorization.mode" => "AlwaysAllow",
        "cgroupDriver" => "systemd",
        "memorySwap.swapBehavior" => "LimitedSwap",
        "memoryReservationPolicy" => "TieredReservation",
        "containerLogMaxSize" => "7Mi",
        "reservedSystemCPUs" => "'0'",
        "enforceNodeAllocatable" => "[none]",
        "evictionHard" | "evictionSoft" => "{memory.available: 77Mi}",
        "evictionSoftGracePeriod" => "{memory.available: 77s}",
        "evictionMinimumReclaim" => "{memory.available: 7Mi}",
        "qosReserved" => "{memory: 7%}",
        "registerWithTaints" => "[{key: a, effect: NoSchedule}]",
        "shutdownGracePeriodByPodPriority" => "[{priority: 7, shutdownGracePeriodSeconds: 77}]",
        path => match field.shape {
            Shape::Bool if field.default == "true" => "false",
            Shape::Bool => "true",
            Shape::Int32 | Shape::Int64 => "77",
            Shape::Float => "0.77",
            Shape::Duration | Shape::DurationOrNanos => "77s",
            Shape::TextMap => "{cpu: 77m}",
            Shape::BoolMap => "{A: true}",
            Shape::TextList | Shape::IntList => "['77']",
            Shape::Text | Shape::Quantity => "seventyseven",
            _ => panic!("no sample for {path}"),
        },
    }
}

fn without_places(mut config: NodeConfig) -> NodeConfig {
    config.places.clear();
    config
}

#[test]
fn every_field_is_applied_or_refused_or_warned_about() {
    let defaults = NodeConfig::defaults(Profile::Kubernetes136);
    for field in FIELDS {
        let path = field.path;
        match field.effect {
            Effect::Applied | Effect::Flag(_) => {
                let config = read(&line(path, sample(field)));
                assert!(config.unapplied.0.is_empty(), "{path} is read by nothing");
                assert_ne!(without_places(config), defaults, "{path} changes nothing");
            }
            Effect::Only { accepted, .. } => {
                let wrong = match field.shape {
                    Shape::Bool if accepted == ["true"] => "false",
                    Shape::Bool => "true",
                    Shape::Int32 => "77",
                    Shape::TextMap => "{a: b}",
                    Shape::TextListMap => "{a: [b]}",
                    Shape::TextList => "[a]",
                    Shape::IntList => "[29]",
                    _ => "seventyseven",
                };
                let config = read(&line(path, wrong));
                let problems = unsupported(&config);
                assert_eq!(problems.len(), 1, "{path}: {problems:?}");
                assert_eq!(problems[0].path, path);
                assert!(problems[0].position.is_some(), "{path}");
                for value in accepted {
                    let value = match field.shape {
                        Shape::TextMap | Shape::TextListMap => "{}",
                        Shape::TextList | Shape::IntList => "[]",
                        Shape::Text => &format!("{value:?}"),
                        _ => value,
                    };
                    let config = read(&line(path, value));
                    assert_eq!(unsupported(&config), [], "{path}: {value}");
                    assert_eq!(without_effect(&config), [], "{path}: {value}");
                }
            }
            Effect::None { .. } => {
                let value = match field.shape {
                    Shape::Records(_) if path == "logging.vmodule" => {
                        "[{filePattern: a, verbosity: 7}]"
                    }
                    Shape::Records(_) => "[{numaNode: 0, limits: {memory: 7Gi}}]",
                    Shape::Quantity => "7Mi",
                    Shape::Int32 => "7",
                    _ => sample(field),
                };
                let config = read(&line(path, value));
                let warnings = without_effect(&config);
                assert_eq!(warnings.len(), 1, "{path}: {warnings:?}");
                assert_eq!(unsupported(&config), [], "{path}");
            }
        }
    }
}

/// A file of kubeadm has every field, most of them with a zero.
#[test]
fn values_that_stand_for_the_default_are_not_warned_about() {
    for (path, value) in [
        ("httpCheckFrequency", "0s"),
        ("cpuManagerReconcilePeriod", "0s"),
        ("contentType", "''"),
        ("logging.flushFrequency", "0"),
        ("logging.verbosity", "0"),
        ("logging.vmodule", "[]"),
        ("logging.options.json.infoBufferSize", "'0'"),
    ] {
        let config = read(&line(path, value));
        assert!(!config.unapplied.0.is_empty(), "{path}");
        assert_eq!(without_effect(&config), [], "{path}: {value}");
    }
    // A zero of its own meaning.
    for path in ["oomScoreAdj", "eventRecordQPS", "kubeAPIQPS"] {
        let config = read(&line(path, "0"));
        assert_eq!(without_effect(&config).len(), 1, "{path}");
    }
}

/// What the reference gives as the default, where it is a plain value.
#[test]
fn documented_defaults_are_the_defaults() {
    let defaults = NodeConfig::defaults(Profile::Kubernetes136);
    for field in FIELDS {
        let is_plain = !field.default.contains(' ') && !field.default.contains('\'');
        let is_value = is_plain && !field.default.is_empty();
        if !is_value || !matches!(field.effect, Effect::Applied | Effect::Flag(_)) {
            continue;
        }
        let value = match field.shape {
            Shape::TextList => format!("[{}]", field.default),
            _ => field.default.to_owned(),
        };
        let mut config = read(&line(field.path, &value));
        // It follows nodeStatusUpdateFrequency.
        let follows = &defaults.node_status_report_frequency;
        config.node_status_report_frequency.clone_from(follows);
        let (found, expected) = (without_origins(config), without_origins(defaults.clone()));
        assert_eq!(found, expected, "{}: {}", field.path, field.default);
    }
}

/// The configuration with all that says where a value was set removed from its text.
fn without_origins(config: NodeConfig) -> String {
    let text = format!("{:?}", without_places(config));
    let mut rest = text.as_str();
    let mut kept = String::new();
    while let Some(at) = rest.find("origin: Some(") {
        kept.push_str(&rest[..at]);
        kept.push_str("origin: None");
        let end = rest[at..].find("}) })").map(|end| at + end + 5);
        rest = &rest[end.expect("an origin ends")..];
    }
    kept + rest
}

#[test]
fn okds_fields_and_flags_without_a_counterpart_are_warned_about() {
    let text = "apiVersion: v1\nkind: NodeConfig\nnetworkConfig: {mtu: 1450}\n\
                kubeletArguments:\n  housekeeping-interval: ['10s']\n  docker-exec-handler: [native]\n";
    let reading = read_okd_node_config(text.as_bytes(), Profile::Okd39);
    assert_eq!(reading.problems, []);
    let warnings = without_effect(&reading.config);
    let paths: Vec<&str> = warnings
        .iter()
        .map(|warning| warning.path.as_str())
        .collect();
    assert_eq!(
        paths,
        [
            "kubeletArguments.docker-exec-handler",
            "kubeletArguments.housekeeping-interval",
            "networkConfig.mtu"
        ]
    );
}

#[test]
fn a_refusal_names_the_value_the_reason_and_what_is_supported() {
    let config = read("cpuManagerPolicy: static");
    let problems: Vec<String> = unsupported(&config)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        problems,
        [
            "cpuManagerPolicy: \"static\" is not supported: no pod gets CPUs of its own; \
          supported: \"\", \"none\""
        ]
    );
}
