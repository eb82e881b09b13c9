//! The verbs of sandboxes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::Signal;
use tokio::sync::watch;

use super::files::{self, Durability};
use super::job::{Job, PauseJob};
use super::layout::SandboxDir;
use super::process_id::ProcessId;
use super::record::{SandboxRecord, now_nanos};
use super::spec::sandbox_options;
use super::table::{Sandbox, lock};
use super::{Embedded, blocking, new_id, report};
use crate::runtime::Error;
use crate::runtime::wire::{NamespaceMode, PodSandboxConfig};

/// How long the process of a sandbox may take to die.
const KILL: Duration = Duration::from_secs(10);

impl Embedded {
    pub(super) async fn make_sandbox(&self, config: &PodSandboxConfig) -> Result<String, Error> {
        let id = new_id()?;
        let name = report::sandbox_name(config);
        self.inner.table.reserve("sandbox", &name, &id)?;
        let dir = self.inner.layout.sandbox(&id);
        match self.try_make_sandbox(&id, &dir, config).await {
            Ok(()) => Ok(id),
            Err(error) => {
                self.discard_sandbox(&id, &dir).await;
                self.inner.table.release(&id);
                Err(error)
            }
        }
    }

    async fn try_make_sandbox(
        &self,
        id: &str,
        dir: &SandboxDir,
        config: &PodSandboxConfig,
    ) -> Result<(), Error> {
        let cgroup = self.inner.trees.cgroup(&self.sandbox_cgroup(id, config));
        let job = pause_job(dir, config);
        let has_network = job.network;
        let (runtime, place) = (self.clone(), cgroup.clone());
        let (own_dir, own_config) = (dir.clone(), config.clone());
        let started = blocking("make a sandbox", move || {
            let made = place.create();
            let doing = || format!("make cgroup {}", place.path);
            made.map_err(|error| Error::failed(doing(), error))?;
            runtime.start_pause(&own_dir, &own_config, &job)
        });
        let pause = started.await?;
        let (pid, cgroup_path) = (pause.pid, cgroup.path.clone());
        // The kernel takes its time to move a process; the network is set up meanwhile.
        let move_process = blocking("move the sandbox's process", move || {
            let doing = || format!("enter cgroup {}", cgroup.path);
            cgroup
                .add(pid)
                .map_err(|error| Error::failed(doing(), error))
        });
        let set_up_network = async {
            if has_network {
                let netns = netns_of(pid);
                self.inner.network.attach(id, &netns, config).await
            } else {
                Ok(Vec::new())
            }
        };
        let ((), ips) = tokio::try_join!(move_process, set_up_network)?;
        let record = SandboxRecord {
            created_at: now_nanos(),
            pause,
            cgroup: cgroup_path,
            ips,
            is_stopped: false,
        };
        files::write_json(&dir.record(), &record, Durability::Process)
            .map_err(|error| Error::failed(format!("note sandbox {id}"), error))?;
        let sandbox = Arc::new(Sandbox {
            id: id.to_owned(),
            dir: dir.clone(),
            config: config.clone(),
            record: record.into(),
            is_ready: watch::Sender::new(true),
            change: tokio::sync::Mutex::default(),
        });
        self.watch_sandbox(&sandbox);
        self.inner.table.add_sandbox(sandbox);
        Ok(())
    }

    /// The cgroup of a sandbox's own process.
    fn sandbox_cgroup(&self, id: &str, config: &PodSandboxConfig) -> String {
        let linux = config.linux.as_ref();
        let parent = linux.map_or("", |linux| &linux.cgroup_parent);
        let parent = self.inner.parent_cgroup(parent);
        self.inner.cgroup_path(&parent, id).to_string()
    }

