//! Numbers that fit 64 bits and a decimal scale: nearly all that occur.

use std::cmp::Ordering;

use super::decimal::Decimal;

/// `value` times ten to the `scale`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amount {
    pub(super) value: i64,
    pub(super) scale: i32,
}

impl Amount {
    pub(super) fn to_decimal(self) -> Decimal {
        Decimal::new(self.value.into(), -self.scale)
    }

    pub(super) fn wrapping_neg(self) -> Amount {
        Amount {
            value: self.value.wrapping_neg(),
            scale: self.scale,
        }
    }

    /// The exact whole number; `None` for any negative scale, even if the fraction is zero.
    pub(super) fn as_i64(self) -> Option<i64> {
        if self.scale < 0 {
            return None;
        }
        multiplied_by_power_of_ten(self.value, self.scale)
    }

    /// The number divided by ten to the `scale`, rounded away from zero; `None` on overflow.
    fn to_scale_i64(self, scale: i32) -> Option<i64> {
        if self.scale < scale {
            return Some(divided_by_power_of_ten(self.value, scale - self.scale).0);
        }
        multiplied_by_power_of_ten(self.value, self.scale - scale)
    }

    /// The same for readers that ignore the overflow: upstream then wraps where it multiplies in
    /// one step and answers 0 where it multiplies digit by digit.
    pub(super) fn to_scale_i64_unchecked(self, scale: i32) -> i64 {
        self.to_scale_i64(scale).unwrap_or_else(|| {
            let shift = self.scale - scale;
            match shift {
                1 | 2 | 3 | 6 | 9 if self.value != i64::MIN => {
                    self.value.wrapping_mul(10i64.pow(shift.unsigned_abs()))
                }
                _ => 0,
            }
        })
    }

    /// The number with no digit below ten to the `scale`, and whether it stayed the same.
    pub(super) fn rounded_up(self, scale: i32) -> (Amount, bool) {
        if self.scale >= scale {
            return (self, true);
        }
        let (value, is_exact) = divided_by_power_of_ten(self.value, scale - self.scale);
        (Amount { value, scale }, is_exact)
    }

    pub(super) fn cmp(self, other: Amount) -> Ordering {
        if self.scale == other.scale {
            return self.value.cmp(&other.value);
        }
        let finer = self.scale.min(other.scale);
        let widened = |amount: Amount| {
            let factor = 10i128.checked_pow((amount.scale - finer).unsigned_abs())?;
            i128::from(amount.value).checked_mul(factor)
        };
        match (widened(self), widened(other)) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => self.to_decimal().cmp(&other.to_decimal()),
        }
    }

    /// Adds in place; `false`, and nothing changed, when the sum does not fit.
    pub(super) fn add(&mut self, other: Amount) -> bool {
        if other.value == 0 {
            return true;
        }
        if self.value == 0 {
            *self = other;
            return true;
        }
        let scale = self.scale.min(other.scale);
        let sum = multiplied_by_power_of_ten(self.value, self.scale - scale)
            .zip(multiplied_by_power_of_ten(other.value, other.scale - scale))
            .and_then(|(a, b)| a.checked_add(b));
        match sum {
            Some(value) => {
                *self = Amount { value, scale };
                true
            }
            None => false,
        }
    }

    pub(super) fn approximate_f64(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "approximate by definition")]
        let base = self.value as f64;
        times_power_of_ten(base, self.scale)
    }

    /// Digits and an exponent of ten that is a multiple of three and as large as possible.
    pub(super) fn canonical_base_10(self) -> (String, i32) {
        let (mut digits, mut exponent) = (self.value, self.scale);
        while digits != 0 && digits % 10 == 0 {
            digits /= 10;
            exponent += 1;
        }
        let surplus = exponent.rem_euclid(3);
        match digits.checked_mul(10i64.pow(surplus.unsigned_abs())) {
            Some(digits) => (digits.to_string(), exponent - surplus),
            None => self.to_decimal().canonical_base_10(),
        }
    }

    /// Digits of the number rounded to a whole one and the power of 1024 taken out of it.
    pub(super) fn canonical_base_1024(self) -> (String, u32) {
        let Some(mut digits) = self.to_scale_i64(0) else {
            return self.to_decimal().canonical_base_1024();
        };
        let mut exponent = 0;
        // Upstream cannot negate the least i64 and prints it bare.
        while digits != 0 && digits != i64::MIN && digits % 1024 == 0 {
            digits /= 1024;
            exponent += 1;
        }
        (digits.to_string(), exponent)
    }
}

/// `exponent` is not negative.
fn multiplied_by_power_of_ten(value: i64, exponent: i32) -> Option<i64> {
    if value == 0 {
        return Some(0);
    }
    let factor = 10i64.checked_pow(exponent.unsigned_abs())?;
    value.checked_mul(factor)
}

/// The quotient rounded away from zero, and whether nothing was lost. `exponent` is not negative.
fn divided_by_power_of_ten(value: i64, exponent: i32) -> (i64, bool) {
    match 10i64.checked_pow(exponent.unsigned_abs()) {
        Some(divisor) if value % divisor == 0 => (value / divisor, true),
        Some(divisor) => (value / divisor + value.signum(), false),
        None => (value.signum(), value == 0),
    }
}

/// `base` times ten to the `exponent`, with the power built from two factors as Go's does: beyond
/// ten to the 22 the result may differ in the last bit from a correctly rounded power.
pub(super) fn times_power_of_ten(base: f64, exponent: i32) -> f64 {
    let exact = |n: i32| -> f64 { format!("1e{n}").parse().unwrap_or(f64::NAN) };
    match exponent {
        0 => base,
        ..-323 => 0.0,
        -323..0 => base * (exact(-((-exponent) / 32 * 32)) / exact(-exponent % 32)),
        1..309 => base * (exact(exponent / 32 * 32) * exact(exponent % 32)),
        309.. => base * f64::INFINITY,
    }
}
