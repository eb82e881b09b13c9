//! What the agent writes on sandboxes and containers, to know them again after a restart.
//!
//! Matches v1.36 pkg/kubelet/kuberuntime/labels.go, so that an agent may follow upon a kubelet and
//! the other way round.

use k8s_openapi::api::core::v1::Container;

/// The label with the name of the pod.
pub const POD_NAME: &str = "io.kubernetes.pod.name";
/// The label with its namespace.
pub const POD_NAMESPACE: &str = "io.kubernetes.pod.namespace";
/// The label with its uid.
pub const POD_UID: &str = "io.kubernetes.pod.uid";
/// The label with the name of the container.
pub const CONTAINER_NAME: &str = "io.kubernetes.container.name";

/// The annotation with the hash of the container, see [`container_hash`].
pub const HASH: &str = "io.kubernetes.container.hash";
/// The annotation that counts restarts.
pub const RESTART_COUNT: &str = "io.kubernetes.container.restartCount";
/// The annotation with the path of the termination message.
pub const MESSAGE_PATH: &str = "io.kubernetes.container.terminationMessagePath";
/// The annotation with the policy of the termination message.
pub const MESSAGE_POLICY: &str = "io.kubernetes.container.terminationMessagePolicy";

/// A number that changes when the container has to be replaced: name and image count.
///
/// It is upstream's: FNV-1a over the way Go prints the bytes of `{"image":…,"name":…}`.
pub fn container_hash(container: &Container) -> u64 {
    let text = |value: &str| {
        let quoted = serde_json::Value::from(value).to_string();
        // Go escapes these in JSON, serde does not.
        quoted
            .replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026")
    };
    let image = text(container.image.as_deref().unwrap_or_default());
    let json = format!("{{\"image\":{image},\"name\":{}}}", text(&container.name));
    let numbers: Vec<String> = json.bytes().map(|byte| byte.to_string()).collect();
    let printed = format!("([]uint8)[{}]", numbers.join(" "));
    let hash = printed.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    u64::from(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_kubelets() {
        let container = Container {
            name: "test_container".to_owned(),
            image: Some("foo/image:v1".to_owned()),
            ..Container::default()
        };
        assert_eq!(container_hash(&container), 0x8e45_cbd0);
    }
}
