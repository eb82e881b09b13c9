//! ARCHITECTURE.md describes what there is: its diagram, its paths, and that settings are read.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::{fail_on, is_test_code, production_part, root, rust_files};

const DOCUMENT: &str = "ARCHITECTURE.md";
const BEGIN: &str = "```mermaid\n";
const END: &str = "```\n";

fn document() -> String {
    std::fs::read_to_string(root().join(DOCUMENT)).expect("the document is there")
}

/// The crates of the workspace and their dependencies on each other, without those of tests alone.
fn edges() -> BTreeMap<String, BTreeSet<String>> {
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
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let own = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        let short = name.strip_prefix("plimsoll-");
        short
            .or((name == "plimsoll").then_some(name))
            .map(str::to_owned)
    };
    let mut edges = BTreeMap::new();
    for package in packages {
        let name = own(&package["name"]).expect("a crate of ours");
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let used = dependencies.filter(|one| one["kind"].is_null());
        let used: BTreeSet<String> = used.filter_map(|one| own(&one["name"])).collect();
        edges.insert(name, used);
    }
    edges
}

/// The diagram of the crates. What follows from other arrows is left out.
fn diagram() -> String {
    let edges = edges();
    let reaches = |from: &str, to: &str| {
        let mut found = BTreeSet::new();
        let mut next = vec![from.to_owned()];
        while let Some(name) = next.pop() {
            for below in edges.get(&name).into_iter().flatten() {
                if found.insert(below.clone()) {
                    next.push(below.clone());
                }
            }
        }
        found.contains(to)
    };
    let mut text = "graph TD\n".to_owned();
    for (name, used) in &edges {
        let direct = used.iter().filter(|below| {
            let mut others = used.iter().filter(|other| other != below);
            !others.any(|other| reaches(other, below))
        });
        for below in direct {
            text += &format!("  {name} --> {below}\n");
        }
    }
    text
}

#[test]
fn the_diagram_of_the_crates_is_up_to_date() {
    let text = document();
    let (before, rest) = text.split_once(BEGIN).expect("a diagram");
    let (found, after) = rest.split_once(END).expect("the diagram ends");
    let made = diagram();
    if std::env::var_os("PLIMSOLL_RECORD").is_some() {
        let text = [before, BEGIN, &made, END, after].concat();
        std::fs::write(root().join(DOCUMENT), text).expect("the document is ours");
        return;
    }
    assert_eq!(
        found, made,
        "PLIMSOLL_RECORD=1 cargo test -p plimsoll --test tidy diagram writes it anew"
    );
}

#[test]
fn every_crate_has_a_line_in_the_architecture() {
    let text = document();
    let missing: Vec<String> = edges()
        .into_keys()
        .filter(|name| !text.contains(&format!("crates/{name}")))
        .collect();
    fail_on("crates that ARCHITECTURE.md does not name", &missing);
}

/// Whether a word in backticks is meant as a path of the repository.
fn is_path(word: &str) -> bool {
    let roots = [
        "crates/",
        "docs/",
        "examples/",
        "scripts/",
        "vectors/",
        "plimsoll/",
    ];
    roots.iter().any(|root| word.starts_with(root)) && !word.contains([' ', '*', '<'])
}

/// The alternatives of `a/{b,c}/d`.
fn expanded(path: &str) -> Vec<String> {
    let braces = path.split_once('{').and_then(|(before, rest)| {
        let (inside, after) = rest.split_once('}')?;
        Some((before, inside, after))
    });
    let Some((before, inside, after)) = braces else {
        return vec![path.to_owned()];
    };
    let each = inside.split(',').map(|one| format!("{before}{one}{after}"));
    each.collect()
}

#[test]
fn paths_in_the_architecture_exist() {
    let text = document();
    let mut missing = Vec::new();
    for word in text
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| is_path(word))
    {
        for path in expanded(word) {
            // `plimsoll/src` is a crate's folder without the folder of all crates.
            let places = [root().join(&path), root().join("crates").join(&path)];
            let with_end = |place: &std::path::PathBuf| place.with_extension("rs");
            let is_there = places
                .iter()
                .any(|place| place.exists() || with_end(place).exists());
            if !is_there {
                missing.push(path);
            }
        }
    }
    fail_on("paths in ARCHITECTURE.md that lead nowhere", &missing);
}

/// A setting that has a typed field is applied: something reads it that is neither the configuration
/// itself nor advice about it.
#[test]
fn every_typed_setting_is_read() {
    const ADVICE: [&str; 4] = [
        "crates/core/src/config",
        "crates/core/src/lint",
        "crates/plimsoll/src/check",
        "crates/report/src/check",
    ];
    // It decides how evictionHard is decoded.
    const DECODED: &str = "merge_default_eviction_settings";
    let mut fields = Vec::new();
    let mut readers = String::new();
    for (path, text) in rust_files() {
        if path.ends_with("core/src/config/node_config.rs") {
            let (_, body) = text
                .split_once("pub struct NodeConfig {")
                .expect("the struct");
            let (body, _) = body.split_once("\n}").expect("its end");
            let lines = body.lines();
            let lines = lines.filter_map(|line| line.trim().strip_prefix("pub "));
            let settings = lines.filter_map(|line| line.split_once(": Setting<"));
            fields.extend(settings.map(|(name, _)| name.to_owned()));
            // Its methods compute from its own fields.
            let methods = production_part(&text).split("pub fn origin_of").nth(1);
            readers.push_str(&methods.unwrap_or_default().replace("self.", "config."));
        } else if !ADVICE.iter().any(|part| path.starts_with(part)) && !is_test_code(&path) {
            readers.push_str(production_part(&text));
        }
    }
    assert!(fields.len() > 50, "{fields:?}");
    readers.retain(|c| !c.is_whitespace());
    let is_read = |name: &String| {
        let name = format!("config.{name}");
        readers.match_indices(&name).any(|(at, found)| {
            let after = readers[at + found.len()..].chars().next();
            after.is_none_or(|c| !c.is_alphanumeric() && c != '_')
        })
    };
    let unread = fields.into_iter();
    let unread = unread.filter(|name| name != DECODED && !is_read(name));
    let unread: Vec<String> = unread.collect();
    fail_on("settings that are decoded and not read", &unread);
}
