//! Jobs that are removed some time after they finished.
//!
//! Matches v1.36 pkg/controller/ttlafterfinished.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;

use crate::object::timestamp::Timestamp;

/// When a job is to be removed; nothing if it has not finished, has no `ttlSecondsAfterFinished`,
/// is being deleted already, or has no finish time.
pub fn expires_at(job: &Job) -> Option<Timestamp> {
    if job.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let seconds = job.spec.as_ref()?.ttl_seconds_after_finished?;
    let mut conditions = job.status.as_ref()?.conditions.iter().flatten();
    let end = conditions
        .find(|c| matches!(c.type_.as_str(), "Complete" | "Failed") && c.status == "True")?;
    let finished = Timestamp::from_api(end.last_transition_time.as_ref()?);
    let seconds = u64::try_from(seconds).unwrap_or(0);
    Some(finished.saturating_add(Duration::from_secs(seconds)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn expires(ttl: Value, conditions: Value) -> Option<String> {
        let job = json!({
            "spec": {"template": {}, "ttlSecondsAfterFinished": ttl},
            "status": {"conditions": conditions},
        });
        let expires = expires_at(&serde_json::from_value(job).unwrap());
        expires.map(|time| time.to_string())
    }

    #[test]
    fn the_time_runs_from_the_end_of_the_job() {
        let ended = |kind: &str, status: &str| {
            json!([
                {"type": "Suspended", "status": "False"},
                {"type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"},
            ])
        };
        let expected = Some("2026-01-01T00:01:40Z".to_owned());
        assert_eq!(expires(json!(100), ended("Complete", "True")), expected);
        assert_eq!(expires(json!(100), ended("Failed", "True")), expected);
        assert_eq!(expires(json!(100), ended("Failed", "False")), None);
        assert_eq!(expires(json!(100), ended("FailureTarget", "True")), None);
        assert_eq!(expires(Value::Null, ended("Complete", "True")), None);
        assert_eq!(
            expires(json!(1), json!([{"type": "Complete", "status": "True"}])),
            None
        );
    }
}
