//! The audit metrics, under upstream's names.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::policy::Level;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PluginLabel {
    plugin: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LevelLabel {
    level: &'static str,
}

/// The counters.
#[derive(Clone, Debug, Default)]
pub(in crate::server) struct Counters {
    events: Counter,
    errors: Family<PluginLabel, Counter>,
    levels: Family<LevelLabel, Counter>,
    rejected: Counter,
}

impl Counters {
    pub(in crate::server) fn register(&self, registry: &mut Registry) {
        registry.register(
            "apiserver_audit_event",
            "Counter of audit events generated and sent to the audit backend",
            self.events.clone(),
        );
        registry.register(
            "apiserver_audit_error",
            "Counter of audit events that failed to be audited properly. Plugin identifies the \
             plugin affected by the error",
            self.errors.clone(),
        );
        registry.register(
            "apiserver_audit_level",
            "Counter of policy levels for audit events (1 per request)",
            self.levels.clone(),
        );
        registry.register(
            "apiserver_audit_requests_rejected",
            "Counter of apiserver requests rejected due to an error in audit logging backend",
            self.rejected.clone(),
        );
    }

    /// Counts an event that is about to be written.
    pub(super) fn event(&self) {
        self.events.inc();
    }

    /// Counts an event that is lost.
    pub(super) fn failed(&self) {
        self.errors
            .get_or_create(&PluginLabel { plugin: "log" })
            .inc();
    }

    /// Counts a request of that level.
    pub(super) fn level(&self, level: Level) {
        let level = level.as_str();
        self.levels.get_or_create(&LevelLabel { level }).inc();
    }

    /// Counts a request that is rejected because its event cannot be written.
    pub(super) fn rejected(&self) {
        self.rejected.inc();
    }
}
