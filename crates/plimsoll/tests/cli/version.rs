//! `plimsoll version`, and the commit in a build.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::plimsoll;

#[path = "../../build/revision.rs"]
mod revision;

#[test]
fn version_is_that_of_the_package() {
    let run = plimsoll(&["version"], "");
    assert_eq!(run.code, Some(0));
    let first = format!("Client Version: v{}\n", env!("CARGO_PKG_VERSION"));
    assert!(run.stdout.starts_with(&first), "{}", run.stdout);
    assert!(
        run.stdout.contains("\nKubernetes Version: v1.36."),
        "{}",
        run.stdout
    );
    let short = plimsoll(&["--version"], "");
    assert_eq!(
        short.stdout,
        format!("plimsoll {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn version_has_the_fields_of_kubectl() {
    let json = plimsoll(&["version", "-o", "json"], "").stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let version = &json["clientVersion"];
    assert_eq!(
        version["gitVersion"],
        concat!("v", env!("CARGO_PKG_VERSION"))
    );
    for field in [
        "major",
        "minor",
        "rustVersion",
        "compiler",
        "target",
        "kubernetesVersion",
    ] {
        let text = version[field].as_str().unwrap_or_default();
        assert!(!text.is_empty(), "{field}: {version}");
    }
    let platform = version["platform"].as_str().expect("a text");
    assert!(platform.starts_with("linux/"), "{platform}");
    let yaml = plimsoll(&["version", "-o", "yaml"], "").stdout;
    assert!(yaml.starts_with("clientVersion:\n"), "{yaml}");
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=n", "-c", "user.email=e@x"]);
    let output = command.args(arguments).output().expect("git runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

#[test]
fn a_build_knows_its_commit_and_watches_the_branch() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    assert!(revision::read(folder).is_none(), "outside of a repository");
    git(folder, &["init", "--quiet", "--initial-branch=main"]);
    std::fs::write(folder.join("Cargo.toml"), "").expect("a file");
    assert!(
        revision::read(folder).is_none(),
        "in another project's repository"
    );
    git(folder, &["add", "Cargo.toml"]);
    git(folder, &["commit", "--quiet", "--message=one"]);
    let first = revision::read(folder).expect("a commit");
    assert_eq!(first.commit.len(), 40, "{}", first.commit);
    assert!(
        first.date.ends_with('Z') && first.date.len() == 20,
        "{}",
        first.date
    );
    let branch = folder.join(".git/refs/heads/main");
    assert_eq!(first.watched, [folder.join(".git/HEAD"), branch.clone()]);

    // A packed branch has no file of its own until the next commit.
    git(folder, &["pack-refs", "--all"]);
    assert!(!branch.exists());
    let packed = revision::read(folder).expect("a commit");
    assert_eq!(packed.commit, first.commit);
    assert!(
        packed.watched.iter().all(|file| file.exists()),
        "{:?}",
        packed.watched
    );
    assert!(
        packed.watched.contains(&folder.join(".git/refs/heads")),
        "{:?}",
        packed.watched
    );

    git(folder, &["checkout", "--quiet", "--detach"]);
    let detached = revision::read(folder).expect("a commit");
    assert_eq!(detached.watched, [folder.join(".git/HEAD")]);
}
