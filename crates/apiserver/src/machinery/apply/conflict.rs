//! Conflicts between managers of a field.

use super::managers::Manager;
use super::path::{PathElement, show_path};
use crate::status::{Cause, Details, Status};

/// A field that another manager owns and the applied configuration changes.
#[derive(Clone, Debug)]
pub(super) struct Conflict {
    pub(super) manager: Manager,
    pub(super) path: Vec<PathElement>,
}

/// 409, with a cause per field. The conflicts come grouped by manager.
pub(super) fn refuse(conflicts: &[Conflict]) -> Status {
    let causes = conflicts.iter().map(|conflict| Cause {
        reason: "FieldManagerConflict",
        message: format!("conflict with {}", conflict.manager.describe()),
        field: show_path(&conflict.path),
    });
    Status::new(409, "Conflict", message(conflicts)).about(Details::of_causes(causes.collect()))
}

fn message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        return format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            only.manager.describe(),
            show_path(&only.path)
        );
    }
    let mut lines = Vec::new();
    let mut last: Option<&Manager> = None;
    for conflict in conflicts {
        if last != Some(&conflict.manager) {
            lines.push(format!("conflicts with {}:", conflict.manager.describe()));
            last = Some(&conflict.manager);
        }
        lines.push(format!("- {}", show_path(&conflict.path)));
    }
    format!(
        "Apply failed with {} conflicts: {}",
        conflicts.len(),
        lines.join("\n")
    )
}
