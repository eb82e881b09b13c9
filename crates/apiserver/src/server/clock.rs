//! Waiting for a wall-clock time. The clock may be set meanwhile.

use std::time::Duration;

use plimsoll_core::object::timestamp::Timestamp;

use super::respond;

/// The longest single sleep: clocks are set, and machines are suspended.
const LONGEST_SLEEP: Duration = Duration::from_secs(60 * 60);

/// Waits until the clock is beyond that time.
pub async fn passed(time: Timestamp) {
    loop {
        let left = time.as_nanos().saturating_sub(respond::now().as_nanos());
        let Ok(left) = u64::try_from(left) else {
            return;
        };
        let left = Duration::from_nanos(left).saturating_add(Duration::from_millis(1));
        tokio::time::sleep(left.min(LONGEST_SLEEP)).await;
    }
}
