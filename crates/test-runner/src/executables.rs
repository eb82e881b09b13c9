//! The test executables: cargo builds all of them with one command and prints where they are.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// A program with tests in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Executable {
    pub(crate) path: PathBuf,
    /// The folder of its crate, in which its tests run.
    pub(crate) folder: PathBuf,
    /// `node/lib`, `plimsoll/stories`: the name of that folder, and the target in it.
    pub(crate) name: String,
}

/// Builds all test executables of the workspace. Compiler messages go to standard error.
///
/// # Errors
///
/// cargo's exit status.
pub(crate) fn build() -> Result<Vec<Executable>, u8> {
    let mut command = cargo(&["test", "--workspace", "--no-run", "--locked"]);
    command.arg("--message-format=json-render-diagnostics");
    let mut cargo = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|_| BUILD_FAILED)?;
    let output = cargo.stdout.take().ok_or(BUILD_FAILED)?;
    let executables = read(BufReader::new(output));
    match cargo.wait() {
        Ok(status) if status.success() => Ok(executables),
        Ok(status) => Err(status.code().map_or(BUILD_FAILED, |code| {
            u8::try_from(code).unwrap_or(BUILD_FAILED)
        })),
        Err(_) => Err(BUILD_FAILED),
    }
}

/// Cargo's exit code when a build fails.
const BUILD_FAILED: u8 = 101;

/// A cargo command; the cargo that runs this program, if one does.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Reads cargo's messages.
pub(crate) fn read(messages: impl BufRead) -> Vec<Executable> {
    let lines = messages.lines().map_while(Result::ok);
    let messages = lines.filter_map(|line| serde_json::from_str(&line).ok());
    let mut executables: Vec<Executable> = messages
        .filter_map(|message| executable(&message))
        .collect();
    executables.sort_by(|a, b| a.name.cmp(&b.name));
    executables
}

fn executable(message: &Value) -> Option<Executable> {
    let is_test = message["profile"]["test"] == true;
    let path = message["executable"].as_str().filter(|_| is_test)?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let target = &message["target"];
    let target_name = match target["kind"][0].as_str()? {
        "test" | "example" | "bench" => target["name"].as_str()?,
        "bin" => "bin",
        _ => "lib",
    };
    let crate_name = folder.file_name()?.to_string_lossy();
    Some(Executable {
        path: path.into(),
        folder: folder.to_owned(),
        name: format!("{crate_name}/{target_name}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_executables_are_found_among_cargos_messages() {
        let messages = r#"
{"reason":"compiler-artifact","manifest_path":"/w/crates/core/Cargo.toml","target":{"kind":["lib"],"name":"plimsoll_core"},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","manifest_path":"/w/crates/node/Cargo.toml","target":{"kind":["test"],"name":"pods"},"profile":{"test":true},"executable":"/w/target/pods-1"}
{"reason":"compiler-artifact","manifest_path":"/w/crates/core/Cargo.toml","target":{"kind":["lib"],"name":"plimsoll_core"},"profile":{"test":true},"executable":"/w/target/core-1"}
{"reason":"compiler-artifact","manifest_path":"/w/crates/core/Cargo.toml","target":{"kind":["bin"],"name":"plimsoll"},"profile":{"test":false},"executable":"/w/target/plimsoll"}
not JSON
{"reason":"build-finished","success":true}"#;
        let names: Vec<String> = read(messages.as_bytes())
            .into_iter()
            .map(|executable| executable.name)
            .collect();
        assert_eq!(names, ["core/lib", "node/pods"]);
    }
}
