//! Text to single-precision float, as Go's `strconv.ParseFloat(text, 32)` reads it.
//!
//! Besides plain decimals Go takes underscores between digits, hexadecimal floats and the names
//! of infinity and not-a-number. What it takes here ends up in thresholds, so the same is taken.

use crate::problem::quoted;

/// Why a text is not a float. The messages are Go's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseFloatError {
    /// Malformed.
    #[error("strconv.ParseFloat: parsing {}: invalid syntax", quoted(.0))]
    Syntax(String),
    /// Rounds to infinity.
    #[error("strconv.ParseFloat: parsing {}: value out of range", quoted(.0))]
    Range(String),
}

/// The float nearest to the number, ties to even.
pub(super) fn parse_f32(text: &str) -> Result<f32, ParseFloatError> {
    if let Some(special) = parse_special(text) {
        return Ok(special);
    }
    let number = split(text).ok_or_else(|| ParseFloatError::Syntax(text.to_owned()))?;
    let nearest = if number.is_hexadecimal {
        nearest_to_hexadecimal(&number)
    } else {
        // Rust's grammar and rounding equal Go's once the underscores are gone.
        text.replace('_', "").parse().unwrap_or(f32::INFINITY)
    };
    if nearest.is_infinite() {
        return Err(ParseFloatError::Range(text.to_owned()));
    }
    Ok(nearest)
}

/// Infinity may have a sign, not-a-number may not.
fn parse_special(text: &str) -> Option<f32> {
    if text.eq_ignore_ascii_case("nan") {
        return Some(f32::NAN);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_infinite = ["inf", "infinity"]
        .iter()
        .any(|name| unsigned.eq_ignore_ascii_case(name));
    is_infinite.then_some(if text.starts_with('-') {
        f32::NEG_INFINITY
    } else {
        f32::INFINITY
    })
}

/// A well-formed number cut into its parts; the texts may hold underscores.
struct Number<'a> {
    is_negative: bool,
    is_hexadecimal: bool,
    whole: &'a str,
    fraction: &'a str,
    /// With its sign; empty where there is none.
    exponent: &'a str,
}

fn split(text: &str) -> Option<Number<'_>> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let hexadecimal = unsigned
        .strip_prefix("0x")
        .or_else(|| unsigned.strip_prefix("0X"))
        .filter(|digits| !digits.is_empty());
    let is_hexadecimal = hexadecimal.is_some();
    let body = hexadecimal.unwrap_or(unsigned);
    let exponent_mark = if is_hexadecimal {
        ['p', 'P']
    } else {
        ['e', 'E']
    };
    let (mantissa, exponent) = match body.split_once(exponent_mark) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (body, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digit = |c: char| c.is_digit(if is_hexadecimal { 16 } else { 10 });
    let is_mantissa = mantissa.contains(is_digit)
        && [whole, fraction]
            .iter()
            .all(|part| part.chars().all(|c| is_digit(c) || c == '_'));
    let is_exponent = match exponent {
        Some(exponent) => {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            digits.starts_with(|c: char| c.is_ascii_digit())
                && digits.chars().all(|c| c.is_ascii_digit() || c == '_')
        }
        None => !is_hexadecimal,
    };
    let is_well_formed = is_mantissa && is_exponent && separates_digits(unsigned, is_hexadecimal);
    is_well_formed.then_some(Number {
        is_negative: text.starts_with('-'),
        is_hexadecimal,
        whole,
        fraction,
        exponent: exponent.unwrap_or_default(),
    })
}

/// Whether each underscore stands between digits; the prefix `0x` counts as a digit.
fn separates_digits(unsigned: &str, is_hexadecimal: bool) -> bool {
    let bytes = unsigned.as_bytes();
    let is_digit = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(|byte| byte.is_ascii_digit() || is_hexadecimal && byte.is_ascii_hexdigit())
    };
    bytes.iter().enumerate().all(|(at, byte)| {
        let follows_prefix = is_hexadecimal && at == 2;
        *byte != b'_' || (follows_prefix || is_digit(at.checked_sub(1))) && is_digit(Some(at + 1))
    })
}

