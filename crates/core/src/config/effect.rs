//! What each setting does on a node.
//!
//! The kubelet has settings for parts that a node does not have here. None of them is accepted and
//! then ignored in silence: a setting is applied, or refused, or warned about. [`reference()`] lists
//! them all, [`unsupported`] and [`without_effect`] judge a configuration.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::duration::Duration;
use crate::problem::{Problem, quoted};

use super::read::flag::{self, Target};
use super::read::kubelet_fields::FIELDS;
use super::read::okd_fields;
use super::read::shape::{Field, Shape};
use super::{NodeConfig, Setting};

/// What a setting does on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The node does what it says.
    Applied,
    /// A flag of `plimsoll node` decides. The setting is refused if it says otherwise.
    Flag(&'static str),
    /// The node starts only with one of these values, which say what it does anyhow.
    Only {
        /// The values, as texts; empty for texts, lists and maps that are.
        accepted: &'static [&'static str],
        /// Why it can do nothing else.
        reason: &'static str,
    },
    /// The node starts, warns, and does what it does without the setting.
    None {
        /// Why.
        reason: &'static str,
    },
}

/// The settings that were made and that nothing reads, by path (`cpuManagerPolicy`), flag (`--vmodule`)
/// or OKD's path (`okd.networkConfig.mtu`). They have the right type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unapplied(pub(super) BTreeMap<String, Setting<Value>>);

/// Where a setting is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A field of KubeletConfiguration.
    Kubelet,
    /// A flag of the kubelet without a field.
    Flag,
    /// A field of OKD's `NodeConfig` that KubeletConfiguration does not have.
    Okd,
}

/// One setting, for the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// Where it is made.
    pub place: Place,
    /// The path of the field, or the name of the flag.
    pub name: &'static str,
    /// The flag of the kubelet that sets the same field.
    pub flag: Option<&'static str>,
    /// The type and unit of its values.
    pub unit: &'static str,
    /// The value that holds where it is not set; empty for nothing.
    pub default: &'static str,
    /// What it does.
    pub effect: Effect,
}

/// Every setting of a node: fields in the order of KubeletConfiguration, flags and OKD's fields
/// after them.
pub fn reference() -> Vec<Described> {
    let of = |place, field: &Field| Described {
        place,
        name: field.path,
        flag: flag::for_field(field.path).map(|flag| flag.name),
        unit: field.shape.unit(),
        default: field.default,
        effect: field.effect,
    };
    let fields = FIELDS.iter().map(|field| of(Place::Kubelet, field));
    let flags =
        flag::all().filter(|flag| flag.removed.is_none() && flag.target == Target::FlagOnly);
    let flags = flags.map(|flag| Described {
        place: Place::Flag,
        name: flag.name,
        flag: Some(flag.name),
        unit: flag.syntax.unit(),
        default: "",
        effect: flag.effect,
    });
    let own = |field: &&Field| okd_fields::kubelet_field(field.path).is_none();
    let okd = okd_fields::FIELDS.iter().filter(own);
    fields
        .chain(flags)
        .chain(okd.map(|field| of(Place::Okd, field)))
        .collect()
}

/// The settings with values that a node cannot follow. It does not start with them.
pub fn unsupported(config: &NodeConfig) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, setting) in &config.unapplied.0 {
        let Effect::Only { accepted, reason } = effect_of(name) else {
            continue;
        };
        let value = plain(&setting.value);
        if accepted.contains(&value.as_str()) {
            continue;
        }
        let accepted: Vec<String> = accepted.iter().map(|value| quoted(value)).collect();
        let detail = format!(
            "{} is not supported: {reason}; supported: {}",
            quoted(&value),
            accepted.join(", ")
        );
        problems.push(located(name, setting, detail));
    }
    problems
}

/// The settings that were made and have no effect, each with the reason. Values that stand for the
/// default are left out: tools such as kubeadm write whole files of them.
pub fn without_effect(config: &NodeConfig) -> Vec<Problem> {
    let set = config.unapplied.0.iter();
    let problems = set.filter_map(|(name, setting)| match effect_of(name) {
        Effect::None { reason } if !is_default(name, &setting.value) => {
            let detail = format!("has no effect: {reason}");
            Some(located(name, setting, detail))
        }
        _ => None,
    });
    problems.collect()
}

fn located(name: &str, setting: &Setting<Value>, detail: String) -> Problem {
    let origin = setting.origin.as_ref();
    let path = origin.map_or(name, |origin| origin.path.as_str());
    Problem::refused(path, detail).at(origin.and_then(|origin| origin.position))
}

/// The effect of a setting by its key in [`NodeConfig`].
fn effect_of(name: &str) -> Effect {
    let found = match name.strip_prefix("--") {
        Some(flag) => flag::find(flag).map(|flag| flag.effect),
        None => field_of(name).map(|field| field.effect),
    };
    found.unwrap_or(Effect::None {
        reason: "it is not known",
    })
}

/// The field by the key of a setting that is no flag.
fn field_of(name: &str) -> Option<&'static Field> {
    let (fields, path) = match name.strip_prefix("okd.") {
        Some(path) => (okd_fields::FIELDS, path),
        None => (FIELDS, name),
    };
    fields.iter().find(|field| field.path == path)
}

/// Whether the value stands for the default: it is empty, a duration of zero, or the default itself.
fn is_default(name: &str, value: &Value) -> bool {
    let text = plain(value);
    let is_field_default = |field: &Field| match field.shape {
        Shape::Duration | Shape::DurationOrNanos => text.parse() == Ok(Duration::ZERO),
        _ => text == field.default,
    };
    text.is_empty() || field_of(name).is_some_and(is_field_default)
}

/// A value as [`Effect::Only`] lists it.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) if list.is_empty() => String::new(),
        Value::Object(map) if map.is_empty() => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
