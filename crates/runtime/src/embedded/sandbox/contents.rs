//! The contents of a sandbox directory.

use std::ffi::CString;
use std::fs;
use std::io;
use std::path::Path;

use prost::Message;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::super::files::{self, Durability};
use super::super::job::PauseJob;
use super::super::layout::SandboxDir;
use crate::wire::PodSandboxConfig;

/// The configuration of a sandbox, as it was made.
pub(in super::super) fn read_config(dir: &SandboxDir) -> io::Result<PodSandboxConfig> {
    let content = files::read(&dir.config())?.ok_or(io::ErrorKind::NotFound)?;
    PodSandboxConfig::decode(content.as_slice()).map_err(io::Error::other)
}

pub(super) fn hostname(config: &PodSandboxConfig) -> String {
    match config.hostname.as_str() {
        "" => node_name(),
        name => name.to_owned(),
    }
}

/// The machine's own name.
pub(in super::super) fn node_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

pub(super) fn lay_out(
    dir: &SandboxDir,
    config: &PodSandboxConfig,
    job: &PauseJob,
) -> io::Result<()> {
    fs::create_dir_all(dir.path())?;
    fs::create_dir_all(dir.empty())?;
    files::write(&dir.config(), &config.encode_to_vec(), Durability::Process)?;
    let hostname = if job.uts {
        job.hostname.clone()
    } else {
        node_name()
    };
    fs::write(dir.hostname(), format!("{hostname}\n"))?;
    fs::write(
        dir.hosts(),
        files::read(Path::new("/etc/hosts"))?.unwrap_or_default(),
    )?;
    fs::write(dir.resolv_conf(), resolv_conf(config)?)?;
    let root = job.users.map_or(0, |users| users.first);
    if root != 0 {
        for file in [dir.hostname(), dir.hosts(), dir.resolv_conf()] {
            std::os::unix::fs::chown(file, Some(root), Some(root))?;
        }
    }
    if job.ipc {
        fs::create_dir_all(dir.shm())?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        let options = format!("mode=1777,size=65536k,uid={root},gid={root}");
        mount(
            "shm",
            dir.shm(),
            "tmpfs",
            flags,
            CString::new(options)?.as_c_str(),
        )?;
    }
    Ok(())
}

/// Name servers of a sandbox; the machine's if it names none.
fn resolv_conf(config: &PodSandboxConfig) -> io::Result<Vec<u8>> {
    let dns = config.dns_config.clone().unwrap_or_default();
    if dns.servers.is_empty() && dns.searches.is_empty() && dns.options.is_empty() {
        return Ok(files::read(Path::new("/etc/resolv.conf"))?.unwrap_or_default());
    }
    let mut text = String::new();
    if !dns.searches.is_empty() {
        text.push_str(&format!("search {}\n", dns.searches.join(" ")));
    }
    for server in &dns.servers {
        text.push_str(&format!("nameserver {server}\n"));
    }
    if !dns.options.is_empty() {
        text.push_str(&format!("options {}\n", dns.options.join(" ")));
    }
    Ok(text.into_bytes())
}

pub(super) fn unmount_shm(dir: &SandboxDir) -> io::Result<()> {
    match unmount(dir.shm(), UnmountFlags::DETACH) {
        // Not mounted, or not there.
        Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::DnsConfig;

    #[test]
    fn name_servers_are_written_as_the_resolver_reads_them() {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let config = PodSandboxConfig {
            dns_config: Some(DnsConfig {
                servers: owned(&["10.0.0.10", "10.0.0.11"]),
                searches: owned(&["a.svc", "svc"]),
                options: owned(&["ndots:5"]),
            }),
            ..Default::default()
        };
        let text = String::from_utf8(resolv_conf(&config).unwrap()).unwrap();
        assert_eq!(
            text,
            "search a.svc svc\nnameserver 10.0.0.10\nnameserver 10.0.0.11\noptions ndots:5\n"
        );
    }
}
