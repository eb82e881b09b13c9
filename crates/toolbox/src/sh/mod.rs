//! `sh`: the part of POSIX' shell that manifests, hooks, probes and interactive use need.
//!
//! Reading order: `ast` is what a script is; `lexer`, `substitution` and `parser` read it; `pattern`,
//! `fields`, `arithmetic`, `glob` and `variables` know nothing of a shell; `shell` is the state;
//! `expand`, `exec`, `simple`, `redirect`, `jobs` and `traps` execute; `builtins`, `declare` and
//! `read` are the commands in the shell itself.
//!
//! Not there: aliases, history, job control (`fg`, `bg`), `ulimit`, arrays and the other extensions
//! of bash. The shell has one thread, so that it may fork.

mod arithmetic;
mod ast;
mod builtins;
mod declare;
mod exec;
mod expand;
mod fields;
mod glob;
mod jobs;
mod lexer;
mod parser;
mod pattern;
mod read;
mod redirect;
mod shell;
mod simple;
mod substitution;
#[cfg(test)]
mod tests;
mod traps;
mod variables;

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;

use crate::options::path;
use crate::outcome::{Failure, Outcome, shown};
use crate::sys;
use parser::{ParseError, Parser};
use shell::{Flow, Shell, Step};

/// The largest script, and the largest command that is read from standard input.
const MAX_SCRIPT: u64 = 16 << 20;

pub(crate) fn run(args: &[Vec<u8>], _: &mut dyn Write) -> Outcome {
    let mut shell = Shell::new(b"sh".to_vec(), Vec::new());
    let mut has_text = false;
    let mut is_interactive = false;
    let mut reads_input = false;
    let count = shell
        .read_settings(args, |letter| {
            match letter {
                b'c' => has_text = true,
                b'i' => is_interactive = true,
                b's' => reads_input = true,
                // A login shell has nothing of its own to read.
                b'l' => {}
                _ => return false,
            }
            true
        })
        .map_err(Failure::Usage)?;
    let mut words = args.get(count..).unwrap_or_default();
    if words.first().is_some_and(|word| word == b"--") {
        words = words.get(1..).unwrap_or_default();
    }
    let flow = if has_text {
        let Some((text, rest)) = words.split_first() else {
            return Err(Failure::usage("-c needs the commands to execute"));
        };
        start(&mut shell, rest);
        shell.install_signals();
        shell.run_script(text)
    } else if let Some(file) = words.first().filter(|_| !reads_input) {
        start(&mut shell, words);
        shell.install_signals();
        match read_script(path(file)) {
            Ok(text) => shell.run_script(&text),
            Err(error) => {
                shell.fail(127, format_args!("{}: {error}", shown(file)));
                Ok(())
            }
        }
    } else {
        shell.arguments = words.to_vec();
        shell.is_interactive =
            is_interactive || io::stdin().is_terminal() && io::stderr().is_terminal();
        shell.install_signals();
        shell.run_input()
    };
    // Whatever ended the script, the status has been set.
    let _ = flow;
    let status = shell.leave();
    Ok(u8::try_from(status & 0xff).unwrap_or(u8::MAX))
}

/// `$0` and the positional parameters.
fn start(shell: &mut Shell, words: &[Vec<u8>]) {
    if let Some((name, arguments)) = words.split_first() {
        shell.name = name.clone();
        shell.arguments = arguments.to_vec();
    }
}

fn read_script(file: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(file)?
        .take(MAX_SCRIPT + 1)
        .read_to_end(&mut text)?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > MAX_SCRIPT {
        let most = MAX_SCRIPT >> 20;
        return Err(io::Error::other(format!(
            "larger than {most} MiB, the most for a script"
        )));
    }
    Ok(text)
}

impl Shell {
    /// Executes a text inside of the shell: `eval`, `.`, a trap.
    fn run_text(&mut self, text: &[u8]) -> Step {
        if self.depth >= exec::MAX_DEPTH {
            return Err(self.abort("too many commands inside of each other"));
        }
        self.depth += 1;
        let result = self.run_lines(text, false);
        self.depth -= 1;
        result
    }

