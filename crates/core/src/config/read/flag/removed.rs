//! Flags of Kubernetes 1.6 and 1.9 that a kubelet of today does not take.

use super::Syntax::{Bool, Duration, Int32, List, Pairs, Text};
use super::{Effect, Flag, RemovedFlag, Separator, Syntax, Target};

const fn removed(
    name: &'static str,
    syntax: Syntax,
    meaning: &'static str,
    instead: &'static str,
) -> Flag {
    Flag {
        name,
        syntax,
        target: Target::FlagOnly,
        removed: Some(RemovedFlag { meaning, instead }),
        effect: Effect::None { reason: instead },
    }
}

/// The flag is gone, its field is not.
const fn moved(name: &'static str, syntax: Syntax, path: &'static str) -> Flag {
    Flag {
        name,
        syntax,
        target: Target::Field(path),
        removed: Some(RemovedFlag {
            meaning: "the same setting under another name",
            instead: "use the field of KubeletConfiguration",
        }),
        effect: Effect::Applied,
    }
}

const DOCKER: &str = "Docker is no longer a runtime; configure containerd or CRI-O itself";
const CNI: &str = "networks are set up by the runtime; configure CNI there";
const RKT: &str = "rkt is no longer a runtime; use containerd or CRI-O";
const GLOG: &str = "logs go to standard error; let the service manager keep them";
const POD_SECURITY: &str = "use Pod Security admission";
const DROP: &str = "drop it";

#[rustfmt::skip]
pub(super) const FLAGS: &[Flag] = &[
    moved("experimental-allowed-unsafe-sysctls", List, "allowedUnsafeSysctls"),
    moved("experimental-fail-swap-on", Bool, "failSwapOn"),
    moved("experimental-kernel-memcg-notification", Bool, "kernelMemcgNotification"),
    moved("experimental-qos-reserved", Pairs(Separator::Equals), "qosReserved"),
    moved("iptables-drop-bit", Int32, "iptablesDropBit"),
    moved("iptables-masquerade-bit", Int32, "iptablesMasqueradeBit"),

    removed("allow-privileged", Bool, "let pods run privileged containers", POD_SECURITY),
    removed("host-ipc-sources", List, "from which sources pods may use the host's IPC", POD_SECURITY),
    removed("host-network-sources", List, "from which sources pods may use the host's network", POD_SECURITY),
    removed("host-pid-sources", List, "from which sources pods may see the host's processes", POD_SECURITY),

    removed("docker", Text, "Docker's socket, for statistics", DOCKER),
    removed("docker-disable-shared-pid", Bool, "gave containers of a pod process ids of their own", "set shareProcessNamespace in the pod"),
    removed("docker-endpoint", Text, "Docker's socket", DOCKER),
    removed("docker-env-metadata-whitelist", Text, "environment variables kept in statistics", DOCKER),
    removed("docker-exec-handler", Text, "how commands ran in Docker containers", DOCKER),
    removed("docker-only", Bool, "report statistics of Docker containers only", DOCKER),
    removed("docker-root", Text, "Docker's directory", DOCKER),
    removed("docker-tls", Bool, "talk to Docker over TLS", DOCKER),
    removed("docker-tls-ca", Text, "Docker's certificate authority", DOCKER),
    removed("docker-tls-cert", Text, "the certificate shown to Docker", DOCKER),
    removed("docker-tls-key", Text, "the key of that certificate", DOCKER),
    removed("experimental-dockershim", Bool, "ran the Docker adapter alone", DOCKER),
    removed("experimental-dockershim-root-directory", Text, "the Docker adapter's directory", DOCKER),
    removed("container-runtime", Text, "which runtime to use", "set containerRuntimeEndpoint"),
    removed("enable-cri", Bool, "use the container runtime interface", DROP),
    removed("experimental-cri", Bool, "use the container runtime interface", DROP),
    removed("image-pull-progress-deadline", Duration, "when a Docker pull without progress ended", DOCKER),
    removed("pod-infra-container-image", Text, "the image that holds a pod's namespaces", "configure the sandbox image in the runtime"),
    removed("rkt-api-endpoint", Text, "rkt's socket", RKT),
    removed("rkt-path", Text, "rkt's binary", RKT),
    removed("rkt-stage1-image", Text, "rkt's first stage", RKT),

    removed("cni-bin-dir", Text, "where CNI plugins are", CNI),
    removed("cni-conf-dir", Text, "where CNI is configured", CNI),
    removed("network-plugin", Text, "which network plugin to use", CNI),
    removed("network-plugin-dir", Text, "where network plugins are", CNI),
    removed("network-plugin-mtu", Int32, "the packet size of the pod network", CNI),
    removed("non-masquerade-cidr", Text, "traffic that keeps its source address", "run ip-masq-agent"),
    removed("configure-cbr0", Bool, "set up the pod bridge", CNI),
    removed("reconcile-cidr", Bool, "follow the node's pod network", CNI),

    removed("cadvisor-port", Int32, "the port of cAdvisor's own server", "read /metrics/cadvisor, or run cAdvisor as a DaemonSet"),
    removed("enable-custom-metrics", Bool, "collect metrics of pods", "use the custom metrics API"),

    removed("low-diskspace-threshold-mb", Int32, "free disk below which no pod was admitted", "set evictionHard for nodefs.available"),
    removed("outofdisk-transition-frequency", Duration, "how long the condition OutOfDisk lasted", "set evictionPressureTransitionPeriod"),
    removed("keep-terminated-pod-volumes", Bool, "kept volumes of ended pods", DROP),

    removed("api-servers", List, "the API servers", "set --kubeconfig"),
    removed("require-kubeconfig", Bool, "end without a kubeconfig", DROP),
    removed("experimental-bootstrap-kubeconfig", Text, "how to request a certificate", "set --bootstrap-kubeconfig"),
    removed("bootstrap-checkpoint-path", Text, "where pods were kept over restarts", DROP),
    removed("master-service-namespace", Text, "the namespace of the API server's service", DROP),
    removed("register-schedulable", Bool, "register the node schedulable", "set registerWithTaints"),
    removed("cloud-config", Text, "how to reach the cloud", "run the cloud controller manager and set --cloud-provider=external"),
    removed("auth-path", Text, "a file with credentials", "set --kubeconfig"),

    removed("dynamic-config-dir", Text, "where configuration from the API was kept", "write a file and set --config"),
    removed("init-config-dir", Text, "where the first configuration was", "write a file and set --config"),

    removed("babysit-daemons", Bool, "protected Docker and the network from memory shortage", "set OOMScoreAdjust in their units"),
    removed("chaos-chance", Text, "made requests fail at random", DROP),
    removed("containerized", Bool, "the kubelet ran in a container", "run the kubelet on the host"),
    removed("really-crash-for-testing", Bool, "let the kubelet end on a panic", DROP),
    removed("seccomp-profile-root", Text, "where seccomp profiles are", "put them in seccomp below --root-dir"),
    removed("experimental-check-node-capabilities-before-mount", Bool, "looked for mount tools first", DROP),

    removed("alsologtostderr", Bool, "wrote logs to two places", GLOG),
    removed("log-backtrace-at", Text, "printed a stack at a line", GLOG),
    removed("log-dir", Text, "where logs were kept", GLOG),
    removed("logtostderr", Bool, "wrote logs to standard error", GLOG),
    removed("stderrthreshold", Text, "which logs went to standard error", GLOG),
];
