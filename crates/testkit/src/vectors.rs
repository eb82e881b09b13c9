//! Recorded input/answer cases: loading, running, reporting.
//!
//! A suite is one file `<area>/<file>.json` and a check. [`run`] is the `main` of a test binary
//! without harness: it reports one test per file, prints `area/file: passed/total`, and lists each
//! failing case with its differences. Files that the set does not have are left out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

use crate::difference::differences;

/// Names the directory of another set of the same format.
pub const DIRECTORY_VARIABLE: &str = "PLIMSOLL_VECTORS";

/// One file of cases and how to check a case.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// The folder: `node`, `api`, `scheduler`.
    pub area: &'static str,
    /// The file name without `.json`.
    pub file: &'static str,
    /// Which cases of the file this suite answers for; the rest is not counted.
    pub applies: fn(&Value) -> bool,
    /// Compares the product's answer with the recorded one.
    pub check: fn(&Value) -> Outcome,
}

impl Suite {
    /// A suite that answers for all cases of its file.
    pub const fn new(area: &'static str, file: &'static str, check: fn(&Value) -> Outcome) -> Self {
        Suite {
            area,
            file,
            applies: |_| true,
            check,
        }
    }

    /// The same suite for the cases that `applies` picks.
    pub const fn only(self, applies: fn(&Value) -> bool) -> Self {
        Suite { applies, ..self }
    }
}

/// Passed, or the lines that describe the differences.
pub type Outcome = Result<(), Vec<String>>;

/// Compares two values; see [`differences`] for what counts as equal.
pub fn compare(got: &Value, want: &Value) -> Outcome {
    let found = differences(got, want);
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// Compares with the case's `expect`, or with any of its `expectAnyOf`.
pub fn compare_with_expected(case: &Value, got: &Value) -> Outcome {
    let Some(answers) = case["expectAnyOf"].as_array() else {
        return compare(got, &case["expect"]);
    };
    let closest = answers
        .iter()
        .map(|want| differences(got, want))
        .min_by_key(Vec::len)
        .unwrap_or_else(|| vec!["expectAnyOf is empty".to_owned()]);
    if closest.is_empty() {
        Ok(())
    } else {
        Err(closest)
    }
}

/// Runs the suites whose files exist; the `main` of a vectors test.
pub fn run(suites: &[Suite]) -> ExitCode {
    let arguments = Arguments::from_args();
    let root = directory();
    let mut trials = Vec::new();
    for suite in suites {
        let path = path_of(&root, suite);
        let name = format!("{}/{}", suite.area, suite.file);
        if !path.exists() {
            continue;
        }
        let is_named = arguments.filter.as_ref().is_none_or(|f| name.contains(f));
        // `--ignored` selects the tiers that need tools; recorded cases need none.
        let is_wanted = is_named && !arguments.ignored;
        // The counts are printed before the harness starts, so that they stand on lines of their
        // own and not behind `test … `.
        let result = if arguments.list || !is_wanted {
            Ok(())
        } else {
            run_file(suite, &path)
        };
        trials.push(Trial::test(name, move || result));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn path_of(root: &Path, suite: &Suite) -> PathBuf {
    root.join(suite.area).join(format!("{}.json", suite.file))
}

/// The set in use: the variable's directory, else the project's own copy.
fn directory() -> PathBuf {
    match std::env::var_os(DIRECTORY_VARIABLE) {
        Some(directory) => {
            let given = PathBuf::from(directory);
            // Tests run in their crate's directory; a relative path is meant from the workspace.
            if given.is_absolute() || given.exists() {
                given
            } else {
                workspace_root().join(given)
            }
        }
        None => workspace_root().join("vectors"),
    }
}

fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[expect(clippy::print_stdout, reason = "the counts are the product of the run")]
fn run_file(suite: &Suite, path: &Path) -> Result<(), Failed> {
    let cases = load(path)?;
    let cases: Vec<&Value> = cases.iter().filter(|case| (suite.applies)(case)).collect();
    let failures: Vec<(String, Vec<String>)> = cases
        .iter()
        .filter_map(|case| Some((title(case), run_case(suite, case).err()?)))
        .collect();
    let passed = cases.len() - failures.len();
    println!("{}/{}: {passed}/{}", suite.area, suite.file, cases.len());
    for (title, lines) in &failures {
        println!("  FAILED {title}");
        for line in lines {
            println!("    {line}");
        }
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(format!("{} of {} cases differ", failures.len(), cases.len()).into())
    }
}

fn load(path: &Path) -> Result<Vec<Value>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut file: Value =
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    match file["cases"].take() {
        Value::Array(cases) => Ok(cases),
        _ => Err(format!("{}: no list named cases", path.display())),
    }
}

fn title(case: &Value) -> String {
    let text = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
    let id = if case["id"].is_string() {
        text("id")
    } else {
        text("name")
    };
    let note = text("note");
    if note.is_empty() {
        id
    } else {
        format!("{id} ({note})")
    }
}

/// A panic in one case is that case's failure and no other's.
fn run_case(suite: &Suite, case: &Value) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| (suite.check)(case))).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
            .unwrap_or_default();
        Err(vec![format!("panicked: {message}")])
    })
}
