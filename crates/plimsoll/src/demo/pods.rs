//! The pods of the demo.

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::resources::Bytes;
use plimsoll_runtime::image::builtin::NAME as IMAGE;
use serde_json::{Value, json};

/// The namespace of the pods.
pub(super) const NAMESPACE: &str = "default";
/// The pod that grows until it is evicted.
pub(super) const GROWING: &str = "growing";
/// Its growth per second: fast enough for a short demo, slow enough to watch.
const RATE: Bytes = Bytes(40 << 20);

const fn mebibytes(amount: i64) -> Bytes {
    Bytes(amount << 20)
}

/// One pod of the demo.
#[derive(Debug)]
pub(super) struct Role {
    pub(super) name: &'static str,
    pub(super) qos_class: &'static str,
    /// The field `resources` of its container.
    resources: fn() -> Value,
    pub(super) request: Option<Bytes>,
    pub(super) takes: Takes,
}

/// How much memory a pod uses.
#[derive(Clone, Copy, Debug)]
pub(super) enum Takes {
    /// A fixed amount.
    UpTo(Bytes),
    /// An amount more each second.
    EachSecond(Bytes),
}

/// All pods, in the order in which they are created.
pub(super) const ROLES: [Role; 3] = [
    Role {
        name: "calm",
        qos_class: "Burstable",
        resources: || json!({ "requests": { "cpu": "10m", "memory": "32Mi" } }),
        request: Some(mebibytes(32)),
        takes: Takes::UpTo(mebibytes(16)),
    },
    Role {
        name: "steady",
        qos_class: "Guaranteed",
        resources: || {
            let all = json!({ "cpu": "50m", "memory": "64Mi" });
            json!({ "requests": all, "limits": all })
        },
        request: Some(mebibytes(64)),
        takes: Takes::UpTo(mebibytes(40)),
    },
    Role {
        name: GROWING,
        qos_class: "BestEffort",
        resources: || json!({}),
        request: None,
        takes: Takes::EachSecond(RATE),
    },
];

impl Role {
    pub(super) fn pod(&self) -> Result<Pod, serde_json::Error> {
        let image = IMAGE.trim_end_matches(":latest");
        serde_json::from_value(json!({
            "metadata": { "name": self.name },
            "spec": {
                // Without a DNS server the default policy would cause an event.
                "dnsPolicy": "Default",
                "automountServiceAccountToken": false,
                "restartPolicy": "Always",
                "containers": [{
                    "name": "main",
                    "image": image,
                    "command": self.takes.command(),
                    "resources": (self.resources)(),
                }],
            },
        }))
    }
}

impl Takes {
    fn command(self) -> Vec<String> {
        let amount = |bytes: Bytes| format!("{}Mi", bytes.0 >> 20);
        let words = match self {
            // The full amount at once.
            Takes::UpTo(limit) => ["--rate", "--start", "--limit"]
                .map(|option| [option.to_owned(), amount(limit)])
                .concat(),
            Takes::EachSecond(rate) => vec!["--rate".to_owned(), amount(rate)],
        };
        std::iter::once("hog".to_owned()).chain(words).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::object::pod::PodView;

    #[test]
    fn pods_have_the_qos_class_shown_in_the_table() {
        for role in ROLES {
            let view = PodView::from_api(&role.pod().unwrap()).unwrap();
            assert_eq!(
                view.qos_class().to_string(),
                role.qos_class,
                "{}",
                role.name
            );
        }
    }
}
