//! The text of an event, before it is known which component reports it, and how.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use super::timestamp::Timestamp;

/// The type of an event, as the API spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    /// As expected.
    Normal,
    /// A user may have to act.
    Warning,
}

impl EventType {
    /// As the API spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        }
    }
}

/// As the API spells it.
impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an event says of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The type of the event.
    pub event_type: EventType,
    /// The machine-readable reason, such as `ScalingReplicaSet`.
    pub reason: Cow<'static, str>,
    /// The human-readable message.
    pub message: String,
    /// The part of the object, such as `spec.containers{web}`.
    pub field_path: Option<String>,
    /// Annotations of the event, for programs, by name.
    pub annotations: BTreeMap<String, String>,
    /// When it happened, if that is known better than by when it is recorded. Recorded again, even
    /// by another process, it is then the same event.
    pub at: Option<Timestamp>,
}

impl Note {
    /// An event of type `Normal` about a whole object.
    pub fn normal(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Note {
        Note {
            event_type: EventType::Normal,
            reason: reason.into(),
            message: message.into(),
            field_path: None,
            annotations: BTreeMap::new(),
            at: None,
        }
    }

    /// An event of type `Warning` about a whole object.
    pub fn warning(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Note {
        Note {
            event_type: EventType::Warning,
            ..Note::normal(reason, message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_spelled_as_the_api_does() {
        assert_eq!(Note::normal("Created", "").event_type.to_string(), "Normal");
        assert_eq!(
            Note::warning("Failed", "").event_type.to_string(),
            "Warning"
        );
    }
}