/// mantissa * 2^exponent, rounded to 24 bits, or to fewer near zero.
fn nearest_to_hexadecimal(number: &Number<'_>) -> f32 {
    const LEAST_EXPONENT: i64 = -149;
    let (mut mantissa, mut exponent) = (0u128, exponent_of(number.exponent));
    let digits = |part: &str| {
        part.chars()
            .filter_map(|c| c.to_digit(16))
            .collect::<Vec<_>>()
    };
    let (whole, fraction) = (digits(number.whole), digits(number.fraction));
    for (index, digit) in whole.iter().chain(&fraction).enumerate() {
        if index >= whole.len() {
            exponent -= 4;
        }
        if mantissa >> 64 == 0 {
            mantissa = mantissa << 4 | u128::from(*digit);
        } else {
            // Only whether anything was lost matters for rounding.
            mantissa |= u128::from(*digit != 0);
            exponent += 4;
        }
    }
    let bits = i64::from(u128::BITS - mantissa.leading_zeros());
    let dropped = (bits - 24).max(LEAST_EXPONENT - exponent).max(0);
    // More than all bits dropped leaves nothing, not even a half to round up.
    let rounded = match u32::try_from(dropped) {
        Ok(dropped @ 0..=126) => rounded_half_even(mantissa, dropped),
        _ => 0,
    };
    let exponent = i32::try_from(exponent + dropped).unwrap_or(i32::MAX);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "24 bits fit, and too large a number becomes infinite"
    )]
    let magnitude = match rounded {
        0 => 0.0,
        // Powers above the range of f32 are infinite either way.
        _ => (rounded as f64 * 2f64.powi(exponent.min(1000))) as f32,
    };
    if number.is_negative {
        -magnitude
    } else {
        magnitude
    }
}

fn rounded_half_even(mantissa: u128, dropped: u32) -> u128 {
    let kept = mantissa >> dropped;
    let rest = mantissa - (kept << dropped);
    let half = (1u128 << dropped) >> 1;
    let rounds_up = half > 0 && (rest > half || rest == half && kept % 2 == 1);
    kept + u128::from(rounds_up)
}

/// Stops counting beyond 10000, as Go does.
fn exponent_of(text: &str) -> i64 {
    let magnitude = text
        .chars()
        .filter_map(|c| c.to_digit(10))
        .fold(0i64, |e, digit| {
            if e < 10_000 {
                e * 10 + i64::from(digit)
            } else {
                e
            }
        });
    if text.starts_with('-') {
        -magnitude
    } else {
        magnitude
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_numbers_are_read_with_underscores_between_digits() {
        for (text, want) in [
            ("10", 10.0),
            ("1_0", 10.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("+1.5e1", 15.0),
            ("1e-50", 0.0),
            ("-0", -0.0f32),
            ("16777217", 16_777_216.0),
        ] {
            let got = parse_f32(text).unwrap();
            assert_eq!(got.to_bits(), want.to_bits(), "{text}");
        }
    }

    #[test]
    fn hexadecimal_floats_need_an_exponent_and_round_to_even() {
        for (text, want) in [
            ("0x1p3", 8.0),
            ("0X_A.8p0", 10.5),
            ("-0x.8P+1", -1.0),
            ("0x1.000001p0", 1.0),
            ("0x1.000003p0", 1.000_000_2),
            ("0x1.00000100000000000000000001p0", 1.000_000_1),
            ("0x1p-149", 1e-45),
            ("0x1p-150", 0.0),
            ("0x1.8p-150", 1e-45),
            ("0x0p99999999", 0.0),
        ] {
            let got = parse_f32(text).unwrap();
            assert_eq!(got.to_bits(), f32::to_bits(want), "{text}");
        }
    }

    #[test]
    fn infinity_may_have_a_sign_and_nan_may_not() {
        assert_eq!(parse_f32("-Infinity"), Ok(f32::NEG_INFINITY));
        assert_eq!(parse_f32("+iNf"), Ok(f32::INFINITY));
        assert!(parse_f32("NaN").unwrap().is_nan());
        assert!(parse_f32("+NaN").is_err());
        assert!(parse_f32("infin").is_err());
    }

    #[test]
    fn malformed_numbers_are_refused_with_go_messages() {
        for text in [
            "", ".", "+", "ten", "10 ", "1__0", "_1", "1_", "1_.5", "1._5", "1e", "1e+", "1e_1",
            "0x", "0x1", "0x.p1", "0x1p", "1.2.3", "0b1", "0x1_p1",
        ] {
            let error = parse_f32(text).unwrap_err();
            assert_eq!(error, ParseFloatError::Syntax(text.to_owned()), "{text}");
        }
        assert_eq!(
            parse_f32("1\"\u{7f}\u{200b}é").unwrap_err().to_string(),
            "strconv.ParseFloat: parsing \"1\\\"\\x7f\\u200bé\": invalid syntax"
        );
        for text in ["1e39", "0x1p128", "0x1.ffffffp127"] {
            let error = parse_f32(text).unwrap_err();
            assert_eq!(error, ParseFloatError::Range(text.to_owned()), "{text}");
        }
    }
}
