//! The rules and why they exist.

use std::fmt;

use crate::problem::{Kind, Problem};

/// A rule of the checker. The number is part of its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// The file cannot be used as it is; the kubelet, the scheduler or the API server would refuse
    /// it.
    Refused,
    /// L1: a soft threshold without a grace period.
    SoftWithoutGrace,
    /// L2: a soft threshold that is not above the hard one.
    SoftNotAboveHard,
    /// L3: a soft grace period of zero.
    SoftGraceZero,
    /// L4: a grace period or minimum reclaim for a signal that has no threshold.
    UnusedEvictionEntry,
    /// L5: `evictionHard` that drops default thresholds.
    DefaultsDropped,
    /// L6: a threshold that the node can never be above.
    ThresholdOutOfReach,
    /// L7: two thresholds for one signal in one list.
    RepeatedSignal,
    /// L8: a reservation that does not cover daemons and the soft line.
    SoftLineNotCovered,
    /// L9: swap on the node.
    SwapOn,
    /// L10: soft thresholds whose kills have no grace.
    SoftKillWithoutGrace,
    /// L11: a `DaemonSet` that eviction takes first, or may take at all.
    UnprotectedDaemonSet,
    /// L12: limits on the daemons' own cgroups.
    DaemonsLimited,
    /// L13: an override that pushes requests below the namespace's minimum.
    OverrideBelowMinimum,
    /// L14: a scalar where kubeletArguments needs a list.
    ScalarArgument,
    /// L15: a disk that is filled but not watched.
    DiskNotWatched,
    /// L16: heartbeats too rare for the control plane's grace period.
    HeartbeatTooSlow,
    /// L17: a transition period that lets conditions flap.
    TransitionTooShort,
    /// L18: a quantity whose unit does not suit the resource.
    UnlikelyUnit,
    /// L19: a label key of Kubernetes' own domains that no node has.
    UnknownLabel,
    /// L20: what the API server warns about.
    ServerWarning,
    /// L21: a file that cannot be read.
    Unreadable,
    /// L22: an object that is not checked, because its kind is not served.
    NotChecked,
    /// L23: an object that stands twice.
    RepeatedObject,
    /// L24: a setting with a value that a node does not start with.
    UnsupportedSetting,
    /// L25: a setting that changes nothing on a node.
    SettingWithoutEffect,
    /// L26: a setting that a flag of `plimsoll node` decides, with another value.
    SettingDecidedByFlag,
}

impl Rule {
    /// Every rule, in the order of ids.
    pub const ALL: [Rule; 27] = [
        Rule::Refused,
        Rule::SoftWithoutGrace,
        Rule::SoftNotAboveHard,
        Rule::SoftGraceZero,
        Rule::UnusedEvictionEntry,
        Rule::DefaultsDropped,
        Rule::ThresholdOutOfReach,
        Rule::RepeatedSignal,
        Rule::SoftLineNotCovered,
        Rule::SwapOn,
        Rule::SoftKillWithoutGrace,
        Rule::UnprotectedDaemonSet,
        Rule::DaemonsLimited,
        Rule::OverrideBelowMinimum,
        Rule::ScalarArgument,
        Rule::DiskNotWatched,
        Rule::HeartbeatTooSlow,
        Rule::TransitionTooShort,
        Rule::UnlikelyUnit,
        Rule::UnknownLabel,
        Rule::ServerWarning,
        Rule::Unreadable,
        Rule::NotChecked,
        Rule::RepeatedObject,
        Rule::UnsupportedSetting,
        Rule::SettingWithoutEffect,
        Rule::SettingDecidedByFlag,
    ];

    /// The rule behind a problem that a reader found; [`Rule::Refused`] where it is no other.
    pub fn of(problem: &Problem) -> Rule {
        let is_argument = problem.path.starts_with("kubeletArguments");
        match problem.kind {
            Kind::Required if problem.detail.contains("soft eviction threshold") => {
                Rule::SoftWithoutGrace
            }
            Kind::TypeInvalid if is_argument => Rule::ScalarArgument,
            Kind::Duplicate if is_argument => Rule::RepeatedSignal,
            _ => Rule::Refused,
        }
    }

