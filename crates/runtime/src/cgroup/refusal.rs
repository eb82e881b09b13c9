//! Why a node cannot run pods with the cgroups it has.

use std::io;
use std::path::PathBuf;

use plimsoll_core::cgroup::CgroupName;
use plimsoll_core::problem::quoted;

/// A reason not to start, each with its remedy. Texts that upstream has are upstream's.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The mounts could not be read.
    #[error("failed to get mounted cgroup subsystems: {}", path.display())]
    ReadMounts {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is no cgroup file system.
    #[error("failed to get mounted cgroup subsystems: none is mounted at {}", point.display())]
    NotMounted {
        /// Where one was looked for.
        point: PathBuf,
    },
    /// Controllers that limits need are not there.
    #[error("system validation failed - Following Cgroup subsystem not mounted: [{}]", missing.join(" "))]
    MissingControllers {
        /// Which.
        missing: Vec<String>,
    },
    /// A cgroup is not there, or not in every tree of cgroup v1.
    #[error(
        "cgroup {} has some missing paths: {}",
        go_list(cgroup),
        missing.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    MissingPaths {
        /// Which cgroup.
        cgroup: CgroupName,
        /// Its directories that are not there.
        missing: Vec<PathBuf>,
    },
    /// A cgroup of cgroup v2 was not given all controllers.
    #[error("cgroup {} has some missing controllers: {}", go_list(cgroup), missing.join(", "))]
    NotDelegated {
        /// Which cgroup.
        cgroup: CgroupName,
        /// The controllers it lacks.
        missing: Vec<String>,
    },
    /// A cgroup of cgroup v2 is not there, or cannot be read.
    #[error("could not read controllers for cgroup {}", go_list(cgroup))]
    ReadControllers {
        /// Which cgroup.
        cgroup: CgroupName,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Nothing is reserved for a cgroup that a reservation is to be enforced on.
    #[error("{} cgroup is not configured properly", go_list(cgroup))]
    NothingReserved {
        /// Which cgroup.
        cgroup: CgroupName,
    },
}

impl Refusal {
    /// What the operator can do.
    pub fn remedy(&self) -> String {
        match self {
            Refusal::ReadMounts { .. } => "mount /proc".to_owned(),
            Refusal::NotMounted { point } => {
                let point = point.display();
                format!("mount cgroup v2 there: mount -t cgroup2 none {point}")
            }
            Refusal::MissingControllers { missing } => format!(
                "mount them below /sys/fs/cgroup (cgroup v1), or take cgroup_disable={} off the \
                 kernel's command line",
                missing.join(",")
            ),
            Refusal::MissingPaths { missing, .. } => {
                let paths: Vec<String> = missing
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect();
                format!(
                    "make it: mkdir -p {}; or name another cgroup",
                    paths.join(" ")
                )
            }
            Refusal::NotDelegated { cgroup, missing } => format!(
                "write +{} into cgroup.subtree_control of every cgroup above /{}",
                missing.join(" +"),
                cgroup.parts().join("/")
            ),
            Refusal::ReadControllers { cgroup, .. } => format!(
                "make the cgroup /{} below /sys/fs/cgroup, or name another one",
                cgroup.parts().join("/")
            ),
            Refusal::NothingReserved { .. } => {
                "set the reservation (kubeReserved, systemReserved), or do not enforce it"
                    .to_owned()
            }
        }
    }
}

/// A name as Go prints a list of quoted texts, which is how users know it.
pub(super) fn go_list(cgroup: &CgroupName) -> String {
    let parts: Vec<String> = cgroup.parts().iter().map(|part| quoted(part)).collect();
    format!("[{}]", parts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::cgroup::Driver;

    #[test]
    fn texts_are_upstreams_and_remedies_name_the_subject() {
        let cgroup = CgroupName::parse("/a/b", Driver::Cgroupfs);
        let refusal = Refusal::MissingPaths {
            cgroup: cgroup.clone(),
            missing: vec![
                "/sys/fs/cgroup/cpu/a/b".into(),
                "/sys/fs/cgroup/pids/a/b".into(),
            ],
        };
        assert_eq!(
            refusal.to_string(),
            "cgroup [\"a\" \"b\"] has some missing paths: /sys/fs/cgroup/cpu/a/b, \
             /sys/fs/cgroup/pids/a/b"
        );
        assert!(
            refusal
                .remedy()
                .starts_with("make it: mkdir -p /sys/fs/cgroup/cpu/a/b /sys")
        );
        let refusal = Refusal::MissingControllers {
            missing: vec!["cpu".to_owned(), "memory".to_owned()],
        };
        assert_eq!(
            refusal.to_string(),
            "system validation failed - Following Cgroup subsystem not mounted: [cpu memory]"
        );
    }
}
