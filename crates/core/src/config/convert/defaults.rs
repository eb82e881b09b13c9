//! Notes on settings that the original does not set.

use std::collections::BTreeMap;

use super::super::{NodeConfig, Profile, Setting};
use super::{Note, NoteKind};

/// The defaults that differ between the original's release and today's.
pub(super) fn notes(config: &NodeConfig) -> Vec<Note> {
    let today = NodeConfig::defaults(Profile::Kubernetes136);
    let mut differences = Differences::default();
    differences.compare("cgroupDriver", &config.cgroup_driver, &today.cgroup_driver);
    differences.compare("maxPods", &config.max_pods, &today.max_pods);
    differences.compare("podsPerCore", &config.pods_per_core, &today.pods_per_core);
    differences.compare("failSwapOn", &config.fail_swap_on, &today.fail_swap_on);
    differences.compare(
        "failCgroupV1",
        &config.fail_cgroup_v1,
        &today.fail_cgroup_v1,
    );
    differences.compare(
        "imageGCHighThresholdPercent",
        &config.image_gc_high_threshold_percent,
        &today.image_gc_high_threshold_percent,
    );
    let as_text = |setting: &Setting<BTreeMap<String, String>>| Setting {
        value: in_braces(&setting.value),
        origin: setting.origin.clone(),
    };
    differences.compare(
        "evictionHard",
        &as_text(&config.eviction_hard),
        &as_text(&today.eviction_hard),
    );
    differences.notes
}

#[derive(Default)]
struct Differences {
    notes: Vec<Note>,
}

impl Differences {
    fn compare<T: PartialEq + ToString>(
        &mut self,
        field: &str,
        original: &Setting<T>,
        today: &Setting<T>,
    ) {
        if original.is_set() || original.value == today.value {
            return;
        }
        let (before, after) = (original.value.to_string(), today.value.to_string());
        self.notes.push(Note {
            kind: NoteKind::ChangedDefault,
            subject: field.to_owned(),
            meaning: format!("is {after} unless set, and was {before}"),
            advice: format!("set {field}: {before} to keep it"),
            position: None,
        });
    }
}

fn in_braces(texts: &BTreeMap<String, String>) -> String {
    let pairs = texts.iter();
    let pairs: Vec<String> = pairs
        .map(|(signal, text)| format!("{signal}: {text}"))
        .collect();
    format!("{{{}}}", pairs.join(", "))
}