    /// Executes a text after which the process has nothing to do.
    fn run_script(&mut self, text: &[u8]) -> Step {
        self.run_lines(text, true)
    }

    fn run_lines(&mut self, text: &[u8], is_script: bool) -> Step {
        let mut parser = Parser::new(text, true);
        let mut is_empty = true;
        loop {
            match parser.line() {
                Ok(None) => break,
                Ok(Some(list)) => {
                    is_empty = false;
                    let is_last = is_script && parser.is_at_end();
                    if !self.settings.noexec {
                        self.run_list(&list, is_last)?;
                    }
                }
                Err(error) => return Err(self.abort(error)),
            }
        }
        if is_empty {
            self.status = 0;
        }
        self.run_traps()
    }

    /// Executes what comes from standard input, line by line, so that commands may read the rest.
    fn run_input(&mut self) -> Step {
        let mut text = Vec::new();
        loop {
            let more = self.read_line(&mut text)?;
            let mut parser = Parser::new(&text, !more);
            let parsed = parser.line();
            let result = match parsed {
                Err(ParseError::Incomplete(_)) if more => continue,
                Err(error) => Err(self.abort(error)),
                Ok(Some(list)) if !self.settings.noexec => self.run_list(&list, false),
                Ok(_) => Ok(()),
            };
            text.clear();
            match result {
                Ok(()) => {}
                Err(Flow::Exit) => return Err(Flow::Exit),
                Err(_) if self.is_interactive => self.return_to_prompt(),
                Err(flow) => return Err(flow),
            }
            self.run_traps()?;
            if !more {
                return Ok(());
            }
        }
    }

    /// Forgets what the command that was given up was inside of.
    fn return_to_prompt(&mut self) {
        self.loops = 0;
        self.depth = 0;
        self.conditions = 0;
        self.returnable = 0;
    }

    /// Adds a line to the text; false at the end of the input.
    fn read_line(&mut self, text: &mut Vec<u8>) -> Result<bool, Flow> {
        self.prompt(!text.is_empty());
        loop {
            let mut byte = [0];
            match sys::read(0, &mut byte) {
                Ok(0) => {
                    if self.is_interactive {
                        let _ = sys::write_all(2, b"\n");
                    }
                    return Ok(false);
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    self.interrupted_line(text)?;
                    continue;
                }
                Err(error) => return Err(self.abort(format_args!("standard input: {error}"))),
            }
            text.extend(byte);
            if byte == *b"\n" {
                return Ok(true);
            }
            if u64::try_from(text.len()).unwrap_or(u64::MAX) > MAX_SCRIPT {
                return Err(self.abort("standard input: the command is too long"));
            }
        }
    }

    /// Ctrl-C while a line is typed: begins a new one.
    fn interrupted_line(&mut self, text: &mut Vec<u8>) -> Step {
        let is_trapped = self.traps.get(sys::SIGINT).is_some();
        if self.is_interactive && !is_trapped && sys::first_noted() == Some(sys::SIGINT) {
            sys::take_noted();
            text.clear();
            self.status = 128 + sys::SIGINT;
            let _ = sys::write_all(2, b"\n");
            self.prompt(false);
        }
        self.run_traps()
    }

    fn prompt(&self, is_continued: bool) {
        if !self.is_interactive {
            return;
        }
        let text = if is_continued {
            self.variables.get(b"PS2").unwrap_or(b"> ").to_vec()
        } else {
            match self.variables.get(b"PS1") {
                Some(text) if !text.is_empty() => text.to_vec(),
                _ => {
                    let sign: &[u8] = if sys::effective_user() == 0 {
                        b" # "
                    } else {
                        b" $ "
                    };
                    [builtins::working_directory(self).as_slice(), sign].concat()
                }
            }
        };
        // Without standard error there is no prompt.
        let _ = sys::write_all(2, &text);
    }
}
