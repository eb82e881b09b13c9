//! DefaultTolerationSeconds admission: pods outlive a short absence of their node.
//!
//! Matches v1.36 plugin/pkg/admission/defaulttolerationseconds.

use k8s_openapi::api::core::v1::{PodSpec, Toleration};

use crate::object::taint::{NODE_NOT_READY, NODE_UNREACHABLE};

const NO_EXECUTE: &str = "NoExecute";

/// How long pods without such tolerations of their own stay on a node that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultTolerationSeconds {
    /// On a node that is not ready.
    pub not_ready: i64,
    /// On a node that is unreachable.
    pub unreachable: i64,
}

impl Default for DefaultTolerationSeconds {
    fn default() -> Self {
        DefaultTolerationSeconds {
            not_ready: 300,
            unreachable: 300,
        }
    }
}

impl DefaultTolerationSeconds {
    /// Adds the tolerations that a new or updated pod lacks.
    ///
    /// Any toleration with the key counts as the pod's own choice, with any operator and value.
    pub fn admit(self, spec: &mut PodSpec) {
        let wanted = [
            (NODE_NOT_READY, self.not_ready),
            (NODE_UNREACHABLE, self.unreachable),
        ];
        for (key, seconds) in wanted {
            let mut own = spec.tolerations.iter().flatten();
            if own.any(|toleration| is_about(toleration, key)) {
                continue;
            }
            spec.tolerations.get_or_insert_default().push(Toleration {
                key: Some(key.to_owned()),
                operator: Some("Exists".to_owned()),
                effect: Some(NO_EXECUTE.to_owned()),
                toleration_seconds: Some(seconds),
                value: None,
            });
        }
    }
}

fn is_about(toleration: &Toleration, wanted_key: &str) -> bool {
    let key = toleration.key.as_deref().unwrap_or_default();
    let effect = toleration.effect.as_deref().unwrap_or_default();
    (key.is_empty() || key == wanted_key) && (effect.is_empty() || effect == NO_EXECUTE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys_after(own: Toleration) -> Vec<String> {
        let mut spec = PodSpec {
            tolerations: Some(vec![own]),
            ..PodSpec::default()
        };
        DefaultTolerationSeconds::default().admit(&mut spec);
        let keys = spec.tolerations.into_iter().flatten().skip(1);
        keys.filter_map(|toleration| toleration.key).collect()
    }

    fn own(key: &str, effect: &str) -> Toleration {
        Toleration {
            key: Some(key.to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        }
    }

    #[test]
    fn own_toleration_of_pod_is_kept() {
        assert_eq!(
            keys_after(own("other", "")),
            [NODE_NOT_READY, NODE_UNREACHABLE]
        );
        assert_eq!(keys_after(own(NODE_NOT_READY, "")), [NODE_UNREACHABLE]);
        assert_eq!(
            keys_after(own(NODE_NOT_READY, "NoSchedule")),
            [NODE_NOT_READY, NODE_UNREACHABLE]
        );
        assert!(keys_after(own("", "NoExecute")).is_empty());
    }
}
