//! Signals: their names, what `trap` has set, and what a shell does with the others.

use std::collections::BTreeMap;

use super::shell::{Shell, Step};
use crate::signals;
use crate::sys::{self, Disposition};

/// The pseudo signal of `trap … EXIT`.
pub(super) const EXIT: i32 = 0;

#[derive(Debug, Default)]
pub(super) struct Traps {
    actions: BTreeMap<i32, Vec<u8>>,
    is_running_exit: bool,
}

impl Traps {
    pub(super) fn get(&self, signal: i32) -> Option<&[u8]> {
        self.actions.get(&signal).map(Vec::as_slice)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (i32, &[u8])> {
        let all = self.actions.iter();
        all.map(|(signal, action)| (*signal, action.as_slice()))
    }

    /// Whether something is to be executed, now or at the end; ignored signals need nothing.
    pub(super) fn has_commands(&self) -> bool {
        self.actions.values().any(|action| !action.is_empty())
    }
}

impl Shell {
    /// What happens on signals that no trap is set for.
    fn untrapped(&self, signal: i32) -> Disposition {
        match signal {
            sys::SIGCHLD => Disposition::Wake,
            sys::SIGINT if self.is_interactive => Disposition::Note,
            sys::SIGQUIT if self.is_interactive => Disposition::Ignore,
            _ if std::process::id() == 1 && signals::ENDING.contains(&signal) => Disposition::Exit,
            _ => Disposition::Default,
        }
    }

    /// To be called once, when it is known whether the shell is interactive.
    pub(super) fn install_signals(&self) {
        for signal in [sys::SIGCHLD, sys::SIGINT, sys::SIGQUIT] {
            self.dispose(signal, self.untrapped(signal));
        }
    }

    fn dispose(&self, signal: i32, disposition: Disposition) {
        if let Err(error) = sys::set_disposition(signal, disposition) {
            self.report(format_args!("signal {signal}: {error}"));
        }
    }

    pub(super) fn set_trap(&mut self, signal: i32, action: Option<Vec<u8>>) -> Result<(), String> {
        if signal != EXIT {
            let disposition = match action.as_deref() {
                None => self.untrapped(signal),
                Some(b"") => Disposition::Ignore,
                Some(_) => Disposition::Note,
            };
            sys::set_disposition(signal, disposition)
                .map_err(|error| format!("signal {signal}: {error}"))?;
        }
        match action {
            Some(action) => self.traps.actions.insert(signal, action),
            None => self.traps.actions.remove(&signal),
        };
        Ok(())
    }

    /// A subshell starts without traps, but keeps ignoring the ignored signals.
    pub(super) fn reset_traps(&mut self) {
        let all = std::mem::take(&mut self.traps.actions);
        for (signal, action) in all {
            if action.is_empty() {
                self.traps.actions.insert(signal, action);
            } else if signal != EXIT {
                self.dispose(signal, self.untrapped(signal));
            }
        }
        for signal in [sys::SIGINT, sys::SIGQUIT] {
            if self.traps.get(signal).is_none() {
                self.dispose(signal, self.untrapped(signal));
            }
        }
        self.traps.is_running_exit = false;
        sys::take_noted();
    }

    /// Executes the traps of signals that have arrived.
    pub(super) fn run_traps(&mut self) -> Step {
        if !sys::has_noted() {
            return Ok(());
        }
        for signal in sys::take_noted() {
            let Some(action) = self.traps.get(signal) else {
                continue;
            };
            let action = action.to_vec();
            let status = self.status;
            self.run_text(&action)?;
            self.status = status;
        }
        Ok(())
    }

    /// Executes the trap of EXIT, once, and returns the status to exit with.
    pub(super) fn leave(&mut self) -> i32 {
        let action = self.traps.actions.remove(&EXIT);
        if let Some(action) = action
            && !self.traps.is_running_exit
        {
            self.traps.is_running_exit = true;
            let status = self.status;
            // Only `exit` inside of the trap changes the status.
            if self.run_text(&action).is_ok() {
                self.status = status;
            }
        }
        self.status
    }
}
