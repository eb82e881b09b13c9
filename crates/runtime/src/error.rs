//! What a runtime may fail with.

use std::time::Duration;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why a request to a runtime failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no sandbox, container or image of that name.
    #[error("{what} {id:?} not found")]
    NotFound {
        /// Sandbox, container or image.
        what: &'static str,
        /// The requested name.
        id: String,
    },
    /// The request can never succeed as it is.
    #[error("{0}")]
    Invalid(String),
    /// The verb is not known to the runtime.
    #[error("{verb} is not implemented by the runtime")]
    Unimplemented {
        /// The verb.
        verb: &'static str,
    },
    /// The runtime cannot be reached.
    #[error("cannot reach the runtime at {endpoint}")]
    Unreachable {
        /// Its socket.
        endpoint: String,
        /// Why.
        #[source]
        source: Source,
    },
    /// It took too long.
    #[error("{verb} timed out after {}s", .after.as_secs())]
    TimedOut {
        /// What was being done.
        verb: &'static str,
        /// The time given.
        after: Duration,
    },
    /// The registry of an image is at fault, not the request. CRI identifies the failure by the
    /// first word (v1.36 staging/src/k8s.io/cri-api/pkg/errors/errors.go).
    #[error("RegistryUnavailable")]
    RegistryUnavailable {
        /// Which image and registry, and why.
        #[source]
        source: Source,
    },
    /// It was tried and failed.
    #[error("cannot {doing}")]
    Failed {
        /// What was being done, to which object.
        doing: String,
        /// Why it failed.
        #[source]
        source: Source,
    },
}

impl Error {
    /// A failure while doing something.
    pub fn failed(doing: impl Into<String>, source: impl Into<Source>) -> Error {
        Error::Failed {
            doing: doing.into(),
            source: source.into(),
        }
    }

    /// Whether the sandbox, container or image does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Error::NotFound { .. })
    }

    /// The message with all its causes, as statuses and events show it.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}
