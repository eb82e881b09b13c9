//! Numbers that may be percentages.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Which way a percentage that gives no whole number goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the next whole number.
    Up,
    /// To the whole number before.
    Down,
}

/// The text is neither a number nor a percentage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value for IntOrString: {0}")]
pub struct FractionError(String);

/// The number itself, or that percentage of `total`.
///
/// Matches v1.36 apimachinery/pkg/util/intstr/intstr.go, `GetScaledValueFromIntOrPercent`.
pub fn scaled(value: &IntOrString, total: i32, rounding: Rounding) -> Result<i32, FractionError> {
    let text = match value {
        IntOrString::Int(number) => return Ok(*number),
        IntOrString::String(text) => text,
    };
    let Some(digits) = text.strip_suffix('%') else {
        let problem = "invalid type: string is not a percentage".to_owned();
        return Err(FractionError(problem));
    };
    let percent: i64 = digits.parse().map_err(|_| {
        FractionError(format!(
            "invalid value {text:?}: strconv.Atoi: parsing {digits:?}: invalid syntax"
        ))
    })?;
    let hundredfold = i128::from(percent) * i128::from(total);
    let rounded = match rounding {
        Rounding::Down => hundredfold.div_euclid(100),
        Rounding::Up => -(-hundredfold).div_euclid(100),
    };
    let end = if rounded < 0 { i32::MIN } else { i32::MAX };
    Ok(i32::try_from(rounded).unwrap_or(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_round_in_given_direction() {
        let percent = |text: &str| IntOrString::String(text.to_owned());
        let cases = [
            (IntOrString::Int(3), 10, 3, 3),
            (percent("25%"), 10, 3, 2),
            (percent("25%"), 4, 1, 1),
            (percent("0%"), 4, 0, 0),
            (percent("1%"), 1, 1, 0),
            (percent("100%"), 7, 7, 7),
            (percent("-25%"), 10, -2, -3),
            (percent("9000000000%"), i32::MAX, i32::MAX, i32::MAX),
        ];
        for (value, total, up, down) in cases {
            assert_eq!(scaled(&value, total, Rounding::Up), Ok(up), "{value:?}");
            assert_eq!(scaled(&value, total, Rounding::Down), Ok(down), "{value:?}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "5", "%", "a%", "5 %", "1.5%"] {
            let value = IntOrString::String(text.to_owned());
            assert!(scaled(&value, 10, Rounding::Up).is_err(), "{text:?}");
        }
    }
}
