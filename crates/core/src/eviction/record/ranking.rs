//! Records of the order in which pods would be evicted.

use serde::{Deserialize, Serialize};

use crate::config::Profile;
use crate::resources::Bytes;
use crate::threshold::{Signal, StarvedResource};

use super::super::candidate::{ActivePod, Candidate};
use super::super::rank::Ranked;
use super::super::settings::Settings;
use super::super::usage::{MemoryUsage, PodUsage};
use super::decision::RankRecord;
use crate::object::pod::PodView;

/// The pods of a node in the order in which they would be evicted for a signal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RankingRecord {
    /// The signal.
    pub signal: String,
    /// The pods, the first to be evicted first. Pods that are never evicted are in it too.
    #[serde(default)]
    pub items: Vec<PlaceRecord>,
}

/// A pod in its place.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlaceRecord {
    /// What put it there.
    #[serde(flatten)]
    pub rank: RankRecord,
    /// What it requests of what is short; `None` where that cannot be requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

/// A pod and what is known of its usage, for [`RankingRecord::of`].
#[derive(Clone, Debug)]
pub struct Standing {
    candidate: Candidate,
    usage: Option<PodUsage>,
}

impl Standing {
    /// A pod as its agent knows it. A pod without a cgroup uses no memory: that is known, and does
    /// not put it first. One of which nothing may run any more is not evicted again.
    pub fn measured(
        pod: &PodView,
        profile: Profile,
        usage: Option<PodUsage>,
        may_run: bool,
    ) -> Standing {
        let mut candidate = Candidate::new(pod, profile);
        candidate.is_exempt |= !may_run;
        let mut usage = usage.unwrap_or_default();
        usage.memory.get_or_insert(MemoryUsage {
            working_set: Some(Bytes::ZERO),
        });
        Standing {
            candidate,
            usage: Some(usage),
        }
    }

    /// A pod as the statistics of a kubelet show it: one that is not in them goes first there.
    pub fn reported(pod: &PodView, profile: Profile, usage: Option<PodUsage>) -> Standing {
        Standing {
            candidate: Candidate::new(pod, profile),
            usage,
        }
    }
}

impl RankingRecord {
    /// The order that the engine evicts them in.
    pub fn of(settings: &Settings, signal: Signal, pods: &[Standing]) -> RankingRecord {
        let active = pods.iter().map(|pod| ActivePod {
            candidate: &pod.candidate,
            usage: pod.usage.as_ref(),
        });
        let active: Vec<ActivePod<'_>> = active.collect();
        let ranked = settings.ranking(signal, &active);
        let place = |ranked: &Ranked<'_>| {
            let requests = &ranked.pod.candidate.requests;
            PlaceRecord {
                rank: RankRecord::of(ranked),
                request: match signal.resource() {
                    StarvedResource::Memory => Some(requests.memory.to_string()),
                    StarvedResource::EphemeralStorage => Some(requests.storage.to_string()),
                    StarvedResource::Inodes | StarvedResource::Pids => None,
                },
            }
        };
        RankingRecord {
            signal: signal.to_string(),
            items: ranked.iter().map(place).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NodeConfig;
    use crate::threshold::DiskLayout;
    use serde_json::json;

    fn standing(name: &str, used: Option<i64>) -> Standing {
        let pod = json!({
            "metadata": { "name": name, "namespace": "default", "uid": name },
            "spec": { "containers": [
                { "name": "main", "resources": { "requests": { "memory": "10Mi" } } },
            ] },
        });
        let view = PodView::from_api(&serde_json::from_value(pod).unwrap()).unwrap();
        let usage = used.map(|used| PodUsage {
            memory: Some(MemoryUsage {
                working_set: Some(Bytes(used)),
            }),
            ..PodUsage::default()
        });
        Standing::measured(&view, Profile::default(), usage, true)
    }

    #[test]
    fn a_pod_that_never_started_is_not_ranked_first() {
        let config = NodeConfig::defaults(Profile::default());
        let settings = Settings::new(&config, DiskLayout::Single).unwrap();
        let pods = [standing("waits", None), standing("hog", Some(50 << 20))];
        let ranking = RankingRecord::of(&settings, Signal::MemoryAvailable, &pods);
        let names: Vec<&str> = ranking.items.iter().map(|item| &*item.rank.pod).collect();
        assert_eq!(names, ["default/hog", "default/waits"]);
        assert_eq!(ranking.items[1].rank.usage.as_deref(), Some("0"));
        let text = serde_json::to_string(&ranking).unwrap();
        assert_eq!(
            serde_json::from_str::<RankingRecord>(&text).unwrap(),
            ranking
        );
    }
}
