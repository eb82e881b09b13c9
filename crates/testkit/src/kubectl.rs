//! Running kubectl, as a user would.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::waiting::until;

/// The result of a kubectl command.
#[derive(Debug)]
pub struct Answer {
    /// Its exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// Its output.
    pub stdout: String,
    /// Its errors.
    pub stderr: String,
}

impl Answer {
    /// Whether it succeeded.
    pub fn is_fine(&self) -> bool {
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

/// A kubectl with a cluster and a namespace.
///
/// Runs kubectl. Arguments are one line, split at blanks; those in single quotes stay together.
#[derive(Clone, Debug)]
pub struct Kubectl {
    kubeconfig: PathBuf,
    namespace: String,
}

impl Kubectl {
    /// For the cluster of that file. Arguments that name another namespace win.
    pub fn new(kubeconfig: &Path, namespace: &str) -> Self {
        Kubectl {
            kubeconfig: kubeconfig.to_owned(),
            namespace: namespace.to_owned(),
        }
    }

    /// Runs a command, which has to succeed, and returns its output.
    pub fn kubectl(&self, arguments: &str) -> String {
        self.kubectl_with(arguments, "")
    }

    /// As [`Self::kubectl`], with some input.
    pub fn kubectl_with(&self, arguments: &str, stdin: &str) -> String {
        let answer = self.try_kubectl_with(arguments, stdin);
        assert!(answer.is_fine(), "kubectl {arguments}: {answer:?}");
        answer.stdout
    }

    /// Runs it to its end.
    pub fn try_kubectl(&self, arguments: &str) -> Answer {
        self.try_kubectl_with(arguments, "")
    }

    /// As [`Self::try_kubectl`], with some input.
    pub fn try_kubectl_with(&self, arguments: &str, stdin: &str) -> Answer {
        let mut child = self.start_kubectl(arguments);
        let mut pipe = child.stdin.take().expect("stdin is a pipe");
        // A command that does not read its input may have ended before it is written.
        let _ = pipe.write_all(stdin.as_bytes());
        drop(pipe);
        child.wait_with_output().expect("kubectl ends").into()
    }

    /// Starts it with pipes on all sides.
    pub fn start_kubectl(&self, arguments: &str) -> Child {
        Command::new("kubectl")
            // The last one wins.
            .args(["--namespace", &self.namespace])
            .args(words(arguments))
            .env("KUBECONFIG", &self.kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("cannot run kubectl: {e}\nhint: install kubernetes-client"))
    }

    /// Waits until it prints exactly that.
    pub fn shows(&self, arguments: &str, expected: &str) {
        self.until(arguments, &format!("{expected:?}"), |shown| {
            shown == expected
        });
    }

    /// Waits until its output contains that.
    pub fn mentions(&self, arguments: &str, part: &str) {
        self.until(arguments, &format!("…{part}…"), |shown| {
            shown.contains(part)
        });
    }

    /// Runs a command until it succeeds and its output is right, and returns the output.
    pub fn until(&self, arguments: &str, wanted: &str, is_right: impl Fn(&str) -> bool) -> String {
        until(&format!("kubectl {arguments} shows {wanted}"), || {
            let answer = self.try_kubectl(arguments);
            if answer.is_fine() && is_right(&answer.stdout) {
                return Ok(answer.stdout);
            }
            Err(answer.stdout + &answer.stderr)
        })
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
