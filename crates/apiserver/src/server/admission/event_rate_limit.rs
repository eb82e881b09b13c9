//! EventRateLimit in the server: the buckets, and the key of an event in them.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use plimsoll_core::admission::event_rate_limit::{EventFacts, EventRateLimiter, EventRateLimits};
use serde_json::Value;

use super::Gate;
use crate::pointer::at;
use crate::status::Status;

/// The buckets; `None` without limits.
#[derive(Debug)]
pub(in crate::server) struct EventRates {
    started: Instant,
    limiter: Option<Mutex<EventRateLimiter>>,
}

impl EventRates {
    pub(in crate::server) fn new(limits: &EventRateLimits) -> EventRates {
        let has_limits = !limits.0.is_empty();
        EventRates {
            started: Instant::now(),
            limiter: has_limits.then(|| Mutex::new(EventRateLimiter::new(limits))),
        }
    }

    fn accept(&self, event: &EventFacts<'_>) -> Result<(), String> {
        let Some(limiter) = &self.limiter else {
            return Ok(());
        };
        let mut limiter = limiter.lock().unwrap_or_else(PoisonError::into_inner);
        let now = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        limiter.accept(now, event)
    }
}

impl Gate<'_> {
    /// Rejects events beyond the limits, in both of their encodings. A dry run costs nothing.
    pub(in crate::server) fn check_event_rate(&self, object: &Value) -> Result<(), Status> {
        let rates = &self.call.server.event_rates;
        let is_dry_run = || {
            self.call
                .query
                .first("dryRun")
                .is_some_and(|run| !run.is_empty())
        };
        if self.kind().kind != "Event" || rates.limiter.is_none() || is_dry_run() {
            return Ok(());
        }
        let (source, regarding) = match self.kind().group {
            "" => ("source", "involvedObject"),
            _ => ("deprecatedSource", "regarding"),
        };
        let text = |of: &str, field: &str| {
            let found = at(object, &format!("/{of}/{field}"));
            found.and_then(Value::as_str).unwrap_or_default()
        };
        let source_and_object = [
            text(source, "component"),
            text(source, "host"),
            text(regarding, "kind"),
            text(regarding, "namespace"),
            text(regarding, "name"),
            text(regarding, "uid"),
            text(regarding, "apiVersion"),
        ]
        .concat();
        let event = EventFacts {
            namespace: &self.call.target.namespace,
            user: &self.call.user.name,
            source_and_object: &source_and_object,
        };
        rates.accept(&event).map_err(|reason| {
            Status::new(
                429,
                "TooManyRequests",
                format!("Too many requests: {reason}"),
            )
        })
    }
}
