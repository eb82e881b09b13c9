//! Taints of nodes and the tolerations of pods.
//!
//! Matches v1.36 staging/src/k8s.io/api/core/v1/toleration.go and
//! component-helpers/scheduling/corev1/helpers.go.

use std::fmt;

use k8s_openapi::api::core::v1::{Taint as ApiTaint, Toleration as ApiToleration};

/// The node is not ready.
pub const NODE_NOT_READY: &str = "node.kubernetes.io/not-ready";
/// The node sends no heartbeats.
pub const NODE_UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// The node is cordoned.
pub const NODE_UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// The node is short of memory.
pub const NODE_MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";
/// The node is short of disk.
pub const NODE_DISK_PRESSURE: &str = "node.kubernetes.io/disk-pressure";
/// The node is short of process ids.
pub const NODE_PID_PRESSURE: &str = "node.kubernetes.io/pid-pressure";
/// The node's network is not set up.
pub const NODE_NETWORK_UNAVAILABLE: &str = "node.kubernetes.io/network-unavailable";

/// The node has been shut down for good; set by an administrator.
pub const NODE_OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The effect on pods that do not tolerate the taint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// They are not placed on the node.
    NoSchedule,
    /// They are placed on other nodes if possible.
    PreferNoSchedule,
    /// They are not placed on the node, and leave it.
    NoExecute,
    /// A text that validation would refuse. It equals itself and does nothing.
    Other(String),
}

impl Effect {
    /// The effect of that name.
    pub fn from_name(name: &str) -> Effect {
        match name {
            "NoSchedule" => Effect::NoSchedule,
            "PreferNoSchedule" => Effect::PreferNoSchedule,
            "NoExecute" => Effect::NoExecute,
            other => Effect::Other(other.to_owned()),
        }
    }

    /// Whether validation would let it pass.
    pub fn is_known(&self) -> bool {
        !matches!(self, Effect::Other(_))
    }

    /// The name in API objects.
    pub fn as_str(&self) -> &str {
        match self {
            Effect::NoSchedule => "NoSchedule",
            Effect::PreferNoSchedule => "PreferNoSchedule",
            Effect::NoExecute => "NoExecute",
            Effect::Other(name) => name,
        }
    }
}

/// Something about a node that keeps pods away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// More about it; may be empty.
    pub value: String,
    /// Its effect.
    pub effect: Effect,
}

impl Taint {
    /// Reads a taint.
    pub fn from_api(taint: &ApiTaint) -> Taint {
        Taint {
            key: taint.key.clone(),
            value: taint.value.clone().unwrap_or_default(),
            effect: Effect::from_name(&taint.effect),
        }
    }
}

/// `key=value:effect`, without the parts that are empty.
impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, value, effect) = (&self.key, &self.value, self.effect.as_str());
        match (value.is_empty(), effect.is_empty()) {
            (true, true) => write!(f, "{key}"),
            (true, false) => write!(f, "{key}:{effect}"),
            (false, _) => write!(f, "{key}={value}:{effect}"),
        }
    }
}

/// A toleration of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toleration {
    /// Which taints; `None` is all keys.
    pub key: Option<String>,
    /// How the values relate.
    pub operator: TolerationOperator,
    /// The value that a taint's is compared with.
    pub value: String,
    /// Which effect; `None` is all of them.
    pub effect: Option<Effect>,
    /// How long a `NoExecute` taint is tolerated; `None` is without limit.
    pub seconds: Option<i64>,
}

/// How the value of a taint and the one of a toleration relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TolerationOperator {
    /// They are the same text.
    Equal,
    /// Any value will do.
    Exists,
    /// Both are decimal integers, the taint's the lower.
    Lt,
    /// Both are decimal integers, the taint's the higher.
    Gt,
    /// An operator not known here; tolerates nothing.
    Unknown,
}

/// Whether `Lt` and `Gt` count: upstream's feature gate TaintTolerationComparisonOperators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ComparisonOperators {
    /// A toleration with one of them tolerates nothing.
    #[default]
    Disabled,
    /// They compare integers.
    Enabled,
}

