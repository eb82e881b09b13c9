//! Project rules that no compiler checks: sizes, edges, order, cycles, names, words, links.

mod module_cycles;

mod architecture;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Longest production file.
const MAX_LINES: usize = 1000;

/// Crates that may be depended on, per crate. Dev-dependencies may add `plimsoll-testkit`.
const ALLOWED_EDGES: [(&str, &[&str]); 12] = [
    (
        "plimsoll",
        &[
            "plimsoll-apiserver",
            "plimsoll-client",
            "plimsoll-control",
            "plimsoll-core",
            "plimsoll-node",
            "plimsoll-report",
            "plimsoll-runtime",
        ],
    ),
    ("plimsoll-apiserver", &["plimsoll-client", "plimsoll-core"]),
    ("plimsoll-bench-runner", &[]),
    ("plimsoll-client", &["plimsoll-core"]),
    ("plimsoll-control", &["plimsoll-client", "plimsoll-core"]),
    ("plimsoll-core", &[]),
    (
        "plimsoll-node",
        &["plimsoll-client", "plimsoll-core", "plimsoll-runtime"],
    ),
    ("plimsoll-report", &["plimsoll-core"]),
    ("plimsoll-runtime", &["plimsoll-core"]),
    ("plimsoll-test-runner", &[]),
    ("plimsoll-testkit", &[]),
    ("plimsoll-toolbox", &[]),
];

const BANNED_MODULE_NAMES: [&str; 6] = ["helpers", "utils", "common", "misc", "manager", "types"];

/// Words in module names that a Kubernetes or Linux engineer would not search for.
const BANNED_MODULE_WORDS: [&str; 16] = [
    "anatomy",
    "cast",
    "decisive",
    "face",
    "frugality",
    "furniture",
    "guardian",
    "house",
    "introduction",
    "journey",
    "neighbour",
    "neighbours",
    "nobody",
    "precedence",
    "sign",
    "who",
];

/// Parts of function names, tests included, that stand for an object: the name says pod, caller or
/// file, and uses a plain verb.
const BANNED_FUNCTION_WORDS: [&str; 10] = [
    "anybody",
    "everybody",
    "nobody",
    "somebody",
    "tells",
    "told",
    "who",
    "whoever",
    "whom",
    "whose",
];

/// Words that log messages and help texts avoid: they name the pod, process or caller instead, and
/// use plain verbs.
const BANNED_TEXT: [&str; 23] = [
    "anybody",
    "anyone",
    "everybody",
    "everyone",
    "furnish",
    "furnished",
    "goes on",
    "had to go",
    "is asked",
    "journey",
    "nobody",
    "noted down",
    "on its way",
    "somebody",
    "someone",
    "taken away",
    "tell",
    "tells",
    "told",
    "who",
    "whoever",
    "whom",
    "would go next",
];

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the workspace exists")
}

/// The files under version control or about to be, relative to the root.
fn files() -> Vec<PathBuf> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git ls-files failed");
    let listing = String::from_utf8(output.stdout).expect("paths are UTF-8");
    let paths = listing.lines().map(PathBuf::from);
    paths.filter(|path| root().join(path).is_file()).collect()
}

fn rust_files() -> Vec<(PathBuf, String)> {
    let is_rust = |path: &PathBuf| path.extension().is_some_and(|e| e == "rs");
    files().into_iter().filter(is_rust).map(with_text).collect()
}

fn with_text(path: PathBuf) -> (PathBuf, String) {
    let text = std::fs::read_to_string(root().join(&path))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    (path, text)
}

fn is_test_code(path: &Path) -> bool {
    let text = path.to_string_lossy();
    text.contains("/tests/") || text.contains("/benches/") || text.ends_with("/tests.rs")
}

/// The part of a file before its inline tests.
fn production_part(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or(text)
}

fn fail_on(what: &str, offenders: &[String]) {
    assert!(
        offenders.is_empty(),
        "{what}:\n  {}",
        offenders.join("\n  ")
    );
}

#[test]
fn no_production_file_is_too_long() {
    let long: Vec<String> = rust_files()
        .iter()
        .filter(|(path, _)| !is_test_code(path))
        .map(|(path, text)| (path, production_part(text).lines().count()))
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(path, lines)| format!("{}: {lines} lines", path.display()))
        .collect();
    fail_on(
        &format!("files above {MAX_LINES} lines; split by idea"),
        &long,
    );
}

