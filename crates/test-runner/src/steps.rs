//! Checks beside tests: formatting, lints, documentation, and examples in it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::executables::cargo;
use crate::report::Step;

/// Runs a command and shows it.
///
/// # Errors
///
/// Its name, if it fails.
fn step(name: &str, command: &mut Command, steps: &mut Vec<Step>) -> Result<(), String> {
    println!("\n== {}", shown(command));
    let begin = Instant::now();
    let status = command.status();
    steps.push((name.to_owned(), begin.elapsed()));
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{} failed: {status}", shown(command))),
        Err(error) => Err(format!("cannot run {}: {error}", shown(command))),
    }
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or_default().to_string_lossy();
    let words = command.get_args().map(|word| word.to_string_lossy());
    words.fold(program.into_owned(), |line, word| line + " " + &word)
}

/// Formatting, clippy, rustdoc and dependency policy.
///
/// # Errors
///
/// At the first that fails.
pub(crate) fn lint(steps: &mut Vec<Step>) -> Result<(), String> {
    step("fmt", &mut cargo(&["fmt", "--all", "--check"]), steps)?;
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    step("clippy", &mut cargo(&clippy), steps)?;
    let doc = ["doc", "--workspace", "--no-deps", "--locked", "--quiet"];
    step("doc", cargo(&doc).env("RUSTDOCFLAGS", "-D warnings"), steps)?;
    // A workspace of its own, in a target directory of its own: its features must not be others'.
    let manifest = "crates/apiserver/schemas/Cargo.toml";
    let schemas = [
        "run",
        "--quiet",
        "--locked",
        "--manifest-path",
        manifest,
        "--target-dir",
        "target/schemas",
        "--",
        "--check",
    ];
    step("schemas", &mut cargo(&schemas), steps)?;
    let deny = cargo(&["deny", "--version"]).output();
    if !deny.is_ok_and(|output| output.status.success()) {
        println!("note: cargo-deny is not installed; dependency policy not checked");
        return Ok(());
    }
    // Advisories need a database from the network; they are checked if it is available.
    let deny = ["deny", "--offline", "check", "bans", "licenses", "sources"];
    step("deny", &mut cargo(&deny), steps)
}

/// Examples in documentation comments, if there are any: rustdoc needs minutes to find none.
///
/// # Errors
///
/// If one fails.
pub(crate) fn examples(steps: &mut Vec<Step>) -> Result<(), String> {
    let crates = fs::read_dir("crates").into_iter().flatten().flatten();
    let mut sources = crates.map(|entry| entry.path().join("src"));
    if !sources.any(|source| any_example_below(&source)) {
        return Ok(());
    }
    let arguments = ["test", "--doc", "--workspace", "--locked", "--quiet"];
    step("examples", &mut cargo(&arguments), steps)
}

fn any_example_below(path: &Path) -> bool {
    if path.is_dir() {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        return entries
            .map(|entry| entry.path())
            .any(|path| any_example_below(&path));
    }
    let is_source = path.extension().is_some_and(|extension| extension == "rs");
    is_source && fs::read_to_string(path).is_ok_and(|text| has_example(&text))
}

/// Whether rustdoc would run something in these comments.
fn has_example(source: &str) -> bool {
    let mut is_inside = false;
    for line in source.lines() {
        let line = line.trim_start();
        let comment = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"));
        let Some(fence) = comment.and_then(|comment| comment.trim().strip_prefix("```")) else {
            continue;
        };
        is_inside = !is_inside;
        // A block that names no other language is Rust.
        let mut words = fence.split(',').map(str::trim);
        let is_run = |word: &str| matches!(word, "" | "rust" | "no_run" | "should_panic");
        if is_inside && words.all(is_run) {
            return true;
        }
    }
    false
}

/// Benchmarks.
///
/// # Errors
///
/// If they fail.
pub(crate) fn bench(steps: &mut Vec<Step>) -> Result<(), String> {
    step("bench", &mut Command::new("scripts/bench"), steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_examples_are_distinguished_from_other_blocks() {
        assert!(has_example(
            "/// Adds.\n/// ```\n/// assert!(true);\n/// ```\n"
        ));
        assert!(has_example("//! ```rust,no_run\n//! x();\n//! ```\n"));
        assert!(!has_example(
            "//! ```text\n//! a -> b\n//! ```\nfn x() {}\n"
        ));
        assert!(!has_example(
            "//! ```yaml\n//! a: b\n//! ```\n//! ```ignore\n//! ```\n"
        ));
        assert!(!has_example("let fence = \"```\";\n"));
    }
}
