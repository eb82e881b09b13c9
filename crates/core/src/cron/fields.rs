//! The five fields of a schedule: minute, hour, day of month, month, day of week.

use crate::problem::quoted;

/// The values that match, one bit each; [`ANY`] if the field was not restricted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) minute: u64,
    pub(super) hour: u64,
    pub(super) day_of_month: u64,
    pub(super) month: u64,
    pub(super) day_of_week: u64,
}

/// The bit of a field with a star.
pub(super) const ANY: u64 = 1 << 63;

/// The values of a field: the lowest and highest number, and names that count from the lowest.
struct Bounds {
    lowest: u64,
    highest: u64,
    names: &'static [&'static str],
}

const MINUTE: Bounds = Bounds::new(0, 59, &[]);
const HOUR: Bounds = Bounds::new(0, 23, &[]);
const DAY_OF_MONTH: Bounds = Bounds::new(1, 31, &[]);
const MONTH: Bounds = Bounds::new(
    1,
    12,
    &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ],
);
const DAY_OF_WEEK: Bounds = Bounds::new(0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]);

impl Bounds {
    const fn new(lowest: u64, highest: u64, names: &'static [&'static str]) -> Bounds {
        Bounds {
            lowest,
            highest,
            names,
        }
    }
}

impl Fields {
    pub(super) fn parse(text: &str) -> Result<Fields, String> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day_of_month, month, day_of_week] = fields[..] else {
            return Err(format!(
                "expected exactly 5 fields, found {}: [{}]",
                fields.len(),
                fields.join(" ")
            ));
        };
        Ok(Fields {
            minute: field(minute, &MINUTE)?,
            hour: field(hour, &HOUR)?,
            day_of_month: field(day_of_month, &DAY_OF_MONTH)?,
            month: field(month, &MONTH)?,
            day_of_week: field(day_of_week, &DAY_OF_WEEK)?,
        })
    }
}

fn field(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let ranges = text.split(',').filter(|range| !range.is_empty());
    ranges
        .map(|text| range(text, bounds))
        .try_fold(0, |bits, range| Ok(bits | range?))
}

/// The bits of `7`, `mon`, `1-5`, `*/15`, `3/4` (from three on) or `8-18/2`.
fn range(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let mut parts = text.split('/');
    let limits: Vec<&str> = parts.next().unwrap_or_default().split('-').collect();
    let steps: Vec<&str> = parts.collect();
    let (lowest, highest) = (bounds.lowest, bounds.highest);
    let mut any = 0;
    let (start, mut end) = match limits.as_slice() {
        ["*" | "?", ..] => {
            any = ANY;
            (lowest, highest)
        }
        [only] => {
            let number = number_or_name(only, bounds)?;
            (number, number)
        }
        [low, high] => (number_or_name(low, bounds)?, number_or_name(high, bounds)?),
        [low, ..] => {
            number_or_name(low, bounds)?;
            return Err(format!("too many hyphens: {text}"));
        }
        [] => (lowest, highest),
    };
    let step = match steps.as_slice() {
        [] => 1,
        [step] => {
            let step = number(step)?;
            if limits.len() == 1 {
                end = highest;
            }
            if step > 1 {
                any = 0;
            }
            step
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < lowest {
        return Err(format!(
            "beginning of range ({start}) below minimum ({lowest}): {text}"
        ));
    }
    if end > highest {
        return Err(format!(
            "end of range ({end}) above maximum ({highest}): {text}"
        ));
    }
    if start > end {
        return Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {text}"
        ));
    }
    let Some(step) = usize::try_from(step).ok().filter(|step| *step > 0) else {
        return Err(format!("step of range should be a positive number: {text}"));
    };
    let values = (start..=end).step_by(step);
    Ok(values.fold(any, |bits, value| bits | 1 << value))
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let name = text.to_lowercase();
    let mut named = (bounds.lowest..).zip(bounds.names);
    match named.find(|(_, known)| **known == name) {
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
