//! A process of a test.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, kill_process};

use crate::waiting::until;

/// Ends, by its id, when dropped. Its output goes to a log, which is shown if the test fails.
#[derive(Debug)]
pub struct Process {
    child: Child,
    program: String,
    arguments: Vec<String>,
    log: PathBuf,
}

impl Process {
    /// Runs the program at that path with these arguments. An existing log is overwritten.
    pub fn start(program: &str, log: &Path, arguments: &[String]) -> Self {
        let _ = std::fs::remove_file(log);
        Process {
            child: launch(program, arguments, log),
            program: program.to_owned(),
            arguments: arguments.to_vec(),
            log: log.to_owned(),
        }
    }

    /// Kills it without warning and starts it again.
    pub fn kill_and_restart(&mut self) {
        self.kill();
        self.child = launch(&self.program, &self.arguments, &self.log);
    }

    /// Its output so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until the output contains the text.
    pub fn says(&mut self, text: &str) {
        until(&format!("the process says {text:?}"), || {
            let log = self.log();
            if log.contains(text) {
                return Ok(());
            }
            let ended = self.child.try_wait().ok().flatten();
            assert!(ended.is_none(), "it ended ({ended:?}): {log}");
            Err(log)
        });
    }

    /// Interrupts it, as Ctrl-C does, and waits until it has ended.
    pub fn interrupt(&mut self) -> ExitStatus {
        self.signal(Signal::INT);
        until("it stops", || match self.child.try_wait() {
            Ok(Some(status)) => Ok(status),
            _ => Err(self.log()),
        })
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.id()).ok().and_then(Pid::from_raw);
        kill_process(id.expect("it has an id"), signal).expect("it runs");
    }

    /// Kills it without warning.
    pub fn kill(&mut self) {
        // Fails only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    #[expect(clippy::print_stderr, reason = "part of the report of a failure")]
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- log of plimsoll {}:\n{}", self.arguments[0], self.log());
        }
    }
}

fn launch(program: &str, arguments: &[String], log: &Path) -> Child {
    let file: File = OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .expect("the log opens");
    let file_too = file.try_clone().expect("the log opens twice");
    Command::new(program)
        .args(arguments)
        .stdout(file)
        .stderr(file_too)
        .spawn()
        .expect("the program starts")
}
