//! Executes commands. `-e` is decided here: a failing pipeline ends the shell unless it is a
//! condition.

use std::io::{PipeReader, pipe};
use std::os::fd::AsRawFd;
use std::rc::Rc;

use super::ast::{AndOr, Command, Compound, Connective, List, Pipeline, Redirect, Word};
use super::pattern;
use super::shell::{Flow, Shell, Step};
use crate::sys::{self, Forked};

/// How deep commands may be executed inside of each other: functions that call themselves. One level
/// takes up to 5 KiB of the stack, of which there are 8 MiB.
pub(super) const MAX_DEPTH: usize = 800;

impl Shell {
    /// `is_last` means that the process has nothing to do after the list, so that its last command
    /// may replace the process.
    pub(super) fn run_list(&mut self, list: &List, is_last: bool) -> Step {
        for (place, item) in list.items.iter().enumerate() {
            self.run_traps()?;
            if item.is_background {
                self.run_background(&item.and_or)?;
            } else {
                self.run_and_or(&item.and_or, is_last && place + 1 == list.items.len())?;
            }
        }
        Ok(())
    }

    fn run_background(&mut self, and_or: &AndOr) -> Step {
        let is_interactive = self.is_interactive;
        let child = self.fork(|shell| {
            if !is_interactive {
                shell.detach();
            }
            shell.run_and_or(and_or, true)
        })?;
        self.last_background = Some(child);
        self.status = 0;
        Ok(())
    }

    fn run_and_or(&mut self, and_or: &AndOr, is_last: bool) -> Step {
        let count = and_or.rest.len();
        self.condition(count > 0, |shell| {
            shell.run_pipeline(&and_or.first, is_last && count == 0)
        })?;
        for (place, (connective, pipeline)) in and_or.rest.iter().enumerate() {
            if (*connective == Connective::And) != (self.status == 0) {
                continue;
            }
            let is_final = place + 1 == count;
            self.condition(!is_final, |shell| {
                shell.run_pipeline(pipeline, is_last && is_final)
            })?;
        }
        Ok(())
    }

    /// Runs something of which the status is looked at, if that is so, and `-e` has no effect.
    fn condition(&mut self, is_condition: bool, run: impl FnOnce(&mut Self) -> Step) -> Step {
        let before = self.conditions;
        self.conditions += usize::from(is_condition);
        let result = run(self);
        self.conditions = before;
        result
    }

    fn run_pipeline(&mut self, pipeline: &Pipeline, is_last: bool) -> Step {
        let is_negated = pipeline.is_negated;
        match pipeline.commands.as_slice() {
            [command] => {
                self.condition(is_negated, |shell| {
                    shell.run_command(command, is_last && !is_negated)
                })?;
                let is_checked = match command {
                    Command::Simple(_) | Command::Compound(Compound::Subshell(_), _) => true,
                    Command::Compound(..) | Command::Function { .. } => false,
                };
                if is_negated {
                    self.status = i32::from(self.status == 0);
                } else if is_checked {
                    self.check_errexit()?;
                }
                Ok(())
            }
            commands => {
                self.run_piped(commands)?;
                if is_negated {
                    self.status = i32::from(self.status == 0);
                    return Ok(());
                }
                self.check_errexit()
            }
        }
    }

    fn check_errexit(&self) -> Step {
        if self.settings.errexit && self.status != 0 && self.conditions == 0 {
            return Err(Flow::Exit);
        }
        Ok(())
    }

    fn run_piped(&mut self, commands: &[Command]) -> Step {
        let mut children = Vec::new();
        let mut input: Option<PipeReader> = None;
        for (place, command) in commands.iter().enumerate() {
            let is_final = place + 1 == commands.len();
            let ends = (!is_final).then(pipe).transpose();
            let (next_input, output) = match ends {
                Ok(ends) => ends.unzip(),
                Err(error) => return Err(self.abort(format_args!("pipe: {error}"))),
            };
            let child = self.fork(|shell| {
                let connected = [
                    input.as_ref().map(|end| (end.as_raw_fd(), 0)),
                    output.as_ref().map(|end| (end.as_raw_fd(), 1)),
                ];
                for (from, to) in connected.into_iter().flatten() {
                    if let Err(error) = sys::duplicate(from, to) {
                        return Err(shell.abort(format_args!("pipe: {error}")));
                    }
                }
                // The ends have their places now; what stays open would keep the pipe from ending.
                for end in [&input, &next_input].into_iter().flatten() {
                    sys::close(end.as_raw_fd());
                }
                if let Some(end) = &output {
                    sys::close(end.as_raw_fd());
                }
                shell.run_command(command, true)
            })?;
            children.push(child);
            input = next_input;
        }
        drop(input);
        let mut failed = 0;
        for child in children {
            self.status = self.wait_for(child);
            if self.status != 0 {
                failed = self.status;
            }
        }
        if self.settings.pipefail {
            self.status = failed;
        }
        self.interrupted()
    }

