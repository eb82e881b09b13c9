//! A roll-out with all old pods gone before the first new one.

use crate::workloads::ownership::controller_of;
use crate::workloads::pod_state;

use super::rollout::{Plan, Progress, Rollout};
use super::status::is_complete;

impl Rollout<'_> {
    /// Empties the old sets, waits for their pods to end, then makes and fills the newest set.
    pub(super) fn recreate(mut self) -> Plan {
        let mut is_emptying = false;
        for index in self.active(self.old()) {
            is_emptying |= self.scale(index, 0);
        }
        if is_emptying || self.are_old_pods_running() {
            return self.finish(Progress::Estimated);
        }
        self.ensure_newest();
        if let Some(index) = self.newest {
            self.scale(index, self.wanted.replicas);
        }
        let status = self.view.deployment.status.clone().unwrap_or_default();
        if is_complete(&self, &status) {
            self.clean_up();
        }
        self.finish(Progress::Estimated)
    }

    /// A pod runs until its end is known, even if its set no longer counts it.
    fn are_old_pods_running(&self) -> bool {
        let counted = self.old().into_iter().any(|index| {
            let status = self.sets[index].found.status.as_ref();
            status.is_some_and(|status| status.replicas > 0)
        });
        let newest = self
            .newest
            .and_then(|index| self.sets[index].found.metadata.uid.as_deref());
        counted
            || self.view.pods.iter().any(|pod| {
                let owner = controller_of(&pod.metadata).map(|reference| reference.uid.as_str());
                (newest.is_none() || owner != newest) && !pod_state::is_terminal(pod)
            })
    }
}
