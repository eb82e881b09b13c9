//! Forking and signals, which no safe crate offers.

use std::io;

use rustix::process::{Pid, WaitOptions, waitpid};

/// Runs a function in a new process and returns that process's number.
///
/// Must be called in a process of one thread only: in any other, locks held by threads that do not
/// exist in the child would never be released there.
#[expect(unsafe_code, reason = "no safe crate wraps fork")]
pub(super) fn fork(child: impl FnOnce() -> i32) -> io::Result<i32> {
    // SAFETY: the helper process has one thread only (it never starts another), so that the child
    // may do all that the parent could.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => std::process::exit(child()),
        pid => Ok(pid),
    }
}

/// Does something in a process of its own, for steps there is no way back from.
pub(super) fn in_child(work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let child = fork(|| match work() {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(1),
    })?;
    let child = Pid::from_raw(child).ok_or(io::ErrorKind::NotFound)?;
    let status = waitpid(Some(child), WaitOptions::empty())?;
    match status.and_then(|(_, status)| status.exit_status()) {
        Some(0) => Ok(()),
        Some(number) => Err(io::Error::from_raw_os_error(number)),
        None => Err(io::Error::other("it was killed")),
    }
}

/// What happens to children that end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Children {
    /// They vanish.
    Forgotten,
    /// They stay until they are waited for.
    Kept,
}

/// Chooses what happens to children that end.
#[expect(unsafe_code, reason = "no safe crate wraps signal")]
pub(super) fn set_children(children: Children) {
    let action = match children {
        Children::Forgotten => libc::SIG_IGN,
        Children::Kept => libc::SIG_DFL,
    };
    // SAFETY: both are dispositions of the kernel's own, no handler of ours runs.
    unsafe {
        libc::signal(libc::SIGCHLD, action);
    }
}
