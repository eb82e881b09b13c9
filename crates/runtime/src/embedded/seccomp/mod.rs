//! System call filters: from OCI's profiles to programs that the kernel runs before each call.
//!
//! libcontainer would use libseccomp for this, a C library that nodes need not have.
//! The programs behave as those of runc: calls that are newer than anything a profile names do not
//! exist (`ENOSYS`), since programs try something older then, and do not when they are forbidden.

mod default;
mod numbers;
mod program;

use std::path::Path;

use libcontainer::oci_spec::runtime::{LinuxCapabilities, LinuxSeccomp, LinuxSeccompFilterFlag};
use serde::{Deserialize, Serialize};

pub(super) use default::profile as default_profile;
pub(super) use program::{Instruction, ProgramError};

/// Profiles that people write have some kilobytes.
const LONGEST_PROFILE: u64 = 1 << 20;

/// `SECCOMP_FILTER_FLAG_LOG` and `SECCOMP_FILTER_FLAG_SPEC_ALLOW`.
const LOG: u64 = 1 << 1;
const SPEC_ALLOW: u64 = 1 << 2;

/// A program for the kernel, and how to load it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Filter {
    pub(super) program: Vec<Instruction>,
    pub(super) flags: u64,
}

/// What is left to be done to the process of a container when libcontainer has done its part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Confinement {
    pub(super) filter: Filter,
    /// What it may keep. `None` where it has been brought down to that already: to load a filter
    /// takes `CAP_SYS_ADMIN`, unless the process cannot gain rights any more.
    pub(super) capabilities: Option<LinuxCapabilities>,
}

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProfileError {
    #[error("cannot load seccomp profile {path:?}: {source}")]
    Read {
        path: String,
        source: std::io::Error,
    },
    #[error("cannot load seccomp profile {path:?}: larger than {LONGEST_PROFILE} bytes")]
    TooLong { path: String },
    #[error("decoding seccomp profile failed {path:?}: {source}")]
    Decode {
        path: String,
        source: serde_json::Error,
    },
}

/// Whether the kernel has filters at all.
pub(super) fn is_supported() -> bool {
    Path::new("/proc/sys/kernel/seccomp/actions_avail").exists()
}

/// Reads a profile of the machine.
pub(super) fn read_profile(path: &str) -> Result<LinuxSeccomp, ProfileError> {
    let name = || path.to_owned();
    let unreadable = |source| ProfileError::Read {
        path: name(),
        source,
    };
    let length = std::fs::metadata(path).map_err(unreadable)?.len();
    if length > LONGEST_PROFILE {
        return Err(ProfileError::TooLong { path: name() });
    }
    let text = std::fs::read(path).map_err(unreadable)?;
    serde_json::from_slice(&text).map_err(|source| ProfileError::Decode {
        path: name(),
        source,
    })
}

/// The filter of a profile.
pub(super) fn filter(profile: &LinuxSeccomp) -> Result<Filter, ProgramError> {
    let flags = match profile.flags() {
        Some(flags) => flags.iter().map(flag).fold(0, |all, flag| all | flag),
        // As runc: a filter does not slow a process down more than it has to.
        None => SPEC_ALLOW,
    };
    Ok(Filter {
        program: program::compile(profile)?,
        flags,
    })
}

/// A process of one thread has no thread to synchronise with, and no notification to wait for.
fn flag(flag: &LinuxSeccompFilterFlag) -> u64 {
    match flag {
        LinuxSeccompFilterFlag::SeccompFilterFlagLog => LOG,
        LinuxSeccompFilterFlag::SeccompFilterFlagSpecAllow => SPEC_ALLOW,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
