//! What that means.

use std::fmt;

use plimsoll_core::cgroup::Version;
use plimsoll_core::config::NodeConfig;

use super::observe::{CgroupState, Observed, RuntimeState, Taken};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Fine,
    /// The agent runs, with less.
    Warning,
    /// The agent does not start.
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Level::Fine => "ok",
            Level::Warning => "warning",
            Level::Error => "error",
        })
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub subject: &'static str,
    /// How bad it is.
    pub level: Level,
    /// How it is.
    pub state: String,
    /// What can be done about it; empty where nothing need be.
    pub remedy: String,
}

impl Finding {
    fn fine(subject: &'static str, state: impl Into<String>) -> Finding {
        Finding {
            subject,
            level: Level::Fine,
            state: state.into(),
            remedy: String::new(),
        }
    }

    fn not_fine(
        subject: &'static str,
        level: Level,
        state: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            level,
            remedy: remedy.into(),
            ..Finding::fine(subject, state)
        }
    }
}

/// Everything that was looked at, one finding each or more.
pub fn judge(observed: &Observed, config: &NodeConfig) -> Vec<Finding> {
    let mut findings = vec![
        judge_user(observed),
        judge_cgroups(observed, config),
        judge_swap(observed, config),
        judge_pressure(observed),
    ];
    findings.extend(judge_optional_controllers(observed));
    findings.extend(judge_runtime(observed));
    findings.extend(judge_directories(observed));
    findings.extend(judge_ports(observed));
    findings
}

fn judge_user(observed: &Observed) -> Finding {
    if observed.is_root {
        return Finding::fine("user", "root");
    }
    let remedy = "run it as root (sudo); cgroups, mounts and namespaces need it";
    Finding::not_fine("user", Level::Error, "not root", remedy)
}

fn judge_cgroups(observed: &Observed, config: &NodeConfig) -> Finding {
    match &observed.cgroups {
        CgroupState::Unusable(refusal) => Finding::not_fine(
            "cgroups",
            Level::Error,
            refusal.to_string(),
            refusal.remedy(),
        ),
        CgroupState::Usable {
            version: Version::V2,
            ..
        } => Finding::fine("cgroups", "version 2"),
        CgroupState::Usable {
            version: Version::V1,
            ..
        } => {
            let remedy = "boot with systemd.unified_cgroup_hierarchy=1 for version 2, or set \
                          failCgroupV1: false";
            // Upstream's default refuses; it counts here only if it is set explicitly.
            let is_refused = *config.fail_cgroup_v1 && config.fail_cgroup_v1.is_set();
            let level = if is_refused {
                Level::Error
            } else {
                Level::Warning
            };
            let state = "version 1, which lacks memory.high, PSI per pod and cgroup.kill";
            Finding::not_fine("cgroups", level, state, remedy)
        }
    }
}

fn judge_optional_controllers(observed: &Observed) -> Option<Finding> {
    let CgroupState::Usable {
        missing_optional, ..
    } = &observed.cgroups
    else {
        return None;
    };
    let missing = missing_optional.join(", ");
    let remedy = "enable them in the kernel if pods are to be limited by them";
    let state = format!("{missing} missing");
    (!missing.is_empty()).then(|| Finding::not_fine("controllers", Level::Warning, state, remedy))
}

fn judge_swap(observed: &Observed, config: &NodeConfig) -> Finding {
    if observed.swaps.is_empty() {
        return Finding::fine("swap", "off");
    }
    let state = format!("on: {}", observed.swaps.join(", "));
    if *config.fail_swap_on {
        let remedy = "swapoff -a, or set failSwapOn: false";
        return Finding::not_fine("swap", Level::Error, state, remedy);
    }
    let remedy = "pages that are swapped out do not count as used: eviction comes late";
    Finding::not_fine("swap", Level::Warning, state, remedy)
}

fn judge_pressure(observed: &Observed) -> Finding {
    if observed.has_pressure {
        return Finding::fine("pressure stall information", "on");
    }
    let remedy = "boot with psi=1; without it memory is watched by thresholds and a timer";
    Finding::not_fine("pressure stall information", Level::Warning, "off", remedy)
}

