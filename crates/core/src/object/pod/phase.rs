//! The phase of a pod.

use k8s_openapi::api::core::v1::Pod;

/// Whether a pod never leaves that phase: all its containers have ended for good.
pub fn is_terminal_phase(phase: &str) -> bool {
    matches!(phase, "Succeeded" | "Failed")
}

/// The phase in the status of a pod; empty if there is none.
pub fn phase(pod: &Pod) -> &str {
    let status = pod.status.as_ref();
    status.and_then(|s| s.phase.as_deref()).unwrap_or_default()
}

/// Whether the pod has ended for good, by its status. Such a pod holds no resources of its node.
pub fn is_terminal(pod: &Pod) -> bool {
    is_terminal_phase(phase(pod))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodStatus;

    use super::*;

    #[test]
    fn only_succeeded_and_failed_are_final() {
        for (phase, expected) in [
            ("Succeeded", true),
            ("Failed", true),
            ("Pending", false),
            ("Running", false),
            ("Unknown", false),
            ("succeeded", false),
            ("", false),
        ] {
            let status = Some(PodStatus {
                phase: Some(phase.to_owned()),
                ..PodStatus::default()
            });
            let pod = Pod {
                status,
                ..Pod::default()
            };
            assert_eq!(is_terminal(&pod), expected, "{phase}");
        }
        assert!(!is_terminal(&Pod::default()));
    }
}
