//! Which node a pod goes to, and which pods make room for it: the default scheduler of v1.36.
//!
//! Everything here is a function of a [`cluster::Cluster`], a [`profile::Profile`] and a pod. Chance
//! has no part in it: where upstream leaves a choice to chance, [`tie_break`] decides by a seed.
//!
//! Reading order:
//! 1. [`pod`] – what a pod requests, parsed once.
//! 2. [`cluster`] – nodes, the pods on them and what else decides, kept from events.
//! 3. [`plugin_names`] – names of plugins, codes and reasons of rejections; [`registry`] – every plugin
//!    that can be named.
//! 4. [`profile`] – which plugins, with which weights and arguments.
//! 5. [`plugins`] – one file per plugin.
//! 6. [`filters`] and [`scores`] – all plugins of a profile together.
//! 7. [`diagnosis`], [`filter_results`], [`tie_break`] – what users read; the verdicts on all nodes;
//!    which of equals is taken.
//! 8. [`preemption`] – which pods make room.
//! 9. [`decision`] – what becomes of a pod.
//! 10. [`mod@reference`] – the plain engine that looks at everything.
//! 11. [`indexed`] – the engine that looks at what has changed, with the same answers.
//! 12. [`explain`] – verdicts and scores on request.
//! 13. [`queue`] – which pod is next.
//! 14. [`configuration`] – all of it from a `KubeSchedulerConfiguration` file.

pub mod cluster;
pub mod configuration;
pub mod decision;
pub mod diagnosis;
pub mod explain;
pub mod filter_results;
pub mod filters;
pub mod indexed;
pub mod plugin_names;
pub mod plugins;
pub mod pod;
pub mod preemption;
pub mod profile;
pub mod queue;
pub mod reference;
pub mod registry;
pub mod scores;
pub mod tie_break;
