//! Values and types as Go's `fmt` prints them.

use std::fmt::Write;

use plimsoll_core::problem::quoted;
use serde_json::{Number, Value};

/// `%v` of a decoded JSON value: `map[a:1 b:[x y]]`, keys sorted.
pub(crate) fn sprint(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => out.push_str(&sprint_number(n)),
        Value::String(s) => out.push_str(s),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push_str("map[");
            for (index, (key, item)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                out.push_str(key);
                out.push(':');
                write_value(out, item);
            }
            out.push(']');
        }
    }
}

/// Whole numbers that fit stay whole; all others are floats and print in the shortest form, with
/// an exponent below 1e-4 and from 1e21 on.
pub(crate) fn sprint_number(number: &Number) -> String {
    if let Some(whole) = number.as_i64() {
        return whole.to_string();
    }
    let float = number.as_f64().unwrap_or(f64::INFINITY);
    let magnitude = float.abs();
    if magnitude != 0.0 && !(1e-4..1e21).contains(&magnitude) {
        let text = format!("{float:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    format!("{float}")
}

/// JSON as Go writes it: `<`, `>`, `&` and two line separators escaped, so that it is safe in HTML.
pub(crate) fn json(value: &Value) -> String {
    let plain = value.to_string();
    if !plain.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return plain;
    }
    let mut out = String::with_capacity(plain.len() + 16);
    for c in plain.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                write!(out, "\\u{:04x}", u32::from(c)).expect("texts take all");
            }
            c => out.push(c),
        }
    }
    out
}

/// `%#v` of a decoded JSON value: as it would be written in Go.
pub(crate) fn go_syntax(value: &Value) -> String {
    let list = |items: Vec<String>, ty: &str| format!("{ty}{{{}}}", items.join(", "));
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => quoted(text),
        Value::Array(items) => list(items.iter().map(go_syntax).collect(), "[]interface {}"),
        Value::Object(map) => {
            let members = map
                .iter()
                .map(|(key, item)| format!("{}:{}", quoted(key), go_syntax(item)));
            list(members.collect(), "map[string]interface {}")
        }
        scalar => sprint(scalar),
    }
}

/// The dynamic type of a decoded JSON value, as reflection names it.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The same as reflection names its kind.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
        Value::Null => "invalid",
        other => type_of(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_print_as_go_prints_maps_and_slices() {
        let value = json!({"b": [1, "x", null], "a": {"c": true, "d": 1.5}});
        assert_eq!(sprint(&value), "map[a:map[c:true d:1.5] b:[1 x <nil>]]");
    }

    #[test]
    fn floats_print_in_their_shortest_form() {
        for (value, want) in [
            (json!(1.0), "1"),
            (json!(1e21), "1e+21"),
            (json!(1.5e-7), "1.5e-07"),
            (json!(100_000.5), "100000.5"),
            (json!(u64::MAX), "18446744073709552000"),
        ] {
            assert_eq!(sprint(&value), want);
        }
    }
}
