//! Cost and benefit of covering the soft line with the reservation.
//!
//! With capacity C, daemons using D, reserved R, hard line H and soft line S of memory:
//!   allocatable        = C - R - H
//!   kubepods limit     = C - R
//!   soft fires when pods use more than   C - S - D
//!   hard fires when pods use more than   C - R - H  (the allocatable twin), or, where the twin is
//!   off, C - H - D
//! For C 100, D 5, H 5, S 10: reserving 5 gives 90, 95, 85, 90; 10 gives 85, 90, 85, 85;
//! 15 gives 80, 85, 85, 80.

use crate::resources::Bytes;

/// The numbers that decide which line pods reach first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftCaseInput {
    /// All memory.
    pub capacity: Bytes,
    /// The usage of daemons outside pods.
    pub daemons: Bytes,
    /// The reservation for them.
    pub reserved: Bytes,
    /// The hard line.
    pub hard: Bytes,
    /// The soft line.
    pub soft: Bytes,
    /// Whether pods together are held to allocatable by a hard line of their own.
    pub has_allocatable_twin: bool,
}

/// One way of choosing the reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// As it is.
    AsConfigured,
    /// Daemons and the distance between the lines: the least that covers the soft line.
    Covered,
    /// Daemons and the whole soft line, as OKD's guide has it; counts the hard line twice.
    Documented,
}

impl Choice {
    /// A short name for tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Choice::AsConfigured => "as configured",
            Choice::Covered => "daemons + soft - hard",
            Choice::Documented => "daemons + soft",
        }
    }
}

/// The result of a choice. All amounts are floored at zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftCase {
    /// The choice.
    pub choice: Choice,
    /// The reservation.
    pub reserved: Bytes,
    /// The resources that pods may request.
    pub allocatable: Bytes,
    /// The limit of the kubepods cgroup.
    pub kubepods_limit: Bytes,
    /// Pods that use more than this cross the soft line.
    pub soft_fires_above: Bytes,
    /// Pods that use more than this cross a hard line.
    pub hard_fires_above: Bytes,
}

/// The effect on pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Pods that stay within their requests can still be evicted at the soft line.
    RequestsNotSafe,
    /// Requests are safe and overuse meets the soft line first.
    SoftActsFirst,
    /// Requests are safe, but overuse by pods meets the hard line before or with the soft one; soft
    /// eviction then answers to daemons only.
    HardActsFirst,
}

impl Verdict {
    /// One line for a person.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::RequestsNotSafe => "pods within their requests can be soft-evicted",
            Verdict::SoftActsFirst => "requests are safe; overuse meets the soft line first",
            Verdict::HardActsFirst => "requests are safe; overuse meets the hard line first",
        }
    }
}

impl SoftCase {
    /// The effect on pods.
    pub fn verdict(&self) -> Verdict {
        if self.allocatable > self.soft_fires_above {
            Verdict::RequestsNotSafe
        } else if self.hard_fires_above <= self.soft_fires_above {
            Verdict::HardActsFirst
        } else {
            Verdict::SoftActsFirst
        }
    }
}

/// The three choices side by side.
pub fn compute_soft_cases(situation: &SoftCaseInput) -> [SoftCase; 3] {
    let SoftCaseInput {
        daemons,
        reserved,
        hard,
        soft,
        ..
    } = *situation;
    [
        (Choice::AsConfigured, reserved),
        (Choice::Covered, daemons + soft.saturating_sub(hard)),
        (Choice::Documented, daemons + soft),
    ]
    .map(|(choice, reserved)| compute_case(situation, choice, reserved))
}

fn compute_case(situation: &SoftCaseInput, choice: Choice, reserved: Bytes) -> SoftCase {
    let SoftCaseInput {
        capacity,
        daemons,
        hard,
        soft,
        has_allocatable_twin,
        ..
    } = *situation;
    let kubepods_limit = capacity.saturating_sub(reserved);
    // Ignoring eviction in allocatable leaves out the hard line along with the twin.
    let allocatable = if has_allocatable_twin {
        kubepods_limit.saturating_sub(hard)
    } else {
        kubepods_limit
    };
    SoftCase {
        choice,
        reserved,
        allocatable,
        kubepods_limit,
        soft_fires_above: capacity.saturating_sub(soft).saturating_sub(daemons),
        hard_fires_above: if has_allocatable_twin {
            kubepods_limit.saturating_sub(hard)
        } else {
            capacity.saturating_sub(hard).saturating_sub(daemons)
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn situation() -> SoftCaseInput {
        SoftCaseInput {
            capacity: Bytes(100),
            daemons: Bytes(5),
            reserved: Bytes(5),
            hard: Bytes(5),
            soft: Bytes(10),
            has_allocatable_twin: true,
        }
    }

    #[test]
    fn worked_example_matches_documentation() {
        let rows = compute_soft_cases(&situation()).map(|case| {
            [
                case.reserved.0,
                case.allocatable.0,
                case.kubepods_limit.0,
                case.soft_fires_above.0,
                case.hard_fires_above.0,
            ]
        });
        assert_eq!(
            rows,
            [
                [5, 90, 95, 85, 90],
                [10, 85, 90, 85, 85],
                [15, 80, 85, 85, 80],
            ]
        );
    }

    #[test]
    fn only_an_uncovered_soft_line_endangers_requests() {
        let verdicts = compute_soft_cases(&situation()).map(|case| case.verdict());
        assert_eq!(
            verdicts,
            [
                Verdict::RequestsNotSafe,
                Verdict::HardActsFirst,
                Verdict::HardActsFirst,
            ]
        );
    }

    #[test]
    fn without_the_twin_a_covered_soft_line_acts_first() {
        let cases = compute_soft_cases(&SoftCaseInput {
            reserved: Bytes(15),
            has_allocatable_twin: false,
            ..situation()
        });
        assert_eq!(cases[0].verdict(), Verdict::SoftActsFirst);
    }
}
