//! The fields of `KubeSchedulerConfiguration` v1, and how single ones are taken out of a tree.
//!
//! Every field of v1.36 staging/src/k8s.io/kube-scheduler/config/v1/types.go. A tree is checked as a
//! whole first; what is of the wrong type then reads as if it were absent.

use crate::config::document::{Node, ScalarValue};
use crate::config::shape::{Field, Shape};
use crate::duration::Duration;

/// The fields at the top.
pub(super) const CONFIGURATION: &[Field] = &[
    Field::new("apiVersion", Shape::Any),
    Field::new("kind", Shape::Any),
    Field::new("parallelism", Shape::Int32),
    Field::new("leaderElection", Shape::Record(LEADER_ELECTION)),
    Field::new("clientConnection", Shape::Record(CLIENT_CONNECTION)),
    Field::new("enableProfiling", Shape::Bool),
    Field::new("enableContentionProfiling", Shape::Bool),
    Field::new("percentageOfNodesToScore", Shape::Int32),
    Field::new("podInitialBackoffSeconds", Shape::Int64),
    Field::new("podMaxBackoffSeconds", Shape::Int64),
    Field::new("profiles", Shape::Records(PROFILE)),
    Field::new("extenders", Shape::Records(EXTENDER)),
    Field::new("delayCacheUntilActive", Shape::Bool),
    Field::new("healthzBindAddress", Shape::Any),
    Field::new("metricsBindAddress", Shape::Any),
];

/// Fields that older versions had and v1 has not.
pub(super) const REMOVED_FIELDS: [&str; 2] = ["healthzBindAddress", "metricsBindAddress"];

const LEADER_ELECTION: &[Field] = &[
    Field::new("leaderElect", Shape::Bool),
    Field::new("leaseDuration", Shape::Duration),
    Field::new("renewDeadline", Shape::Duration),
    Field::new("retryPeriod", Shape::Duration),
    Field::new("resourceLock", Shape::Text),
    Field::new("resourceName", Shape::Text),
    Field::new("resourceNamespace", Shape::Text),
];

const CLIENT_CONNECTION: &[Field] = &[
    Field::new("kubeconfig", Shape::Text),
    Field::new("acceptContentTypes", Shape::Text),
    Field::new("contentType", Shape::Text),
    Field::new("qps", Shape::Float),
    Field::new("burst", Shape::Int32),
];

const PROFILE: &[Field] = &[
    Field::new("schedulerName", Shape::Text),
    Field::new("percentageOfNodesToScore", Shape::Int32),
    Field::new("plugins", Shape::Record(PLUGINS)),
    // Checked plugin by plugin.
    Field::new("pluginConfig", Shape::Any),
];

const PLUGINS: &[Field] = &[
    Field::new("preEnqueue", Shape::Record(PLUGIN_SET)),
    Field::new("queueSort", Shape::Record(PLUGIN_SET)),
    Field::new("preFilter", Shape::Record(PLUGIN_SET)),
    Field::new("filter", Shape::Record(PLUGIN_SET)),
    Field::new("postFilter", Shape::Record(PLUGIN_SET)),
    Field::new("preScore", Shape::Record(PLUGIN_SET)),
    Field::new("score", Shape::Record(PLUGIN_SET)),
    Field::new("reserve", Shape::Record(PLUGIN_SET)),
    Field::new("permit", Shape::Record(PLUGIN_SET)),
    Field::new("preBind", Shape::Record(PLUGIN_SET)),
    Field::new("bind", Shape::Record(PLUGIN_SET)),
    Field::new("postBind", Shape::Record(PLUGIN_SET)),
    Field::new("multiPoint", Shape::Record(PLUGIN_SET)),
    Field::new("placementGenerate", Shape::Record(PLUGIN_SET)),
    Field::new("placementScore", Shape::Record(PLUGIN_SET)),
];

const PLUGIN_SET: &[Field] = &[
    Field::new("enabled", Shape::Records(PLUGIN)),
    Field::new("disabled", Shape::Records(PLUGIN)),
];

const PLUGIN: &[Field] = &[
    Field::new("name", Shape::Text),
    Field::new("weight", Shape::Int32),
];

const EXTENDER: &[Field] = &[
    Field::new("urlPrefix", Shape::Text),
    Field::new("filterVerb", Shape::Text),
    Field::new("preemptVerb", Shape::Text),
    Field::new("prioritizeVerb", Shape::Text),
    Field::new("weight", Shape::Int64),
    Field::new("bindVerb", Shape::Text),
    Field::new("enableHTTPS", Shape::Bool),
    Field::new("tlsConfig", Shape::Record(TLS_CONFIG)),
    Field::new("httpTimeout", Shape::Duration),
    Field::new("nodeCacheCapable", Shape::Bool),
    Field::new("managedResources", Shape::Records(MANAGED_RESOURCE)),
    Field::new("ignorable", Shape::Bool),
];

const TLS_CONFIG: &[Field] = &[
    Field::new("insecure", Shape::Bool),
    Field::new("serverName", Shape::Text),
    Field::new("certFile", Shape::Text),
    Field::new("keyFile", Shape::Text),
    Field::new("caFile", Shape::Text),
    Field::new("certData", Shape::Text),
    Field::new("keyData", Shape::Text),
    Field::new("caData", Shape::Text),
];

const MANAGED_RESOURCE: &[Field] = &[
    Field::new("name", Shape::Text),
    Field::new("ignoredByScheduler", Shape::Bool),
];

/// An object of the tree, or none, whose fields are taken out one by one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object<'a>(pub(super) Option<&'a Node>);

impl<'a> Object<'a> {
    pub(super) fn get(self, key: &str) -> Option<&'a Node> {
        self.0?.get(key)
    }

    pub(super) fn object(self, key: &str) -> Object<'a> {
        Object(self.get(key))
    }

    pub(super) fn items(self, key: &str) -> &'a [Node] {
        let items = self.get(key).and_then(Node::as_sequence);
        items.unwrap_or_default()
    }

    pub(super) fn text(self, key: &str) -> Option<&'a str> {
        self.get(key)?.as_text()
    }

    pub(super) fn boolean(self, key: &str) -> Option<bool> {
        match self.get(key)?.as_scalar()? {
            ScalarValue::Bool(value) => Some(value),
            _ => None,
        }
    }

    pub(super) fn int64(self, key: &str) -> Option<i64> {
        self.get(key)?.as_scalar()?.as_integer()
    }

    pub(super) fn int32(self, key: &str) -> Option<i32> {
        i32::try_from(self.int64(key)?).ok()
    }

    pub(super) fn float(self, key: &str) -> Option<f64> {
        self.get(key)?.as_scalar()?.as_float()
    }

    pub(super) fn duration(self, key: &str) -> Option<Duration> {
        self.text(key)?.parse().ok()
    }
}
