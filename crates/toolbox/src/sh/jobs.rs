//! Child processes: waiting for them, command substitution, background commands.

use std::fs::File;
use std::io::{Read, pipe};
use std::os::fd::AsRawFd;

use super::ast::List;
use super::shell::{Flow, Shell, Step};
use crate::sys::{self, Ended};

/// The most that a command substitution may print. No command line takes more than 2 MiB.
const MAX_OUTPUT: u64 = 64 << 20;

/// Above this count, exited children are forgotten, though `wait` may still name them.
const MAX_JOBS: usize = 1000;

/// Signals of which the death of a command is not worth a message.
const UNREMARKABLE: [i32; 2] = [sys::SIGINT, sys::SIGPIPE];

impl Shell {
    /// Waits for a child and returns its status. Other children are noted or, if they are orphans
    /// that process 1 has inherited, only reaped.
    pub(super) fn wait_for(&mut self, child: i32) -> i32 {
        loop {
            if let Some(Some(ended)) = self.jobs.get(&child).copied() {
                self.jobs.remove(&child);
                if let Some(signal) = ended.signal.filter(|s| !UNREMARKABLE.contains(s)) {
                    let name = crate::signals::name(signal).unwrap_or("an unknown signal");
                    self.report(format_args!("process {child} ended on {name}"));
                }
                return ended.status;
            }
            match sys::wait_for_child() {
                Ok(ended) => self.note(ended),
                Err(_) => return 127,
            }
        }
    }

    fn note(&mut self, ended: Ended) {
        if let Some(job) = self.jobs.get_mut(&ended.process) {
            *job = Some(ended);
        }
    }

    /// A script that never waits for its background commands would keep them all.
    pub(super) fn forget_old_jobs(&mut self) {
        if self.jobs.len() >= MAX_JOBS {
            self.reap();
            let last = self.last_background;
            self.jobs
                .retain(|process, ended| ended.is_none() || Some(*process) == last);
        }
    }

    /// Reaps what has ended in the meantime.
    pub(super) fn reap(&mut self) {
        while let Ok(Some(ended)) = sys::reap() {
            self.note(ended);
        }
    }

    /// `wait`: for one background process or for all. A signal with a trap ends the waiting.
    pub(super) fn wait_for_jobs(&mut self, process: Option<i32>) -> Step {
        loop {
            let is_done = match process {
                Some(process) => match self.jobs.get(&process) {
                    None => {
                        self.status = 127;
                        true
                    }
                    Some(None) => false,
                    Some(Some(ended)) => {
                        self.status = ended.status;
                        self.jobs.remove(&process);
                        true
                    }
                },
                None => self.jobs.values().all(Option::is_some),
            };
            if is_done {
                if process.is_none() {
                    self.jobs.clear();
                    self.status = 0;
                }
                return Ok(());
            }
            match sys::wait_for_child_or_signal() {
                Ok(Some(ended)) => self.note(ended),
                Ok(None) => return self.end_of_waiting(),
                // There are no children: the jobs recorded as running were reaped elsewhere.
                Err(_) => {
                    self.jobs.clear();
                    self.status = 127;
                    return Ok(());
                }
            }
        }
    }

    /// A builtin that waits was interrupted: executes the trap, and the status is that of the
    /// signal.
    pub(super) fn end_of_waiting(&mut self) -> Step {
        let signal = sys::first_noted().unwrap_or(sys::SIGINT);
        self.status = 128 + signal;
        if self.is_interactive && signal == sys::SIGINT && self.traps.get(signal).is_none() {
            sys::take_noted();
            return Err(Flow::Abort);
        }
        self.run_traps()
    }

    /// On a terminal, Ctrl-C ends the command line, not only the command.
    pub(super) fn interrupted(&mut self) -> Step {
        let is_interrupted = self.is_interactive
            && self.status == 128 + sys::SIGINT
            && self.traps.get(sys::SIGINT).is_none();
        if !is_interrupted {
            return Ok(());
        }
        sys::take_noted();
        // The terminal has shown `^C` without ending the line.
        let _ = sys::write_all(2, b"\n");
        Err(Flow::Abort)
    }

    /// In a background child: Ctrl-C is not for it, and standard input is left to the others.
    pub(super) fn detach(&mut self) {
        for signal in [sys::SIGINT, sys::SIGQUIT] {
            let _ = self.set_trap(signal, Some(Vec::new()));
        }
        // Without /dev/null the child shares the input, which works too.
        if let Ok(null) = File::open("/dev/null") {
            let _ = sys::duplicate(null.as_raw_fd(), 0);
        }
    }

    /// `$(…)`: what the commands print, without the newlines at its end.
    pub(super) fn substitute(&mut self, list: &List) -> Result<Vec<u8>, Flow> {
        let (reader, writer) = match pipe() {
            Ok(ends) => ends,
            Err(error) => return Err(self.abort(format_args!("pipe: {error}"))),
        };
        let child = self.fork(|shell| {
            sys::close(reader.as_raw_fd());
            if let Err(error) = sys::duplicate(writer.as_raw_fd(), 1) {
                return Err(shell.abort(format_args!("pipe: {error}")));
            }
            sys::close(writer.as_raw_fd());
            shell.run_list(list, true)
        })?;
        drop(writer);
        let mut output = Vec::new();
        let result = reader.take(MAX_OUTPUT + 1).read_to_end(&mut output);
        let status = self.wait_for(child);
        self.substitution_status = Some(status);
        self.status = status;
        if let Err(error) = result {
            return Err(self.abort(format_args!("command substitution: {error}")));
        }
        if u64::try_from(output.len()).unwrap_or(u64::MAX) > MAX_OUTPUT {
            let most = MAX_OUTPUT >> 20;
            return Err(self.abort(format_args!("command substitution: more than {most} MiB")));
        }
        output.retain(|byte| *byte != 0);
        while output.last() == Some(&b'\n') {
            output.pop();
        }
        Ok(output)
    }
}
