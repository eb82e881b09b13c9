//! Ends the processes of a run when the run itself ends, however it does.
//!
//! A second process of this program waits for the end of a pipe that the runner holds. When that is
//! closed, because the runner is done, was interrupted or was killed, it ends every process that
//! carries the run's mark. It needs no signal handlers, and works where these would not.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::processes;

/// The argument that makes this program a reaper; the run's mark follows it.
pub(crate) const WORD: &str = "end-processes-of-run";

/// This program, even if cargo has just replaced its file.
const OWN: &str = "/proc/self/exe";

/// A running reaper, until dropped.
#[derive(Debug)]
pub(crate) struct Reaper(Child);

impl Reaper {
    pub(crate) fn start(run: &str) -> Result<Self, String> {
        let child = Command::new(OWN)
            .args([WORD, run])
            .stdin(Stdio::piped())
            // Ctrl-C is for the runner alone.
            .process_group(0)
            .spawn();
        let child = child.map_err(|error| format!("cannot start the reaper: {error}"))?;
        Ok(Reaper(child))
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The main function of the reaper.
pub(crate) fn run(run: &str) {
    // An error is an end, too.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    processes::end(run);
}
