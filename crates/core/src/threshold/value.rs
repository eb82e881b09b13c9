//! The value of a threshold: an amount, or a part of the capacity.

use crate::quantity::{Format, Quantity};

/// An amount, or a part of the capacity.
#[derive(Clone, Debug, PartialEq)]
pub enum ThresholdValue {
    /// That much.
    Quantity(Quantity),
    /// That part of the capacity, 0.1 for `10%`. Single precision is upstream's, and shows in the
    /// last bytes of the result.
    Percentage(f32),
}

impl ThresholdValue {
    /// The amount on a node with the capacity.
    ///
    /// percentage as f64 * capacity, truncated; 10% of 32Gi is 3435973888, not 3435973836.
    /// Matches v1.36 pkg/kubelet/eviction/api/types.go.
    pub fn at_capacity(&self, capacity: &Quantity) -> Quantity {
        match self {
            ThresholdValue::Quantity(quantity) => quantity.clone(),
            ThresholdValue::Percentage(percentage) => {
                #[expect(clippy::cast_precision_loss, reason = "upstream computes in floats")]
                let part = capacity.value() as f64 * f64::from(*percentage);
                Quantity::new(truncated(part), Format::BinarySi)
            }
        }
    }
}

/// Go's float to integer conversion on amd64: the least integer for all that does not fit.
pub(crate) fn truncated(number: f64) -> i64 {
    const TWO_TO_THE_63: f64 = 9_223_372_036_854_775_808.0;
    if (-TWO_TO_THE_63..TWO_TO_THE_63).contains(&number) {
        #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
        let whole = number as i64;
        whole
    } else {
        i64::MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_taken_in_single_precision() {
        let capacity = "32Gi".parse().unwrap();
        let at = |percentage| {
            ThresholdValue::Percentage(percentage)
                .at_capacity(&capacity)
                .value()
        };
        assert_eq!(at(0.1), 3_435_973_888);
        assert_eq!(at(0.15), 5_153_960_960);
    }

    #[test]
    fn out_of_range_becomes_min_integer() {
        assert_eq!(truncated(f64::NAN), i64::MIN);
        assert_eq!(truncated(1e300), i64::MIN);
        assert_eq!(truncated(-1.9), -1);
    }
}
