//! Why a pod goes where it goes: every verdict, and the scores of the best nodes by plugin.

use std::cmp::Reverse;

use super::cluster::NodeSlot;
use super::filter_results::FilterResults;
use super::filters::Cycle;
use super::plugin_names::ScorePlugin;
use super::reference::{Search, filter_nodes, score_nodes};
use super::scores::{InvalidScore, NodeScores};

/// All that the filters and scores have to say about a pod.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The verdict on every node.
    pub filtered: FilterResults,
    /// The best nodes, the best first, with what each plugin gives them.
    pub ranked: Vec<(NodeSlot, NodeScores)>,
    /// Scores with nothing to say about the pod.
    pub skipped: Vec<ScorePlugin>,
}

/// Explains a decision, with the scores of at most `nodes` nodes.
///
/// For `explain`, not for every pod: it looks at all nodes.
pub fn explain(cycle: &Cycle<'_>, nodes: usize) -> Result<Explanation, InvalidScore> {
    let filtered = filter_nodes(cycle, Search::All);
    let scored = score_nodes(cycle, &filtered)?;
    let mut ranked = scored.nodes;
    ranked.sort_by_key(|(slot, scores)| (Reverse(scores.total), *slot));
    ranked.truncate(nodes);
    Ok(Explanation {
        filtered,
        ranked,
        skipped: scored.skipped,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::node::NodeView;
    use crate::scheduling::cluster::Cluster;
    use crate::scheduling::pod::SchedulingPod;
    use crate::scheduling::profile::Profile;

    #[test]
    fn best_node_is_first_and_every_node_has_a_verdict() {
        let mut cluster = Cluster::new();
        for (name, cpu) in [("small", "1"), ("large", "8"), ("tiny", "10m")] {
            let api = json!({
                "metadata": {"name": name},
                "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "9"}},
            });
            let api = serde_json::from_value(api).unwrap();
            cluster.set_node(NodeView::from_api(&api).unwrap());
        }
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [
            {"name": "c", "resources": {"requests": {"cpu": "500m"}}},
        ]}});
        let pod = SchedulingPod::from_api(&serde_json::from_value(pod).unwrap()).unwrap();
        let cycle = Cycle {
            cluster: &cluster,
            profile: &Profile::default(),
            pod: &pod,
        };
        let explanation = explain(&cycle, 1).unwrap();
        let (best, scores) = &explanation.ranked[0];
        let best = cluster.node(*best).unwrap();
        assert_eq!(best.view.name.as_str(), "large");
        assert!(scores.by_plugin.len() > 2);
        assert_eq!(explanation.ranked.len(), 1);
        let rejected = explanation.filtered.nodes.iter();
        assert_eq!(rejected.filter(|(_, verdict)| verdict.is_some()).count(), 1);
    }
}
