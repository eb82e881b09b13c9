//! The rules of the Pod Security Standards, and in which releases they apply.
//!
//! Each rule is a function from a [`Subject`] to what is wrong with it. A rule may have been
//! changed by a release; policies pinned to an older one keep the older form. A restricted rule
//! that contains a baseline rule replaces it, so that a violation is not reported twice.
//!
//! Reading order: this file (the table), `wording` (how a violation names containers), then
//! the rules by what they protect: `host` (namespaces, ports, paths and addresses of the node),
//! `privileges`, `capabilities`, `profiles` (AppArmor, SELinux, seccomp), `users`, `volumes`,
//! `kernel` (sysctls and /proc).
//!
//! Matches v1.36 staging/src/k8s.io/pod-security-admission/policy.

mod capabilities;
mod host;
mod kernel;
mod privileges;
mod profiles;
mod users;
mod volumes;
mod wording;

use super::policy::{Level, LevelVersion, Version};
use super::subject::Subject;

/// One rule that a pod breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule: `hostNamespaces`.
    pub check: &'static str,
    /// In short: `host namespaces`.
    pub reason: &'static str,
    /// Which fields of which containers; may be empty.
    pub detail: String,
}

/// All rules of a policy that a pod breaks; empty if it complies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations(pub Vec<Violation>);

impl Violations {
    /// Whether the pod complies.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In short, for texts about many pods.
    pub fn reasons(&self) -> String {
        let reasons: Vec<&str> = self.0.iter().map(|violation| violation.reason).collect();
        reasons.join(", ")
    }

    /// With fields and containers, for texts about one pod.
    pub fn details(&self) -> String {
        let details = self.0.iter().map(|violation| match &violation.detail {
            detail if detail.is_empty() => violation.reason.to_owned(),
            detail => format!("{} ({detail})", violation.reason),
        });
        details.collect::<Vec<_>>().join(", ")
    }
}

/// A violation before the rule is named.
struct CheckFailure {
    reason: &'static str,
    detail: String,
}

