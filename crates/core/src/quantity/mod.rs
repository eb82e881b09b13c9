//! Kubernetes quantities: `100m`, `1536Mi`, `12e6`.
//!
//! A [`Quantity`] is an exact decimal number with a [`Format`] it likes to be printed in. Parsing,
//! printing, rounding, comparing, adding and subtracting give the same answer as v1.36
//! apimachinery/pkg/api/resource for every input, including its quirks: spelling kept on a fast
//! path, fractions below one nano rounded up, binary suffixes capped at 2^63-1, and 64-bit reads
//! that wrap. Two representations exist, as upstream: a 64-bit value with a decimal scale, and an
//! unbounded decimal for everything else. They are distinct because reads out of range differ.
//!
//! It never uses floats, except in [`Quantity::as_approximate_f64`], which upstream uses for
//! percentages and the like.
//!
//! Reading order: `suffix` (the letters), `decimal` (unbounded), `amount` (64-bit), `parse`,
//! `correction` (what a malformed one probably means).

mod amount;
mod correction;
mod decimal;
mod parse;
mod suffix;

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use amount::Amount;
use decimal::Decimal;

pub use correction::corrections;
pub use parse::ParseError;
pub use suffix::Format;

/// An exact number with a preferred way of printing it.
///
/// Equality and ordering compare the numbers only: `1Gi` equals `1024Mi`.
#[derive(Clone, Debug)]
pub struct Quantity {
    number: Number,
    format: Format,
    /// The caller's spelling, kept while it is (roughly) canonical. Any change drops it.
    spelling: Option<Box<str>>,
}

#[derive(Clone, Debug)]
enum Number {
    Small(Amount),
    Big(Decimal),
}

impl Number {
    fn to_decimal(&self) -> Decimal {
        match self {
            Number::Small(small) => small.to_decimal(),
            Number::Big(big) => big.clone(),
        }
    }
}

impl Quantity {
    /// Zero, printed as `0`.
    pub const ZERO: Quantity = Quantity {
        number: Number::Small(Amount { value: 0, scale: 0 }),
        format: Format::DecimalSi,
        spelling: None,
    };

    /// The whole number `value`.
    pub const fn new(value: i64, format: Format) -> Quantity {
        Quantity::scaled(value, 0, format)
    }

    /// `value` thousandths.
    pub const fn from_milli(value: i64, format: Format) -> Quantity {
        Quantity::scaled(value, -3, format)
    }

    const fn scaled(value: i64, scale: i32, format: Format) -> Quantity {
        Quantity {
            number: Number::Small(Amount { value, scale }),
            format,
            spelling: None,
        }
    }

    /// Reads a raw JSON token: `"100m"`, `1`, `1e3`; `null` is `None`.
    pub fn from_json_token(token: &str) -> Result<Option<Quantity>, ParseError> {
        parse::parse_json(token)
    }

    /// How it is printed.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The same number printed in another format.
    pub fn with_format(mut self, format: Format) -> Quantity {
        self.format = format;
        self.spelling = None;
        self
    }

