//! Why a pod was placed on its node.

use std::cmp::Reverse;

use k8s_openapi::api::core::v1::{Event, Pod};
use plimsoll_core::object::identity::NodeName;
use plimsoll_core::scheduling::decision::{PLACEMENT_ANNOTATION, PlacementNote};
use plimsoll_core::scheduling::explain::{Explanation, explain};

use super::events;
use super::pending::{Case, rejections};
use super::report::{Placed, RankedNode, Recomputed, ScoreRow};

/// The number of best nodes shown besides the pod's own.
const SHOWN: usize = 3;

/// The annotation of static pods.
const CONFIG_SOURCE: &str = "kubernetes.io/config.source";

/// The placement of a pod; `case`, the cluster without the pod, computes the scores again.
pub(crate) fn explain_placed(
    pod: &Pod,
    node: &str,
    events: &[Event],
    case: Option<&Case<'_>>,
) -> Placed {
    let scheduled = events::latest(events, "Scheduled");
    let note = scheduled.and_then(note_of);
    Placed {
        node: node.to_owned(),
        at: scheduled.and_then(events::time_of),
        by: by(pod, scheduled),
        feasible_nodes: note.map(|note| note.feasible_nodes),
        score: note.and_then(|note| note.score),
        now: case.and_then(|case| recompute(case, node)),
    }
}

fn note_of(event: &Event) -> Option<PlacementNote> {
    let annotations = event.metadata.annotations.as_ref()?;
    serde_json::from_str(annotations.get(PLACEMENT_ANNOTATION)?).ok()
}

fn by(pod: &Pod, scheduled: Option<&Event>) -> String {
    let annotations = pod.metadata.annotations.as_ref();
    let source = annotations.and_then(|annotations| annotations.get(CONFIG_SOURCE));
    if source.is_some_and(|source| source != "api") {
        return "the node itself: it is a static pod".to_owned();
    }
    let name = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.scheduler_name.clone());
    let name = name.unwrap_or_else(|| "default-scheduler".to_owned());
    match scheduled {
        Some(_) => name,
        None => format!("{name}, or a client that set spec.nodeName: the event has expired"),
    }
}

fn recompute(case: &Case<'_>, node: &str) -> Option<Recomputed> {
    let cluster = case.cycle.cluster;
    let explanation = explain(&case.cycle, cluster.node_count()).ok()?;
    let own = cluster.slot(&NodeName::new(node));
    let place = explanation
        .ranked
        .iter()
        .position(|(slot, _)| Some(*slot) == own);
    let first = own.and_then(|slot| explanation.filtered.rejection(slot));
    let rejections = match own {
        Some(slot) => rejections(case, &explanation.filtered, slot, first),
        None => Vec::new(),
    };
    Some(Recomputed {
        nodes: cluster.node_count(),
        feasible_nodes: explanation.filtered.feasible().count(),
        ranked: ranked(case, &explanation, place),
        place: place.map(|place| place + 1),
        rejections,
    })
}

/// The best nodes, and the pod's own if it is not among them.
fn ranked(case: &Case<'_>, explanation: &Explanation, own: Option<usize>) -> Vec<RankedNode> {
    let mut places: Vec<usize> = (0..explanation.ranked.len().min(SHOWN)).collect();
    if let Some(own) = own.filter(|own| *own >= SHOWN) {
        places.push(own);
    }
    let weight_of = |plugin| {
        let mut scores = case.cycle.profile.scores.iter();
        scores
            .find(|(own, _)| *own == plugin)
            .map_or(1, |(_, weight)| *weight)
    };
    let of = |place: usize| {
        let (slot, scores) = explanation.ranked.get(place)?;
        let node = case.cycle.cluster.node(*slot)?;
        let rows = scores.by_plugin.iter().map(|score| ScoreRow {
            plugin: score.plugin.as_str(),
            weight: weight_of(score.plugin),
            score: score.normalized,
        });
        let mut rows: Vec<ScoreRow> = rows.collect();
        // The plugins with the largest weights come first.
        rows.sort_by_key(|row| Reverse(row.weight));
        Some(RankedNode {
            node: node.view.name.to_string(),
            total: scores.total,
            scores: rows,
        })
    };
    places.into_iter().filter_map(of).collect()
}