fn judge_runtime(observed: &Observed) -> Vec<Finding> {
    let subject = "runtime";
    match &observed.runtime {
        RuntimeState::Reachable(socket) => {
            vec![Finding::fine(
                subject,
                format!("answers on {}", socket.display()),
            )]
        }
        RuntimeState::Unreachable(socket, error) => {
            let state = format!("cannot connect to {}: {error}", socket.display());
            let remedy = "start the runtime (systemctl start containerd), or leave out --runtime \
                          to use the embedded one";
            vec![Finding::not_fine(subject, Level::Error, state, remedy)]
        }
        RuntimeState::Embedded {
            has_overlay,
            missing_namespaces,
        } => {
            let mut findings = Vec::new();
            if missing_namespaces.is_empty() {
                findings.push(Finding::fine(subject, "embedded"));
            } else {
                let state = format!("no {} namespaces", missing_namespaces.join(", "));
                let remedy = "use a kernel that has them";
                findings.push(Finding::not_fine(subject, Level::Error, state, remedy));
            }
            if !has_overlay {
                let remedy = "modprobe overlay; until then every container gets a full copy of its \
                              image";
                let state = "not in the kernel";
                findings.push(Finding::not_fine(
                    "overlayfs",
                    Level::Warning,
                    state,
                    remedy,
                ));
            }
            findings
        }
    }
}

fn judge_directories(observed: &Observed) -> Vec<Finding> {
    let finding = |(directory, error): &(std::path::PathBuf, std::io::Error)| {
        let state = format!("cannot write to {}: {error}", directory.display());
        let remedy = "make it writable for root, or name another one with --data-dir";
        Finding::not_fine("directory", Level::Error, state, remedy)
    };
    observed.unwritable.iter().map(finding).collect()
}

fn judge_ports(observed: &Observed) -> Vec<Finding> {
    let finding = |taken: &Taken| {
        let Taken {
            what,
            address,
            error,
            holder,
        } = taken;
        let state = format!("cannot listen on {address} ({what}): {error}");
        // `kubelet` and `healthz`, as the flags begin.
        let elsewhere = format!("choose another address with --{what}-listen");
        let remedy = match holder {
            Some(holder) => format!("{holder} listens there: stop it, or {elsewhere}"),
            None => format!(
                "see which process listens there: ss -ltnp 'sport = :{}'; or {elsewhere}",
                address.port()
            ),
        };
        Finding::not_fine("port", Level::Error, state, remedy)
    };
    observed.taken.iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_core::config::{Origin, Profile, Setting};

    use super::*;

    fn good() -> Observed {
        Observed {
            is_root: true,
            cgroups: CgroupState::Usable {
                version: Version::V2,
                missing_optional: Vec::new(),
            },
            swaps: Vec::new(),
            has_pressure: true,
            runtime: RuntimeState::Embedded {
                has_overlay: true,
                missing_namespaces: Vec::new(),
            },
            unwritable: Vec::new(),
            taken: Vec::new(),
        }
    }

    fn config() -> NodeConfig {
        NodeConfig::defaults(Profile::Kubernetes136)
    }

    fn worst(observed: &Observed) -> Vec<(&'static str, Level)> {
        let findings = judge(observed, &config());
        let bad = findings
            .into_iter()
            .filter(|finding| finding.level != Level::Fine);
        bad.inspect(|finding| assert!(!finding.remedy.is_empty(), "{finding:?}"))
            .map(|finding| (finding.subject, finding.level))
            .collect()
    }

    #[test]
    fn suitable_machine_has_no_findings() {
        assert_eq!(worst(&good()), []);
    }

    #[test]
    fn every_failure_has_a_remedy() {
        let refused = || std::io::Error::from(std::io::ErrorKind::AddrInUse);
        let observed = Observed {
            is_root: false,
            swaps: vec!["/swapfile".to_owned()],
            has_pressure: false,
            runtime: RuntimeState::Unreachable("/run/x.sock".into(), refused()),
            unwritable: vec![("/proc/x".into(), refused())],
            taken: vec![Taken {
                what: "kubelet",
                address: "0.0.0.0:10250".parse().unwrap(),
                error: refused(),
                holder: None,
            }],
            ..good()
        };
        assert_eq!(
            worst(&observed),
            [
                ("user", Level::Error),
                ("swap", Level::Error),
                ("pressure stall information", Level::Warning),
                ("runtime", Level::Error),
                ("directory", Level::Error),
                ("port", Level::Error),
            ]
        );
    }

    #[test]
    fn cgroup_v1_is_refused_only_with_fail_cgroup_v1() {
        let observed = Observed {
            cgroups: CgroupState::Usable {
                version: Version::V1,
                missing_optional: vec!["hugetlb"],
            },
            ..good()
        };
        let expected = [("cgroups", Level::Warning), ("controllers", Level::Warning)];
        assert_eq!(worst(&observed), expected);
        let mut strict = config();
        let origin = Origin {
            path: "failCgroupV1".to_owned(),
            position: None,
        };
        strict.fail_cgroup_v1 = Setting::chosen(true, origin);
        let findings = judge(&observed, &strict);
        assert!(findings.iter().any(|f| f.level == Level::Error));
    }
}
