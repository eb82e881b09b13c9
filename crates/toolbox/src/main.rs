//! The programs of Plimsoll's built-in image `plimsoll.dev/demo`: one static executable which acts as
//! the applet that it is called as, or that its first argument names.
//!
//! `plimsoll-toolbox --list` prints the names of all applets, one per line, which is `APPLETS`. The
//! image holds the program as `/bin/plimsoll-toolbox`, a link to it in `/bin` for each of them, and
//! what they expect of a root: `/tmp` with mode 1777, `/etc/passwd` and `/etc/group` with `root` and
//! `nobody`. The program needs nothing else: it asks name servers itself, and loads no library.
//!
//! The build script of the crate `plimsoll` compiles it with plain rustc and no dependency, so that
//! the image needs neither a package nor a registry.
//!
//! Reading order: `sys` (system calls), `outcome`, `options`, then `applets`, `sh` and `table`.

mod applets;
mod character_class;
mod escapes;
mod numbers;
mod options;
mod outcome;
mod sh;
mod signals;
mod sys;
mod table;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;

use outcome::{Failure, Outcome, shown, warn};
use sys::Disposition;
use table::{APPLETS, Applet};

const PROGRAM: &str = "plimsoll-toolbox";

fn main() -> ExitCode {
    let words: Vec<Vec<u8>> = std::env::args_os().map(OsStringExt::into_vec).collect();
    // The standard library ignores it, which commands would inherit: `yes | head` would not end.
    let _ = sys::set_disposition(sys::SIGPIPE, Disposition::Default);
    match find(&words) {
        Some((applet, args)) => run(applet, args),
        None => list(words.get(1..).unwrap_or_default()),
    }
}

/// The applet that the program is called as, or that the first argument names.
fn find(words: &[Vec<u8>]) -> Option<(&'static Applet, &[Vec<u8>])> {
    let (first, rest) = words.split_first()?;
    let name = first.rsplit(|byte| *byte == b'/').next()?;
    // A login shell is called as `-sh`.
    let name = name.strip_prefix(b"-").unwrap_or(name);
    if let Some(applet) = table::find(name) {
        return Some((applet, rest));
    }
    let (second, rest) = rest.split_first()?;
    Some((table::find(second)?, rest))
}

fn run(applet: &Applet, args: &[Vec<u8>]) -> ExitCode {
    if std::process::id() == 1 {
        act_as_first_process(applet);
    }
    let outcome = stdout().and_then(|mut output| {
        if asks_for_help(applet, args) {
            writeln!(output, "Usage: {}\n{}", applet.usage, applet.purpose)?;
            output.flush()?;
            return Ok(0);
        }
        let outcome = (applet.run)(args, &mut output);
        output.flush()?;
        outcome
    });
    match outcome {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            let is_usage = matches!(failure, Failure::Usage(_));
            let (status, message) = failure.parts();
            warn(applet.name, message);
            if is_usage {
                warn(applet.name, format_args!("usage: {}", applet.usage));
            }
            ExitCode::from(status)
        }
    }
}

/// Standard output in large pieces. Applets flush what has to be seen at once.
fn stdout() -> Result<BufWriter<File>, Failure> {
    let descriptor = io::stdout().as_fd().try_clone_to_owned()?;
    Ok(BufWriter::with_capacity(1 << 16, File::from(descriptor)))
}

/// `--help` as the only argument. What `echo`, `test` and the like get is text.
fn asks_for_help(applet: &Applet, args: &[Vec<u8>]) -> bool {
    let takes_text = matches!(
        applet.name,
        "[" | "echo" | "false" | "printf" | "test" | "true" | "yes"
    );
    matches!(args, [only] if only == b"--help") && !takes_text
}

/// The kernel spares process 1 of a container signals that it has no handler for, and leaves it the
/// orphans. The shell does both for itself; `env` becomes another program.
fn act_as_first_process(applet: &Applet) {
    for signal in signals::ENDING {
        let _ = sys::set_disposition(signal, Disposition::Exit);
    }
    if !matches!(applet.name, "sh" | "env") {
        let _ = sys::set_disposition(sys::SIGCHLD, Disposition::Ignore);
    }
}

/// Called as itself: `--list`, or an explanation.
fn list(args: &[Vec<u8>]) -> ExitCode {
    let print = || -> Outcome {
        let mut output = stdout()?;
        match args {
            [only] if only == b"--list" => {
                for applet in APPLETS {
                    writeln!(output, "{}", applet.name)?;
                }
            }
            [only] if only == b"--help" => {
                writeln!(
                    output,
                    "Usage: {PROGRAM} APPLET [ARGUMENT…]\n       {PROGRAM} --list\n"
                )?;
                for applet in APPLETS {
                    writeln!(output, "{:<10} {}", applet.name, applet.purpose)?;
                }
            }
            [] => return Err(Failure::usage("name an applet, or --list")),
            [first, ..] => {
                let first = shown(first);
                return Err(Failure::usage(format!(
                    "{first}: no such applet; see --list"
                )));
            }
        }
        output.flush()?;
        Ok(0)
    };
    match print() {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            let (status, message) = failure.parts();
            warn(PROGRAM, message);
            ExitCode::from(status)
        }
    }
}
