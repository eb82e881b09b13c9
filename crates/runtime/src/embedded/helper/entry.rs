//! Moves a command into a container's user namespace, which libcontainer does not.
//!
//! libcontainer brings the command's process into all other namespaces of the container, as root of
//! the machine. Until it has become an ordinary user here it must not do anything that the container
//! could make use of: it looks at nothing of the container's but its terminal, and nothing in the
//! container can look into it, because it is of the machine's users and cannot be dumped.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use libcontainer::capabilities::drop_privileges;
use libcontainer::oci_spec::runtime::{
    Capability, LinuxCapabilities, LinuxCapabilitiesBuilder, Process, User, UserBuilder,
};
use libcontainer::syscall::syscall::create_syscall;
use rustix::fs::{FileType, fchown, fstat};
use rustix::process::chdir;
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::isatty;
use rustix::thread::{Gid, Uid, set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::super::stage::Stage;
use super::user_namespace;

/// The last steps of a command's process before it becomes the command.
#[derive(Debug)]
pub(super) struct Entry {
    namespace: File,
    /// Of its streams, on the machine.
    owner: (Uid, Gid),
    user: User,
    capabilities: Option<LinuxCapabilities>,
    cwd: PathBuf,
}

impl Entry {
    /// Takes out of a process what is to be done here, and leaves what libcontainer does before.
    pub(super) fn take(stage: &Stage, process: &mut Process) -> io::Result<Entry> {
        let entry = Entry {
            namespace: File::open(&stage.user_namespace)?,
            owner: (Uid::from_raw(stage.user), Gid::from_raw(stage.group)),
            user: process.user().clone(),
            capabilities: process.capabilities().clone(),
            cwd: process.cwd().clone(),
        };
        let root = UserBuilder::default().uid(0_u32).gid(0_u32).build();
        process.set_user(root.map_err(io::Error::other)?);
        process.set_capabilities(Some(for_entering().map_err(io::Error::other)?));
        process.set_cwd(PathBuf::from("/"));
        Ok(entry)
    }

    /// Becomes the user that the command runs as.
    pub(super) fn enter(&self) -> io::Result<()> {
        self.give_streams()?;
        user_namespace::enter(&self.namespace)?;
        let groups = self.user.additional_gids().clone().unwrap_or_default();
        let groups: Vec<Gid> = groups.into_iter().map(Gid::from_raw).collect();
        set_thread_groups(&groups)?;
        let gid = Gid::from_raw(self.user.gid());
        set_thread_res_gid(gid, gid, gid)?;
        let uid = Uid::from_raw(self.user.uid());
        set_thread_res_uid(uid, uid, uid)?;
        chdir(&self.cwd)?;
        match &self.capabilities {
            Some(kept) => {
                drop_privileges(kept, create_syscall().as_ref()).map_err(io::Error::other)
            }
            None => Ok(()),
        }
    }

    /// Lets the command open its pipes and its terminal by name.
    fn give_streams(&self) -> io::Result<()> {
        let (uid, gid) = self.owner;
        for stream in [stdin(), stdout(), stderr()] {
            let kind = FileType::from_raw_mode(fstat(stream)?.st_mode);
            if kind == FileType::Fifo {
                fchown(stream.as_fd(), Some(uid), Some(gid))?;
            } else if isatty(stream) {
                // Its group is that of terminals.
                fchown(stream.as_fd(), Some(uid), None)?;
            }
        }
        Ok(())
    }
}

/// What it takes: to enter a namespace and to give streams away.
fn for_entering() -> Result<LinuxCapabilities, libcontainer::oci_spec::OciSpecError> {
    let set = || {
        [Capability::SysAdmin, Capability::Chown]
            .into_iter()
            .collect()
    };
    let none = || std::iter::empty().collect();
    LinuxCapabilitiesBuilder::default()
        .bounding::<std::collections::HashSet<Capability>>(set())
        .effective::<std::collections::HashSet<Capability>>(set())
        .permitted::<std::collections::HashSet<Capability>>(set())
        .inheritable::<std::collections::HashSet<Capability>>(none())
        .ambient::<std::collections::HashSet<Capability>>(none())
        .build()
}
