//! `api/quantity.json`.

use plimsoll_core::quantity::{Format, ParseError, Quantity};
use plimsoll_testkit::vectors::{Outcome, compare};
use serde_json::{Value, json};

pub(crate) fn check(case: &Value) -> Outcome {
    let text = |key: &str| case[key].as_str().unwrap_or_default();
    let integer = || text("n").parse::<i64>().unwrap();
    let got = match text("op") {
        "parse" => parsed(text("input").parse().map(Some), None),
        "json" => {
            let quantity = Quantity::from_json_token(text("token"));
            let out = quantity
                .clone()
                .map(|q| json!(q.unwrap_or_default().to_string()).to_string());
            parsed(quantity, out.ok())
        }
        "pair" => pair(text("a"), text("b")),
        "fromValue" => described(Some(&Quantity::new(integer(), format(text("format"))))),
        "fromMilli" => described(Some(&Quantity::from_milli(
            integer(),
            format(text("format")),
        ))),
        op => return Err(vec![format!("unknown op {op}")]),
    };
    let mut want = case.clone();
    for key in ["id", "op", "input", "token", "a", "b", "n"] {
        want.as_object_mut().unwrap().remove(key);
    }
    if let Some(float) = want.get_mut("float") {
        *float = json!(float.as_str().unwrap().parse::<f64>().unwrap());
    }
    compare(&got, &want)
}

fn parsed(result: Result<Option<Quantity>, ParseError>, out: Option<String>) -> Value {
    match result {
        Err(error) => json!({"ok": false, "error": error.to_string()}),
        Ok(quantity) => {
            let mut got = described(quantity.as_ref());
            got["ok"] = json!(true);
            if let Some(out) = out {
                got["out"] = json!(out);
            }
            got
        }
    }
}

/// `None` is Go's zero value, whose format is the empty text.
fn described(quantity: Option<&Quantity>) -> Value {
    let format = quantity.map_or("", |q| q.format().as_str());
    let quantity = quantity.cloned().unwrap_or_default();
    json!({
        "canonical": quantity.canonical(),
        "string": quantity.to_string(),
        "format": format,
        "milliValue": quantity.milli_value().to_string(),
        "value": quantity.value().to_string(),
        "sign": quantity.signum(),
        "float": quantity.as_approximate_f64(),
    })
}

fn pair(a: &str, b: &str) -> Value {
    let (a, b): (Quantity, Quantity) = (a.parse().unwrap(), b.parse().unwrap());
    let (mut sum, mut difference) = (a.clone(), a.clone());
    sum.add(&b);
    difference.sub(&b);
    json!({
        "cmp": a.cmp(&b) as i8,
        "equal": a == b,
        "add": sum.to_string(),
        "addFormat": sum.format().as_str(),
        "sub": difference.to_string(),
        "subFormat": difference.format().as_str(),
    })
}

fn format(name: &str) -> Format {
    match name {
        "DecimalSI" => Format::DecimalSi,
        "BinarySI" => Format::BinarySi,
        _ => Format::DecimalExponent,
    }
}
