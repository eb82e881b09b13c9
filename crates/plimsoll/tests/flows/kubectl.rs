//! Running kubectl, as a user would.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What kubectl said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) is_fine: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `kubectl <arguments>`. Words are split at blanks; those in single quotes stay together.
pub(crate) fn kubectl(kubeconfig: &Path, namespace: &str, arguments: &str, stdin: &str) -> Answer {
    let mut child = Command::new("kubectl")
        // Arguments that name another namespace come later and win.
        .args(["--namespace", namespace])
        .args(words(arguments))
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("cannot run kubectl: {e}\nhint: install kubernetes-client"));
    let mut pipe = child.stdin.take().expect("stdin is a pipe");
    // A command that does not read its input may be gone before it is written.
    let _ = pipe.write_all(stdin.as_bytes());
    drop(pipe);
    let output = child.wait_with_output().expect("kubectl ends");
    Answer {
        is_fine: output.status.success(),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
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
