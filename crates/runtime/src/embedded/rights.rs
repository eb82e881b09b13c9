//! The capabilities and `oom_score_adj` of this process, which bound those of containers.

use std::fs;
use std::io;

/// The rights of the agent itself. If the agent runs in a container they may be
/// fewer than the kernel knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rights {
    /// One bit per capability, in the kernel's order.
    capabilities: u64,
    oom_score_adj: i64,
}

/// The place of `CAP_SYS_RESOURCE`.
const SYS_RESOURCE: u32 = 24;

impl Rights {
    pub(super) fn read() -> io::Result<Rights> {
        let status = fs::read_to_string("/proc/self/status")?;
        let adj = fs::read_to_string("/proc/self/oom_score_adj")?;
        let capabilities = parse_capabilities(&status);
        Ok(Rights {
            capabilities: capabilities.ok_or(io::ErrorKind::InvalidData)?,
            oom_score_adj: adj.trim().parse().map_err(io::Error::other)?,
        })
    }

    /// Whether it has the capability at that place in the kernel's order.
    pub(super) fn has(&self, place: usize) -> bool {
        u32::try_from(place).is_ok_and(|place| self.capabilities & (1 << place) != 0)
    }

    /// The nearest score to this one that the agent may write: without CAP_SYS_RESOURCE, a process
    /// cannot lower a score below its own.
    pub(super) fn oom_score_adj(&self, wanted: i64) -> i64 {
        if self.capabilities & (1 << SYS_RESOURCE) != 0 {
            wanted
        } else {
            wanted.max(self.oom_score_adj)
        }
    }

    #[cfg(test)]
    pub(super) fn all() -> Rights {
        Rights {
            capabilities: u64::MAX,
            oom_score_adj: 0,
        }
    }
}

fn parse_capabilities(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowering_oom_score_adj_needs_the_capability() {
        let capabilities = parse_capabilities("Name:\tx\nCapEff:\t000001fffeffffff\n").unwrap();
        let few = Rights {
            capabilities,
            oom_score_adj: -5,
        };
        assert!(few.has(0));
        assert!(!few.has(24));
        let scores = [-997, 3, 1000];
        assert_eq!(scores.map(|score| few.oom_score_adj(score)), [-5, 3, 1000]);
        assert_eq!(
            scores.map(|score| Rights::all().oom_score_adj(score)),
            scores
        );
    }
}
