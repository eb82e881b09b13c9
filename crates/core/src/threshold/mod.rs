//! Eviction thresholds: when the node runs short, as the operator wrote it down.
//!
//! A [`Threshold`] has the [`ThresholdValue`] below which a [`Signal`] is too low, and how long it
//! may stay there. [`Statements`] are the four maps of the kubelet's configuration; parsing them
//! gives the thresholds, or upstream's error, or every problem with its path. Whether a threshold
//! is met is decided by the eviction engine, not by this module.
//!
//! Reading order: [`Signal`], [`ThresholdValue`], `float`, [`Statements`],
//! [`derive_container_fs`], [`flag`]. Matches v1.36 pkg/kubelet/eviction/helpers.go.

mod container_fs;
pub mod flag;
mod float;
mod signal;
mod statements;
mod value;

/// The type of grace periods.
pub use crate::duration::Duration;
pub use container_fs::{Derived, DiskLayout, derive_container_fs};
pub use float::ParseFloatError;
pub use signal::{Signal, StarvedResource};
pub use statements::{StatementError, Statements};
pub use value::ThresholdValue;
pub(crate) use value::truncated;

/// A line that an observed signal may not cross.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The signal that is measured.
    pub signal: Signal,
    /// How the measurement is compared with the value.
    pub operator: Operator,
    /// Where the line is.
    pub value: ThresholdValue,
    /// How long the line may be crossed before pods are evicted; zero for a hard threshold.
    pub grace_period: Duration,
    /// How far back from the line the node has to get once it was crossed.
    pub min_reclaim: Option<ThresholdValue>,
}

impl Threshold {
    /// Whether crossing it evicts at once. A soft threshold with a grace period of zero does too.
    pub fn is_hard(&self) -> bool {
        self.grace_period == Duration::ZERO
    }

    /// A threshold that is listed but never met; see [`derive_container_fs`].
    fn inert(signal: Signal) -> Threshold {
        Threshold {
            signal,
            operator: Operator::Never,
            value: ThresholdValue::Percentage(0.0),
            grace_period: Duration::ZERO,
            min_reclaim: None,
        }
    }
}

/// How an observation is compared with a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Met when the observation is strictly below the value.
    LessThan,
    /// Never met. Upstream writes the empty text.
    Never,
}

impl Operator {
    /// Upstream's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Operator::LessThan => "LessThan",
            Operator::Never => "",
        }
    }
}
