//! Decimals without bounds, for the numbers 64 bits cannot hold.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive, Zero};

/// `unscaled` divided by ten to the `scale`.
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    unscaled: BigInt,
    scale: i32,
}

impl Decimal {
    pub(super) fn new(unscaled: BigInt, scale: i32) -> Decimal {
        Decimal { unscaled, scale }
    }

    pub(super) fn signum(&self) -> i32 {
        match self.unscaled.sign() {
            Sign::Minus => -1,
            Sign::NoSign => 0,
            Sign::Plus => 1,
        }
    }

    pub(super) fn abs(&self) -> Decimal {
        Decimal::new(self.unscaled.abs(), self.scale)
    }

    pub(super) fn negated(&self) -> Decimal {
        Decimal::new(-&self.unscaled, self.scale)
    }

    /// Both numbers over the finer of the two scales.
    fn aligned(&self, other: &Decimal) -> (BigInt, BigInt, i32) {
        let scale = self.scale.max(other.scale);
        (self.unscaled_at(scale), other.unscaled_at(scale), scale)
    }

    /// `scale` must not be coarser than the own one.
    fn unscaled_at(&self, scale: i32) -> BigInt {
        &self.unscaled * power_of_ten(scale - self.scale)
    }

    pub(super) fn add(&self, other: &Decimal) -> Decimal {
        let (a, b, scale) = self.aligned(other);
        Decimal::new(a + b, scale)
    }

    pub(super) fn sub(&self, other: &Decimal) -> Decimal {
        let (a, b, scale) = self.aligned(other);
        Decimal::new(a - b, scale)
    }

    /// The number times ten to the `exponent`.
    pub(super) fn shifted(&self, exponent: i32) -> Decimal {
        Decimal::new(self.unscaled.clone(), self.scale - exponent)
    }

    pub(super) fn mul(&self, factor: i64) -> Decimal {
        Decimal::new(&self.unscaled * factor, self.scale)
    }

    pub(super) fn cmp(&self, other: &Decimal) -> Ordering {
        let (a, b, _) = self.aligned(other);
        a.cmp(&b)
    }

    /// The number with exactly `scale` digits after the point, rounded away from zero.
    pub(super) fn rounded_up(&self, scale: i32) -> Decimal {
        if scale >= self.scale {
            return Decimal::new(self.unscaled_at(scale), scale);
        }
        let (mut quotient, remainder) = self.unscaled.div_rem(&power_of_ten(self.scale - scale));
        if !remainder.is_zero() {
            quotient += self.signum();
        }
        Decimal::new(quotient, scale)
    }

    /// The number times ten to the `scale` as 64 bits.
    ///
    /// Matches v1.36 apimachinery/pkg/api/resource/scale_int.go, where a negative number with a
    /// lost fraction goes *up* and anything out of range wraps.
    pub(super) fn scaled_value(&self, scale: i32) -> i64 {
        let lost_digits = self.scale - scale;
        if lost_digits <= 0 {
            let factor = 10i64
                .checked_pow(lost_digits.unsigned_abs())
                .unwrap_or(i64::MIN);
            return wrapped_i64(&self.unscaled).wrapping_mul(factor);
        }
        let divisor = power_of_ten(lost_digits);
        let fits = self.unscaled < BigInt::from(i64::MAX) && lost_digits < 19;
        let (quotient, remainder) = if fits {
            // Upstream narrows before dividing, so a huge negative number wraps first.
            BigInt::from(wrapped_i64(&self.unscaled)).div_rem(&divisor)
        } else {
            self.unscaled.div_mod_floor(&divisor)
        };
        let quotient = wrapped_i64(&quotient);
        if remainder.is_zero() {
            quotient
        } else {
            quotient.wrapping_add(1)
        }
    }

    pub(super) fn approximate_f64(&self) -> f64 {
        let base = self.unscaled.to_f64().unwrap_or(f64::INFINITY);
        super::amount::times_power_of_ten(base, -self.scale)
    }

    /// Digits and an exponent of ten that is a multiple of three and as large as possible.
    pub(super) fn canonical_base_10(&self) -> (String, i32) {
        let (mut digits, factors) = without_factors(&self.unscaled, 10);
        let mut exponent = -self.scale + i32::try_from(factors).unwrap_or(i32::MAX);
        while exponent % 3 != 0 {
            digits *= 10;
            exponent -= 1;
        }
        (digits.to_string(), exponent)
    }

    /// Digits of the number rounded to a whole one and the power of 1024 taken out of it.
    pub(super) fn canonical_base_1024(&self) -> (String, u32) {
        let (digits, factors) = without_factors(&self.rounded_up(0).unscaled, 1024);
        (digits.to_string(), factors)
    }
}

/// The low 64 bits of the magnitude, with the sign put back: what Go's big.Int gives.
fn wrapped_i64(number: &BigInt) -> i64 {
    let low = number.iter_u64_digits().next().unwrap_or(0);
    let low = low.cast_signed();
    if number.is_negative() {
        low.wrapping_neg()
    } else {
        low
    }
}

fn without_factors(number: &BigInt, factor: u32) -> (BigInt, u32) {
    let mut rest = number.clone();
    let mut times = 0;
    while !rest.is_zero() {
        let (quotient, remainder) = rest.div_rem(&BigInt::from(factor));
        if !remainder.is_zero() {
            break;
        }
        rest = quotient;
        times += 1;
    }
    (rest, times)
}

fn power_of_ten(exponent: i32) -> BigInt {
    BigInt::from(10).pow(exponent.unsigned_abs())
}
