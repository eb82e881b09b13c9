//! Ratios as upstream computes them: in floats, with thousandths where those fit.

/// Values up to here keep their thousandths when they are compared or divided.
pub(super) const MAX_MILLI_VALUE: i64 = i64::MAX / 1000;

/// The nearest float.
pub(super) fn float(value: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "upstream computes in floats")]
    let float = value as f64;
    float
}

/// The whole part. What does not fit becomes the least integer, as on the machines upstream runs
/// on.
pub(super) fn truncated(value: f64) -> i64 {
    let beyond = -float(i64::MIN);
    if value >= beyond || value < -beyond || value.is_nan() {
        return i64::MIN;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "in range; the fraction is dropped on purpose"
    )]
    let whole = value as i64;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_dropped_and_overflow_is_the_least_integer() {
        assert_eq!(truncated(28.999), 28);
        assert_eq!(truncated(-1.5), -1);
        assert_eq!(truncated(1e19), i64::MIN);
        assert_eq!(truncated(f64::NAN), i64::MIN);
    }
}
