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

/// Records the list in docs/differences.md anew with `PLIMSOLL_RECORD=1`.
#[test]
fn kinds_that_nothing_acts_on_are_documented() {
    let json = plimsoll(&["version", "-o", "json"], "").stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let mut table = "\n| apiVersion | kind | why |\n|---|---|---|\n".to_owned();
    for kind in json["inertKinds"].as_array().expect("a list") {
        let field = |name: &str| kind[name].as_str().expect("a text").to_owned();
        let (version, kind, why) = (field("apiVersion"), field("kind"), field("reason"));
        table += &format!("| `{version}` | `{kind}` | {why} |\n");
    }
    table.push('\n');
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/differences.md");
    let text = std::fs::read_to_string(&path).expect("the document");
    let (before, rest) = text.split_once(BEGIN).expect("the beginning of the list");
    let (documented, after) = rest.split_once(END).expect("the end of the list");
    if std::env::var_os("PLIMSOLL_RECORD").is_some() {
        let text = format!("{before}{BEGIN}{table}{END}{after}");
        return std::fs::write(&path, text).expect("the document is written");
    }
    assert_eq!(documented, table, "docs/differences.md is not up to date");
}

const BEGIN: &str = "<!-- generated: kinds that nothing acts on -->\n";
const END: &str = "<!-- end -->";

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