impl Toleration {
    /// Reads a toleration; an empty key or effect is as good as none.
    pub fn from_api(toleration: &ApiToleration) -> Toleration {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let operator = match toleration.operator.as_deref() {
            None | Some("" | "Equal") => TolerationOperator::Equal,
            Some("Exists") => TolerationOperator::Exists,
            Some("Lt") => TolerationOperator::Lt,
            Some("Gt") => TolerationOperator::Gt,
            Some(_) => TolerationOperator::Unknown,
        };
        Toleration {
            key: given(&toleration.key),
            operator,
            value: toleration.value.clone().unwrap_or_default(),
            effect: given(&toleration.effect).map(|effect| Effect::from_name(&effect)),
            seconds: toleration.toleration_seconds,
        }
    }

    /// Whether it tolerates the taint. Without a key, `Equal` still compares values.
    pub fn tolerates(&self, taint: &Taint, comparison: ComparisonOperators) -> bool {
        if self.effect.as_ref().is_some_and(|e| *e != taint.effect)
            || self.key.as_ref().is_some_and(|key| *key != taint.key)
        {
            return false;
        }
        let numbers = || match comparison {
            ComparisonOperators::Disabled => None,
            ComparisonOperators::Enabled => Some((
                canonical_integer(&taint.value)?,
                canonical_integer(&self.value)?,
            )),
        };
        match self.operator {
            TolerationOperator::Equal => self.value == taint.value,
            TolerationOperator::Exists => true,
            TolerationOperator::Lt => numbers().is_some_and(|(taint, own)| taint < own),
            TolerationOperator::Gt => numbers().is_some_and(|(taint, own)| taint > own),
            TolerationOperator::Unknown => false,
        }
    }
}

/// An integer as a person writes it: no plus sign, no leading zeros, no negative zero.
fn canonical_integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_canonical = text == "0" || digits.starts_with(|c: char| matches!(c, '1'..='9'));
    text.parse().ok().filter(|_| is_canonical)
}

/// Whether any of the tolerations tolerates the taint.
pub fn is_tolerated(
    taint: &Taint,
    tolerations: &[Toleration],
    comparison: ComparisonOperators,
) -> bool {
    let mut tolerations = tolerations.iter();
    tolerations.any(|toleration| toleration.tolerates(taint, comparison))
}

/// Which taints a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaintFilter {
    /// Those that forbid placing a pod.
    NoScheduleOrNoExecute,
    /// Those that prefer no placement.
    PreferNoSchedule,
    /// Those that drive pods away.
    NoExecute,
}

impl TaintFilter {
    /// Whether the question is about this taint.
    pub fn includes(self, taint: &Taint) -> bool {
        match self {
            TaintFilter::NoScheduleOrNoExecute => {
                matches!(taint.effect, Effect::NoSchedule | Effect::NoExecute)
            }
            TaintFilter::PreferNoSchedule => taint.effect == Effect::PreferNoSchedule,
            TaintFilter::NoExecute => taint.effect == Effect::NoExecute,
        }
    }
}

/// The first taint in question that no toleration tolerates.
pub fn first_untolerated<'a>(
    taints: &'a [Taint],
    tolerations: &[Toleration],
    filter: TaintFilter,
    comparison: ComparisonOperators,
) -> Option<&'a Taint> {
    let mut questioned = taints.iter().filter(|taint| filter.includes(taint));
    questioned.find(|taint| !is_tolerated(taint, tolerations, comparison))
}

/// How long the node's `NoExecute` taints tolerate a pod on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TolerationTime {
    /// Without limit.
    Unlimited,
    /// So many seconds; zero means it is evicted at once.
    Seconds(u64),
}

