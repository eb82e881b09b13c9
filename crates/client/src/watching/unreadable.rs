//! Counts objects that could not be read, which loops work without.

use std::sync::OnceLock;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::raw_object::Text;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    resource: String,
}

struct Metrics {
    registry: Registry,
    decode_errors: Family<Labels, Counter>,
}

/// The metrics of this process about its watches.
pub fn metrics() -> &'static Registry {
    &counted().registry
}

fn counted() -> &'static Metrics {
    static COUNTED: OnceLock<Metrics> = OnceLock::new();
    COUNTED.get_or_init(|| {
        let decode_errors = Family::<Labels, Counter>::default();
        let mut registry = Registry::with_prefix("reflector");
        registry.register(
            "decode_errors",
            "Total number of objects that the API server sent and that could not be read, by resource",
            decode_errors.clone(),
        );
        Metrics {
            registry,
            decode_errors,
        }
    })
}

/// Logs and counts an object that is skipped. `objects` is the URL of its collection.
pub(super) fn leave_out(text: &Text, objects: &str, error: &serde_json::Error) {
    tracing::warn!(objects, name = text.name(), %error, "skipped unreadable object");
    let resource = objects.rsplit('/').next().unwrap_or_default().to_owned();
    let labels = Labels { resource };
    counted().decode_errors.get_or_create(&labels).inc();
}

/// How often objects of a resource have been left out.
#[cfg(test)]
pub(super) fn count_of(resource: &str) -> u64 {
    let resource = resource.to_owned();
    let labels = Labels { resource };
    counted().decode_errors.get_or_create(&labels).get()
}
