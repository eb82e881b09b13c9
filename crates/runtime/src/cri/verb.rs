//! The verbs of CRI v1 that are used.

/// A verb, and how its failure is reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verb {
    /// Where it is called.
    pub(super) path: &'static str,
    /// What is being done; the subject's name follows.
    pub(super) doing: &'static str,
    /// What is missing when the answer is "not found". Nothing for verbs that touch several things:
    /// there only the runtime's own message says which.
    pub(super) missing: Option<&'static str>,
}

impl Verb {
    /// Its name in the protocol.
    pub(super) fn name(self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }
}

const SANDBOX: Option<&str> = Some("sandbox");
const CONTAINER: Option<&str> = Some("container");
const IMAGE: Option<&str> = Some("image");

macro_rules! verbs {
    ($service:literal: $($name:ident = $method:literal, $doing:literal, $missing:expr;)+) => {
        $(pub(super) const $name: Verb = Verb {
            path: concat!("/runtime.v1.", $service, "/", $method),
            doing: $doing,
            missing: $missing,
        };)+
    };
}

verbs! { "RuntimeService":
    VERSION = "Version", "get the version of the runtime", None;
    STATUS = "Status", "get the status of the runtime", None;
    RUNTIME_CONFIG = "RuntimeConfig", "get the configuration of the runtime", None;
    UPDATE_RUNTIME_CONFIG = "UpdateRuntimeConfig", "set the pod address range", None;
    RUN_POD_SANDBOX = "RunPodSandbox", "run sandbox for pod", None;
    STOP_POD_SANDBOX = "StopPodSandbox", "stop sandbox", SANDBOX;
    REMOVE_POD_SANDBOX = "RemovePodSandbox", "remove sandbox", SANDBOX;
    POD_SANDBOX_STATUS = "PodSandboxStatus", "get the status of sandbox", SANDBOX;
    LIST_POD_SANDBOX = "ListPodSandbox", "list sandboxes", None;
    CREATE_CONTAINER = "CreateContainer", "create container", None;
    START_CONTAINER = "StartContainer", "start container", None;
    STOP_CONTAINER = "StopContainer", "stop container", CONTAINER;
    REMOVE_CONTAINER = "RemoveContainer", "remove container", CONTAINER;
    CONTAINER_STATUS = "ContainerStatus", "get the status of container", CONTAINER;
    LIST_CONTAINERS = "ListContainers", "list containers", None;
    UPDATE_CONTAINER_RESOURCES = "UpdateContainerResources", "update the resources of container", CONTAINER;
    REOPEN_CONTAINER_LOG = "ReopenContainerLog", "reopen the log of container", CONTAINER;
    LIST_CONTAINER_STATS = "ListContainerStats", "list the usage of containers", None;
    EXEC_SYNC = "ExecSync", "run a command in container", CONTAINER;
    EXEC = "Exec", "prepare a command in container", CONTAINER;
    ATTACH = "Attach", "attach to container", CONTAINER;
    PORT_FORWARD = "PortForward", "forward ports of sandbox", SANDBOX;
}

verbs! { "ImageService":
    LIST_IMAGES = "ListImages", "list images", None;
    IMAGE_STATUS = "ImageStatus", "get the status of image", IMAGE;
    PULL_IMAGE = "PullImage", "pull image", None;
    REMOVE_IMAGE = "RemoveImage", "remove image", IMAGE;
    IMAGE_FS_INFO = "ImageFsInfo", "get the image file systems", None;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_is_called_by_its_name_in_the_protocol() {
        assert_eq!(
            STOP_POD_SANDBOX.path,
            "/runtime.v1.RuntimeService/StopPodSandbox"
        );
        assert_eq!(PULL_IMAGE.path, "/runtime.v1.ImageService/PullImage");
        assert_eq!(PULL_IMAGE.name(), "PullImage");
    }
}
