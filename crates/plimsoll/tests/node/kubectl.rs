//! Running kubectl, as a user would.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// What kubectl said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Answer {
    pub(crate) fn is_fine(&self) -> bool {
        self.code == Some(0)
    }
}

impl From<Output> for Answer {
    fn from(output: Output) -> Answer {
        Answer {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs `kubectl <arguments>` to its end. Words are split at blanks; those in single quotes stay
/// together.
pub(crate) fn kubectl(kubeconfig: &Path, arguments: &str, stdin: &str) -> Answer {
    let mut child = start(kubeconfig, arguments);
    let mut pipe = child.stdin.take().expect("stdin is a pipe");
    // A command that does not read its input may be gone before it is written.
    let _ = pipe.write_all(stdin.as_bytes());
    drop(pipe);
    child.wait_with_output().expect("kubectl ends").into()
}

/// Starts `kubectl <arguments>` with pipes on all sides.
pub(crate) fn start(kubeconfig: &Path, arguments: &str) -> Child {
    Command::new("kubectl")
        .args(words(arguments))
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("cannot run kubectl: {e}\nhint: install kubernetes-client"))
}

fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}
