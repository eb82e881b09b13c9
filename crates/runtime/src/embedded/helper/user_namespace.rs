//! Namespaces in which root is an ordinary user of the machine.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use libcontainer::namespaces::Namespaces;
use libcontainer::oci_spec::runtime::{LinuxNamespaceBuilder, LinuxNamespaceType};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, set_parent_process_death_signal, waitpid,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::super::users::Users;
use super::fork::fork;

/// Creates a namespace with these users. Only a process outside of it may write its id maps, so a
/// child creates it, waits for that, and exits.
pub(super) fn make(users: Users) -> io::Result<File> {
    let (mut made, mut announce) = pipe_with(PipeFlags::CLOEXEC)
        .map(|(reader, writer)| (File::from(reader), File::from(writer)))?;
    let child = fork(|| match unshare() {
        Ok(()) => {
            let _ = announce.write_all(b"+");
            loop {
                rustix::event::pause();
            }
        }
        Err(error) => {
            let _ = write!(announce, "{error}");
            1
        }
    })?;
    drop(announce);
    let done = (|| {
        let mut reply = [0; 256];
        let length = made.read(&mut reply)?;
        if reply[..length] != *b"+" {
            let reply = String::from_utf8_lossy(&reply[..length]);
            return Err(io::Error::other(reply.into_owned()));
        }
        let map = format!("0 {} {}", users.first, users.count);
        fs::write(format!("/proc/{child}/uid_map"), &map)?;
        fs::write(format!("/proc/{child}/gid_map"), &map)?;
        File::open(format!("/proc/{child}/ns/user"))
    })();
    if let Some(child) = Pid::from_raw(child) {
        let _ = kill_process(child, Signal::KILL);
        let _ = waitpid(Some(child), WaitOptions::empty());
    }
    done
}

fn unshare() -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let none = Vec::new();
    let enter = Namespaces::try_from(Some(&none)).map_err(io::Error::other)?;
    let namespace = LinuxNamespaceBuilder::default()
        .typ(LinuxNamespaceType::User)
        .build()
        .map_err(io::Error::other)?;
    enter.unshare_or_setns(&namespace).map_err(io::Error::other)
}

/// Enters a namespace with all rights in it. The process has the overflow id there until it sets
/// one.
pub(super) fn enter(namespace: &File) -> io::Result<()> {
    let kind = Some(LinkNameSpaceType::User);
    Ok(move_into_link_name_space(namespace.as_fd(), kind)?)
}