    pub(super) fn run_command(&mut self, command: &Command, is_last: bool) -> Step {
        if self.depth >= MAX_DEPTH {
            let message = format!("more than {MAX_DEPTH} commands inside of each other");
            return Err(self.abort(message));
        }
        self.depth += 1;
        let result = match command {
            Command::Simple(simple) => self.run_simple(simple, is_last),
            Command::Function { name, body } => {
                self.functions.insert(name.clone(), Rc::clone(body));
                self.status = 0;
                Ok(())
            }
            Command::Compound(compound, redirects) => {
                self.run_redirected(compound, redirects, is_last)
            }
        };
        self.depth -= 1;
        result
    }

    fn run_redirected(
        &mut self,
        compound: &Compound,
        redirects: &[Redirect],
        is_last: bool,
    ) -> Step {
        if redirects.is_empty() {
            return self.run_compound(compound, is_last);
        }
        match self.redirect(redirects)? {
            Ok(saved) => {
                let result = self.run_compound(compound, false);
                saved.restore();
                result
            }
            Err(message) => {
                self.fail(2, message);
                self.check_errexit()
            }
        }
    }

    fn run_compound(&mut self, compound: &Compound, is_last: bool) -> Step {
        match compound {
            Compound::Group(list) => self.run_list(list, is_last),
            Compound::Subshell(list) => {
                let child = self.fork(|shell| shell.run_list(list, true))?;
                self.status = self.wait_for(child);
                self.interrupted()
            }
            Compound::If {
                branches,
                otherwise,
            } => {
                for (condition, body) in branches {
                    self.condition(true, |shell| shell.run_list(condition, false))?;
                    if self.status == 0 {
                        return self.run_list(body, is_last);
                    }
                }
                self.status = 0;
                match otherwise {
                    Some(list) => self.run_list(list, is_last),
                    None => Ok(()),
                }
            }
            Compound::Loop {
                is_until,
                condition,
                body,
            } => self.in_loop(|shell| shell.run_loop(*is_until, condition, body)),
            Compound::For { name, words, body } => {
                let values = match words {
                    Some(words) => self.expand_fields(words)?,
                    None => self.arguments.clone(),
                };
                self.in_loop(|shell| shell.run_for(name, values, body))
            }
            Compound::Case { subject, branches } => self.run_case(subject, branches),
        }
    }

    fn in_loop(&mut self, run: impl FnOnce(&mut Self) -> Step) -> Step {
        self.loops += 1;
        let result = run(self);
        self.loops -= 1;
        result
    }

    fn run_loop(&mut self, is_until: bool, condition: &List, body: &List) -> Step {
        let mut status = 0;
        loop {
            match self.condition(true, |shell| shell.run_list(condition, false)) {
                Ok(()) if (self.status == 0) == is_until => break,
                Ok(()) => {}
                Err(flow) if leaves(flow)? => break,
                Err(_) => continue,
            }
            let result = self.run_list(body, false);
            status = self.status;
            if let Err(flow) = result
                && leaves(flow)?
            {
                break;
            }
        }
        self.status = status;
        Ok(())
    }

    fn run_for(&mut self, name: &[u8], values: Vec<Vec<u8>>, body: &List) -> Step {
        self.status = 0;
        for value in values {
            self.set_variable(name, value).map_err(|e| self.abort(e))?;
            if let Err(flow) = self.run_list(body, false)
                && leaves(flow)?
            {
                break;
            }
        }
        Ok(())
    }

    fn run_case(&mut self, subject: &Word, branches: &[(Vec<Word>, List)]) -> Step {
        let subject = self.expand_text(subject)?;
        self.status = 0;
        for (patterns, body) in branches {
            for word in patterns {
                let pattern = self.expand_pattern(word)?;
                if pattern::matches(&pattern, &subject) {
                    return self.run_list(body, false);
                }
            }
        }
        Ok(())
    }

    /// Executes something in a child process, which then exits; returns its id.
    pub(super) fn fork(&mut self, run: impl FnOnce(&mut Self) -> Step) -> Result<i32, Flow> {
        match sys::fork() {
            Ok(Forked::Parent { child }) => {
                self.forget_old_jobs();
                self.jobs.insert(child, None);
                Ok(child)
            }
            Ok(Forked::Child) => {
                self.is_interactive = false;
                self.jobs.clear();
                self.reset_traps();
                // A child ends with the status that was set, however it ends.
                let _ = run(self);
                std::process::exit(self.leave());
            }
            Err(error) => Err(self.abort(format_args!("fork: {error}"))),
        }
    }
}

/// Whether a loop ends; an error leaves more than this loop.
fn leaves(flow: Flow) -> Result<bool, Flow> {
    match flow {
        Flow::Break(0 | 1) => Ok(true),
        Flow::Break(count) => Err(Flow::Break(count - 1)),
        Flow::Continue(0 | 1) => Ok(false),
        Flow::Continue(count) => Err(Flow::Continue(count - 1)),
        flow => Err(flow),
    }
}
