//! Flags about eviction that a KubeletConfiguration has no fields for.

use clap::Args;
use plimsoll_core::eviction::MemorySource;
use plimsoll_core::quantity::Quantity;
use plimsoll_core::resources::Bytes;
use plimsoll_node::agent::EvictionChoice;
use plimsoll_node::eviction::Waking;
use plimsoll_node::eviction::protect::Protection;

use crate::help::EVICTION;

/// Arguments about eviction.
#[derive(Debug, Args)]
#[command(next_help_heading = EVICTION)]
pub(super) struct EvictionArguments {
    /// Check for pressure only every 10s, as a kubelet does.
    #[arg(long)]
    poll_only: bool,

    /// Always give evicted pods their grace period, as a kubelet does.
    ///
    /// By default the agent kills a pod at once if memory would run out during the grace period.
    #[arg(long)]
    always_give_grace: bool,

    /// Keep evicting pods when that cannot relieve memory pressure, as a kubelet does.
    ///
    /// By default the agent evicts one pod and backs off if all pods together hold less memory than
    /// is missing.
    #[arg(long)]
    disable_eviction_back_off: bool,

    /// Source of memory.available: `workingSet`, `memAvailable` or `swapAware`.
    ///
    /// `workingSet` counts active page cache as used, as a kubelet does; `memAvailable` is the
    /// kernel's estimate of what it can allocate; `swapAware` adds free swap.
    #[arg(long, value_name = "SOURCE", default_value = "workingSet", value_parser = memory_source)]
    memory_signal: MemorySource,

    /// Memory to protect for the agent's cgroup (memory.min, cgroup v2); 0 to disable.
    #[arg(long, value_name = "QUANTITY", default_value = "64Mi")]
    agent_memory_min: Quantity,

    /// Do not protect the agent from memory pressure.
    ///
    /// By default the agent locks its code in memory, sets memory.min of its cgroup, and lowers its
    /// oom_score_adj.
    #[arg(long)]
    unprotected: bool,
}

impl EvictionArguments {
    pub(super) fn choice(&self) -> EvictionChoice {
        let minimum = Bytes(self.agent_memory_min.value());
        EvictionChoice {
            waking: match self.poll_only {
                true => Waking::PollOnly,
                false => Waking::Events,
            },
            gives_grace_always: self.always_give_grace,
            back_off: !self.disable_eviction_back_off,
            memory_source: self.memory_signal,
            protection: match self.unprotected {
                true => Protection::NONE,
                false => Protection {
                    memory_min: Some(minimum).filter(|minimum| *minimum > Bytes::ZERO),
                    ..Protection::default()
                },
            },
        }
    }
}

fn memory_source(name: &str) -> Result<MemorySource, String> {
    MemorySource::from_name(name).ok_or_else(|| {
        let names = MemorySource::ALL.map(MemorySource::as_str);
        format!("expected one of {}", names.join(", "))
    })
}
