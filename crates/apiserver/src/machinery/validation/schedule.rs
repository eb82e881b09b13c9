//! Cron schedules.
//!
//! Matches v1.36 vendor/github.com/robfig/cron/v3/parser.go, `ParseStandard`, as far as its errors.

use plimsoll_core::duration::Duration;
use plimsoll_core::problem::quoted;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The values of a field: the lowest and highest number, and names that count from the lowest.
struct Bounds {
    lowest: u64,
    highest: u64,
    names: &'static [&'static str],
}

const FIELDS: [Bounds; 5] = [
    Bounds {
        lowest: 0,
        highest: 59,
        names: &[],
    },
    Bounds {
        lowest: 0,
        highest: 23,
        names: &[],
    },
    Bounds {
        lowest: 1,
        highest: 31,
        names: &[],
    },
    Bounds {
        lowest: 1,
        highest: 12,
        names: &MONTHS,
    },
    Bounds {
        lowest: 0,
        highest: 6,
        names: &DAYS,
    },
];

/// Why a text is not a schedule.
pub(super) fn check(spec: &str) -> Result<(), String> {
    let spec = match spec
        .strip_prefix("TZ=")
        .or_else(|| spec.strip_prefix("CRON_TZ="))
    {
        Some(rest) => match rest.split_once(' ') {
            Some((_, rest)) => rest.trim(),
            None => {
                let found = spec.len();
                let reason =
                    format!("runtime error: slice bounds out of range [:-1] with length {found}");
                return Err(format!("invalid schedule format: {reason}"));
            }
        },
        None => spec,
    };
    if spec.starts_with('@') {
        return check_descriptor(spec);
    }
    let fields: Vec<&str> = spec.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let found = fields.len();
        return Err(format!(
            "expected exactly 5 fields, found {found}: [{}]",
            fields.join(" ")
        ));
    }
    for (field, bounds) in fields.iter().zip(&FIELDS) {
        for range in field.split(',').filter(|range| !range.is_empty()) {
            check_range(range, bounds)?;
        }
    }
    Ok(())
}

fn check_descriptor(spec: &str) -> Result<(), String> {
    match spec {
        "@yearly" | "@annually" | "@monthly" | "@weekly" | "@daily" | "@midnight" | "@hourly" => {
            Ok(())
        }
        _ => match spec.strip_prefix("@every ") {
            Some(duration) => match duration.parse::<Duration>() {
                Ok(_) => Ok(()),
                Err(error) => Err(format!("failed to parse duration {spec}: {error}")),
            },
            None => Err(format!("unrecognized descriptor: {spec}")),
        },
    }
}

fn check_range(range: &str, bounds: &Bounds) -> Result<(), String> {
    let mut parts = range.split('/');
    let limits: Vec<&str> = parts.next().unwrap_or_default().split('-').collect();
    let steps: Vec<&str> = parts.collect();
    let Bounds {
        lowest, highest, ..
    } = *bounds;
    let (start, mut end) = match limits.as_slice() {
        ["*" | "?", ..] => (lowest, highest),
        [only] => {
            let number = number_or_name(only, bounds)?;
            (number, number)
        }
        [low, high] => (number_or_name(low, bounds)?, number_or_name(high, bounds)?),
        [low, ..] => {
            number_or_name(low, bounds)?;
            return Err(format!("too many hyphens: {range}"));
        }
        [] => (lowest, highest),
    };
    let step = match steps.as_slice() {
        [] => 1,
        [step] => {
            if limits.len() == 1 {
                end = highest;
            }
            number(step)?
        }
        _ => return Err(format!("too many slashes: {range}")),
    };
    if start < lowest {
        return Err(format!(
            "beginning of range ({start}) below minimum ({lowest}): {range}"
        ));
    }
    if end > highest {
        return Err(format!(
            "end of range ({end}) above maximum ({highest}): {range}"
        ));
    }
    if start > end {
        return Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {range}"
        ));
    }
    if step == 0 {
        return Err(format!(
            "step of range should be a positive number: {range}"
        ));
    }
    Ok(())
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let name = text.to_lowercase();
    match (bounds.lowest..)
        .zip(bounds.names)
        .find(|(_, known)| **known == name)
    {
        Some((number, _)) => Ok(number),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    match text.parse::<i64>() {
        Ok(number) => u64::try_from(number)
            .map_err(|_| format!("negative number ({number}) not allowed: {text}")),
        Err(error) => {
            use std::num::IntErrorKind::{NegOverflow, PosOverflow};
            let reason = match error.kind() {
                PosOverflow | NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            let shown = quoted(text);
            Err(format!(
                "failed to parse int from {text}: strconv.Atoi: parsing {shown}: {reason}"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_parsed_as_in_cron() {
        for spec in [
            "* * * * *",
            "*/5 0-6 1,15 jan-mar Sun",
            "@daily",
            "@every 1h30m",
            "0 0 ? * 1",
        ] {
            assert_eq!(check(spec), Ok(()), "{spec}");
        }
        for (spec, reason) in [
            ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "5-1 * * * *",
                "beginning of range (5) beyond end of range (1): 5-1",
            ),
            (
                "*/0 * * * *",
                "step of range should be a positive number: */0",
            ),
            (
                "x * * * *",
                "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("@often", "unrecognized descriptor: @often"),
        ] {
            assert_eq!(check(spec), Err(reason.to_owned()), "{spec}");
        }
    }
}
