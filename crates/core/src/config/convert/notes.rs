//! Notes on each setting of the original.

use super::super::document::{Content, Node, ScalarValue};
use super::super::read::flag::{self, Flag, Target};
use super::{Assignment, Note, NoteKind};

/// Prefix of the fields of the original that the kubelet has not.
const OKD_PREFIX: &str = "okd.";

/// Whether a KubeletConfiguration can say it.
pub(super) fn has_field(assignment: &Assignment) -> bool {
    !assignment.field.starts_with("--") && !assignment.field.starts_with(OKD_PREFIX)
}

/// Everything there is to say about one setting.
pub(super) fn about(assignment: &Assignment) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut add = |kind, subject: &str, meaning: &str, advice: &str| {
        notes.push(Note {
            kind,
            subject: subject.to_owned(),
            meaning: meaning.to_owned(),
            advice: advice.to_owned(),
            position: assignment.origin.position,
        });
    };
    let subject = subject_of(assignment);
    if let Some(path) = assignment.field.strip_prefix(OKD_PREFIX) {
        let (meaning, advice) = about_okd_field(path);
        add(NoteKind::NoEquivalent, path, meaning, advice);
        return notes;
    }
    match flag::find(subject) {
        Some(Flag {
            removed: Some(removed),
            target: Target::FlagOnly,
            ..
        }) => add(
            NoteKind::NoEquivalent,
            subject,
            removed.meaning,
            removed.instead,
        ),
        _ if !has_field(assignment) => {
            let (meaning, advice) = about_flag(assignment);
            add(NoteKind::FlagOnly, subject, &meaning, &advice);
        }
        _ if !is_same_word(subject, &assignment.field) => {
            let meaning = format!("is called {} today", assignment.field);
            add(
                NoteKind::Renamed,
                subject,
                &meaning,
                "it has been converted",
            );
        }
        _ => {}
    }
    if let Some((meaning, advice)) = changed_meaning(assignment) {
        add(NoteKind::ChangedMeaning, subject, meaning, advice);
    }
    if is_zero(&assignment.node) && ZERO_IS_DEFAULT.contains(&assignment.field.as_str()) {
        let meaning = "zero means the default in a configuration file";
        let advice = "leave the field out, or give the flag";
        add(NoteKind::ChangedMeaning, subject, meaning, advice);
    }
    notes
}

/// The name under which the original has it: the flag, or the field of the file.
fn subject_of(assignment: &Assignment) -> &str {
    let path = &assignment.origin.path;
    path.strip_prefix("kubeletArguments.").unwrap_or(path)
}

/// Whether a flag and a field differ in spelling only: `eviction-hard`, `evictionHard`.
fn is_same_word(subject: &str, field: &str) -> bool {
    let plain = |word: &str| -> String {
        let letters = word.chars().filter(|c| *c != '-' && *c != '_');
        letters.flat_map(char::to_lowercase).collect()
    };
    plain(subject) == plain(field)
}

/// The settings that only a flag can make.
fn about_flag(assignment: &Assignment) -> (String, String) {
    let name = assignment.field.trim_start_matches("--");
    let meaning = match name {
        "cloud-provider" => "providers built into the kubelet are gone, only external is left",
        "experimental-allocatable-ignore-eviction" => {
            "leaves hard thresholds out of allocatable; deprecated, but the kubelet still takes it"
        }
        "minimum-container-ttl-duration"
        | "maximum-dead-containers"
        | "maximum-dead-containers-per-container" => {
            "deprecated in favour of eviction thresholds, but the kubelet still takes it"
        }
        _ => "no configuration file can say it",
    };
    let advice = match (name, flag_text(&assignment.node)) {
        ("cloud-provider", _) => "run the cloud controller manager and pass \
                                  --cloud-provider=external to the kubelet"
            .to_owned(),
        (_, text) => format!("pass --{name}={text} to the kubelet"),
    };
    (meaning.to_owned(), advice)
}