#[test]
fn crates_depend_only_in_the_allowed_direction() {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED_EDGES.into_iter().collect();
    let mut offenders = Vec::new();
    for package in metadata["packages"].as_array().expect("a list of packages") {
        let name = package["name"].as_str().expect("packages have names");
        let Some(allowed) = allowed.get(name) else {
            offenders.push(format!("{name} has no row in ALLOWED_EDGES"));
            continue;
        };
        for dependency in package["dependencies"].as_array().expect("a list") {
            let target = dependency["name"]
                .as_str()
                .expect("dependencies have names");
            let is_ours = target.starts_with("plimsoll");
            let is_dev = dependency["kind"] == "dev";
            // A crate's tests may use its own test-only features.
            let is_fine = allowed.contains(&target)
                || is_dev && (target == "plimsoll-testkit" || target == name);
            if is_ours && !is_fine {
                offenders.push(format!("{name} -> {target}"));
            }
        }
    }
    fail_on("dependency edges that the architecture forbids", &offenders);
}

/// A core module imports only from modules above it in the list that opens `lib.rs`.
#[test]
fn core_modules_import_only_upwards() {
    let (_, lib) = with_text(PathBuf::from("crates/core/src/lib.rs"));
    let order: Vec<&str> = lib
        .lines()
        .filter_map(|line| {
            line.strip_prefix("//! ")?
                .split_once(". [`")?
                .1
                .split_once('`')
        })
        .map(|(name, _)| name)
        .collect();
    let declared = lib
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    for module in declared.filter(|module| *module != "testing") {
        assert!(
            order.contains(&module),
            "{module} is not in the list that opens lib.rs"
        );
    }
    let mut offenders = Vec::new();
    for (path, text) in rust_files() {
        let Ok(inside) = path.strip_prefix("crates/core/src") else {
            continue;
        };
        if is_test_code(&path) {
            continue;
        }
        let module = inside.components().next().expect("a file has a path");
        let module = module.as_os_str().to_string_lossy();
        let module = module.trim_end_matches(".rs");
        let Some(own) = order.iter().position(|name| *name == module) else {
            continue;
        };
        let code = production_part(&text).lines();
        for line in code.filter(|line| !line.trim_start().starts_with("//")) {
            for used in line.split("crate::").skip(1) {
                let name = used
                    .split(|c: char| !c.is_alphanumeric() && c != '_')
                    .next();
                let position = order.iter().position(|known| Some(*known) == name);
                if position.is_some_and(|position| position > own) {
                    offenders.push(format!("{}: {}", path.display(), line.trim()));
                }
            }
        }
    }
    fail_on("imports from a later module of core", &offenders);
}

#[test]
fn modules_are_named_after_ideas() {
    let vague: Vec<String> = rust_files()
        .iter()
        .filter(|(path, _)| {
            path.components().any(|part| {
                let name = part.as_os_str().to_string_lossy();
                BANNED_MODULE_NAMES.contains(&name.trim_end_matches(".rs"))
            })
        })
        .map(|(path, _)| path.display().to_string())
        .collect();
    fail_on("modules with names that mean nothing", &vague);
}

/// Fails on texts of files.
fn fail_on_lines(what: &str, found: &[(String, String)]) {
    let found: Vec<String> = found
        .iter()
        .map(|(file, text)| format!("{file}: {text}"))
        .collect();
    fail_on(what, &found);
}

#[test]
fn module_names_use_standard_vocabulary() {
    let mut found = Vec::new();
    for (path, _) in rust_files() {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if stem
            .split('_')
            .any(|word| BANNED_MODULE_WORDS.contains(&word))
        {
            found.push((path.display().to_string(), stem.into_owned()));
        }
    }
    fail_on_lines(
        "modules named with words that no engineer would search for",
        &found,
    );
}

/// The name of the function that a line declares.
fn declared_function(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_keyword = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let name = after
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()?;
    let is_declared = after.strip_prefix(name)?.starts_with(['(', '<']);
    (is_keyword && is_declared && !name.is_empty()).then_some(name)
}

#[test]
fn function_names_use_standard_vocabulary() {
    assert_eq!(
        declared_function("    pub(crate) async fn ends_at<T>(pod: T) {"),
        Some("ends_at")
    );
    assert_eq!(declared_function("// a fn that ends"), None);
    let mut found = Vec::new();
    for (path, text) in rust_files() {
        for name in text.lines().filter_map(declared_function) {
            if name
                .split('_')
                .any(|word| BANNED_FUNCTION_WORDS.contains(&word))
            {
                found.push((path.display().to_string(), name.to_owned()));
            }
        }
    }
    fail_on_lines("functions whose names do not name the object", &found);
}

/// The first banned word in a text, ignoring case.
fn banned_word(text: &str) -> Option<&'static str> {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let words: Vec<String> = text
        .split(|c: char| !is_letter(c))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let text = format!(" {} ", words.join(" "));
    BANNED_TEXT
        .into_iter()
        .find(|banned| text.contains(&format!(" {banned} ")))
}

/// The messages of the `tracing` macros in a file: the last string literal of each call.
fn log_messages(code: &str) -> Vec<String> {
    let levels = ["trace!(", "debug!(", "info!(", "warn!(", "error!("];
    let calls = levels.into_iter().flat_map(|level| {
        let macro_name = format!("tracing::{level}");
        code.split(&macro_name)
            .skip(1)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    });
    calls
        .filter_map(|call| string_literals(&call).pop())
        .collect()
}

