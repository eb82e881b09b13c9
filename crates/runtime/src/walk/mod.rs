//! Walks over directories that pods fill, bounded in files, time and memory.
//!
//! Whatever a walk looks at, the kernel keeps in memory (directory entries and inodes: a gigabyte
//! for a million files), and it accounts that memory to the process that looks. An agent therefore
//! has its walks done by a process of its own ([`walker_main`]), in a cgroup with a small limit:
//! there the kernel frees what was looked at, as soon as there is more. A file system that does not
//! answer holds up that process and not the agent.
//!
//! A walk is done in steps and has one of three ends: the whole sum; a sum that is too small, which it
//! says; or none, if the directory cannot be read or does not answer.
//!
//! Reading order: `scan` (one walk), `wire` (what the agent asks the process), `child` (the process),
//! `process` (the agent's side).

mod child;
mod process;
mod scan;
#[cfg(test)]
mod tests;
mod wire;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use child::walker_main;
pub use process::Account;
pub use scan::{Scope, Usage};

use process::Process;
use scan::{Scan, Start};

/// How long a step may take.
pub const STEP_TIME: Duration = Duration::from_millis(200);

/// Begins walks. Cheap to clone; clones share the process.
#[derive(Clone, Debug, Default)]
pub struct Walker(Option<Arc<Process>>);

impl Walker {
    /// Walks are done by the calling thread.
    pub fn here() -> Walker {
        Walker(None)
    }

    /// Walks are done by a process that this command starts, which runs [`walker_main`]. `account` is
    /// called with the id of each such process before it looks at anything.
    pub fn apart(command: Vec<OsString>, account: Account) -> Walker {
        Walker(Some(Arc::new(Process::new(command, account))))
    }

    /// Has the process, if there is one, be there before it is needed. Returns soon.
    pub fn start(&self) {
        if self.0.is_some() {
            let mut walk = self.begin(Path::new("/"), Scope::Files);
            let progress = walk.advance(&mut 1, Instant::now() + STEP_TIME);
            tracing::debug!(?progress, "started disk walker");
        }
    }

    /// A walk that has not looked at anything yet.
    pub fn begin(&self, path: &Path, scope: Scope) -> Walk {
        let (path, state) = (path.to_owned(), State::New);
        Walk {
            path,
            scope,
            entries: 0,
            is_whole: true,
            by: match &self.0 {
                None => By::Caller(state),
                Some(process) => By::Process(process.begin()),
            },
        }
    }
}

/// A walk that has not ended.
#[derive(Debug)]
pub struct Walk {
    path: PathBuf,
    scope: Scope,
    /// How many files were looked at.
    pub entries: u64,
    /// Whether nothing was left out.
    pub is_whole: bool,
    by: By,
}

#[derive(Debug)]
enum By {
    Caller(State),
    Process(process::Handle),
}

#[derive(Debug)]
enum State {
    New,
    Begun(Box<Scan>),
}

/// How far a walk is.
#[derive(Debug)]
pub enum Progress {
    /// There is more to look at.
    Pending,
    /// What was found.
    Done(Usage),
    /// The directory cannot be read.
    Failed(io::Error),
    /// It does not answer, or the process that walks has ended: nothing is known of it.
    Silent(io::Error),
}

impl Walk {
    /// Goes on for at most `budget` files, which is reduced by those that were looked at, and not
    /// beyond the deadline.
    pub fn advance(&mut self, budget: &mut u64, deadline: Instant) -> Progress {
        match &mut self.by {
            By::Process(handle) => {
                let step = wire::Step {
                    budget: *budget,
                    millis: millis_until(deadline),
                };
                let taken = match handle.advance(&self.path, self.scope, step) {
                    Ok(taken) => taken,
                    Err(error) => return Progress::Silent(error),
                };
                *budget = taken.left.min(*budget);
                (self.entries, self.is_whole) = (taken.entries, taken.is_whole);
                match taken.ended {
                    None => Progress::Pending,
                    Some(Ok(usage)) => Progress::Done(usage),
                    Some(Err(code)) => Progress::Failed(io::Error::from_raw_os_error(code)),
                }
            }
            By::Caller(state) => {
                if matches!(state, State::New) {
                    *state = match Scan::start(&self.path, self.scope) {
                        Ok(Start::Scan(scan)) => State::Begun(scan),
                        Ok(Start::Done(usage)) => {
                            *budget = budget.saturating_sub(1);
                            self.entries = 1;
                            return Progress::Done(usage);
                        }
                        Err(error) => return Progress::Failed(error),
                    };
                }
                let State::Begun(scan) = state else {
                    return Progress::Pending;
                };
                let ended = scan.advance(budget, deadline);
                (self.entries, self.is_whole) = (scan.entries, scan.is_whole);
                ended.map_or(Progress::Pending, Progress::Done)
            }
        }
    }
}

fn millis_until(deadline: Instant) -> u64 {
    let left = deadline.saturating_duration_since(Instant::now());
    u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
}

/// What a tree takes that nothing else writes to, itself included; by the calling thread, at once.
pub fn measure(path: &Path) -> io::Result<Usage> {
    let mut walk = Walker::here().begin(path, Scope::Tree);
    loop {
        let (mut budget, deadline) = (u64::MAX, Instant::now() + STEP_TIME);
        match walk.advance(&mut budget, deadline) {
            Progress::Pending => {}
            Progress::Done(usage) => return Ok(usage),
            Progress::Failed(error) | Progress::Silent(error) => return Err(error),
        }
    }
}
