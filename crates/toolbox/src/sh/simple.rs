//! Executes simple commands: assignments, builtins, functions, programs.

use std::ffi::{CString, OsStr};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::rc::Rc;

use super::ast::{Command, Simple, Word};
use super::builtins::{self, Builtin};
use super::shell::{Flow, Shell, Step};
use super::variables::Hidden;
use crate::outcome::shown;
use crate::sys;

/// Where commands are looked for if PATH is not set: what container runtimes set.
const DEFAULT_PATH: &[u8] = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The program itself, which interprets scripts that name no interpreter.
const SELF: &str = "/proc/self/exe";

/// A variable and the value that it gets.
type Assignment = (Vec<u8>, Vec<u8>);

impl Shell {
    pub(super) fn run_simple(&mut self, simple: &Simple, is_last: bool) -> Step {
        self.substitution_status = None;
        let fields = self.expand_fields(&simple.words)?;
        let mut assignments = Vec::new();
        for (name, word) in &simple.assignments {
            if fields.is_empty() {
                // One after the other: a later value may use an earlier variable.
                self.assign(name, word)?;
            } else {
                assignments.push((name.clone(), self.expand_text(word)?));
            }
        }
        self.trace(&assignments, &fields);
        let Some(name) = fields.first() else {
            return self.run_without_command(simple);
        };
        let function = self.functions.get(name).cloned();
        let builtin = match &function {
            // A special builtin goes before a function of its name.
            Some(_) => builtins::find(name).filter(|builtin| builtin.is_special),
            None => builtins::find(name),
        };
        if builtin.is_none() && function.is_none() {
            return self.run_program(simple, &fields, assignments, is_last);
        }
        if builtin.is_some_and(|builtin| builtin.name == "exec") {
            return self.run_exec(simple, &fields, assignments);
        }
        let saved = match self.redirect(&simple.redirects)? {
            Ok(saved) => saved,
            Err(message) => {
                self.fail(2, message);
                let is_special = builtin.is_some_and(|builtin| builtin.is_special);
                return if is_special { Err(Flow::Abort) } else { Ok(()) };
            }
        };
        let result = match (builtin, function) {
            (Some(builtin), _) => self.run_builtin(builtin, &fields, assignments),
            (None, Some(body)) => self.run_function(&body, fields, assignments),
            (None, None) => Ok(()),
        };
        saved.restore();
        result
    }

    fn assign(&mut self, name: &[u8], word: &Word) -> Step {
        let value = self.expand_text(word)?;
        if self.settings.xtrace {
            self.trace(&[(name.to_vec(), value.clone())], &[]);
        }
        self.set_variable(name, value).map_err(|e| self.abort(e))
    }

    fn run_without_command(&mut self, simple: &Simple) -> Step {
        self.status = self.substitution_status.unwrap_or(0);
        match self.redirect(&simple.redirects)? {
            Ok(saved) => saved.restore(),
            Err(message) => self.fail(2, message),
        }
        Ok(())
    }

    fn trace(&mut self, assignments: &[Assignment], fields: &[Vec<u8>]) {
        if !self.settings.xtrace || assignments.is_empty() && fields.is_empty() {
            return;
        }
        let mut line = self.variables.get(b"PS4").unwrap_or(b"+ ").to_vec();
        let assignments = assignments.iter();
        let assigned = assignments.map(|(name, value)| [name, b"=".as_slice(), value].concat());
        let words: Vec<Vec<u8>> = assigned.chain(fields.iter().cloned()).collect();
        line.extend(words.join(&b' '));
        line.push(b'\n');
        // Without standard error there is no trace.
        let _ = sys::write_all(2, &line);
    }

    /// Assignments before a special builtin stay; before another one they hold while it runs.
    fn run_builtin(
        &mut self,
        builtin: &Builtin,
        fields: &[Vec<u8>],
        assignments: Vec<Assignment>,
    ) -> Step {
        let before = self.hide(assignments)?;
        self.status_before = self.status;
        self.status = 0;
        let result = (builtin.run)(self, fields);
        if !builtin.is_special {
            self.reveal(before);
        }
        result
    }

    fn hide(&mut self, assignments: Vec<Assignment>) -> Result<Vec<Hidden>, Flow> {
        let mut before = Vec::new();
        for (name, value) in assignments {
            before.push((name.clone(), self.variables.variable(&name).cloned()));
            self.set_variable(&name, value).map_err(|e| self.abort(e))?;
        }
        Ok(before)
    }

    fn reveal(&mut self, before: Vec<Hidden>) {
        for (name, variable) in before.into_iter().rev() {
            self.variables.restore(name, variable);
        }
    }

