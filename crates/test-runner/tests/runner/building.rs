//! The runner on a workspace that it builds itself.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// A workspace of one crate with this source.
fn workspace(source: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let file = folder.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    write(
        "Cargo.toml",
        "[workspace]\nmembers = [\"crates/*\"]\nresolver = \"3\"\n",
    );
    let package = "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    write("crates/small/Cargo.toml", package);
    write("crates/small/src/lib.rs", source);
    write(
        "Cargo.lock",
        "version = 4\n\n[[package]]\nname = \"small\"\nversion = \"0.1.0\"\n",
    );
    folder
}

fn run(workspace: &Path, tier: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_test-runner"))
        .arg(tier)
        .current_dir(workspace)
        .env("CARGO", env!("CARGO"))
        .env("CARGO_TARGET_DIR", workspace.join("target"))
        .output()
        .unwrap()
}

#[test]
fn a_workspace_is_built_and_its_tests_run() {
    let workspace = workspace("#[test]\nfn works() {}\n");
    let output = run(workspace.path(), "unit");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.ends_with("\n\n1 passed, 0 failed\n"), "{text}");
    assert!(text.contains("build"), "{text}");
}

#[test]
fn a_build_that_fails_is_shown_and_ends_with_cargos_status() {
    let workspace = workspace("pub fn broken() -> u32 { \"no number\" }\n");
    let output = run(workspace.path(), "unit");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(101), "{output:?}");
    assert!(text.contains("mismatched types"), "{text}");
    assert!(text.contains("error: the build failed"), "{text}");
}

#[test]
fn a_lint_that_fails_ends_the_run() {
    let workspace = workspace("pub fn  spread ( ) { }\n");
    let output = run(workspace.path(), "lint");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text.contains("error: cargo fmt --all --check failed"),
        "{text}"
    );
}
