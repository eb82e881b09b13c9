//! An event of a controller about an object, before it is sent.

/// Whether an event is good or bad news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// As things should go.
    Normal,
    /// Something that needs attention.
    Warning,
}

/// The text of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Good news or bad.
    pub severity: Severity,
    /// The machine-readable reason, such as `ScalingReplicaSet`.
    pub reason: &'static str,
    /// The human-readable message.
    pub message: String,
}

impl Note {
    /// Something that went as it should.
    pub fn normal(reason: &'static str, message: impl Into<String>) -> Note {
        Note {
            severity: Severity::Normal,
            reason,
            message: message.into(),
        }
    }

    /// Something that needs attention.
    pub fn warning(reason: &'static str, message: impl Into<String>) -> Note {
        Note {
            severity: Severity::Warning,
            reason,
            message: message.into(),
        }
    }
}