    fn run_function(
        &mut self,
        body: &Rc<Command>,
        fields: Vec<Vec<u8>>,
        assignments: Vec<Assignment>,
    ) -> Step {
        let before = self.hide(assignments)?;
        for (name, _) in &before {
            self.variables
                .mark(name, |variable| variable.is_exported = true);
        }
        let arguments = fields.into_iter().skip(1).collect();
        let arguments = std::mem::replace(&mut self.arguments, arguments);
        let loops = std::mem::take(&mut self.loops);
        self.locals.push(Vec::new());
        self.returnable += 1;
        let result = self.run_command(body, false);
        self.returnable -= 1;
        if let Some(locals) = self.locals.pop() {
            self.reveal(locals);
        }
        self.loops = loops;
        self.arguments = arguments;
        self.reveal(before);
        match result {
            Err(Flow::Return) => Ok(()),
            result => result,
        }
    }

    fn run_program(
        &mut self,
        simple: &Simple,
        fields: &[Vec<u8>],
        assignments: Vec<Assignment>,
        is_last: bool,
    ) -> Step {
        // A trap has to be executed by this process, and process 1 has to reap its children.
        if is_last && !self.traps.has_commands() && self.jobs.is_empty() {
            return self.become_program(simple, fields, assignments);
        }
        let child = self.fork(|shell| shell.become_program(simple, fields, assignments))?;
        self.status = self.wait_for(child);
        self.interrupted()
    }

    fn become_program(
        &mut self,
        simple: &Simple,
        fields: &[Vec<u8>],
        assignments: Vec<Assignment>,
    ) -> Step {
        match self.redirect(&simple.redirects)? {
            Ok(saved) => saved.keep(),
            Err(message) => {
                self.fail(2, message);
                return Err(Flow::Exit);
            }
        }
        self.replace(fields, assignments)
    }

    /// `exec`: with words, executes that program; without, keeps the redirects.
    fn run_exec(
        &mut self,
        simple: &Simple,
        fields: &[Vec<u8>],
        assignments: Vec<Assignment>,
    ) -> Step {
        match self.redirect(&simple.redirects)? {
            Ok(saved) => saved.keep(),
            Err(message) => return Err(self.abort(message)),
        }
        let mut words = fields.get(1..).unwrap_or_default();
        if words.first().is_some_and(|word| word == b"--") {
            words = words.get(1..).unwrap_or_default();
        }
        if words.is_empty() {
            self.hide(assignments)?;
            self.status = 0;
            return Ok(());
        }
        self.replace(words, assignments)
    }

    /// Becomes a program. Returns only if that fails, with status 126 or 127.
    pub(super) fn replace(&mut self, words: &[Vec<u8>], assignments: Vec<Assignment>) -> Step {
        let name = words.first().cloned().unwrap_or_default();
        for (name, value) in assignments {
            self.set_variable(&name, value).map_err(|e| self.abort(e))?;
            self.variables
                .mark(&name, |variable| variable.is_exported = true);
        }
        let error = match self.find_program(&name) {
            Some(path) => self.execute(&path, words),
            None => io::Error::from(ErrorKind::NotFound),
        };
        let name = shown(&name);
        match error.kind() {
            ErrorKind::NotFound if name.contains('/') => {
                self.fail(127, format_args!("{name}: {error}"))
            }
            ErrorKind::NotFound => self.fail(127, format_args!("{name}: not found in PATH")),
            _ => self.fail(126, format_args!("{name}: {error}")),
        }
        Err(Flow::Exit)
    }

    fn execute(&self, path: &[u8], words: &[Vec<u8>]) -> io::Error {
        /// The kernel's error for a file that is no program and names no interpreter.
        const ENOEXEC: i32 = 8;
        let strings = |list: Vec<Vec<u8>>| -> io::Result<Vec<CString>> {
            list.into_iter()
                .map(|text| Ok(CString::new(text)?))
                .collect()
        };
        let run = |path: &[u8], words: &[Vec<u8>]| -> io::Result<io::Error> {
            let env = strings(self.variables.environment())?;
            Ok(sys::exec(
                &CString::new(path)?,
                &strings(words.to_vec())?,
                &env,
            ))
        };
        let result = run(path, words).unwrap_or_else(|error| error);
        if result.raw_os_error() != Some(ENOEXEC) {
            return result;
        }
        let mut script = vec![b"sh".to_vec(), path.to_vec()];
        script.extend(words.iter().skip(1).cloned());
        run(SELF.as_bytes(), &script).unwrap_or_else(|error| error)
    }

    /// The file that a command's name stands for.
    pub(super) fn find_program(&self, name: &[u8]) -> Option<Vec<u8>> {
        if name.contains(&b'/') {
            return Some(name.to_vec());
        }
        let path = self.variables.get(b"PATH").unwrap_or(DEFAULT_PATH);
        let mut unusable = None;
        for directory in path.split(|byte| *byte == b':') {
            let file = if directory.is_empty() {
                [b"./", name].concat()
            } else {
                [directory, b"/", name].concat()
            };
            match fs::metadata(OsStr::from_bytes(&file)) {
                Ok(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 => {
                    return Some(file);
                }
                Ok(found) if found.is_file() => unusable = unusable.or(Some(file)),
                _ => {}
            }
        }
        unusable
    }
}
