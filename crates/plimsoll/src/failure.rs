//! Failures: error messages, hints and exit codes.
//!
//! Errors travel as `anyhow::Error`. [`Advise`] attaches hints and an exit code to one; `main` prints
//! it: `error:`, causes indented, then `hint:`.

use std::error::Error as StdError;
use std::fmt;

use anyhow::{Error, Result};

use crate::exit::Exit;
use crate::logging;

/// An error with hints and an exit code. It displays as the error itself.
#[derive(Debug)]
struct Failure {
    error: Error,
    exit: Option<Exit>,
    hints: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, out)
    }
}

impl StdError for Failure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.error.chain().nth(1)
    }
}

/// Attaches hints and exit codes to errors.
pub(crate) trait Advise {
    /// The same type with an `anyhow::Error`.
    type Advised;

    /// Adds what the user can do.
    fn hint(self, text: impl Into<String>) -> Self::Advised;

    /// Sets the exit code of the process.
    fn exit(self, exit: Exit) -> Self::Advised;
}

impl Advise for Error {
    type Advised = Error;

    fn hint(self, text: impl Into<String>) -> Error {
        let mut failure = as_failure(self);
        failure.hints.push(text.into());
        failure.into()
    }

    fn exit(self, exit: Exit) -> Error {
        let mut failure = as_failure(self);
        failure.exit = Some(exit);
        failure.into()
    }
}

impl<T, E: Into<Error>> Advise for Result<T, E> {
    type Advised = Result<T>;

    fn hint(self, text: impl Into<String>) -> Result<T> {
        self.map_err(|error| error.into().hint(text))
    }

    fn exit(self, exit: Exit) -> Result<T> {
        self.map_err(|error| error.into().exit(exit))
    }
}

/// A usage error that clap cannot detect.
pub(crate) fn usage(message: impl fmt::Display) -> Error {
    anyhow::anyhow!("{message}").exit(Exit::Usage)
}

fn as_failure(error: Error) -> Failure {
    // Only the outermost layer: an inner one belongs to a cause.
    if error.chain().next().is_some_and(|top| top.is::<Failure>()) {
        return error.downcast().unwrap_or_else(Failure::plain);
    }
    Failure::plain(error)
}

impl Failure {
    fn plain(error: Error) -> Failure {
        Failure {
            error,
            exit: None,
            hints: Vec::new(),
        }
    }
}

/// The error and its causes, without hints and exit codes.
pub(crate) fn causes(error: &Error) -> Vec<&(dyn StdError + 'static)> {
    let mut found = Vec::new();
    for cause in error.chain() {
        match cause.downcast_ref::<Failure>() {
            // Its causes are the causes of the error in it.
            Some(failure) => {
                found.extend(causes(&failure.error));
                break;
            }
            None => found.push(cause),
        }
    }
    found
}

fn failures(error: &Error) -> Vec<&Failure> {
    let outermost = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Failure>());
    let Some(failure) = outermost else {
        return Vec::new();
    };
    let mut found = vec![failure];
    found.extend(failures(&failure.error));
    found
}

/// The hints of an error and of all its causes.
fn hints(error: &Error) -> Vec<String> {
    let hints = failures(error)
        .into_iter()
        .flat_map(|failure| &failure.hints);
    hints.cloned().collect()
}

/// The exit code of the error, or of its kind.
pub(crate) fn exit_of(error: &Error) -> Exit {
    let exit = failures(error).into_iter().find_map(|failure| failure.exit);
    exit.unwrap_or_else(|| {
        let causes = causes(error);
        let is_panic = |cause: &&(dyn StdError + 'static)| {
            let joined = cause.downcast_ref::<tokio::task::JoinError>();
            joined.is_some_and(tokio::task::JoinError::is_panic)
        };
        if causes.iter().any(is_panic) {
            Exit::Internal
        } else if causes.iter().any(|cause| is_of_cluster(*cause)) {
            Exit::Cluster
        } else {
            Exit::Failed
        }
    })
}