    /// The id in output and in suppressions.
    pub const fn id(self) -> &'static str {
        match self {
            Rule::Refused => "L0",
            Rule::SoftWithoutGrace => "L1",
            Rule::SoftNotAboveHard => "L2",
            Rule::SoftGraceZero => "L3",
            Rule::UnusedEvictionEntry => "L4",
            Rule::DefaultsDropped => "L5",
            Rule::ThresholdOutOfReach => "L6",
            Rule::RepeatedSignal => "L7",
            Rule::SoftLineNotCovered => "L8",
            Rule::SwapOn => "L9",
            Rule::SoftKillWithoutGrace => "L10",
            Rule::UnprotectedDaemonSet => "L11",
            Rule::DaemonsLimited => "L12",
            Rule::OverrideBelowMinimum => "L13",
            Rule::ScalarArgument => "L14",
            Rule::DiskNotWatched => "L15",
            Rule::HeartbeatTooSlow => "L16",
            Rule::TransitionTooShort => "L17",
            Rule::UnlikelyUnit => "L18",
            Rule::UnknownLabel => "L19",
            Rule::ServerWarning => "L20",
            Rule::Unreadable => "L21",
            Rule::NotChecked => "L22",
            Rule::RepeatedObject => "L23",
            Rule::UnsupportedSetting => "L24",
            Rule::SettingWithoutEffect => "L25",
            Rule::SettingDecidedByFlag => "L26",
        }
    }

    /// The rule in a few words, for lists of rules.
    pub const fn summary(self) -> &'static str {
        match self {
            Rule::Refused => "Refused by the kubelet, the scheduler or the API server",
            Rule::SoftWithoutGrace => "Soft threshold without a grace period",
            Rule::SoftNotAboveHard => "Soft threshold not above the hard one",
            Rule::SoftGraceZero => "Soft grace period of zero",
            Rule::UnusedEvictionEntry => "Grace period or minimum reclaim without a threshold",
            Rule::DefaultsDropped => "Default thresholds dropped",
            Rule::ThresholdOutOfReach => "Threshold out of reach",
            Rule::RepeatedSignal => "Two thresholds for one signal",
            Rule::SoftLineNotCovered => "Reservation does not cover the soft line",
            Rule::SwapOn => "Swap is on",
            Rule::SoftKillWithoutGrace => "Soft eviction without grace",
            Rule::UnprotectedDaemonSet => "DaemonSet without critical priority",
            Rule::DaemonsLimited => "Memory limit on system daemons",
            Rule::OverrideBelowMinimum => "Override below the minimum of a LimitRange",
            Rule::ScalarArgument => "Scalar where a list is needed",
            Rule::DiskNotWatched => "Disk without an eviction signal",
            Rule::HeartbeatTooSlow => "Heartbeats too rare",
            Rule::TransitionTooShort => "Pressure transition period too short",
            Rule::UnlikelyUnit => "Unit that does not suit the resource",
            Rule::UnknownLabel => "Unknown label of Kubernetes",
            Rule::ServerWarning => "Warning of the API server",
            Rule::Unreadable => "Unreadable file",
            Rule::NotChecked => "Kind that is not checked",
            Rule::RepeatedObject => "Object that stands twice",
            Rule::UnsupportedSetting => "Value of a setting that a node does not support",
            Rule::SettingWithoutEffect => "Setting without effect",
            Rule::SettingDecidedByFlag => "Setting that a flag decides",
        }
    }

    /// What would be right, for rules whose findings come from a reader and name the value already.
    pub const fn usual_fix(self) -> &'static str {
        match self {
            Rule::SoftWithoutGrace => "give the signal a grace period, for example 1m30s",
            Rule::RepeatedSignal => "keep one threshold per signal",
            Rule::ScalarArgument => "write the value as a list of texts: name: [\"value\"]",
            _ => "",
        }
    }

    /// Why it matters, for readers new to the rule.
    pub const fn why(self) -> &'static str {
        match self {
            Rule::Refused => {
                "the kubelet, the scheduler or the API server refuses this and does not start or \
                 store it"
            }
            Rule::SoftWithoutGrace => "the kubelet refuses to start",
            Rule::SoftNotAboveHard => {
                "the signal falls: it passes the larger number first, so a soft threshold that is \
                 not above the hard one never acts"
            }
            Rule::SoftGraceZero => "a soft threshold without waiting is a hard one",
            Rule::UnusedEvictionEntry => "the entry is accepted and ignored",
            Rule::DefaultsDropped => {
                "a list of hard thresholds replaces all defaults, so the signals left out are not \
                 watched at all"
            }
            Rule::ThresholdOutOfReach => {
                "the node is always below the threshold: permanent pressure, no new pods, and \
                 eviction without end"
            }
            Rule::RepeatedSignal => "one signal has one threshold per list; the last one wins",
            Rule::SoftLineNotCovered => {
                "the scheduler fills the node up to allocatable; if the soft line is not inside \
                 the reservation, pods that keep within their requests cross it"
            }
            Rule::SwapOn => {
                "swapped pages leave the working set, so memory.available looks fine until it is \
                 too late"
            }
            Rule::SoftKillWithoutGrace => {
                "soft eviction gives the smaller of this value and the pod's own grace period; \
                 zero or less ends as one second"
            }
            Rule::UnprotectedDaemonSet => {
                "eviction takes pods above their requests first, and BestEffort pods request \
                 nothing; only system-node-critical or a critical priority exempts a pod"
            }
            Rule::DaemonsLimited => {
                "a memory limit on the daemons' cgroup lets the kernel kill sshd, the runtime or \
                 the kubelet itself; the advice is to enforce pods only"
            }
            Rule::OverrideBelowMinimum => {
                "LimitRange defaults come first, then the override, then LimitRange validation: a \
                 request that the override lowers below the minimum is refused"
            }
            Rule::ScalarArgument => "every kubeletArguments entry is a list of strings",
            Rule::DiskNotWatched => {
                "the node measures the file systems of its root directory and of its images; other \
                 disks fill up unseen"
            }
            Rule::HeartbeatTooSlow => {
                "the control plane calls a silent node unreachable; one late heartbeat must not be \
                 enough for that"
            }
            Rule::TransitionTooShort => {
                "the condition leaves before the next soft eviction can start, so pods come back \
                 in between"
            }
            Rule::UnlikelyUnit => {
                "the quantity is valid, but a thousandth of a byte, a handful of bytes or hundreds \
                 of cores are seldom meant"
            }
            Rule::UnknownLabel => {
                "no node has the label by itself, so no node matches unless it is set by hand"
            }
            Rule::ServerWarning => "the API server stores this with a warning",
            Rule::Unreadable => "nothing in the file after this place is checked",
            Rule::NotChecked => "only kinds that Plimsoll's API server serves are checked",
            Rule::RepeatedObject => {
                "the second create is refused, and an apply makes the last one win"
            }
            Rule::UnsupportedSetting => "plimsoll node does not start with this value",
            Rule::SettingWithoutEffect => {
                "plimsoll node starts, logs a warning, and works as without the setting"
            }
            Rule::SettingDecidedByFlag => {
                "a flag of plimsoll node decides, and the node does not start if file and flag \
                 differ; the check knows only the default of the flag"
            }
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.id())
    }
}
