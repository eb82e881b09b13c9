//! Human-readable amounts of resources.

use plimsoll_core::resources::{Bytes, Count, Millicores};
use plimsoll_core::threshold::{Signal, StarvedResource};
use serde::Serialize;

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Unit {
    Millicores,
    Bytes,
    Count,
}

impl Unit {
    /// What the amounts of an eviction signal count.
    pub fn of(signal: Signal) -> Unit {
        match signal.resource() {
            StarvedResource::Memory | StarvedResource::EphemeralStorage => Unit::Bytes,
            StarvedResource::Inodes | StarvedResource::Pids => Unit::Count,
        }
    }

    /// The exact amount with its unit.
    pub fn amount(self, value: i64) -> String {
        match self {
            Unit::Millicores => Millicores(value).to_string(),
            Unit::Bytes => Bytes(value).readable(),
            Unit::Count => Count(value).0.to_string(),
        }
    }

    /// The amount rounded down to at most three digits.
    pub fn about(self, value: i64) -> String {
        let exact = self.amount(value);
        let Some((number, unit)) = exact.split_once(' ') else {
            return exact;
        };
        let Some((whole, fraction)) = number.split_once('.') else {
            return exact;
        };
        let kept = 3_usize.saturating_sub(whole.trim_start_matches('-').len());
        let fraction = &fraction[..kept.min(fraction.len())];
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{whole}{point}{fraction} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_or_rounded() {
        assert_eq!(Unit::Bytes.amount(31_033_655_296), "28.902 Gi");
        assert_eq!(Unit::Bytes.about(31_033_655_296), "28.9 Gi");
        assert_eq!(Unit::Bytes.about(1_099_511_627), "1.02 Gi");
        assert_eq!(Unit::Bytes.about(314_572_800), "300 Mi");
        assert_eq!(Unit::Bytes.about(-1_099_511_627), "-1.02 Gi");
        assert_eq!(Unit::Millicores.about(1500), "1500m");
        assert_eq!(Unit::Count.about(32_768), "32768");
    }
}
