//! The process that holds the namespaces of a sandbox.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use libcontainer::namespaces::Namespaces;
use libcontainer::oci_spec::runtime::{LinuxNamespace, LinuxNamespaceBuilder, LinuxNamespaceType};
use rustix::process::{chdir, chroot};
use rustix::system::sethostname;
use rustix::thread::{Gid, Uid, set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::super::files::{self, Durability};
use super::super::job::{PauseJob, Reply};
use super::super::layout::SandboxDir;
use super::super::process_id::ProcessId;
use super::fork::{Children, fork, in_child, set_children};
use super::{Control, Lock, protect_from_oom, user_namespace};

/// The unprivileged user that the process becomes once all is set up; as that of the pause image.
const PAUSE_USER: u32 = 65535;

/// Creates the namespaces, reports it and stays until it is killed.
pub(super) fn run(job: &PauseJob, control: &mut Control, mut lock: Lock) -> Result<(), String> {
    let _ = rustix::thread::set_name(c"pause");
    let pid = rustix::process::getpid().as_raw_pid();
    protect_from_oom();
    if let Some(users) = job.users {
        // Before all others, which then belong to it. The process itself stays the machine's root for
        // a while, without power over the machine: it may still write the sandbox's kernel parameters.
        user_namespace::make(users)
            .and_then(|namespace| user_namespace::enter(&namespace))
            .map_err(|error| format!("create a user namespace: {error}"))?;
    }
    let wanted = [
        (job.network, LinuxNamespaceType::Network),
        (job.ipc, LinuxNamespaceType::Ipc),
        (job.uts, LinuxNamespaceType::Uts),
    ];
    let wanted = wanted.into_iter().filter(|(is_wanted, _)| *is_wanted);
    make_namespaces(&wanted.map(|(_, kind)| kind).collect::<Vec<_>>())?;
    if job.uts && !job.hostname.is_empty() {
        let set = sethostname(job.hostname.as_bytes());
        set.map_err(|error| format!("set the host name {:?}: {error}", job.hostname))?;
    }
    for (name, value) in &job.sysctls {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        let set = match fs::write(&path, value) {
            // Newer kernels leave some of them to root of the sandbox.
            Err(error) if error.kind() == ErrorKind::PermissionDenied && job.users.is_some() => {
                in_child(|| {
                    become_user(0)?;
                    fs::write(&path, value)
                })
            }
            set => set,
        };
        set.map_err(|error| format!("set sysctl {name}={value}: {error}"))?;
    }
    if job.pid {
        // A new namespace of processes begins with the next one.
        make_namespaces(&[LinuxNamespaceType::Pid])?;
        let child = fork(|| {
            control.close();
            lock.release();
            stay(job)
        });
        let child = child.map_err(|error| format!("fork: {error}"))?;
        return announce(job, child, control, lock);
    }
    announce(job, pid, control, lock)?;
    std::process::exit(stay(job));
}

fn make_namespaces(kinds: &[LinuxNamespaceType]) -> Result<(), String> {
    let none = Vec::new();
    let enter = Namespaces::try_from(Some(&none)).map_err(|error| error.to_string())?;
    for kind in kinds {
        let namespace: LinuxNamespace = LinuxNamespaceBuilder::default()
            .typ(*kind)
            .build()
            .map_err(|error| error.to_string())?;
        enter
            .unshare_or_setns(&namespace)
            .map_err(|error| format!("create a {kind} namespace: {error}"))?;
    }
    Ok(())
}

/// Writes the record of the process and reports it to the agent.
fn announce(job: &PauseJob, pid: i32, control: &mut Control, mut lock: Lock) -> Result<(), String> {
    let id = ProcessId::of(pid).map_err(|error| format!("look up process {pid}: {error}"))?;
    let path = SandboxDir::new(&job.dir).pause();
    files::write_json(&path, &id, Durability::Process)
        .map_err(|error| format!("write {}: {error}", path.display()))?;
    lock.release();
    control.send(&Reply::Started { pid });
    control.close();
    Ok(())
}

/// Gives up all rights and waits for the end; as the first process of a namespace, also buries the
/// dead.
fn stay(job: &PauseJob) -> i32 {
    set_children(Children::Forgotten);
    if give_up_rights(&job.dir).is_err() {
        return 1;
    }
    loop {
        rustix::event::pause();
    }
}

/// Containers that share the sandbox's processes must not reach the machine through this one.
fn give_up_rights(dir: &Path) -> rustix::io::Result<()> {
    chroot(SandboxDir::new(dir).empty())?;
    chdir("/")?;
    become_user(PAUSE_USER)
}

/// Takes a user's and a group's id, and no other groups.
fn become_user(id: u32) -> rustix::io::Result<()> {
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)
}
