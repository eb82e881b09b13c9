//! The builds that are measured: the program of a revision, and its benchmark of instructions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Published figures are those of this profile.
pub(crate) const PROFILE: &str = "dist";

/// Where other revisions are checked out and builds are kept.
const FOLDER: &str = "target/compare";

/// The sources of a revision, built.
#[derive(Debug)]
pub(crate) struct Build {
    program: PathBuf,
    /// Older revisions have none.
    instructions: Option<PathBuf>,
}

/// A cargo command; the cargo that runs this program, if one does.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command
}

impl Build {
    /// The working tree.
    ///
    /// # Errors
    ///
    /// If it does not build.
    pub(crate) fn own() -> Result<Build, String> {
        built(Path::new("."), "this")
    }

    /// A revision, in a work tree of its own.
    ///
    /// # Errors
    ///
    /// If there is no such revision, or it does not build.
    pub(crate) fn of(revision: &str) -> Result<Build, String> {
        let commit = git(&["rev-parse", "--verify", &format!("{revision}^{{commit}}")])?;
        let folder = Path::new(FOLDER).join(&commit);
        if !folder.exists() {
            let folder = folder.to_string_lossy();
            git(&["worktree", "add", "--detach", &folder, &commit])?;
        }
        built(&folder, &commit)
    }

    pub(crate) fn program(&self) -> Result<PathBuf, String> {
        let path = fs::canonicalize(&self.program);
        path.map_err(|error| format!("{}: {error}", self.program.display()))
    }

    pub(crate) fn instructions(&self) -> Option<&Path> {
        self.instructions.as_deref()
    }
}

/// Builds the program and the benchmark, and keeps them: the next revision is built in the same
/// target directory, since most of their dependencies are the same.
fn built(sources: &Path, name: &str) -> Result<Build, String> {
    let manifest = sources.join("Cargo.toml");
    let text = fs::read_to_string(&manifest);
    let text = text.map_err(|error| format!("{}: {error}", manifest.display()))?;
    // Revisions before there was such a profile had its settings in `release`.
    let profile = match text.contains("[profile.dist]") {
        true => PROFILE,
        false => "release",
    };
    let program = Path::new(FOLDER).join(format!("plimsoll-{name}"));
    let build = ["build", "--package", "plimsoll", "--bin", "plimsoll"];
    run(&build, &manifest, profile)?;
    keep(
        &Path::new("target").join(profile).join("plimsoll"),
        &program,
    )?;
    let has_instructions = sources.join("crates/core/benches/instructions.rs").exists();
    if !has_instructions {
        return Ok(Build {
            program,
            instructions: None,
        });
    }
    let bench = ["bench", "--no-run", "--package", "plimsoll-core"];
    let bench = [&bench[..], &["--bench", "instructions"]].concat();
    let instructions = Path::new(FOLDER).join(format!("instructions-{name}"));
    keep(&run(&bench, &manifest, profile)?, &instructions)?;
    Ok(Build {
        program,
        instructions: Some(instructions),
    })
}

/// Builds, and answers the last executable that cargo names.
fn run(words: &[&str], manifest: &Path, profile: &str) -> Result<PathBuf, String> {
    let mut command = cargo(words);
    command
        .args(["--locked", "--profile", profile, "--target-dir", "target"])
        .arg("--manifest-path")
        .arg(manifest)
        .arg("--message-format=json-render-diagnostics");
    println!(
        "== building {}: cargo {}",
        manifest.display(),
        words.join(" ")
    );
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("the build failed: {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut executables = text.lines().filter_map(executable);
    let last = executables.next_back();
    last.ok_or_else(|| format!("cargo {} built no executable", words.join(" ")))
}

/// The path in cargo's message about an executable.
fn executable(message: &str) -> Option<PathBuf> {
    let (_, rest) = message.split_once("\"executable\":\"")?;
    let (path, _) = rest.split_once('"')?;
    Some(path.into())
}

fn keep(from: &Path, to: &Path) -> Result<(), String> {
    let copy = || {
        fs::create_dir_all(FOLDER)?;
        fs::copy(from, to)
    };
    let copied = copy().map(drop);
    copied.map_err(|error| {
        format!(
            "cannot copy {} to {}: {error}",
            from.display(),
            to.display()
        )
    })
}

fn git(words: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(words).output();
    let output = output.map_err(|error| format!("cannot run git: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git {}: {}", words.join(" "), stderr.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_found_in_cargos_messages() {
        let artifact = r#"{"reason":"compiler-artifact","executable":"/t/dist/deps/x-1"}"#;
        assert_eq!(executable(artifact), Some("/t/dist/deps/x-1".into()));
        let library = r#"{"reason":"compiler-artifact","executable":null}"#;
        assert_eq!(executable(library), None);
    }
}
