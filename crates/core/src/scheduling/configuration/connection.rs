//! Leader election and the connection to the API server: read and checked here, used by the process
//! that runs the scheduler.
//!
//! Matches v1.36 staging/src/k8s.io/component-base/config: v1alpha1/defaults.go and
//! validation/validation.go, with the scheduler's own defaults.

use crate::duration::Duration;
use crate::problem::Problem;

use super::fields::Object;

/// Which of several schedulers is the one that acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderElection {
    /// Whether they elect one at all.
    pub leader_elect: bool,
    /// How long others wait for a leader that no longer renews.
    pub lease_duration: Duration,
    /// How long the leader tries to renew before it gives up.
    pub renew_deadline: Duration,
    /// The time between tries.
    pub retry_period: Duration,
    /// The kind of object that is held; only `leases` is supported.
    pub resource_lock: String,
    /// Its name.
    pub resource_name: String,
    /// Its namespace.
    pub resource_namespace: String,
}

impl Default for LeaderElection {
    fn default() -> LeaderElection {
        LeaderElection {
            leader_elect: true,
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            resource_lock: "leases".to_owned(),
            resource_name: "kube-scheduler".to_owned(),
            resource_namespace: "kube-system".to_owned(),
        }
    }
}

impl LeaderElection {
    /// Zero and empty are as good as absent.
    pub(super) fn read(object: Object<'_>) -> LeaderElection {
        let default = LeaderElection::default();
        let duration = |key: &str, default: Duration| {
            let stated = object.duration(key);
            stated
                .filter(|stated| *stated != Duration::ZERO)
                .unwrap_or(default)
        };
        LeaderElection {
            leader_elect: object
                .boolean("leaderElect")
                .unwrap_or(default.leader_elect),
            lease_duration: duration("leaseDuration", default.lease_duration),
            renew_deadline: duration("renewDeadline", default.renew_deadline),
            retry_period: duration("retryPeriod", default.retry_period),
            resource_lock: text(object, "resourceLock", default.resource_lock),
            resource_name: text(object, "resourceName", default.resource_name),
            resource_namespace: text(object, "resourceNamespace", default.resource_namespace),
        }
    }

    pub(super) fn check(&self, problems: &mut Vec<Problem>) {
        if !self.leader_elect {
            return;
        }
        let mut invalid = |field: &str, value: &str, rule: &str| {
            let path = format!("leaderElection.{field}");
            problems.push(Problem::invalid(path, value, rule));
        };
        for (field, duration) in [
            ("leaseDuration", self.lease_duration),
            ("renewDeadline", self.renew_deadline),
            ("retryPeriod", self.retry_period),
        ] {
            if duration <= Duration::ZERO {
                invalid(field, &duration.to_string(), "must be greater than zero");
            }
        }
        if self.lease_duration <= self.renew_deadline {
            // The value that upstream shows is the deadline's.
            let shown = self.renew_deadline.to_string();
            let rule = "must be greater than `RenewDeadline`";
            invalid("leaseDuration", &shown, rule);
        }
        if self.resource_lock != "leases" {
            let rule = "resourceLock value must be \"leases\"";
            invalid("resourceLock", &self.resource_lock, rule);
        }
    }
}

/// How to talk to the API server.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientConnection {
    /// The file that names the server and the credentials; empty for a pod's own service account.
    pub kubeconfig: String,
    /// Content types that are accepted; empty for the one that is sent.
    pub accept_content_types: String,
    /// The content type that is sent.
    pub content_type: String,
    /// Queries per second.
    pub qps: f64,
    /// Queries beyond that, for a short time.
    pub burst: i32,
}

impl Default for ClientConnection {
    fn default() -> ClientConnection {
        ClientConnection {
            kubeconfig: String::new(),
            accept_content_types: String::new(),
            content_type: "application/vnd.kubernetes.protobuf".to_owned(),
            qps: 50.0,
            burst: 100,
        }
    }
}

impl ClientConnection {
    /// Zero and empty are as good as absent.
    pub(super) fn read(object: Object<'_>) -> ClientConnection {
        let default = ClientConnection::default();
        let qps = object.float("qps").filter(|qps| *qps != 0.0);
        let burst = object.int32("burst").filter(|burst| *burst != 0);
        ClientConnection {
            kubeconfig: text(object, "kubeconfig", default.kubeconfig),
            accept_content_types: text(object, "acceptContentTypes", default.accept_content_types),
            content_type: text(object, "contentType", default.content_type),
            qps: qps.unwrap_or(default.qps),
            burst: burst.unwrap_or(default.burst),
        }
    }

    pub(super) fn check(&self, problems: &mut Vec<Problem>) {
        if self.burst < 0 {
            let rule = "must be non-negative";
            let problem = Problem::invalid_bare("clientConnection.burst", self.burst, rule);
            problems.push(problem);
        }
    }
}

fn text(object: Object<'_>, key: &str, default: String) -> String {
    match object.text(key) {
        None | Some("") => default,
        Some(stated) => stated.to_owned(),
    }
}
