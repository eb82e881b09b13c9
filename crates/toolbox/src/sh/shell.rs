//! The state of a shell, and how control leaves the normal course.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::ast::Command;
use super::traps::Traps;
use super::variables::{Hidden, Variables};
use crate::outcome::shown;
use crate::sys::{self, Ended};

/// Why the commands that follow are not executed. The status is in `Shell::status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// Leaves that many loops.
    Break(usize),
    /// Leaves all but one of that many loops and continues that one.
    Continue(usize),
    /// Leaves a function or a sourced file.
    Return,
    Exit,
    /// An error that ends a script, but not an interactive shell.
    Abort,
}

pub(super) type Step = Result<(), Flow>;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Settings {
    pub(super) errexit: bool,
    pub(super) nounset: bool,
    pub(super) xtrace: bool,
    pub(super) noglob: bool,
    pub(super) allexport: bool,
    pub(super) noclobber: bool,
    pub(super) noexec: bool,
    pub(super) pipefail: bool,
}

#[derive(Debug)]
pub(super) struct Shell {
    pub(super) name: Vec<u8>,
    pub(super) arguments: Vec<Vec<u8>>,
    pub(super) variables: Variables,
    pub(super) functions: BTreeMap<Vec<u8>, Rc<Command>>,
    pub(super) settings: Settings,
    pub(super) traps: Traps,
    pub(super) is_interactive: bool,
    /// `$?`
    pub(super) status: i32,
    /// `$?` when the builtin that is being executed was called.
    pub(super) status_before: i32,
    /// The status of the last command substitution of the command that is being expanded.
    pub(super) substitution_status: Option<i32>,
    /// `$$`, also in subshells.
    pub(super) process: u32,
    /// `$!`
    pub(super) last_background: Option<i32>,
    /// Children that have not been waited for, with how they ended if they have.
    pub(super) jobs: BTreeMap<i32, Option<Ended>>,
    /// What `local` has hidden, per function that is being executed.
    pub(super) locals: Vec<Vec<Hidden>>,
    /// Where `getopts` continues: the index of the argument, and the place in it.
    pub(super) option_place: (usize, usize),
    /// Loops around the current command in the current function.
    pub(super) loops: usize,
    /// Functions and sourced files being executed, which `return` may leave.
    pub(super) returnable: usize,
    /// Commands being executed inside of each other.
    pub(super) depth: usize,
    /// Conditions around the current command, inside of which `-e` has no effect.
    pub(super) conditions: usize,
}

impl Shell {
    pub(super) fn new(name: Vec<u8>, arguments: Vec<Vec<u8>>) -> Self {
        Self {
            name,
            arguments,
            variables: Variables::from_environment(),
            functions: BTreeMap::new(),
            settings: Settings::default(),
            traps: Traps::default(),
            is_interactive: false,
            status: 0,
            status_before: 0,
            substitution_status: None,
            process: std::process::id(),
            last_background: None,
            jobs: BTreeMap::new(),
            locals: Vec::new(),
            option_place: (1, 1),
            loops: 0,
            returnable: 0,
            depth: 0,
            conditions: 0,
        }
    }

    pub(super) fn report(&self, message: impl std::fmt::Display) {
        let line = format!("{}: {message}\n", shown(&self.name));
        // Without standard error there is no place to report to.
        let _ = sys::write_all(2, line.as_bytes());
    }

    /// Reports an error and sets the status.
    pub(super) fn fail(&mut self, status: i32, message: impl std::fmt::Display) {
        self.report(message);
        self.status = status;
    }

    /// Reports an error that ends a script.
    pub(super) fn abort(&mut self, message: impl std::fmt::Display) -> Flow {
        self.fail(2, message);
        Flow::Abort
    }

    /// Writes what a builtin prints. An error is the builtin's failure.
    pub(super) fn print(&mut self, name: &str, text: &[u8]) {
        if let Err(error) = sys::write_all(1, text) {
            self.fail(1, format_args!("{name}: write: {error}"));
        }
    }

    pub(super) fn set_variable(&mut self, name: &[u8], value: Vec<u8>) -> Result<(), String> {
        let is_exported = self.settings.allexport;
        let variable = self.variables.change(name)?;
        variable.value = Some(value);
        variable.is_exported |= is_exported;
        Ok(())
    }
}
