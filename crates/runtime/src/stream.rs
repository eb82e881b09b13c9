//! Live connections to processes and ports.

use std::fmt;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::Error;

/// Bytes out of a process.
pub type Output = Box<dyn AsyncRead + Send + Unpin>;
/// Bytes into a process.
pub type Input = Box<dyn AsyncWrite + Send + Unpin>;

/// Columns and rows of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

/// Where the streams of a process are served.
#[derive(Debug)]
pub enum Session {
    /// The runtime serves them at this address; a client's request is passed on there.
    Elsewhere(String),
    /// The runtime hands them over.
    Here(Box<ProcessStreams>),
}

/// The streams of one process. Dropping them ends the session: an exec'ed process is killed, an
/// attached one keeps running.
pub struct ProcessStreams {
    /// Its standard input, if requested. Shutting it down is end of file for the process.
    pub stdin: Option<Input>,
    /// Its standard output, if requested; with a terminal, all output.
    pub stdout: Option<Output>,
    /// Its standard error, if requested and there is no terminal.
    pub stderr: Option<Output>,
    /// Where changes of the terminal's size go, if there is one.
    pub resize: Option<mpsc::Sender<TerminalSize>>,
    /// Its exit code, once it has ended. Attaching ends with 0 when the streams do.
    pub exit: BoxFuture<'static, Result<i32, Error>>,
}

impl fmt::Debug for ProcessStreams {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ProcessStreams")
            .field("stdin", &self.stdin.is_some())
            .field("stdout", &self.stdout.is_some())
            .field("stderr", &self.stderr.is_some())
            .field("resize", &self.resize.is_some())
            .finish_non_exhaustive()
    }
}

/// A connection to a port inside a sandbox.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Connects to a port inside a sandbox.
pub type Dial =
    Box<dyn Fn(u16) -> BoxFuture<'static, Result<Box<dyn Connection>, Error>> + Send + Sync>;

/// How the ports of a sandbox are reached.
pub enum Ports {
    /// The runtime serves them at this address; a client's request is passed on there.
    Elsewhere(String),
    /// The runtime connects.
    Here(Dial),
}

impl fmt::Debug for Ports {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ports::Elsewhere(address) => out.debug_tuple("Elsewhere").field(address).finish(),
            Ports::Here(_) => out.debug_tuple("Here").finish_non_exhaustive(),
        }
    }
}
