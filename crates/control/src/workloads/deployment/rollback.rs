//! Rollback to an earlier revision, as clients of an early API request it. Today's `kubectl
//! rollout undo` writes the old template itself.

use plimsoll_core::object::event::Note;

use super::annotations::{self, ROLLBACK_TO};
use super::revision::is_same_template;
use super::rollout::{Action, Plan, Rollout};

impl Rollout<'_> {
    /// The requested revision; zero means the one before.
    pub(super) fn requested_rollback(&self) -> Option<i64> {
        annotations::get(&self.view.deployment.metadata, ROLLBACK_TO)?
            .parse()
            .ok()
    }

    /// Takes the template and the annotations of that revision back, and the question away.
    pub(super) fn roll_back(mut self, revision: i64) -> Plan {
        self.find_newest();
        let revision = match revision {
            0 => self.last_revision(),
            given => given,
        };
        let note = match revision {
            0 => Note::warning(NOT_FOUND, "Unable to find last revision."),
            revision => self.restore(revision),
        };
        let mut deployment = self.deployment.clone();
        // The status is not written by this, and what was computed for it is not known to be so.
        deployment.status.clone_from(&self.view.deployment.status);
        if let Some(annotations) = &mut deployment.metadata.annotations {
            annotations.remove(ROLLBACK_TO);
        }
        Plan {
            actions: vec![Action::UpdateDeployment(Box::new(deployment), vec![note])],
            ..Plan::default()
        }
    }

    fn restore(&mut self, revision: i64) -> Note {
        let set = self
            .sets
            .iter()
            .find(|set| annotations::revision(&set.desired.metadata) == Some(revision));
        let template = set.and_then(|set| set.found.spec.as_ref()?.template.as_ref());
        let (Some(set), Some(template), Some(spec)) = (set, template, &mut self.deployment.spec)
        else {
            return Note::warning(NOT_FOUND, "Unable to find the revision to rollback to.");
        };
        let name = self
            .view
            .deployment
            .metadata
            .name
            .as_deref()
            .unwrap_or_default();
        if is_same_template(template, &spec.template) {
            let message = format!(
                "The rollback revision contains the same template as current deployment {name:?}"
            );
            return Note::warning("DeploymentRollbackTemplateUnchanged", message);
        }
        spec.template = template.clone();
        if let Some(labels) = spec
            .template
            .metadata
            .as_mut()
            .and_then(|m| m.labels.as_mut())
        {
            labels.remove("pod-template-hash");
        }
        let restored = annotations::restored(&self.deployment.metadata, &set.found.metadata);
        self.deployment.metadata.annotations = Some(restored);
        Note::normal(
            "DeploymentRollback",
            format!("Rolled back deployment {name:?} to revision {revision}"),
        )
    }

    /// The second highest revision; zero if there is none.
    fn last_revision(&self) -> i64 {
        let revisions = self
            .sets
            .iter()
            .filter_map(|set| annotations::revision(&set.desired.metadata));
        let mut revisions: Vec<i64> = revisions.collect();
        revisions.sort_unstable();
        revisions.iter().rev().nth(1).copied().unwrap_or(0).max(0)
    }
}

const NOT_FOUND: &str = "DeploymentRollbackRevisionNotFound";