    /// The number as a whole one, fractions rounded away from zero.
    ///
    /// Out of the range of `i64` this answers as upstream does, which is 0 or a wrapped value.
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// The number of thousandths, fractions rounded away from zero; same caveat as [`Self::value`].
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(-3)
    }

    fn scaled_value(&self, scale: i32) -> i64 {
        match &self.number {
            Number::Small(small) => small.to_scale_i64_unchecked(scale),
            Number::Big(big) => big.scaled_value(-scale),
        }
    }

    /// The exact whole number, if it is one, fits `i64` and was not too long to be kept as such.
    pub fn as_i64(&self) -> Option<i64> {
        match &self.number {
            Number::Small(small) => small.as_i64(),
            Number::Big(_) => None,
        }
    }

    /// Rounds away from zero to a multiple of ten to the `scale`; returns whether the value is
    /// unchanged.
    ///
    /// A whole-number rounding is `round_up(0)`, one to thousandths is `round_up(-3)`.
    pub fn round_up(&mut self, scale: i32) -> bool {
        match &mut self.number {
            Number::Big(big) => {
                self.spelling = None;
                let rounded = big.rounded_up(-scale);
                let is_exact = rounded.cmp(big) == Ordering::Equal;
                *big = rounded;
                is_exact
            }
            Number::Small(small) if small.scale >= scale => true,
            Number::Small(small) => {
                self.spelling = None;
                let (rounded, is_exact) = small.rounded_up(scale);
                *small = rounded;
                is_exact
            }
        }
    }

    /// True for any spelling of zero.
    pub fn is_zero(&self) -> bool {
        self.signum() == 0
    }

    /// -1, 0 or 1.
    pub fn signum(&self) -> i32 {
        match &self.number {
            Number::Small(small) => small.value.signum() as i32,
            Number::Big(big) => big.signum(),
        }
    }

    /// The nearest float by upstream's cheap rule: mantissa times a power of ten.
    pub fn as_approximate_f64(&self) -> f64 {
        match &self.number {
            Number::Small(small) => small.approximate_f64(),
            Number::Big(big) => big.approximate_f64(),
        }
    }

    /// Adds in place. A zero takes over the format of what is added to it.
    pub fn add(&mut self, other: &Quantity) {
        self.spelling = None;
        if self.is_zero() {
            self.format = other.format;
        }
        if let (Number::Small(a), Number::Small(b)) = (&mut self.number, &other.number)
            && a.add(*b)
        {
            return;
        }
        self.number = Number::Big(self.number.to_decimal().add(&other.number.to_decimal()));
    }

    /// Subtracts in place. A zero takes over the format of what is taken from it.
    pub fn sub(&mut self, other: &Quantity) {
        self.spelling = None;
        if self.is_zero() {
            self.format = other.format;
        }
        if let (Number::Small(a), Number::Small(b)) = (&mut self.number, &other.number)
            && a.add(b.wrapping_neg())
        {
            return;
        }
        self.number = Number::Big(self.number.to_decimal().sub(&other.number.to_decimal()));
    }

    /// The strict canonical text, regardless of the spelling that was kept.
    pub fn canonical(&self) -> String {
        if self.is_zero() {
            return "0".to_owned();
        }
        let (mut digits, suffix) = match (&self.number, self.binary_or_decimal()) {
            (Number::Small(small), Format::BinarySi) => {
                let (digits, exponent) = small.canonical_base_1024();
                (digits, suffix::binary(exponent))
            }
            (Number::Big(big), Format::BinarySi) => {
                let (digits, exponent) = big.canonical_base_1024();
                (digits, suffix::binary(exponent))
            }
            (Number::Small(small), format) => {
                let (digits, exponent) = small.canonical_base_10();
                (digits, suffix::decimal(exponent, format))
            }
            (Number::Big(big), format) => {
                let (digits, exponent) = big.canonical_base_10();
                (digits, suffix::decimal(exponent, format))
            }
        };
        digits.push_str(&suffix);
        digits
    }

    /// Binary suffixes start at 1024 and cannot show fractions; both cases print in decimal.
    fn binary_or_decimal(&self) -> Format {
        if self.format != Format::BinarySi {
            return self.format;
        }
        let is_below_1024 = *self > Quantity::new(-1024, Format::BinarySi)
            && *self < Quantity::new(1024, Format::BinarySi);
        if is_below_1024 || !self.is_whole() {
            return Format::DecimalSi;
        }
        Format::BinarySi
    }

    fn is_whole(&self) -> bool {
        match &self.number {
            Number::Small(small) => small.rounded_up(0).1,
            Number::Big(big) => big.rounded_up(0).cmp(big) == Ordering::Equal,
        }
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Quantity::ZERO
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.spelling {
            Some(spelling) => f.pad(spelling),
            None => f.pad(&self.canonical()),
        }
    }
}

impl FromStr for Quantity {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse::parse(text)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.number, &other.number) {
            (Number::Small(a), Number::Small(b)) => a.cmp(*b),
            (a, b) => a.to_decimal().cmp(&b.to_decimal()),
        }
    }
}

#[cfg(test)]
mod tests;
