//! The git commit of a build, if there is one.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A commit.
pub(crate) struct Revision {
    /// All its digits.
    pub(crate) commit: String,
    /// When it was made, in RFC 3339 and UTC. Builds of one commit are equal, whenever they are made.
    pub(crate) date: String,
    /// Files that change when another commit is checked out or made, and at no other time.
    pub(crate) watched: Vec<PathBuf>,
}

/// The commit checked out in that folder, if it belongs to a repository.
pub(crate) fn read(folder: &Path) -> Option<Revision> {
    // A release that was unpacked inside of another project's repository is not part of that one.
    git(folder, &["ls-files", "--error-unmatch", "Cargo.toml"])?;
    let shown = git(
        folder,
        &[
            "log",
            "-1",
            "--no-show-signature",
            "--date=format-local:%Y-%m-%dT%H:%M:%SZ",
            "--format=%H %cd",
        ],
    )?;
    let (commit, date) = shown.split_once(' ')?;
    Some(Revision {
        commit: commit.to_owned(),
        date: date.to_owned(),
        watched: watched(folder)?,
    })
}

/// HEAD, and the branch it names: its own file, or what holds it until it has one.
fn watched(folder: &Path) -> Option<Vec<PathBuf>> {
    let path = |name: &str| {
        let path = git(folder, &["rev-parse", "--git-path", name])?;
        Some(folder.join(path))
    };
    let mut watched = vec![path("HEAD")?];
    if let Some(branch) = git(folder, &["symbolic-ref", "--quiet", "HEAD"]) {
        let file = path(&branch)?;
        if file.exists() {
            watched.push(file);
        } else {
            // Cargo takes a missing file for a changed one. Commits make the file, in this folder.
            watched.push(path("packed-refs")?);
            watched.extend(
                file.ancestors()
                    .skip(1)
                    .find(|parent| parent.exists())
                    .map(Path::to_owned),
            );
        }
    }
    Some(watched)
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command
        .arg("-C")
        .arg(folder)
        .args(arguments)
        .env("TZ", "UTC");
    let output = command.output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
