//! The soak: a node under constant load, checked against rules all the time.
//!
//! A real agent on a played machine of 700 MiB starts and ends pods of all kinds at random, hogs run
//! it dry, and it is killed and started again in between. No pod may be evicted without need, nothing
//! may be started twice, and whenever all pods are gone nothing of them may be left: no cgroup, mount,
//! process, network card or file, no descriptor and no memory of the agent.
//!
//!     cargo test -p plimsoll --test soak -- --ignored --nocapture             # three minutes at most
//!     PLIMSOLL_SOAK_SECONDS=3600 PLIMSOLL_SOAK_SEED=7 cargo test …            # an hour, another order
//!
//! Reading order: [`workload`] (the pods), [`rules`] (what holds at all times), [`ledger`] (watches
//! that), [`agent_usage`] (what may not grow), [`soak`] (the rounds).

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and a run of an hour prints its progress"
)]

mod agent_usage;
mod ledger;
mod rules;
mod rules_find;
mod soak;
mod workload;

// The cluster is that of the tests of single nodes, which need more of it than a soak does.
#[path = "../node/api.rs"]
mod api;
#[expect(dead_code, unused_imports, unused_macros, reason = "see above")]
#[path = "../node/cluster.rs"]
mod cluster;
#[expect(dead_code, reason = "see above")]
#[path = "../node/manifest.rs"]
mod manifest;

use std::time::{Duration, Instant};

use soak::Soak;

/// The duration in seconds. By default until as much has happened as on a node in an hour, or for as
/// long as a run of all tests can afford.
const SECONDS_VARIABLE: &str = "PLIMSOLL_SOAK_SECONDS";
const AFFORDABLE_SECONDS: u64 = 150;

/// What happens when; the same number begins alike.
const SEED_VARIABLE: &str = "PLIMSOLL_SOAK_SEED";

/// How often all pods are deleted and leftovers are checked.
const BETWEEN_QUIET_POINTS: Duration = Duration::from_secs(30);

#[test]
#[ignore = "tier: root"]
fn nothing_is_left_behind_and_no_pod_is_evicted_without_need() {
    let seed = number(SEED_VARIABLE).unwrap_or(1);
    let printed = number(SECONDS_VARIABLE);
    let length = Duration::from_secs(printed.unwrap_or(AFFORDABLE_SECONDS));
    eprintln!(
        "{SEED_VARIABLE}={seed} {SECONDS_VARIABLE}={}",
        length.as_secs()
    );
    let begun = Instant::now();
    let mut soak = Soak::start(seed);
    soak.warm_up();
    let is_over =
        |soak: &Soak| begun.elapsed() >= length || printed.is_none() && soak.has_seen_enough();
    while !is_over(&soak) {
        let quiet_at = Instant::now() + BETWEEN_QUIET_POINTS;
        while Instant::now() < quiet_at && !is_over(&soak) {
            soak.round();
        }
        soak.quiet();
    }
    soak.end();
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|e| panic!("{variable}={text}: {e}")),
    )
}
