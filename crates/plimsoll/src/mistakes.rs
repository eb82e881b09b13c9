//! Errors about mistakes in a file.

use anyhow::{Error, anyhow};
use plimsoll_core::problem::Problem;

use crate::failure::Advise;

/// All mistakes of a file as one error: one line each, with its position.
pub(crate) fn mistakes(file: &str, problems: &[Problem]) -> Error {
    let lines = problems.iter().map(|problem| match problem.position {
        Some(at) => format!("{file}:{}:{}: {problem}", at.line, at.column),
        None => format!("{file}: {problem}"),
    });
    anyhow!(lines.collect::<Vec<_>>().join("\n"))
}

/// The same for a file that `plimsoll check` can check.
pub(crate) fn checkable(file: &str, problems: &[Problem]) -> Error {
    let error = mistakes(file, problems);
    match file {
        "-" => error,
        file => error.hint(format!("for details, run: plimsoll check {file}")),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::problem::Position;

    use super::*;

    #[test]
    fn every_mistake_has_its_line() {
        let at = Position { line: 3, column: 5 };
        let problems = [
            Problem::required("a", "").at(Some(at)),
            Problem::invalid("b", "x", "must be y"),
        ];
        assert_eq!(
            mistakes("f.yaml", &problems).to_string(),
            "f.yaml:3:5: a: Required value\nf.yaml: b: Invalid value: \"x\": must be y"
        );
    }
}
