//! The process that walks.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::scan::{MOST_LINKED, Scan, Start};
use super::wire::{Request, Step, Taken};

/// How many walks are under way at most. What they remember is bounded, and with it the memory of
/// the process.
const MOST_WALKS: usize = 64;
/// How many files with several names all of them remember.
const MOST_LINKED_OF_ALL: usize = 4 * MOST_LINKED;

/// Walks over directories as requested on standard input, a socket, until that is closed.
pub fn walker_main() -> ExitCode {
    // Its memory is freed by the kernel, and the process itself is worth nothing.
    let _ = rustix::thread::set_name(c"disk-walker");
    match serve(io::stdin().as_fd()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "disk walker: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(socket: BorrowedFd<'_>) -> io::Result<()> {
    let mut answers = UnixStream::from(socket.try_clone_to_owned()?);
    let requests = BufReader::new(answers.try_clone()?);
    let mut walks = Walks::default();
    for line in requests.lines() {
        let request: Request = serde_json::from_str(&line?)?;
        let mut answer = serde_json::to_vec(&walks.take(request))?;
        answer.push(b'\n');
        answers.write_all(&answer)?;
    }
    Ok(())
}

/// Walks that have not ended, by number.
#[derive(Default)]
struct Walks(BTreeMap<u64, Box<Scan>>);

impl Walks {
    fn take(&mut self, request: Request) -> Taken {
        for walk in request.forgotten {
            self.0.remove(&walk);
        }
        let Step { budget, millis } = request.step;
        let ended = |result, entries| Taken {
            left: budget.saturating_sub(entries),
            entries,
            is_whole: true,
            ended: Some(result),
        };
        let mut scan = match self.0.remove(&request.walk) {
            Some(scan) => scan,
            None => {
                let path = Path::new(OsStr::from_bytes(&request.path));
                match Scan::start(path, request.scope) {
                    Ok(Start::Scan(scan)) => scan,
                    Ok(Start::Done(usage)) => return ended(Ok(usage), 1),
                    Err(error) => return ended(Err(error.raw_os_error().unwrap_or_default()), 1),
                }
            }
        };
        let others: usize = self.0.values().map(|scan| scan.linked()).sum();
        scan.most_linked = MOST_LINKED.min(MOST_LINKED_OF_ALL.saturating_sub(others));
        let mut left = budget;
        let found = scan.advance(&mut left, Instant::now() + Duration::from_millis(millis));
        let taken = Taken {
            left,
            entries: scan.entries,
            is_whole: scan.is_whole,
            ended: found.map(Ok),
        };
        if found.is_none() {
            // The oldest begins again when it is gone on with.
            if self.0.len() >= MOST_WALKS {
                self.0.pop_first();
            }
            self.0.insert(request.walk, scan);
        }
        taken
    }
}
