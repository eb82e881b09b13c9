//! Writes and reads the settings of a cgroup.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use plimsoll_core::cgroup::conversion::shares_from_kubelet_weight;
use plimsoll_core::cgroup::{CgroupPath, PlannedCgroup, ResourceConfig, Version, WeightFormula};
use plimsoll_core::resources::Bytes;
use rustix::io::Errno;

use super::create::write_existing;
use super::error::Error;
use super::tree::Cgroups;

const PERIOD_V1: &str = "cpu.cfs_period_us";
const MEMORY_LIMIT_V1: &str = "memory.limit_in_bytes";
/// From here on a limit of cgroup v1 is none: it counts pages in 63 bits.
const UNLIMITED_V1: i64 = i64::MAX - 0xffff;

impl Cgroups {
    /// Makes a planned cgroup and writes what it should have. One of the operator is only written,
    /// see [`Cgroups::validate`]. Returns the files that were changed.
    pub fn apply(&self, planned: &PlannedCgroup) -> Result<Vec<String>, Error> {
        if !planned.is_foreign {
            self.create(&planned.path)?;
        }
        self.write(&planned.path, &planned.config)
    }

    /// Writes what a cgroup should have into the files that hold something else. One that fails
    /// does not keep the others from being written; the first failure is returned.
    pub fn write(
        &self,
        cgroup: &CgroupPath,
        config: &ResourceConfig,
    ) -> Result<Vec<String>, Error> {
        let files = self.host.render(config, WeightFormula::Kubelet);
        let mut changed = Vec::new();
        let mut failure = None;
        let mut postponed = None;
        for (file, value) in &files {
            match self.write_file(cgroup, file, value) {
                Ok(true) => changed.push(file.clone()),
                Ok(false) => {}
                // A shorter period with the old quota may exceed what the parent has. Files are
                // in the order of their names, so that the quota comes next.
                Err(Error::Write { source, .. })
                    if file == PERIOD_V1 && is(&source, Errno::INVAL) =>
                {
                    postponed = Some(value);
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        if let Some(value) = postponed {
            match self.write_file(cgroup, PERIOD_V1, value) {
                Ok(_) => changed.push(PERIOD_V1.to_owned()),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match failure {
            None => Ok(changed),
            Some(error) => Err(error),
        }
    }

    /// Writes one file unless it holds the value. Returns whether it was written.
    fn write_file(&self, cgroup: &CgroupPath, file: &str, value: &str) -> Result<bool, Error> {
        let Some(directory) = self.layout.directory_of_file(file, cgroup) else {
            let controller = file.split('.').next().unwrap_or(file);
            return Err(Error::NoController {
                cgroup: cgroup.clone(),
                file: file.to_owned(),
                value: value.to_owned(),
                controller: controller.to_owned(),
            });
        };
        let path = directory.join(file);
        // A file that cannot be read may still be written.
        if fs::read_to_string(&path).is_ok_and(|text| text.trim() == value) {
            return Ok(false);
        }
        match write_existing(&path, value) {
            Ok(()) => Ok(true),
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && may_be_missing(file, value) =>
            {
                Ok(false)
            }
            Err(error) if file == MEMORY_LIMIT_V1 && is(&error, Errno::BUSY) => {
                Err(Error::MemoryInUse {
                    cgroup: cgroup.clone(),
                    limit: value.to_owned(),
                    usage: self.number(cgroup, "memory.usage_in_bytes")?,
                    peak: self.number(cgroup, "memory.max_usage_in_bytes")?,
                })
            }
            Err(source) => Err(Error::Write {
                cgroup: cgroup.clone(),
                file: file.to_owned(),
                value: value.to_owned(),
                source,
            }),
        }
    }

    /// What a file of a cgroup holds, without the end of the line.
    pub fn read(&self, cgroup: &CgroupPath, file: &str) -> Result<String, Error> {
        let directory = self.layout.directory_of_file(file, cgroup);
        let text = match directory {
            Some(directory) => fs::read_to_string(directory.join(file)),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        match text {
            Ok(text) => Ok(text.trim_end().to_owned()),
            Err(source) => Err(Error::Read {
                cgroup: cgroup.clone(),
                file: file.to_owned(),
                source,
            }),
        }
    }

    /// What the files hold that the config would be written into.
    pub fn read_back(
        &self,
        cgroup: &CgroupPath,
        config: &ResourceConfig,
    ) -> Result<BTreeMap<String, String>, Error> {
        let files = self.host.render(config, WeightFormula::Kubelet);
        files
            .into_keys()
            .map(|file| Ok((file.clone(), self.read(cgroup, &file)?)))
            .collect()
    }

    /// The memory in use.
    pub fn memory_usage(&self, cgroup: &CgroupPath) -> Result<Bytes, Error> {
        let file = match self.version() {
            Version::V1 => "memory.usage_in_bytes",
            Version::V2 => "memory.current",
        };
        let usage: u64 = self.number(cgroup, file)?;
        Ok(Bytes(i64::try_from(usage).unwrap_or(i64::MAX)))
    }

    /// Cpu and memory of a cgroup that [`Cgroups::write`] wrote; -1 stands for no limit.
    pub fn read_config(&self, cgroup: &CgroupPath) -> Result<ResourceConfig, Error> {
        match self.version() {
            Version::V1 => self.read_config_v1(cgroup),
            Version::V2 => self.read_config_v2(cgroup),
        }
    }

    fn read_config_v1(&self, cgroup: &CgroupPath) -> Result<ResourceConfig, Error> {
        let memory: i64 = self.number(cgroup, MEMORY_LIMIT_V1)?;
        let memory = if memory >= UNLIMITED_V1 { -1 } else { memory };
        Ok(ResourceConfig {
            memory: Some(Bytes(memory)),
            cpu_shares: Some(self.number(cgroup, "cpu.shares")?),
            cpu_quota: Some(self.number(cgroup, "cpu.cfs_quota_us")?),
            cpu_period: Some(self.number(cgroup, PERIOD_V1)?),
            ..ResourceConfig::default()
        })
    }

    fn read_config_v2(&self, cgroup: &CgroupPath) -> Result<ResourceConfig, Error> {
        const CPU_MAX: &str = "cpu.max";
        const MEMORY_MAX: &str = "memory.max";
        let memory = match self.read(cgroup, MEMORY_MAX)?.as_str() {
            "max" => -1,
            _ => self.number(cgroup, MEMORY_MAX)?,
        };
        let weight = self.number(cgroup, "cpu.weight")?;
        let cpu_max = self.read(cgroup, CPU_MAX)?;
        let Some((quota, period)) = parse_cpu_max(&cpu_max) else {
            return Err(Error::Unreadable {
                cgroup: cgroup.clone(),
                file: CPU_MAX.to_owned(),
                text: cpu_max,
            });
        };
        Ok(ResourceConfig {
            memory: Some(Bytes(memory)),
            cpu_shares: Some(shares_from_kubelet_weight(weight)),
            cpu_quota: Some(quota),
            cpu_period: Some(period),
            ..ResourceConfig::default()
        })
    }

    fn number<T: std::str::FromStr>(&self, cgroup: &CgroupPath, file: &str) -> Result<T, Error> {
        let text = self.read(cgroup, file)?;
        text.parse().map_err(|_| Error::Unreadable {
            cgroup: cgroup.clone(),
            file: file.to_owned(),
            text,
        })
    }
}

fn parse_cpu_max(text: &str) -> Option<(i64, u64)> {
    let (quota, period) = text.split_once(' ')?;
    let quota = match quota {
        "max" => -1,
        number => number.parse().ok()?,
    };
    Some((quota, period.parse().ok()?))
}

/// Kernels before 5.7 do not count reservations of huge pages; those that do not count swap need
/// not be set to unlimited.
fn may_be_missing(file: &str, value: &str) -> bool {
    file.contains(".rsvd.") || (file == "memory.swap.max" && value == "max")
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}
