//! Levels, versions, and the labels that choose them.
//!
//! Matches v1.36 staging/src/k8s.io/pod-security-admission/api/helpers.go.

use std::collections::BTreeMap;
use std::fmt;

use crate::problem::Problem;

use super::PREFIX;

/// How much a pod may do. Greater is stricter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Anything.
    #[default]
    Privileged,
    /// Nothing that is known to reach the node.
    Baseline,
    /// What a hardened pod needs.
    Restricted,
}

impl Level {
    /// The name in labels and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        }
    }

    /// Reads a label; an error is upstream's rule.
    pub fn parse(text: &str) -> Result<Level, &'static str> {
        match text {
            "privileged" => Ok(Level::Privileged),
            "baseline" => Ok(Level::Baseline),
            "restricted" => Ok(Level::Restricted),
            _ => Err("must be one of privileged, baseline, restricted"),
        }
    }
}

/// The release whose rules apply. Greater is newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// Those of Kubernetes 1.N.
    Minor(u64),
    /// The newest rules that there are.
    Latest,
}

impl Version {
    /// Reads a label; an error is upstream's rule.
    pub fn parse(text: &str) -> Result<Version, &'static str> {
        if text == "latest" {
            return Ok(Version::Latest);
        }
        let minor = text.strip_prefix("v1.").filter(|minor| {
            let has_leading_zero = minor.len() > 1 && minor.starts_with('0');
            !has_leading_zero && minor.bytes().all(|byte| byte.is_ascii_digit())
        });
        // Go's integers end here.
        let minor = minor.and_then(|minor| minor.parse::<i64>().ok());
        let minor = minor.and_then(|minor| u64::try_from(minor).ok());
        minor
            .map(Version::Minor)
            .ok_or("must be \"latest\" or \"v1.x\"")
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Version::Minor(minor) => write!(f, "v1.{minor}"),
            Version::Latest => f.write_str("latest"),
        }
    }
}

/// A level as of a release. By default everything is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LevelVersion {
    /// The level.
    pub level: Level,
    /// The release.
    pub version: Version,
}

impl Default for LevelVersion {
    fn default() -> LevelVersion {
        LevelVersion {
            level: Level::Privileged,
            version: Version::Latest,
        }
    }
}

impl LevelVersion {
    /// Whether both allow the same: the version of `privileged` does not matter.
    fn is_equivalent(self, other: LevelVersion) -> bool {
        self.level == other.level
            && (self.level == Level::Privileged || self.version == other.version)
    }
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.level.as_str(), self.version)
    }
}

/// The action on a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// The pod is refused.
    Enforce,
    /// It is recorded in the audit log.
    Audit,
    /// The caller is warned.
    Warn,
}

impl Mode {
    /// All of them, in the order of upstream's messages.
    pub const ALL: [Mode; 3] = [Mode::Enforce, Mode::Audit, Mode::Warn];

    /// The name in labels, settings and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Enforce => "enforce",
            Mode::Audit => "audit",
            Mode::Warn => "warn",
        }
    }

    fn level_label(self) -> String {
        format!("{PREFIX}{}", self.as_str())
    }

    fn version_label(self) -> String {
        format!("{PREFIX}{}-version", self.as_str())
    }

    /// Whether the labels say anything about the mode.
    pub(super) fn is_labelled(self, labels: &BTreeMap<String, String>) -> bool {
        labels.contains_key(&self.level_label()) || labels.contains_key(&self.version_label())
    }
}

/// The level of each mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The level that pods must comply with.
    pub enforce: LevelVersion,
    /// The level that is audited beyond it.
    pub audit: LevelVersion,
    /// The level that callers are warned about.
    pub warn: LevelVersion,
}

impl Policy {
    /// The level in a mode.
    pub fn of(&self, mode: Mode) -> LevelVersion {
        match mode {
            Mode::Enforce => self.enforce,
            Mode::Audit => self.audit,
            Mode::Warn => self.warn,
        }
    }

    /// For readers of labels and settings, which fill it mode by mode.
    pub(super) fn of_mut(&mut self, mode: Mode) -> &mut LevelVersion {
        match mode {
            Mode::Enforce => &mut self.enforce,
            Mode::Audit => &mut self.audit,
            Mode::Warn => &mut self.warn,
        }
    }

    /// Whether nothing can violate it.
    pub fn is_privileged(&self) -> bool {
        Mode::ALL
            .iter()
            .all(|mode| self.of(*mode).level == Level::Privileged)
    }

    /// Whether both allow the same in every mode.
    pub(super) fn is_equivalent(&self, other: &Policy) -> bool {
        let mut modes = Mode::ALL.iter();
        modes.all(|mode| self.of(*mode).is_equivalent(other.of(*mode)))
    }
}

/// The policy of a namespace, and what is wrong with its labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespacePolicy {
    /// What applies. A malformed label means the strictest for `enforce` and nothing for the
    /// others.
    pub policy: Policy,
    /// Labels that say nothing meaningful.
    pub problems: Vec<Problem>,
}

impl NamespacePolicy {
    /// The policy that labels choose; `defaults` holds where they are silent.
    ///
    /// A namespace that enforces a level also warns at that level, unless its labels say otherwise:
    /// warnings name the workload, refusals only its pods.
    pub fn of_labels(labels: &BTreeMap<String, String>, defaults: Policy) -> NamespacePolicy {
        let mut read = NamespacePolicy {
            policy: defaults,
            problems: Vec::new(),
        };
        let enforced = read.read(Mode::Enforce, labels);
        read.read(Mode::Audit, labels);
        read.read(Mode::Warn, labels);
        let policy = &mut read.policy;
        let is_silent = !labels.contains_key(&Mode::Warn.level_label());
        if is_silent && enforced && policy.enforce.level > policy.warn.level {
            policy.warn.level = policy.enforce.level;
            if !labels.contains_key(&Mode::Warn.version_label()) {
                policy.warn.version = policy.enforce.version;
            }
        }
        read
    }

    /// Reads the labels of a mode; whether they name a level.
    fn read(&mut self, mode: Mode, labels: &BTreeMap<String, String>) -> bool {
        let chosen = self.policy.of_mut(mode);
        let mut names_level = false;
        let mut invalid = |label: &str, value: &str, rule: &str| {
            let path = format!("metadata.labels[{label}]");
            self.problems.push(Problem::invalid(path, value, rule));
        };
        let label = mode.level_label();
        if let Some(value) = labels.get(&label) {
            match Level::parse(value) {
                Ok(level) => {
                    chosen.level = level;
                    names_level = true;
                }
                Err(rule) => {
                    chosen.level = match mode {
                        Mode::Enforce => Level::Restricted,
                        Mode::Audit | Mode::Warn => Level::Privileged,
                    };
                    invalid(&label, value, rule);
                }
            }
        }
        let label = mode.version_label();
        if let Some(value) = labels.get(&label) {
            chosen.version = Version::parse(value).unwrap_or_else(|rule| {
                invalid(&label, value, rule);
                Version::Latest
            });
        }
        names_level
    }
}
