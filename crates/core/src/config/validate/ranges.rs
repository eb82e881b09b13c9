//! Rules about settings that have to be in a range or on a list.
//!
//! Only what was set is checked: upstream's defaults keep the rules.

use serde_json::Value;

use crate::problem::quoted;

use super::Refusals;
use crate::config::{NodeConfig, Setting};

/// A range of whole numbers, and the message for a number outside it.
struct Range {
    field: &'static str,
    least: i64,
    most: i64,
    /// The name in messages, with its flag.
    name: &'static str,
    rule: &'static str,
}

const NOT_NEGATIVE: &str = "must not be a negative number";
const PORT: &str = "must be between 1 and 65535, inclusive";
const BIT: &str = "must be between 0 and 31, inclusive";

const fn range(
    field: &'static str,
    (least, most): (i64, i64),
    name: &'static str,
    rule: &'static str,
) -> Range {
    Range {
        field,
        least,
        most,
        name,
        rule,
    }
}

/// Zero closes the two ports that may be closed.
#[rustfmt::skip]
const RANGES: &[Range] = &[
    range("eventBurst", (0, i64::MAX), "eventBurst (--event-burst)", NOT_NEGATIVE),
    range("eventRecordQPS", (0, i64::MAX), "eventRecordQPS (--event-qps)", NOT_NEGATIVE),
    range("healthzPort", (0, 65_535), "healthzPort (--healthz-port)", PORT),
    range("iptablesDropBit", (0, 31), "iptablesDropBit (--iptables-drop-bit)", BIT),
    range("iptablesMasqueradeBit", (0, 31), "iptablesMasqueradeBit (--iptables-masquerade-bit)", BIT),
    range("kubeAPIBurst", (0, i64::MAX), "kubeAPIBurst (--kube-api-burst)", NOT_NEGATIVE),
    range("kubeAPIQPS", (0, i64::MAX), "kubeAPIQPS (--kube-api-qps)", NOT_NEGATIVE),
    range("nodeStatusMaxImages", (-1, i64::MAX), "nodeStatusMaxImages (--node-status-max-images)", "must be -1 or greater"),
    range("maxOpenFiles", (0, i64::MAX), "maxOpenFiles (--max-open-files)", NOT_NEGATIVE),
    range("oomScoreAdj", (-1000, 1000), "oomScoreAdj (--oom-score-adj)", "must be between -1000 and 1000, inclusive"),
    range("port", (0, 65_535), "port (--port)", PORT),
    range("readOnlyPort", (0, 65_535), "readOnlyPort (--read-only-port)", "must be between 0 and 65535, inclusive"),
    range("registryBurst", (0, i64::MAX), "registryBurst (--registry-burst)", NOT_NEGATIVE),
    range("registryPullQPS", (0, i64::MAX), "registryPullQPS (--registry-qps)", NOT_NEGATIVE),
    range("maxParallelImagePulls", (1, i64::MAX), "maxParallelImagePulls", "must be a positive number"),
];

/// A field with a fixed list of values.
struct AllowedValues {
    field: &'static str,
    values: &'static [&'static str],
    /// The whole rule; `{}` stands for the value.
    rule: &'static str,
}

#[rustfmt::skip]
const ALLOWED_VALUES: &[AllowedValues] = &[
    AllowedValues {
        field: "topologyManagerPolicy",
        values: &["none", "best-effort", "restricted", "single-numa-node"],
        rule: "topologyManagerPolicy (--topology-manager-policy) {} must be one of: [\"none\" \"best-effort\" \"restricted\" \"single-numa-node\"]",
    },
    AllowedValues {
        field: "topologyManagerScope",
        values: &["container", "pod"],
        rule: "topologyManagerScope (--topology-manager-scope) {} must be one of: \"container\", or \"pod\"",
    },
    AllowedValues {
        field: "hairpinMode",
        values: &["none", "hairpin-veth", "promiscuous-bridge"],
        rule: "option {} specified for hairpinMode (--hairpin-mode). Valid options are \"none\", \"hairpin-veth\" or \"promiscuous-bridge\"",
    },
];

pub(super) fn validate(refusals: &mut Refusals<'_>) {
    let config = refusals.config;
    let unapplied = |field: &str| config.unapplied.0.get(field).map(|setting| &setting.value);
    let text = |field: &str| unapplied(field).and_then(Value::as_str);
    for range in RANGES {
        let Some(number) = number_of(config, range.field) else {
            continue;
        };
        let is_outside = number < range.least || number > range.most;
        refusals.check(is_outside, range.field, || {
            format!("{} {number} {}", range.name, range.rule)
        });
    }
    for AllowedValues {
        field,
        values,
        rule,
    } in ALLOWED_VALUES
    {
        let Some(word) = text(field).filter(|word| !word.is_empty()) else {
            continue;
        };
        refusals.check(!values.contains(&word), field, || {
            rule.replace("{}", &quoted(word))
        });
    }
    let serializes = *config.serialize_image_pulls == Some(true);
    let parallel_pulls = config.max_parallel_image_pulls.unwrap_or(1);
    refusals.check(
        serializes && parallel_pulls > 1,
        "maxParallelImagePulls",
        || {
            "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls \
             (--serialize-image-pulls) is set to false"
                .to_owned()
        },
    );
    let runs_once = unapplied("runOnce") == Some(&true.into());
    refusals.check(runs_once, "runOnce", || {
        "runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set"
            .to_owned()
    });
    let workers = number_of(config, "containerLogMaxWorkers").unwrap_or(1);
    refusals.check(workers < 1, "containerLogMaxWorkers", || {
        "containerLogMaxWorkers must be greater than or equal to 1".to_owned()
    });
    validate_user_namespaces(refusals);
}

/// A number, if it was set.
fn number_of(config: &NodeConfig, field: &str) -> Option<i64> {
    let set = |setting: &Setting<i32>| setting.is_set().then(|| setting.value.into());
    match field {
        "healthzPort" => set(&config.healthz_port),
        "maxOpenFiles" => config
            .max_open_files
            .is_set()
            .then_some(*config.max_open_files),
        "maxParallelImagePulls" => config.max_parallel_image_pulls.map(i64::from),
        "nodeStatusMaxImages" => set(&config.node_status_max_images),
        "port" => set(&config.port),
        "registryBurst" => set(&config.registry_burst),
        "registryPullQPS" => set(&config.registry_pull_qps),
        _ => config.unapplied.0.get(field)?.value.as_i64(),
    }
}

/// Matches v1.36 pkg/kubelet/apis/config/validation/validation_linux.go.
fn validate_user_namespaces(refusals: &mut Refusals<'_>) {
    const UNIT: i64 = 65_536;
    let field = "userNamespaces.idsPerPod";
    let ids = *refusals.config.user_namespace_ids_per_pod;
    let most = i64::from(u32::MAX);
    if ids < UNIT {
        refusals.check(true, field, || {
            format!("{field} must not be less than {UNIT}")
        });
    } else if ids % UNIT != 0 {
        refusals.check(true, field, || {
            format!("{field} must be a multiple of {UNIT}")
        });
    } else {
        refusals.check(ids > most, field, || {
            format!("{field} must not be more than {most}")
        });
    }
}
