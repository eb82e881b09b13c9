//! Ending pods in order when the machine is switched off.
//!
//! logind announces a shutdown and waits for processes that hold an inhibitor lock; machines without it can
//! say the same with SIGPWR. Pods then end by priority, the least important first, each group with
//! its share of the time. Matches v1.36 pkg/kubelet/nodeshutdown.
//!
//! Reading order: [`plan`] (which pods end when, pure), `logind` (announcements), [`watch`] (ends the pods).

mod logind;
pub mod plan;
pub mod watch;
