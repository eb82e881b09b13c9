//! Settings of the kernel that a node with pods needs.
//!
//! Matches v1.36 setupKernelTunables in pkg/kubelet/cm/container_manager_linux.go. They hold for
//! the whole machine, so that nothing writes them but [`apply`], which notes what they were before ([`Sysctls`]).

use std::io;

use super::Sysctls;

/// A setting, by its path below `/proc/sys`, and what it has to be.
const TUNABLES: [(&str, i64); 6] = [
    // Requests may be overcommitted: a fork must not fail while there is memory.
    ("vm/overcommit_memory", 1),
    // Kill a process when memory is out, not the machine.
    ("vm/panic_on_oom", 0),
    // Reboot ten seconds after a panic, so that the node comes back.
    ("kernel/panic", 10),
    ("kernel/panic_on_oops", 1),
    // Each container has a session keyring.
    ("kernel/keys/root_maxkeys", 1_000_000),
    ("kernel/keys/root_maxbytes", 25_000_000),
];

/// What to do about a setting that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behavior {
    /// Change it.
    Modify,
    /// Refuse to start: `protectKernelDefaults`.
    Error,
}

/// A setting that is wrong and stays so.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be read.
    #[error("failed to read kernel flag {flag}")]
    Read {
        /// Which.
        flag: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It could not be changed.
    #[error("failed to set kernel flag {flag} to {value}")]
    Write {
        /// Which.
        flag: &'static str,
        /// To what.
        value: i64,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is protected.
    #[error("invalid kernel flag: {flag}, expected value: {expected}, actual value: {actual}")]
    Mismatch {
        /// Which.
        flag: &'static str,
        /// What it has to be.
        expected: i64,
        /// What it is.
        actual: i64,
    },
}

impl Error {
    /// What the operator can do.
    pub fn remedy(&self) -> String {
        match self {
            Error::Read { flag, .. } => format!("make /proc/sys/{flag} readable"),
            Error::Write { flag, value, .. } => {
                format!(
                    "run as root with /proc/sys writable, or set it before: sysctl -w {flag}={value}"
                )
            }
            Error::Mismatch { flag, expected, .. } => format!(
                "set it: sysctl -w {flag}={expected}; or set protectKernelDefaults to false"
            ),
        }
    }
}

/// Makes the settings what they have to be, or says which are not. All are looked at. Returns those
/// that were changed.
pub fn apply(sysctls: &Sysctls, behavior: Behavior) -> Result<Vec<&'static str>, Vec<Error>> {
    let mut changed = Vec::new();
    let mut errors = Vec::new();
    for (flag, value) in TUNABLES {
        match apply_one(sysctls, flag, value, behavior) {
            Ok(true) => changed.push(flag),
            Ok(false) => {}
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() {
        Ok(changed)
    } else {
        Err(errors)
    }
}

fn apply_one(
    sysctls: &Sysctls,
    flag: &'static str,
    expected: i64,
    behavior: Behavior,
) -> Result<bool, Error> {
    let read = |text: String| {
        let wrong = |_| io::Error::from(io::ErrorKind::InvalidData);
        text.parse::<i64>().map_err(wrong)
    };
    let actual = sysctls
        .get(flag)
        .and_then(read)
        .map_err(|source| Error::Read { flag, source })?;
    match behavior {
        Behavior::Error if actual == expected => Ok(false),
        Behavior::Error => Err(Error::Mismatch {
            flag,
            expected,
            actual,
        }),
        Behavior::Modify => {
            sysctls
                .set(flag, &expected.to_string())
                .map_err(|source| Error::Write {
                    flag,
                    value: expected,
                    source,
                })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn machine() -> (tempfile::TempDir, Sysctls) {
        let dir = tempfile::tempdir().unwrap();
        for (flag, value) in TUNABLES {
            let path = dir.path().join("proc/sys").join(flag);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{value}\n")).unwrap();
        }
        let sysctls = Sysctls::new(dir.path(), dir.path());
        (dir, sysctls)
    }

    #[test]
    fn only_changed_sysctls_are_written() {
        let (dir, sysctls) = machine();
        fs::write(dir.path().join("proc/sys/kernel/panic"), "0\n").unwrap();
        assert_eq!(apply(&sysctls, Behavior::Modify).unwrap(), ["kernel/panic"]);
        assert!(apply(&sysctls, Behavior::Error).unwrap().is_empty());
    }

    #[test]
    fn protected_settings_are_named_and_left_alone() {
        let (dir, sysctls) = machine();
        let proc_sys = dir.path().join("proc/sys");
        fs::write(proc_sys.join("vm/overcommit_memory"), "0\n").unwrap();
        fs::remove_file(proc_sys.join("kernel/panic")).unwrap();
        let errors = apply(&sysctls, Behavior::Error).unwrap_err();
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "invalid kernel flag: vm/overcommit_memory, expected value: 1, actual value: 0",
                "failed to read kernel flag kernel/panic",
            ]
        );
        let text = fs::read_to_string(proc_sys.join("vm/overcommit_memory")).unwrap();
        assert_eq!(text, "0\n");
    }
}