    /// Lays the sandbox's files out and starts its process.
    fn start_pause(
        &self,
        dir: &SandboxDir,
        config: &PodSandboxConfig,
        job: &PauseJob,
    ) -> Result<ProcessId, Error> {
        let doing = || format!("lay out sandbox {}", dir.path().display());
        lay_out(dir, config, job).map_err(|error| Error::failed(doing(), error))?;
        self.inner
            .forker
            .start(&Job::Pause(job.clone()))
            .map_err(|error| Error::failed("start the sandbox's process", error))?;
        let pause = files::read_json(&dir.pause())
            .and_then(|pause| pause.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound)));
        pause.map_err(|error| Error::failed("find the sandbox's process", error))
    }

    pub(super) async fn stop_sandbox(&self, sandbox: &Arc<Sandbox>) -> Result<(), Error> {
        let _change = sandbox.change.lock().await;
        self.stop_sandbox_locked(sandbox).await
    }

    async fn stop_sandbox_locked(&self, sandbox: &Arc<Sandbox>) -> Result<(), Error> {
        // From here on nothing is started in it.
        sandbox.is_ready.send_replace(false);
        for container in self.inner.table.containers_of(&sandbox.id) {
            self.end_container(&container, Duration::ZERO).await?;
        }
        let mut record = sandbox.record();
        if record.is_stopped {
            return Ok(());
        }
        if !super::spec::is_host_network(&sandbox.config) {
            let is_there = record.pause.is_alive();
            let netns = is_there.then(|| netns_of(record.pause.pid));
            self.inner
                .network
                .detach(&sandbox.id, netns.as_deref(), &sandbox.config)
                .await?;
        }
        let (runtime, dir) = (self.clone(), sandbox.dir.clone());
        let (pause, cgroup) = (record.pause.clone(), record.cgroup.clone());
        blocking("stop a sandbox", move || {
            runtime.end_pause(&dir, Some(&pause), Some(&cgroup))
        })
        .await?;
        record.is_stopped = true;
        files::write_json(&sandbox.dir.record(), &record, Durability::Process)
            .map_err(|error| Error::failed(format!("note sandbox {}", sandbox.id), error))?;
        *lock(&sandbox.record) = record;
        Ok(())
    }

    /// Ends the process of a sandbox and takes down what it held.
    pub(super) fn end_pause(
        &self,
        dir: &SandboxDir,
        pause: Option<&ProcessId>,
        cgroup: Option<&str>,
    ) -> Result<(), Error> {
        let failed = |doing: &str| {
            let doing = format!("{doing} of sandbox {}", dir.path().display());
            move |error: io::Error| Error::failed(doing, error)
        };
        if let Some(pause) = pause {
            pause
                .signal(Signal::KILL)
                .map_err(failed("end the process"))?;
        }
        if let Some(cgroup) = cgroup {
            let cgroup = self.inner.trees.cgroup(cgroup);
            cgroup.kill_all(KILL);
            cgroup.remove().map_err(failed("remove the cgroup"))?;
        }
        unmount_shm(dir).map_err(failed("unmount /dev/shm"))
    }

    pub(super) async fn remove_sandbox(&self, sandbox: &Arc<Sandbox>) -> Result<(), Error> {
        let _change = sandbox.change.lock().await;
        self.stop_sandbox_locked(sandbox).await?;
        for container in self.inner.table.containers_of(&sandbox.id) {
            self.delete_container(&container).await?;
        }
        let dir = sandbox.dir.path().to_owned();
        let removed = blocking("remove a sandbox", move || {
            files::remove_dir(&dir)
                .map_err(|error| Error::failed(format!("remove {}", dir.display()), error))
        });
        removed.await?;
        self.inner.table.remove(&sandbox.id);
        Ok(())
    }

    /// Removes all traces of a sandbox that never became one.
    pub(super) async fn discard_sandbox(&self, id: &str, dir: &SandboxDir) {
        let config = read_config(dir).unwrap_or_default();
        if !super::spec::is_host_network(&config)
            && let Err(error) = self.inner.network.detach(id, None, &config).await
        {
            tracing::warn!(
                sandbox = id,
                error = error.chain(),
                "cannot give the network back"
            );
        }
        let cgroup = self.sandbox_cgroup(id, &config);
        let (runtime, dir) = (self.clone(), dir.clone());
        let done = blocking("discard a sandbox", move || {
            let pause = files::read_json(&dir.pause()).ok().flatten();
            runtime.end_pause(&dir, pause.as_ref(), Some(&cgroup))?;
            files::remove_dir(dir.path()).map_err(|error| Error::failed("remove it", error))
        });
        if let Err(error) = done.await {
            tracing::warn!(
                sandbox = id,
                error = error.chain(),
                "cannot clean a sandbox up"
            );
        }
    }
}

fn pause_job(dir: &SandboxDir, config: &PodSandboxConfig) -> PauseJob {
    let options = sandbox_options(config);
    let is_own = |mode: NamespaceMode| mode != NamespaceMode::Node;
    PauseJob {
        dir: dir.path().to_owned(),
        network: is_own(options.network()),
        ipc: is_own(options.ipc()),
        // The machine's name goes with its network.
        uts: is_own(options.network()),
        pid: options.pid() == NamespaceMode::Pod,
        hostname: hostname(config),
        sysctls: config.linux.clone().unwrap_or_default().sysctls,
    }
}

/// The network of a process.
fn netns_of(pid: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/ns/net"))
}

/// The configuration of a sandbox, as it was made.
pub(super) fn read_config(dir: &SandboxDir) -> io::Result<PodSandboxConfig> {
    let content = files::read(&dir.config())?.ok_or(io::ErrorKind::NotFound)?;
    PodSandboxConfig::decode(content.as_slice()).map_err(io::Error::other)
}

fn hostname(config: &PodSandboxConfig) -> String {
    match config.hostname.as_str() {
        "" => node_name(),
        name => name.to_owned(),
    }
}

/// The machine's own name.
pub(super) fn node_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

fn lay_out(dir: &SandboxDir, config: &PodSandboxConfig, job: &PauseJob) -> io::Result<()> {
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
    if job.ipc {
        fs::create_dir_all(dir.shm())?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("shm", dir.shm(), "tmpfs", flags, c"mode=1777,size=65536k")?;
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

fn unmount_shm(dir: &SandboxDir) -> io::Result<()> {
    match unmount(dir.shm(), UnmountFlags::DETACH) {
        // Not mounted, or not there.
        Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::wire::DnsConfig;

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
