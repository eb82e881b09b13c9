//! Pages about evictions, which upstream does not have: why pods went, how far the lines are, and
//! which pods would be next.

use http::{Response, StatusCode};
use plimsoll_core::eviction::record::Record;
use plimsoll_core::eviction::record::decision::EvictionRecord;
use plimsoll_core::eviction::record::distances::LinesRecord;
use plimsoll_core::eviction::record::ranking::RankingRecord;
use plimsoll_core::threshold::Signal;
use serde::Serialize;

use super::answer;
use super::body::Body;
use super::node::Node;
use super::query::Query;

const API_VERSION: &str = "plimsoll.dev/v1";

/// A list as the API has them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page<T> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    content: T,
}

#[derive(Serialize)]
struct Items<'a> {
    items: Vec<&'a Record>,
}

/// `/plimsoll/decisions`, oldest first. `pod=NAMESPACE/NAME` and `uid=UID` leave those in which that
/// pod was evicted, `limit=N` the latest of them.
pub(super) fn decisions(node: &dyn Node, query: &Query) -> Response<Body> {
    let kept = node.decisions();
    let mut items: Vec<&Record> = kept.iter().map(|record| &**record).collect();
    if let Some(pod) = query.first("pod") {
        items.retain(|record| evicts(record, |evicted| evicted.pod == pod));
    }
    if let Some(uid) = query.first("uid") {
        items.retain(|record| evicts(record, |evicted| evicted.uid == uid));
    }
    if let Some(limit) = query.first("limit") {
        let Ok(limit) = limit.parse::<usize>() else {
            let text = format!("limit {limit:?} is no number");
            return answer::text(StatusCode::BAD_REQUEST, text);
        };
        items.drain(..items.len().saturating_sub(limit));
    }
    page("EvictionDecisionList", Items { items })
}

/// `/plimsoll/lines`.
pub(super) fn lines(node: &dyn Node) -> Response<Body> {
    page::<LinesRecord>("EvictionLineList", node.lines())
}

/// `/plimsoll/ranking?signal=SIGNAL`, for `memory.available` unless another is named.
pub(super) fn ranking(node: &dyn Node, query: &Query) -> Response<Body> {
    let name = query.first("signal");
    let name = name.unwrap_or(Signal::MemoryAvailable.as_str());
    let Some(signal) = Signal::from_name(name) else {
        let text = format!("signal {name:?} is no eviction signal");
        return answer::text(StatusCode::BAD_REQUEST, text);
    };
    match node.ranking(signal) {
        Some(ranking) => page::<RankingRecord>("EvictionRanking", ranking),
        None => {
            let text = "the disks of the node have not been measured yet";
            answer::text(StatusCode::SERVICE_UNAVAILABLE, text.to_owned())
        }
    }
}

fn evicts(record: &Record, is_meant: impl Fn(&EvictionRecord) -> bool) -> bool {
    record.decision.evictions.iter().any(is_meant)
}

fn page<T: Serialize>(kind: &'static str, content: T) -> Response<Body> {
    let page = Page {
        api_version: API_VERSION,
        kind,
        content,
    };
    match serde_json::to_vec(&page) {
        Ok(page) => answer::json(page),
        Err(error) => answer::text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}
