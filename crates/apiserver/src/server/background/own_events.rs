//! Events that the server itself records: what happens to its store.

use std::sync::{Arc, Weak};
use std::time::Duration;

use plimsoll_client::supervision::Weight;
use plimsoll_core::object::event::Note;
use plimsoll_core::object::syntax::is_dns_label;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::bootstrap::completed;
use crate::cache::{self, Finding, Findings};
use crate::kinds::{self, Kind};
use crate::server::Server;
use crate::server::objects::write::EVENT_TTL;
use crate::server::request::call::time_text;
use crate::server::request::respond;
use crate::store::{Error, Txn};

/// Between two attempts to record an event.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// How long a message may be: as upstream's server has it (pkg/apis/core/validation/events.go).
const MAX_MESSAGE: usize = 1024;

/// How long a name may be. What is stored past the server can have a longer one.
const MAX_NAME: usize = 253;

/// An event.
pub(in crate::server) struct OwnEvent {
    /// The object, with its namespace or without.
    pub(in crate::server) regarding: Value,
    pub(in crate::server) note: Note,
}

impl Server {
    /// Stores an event: also on a full disk, if it is urgent.
    pub(in crate::server) async fn record(
        &self,
        event: OwnEvent,
        is_urgent: bool,
    ) -> Result<(), Error> {
        let Some(kind) = kinds::by_resource("", "v1", "events") else {
            return Ok(());
        };
        let now = time_text(respond::now());
        let namespace = event.regarding["namespace"].as_str().unwrap_or("default");
        let event = json!({
            "metadata": {
                "name": format!("store.{}", crate::server::objects::identity::uid()),
                "namespace": namespace,
            },
            "involvedObject": event.regarding,
            "type": event.note.event_type.as_str(),
            "reason": event.note.reason,
            "message": cut(&event.note.message, MAX_MESSAGE),
            "source": {"component": "plimsoll-server"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        });
        let event = completed(kind, event);
        let Ok((key, _)) = self.place(kind, &event) else {
            return Ok(());
        };
        let txn = Txn::new().put_for(EVENT_TTL, key, cache::encode(&event));
        let txn = if is_urgent { txn.urgent() } else { txn };
        self.store.txn(txn).await.map(|_| ())
    }
}

/// Records an event for each stored object that cannot be read, until the server is dropped or stops.
pub(in crate::server) fn follow_unreadable(server: &Arc<Server>) {
    let weak = Arc::downgrade(server);
    let stop = server.supervisor.stopping().clone();
    let findings = Arc::clone(server.cache.findings());
    server
        .supervisor
        .keep("storage-decode-errors", Weight::Minor, move || {
            let (server, stop) = (weak.clone(), stop.clone());
            let findings = Arc::clone(&findings);
            async move {
                let recording = record_all(server, &findings, &stop);
                stop.run_until_cancelled(recording).await;
                Ok(())
            }
        });
}

async fn record_all(server: Weak<Server>, findings: &Findings, stop: &CancellationToken) {
    while let Some(found) = findings.next().await {
        loop {
            let Some(server) = server.upgrade() else {
                return;
            };
            let Err(error) = server.record(unreadable(&found), false).await else {
                break;
            };
            let reason = FAILED_DECODE;
            tracing::warn!(reason, key = &*found.key, %error, "event not stored");
            if !error.is_retryable() {
                break;
            }
            drop(server);
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }
    // Nothing is found any more: the cache is gone, and the server with it.
    stop.cancelled().await;
}

/// The reason of events about objects that nothing acts on.
const UNSUPPORTED: &str = "Unsupported";

/// Records an event for a new object if nothing acts on it. The caller has got the same text as a
/// warning, so a failure is only logged.
pub(in crate::server) async fn record_inert(server: &Server, kind: &Kind, object: &Value) {
    let Some(message) = kind.inert_warning() else {
        return;
    };
    let meta = &object["metadata"];
    let mut regarding = json!({
        "apiVersion": kind.api_version(), "kind": kind.kind, "name": meta["name"], "uid": meta["uid"],
    });
    if kind.is_namespaced() {
        regarding["namespace"] = meta["namespace"].clone();
    }
    let event = OwnEvent {
        regarding,
        note: Note::warning(UNSUPPORTED, message),
    };
    if let Err(error) = server.record(event, false).await {
        tracing::debug!(reason = UNSUPPORTED, kind = kind.kind, %error, "event not stored");
    }
}

/// The reason of events that name an object which cannot be read.
const FAILED_DECODE: &str = "FailedDecode";

fn unreadable(found: &Finding) -> OwnEvent {
    let kind = found.kind;
    let mut regarding = json!({"apiVersion": kind.api_version(), "kind": kind.kind});
    let name = match found.key.split_once('/') {
        Some((namespace, name)) if kind.is_namespaced() && is_dns_label(namespace) => {
            regarding["namespace"] = json!(namespace);
            name
        }
        _ => &found.key,
    };
    regarding["name"] = json!(cut(name, MAX_NAME));
    OwnEvent {
        regarding,
        note: Note::warning(
            FAILED_DECODE,
            format!(
                "The stored object {} {} cannot be read and is left out of lists and watches: {}",
                kind.group_resource(),
                cut(&found.key, 2 * MAX_NAME),
                found.problem,
            ),
        ),
    }
}

/// The beginning of a text.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(api_version: &str, kind: &str, key: &str) -> OwnEvent {
        unreadable(&Finding {
            kind: kinds::by_kind(api_version, kind).unwrap(),
            key: key.into(),
            problem: "not JSON".to_owned(),
        })
    }

    #[test]
    fn event_names_the_object_and_why_it_cannot_be_read() {
        let event = event("apps/v1", "Deployment", "shop/web");
        let regarding = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop",
            "name": "web"});
        assert_eq!(event.regarding, regarding);
        assert_eq!(
            event.note.message,
            "The stored object deployments.apps shop/web cannot be read and is left out of lists and \
             watches: not JSON"
        );
    }

    #[test]
    fn event_is_made_for_invalid_keys() {
        let long = format!("default/{}", "ä".repeat(1000));
        for (kind, key) in [
            ("Pod", "no-namespace"),
            ("Pod", "A b/c"),
            ("Pod", ""),
            ("Node", "a/b"),
        ] {
            let event = event("v1", kind, key);
            assert_eq!(event.regarding["name"], key);
            assert!(event.regarding["namespace"].is_null(), "{key}");
        }
        let event = event("v1", "Pod", &long);
        assert!(event.regarding["name"].as_str().unwrap().len() <= MAX_NAME);
        assert!(event.note.message.len() <= MAX_MESSAGE);
    }
}
