//! How many files and sockets this process may have open.
//!
//! Service managers start processes with a limit of 1,024, for old programs that cannot use more,
//! and let others raise it. A server with that limit is blocked by a thousand idle clients.

use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// As many as are of use; where there is no limit, tables of this size would be made.
const MOST: u64 = 1_048_576;

/// The limit before it was raised.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit as far as may be. To be called once, when a daemon starts.
pub fn raise_limit() {
    let before = getrlimit(Resource::Nofile);
    let raised = raised(&before);
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => {
            let open_files = raised.current.unwrap_or(MOST);
            tracing::debug!(open_files, "raised open file limit");
            let _ = BEFORE.set(before);
        }
        Err(error) => tracing::warn!(%error, "failed to raise open file limit"),
    }
}

fn raised(before: &Rlimit) -> Rlimit {
    let most = before.maximum.unwrap_or(MOST).min(MOST);
    Rlimit {
        current: before.current.map(|current| current.max(most)),
        maximum: before.maximum,
    }
}

/// Gives a child the limit that this process was started with: programs that are run for others may
/// walk through all numbers that a file can have.
pub fn restore_limit(child: u32) {
    let pid = i32::try_from(child).ok().and_then(Pid::from_raw);
    if let (Some(before), Some(pid)) = (BEFORE.get(), pid)
        && let Err(error) = prlimit(Some(pid), Resource::Nofile, *before)
    {
        tracing::warn!(%error, "failed to lower open file limit of child process");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(current: Option<u64>, maximum: Option<u64>) -> Rlimit {
        Rlimit { current, maximum }
    }

    #[test]
    fn the_soft_limit_is_raised_to_the_hard_one_within_reason() {
        let raised = |current, maximum| raised(&limit(current, maximum)).current;
        assert_eq!(raised(Some(1024), Some(524_288)), Some(524_288));
        assert_eq!(raised(Some(1024), None), Some(MOST));
        assert_eq!(raised(Some(1024), Some(MOST * 2)), Some(MOST));
        assert_eq!(raised(Some(MOST * 2), Some(MOST * 2)), Some(MOST * 2));
        assert_eq!(raised(None, None), None);
    }
}