/// How long a pod tolerates the `NoExecute` taints of its node.
///
/// An untolerated taint ends the stay at once. Otherwise each taint counts with the first
/// toleration that tolerates it, and the shortest of their times is the answer. Matches v1.36
/// pkg/controller/tainteviction/taint_eviction.go.
pub fn min_toleration_time(
    taints: &[Taint],
    tolerations: &[Toleration],
    comparison: ComparisonOperators,
) -> TolerationTime {
    let mut stay = TolerationTime::Unlimited;
    for taint in taints.iter().filter(|t| TaintFilter::NoExecute.includes(t)) {
        let first = tolerations.iter().find(|t| t.tolerates(taint, comparison));
        let Some(toleration) = first else {
            return TolerationTime::Seconds(0);
        };
        if let Some(seconds) = toleration.seconds {
            let seconds = u64::try_from(seconds).unwrap_or(0);
            stay = match stay {
                TolerationTime::Unlimited => TolerationTime::Seconds(seconds),
                TolerationTime::Seconds(shortest) => TolerationTime::Seconds(shortest.min(seconds)),
            };
        }
    }
    stay
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(key: &str, value: &str, effect: Effect) -> Taint {
        Taint {
            key: key.to_owned(),
            value: value.to_owned(),
            effect,
        }
    }

    fn toleration(key: &str, operator: TolerationOperator, value: &str) -> Toleration {
        Toleration {
            key: (!key.is_empty()).then(|| key.to_owned()),
            operator,
            value: value.to_owned(),
            effect: None,
            seconds: None,
        }
    }

    const OFF: ComparisonOperators = ComparisonOperators::Disabled;
    const ON: ComparisonOperators = ComparisonOperators::Enabled;

    #[test]
    fn without_a_key_exists_tolerates_all_and_equal_compares_values() {
        let tainted = taint("a", "x", Effect::NoSchedule);
        assert!(toleration("", TolerationOperator::Exists, "").tolerates(&tainted, OFF));
        assert!(toleration("", TolerationOperator::Equal, "x").tolerates(&tainted, OFF));
        assert!(!toleration("", TolerationOperator::Equal, "").tolerates(&tainted, OFF));
        assert!(!toleration("", TolerationOperator::Unknown, "x").tolerates(&tainted, OFF));
    }

    #[test]
    fn comparisons_need_the_switch_and_canonical_integers() {
        let five = taint("a", "5", Effect::NoSchedule);
        let below = |value: &str| toleration("a", TolerationOperator::Lt, value);
        assert!(!below("6").tolerates(&five, OFF));
        assert!(below("6").tolerates(&five, ON));
        assert!(!below("5").tolerates(&five, ON));
        assert!(!below("06").tolerates(&five, ON));
        assert!(!below("+6").tolerates(&five, ON));
        assert!(!below("9223372036854775808").tolerates(&five, ON));
        let minus_five = taint("a", "-5", Effect::NoSchedule);
        let above = toleration("a", TolerationOperator::Gt, "-6");
        assert!(above.tolerates(&minus_five, ON));
        assert_eq!(canonical_integer("-0"), None);
        assert_eq!(canonical_integer("0"), Some(0));
    }

    #[test]
    fn the_shortest_time_of_the_first_matching_tolerations_counts() {
        let taints = [
            taint("a", "", Effect::NoExecute),
            taint("b", "", Effect::NoExecute),
            taint("c", "", Effect::NoSchedule),
        ];
        let stays = |key: &str, seconds: Option<i64>| Toleration {
            seconds,
            ..toleration(key, TolerationOperator::Exists, "")
        };
        let stay = |tolerations: &[Toleration]| min_toleration_time(&taints, tolerations, OFF);
        assert_eq!(stay(&[stays("a", None)]), TolerationTime::Seconds(0));
        assert_eq!(stay(&[stays("", None)]), TolerationTime::Unlimited);
        assert_eq!(
            stay(&[stays("a", Some(60)), stays("", Some(300))]),
            TolerationTime::Seconds(60)
        );
        assert_eq!(
            stay(&[stays("", None), stays("a", Some(60))]),
            TolerationTime::Unlimited
        );
        assert_eq!(stay(&[stays("", Some(-1))]), TolerationTime::Seconds(0));
    }

    #[test]
    fn taints_print_without_their_empty_parts() {
        assert_eq!(
            taint("a", "", Effect::NoSchedule).to_string(),
            "a:NoSchedule"
        );
        assert_eq!(
            taint("a", "b", Effect::NoExecute).to_string(),
            "a=b:NoExecute"
        );
        assert_eq!(
            taint("a", "b", Effect::Other(String::new())).to_string(),
            "a=b:"
        );
    }
}
