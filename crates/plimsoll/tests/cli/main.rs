//! The command line: arguments in, text and exit code out.

mod check;
mod check_manifests;
mod check_settings;
mod convert;
mod daemon;
mod failing;
mod full_disk;
mod generated;
mod image;
mod operating;
mod replay;
mod store;
mod token;
mod up;
mod version;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a run left behind.
struct Run {
    stdout: String,
    stderr: String,
    code: Option<i32>,
}

impl Run {
    /// Everything, for a snapshot.
    fn transcript(&self) -> String {
        let code = self
            .code
            .map_or("killed".to_owned(), |code| code.to_string());
        let mut text = format!("exit code: {code}\n----- stdout -----\n{}", self.stdout);
        if !self.stderr.is_empty() {
            text.push_str(&format!("----- stderr -----\n{}", self.stderr));
        }
        text
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs `plimsoll` in the workspace, where the examples are.
fn plimsoll(arguments: &[&str], stdin: &str) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(arguments)
        .current_dir(root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("plimsoll starts");
    let mut pipe = child.stdin.take().expect("stdin is a pipe");
    // A command that does not read its input may be gone before it is written.
    let _ = pipe.write_all(stdin.as_bytes());
    drop(pipe);
    let output = child.wait_with_output().expect("plimsoll ends");
    Run {
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
        code: output.status.code(),
    }
}
