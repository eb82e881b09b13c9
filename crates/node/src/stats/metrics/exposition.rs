//! Prometheus' text format, version 0.0.4.

use std::fmt::Write;

use plimsoll_core::object::timestamp::Timestamp;

/// What to answer with.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What becomes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// A text in the making. Samples of one name follow each other.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
}

/// The samples of one name. Its title is written with the first.
#[derive(Debug)]
pub(super) struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
    kind: Kind,
    help: &'a str,
    is_begun: bool,
}

impl Exposition {
    pub(super) fn family<'a>(
        &'a mut self,
        name: &'static str,
        kind: Kind,
        help: &'a str,
    ) -> Family<'a> {
        Family {
            text: &mut self.text,
            name,
            kind,
            help,
            is_begun: false,
        }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

impl Family<'_> {
    /// Adds a sample. Labels are as [`Labels`](super::labels::Labels) writes them.
    pub(super) fn add(&mut self, labels: &str, value: f64, time: Option<Timestamp>) {
        let Family {
            text, name, help, ..
        } = self;
        // Writing to a text cannot fail.
        if !self.is_begun {
            self.is_begun = true;
            let kind = match self.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            };
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        }
        let _ = match labels {
            "" => write!(text, "{name} {value}"),
            labels => write!(text, "{name}{{{labels}}} {value}"),
        };
        if let Some(time) = time {
            let millis = time.as_nanos().div_euclid(1_000_000);
            let _ = write!(text, " {millis}");
        }
        text.push('\n');
    }
}

/// A count as a sample; beyond 2^53 the last digits are lost, as upstream's are.
#[expect(clippy::cast_precision_loss, reason = "samples are floats")]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}

/// Nanoseconds as seconds.
pub(super) fn seconds(nanos: u64) -> f64 {
    float(nanos) / 1e9
}

/// A time as seconds since 1970.
#[expect(clippy::cast_precision_loss, reason = "samples are floats")]
pub(super) fn unix_seconds(time: Timestamp) -> f64 {
    time.as_nanos() as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_header_is_written_once_and_only_with_samples() {
        let mut text = Exposition::default();
        text.family("none", Kind::Gauge, "Nothing");
        let mut family = text.family("a_total", Kind::Counter, "Some of it");
        family.add("", 1.5, None);
        family.add("b=\"c\"", 2.0, Some(Timestamp::from_secs(3)));
        assert_eq!(
            text.into_text(),
            "# HELP a_total Some of it\n# TYPE a_total counter\n\
             a_total 1.5\na_total{b=\"c\"} 2 3000\n"
        );
    }
}
