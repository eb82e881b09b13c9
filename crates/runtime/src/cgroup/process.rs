//! Processes and their cgroups: the agent's own above all.

use std::fs;
use std::io;
use std::path::Path;

use plimsoll_core::cgroup::{CgroupPath, Version};

use super::create::write_existing;
use super::error::Error;
use super::tree::Cgroups;

/// The agent is killed last but for the kernel's own, as upstream's.
pub const AGENT_OOM_SCORE_ADJ: i64 = -999;

impl Cgroups {
    /// Moves a process into a cgroup of its own, which is made if need be, and has it take no more
    /// memory than that, what the kernel holds for it included.
    pub fn confine(&self, cgroup: &CgroupPath, pid: u32, memory: u64) -> Result<(), Error> {
        self.create(cgroup)?;
        let limits: &[(&str, u64)] = match self.version() {
            Version::V1 => &[("memory.limit_in_bytes", memory)],
            // What is above the first is freed at once; only what cannot be reaches the second.
            Version::V2 => &[("memory.high", memory / 4 * 3), ("memory.max", memory)],
        };
        for (file, value) in limits {
            let (file, value) = ((*file).to_owned(), value.to_string());
            let written = match self.layout.directory("memory", cgroup) {
                Some(directory) => write_existing(&directory.join(&file), &value),
                None => Err(io::ErrorKind::NotFound.into()),
            };
            written.map_err(|source| Error::Write {
                cgroup: cgroup.clone(),
                file,
                value,
                source,
            })?;
        }
        self.enter(cgroup, pid)
    }

    /// Moves a process into a cgroup, which is made if need be, in every tree.
    pub fn enter(&self, cgroup: &CgroupPath, pid: u32) -> Result<(), Error> {
        const PROCS: &str = "cgroup.procs";
        self.create(cgroup)?;
        for directory in self.layout.directories(cgroup) {
            let value = pid.to_string();
            write_existing(&directory.join(PROCS), &value).map_err(|source| Error::Write {
                cgroup: cgroup.clone(),
                file: PROCS.to_owned(),
                value,
                source,
            })?;
        }
        Ok(())
    }
}

/// The cgroup that a process is accounted in, by the text of `/proc/<pid>/cgroup`. `None` where
/// cgroup v1 has it in different ones for cpu and memory, or it is outside of what is seen here.
///
/// Matches v1.36 getContainer in pkg/kubelet/cm/container_manager_linux.go.
pub fn parse_own_cgroup(text: &str, version: Version) -> Option<CgroupPath> {
    let of = |controller: &str| path_by(text, controller);
    let path = match version {
        Version::V2 => of("")?,
        Version::V1 => {
            let cpu = of("cpu")?;
            let is_unified = of("memory")? == cpu;
            // systemd knows the unit even where accounting is off.
            of("name=systemd").or(Some(cpu)).filter(|_| is_unified)?
        }
    };
    CgroupPath::parse(path).ok()
}

/// Whether a process has no cgroup that accounts for it, by the text of
/// `/proc/<pid>/cgroup`: no service manager has, and it is in the root of some tree at least.
pub fn is_unaccounted(text: &str, version: Version) -> bool {
    let is_root = |controller: &str| path_by(text, controller).is_none_or(|path| path == "/");
    match version {
        Version::V2 => is_root(""),
        Version::V1 => is_root("name=systemd") && (is_root("cpu") || is_root("memory")),
    }
}

fn path_by<'a>(text: &'a str, controller: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let mut controllers = controllers.split(',');
        controllers.any(|name| name == controller).then_some(path)
    })
}

/// Sets which process is killed first when the node is out of memory, by `/proc/<pid>` in `proc`.
/// Lowering the value takes CAP_SYS_RESOURCE, which root in a container often has not.
pub fn write_oom_score_adj(proc: &Path, pid: u32, value: i64) -> io::Result<()> {
    let path = proc.join(pid.to_string()).join("oom_score_adj");
    let current = fs::read_to_string(&path)?;
    if current.trim() == value.to_string() {
        return Ok(());
    }
    write_existing(&path, &value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_accounted_for_and_a_process_of_the_root_is_not() {
        for (text, version, expected) in [
            ("0::/\n", Version::V2, true),
            ("0::/system.slice/plimsoll.service\n", Version::V2, false),
            ("0::/user.slice/session-1.scope\n", Version::V2, false),
            ("2:memory:/\n1:cpu:/\n", Version::V1, true),
            (
                "2:memory:/some\n1:cpu,cpuacct:/\n9:name=systemd:/\n",
                Version::V1,
                true,
            ),
            ("2:memory:/some\n1:cpu:/some\n", Version::V1, false),
            (
                "2:memory:/\n1:cpu:/\n9:name=systemd:/a.service\n",
                Version::V1,
                false,
            ),
        ] {
            assert_eq!(is_unaccounted(text, version), expected, "{text}");
        }
    }

    #[test]
    fn the_own_cgroup_is_one_for_cpu_and_memory() {
        let own = |text, version| {
            let path = parse_own_cgroup(text, version);
            path.map(|path| path.as_str().to_owned())
        };
        let unit = Some("/system.slice/agent.service".to_owned());
        assert_eq!(own("0::/system.slice/agent.service\n", Version::V2), unit);
        let v1 = "9:name=systemd:/system.slice/agent.service\n4:memory:/\n1:cpu,cpuacct:/\n0::/x\n";
        assert_eq!(own(v1, Version::V1), unit);
        let apart = "4:memory:/a\n1:cpu:/\n";
        assert_eq!(own(apart, Version::V1), None);
        assert_eq!(
            own("4:memory:/a\n1:cpu:/a\n", Version::V1),
            Some("/a".to_owned())
        );
        assert_eq!(own("0::/../x\n", Version::V2), None);
    }
}
