//! What would be right instead of a wrong value.

use plimsoll_core::config::closest;
use plimsoll_core::lint::Rule;
use plimsoll_core::problem::{Kind, Problem};
use plimsoll_core::quantity::corrections;

/// The operators of node affinity and label selectors.
const OPERATORS: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];

/// The correction; empty if none is known.
pub(super) fn correction(problem: &Problem) -> String {
    let own = match problem.kind {
        Kind::NotSupported => closest_supported(problem),
        Kind::Invalid if problem.detail.contains("quantities must match") => quantity(problem),
        Kind::Invalid if problem.detail.contains("not a valid selector operator") => {
            did_you_mean(closest(&unquoted(&problem.value), OPERATORS.into_iter()))
        }
        Kind::TypeInvalid => other_type(problem),
        _ => None,
    };
    own.unwrap_or_else(|| Rule::of(problem).usual_fix().to_owned())
}

fn did_you_mean(word: Option<&str>) -> Option<String> {
    word.map(|word| format!("did you mean {word:?}?"))
}

/// One of the supported values, which the detail lists in quotes.
fn closest_supported(problem: &Problem) -> Option<String> {
    let supported: Vec<&str> = problem.detail.split('"').skip(1).step_by(2).collect();
    let value = unquoted(&problem.value);
    did_you_mean(closest(&value, supported.iter().copied()))
}

fn quantity(problem: &Problem) -> Option<String> {
    let meant = corrections(&unquoted(&problem.value));
    (!meant.is_empty()).then(|| format!("write {}", meant.join(" or ")))
}

/// A scalar of another type, or a scalar where a list of such belongs.
fn other_type(problem: &Problem) -> Option<String> {
    let value = problem.value.as_str();
    let name = problem.path.rsplit('.').next().unwrap_or_default();
    let is_text = value.starts_with('"');
    let is_scalar = !value.starts_with("a ");
    let bare = unquoted(value);
    match problem.detail.as_str() {
        detail if detail.starts_with("must be a string") && is_scalar => {
            Some(format!("write {name}: {bare:?}"))
        }
        detail if detail.starts_with("must be a whole number") && is_text => {
            let number: i64 = bare.parse().ok()?;
            Some(format!("write {name}: {number}"))
        }
        "must be true or false" => match bare.to_ascii_lowercase().as_str() {
            "yes" | "on" | "true" | "1" => Some(format!("write {name}: true")),
            "no" | "off" | "false" | "0" => Some(format!("write {name}: false")),
            _ => None,
        },
        "must be a list of strings" if is_scalar => Some(format!("write {name}: [{bare:?}]")),
        detail if detail.starts_with("must be a list of mappings") => {
            (value == "a mapping").then(|| format!("begin the first line below {name} with \"- \""))
        }
        _ => None,
    }
}

/// The text without the quotes in which a message shows it.
fn unquoted(value: &str) -> String {
    serde_json::from_str(value).unwrap_or_else(|_| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_values_have_a_correction() {
        let not_quantity = "quantities must match the regular expression 'x'";
        let list = "must be a list of strings";
        for (problem, expected) in [
            (
                Problem::not_supported(
                    "e",
                    "nodefs.availble",
                    &["memory.available", "nodefs.available"],
                ),
                "did you mean \"nodefs.available\"?",
            ),
            (
                Problem::invalid("m", "100MB", not_quantity),
                "write 100Mi or 100M",
            ),
            (
                Problem::invalid("o", "in", "not a valid selector operator"),
                "did you mean \"In\"?",
            ),
            (
                Problem::wrong_type("spec.command", "\"sh\"", list),
                "write command: [\"sh\"]",
            ),
            (
                Problem::wrong_type(
                    "spec.replicas",
                    "\"3\"",
                    "must be a whole number of 32 bits",
                ),
                "write replicas: 3",
            ),
            (
                Problem::wrong_type("spec.tty", "\"yes\"", "must be true or false"),
                "write tty: true",
            ),
            (
                Problem::wrong_type("env[0].value", "8080", "must be a string; put it in quotes"),
                "write value: \"8080\"",
            ),
            (Problem::required("spec", ""), ""),
        ] {
            assert_eq!(correction(&problem), expected, "{problem}");
        }
    }
}
