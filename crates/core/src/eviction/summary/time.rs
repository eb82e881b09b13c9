//! Times as upstream writes them: RFC 3339, `null` for unknown. The year 1 is Go's unknown.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::object::timestamp::Timestamp;

const GO_ZERO: &str = "0001-01-01T00:00:00Z";

pub(in super::super) fn serialize<S: Serializer>(
    time: &Option<Timestamp>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    time.map(|time| time.to_string()).serialize(serializer)
}

pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let Some(text) = text.filter(|text| text != GO_ZERO) else {
        return Ok(None);
    };
    let time = Timestamp::from_rfc3339(&text);
    let wrong = || D::Error::custom(format!("{text:?} is no RFC 3339 time"));
    time.ok_or_else(wrong).map(Some)
}
