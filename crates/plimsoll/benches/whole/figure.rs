//! Output of a result: a line for people and for `scripts/bench`.

use std::fmt::{self, Display};

/// Which way a figure should change.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Better {
    Higher,
    Lower,
}

impl Display for Better {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Better::Higher => "higher",
            Better::Lower => "lower",
        })
    }
}

/// Prints one: its name, its value with a unit, and which way is better.
pub(crate) fn print(name: &str, value: f64, unit: &str, better: Better) {
    let digits = if value < 100.0 { 2 } else { 0 };
    println!("figure | {name} | {value:.digits$} {unit} | {better} is better");
}
