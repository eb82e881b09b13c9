//! What a node is told about evicting pods, beyond what its configuration has words for.

use clap::Args;
use plimsoll_core::eviction::MemorySource;
use plimsoll_core::quantity::Quantity;
use plimsoll_core::resources::Bytes;
use plimsoll_node::agent::EvictionChoice;
use plimsoll_node::eviction::Waking;
use plimsoll_node::eviction::protect::Protection;

/// Arguments about eviction.
#[derive(Debug, Args)]
pub(super) struct EvictionArguments {
    /// Look for shortage every ten seconds only, as a kubelet does; for comparison.
    #[arg(long)]
    poll_only: bool,

    /// Give evicted pods their grace even where the node runs dry before it is over, as a kubelet
    /// does.
    #[arg(long)]
    always_give_grace: bool,

    /// Evict a pod in every pass even where all pods together hold less memory than is short, as a
    /// kubelet does, instead of backing off.
    #[arg(long)]
    disable_eviction_back_off: bool,

    /// Where memory.available comes from: `workingSet`, as a kubelet's, calls active page cache
    /// used; `memAvailable` is what the kernel could hand out; `swapAware` adds free swap.
    #[arg(long, value_name = "SOURCE", default_value = "workingSet", value_parser = memory_source)]
    memory_signal: MemorySource,

    /// What the agent's own cgroup keeps however short memory is (memory.min, cgroup v2); 0 for
    /// nothing.
    #[arg(long, value_name = "QUANTITY", default_value = "64Mi")]
    agent_memory_min: Quantity,

    /// Do not protect the agent from running out of memory: neither its code, nor its cgroup, nor
    /// its place among those the kernel kills first.
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
        format!("one of {}", names.join(", "))
    })
}