/// A value as it stands behind a flag.
fn flag_text(node: &Node) -> String {
    match &node.content {
        Content::Scalar { text, .. } => text.clone(),
        Content::Sequence(items) => {
            let items: Vec<String> = items.iter().map(flag_text).collect();
            items.join(",")
        }
        Content::Mapping(entries) => {
            let pairs = entries.iter();
            let pairs: Vec<String> = pairs
                .map(|entry| format!("{}={}", entry.key, flag_text(&entry.value)))
                .collect();
            pairs.join(",")
        }
    }
}

fn changed_meaning(assignment: &Assignment) -> Option<(&'static str, &'static str)> {
    Some(match assignment.field.as_str() {
        "evictionMaxPodGracePeriod" => (
            "soft evictions give the smaller of this and the pod's own grace period; they gave \
             this alone",
            "raise terminationGracePeriodSeconds of pods that need longer",
        ),
        "evictionHard" => (
            "setting any threshold drops all defaults, of which there are more today",
            "list every signal, or set mergeDefaultEvictionSettings: true",
        ),
        "qosReserved" => (
            "works only behind a feature gate",
            "set featureGates: {QOSReserved: true}",
        ),
        "featureGates" => (
            "a kubelet refuses gates it does not know, and gates of that age are gone",
            "drop those that graduated or were removed",
        ),
        "cgroupDriver" => (
            "the runtime's answer wins over it where the runtime gives one",
            "configure the same driver in the runtime",
        ),
        "failSwapOn" => (
            "with false, pods use swap only as memorySwap.swapBehavior allows",
            "set memorySwap.swapBehavior if pods are to swap",
        ),
        _ => return None,
    })
}

/// Fields whose zero a file cannot say.
const ZERO_IS_DEFAULT: &[&str] = &[
    "maxPods",
    "evictionPressureTransitionPeriod",
    "nodeStatusUpdateFrequency",
    "imageMinimumGCAge",
    "port",
    "registryBurst",
    "eventBurst",
    "kubeAPIBurst",
    "maxOpenFiles",
    "syncFrequency",
    "fileCheckFrequency",
    "httpCheckFrequency",
    "streamingConnectionIdleTimeout",
    "runtimeRequestTimeout",
    "volumeStatsAggPeriod",
    "cpuManagerReconcilePeriod",
];

fn is_zero(node: &Node) -> bool {
    match &node.content {
        Content::Scalar { text, value } => match value {
            ScalarValue::Int(number) => *number == 0,
            ScalarValue::Text => text.parse() == Ok(crate::duration::Duration::ZERO),
            _ => false,
        },
        _ => false,
    }
}

fn about_okd_field(path: &str) -> (&'static str, &'static str) {
    match path.split('.').next().unwrap_or_default() {
        "servingInfo" => (
            "where and how the node served",
            "set address, port and the tls fields",
        ),
        "masterClientConnectionOverrides" => (
            "how fast the node may call the API",
            "set contentType, kubeAPIQPS and kubeAPIBurst",
        ),
        "dnsBindAddress" | "dnsNameservers" | "dnsRecursiveResolvConf" => (
            "the name server that ran on every node",
            "run CoreDNS, or NodeLocal DNSCache",
        ),
        "networkPluginName" | "networkConfig" => (
            "the pod network",
            "networks are set up by the runtime; configure CNI there",
        ),
        "imageConfig" => (
            "the names of OpenShift's own images",
            "configure the sandbox image in the runtime",
        ),
        "allowDisabledDocker" | "dockerConfig" => (
            "how the node used Docker",
            "Docker is no longer a runtime; configure containerd or CRI-O itself",
        ),
        "authConfig" => (
            "how long answers about callers were kept",
            "set the cache times under authentication.webhook and authorization.webhook",
        ),
        "iptablesSyncPeriod" | "proxyArguments" | "enableUnidling" => (
            "the service proxy that ran inside the node",
            "configure kube-proxy",
        ),
        "volumeConfig" => (
            "disk quota for emptyDir volumes",
            "limit ephemeral-storage in pods; the kubelet evicts those above it",
        ),
        _ => ("a setting of OpenShift's node process", "drop it"),
    }
}