/// The API client's error, if it is one.
pub(crate) fn kube_error<'a>(cause: &'a (dyn StdError + 'static)) -> Option<&'a kube::Error> {
    let boxed = cause.downcast_ref::<Box<kube::Error>>();
    cause.downcast_ref().or(boxed.map(|boxed| &**boxed))
}

fn is_of_cluster(cause: &(dyn StdError + 'static)) -> bool {
    use kube::Error as Kube;
    let error = kube_error(cause);
    error.is_some_and(|error| {
        matches!(
            error,
            Kube::Api(_) | Kube::Service(_) | Kube::HyperError(_) | Kube::Auth(_)
        )
    })
}

/// Prints an error.
pub(crate) fn report(error: &Error) {
    let errors = error.to_string();
    let errors: Vec<String> = errors.lines().map(str::to_owned).collect();
    let causes = error.chain().skip(1).map(ToString::to_string);
    print(&errors, &causes.collect::<Vec<_>>(), &hints(error));
}

/// Prints errors, one per line, then the causes of the last one and the hints.
pub(crate) fn print(errors: &[String], causes: &[String], hints: &[String]) {
    if logging::is_json() {
        let (errors, causes, hints) = (errors.join("\n"), causes.join(": "), hints.join("\n"));
        tracing::error!(target: logging::STATUS, causes, hints, "{errors}");
        return;
    }
    let mut text = String::new();
    for error in errors {
        text.push_str(&format!("error: {error}\n"));
    }
    for line in causes.iter().flat_map(|cause| cause.lines()) {
        text.push_str(&format!("  {line}\n"));
    }
    for hint in hints {
        text.push_str(&format!("hint: {hint}\n"));
    }
    logging::write(&text);
}

/// Prints an error of the cluster, without the prefix `error:`, as kubectl does.
pub(crate) fn print_refusal(text: &str, hint: &str) {
    match (logging::is_json(), hint) {
        (true, _) => tracing::error!(target: logging::STATUS, hints = hint, "{text}"),
        (false, "") => logging::write(&format!("{text}\n")),
        (false, _) => logging::write(&format!("{text}\nhint: {hint}\n")),
    }
}

/// Prints a warning and a hint.
pub(crate) fn warn(text: &str, hint: &str) {
    match logging::is_json() {
        true => tracing::warn!(target: logging::STATUS, hints = hint, "{text}"),
        false => logging::write(&format!("warning: {text}\nhint: {hint}\n")),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    fn refused() -> kube::Error {
        let status = kube::core::Status::failure("pods \"x\" not found", "NotFound");
        kube::Error::Api(status.boxed())
    }

    #[test]
    fn hints_change_neither_message_nor_causes() {
        let error = anyhow!("inner").context("outer").hint("do this");
        let error = error.hint("or that").exit(Exit::Usage);
        assert_eq!(format!("{error:#}"), "outer: inner");
        assert_eq!(hints(&error), ["do this", "or that"]);
        assert_eq!(exit_of(&error), Exit::Usage);
    }

    #[test]
    fn hints_of_causes_are_kept() {
        let error = anyhow!("inner").hint("do this").exit(Exit::Cluster);
        let error = error.context("outer").hint("and that");
        assert_eq!(format!("{error:#}"), "outer: inner");
        assert_eq!(hints(&error), ["and that", "do this"]);
        assert_eq!(exit_of(&error), Exit::Cluster);
    }

    #[test]
    fn errors_of_the_cluster_exit_with_code_3() {
        assert_eq!(exit_of(&anyhow!("anything")), Exit::Failed);
        assert_eq!(exit_of(&refused().into()), Exit::Cluster);
        let error: Result<()> = Err(refused()).context("cannot ask").hint("ask again");
        assert_eq!(exit_of(&error.unwrap_err()), Exit::Cluster);
        let advised = Error::from(refused()).hint("ask again");
        assert_eq!(exit_of(&advised), Exit::Cluster);
    }
}
