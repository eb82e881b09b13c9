//! Images that a pod needs on its node.

use k8s_openapi::api::core::v1::PodSpec;

/// The images of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodImages {
    /// Names with tags, of init containers, containers and image volumes, in this order. An image
    /// that is used twice is listed twice.
    pub names: Vec<String>,
    /// Number of containers, init containers included.
    pub container_count: i64,
}

impl PodImages {
    pub(super) fn of_pod(spec: &PodSpec) -> PodImages {
        let init = spec.init_containers.iter().flatten();
        let containers = init.chain(&spec.containers);
        let of_containers = containers
            .clone()
            .map(|container| container.image.as_deref());
        let volumes = spec.volumes.iter().flatten();
        let of_volumes = volumes.filter_map(|volume| volume.image.as_ref());
        let names = of_containers.chain(of_volumes.map(|image| image.reference.as_deref()));
        PodImages {
            names: names
                .map(|name| normalized_image_name(name.unwrap_or_default()))
                .collect(),
            container_count: i64::try_from(containers.count()).unwrap_or(i64::MAX),
        }
    }
}

/// The name with the tag `latest` if it has none. Matches v1.36 plugins/imagelocality.
pub fn normalized_image_name(name: &str) -> String {
    // A colon before the last slash belongs to the port of the registry.
    if name.rfind(':') <= name.rfind('/') {
        format!("{name}:latest")
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tag_is_latest_and_a_registry_port_is_no_tag() {
        assert_eq!(normalized_image_name("a"), "a:latest");
        assert_eq!(normalized_image_name("r:5000/a"), "r:5000/a:latest");
        assert_eq!(normalized_image_name("r:5000/a:1"), "r:5000/a:1");
        assert_eq!(normalized_image_name("a@sha256:0"), "a@sha256:0");
    }
}