type Rule = fn(&Subject<'_>) -> Option<CheckFailure>;

/// A rule as of a release.
struct Revision {
    /// The first release, the N in 1.N.
    since: u64,
    rule: Rule,
}

/// A rule with its history.
struct Check {
    id: &'static str,
    level: Level,
    /// Oldest first.
    revisions: &'static [Revision],
    /// The baseline rule that it contains.
    replaces: Option<&'static str>,
}

const fn baseline(id: &'static str, revisions: &'static [Revision]) -> Check {
    Check {
        id,
        level: Level::Baseline,
        revisions,
        replaces: None,
    }
}

const fn restricted(
    id: &'static str,
    revisions: &'static [Revision],
    replaces: Option<&'static str>,
) -> Check {
    Check {
        id,
        level: Level::Restricted,
        revisions,
        replaces,
    }
}

const fn since(minor: u64, rule: Rule) -> Revision {
    Revision { since: minor, rule }
}

/// All rules, in the order in which messages name them: baseline before restricted, then by id.
static CHECKS: [Check; 19] = [
    baseline("appArmorProfile", &[since(0, profiles::app_armor)]),
    baseline("capabilities_baseline", &[since(0, capabilities::baseline)]),
    baseline("hostNamespaces", &[since(0, host::namespaces)]),
    baseline("hostPathVolumes", &[since(0, volumes::host_path)]),
    baseline("hostPorts", &[since(0, host::ports)]),
    baseline("hostProbesAndHostLifecycle", &[since(34, host::addresses)]),
    baseline("privileged", &[since(0, privileges::privileged)]),
    baseline(
        "procMount",
        &[
            since(0, kernel::proc_mount),
            since(35, kernel::proc_mount_outside_user_namespaces),
        ],
    ),
    baseline(
        "seLinuxOptions",
        &[
            since(0, profiles::se_linux_0),
            since(31, profiles::se_linux_31),
        ],
    ),
    baseline(
        "seccompProfile_baseline",
        &[
            since(0, profiles::seccomp_annotations),
            since(19, profiles::seccomp_baseline),
        ],
    ),
    baseline(
        "sysctls",
        &[
            since(0, kernel::sysctls_0),
            since(27, kernel::sysctls_27),
            since(29, kernel::sysctls_29),
            since(32, kernel::sysctls_32),
        ],
    ),
    baseline("windowsHostProcess", &[since(0, privileges::host_process)]),
    restricted(
        "allowPrivilegeEscalation",
        &[
            since(8, privileges::escalation),
            since(25, privileges::escalation_but_on_windows),
        ],
        None,
    ),
    restricted(
        "capabilities_restricted",
        &[
            since(22, capabilities::restricted),
            since(25, capabilities::restricted_but_on_windows),
        ],
        Some("capabilities_baseline"),
    ),
    restricted(
        "procMount_restricted",
        &[since(35, kernel::proc_mount)],
        Some("procMount"),
    ),
    restricted(
        "restrictedVolumes",
        &[since(0, volumes::restricted)],
        Some("hostPathVolumes"),
    ),
    restricted(
        "runAsNonRoot",
        &[
            since(0, users::non_root),
            since(35, users::non_root_outside_user_namespaces),
        ],
        None,
    ),
    restricted(
        "runAsUser",
        &[
            since(23, users::not_zero),
            since(35, users::not_zero_outside_user_namespaces),
        ],
        None,
    ),
    restricted(
        "seccompProfile_restricted",
        &[
            since(19, profiles::seccomp_restricted),
            since(25, profiles::seccomp_restricted_but_on_windows),
        ],
        Some("seccompProfile_baseline"),
    ),
];

impl Check {
    /// The rule as of a release; `None` before there was one.
    fn rule(&self, version: Version) -> Option<Rule> {
        let mut newest_first = self.revisions.iter().rev();
        let revision = newest_first.find(|revision| Version::Minor(revision.since) <= version)?;
        Some(revision.rule)
    }
}

/// The rules of a level as of a release.
fn rules(of: LevelVersion) -> impl Iterator<Item = (&'static str, Rule)> {
    let in_force = move |check: &&Check| check.level <= of.level;
    let replaced = move |id: &str| {
        let mut others = CHECKS.iter().filter(in_force);
        others.any(|other| other.replaces == Some(id) && other.rule(of.version).is_some())
    };
    let checks = CHECKS.iter().filter(in_force);
    let checks = checks.filter(move |check| !replaced(check.id));
    checks.filter_map(move |check| Some((check.id, check.rule(of.version)?)))
}

/// The rules of a policy that a pod breaks.
pub fn violations(of: LevelVersion, subject: &Subject<'_>) -> Violations {
    let found = rules(of).filter_map(|(check, rule)| {
        let CheckFailure { reason, detail } = rule(subject)?;
        Some(Violation {
            check,
            reason,
            detail,
        })
    });
    Violations(found.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(level: Level, version: Version) -> Vec<&'static str> {
        rules(LevelVersion { level, version })
            .map(|(id, _)| id)
            .collect()
    }

    #[test]
    fn checks_are_in_the_order_of_messages() {
        assert!(CHECKS.is_sorted_by_key(|check| (check.level, check.id)));
        for check in &CHECKS {
            assert!(check.revisions.is_sorted_by_key(|revision| revision.since));
            assert!(!check.revisions.is_empty() && check.level > Level::Privileged);
        }
    }

    #[test]
    fn privileged_has_no_rules() {
        assert_eq!(ids(Level::Privileged, Version::Latest), [""; 0]);
    }

    #[test]
    fn rules_apply_from_the_release_that_made_them() {
        let old = ids(Level::Restricted, Version::Minor(0));
        assert_eq!(
            old,
            [
                "appArmorProfile",
                "capabilities_baseline",
                "hostNamespaces",
                "hostPorts",
                "privileged",
                "procMount",
                "seLinuxOptions",
                "seccompProfile_baseline",
                "sysctls",
                "windowsHostProcess",
                "restrictedVolumes",
                "runAsNonRoot",
            ]
        );
        for (check, minor) in [
            ("allowPrivilegeEscalation", 8),
            ("seccompProfile_restricted", 19),
            ("capabilities_restricted", 22),
            ("runAsUser", 23),
            ("hostProbesAndHostLifecycle", 34),
            ("procMount_restricted", 35),
        ] {
            let has = |minor| ids(Level::Restricted, Version::Minor(minor)).contains(&check);
            assert!(!has(minor - 1) && has(minor), "{check} since 1.{minor}");
        }
    }

    #[test]
    fn a_restricted_rule_replaces_the_baseline_rule_that_it_contains() {
        let latest = ids(Level::Restricted, Version::Latest);
        for replaced in [
            "capabilities_baseline",
            "hostPathVolumes",
            "procMount",
            "seccompProfile_baseline",
        ] {
            assert!(!latest.contains(&replaced), "{replaced}");
            assert!(ids(Level::Baseline, Version::Latest).contains(&replaced));
        }
        assert_eq!(latest.len(), 15);
        assert_eq!(ids(Level::Restricted, Version::Minor(99)), latest);
    }
}
