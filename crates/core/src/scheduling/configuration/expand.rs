//! Which plugins act at which extension point, in which order.
//!
//! Matches v1.36 pkg/scheduler/framework/runtime/framework.go: `updatePluginList`,
//! `expandMultiPointPlugins`, `getValidScoreWeights` and what `NewFramework` insists on.

use std::collections::{BTreeMap, BTreeSet};

use crate::problem::{Problem, quoted};
use crate::scheduling::registry::{self, ExtensionPoint, Registered};

use super::fields::Object;
use super::plugin_set::{ALL, Named, PluginSet};

/// What acts at every extension point of a profile. Most of it is only carried: this crate models
/// filters, scores and preemption.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plugins {
    by_point: BTreeMap<ExtensionPoint, Vec<Active>>,
}

/// A plugin at an extension point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Active {
    /// Its name.
    pub name: &'static str,
    /// The weight of its scores; used only where something is scored.
    pub weight: i64,
}

impl Plugins {
    /// The plugins at an extension point, in order.
    pub fn at(&self, point: ExtensionPoint) -> &[Active] {
        self.by_point.get(&point).map_or(&[], Vec::as_slice)
    }
}

/// The `plugins` of a profile, merged with the default ones.
pub(super) struct Merged {
    pub(super) path: String,
    pub(super) multi_point: PluginSet,
    pub(super) points: BTreeMap<ExtensionPoint, PluginSet>,
}

impl Merged {
    pub(super) fn read(object: Object<'_>, path: String, problems: &mut Vec<Problem>) -> Merged {
        let read = |key: &str, problems: &mut Vec<Problem>| {
            PluginSet::read(object.object(key), &format!("{path}.{key}"), problems)
        };
        let multi_point = read("multiPoint", problems);
        let points = ExtensionPoint::ALL.map(|point| (point, read(point.as_str(), problems)));
        Merged {
            multi_point: multi_point.merged_into(PluginSet::default_multi_point()),
            // All defaults are in multiPoint, so there is nothing to merge the others with.
            points: points.into_iter().collect(),
            path,
        }
    }

    /// The plugins by extension point, and everything that upstream would not start with.
    pub(super) fn expand(&self, scheduler_name: &str, problems: &mut Vec<Problem>) -> Plugins {
        for plugin in &self.multi_point.enabled {
            if registry::find(&plugin.name).is_none() {
                let path = format!("{}.name", plugin.path);
                problems.push(registry::no_such(&path, &plugin.name, "plugin"));
            }
        }
        let mut repeated = BTreeMap::new();
        let mut plugins = Plugins::default();
        for (point, set) in &self.points {
            let own = check_enabled(*point, set, problems);
            let all = order(*point, set, &own, &self.multi_point, &mut repeated);
            let all = all.into_iter().map(|plugin| Active {
                name: plugin.name,
                weight: self.weight(set, plugin.name),
            });
            plugins.by_point.insert(*point, all.collect());
        }
        problems.extend(repeated.into_values());
        self.check_numbers(&plugins, scheduler_name, problems);
        plugins
    }

    /// The weight at the point itself, or else the one in `multiPoint`; none stated is one.
    fn weight(&self, set: &PluginSet, name: &str) -> i64 {
        let mut stated = set.enabled.iter().chain(&self.multi_point.enabled);
        let stated = stated.find(|plugin| plugin.name == name);
        match stated.map_or(0, |plugin| plugin.weight) {
            0 => 1,
            weight => weight.into(),
        }
    }

    fn check_numbers(&self, plugins: &Plugins, name: &str, problems: &mut Vec<Problem>) {
        let name = quoted(name);
        let mut refuse = |point: ExtensionPoint, sentence: String| {
            problems.push(Problem::refused(format!("{}.{point}", self.path), sentence));
        };
        let sorts = plugins.at(ExtensionPoint::QueueSort).len();
        if sorts != 1 {
            let sentence = format!(
                "only one queue sort plugin required for profile with scheduler name {name}, but \
                 got {sorts}"
            );
            refuse(ExtensionPoint::QueueSort, sentence);
        }
        if plugins.at(ExtensionPoint::Bind).is_empty() {
            let sentence = format!(
                "at least one bind plugin is needed for profile with scheduler name {name}"
            );
            refuse(ExtensionPoint::Bind, sentence);
        }
    }
}

/// The plugins that a point names itself, without those that cannot act there or stand twice.
fn check_enabled(
    point: ExtensionPoint,
    set: &PluginSet,
    problems: &mut Vec<Problem>,
) -> Vec<&'static Registered> {
    let plugin_type = point.plugin_type();
    let mut own: Vec<&'static Registered> = Vec::new();
    for Named { name, path, .. } in &set.enabled {
        let name_path = format!("{path}.name");
        match registry::find(name) {
            None if registry::REMOVED.contains(&name.as_str()) => {
                problems.push(registry::removed(path, name));
            }
            None => problems.push(registry::no_such(&name_path, name, &plugin_type)),
            Some(plugin) if !plugin.points.contains(&point) => {
                let rule = format!(
                    "plugin {} does not extend {plugin_type} plugin",
                    quoted(name)
                );
                problems.push(Problem::invalid(name_path, name, rule));
            }
            Some(plugin) if own.contains(&plugin) => {
                problems.push(registered_twice(&name_path, name, point));
            }
            Some(plugin) => own.push(plugin),
        }
    }
    own
}

fn registered_twice(path: &str, name: &str, point: ExtensionPoint) -> Problem {
    let mut problem = Problem::duplicate(path, name);
    let plugin_type = point.plugin_type();
    problem.detail = format!(
        "plugin {} already registered as \"{plugin_type}\"",
        quoted(name)
    );
    problem
}

/// All plugins of a point: first those of its own that `multiPoint` enables as well, then the rest
/// of `multiPoint`, then the rest of its own.
fn order(
    point: ExtensionPoint,
    set: &PluginSet,
    own: &[&'static Registered],
    multi_point: &PluginSet,
    repeated: &mut BTreeMap<String, Problem>,
) -> Vec<&'static Registered> {
    if set.disables(ALL) {
        return own.to_vec();
    }
    let (mut overriding, mut added) = (BTreeSet::new(), Vec::new());
    for named in &multi_point.enabled {
        let Some(plugin) = registry::find(&named.name) else {
            continue;
        };
        if !plugin.points.contains(&point) || set.disables(plugin.name) {
            continue;
        }
        if own.contains(&plugin) {
            overriding.insert(plugin.name);
        } else if added.contains(&plugin) {
            let path = format!("{}.name", named.path);
            let problem = registered_twice(&path, &named.name, point);
            repeated.entry(path).or_insert(problem);
        } else {
            added.push(plugin);
        }
    }
    let (first, last): (Vec<_>, Vec<_>) = own
        .iter()
        .partition(|plugin| overriding.contains(plugin.name));
    [first, added, last].concat()
}
