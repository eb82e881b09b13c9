//! What a restarted agent continues with.

use crate::object::identity::PodUid;

use super::super::pending::EarlierEviction;
use super::Record;

/// The evictions that were carried out, oldest first, each with whether its pod was killed at once or
/// when its grace period was ended.
pub fn earlier_evictions<'a>(
    records: impl Iterator<Item = &'a Record> + Clone,
) -> Vec<EarlierEviction> {
    let is_killed = |uid: &str| records.clone().any(|record| record.is_killed(uid));
    let evictions = records.clone().flat_map(|record| {
        record.carried_out().map(|eviction| EarlierEviction {
            uid: PodUid::new(&*eviction.uid),
            at: record.at.unwrap_or_default(),
            grace_period_seconds: eviction.grace_period_seconds,
            is_killed: is_killed(&eviction.uid),
        })
    });
    evictions.collect()
}
