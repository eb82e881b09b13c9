//! Receives terminals from libcontainer.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::termios::{Winsize, tcsetwinsize};

use super::super::layout::short_socket_path;
use super::super::transport;

/// A socket to which the first process of a container sends its terminal.
#[derive(Debug)]
pub(super) struct ConsoleSocket {
    path: PathBuf,
    listener: UnixListener,
}

impl ConsoleSocket {
    pub(super) fn bind(path: &Path) -> io::Result<ConsoleSocket> {
        let (_dir, short) = short_socket_path(path)?;
        let listener = UnixListener::bind(short)?;
        Ok(ConsoleSocket {
            path: path.to_owned(),
            listener,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The terminal, once the process was made.
    pub(super) fn receive(self) -> io::Result<OwnedFd> {
        let (socket, _) = self.listener.accept()?;
        let message = transport::receive(&socket)?;
        let files = message.map(|(_, files)| files).unwrap_or_default();
        files
            .into_iter()
            .next()
            .ok_or_else(|| io::Error::other("no terminal was sent"))
    }
}

impl Drop for ConsoleSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Sets the size of a terminal.
pub(super) fn resize(terminal: impl AsFd, width: u16, height: u16) {
    let size = Winsize {
        ws_row: height,
        ws_col: width,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let _ = tcsetwinsize(terminal, size);
}