/// The string literals up to the closing parenthesis of a call.
fn string_literals(call: &str) -> Vec<String> {
    let mut literals = Vec::new();
    let mut depth = 1;
    let mut rest = call.chars();
    while let Some(c) = rest.next() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => break,
            ')' => depth -= 1,
            '"' => {
                let mut literal = String::new();
                while let Some(c) = rest.next().filter(|c| *c != '"') {
                    literal.push(c);
                    if c == '\\' {
                        literal.extend(rest.next());
                    }
                }
                literals.push(literal);
            }
            _ => {}
        }
    }
    literals
}

/// A log message is searchable: it names objects instead of "it", and asks no question.
#[test]
fn log_messages_use_standard_vocabulary() {
    assert_eq!(
        log_messages("tracing::warn!(%pod, error = f(\"a\"), \"is \\\"it\\\" gone?\"); f(\"b\")"),
        ["is \\\"it\\\" gone?"]
    );
    let mut found = Vec::new();
    for (path, text) in rust_files() {
        if is_test_code(&path) {
            continue;
        }
        for message in log_messages(production_part(&text)) {
            let has_pronoun = format!(" {message} ").contains(" it ");
            if has_pronoun || message.ends_with('?') || banned_word(&message).is_some() {
                found.push((path.display().to_string(), message));
            }
        }
    }
    fail_on_lines("log messages", &found);
}

/// Manual pages have every help text of every command.
#[test]
fn help_texts_use_standard_vocabulary() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let written = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .arg("man")
        .arg(folder.path())
        .output()
        .expect("plimsoll runs");
    assert!(written.status.success(), "{written:?}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder.path())
        .expect("a folder")
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        let page = std::fs::read_to_string(entry.path()).expect("a page");
        for line in page.lines().filter(|line| banned_word(line).is_some()) {
            found.push((name.clone(), line.to_owned()));
        }
    }
    fail_on_lines("help texts", &found);
}

#[test]
fn nothing_is_unfinished_or_disabled() {
    // Assembled, so that this file does not name what it looks for.
    let banned = [
        ["to", "do!("].concat(),
        ["unimple", "mented!("].concat(),
        ["FIX", "ME"].concat(),
        ["TO", "DO"].concat(),
    ];
    let mut offenders = Vec::new();
    for (path, text) in rust_files() {
        for (number, line) in text.lines().enumerate() {
            let is_switched_off = line.contains("#[ignore") && !line.contains("tier: ");
            if is_switched_off || banned.iter().any(|word| line.contains(word)) {
                offenders.push(format!(
                    "{}:{}: {}",
                    path.display(),
                    number + 1,
                    line.trim()
                ));
            }
        }
    }
    fail_on("leftovers", &offenders);
}

/// Every file in a folder of test modules is part of its test binary.
#[test]
fn every_test_module_is_listed() {
    let sources: BTreeMap<PathBuf, String> = rust_files().into_iter().collect();
    let mut offenders = Vec::new();
    for path in sources.keys() {
        let folder = path.parent().expect("a file has a folder");
        let main = folder.join("main.rs");
        let is_in_tests = folder
            .parent()
            .is_some_and(|parent| parent.ends_with("tests"));
        if !is_in_tests || *path == main {
            continue;
        }
        let module = path
            .file_stem()
            .expect("a file has a name")
            .to_string_lossy();
        let is_listed = sources
            .get(&main)
            .is_some_and(|text| text.contains(&format!("mod {module};")));
        if !is_listed {
            offenders.push(path.display().to_string());
        }
    }
    fail_on("test files that no test binary includes", &offenders);
}

#[test]
fn links_in_documents_resolve() {
    let mut offenders = Vec::new();
    for path in files() {
        if path.extension().is_none_or(|e| e != "md") || path.starts_with("vectors") {
            continue;
        }
        let (path, text) = with_text(path);
        let folder = root().join(path.parent().expect("a file has a folder"));
        for target in text.split("](").skip(1) {
            let target = target.split(')').next().unwrap_or_default();
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            if !folder.join(file).exists() {
                offenders.push(format!("{}: {target}", path.display()));
            }
        }
    }
    fail_on("links to nothing", &offenders);
}

#[test]
fn vectors_are_well_formed() {
    let mut count = 0;
    for path in files() {
        if !path.starts_with("vectors") || path.extension().is_none_or(|e| e != "json") {
            continue;
        }
        let (path, text) = with_text(path);
        let file: Value =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let cases = file["cases"].as_array();
        assert!(
            cases.is_some_and(|cases| !cases.is_empty()),
            "{}",
            path.display()
        );
        count += 1;
    }
    assert!(count > 0, "the project keeps its own copy of the vectors");
}
