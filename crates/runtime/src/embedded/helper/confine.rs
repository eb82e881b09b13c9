//! The privileges that a process drops right before it executes a container's program.

use std::io;

use libcontainer::capabilities::drop_privileges;
use libcontainer::syscall::syscall::create_syscall;

use super::super::seccomp::{Confinement, Filter};

/// Loads the filter, and drops what it took to do so. There is no way back from either.
pub(super) fn confine(confinement: &Confinement) -> io::Result<()> {
    load(&confinement.filter)?;
    match &confinement.capabilities {
        Some(kept) => drop_privileges(kept, create_syscall().as_ref()).map_err(io::Error::other),
        None => Ok(()),
    }
}

#[expect(unsafe_code, reason = "no safe crate loads a filter as it is")]
fn load(filter: &Filter) -> io::Result<()> {
    let mut steps: Vec<libc::sock_filter> = filter
        .program
        .iter()
        .map(|step| libc::sock_filter {
            code: step.0,
            jt: step.1,
            jf: step.2,
            k: step.3,
        })
        .collect();
    let program = libc::sock_fprog {
        len: u16::try_from(steps.len()).map_err(io::Error::other)?,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: the program and its steps outlive the call, and the kernel copies and checks them.
    let loaded = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            filter.flags,
            &raw const program,
        )
    };
    match loaded {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
