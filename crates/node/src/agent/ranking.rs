//! Which pods would be evicted first, for clients that ask before an eviction happens.

use plimsoll_core::eviction::record::ranking::{RankingRecord, Standing};
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::pod::PodView;
use plimsoll_core::threshold::Signal;

use super::measure::Meter;
use crate::pod_fields;
use crate::pods::Pods;

/// The order of the engine, by what was measured last; `None` before the node was measured.
pub(super) fn ranking(meter: &Meter, pods: &Pods, signal: Signal) -> Option<RankingRecord> {
    let settings = meter.eviction_settings()?;
    let profile = settings.profile;
    let mut usages = meter.summary().usages();
    let reports = pods.reports().all().into_iter();
    let present = reports.filter(|report| !report.is_finished);
    let standings = present.filter_map(|report| {
        let view = PodView::from_api(&report.pod).ok()?;
        let usage = usages.remove(&PodUid::new(pod_fields::uid(&report.pod)));
        Some(Standing::measured(&view, profile, usage, report.may_run))
    });
    let standings: Vec<Standing> = standings.collect();
    Some(RankingRecord::of(settings, signal, &standings))
}
