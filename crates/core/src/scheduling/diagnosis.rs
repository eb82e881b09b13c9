//! The message for users when no node is feasible.

use std::collections::BTreeMap;

use super::plugin_names::Rejection;

/// The reasons for which nodes were rejected, with how many nodes each holds for.
///
/// Matches v1.36 pkg/scheduler/framework/types.go, `FitError`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnosis {
    node_count: usize,
    pre_filter: Option<String>,
    reasons: BTreeMap<String, usize>,
}

impl Diagnosis {
    /// Nothing known yet of so many nodes.
    pub fn new(node_count: usize) -> Diagnosis {
        Diagnosis {
            node_count,
            ..Diagnosis::default()
        }
    }

    /// All nodes are rejected for the same reasons, before any was looked at.
    #[must_use]
    pub fn before_any_node(mut self, rejection: &Rejection) -> Diagnosis {
        self.pre_filter = Some(rejection.reasons.join(", "));
        self
    }

    /// So many nodes are rejected for these reasons.
    pub fn add(&mut self, rejection: &Rejection, nodes: usize) {
        for reason in &rejection.reasons {
            match self.reasons.get_mut(reason.as_ref()) {
                Some(known) => *known += nodes,
                None => {
                    self.reasons.insert(reason.to_string(), nodes);
                }
            }
        }
    }

    /// The message of the `FailedScheduling` event and the `PodScheduled` condition.
    ///
    /// `post_filter` is what the search for victims has to say. Reasons are sorted as texts, so
    /// that ten nodes stand before two.
    pub fn message(&self, post_filter: &str) -> String {
        let mut message = format!("0/{} nodes are available:", self.node_count);
        match &self.pre_filter {
            Some(text) => message.push_str(&format!(" {text}.")),
            None => {
                let reasons = self.reasons.iter().filter(|(_, nodes)| **nodes > 0);
                let mut reasons: Vec<String> = reasons
                    .map(|(reason, nodes)| format!("{nodes} {reason}"))
                    .collect();
                reasons.sort_unstable();
                if !reasons.is_empty() {
                    message.push_str(&format!(" {}.", reasons.join(", ")));
                }
            }
        }
        if !post_filter.is_empty() {
            message.push_str(&format!(" {post_filter}"));
        }
        message
    }
}

/// The message as an event carries it: at most 1024 bytes.
///
/// Matches v1.36 pkg/scheduler/schedule_one.go, `truncateMessage`.
pub fn event_note(message: &str) -> String {
    const LONGEST: usize = 1024;
    const SUFFIX: &str = " ...";
    if message.len() <= LONGEST {
        return message.to_owned();
    }
    // Upstream cuts between bytes; here a character that would be cut in two is left out.
    let mut end = LONGEST - SUFFIX.len();
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{SUFFIX}", &message[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_and_sorted_as_texts() {
        let mut diagnosis = Diagnosis::new(12);
        diagnosis.add(&Rejection::by_no_plugin("b"), 10);
        diagnosis.add(&Rejection::by_no_plugin("a"), 2);
        assert_eq!(
            diagnosis.message("more"),
            "0/12 nodes are available: 10 b, 2 a. more"
        );
        let diagnosis = diagnosis.before_any_node(&Rejection::by_no_plugin("c"));
        assert_eq!(diagnosis.message(""), "0/12 nodes are available: c.");
        assert_eq!(Diagnosis::new(0).message(""), "0/0 nodes are available:");
    }

    #[test]
    fn long_messages_are_cut_for_events() {
        assert_eq!(event_note("short"), "short");
        let note = event_note(&"é".repeat(600));
        assert!(note.len() <= 1024);
        assert!(note.ends_with("é ..."));
    }
}
