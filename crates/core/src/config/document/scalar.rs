//! The types of unquoted texts.
//!
//! These are the rules of the YAML library behind `sigs.k8s.io/yaml`, which are older than
//! YAML 1.2: `yes`, `on` and `y` are booleans, `010` is eight. Matches v1.36
//! vendor/go.yaml.in/yaml/v2/resolve.go. Dates stay texts, as they do there.

/// The meaning of a scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScalarValue {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer too large for [`ScalarValue::Int`].
    Unsigned(u64),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// Anything else, and everything that is quoted.
    Text,
}

impl ScalarValue {
    /// The meaning of an unquoted text.
    pub fn of_plain(text: &str) -> ScalarValue {
        if let Some(word) = of_word(text) {
            return word;
        }
        match text.as_bytes().first() {
            Some(b'.') => of_float(&text.replace('_', "")).unwrap_or(ScalarValue::Text),
            Some(b'0'..=b'9' | b'+' | b'-') => {
                let digits = text.replace('_', "");
                let number = of_integer(&digits).or_else(|| of_float(&digits));
                number.unwrap_or(ScalarValue::Text)
            }
            _ => ScalarValue::Text,
        }
    }

    /// The integer in it, also where it is written as `1e3`.
    pub fn as_integer(self) -> Option<i64> {
        match self {
            ScalarValue::Int(number) => Some(number),
            ScalarValue::Float(number) => whole(number),
            _ => None,
        }
    }

    /// The number in it.
    pub fn as_float(self) -> Option<f64> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a float field takes the nearest float"
        )]
        match self {
            ScalarValue::Int(number) => Some(number as f64),
            ScalarValue::Unsigned(number) => Some(number as f64),
            ScalarValue::Float(number) => Some(number),
            _ => None,
        }
    }
}

/// The integer that a float without fraction is printed as: its shortest digits, then zeros.
fn whole(number: f64) -> Option<i64> {
    let is_whole = number.is_finite() && number.fract() == 0.0;
    is_whole.then(|| number.to_string().parse().ok())?
}

fn of_word(text: &str) -> Option<ScalarValue> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            ScalarValue::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            ScalarValue::Bool(false)
        }
        "" | "~" | "null" | "Null" | "NULL" => ScalarValue::Null,
        ".nan" | ".NaN" | ".NAN" => ScalarValue::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => ScalarValue::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => ScalarValue::Float(f64::NEG_INFINITY),
        _ => return None,
    })
}

/// Decimal, `0x`, `0o`, `0b`, and octal with a bare leading zero.
fn of_integer(digits: &str) -> Option<ScalarValue> {
    let (sign, magnitude) = match digits.as_bytes().first()? {
        b'-' => ("-", &digits[1..]),
        b'+' => ("", &digits[1..]),
        _ => ("", digits),
    };
    let lower = magnitude.to_ascii_lowercase();
    let (radix, magnitude) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    if !magnitude.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    if let Ok(number) = i64::from_str_radix(&format!("{sign}{magnitude}"), radix) {
        return Some(ScalarValue::Int(number));
    }
    let is_unsigned = !digits.starts_with(['-', '+']);
    let number = u64::from_str_radix(magnitude, radix).ok()?;
    is_unsigned.then_some(ScalarValue::Unsigned(number))
}

/// Digits with an optional point and exponent; not `1e`, `Infinity` or hexadecimal.
fn of_float(text: &str) -> Option<ScalarValue> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    let exponent_holds = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !digits.is_empty() && is_digits(digits)
    });
    if !(has_digits && is_digits(whole) && is_digits(fraction) && exponent_holds) {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    number.is_finite().then_some(ScalarValue::Float(number))
}
