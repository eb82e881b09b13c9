//! Waiting for a wall-clock time. The clock may be set meanwhile.

use std::time::Duration;

use plimsoll_core::object::timestamp::Timestamp;

use super::respond;
use crate::auth::authority::Term;

/// The longest single sleep: clocks are set, and machines are suspended.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// Waits until the clock is beyond that time.
pub(in crate::server) async fn passed(time: Timestamp) {
    while !sleep_until(time).await {}
}

/// Waits until another certificate is better than the one with that term.
pub async fn is_over(term: Term) {
    loop {
        sleep_until(term.due()).await;
        if term.is_over(respond::now()) {
            return;
        }
    }
}

/// Sleeps until that time, or a while; whether the clock is beyond it.
async fn sleep_until(time: Timestamp) -> bool {
    let left = time.as_nanos().saturating_sub(respond::now().as_nanos());
    let Ok(left) = u64::try_from(left) else {
        return true;
    };
    let left = Duration::from_nanos(left).saturating_add(Duration::from_millis(1));
    tokio::time::sleep(left.min(LONGEST_SLEEP)).await;
    false
}
