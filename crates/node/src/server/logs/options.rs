//! Which part of a log is requested.

use std::time::Duration;

use http::StatusCode;
use plimsoll_core::object::timestamp::Timestamp;

use crate::server::query::Query;

/// The streams whose lines are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Streams {
    #[default]
    All,
    Stdout,
    Stderr,
}

/// The options of `kubectl logs`, ready to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LogOptions {
    pub(super) follow: bool,
    pub(super) previous: bool,
    pub(super) timestamps: bool,
    /// Lines before this are left out.
    pub(super) since: Option<Timestamp>,
    pub(super) tail_lines: Option<u64>,
    pub(super) limit_bytes: Option<u64>,
    pub(super) streams: Streams,
}

/// Why the options cannot be used, in upstream's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("{{\"message\": \"Unable to decode query.\"}}")]
    Malformed,
    #[error("{{\"message\": \"Invalid request.\"}}")]
    Invalid,
}

impl Refusal {
    pub(super) fn code(self) -> StatusCode {
        match self {
            Refusal::Malformed => StatusCode::BAD_REQUEST,
            Refusal::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }
}

impl LogOptions {
    pub(super) fn read(query: &Query, now: Timestamp) -> Result<LogOptions, Refusal> {
        let tail_lines = match query.first("tail").filter(|tail| !tail.is_empty()) {
            Some("all") => None,
            Some(tail) => Some(integer(tail)?),
            None => query.first("tailLines").map(integer).transpose()?,
        };
        let limit_bytes = query.first("limitBytes").map(integer).transpose()?;
        let since_seconds = query.first("sinceSeconds").map(integer).transpose()?;
        let since_time = query.first("sinceTime").map(time).transpose()?.flatten();
        let streams = match query.first("stream") {
            None | Some("All") => Streams::All,
            Some("Stdout") => Streams::Stdout,
            Some("Stderr") => Streams::Stderr,
            Some(_) => return Err(Refusal::Invalid),
        };
        if tail_lines.is_some() && streams != Streams::All {
            return Err(Refusal::Invalid);
        }
        let since = match (since_seconds, since_time) {
            (Some(_), Some(_)) => return Err(Refusal::Invalid),
            (Some(seconds), None) => Some(ago(now, at_least(seconds, 1)?)),
            (None, time) => time,
        };
        let bounded = |value: Option<i64>, least| value.map(|v| at_least(v, least)).transpose();
        Ok(LogOptions {
            follow: flag(query, "follow"),
            previous: flag(query, "previous"),
            timestamps: flag(query, "timestamps"),
            since,
            tail_lines: bounded(tail_lines, 0)?,
            limit_bytes: bounded(limit_bytes, 1)?,
            streams,
        })
    }
}

/// Anything but `0` and `false` is a yes, even nothing.
fn flag(query: &Query, name: &str) -> bool {
    let value = query.first(name);
    value.is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
}

fn integer(text: &str) -> Result<i64, Refusal> {
    text.parse().map_err(|_| Refusal::Malformed)
}

fn at_least(value: i64, least: i64) -> Result<u64, Refusal> {
    let value = (value >= least).then_some(value).ok_or(Refusal::Invalid)?;
    u64::try_from(value).map_err(|_| Refusal::Invalid)
}

fn time(text: &str) -> Result<Option<Timestamp>, Refusal> {
    if text.is_empty() || text == "null" {
        return Ok(None);
    }
    let time = Timestamp::from_rfc3339(text);
    time.map(Some).ok_or(Refusal::Malformed)
}

fn ago(now: Timestamp, seconds: u64) -> Timestamp {
    let nanos = Duration::from_secs(seconds).as_nanos();
    let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
    Timestamp::from_nanos(now.as_nanos().saturating_sub(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<LogOptions, Refusal> {
        LogOptions::read(&Query::parse(query), Timestamp::from_secs(1000))
    }

    #[test]
    fn options_are_read_as_upstream_reads_them() {
        let none = LogOptions::default();
        let cases = [
            ("", none),
            (
                "follow=true&previous=1&timestamps",
                LogOptions {
                    follow: true,
                    previous: true,
                    timestamps: true,
                    ..none
                },
            ),
            ("follow=false&previous=0&timestamps=FALSE", none),
            (
                "tailLines=0&limitBytes=7",
                LogOptions {
                    tail_lines: Some(0),
                    limit_bytes: Some(7),
                    ..none
                },
            ),
            (
                "tail=3&tailLines=9",
                LogOptions {
                    tail_lines: Some(3),
                    ..none
                },
            ),
            ("tail=all", none),
            (
                "sinceSeconds=10",
                LogOptions {
                    since: Some(Timestamp::from_secs(990)),
                    ..none
                },
            ),
            (
                "sinceTime=1970-01-01T00:00:05Z",
                LogOptions {
                    since: Some(Timestamp::from_secs(5)),
                    ..none
                },
            ),
            (
                "stream=Stderr",
                LogOptions {
                    streams: Streams::Stderr,
                    ..none
                },
            ),
        ];
        for (query, expected) in cases {
            assert_eq!(read(query), Ok(expected), "{query}");
        }
    }

    #[test]
    fn invalid_log_options_are_refused() {
        let cases = [
            ("tailLines=x", Refusal::Malformed),
            ("sinceTime=yesterday", Refusal::Malformed),
            ("tailLines=-1", Refusal::Invalid),
            ("limitBytes=0", Refusal::Invalid),
            ("sinceSeconds=0", Refusal::Invalid),
            (
                "sinceSeconds=1&sinceTime=1970-01-01T00:00:05Z",
                Refusal::Invalid,
            ),
            ("stream=Other", Refusal::Invalid),
            ("stream=Stdout&tailLines=1", Refusal::Invalid),
        ];
        for (query, expected) in cases {
            assert_eq!(read(query), Err(expected), "{query}");
        }
        assert_eq!(Refusal::Invalid.code().as_u16(), 422);
        let text = Refusal::Malformed.to_string();
        assert_eq!(text, r#"{"message": "Unable to decode query."}"#);
    }
}
