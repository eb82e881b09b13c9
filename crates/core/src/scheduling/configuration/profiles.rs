//! Profiles, and what they must have in common.
//!
//! Matches v1.36 pkg/scheduler/apis/config: v1/defaults.go and validation/validation.go.

use serde_json::Value;

use crate::config::document::{Node, item_path};
use crate::problem::Problem;
use crate::scheduling::plugin_names::{FilterPlugin, PostFilterPlugin, ScorePlugin};
use crate::scheduling::profile::Profile;
use crate::scheduling::registry::ExtensionPoint;

use super::expand::{Merged, Plugins};
use super::fields::Object;
use super::plugin_set::PluginSet;

/// A profile under construction.
pub(super) struct Draft<'a> {
    pub(super) profile: Profile,
    pub(super) plugins: Plugins,
    queue_sort: PluginSet,
    plugin_config: Option<&'a Node>,
}

/// All profiles of a configuration; without any there is the default one.
pub(super) fn read<'a>(
    document: Object<'a>,
    percentage_of_nodes_to_score: Option<u8>,
    problems: &mut Vec<Problem>,
) -> Vec<Draft<'a>> {
    let nodes = document.items("profiles");
    let objects: Vec<Object<'_>> = match nodes {
        [] => vec![Object(None)],
        _ => nodes.iter().map(|node| Object(Some(node))).collect(),
    };
    // A name is made up only where there is just one profile.
    let default_name = match objects.as_slice() {
        [_] => Profile::default().scheduler_name,
        _ => String::new(),
    };
    let mut drafts: Vec<Draft<'_>> = Vec::new();
    for (index, object) in objects.into_iter().enumerate() {
        let path = item_path("profiles", index);
        let name = object.text("schedulerName").unwrap_or(&default_name);
        let draft = read_profile(object, &path, name, percentage_of_nodes_to_score, problems);
        let mut earlier = drafts.iter();
        if earlier.any(|earlier| earlier.profile.scheduler_name == name) {
            problems.push(Problem::duplicate(format!("{path}.schedulerName"), name));
        }
        drafts.push(draft);
    }
    check_common_queue_sort(&drafts, problems);
    drafts
}

fn read_profile<'a>(
    object: Object<'a>,
    path: &str,
    name: &str,
    percentage_of_nodes_to_score: Option<u8>,
    problems: &mut Vec<Problem>,
) -> Draft<'a> {
    if name.is_empty() {
        problems.push(Problem::required(format!("{path}.schedulerName"), ""));
    }
    let own_percentage = percentage(object, &format!("{path}."), problems);
    let mut merged = Merged::read(
        object.object("plugins"),
        format!("{path}.plugins"),
        problems,
    );
    let plugins = merged.expand(name, problems);
    let filters = plugins.at(ExtensionPoint::Filter).iter();
    let scores = plugins.at(ExtensionPoint::Score).iter();
    let post_filters = plugins.at(ExtensionPoint::PostFilter).iter();
    let mut profile = Profile {
        scheduler_name: name.to_owned(),
        filters: filters
            .filter_map(|active| FilterPlugin::from_name(active.name))
            .collect(),
        scores: scores
            .filter_map(|active| Some((ScorePlugin::from_name(active.name)?, active.weight)))
            .collect(),
        post_filters: post_filters
            .filter_map(|active| PostFilterPlugin::from_name(active.name))
            .collect(),
        percentage_of_nodes_to_score: own_percentage.or(percentage_of_nodes_to_score),
        ..Profile::default()
    };
    let plugin_config = object.get("pluginConfig");
    if let Some(list) = plugin_config {
        profile.apply_plugin_config(list, &format!("{path}.pluginConfig"), problems);
    }
    let queue_sort = merged.points.remove(&ExtensionPoint::QueueSort);
    Draft {
        profile,
        plugins,
        queue_sort: queue_sort.unwrap_or_default(),
        plugin_config,
    }
}

/// `percentageOfNodesToScore` of a profile or, with an empty `prefix`, of all.
///
/// Zero is upstream's default: the larger the cluster, the smaller the part of it that is looked
/// at. Here a file has to set it explicitly; otherwise all nodes are scored, which gives the best
/// node and can be repeated.
pub(super) fn percentage(
    object: Object<'_>,
    prefix: &str,
    problems: &mut Vec<Problem>,
) -> Option<u8> {
    let stated = object.int32("percentageOfNodesToScore")?;
    let valid = u8::try_from(stated).ok().filter(|stated| *stated <= 100);
    if valid.is_none() {
        let path = format!("{prefix}percentageOfNodesToScore");
        let rule = "not in valid range [0-100]";
        problems.push(Problem::invalid_bare(path, stated, rule));
    }
    valid
}

/// All profiles share one queue, so they must sort it alike.
fn check_common_queue_sort(drafts: &[Draft<'_>], problems: &mut Vec<Problem>) {
    let [first, others @ ..] = drafts else {
        return;
    };
    let enabled = first.queue_sort.enabled.len();
    if enabled > 1 {
        let rule = "only one queue sort plugin can be enabled";
        let path = "profiles[0].plugins.queueSort.Enabled";
        problems.push(Problem::invalid_bare(path, enabled, rule));
    }
    let sorter = first.queue_sort.enabled.first();
    let args = sorter.map(|sorter| first.args_of(&sorter.name));
    for (index, other) in others.iter().enumerate() {
        let path = item_path("profiles", index + 1);
        if !first.queue_sort.is_equivalent_to(&other.queue_sort) {
            let path = format!("{path}.plugins.queueSort");
            let rule = "must be the same for all profiles";
            problems.push(Problem::invalid_bare(
                path,
                other.queue_sort.to_json(),
                rule,
            ));
        }
        let Some((sorter, args)) = sorter.zip(args.as_ref()) else {
            continue;
        };
        let other = other.args_of(&sorter.name);
        if !other.is_empty() && other != *args {
            let shown = other.last().map_or_else(String::new, Value::to_string);
            let path = format!("{path}.pluginConfig.args");
            let rule = "queueSort must be the same for all profiles";
            problems.push(Problem::invalid_bare(path, shown, rule));
        }
    }
}

impl Draft<'_> {
    /// The arguments that `pluginConfig` has for a plugin; duplicates are reported elsewhere.
    fn args_of(&self, plugin: &str) -> Vec<Value> {
        let list = self.plugin_config.and_then(Node::as_sequence);
        let entries = list.unwrap_or_default().iter();
        entries
            .filter(|entry| Object(Some(entry)).text("name") == Some(plugin))
            .map(|entry| match entry.get("args") {
                Some(args) => args.to_json("", &mut Vec::new()),
                None => Value::Null,
            })
            .collect()
    }
}
