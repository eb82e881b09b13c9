//! Text to quantity.

use std::borrow::Cow;

use num_bigint::BigInt;

use super::amount::Amount;
use super::decimal::Decimal;
use super::suffix::{self, Format, Meaning};
use super::{Number, Quantity};

/// Why a text is not a quantity. The messages are upstream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// It does not look like a number with a suffix.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// The part before the suffix is no number, or is out of all proportion.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// Digits that an `i64` surely holds.
const MAX_SMALL_DIGITS: usize = 18;

/// The finest digit kept: one nano.
const FINEST_SCALE: i32 = -9;

/// Longest text and largest exponent taken. Upstream has no bound, so that `1e999999999` makes it
/// compute a number with a billion digits; see docs/differences.md.
const MAX_DIGITS: usize = 4096;
const MAX_EXPONENT: u32 = 4096;

/// A quantity cut into its parts; the texts are slices of the input.
struct Parts<'a> {
    is_negative: bool,
    /// Sign, digits and point, as written.
    number: &'a str,
    /// Digits before the point, without leading zeros, but at least one.
    whole: &'a str,
    /// Digits after the point.
    fraction: &'a str,
    suffix: &'a str,
}

pub(super) fn parse(text: &str) -> Result<Quantity, ParseError> {
    if text.is_empty() {
        return Err(ParseError::Format);
    }
    if text.len() > MAX_DIGITS {
        return Err(ParseError::Number);
    }
    let parts = split(text)?;
    let (meaning, format) = suffix::interpret(parts.suffix).ok_or(ParseError::Suffix)?;
    if let Meaning::TenToThe(exponent) = meaning
        && exponent.unsigned_abs() > MAX_EXPONENT
    {
        return Err(ParseError::Number);
    }
    match parse_small(text, &parts, &meaning, format) {
        Some(quantity) => Ok(quantity),
        None => parse_big(&parts, &meaning, format),
    }
}

/// A JSON token, quotes and all; `None` for `null`. White space inside the quotes is dropped and
/// escapes are not read, as upstream.
pub(super) fn parse_json(token: &str) -> Result<Option<Quantity>, ParseError> {
    if token == "null" {
        return Ok(None);
    }
    let inner = token
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(token);
    parse(inner.trim()).map(Some)
}

fn split(text: &str) -> Result<Parts<'_>, ParseError> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = unsigned.trim_start_matches('0');
    let is_negative = text.starts_with('-');
    if digits.is_empty() {
        return Ok(Parts {
            is_negative,
            number: "0",
            whole: "0",
            fraction: "",
            suffix: "",
        });
    }
    let (whole, rest) = split_digits(digits);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(after_point) => split_digits(after_point),
        None => ("", rest),
    };
    let letters_end = suffix
        .find(|c: char| !"eEinumkKMGTP".contains(c))
        .unwrap_or(suffix.len());
    let exponent = &suffix[letters_end..];
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if !split_digits(exponent).1.is_empty() {
        return Err(ParseError::Format);
    }
    Ok(Parts {
        is_negative,
        number: &text[..text.len() - suffix.len()],
        whole: if whole.is_empty() { "0" } else { whole },
        fraction,
        suffix,
    })
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

/// The 64-bit form, if the number fits by upstream's rough estimate.
fn parse_small(
    text: &str,
    parts: &Parts<'_>,
    meaning: &Meaning,
    format: Format,
) -> Option<Quantity> {
    let digit_count = parts.whole.len() + parts.fraction.len();
    let (scale, factor) = match *meaning {
        Meaning::TenToThe(exponent) if digit_count <= MAX_SMALL_DIGITS => {
            (exponent - i32::try_from(parts.fraction.len()).ok()?, 1)
        }
        // A suffix of ten bits takes about three digits; a fraction may not be whole bytes.
        Meaning::TwoToThe(bits)
            if parts.fraction.is_empty() && digit_count + bits as usize * 3 / 10 < 15 =>
        {
            (0, 1i64 << bits)
        }
        _ => return None,
    };
    if scale < FINEST_SCALE {
        return None;
    }
    let digits = match parts.fraction {
        "" => Cow::Borrowed(parts.whole),
        fraction => Cow::Owned([parts.whole, fraction].concat()),
    };
    let magnitude: i64 = digits.parse().ok()?;
    let value = magnitude.checked_mul(factor)?;
    let looks_canonical = match format {
        Format::BinarySi => magnitude & 0x07 != 0,
        _ => scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0'),
    };
    Some(Quantity {
        number: Number::Small(Amount {
            value: if parts.is_negative { -value } else { value },
            scale,
        }),
        format,
        spelling: looks_canonical.then(|| text.into()),
    })
}

fn parse_big(
    parts: &Parts<'_>,
    meaning: &Meaning,
    mut format: Format,
) -> Result<Quantity, ParseError> {
    let mut number = parse_decimal(parts.number)?;
    number = match *meaning {
        Meaning::TenToThe(exponent) => number.shifted(exponent),
        Meaning::TwoToThe(bits) => number.mul(1i64 << bits),
    };
    let is_negative = number.signum() < 0;
    let mut magnitude = number.abs();
    if magnitude.signum() != 0 {
        magnitude = magnitude.rounded_up(-FINEST_SCALE);
    }
    if format == Format::BinarySi {
        let cap = Decimal::new(i64::MAX.into(), 0);
        if magnitude.cmp(&cap).is_gt() {
            magnitude = cap;
        }
        if magnitude.signum() > 0 && magnitude.cmp(&Decimal::new(1.into(), 0)).is_lt() {
            format = Format::DecimalSi;
        }
    }
    Ok(Quantity {
        number: Number::Big(if is_negative {
            magnitude.negated()
        } else {
            magnitude
        }),
        format,
        spelling: None,
    })
}

/// Sign, digits and point. A second point cannot occur: the splitter stops at it.
fn parse_decimal(text: &str) -> Result<Decimal, ParseError> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = [whole, fraction].concat();
    let unscaled: BigInt = digits.parse().map_err(|_| ParseError::Number)?;
    let scale = i32::try_from(fraction.len()).map_err(|_| ParseError::Number)?;
    Ok(Decimal::new(unscaled, scale))
}
