//! The last step of a container's first process: executing its program.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use libcontainer::oci_spec::runtime::Spec;
use libcontainer::workload::{Executor, ExecutorError, ExecutorValidationError};

use super::super::files;
use super::super::layout::ContainerDir;
use super::super::seccomp::Confinement;
use super::confine::confine;
use super::entry::Entry;

/// Becomes the program of a spec, and reports a failure over a pipe.
#[derive(Clone)]
pub(super) struct Program {
    failures: Rc<File>,
    confinement: Rc<Option<Confinement>>,
    /// For commands in a container with users of its own.
    entry: Option<Rc<Entry>>,
}

/// What is read from the other end of the pipe.
#[derive(Debug)]
pub(super) struct Failures(File);

impl Program {
    /// The program of a container, or of a command in one.
    pub(super) fn of(container: &ContainerDir) -> io::Result<(Program, Failures)> {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let program = Program {
            failures: Rc::new(File::from(writer)),
            confinement: Rc::new(files::read_json(&container.confinement())?),
            entry: None,
        };
        Ok((program, Failures(File::from(reader))))
    }
}

impl Program {
    /// Has the program enter a user namespace before it begins.
    pub(super) fn enter(&mut self, entry: Entry) {
        self.entry = Some(Rc::new(entry));
    }

    fn confine(&self) -> io::Result<()> {
        self.confinement.as_ref().as_ref().map_or(Ok(()), confine)
    }
}

impl Failures {
    /// Waits until the program runs; `Some` if it could not. All other copies of the pipe's end
    /// must be closed before.
    pub(super) fn wait(mut self) -> Option<String> {
        let mut message = String::new();
        match self.0.read_to_string(&mut message) {
            Ok(0) => None,
            Ok(_) => Some(message),
            Err(error) => Some(error.to_string()),
        }
    }
}

impl Executor for Program {
    fn exec(&self, spec: &Spec) -> Result<(), ExecutorError> {
        let process = spec.process().as_ref();
        let args = process.and_then(|process| process.args().as_ref());
        let Some((name, rest)) = args.and_then(|args| args.split_first()) else {
            return Err(ExecutorError::InvalidArg);
        };
        let entered = self.entry.as_deref().map_or(Ok(()), Entry::enter);
        let message = match entered.map(|()| self.confine()) {
            Err(error) => format!("enter the container's user namespace: {error}"),
            Ok(Err(error)) => format!("load the system call filter: {error}"),
            Ok(Ok(())) => {
                let error = match find(name, &search_path()) {
                    // The environment is the container's already; this also gives the program the
                    // usual handling of broken pipes, which Rust programs switch off.
                    Ok(path) => Command::new(path).arg0(name).args(rest).exec(),
                    Err(error) => error,
                };
                describe(name, &error)
            }
        };
        let _ = (&*self.failures).write_all(message.as_bytes());
        Err(ExecutorError::Other(message))
    }

    fn validate(&self, spec: &Spec) -> Result<(), ExecutorValidationError> {
        let args = spec
            .process()
            .as_ref()
            .and_then(|process| process.args().as_ref());
        let Some(name) = args.and_then(|args| args.first()) else {
            let message = "no command specified".to_owned();
            return Err(ExecutorValidationError::ArgValidationError(message));
        };
        let env = spec
            .process()
            .as_ref()
            .and_then(|process| process.env().as_ref());
        let path = env
            .into_iter()
            .flatten()
            .find_map(|entry| entry.strip_prefix("PATH="))
            .unwrap_or_default();
        match find(name, path) {
            Ok(_) => Ok(()),
            Err(error) => {
                let message = describe(name, &error);
                Err(ExecutorValidationError::ArgValidationError(message))
            }
        }
    }
}

fn search_path() -> String {
    std::env::var("PATH").unwrap_or_default()
}

/// Looks a program up as a shell does.
fn find(name: &str, search_path: &str) -> io::Result<PathBuf> {
    if name.contains('/') {
        return check(Path::new(name)).map(|()| PathBuf::from(name));
    }
    let mut refused = None;
    for dir in search_path.split(':') {
        let dir = if dir.is_empty() { "." } else { dir };
        let path = Path::new(dir).join(name);
        match check(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refused = Some(error),
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or_else(|| io::Error::from(io::ErrorKind::NotFound)))
}

fn check(path: &Path) -> io::Result<()> {
    let metadata = path.metadata()?;
    if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 {
        return Ok(());
    }
    Err(io::Error::from(io::ErrorKind::PermissionDenied))
}

/// The messages that users know from other runtimes.
fn describe(name: &str, error: &io::Error) -> String {
    let is_path = name.contains('/');
    match error.kind() {
        io::ErrorKind::NotFound if !is_path => {
            format!("exec: {name:?}: executable file not found in $PATH")
        }
        io::ErrorKind::NotFound => {
            format!("exec: {name:?}: stat {name}: no such file or directory")
        }
        io::ErrorKind::PermissionDenied => format!("exec: {name:?}: permission denied"),
        _ => match error.raw_os_error() {
            Some(libc::ENOEXEC) => format!("exec: {name:?}: exec format error"),
            _ => format!("exec: {name:?}: {error}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_up_along_the_search_path() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("first"), dir.path().join("second"));
        for (dir, mode) in [(&first, 0o644), (&second, 0o755)] {
            std::fs::create_dir(dir).unwrap();
            std::fs::write(dir.join("tool"), "").unwrap();
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(dir.join("tool"), mode).unwrap();
        }
        let path = format!("{}:{}", first.display(), second.display());
        assert_eq!(find("tool", &path).unwrap(), second.join("tool"));
        let refused = find("tool", &first.display().to_string()).unwrap_err();
        assert_eq!(
            describe("tool", &refused),
            "exec: \"tool\": permission denied"
        );
        let missing = find("no-such", &path).unwrap_err();
        assert_eq!(
            describe("no-such", &missing),
            "exec: \"no-such\": executable file not found in $PATH"
        );
        let missing = find("/no/such", &path).unwrap_err();
        assert_eq!(
            describe("/no/such", &missing),
            "exec: \"/no/such\": stat /no/such: no such file or directory"
        );
    }
}
