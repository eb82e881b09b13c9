//! A `plimsoll` process of a flow.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Ends, by its id, when dropped. Its output goes to a log, which is shown if the test fails.
pub(crate) struct Process {
    child: Child,
    arguments: Vec<String>,
    log: PathBuf,
}

impl Process {
    /// Runs the command with these arguments, logging to `<folder>/<its first argument>.log`.
    pub(crate) fn start(folder: &Path, arguments: &[String]) -> Self {
        let log = folder.join(format!("{}.log", arguments[0]));
        Process {
            child: launch(arguments, &log),
            arguments: arguments.to_vec(),
            log,
        }
    }

    /// Kills it without warning and starts it again.
    pub(crate) fn kill_and_restart(&mut self) {
        self.kill();
        self.child = launch(&self.arguments, &self.log);
    }

    /// What it has said so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Whether it has ended by itself.
    pub(crate) fn is_over(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|code| code.is_some())
    }

    /// Kills it without warning.
    pub(crate) fn kill(&mut self) {
        // Fails only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    #[expect(clippy::print_stderr, reason = "whoever reads of a failure needs it")]
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- log of plimsoll {}:\n{}", self.arguments[0], self.log());
        }
    }
}

fn launch(arguments: &[String], log: &Path) -> Child {
    let file: File = OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .expect("the log opens");
    let file_too = file.try_clone().expect("the log opens twice");
    Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(arguments)
        .stdout(file)
        .stderr(file_too)
        .spawn()
        .expect("plimsoll starts")
}
