//! Flags of Kubernetes 1.6 and 1.9 that a kubelet of today does not take.

use super::Syntax::{Bool, Duration, Int32, List, Pairs, Text};
use super::{Flag, Gone, Separator, Syntax, Target};

const fn gone(
    name: &'static str,
    syntax: Syntax,
    meaning: &'static str,
    instead: &'static str,
) -> Flag {
    Flag {
        name,
        syntax,
        target: Target::FlagOnly,
        gone: Some(Gone { meaning, instead }),
    }
}

/// The flag is gone, its field is not.
const fn moved(name: &'static str, syntax: Syntax, path: &'static str) -> Flag {
    Flag {
        name,
        syntax,
        target: Target::Field(path),
        gone: Some(Gone {
            meaning: "the same setting under another name",
            instead: "use the field of KubeletConfiguration",
        }),
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

    gone("allow-privileged", Bool, "let pods run privileged containers", POD_SECURITY),
    gone("host-ipc-sources", List, "from which sources pods may use the host's IPC", POD_SECURITY),
    gone("host-network-sources", List, "from which sources pods may use the host's network", POD_SECURITY),
    gone("host-pid-sources", List, "from which sources pods may see the host's processes", POD_SECURITY),

    gone("docker", Text, "Docker's socket, for statistics", DOCKER),
    gone("docker-disable-shared-pid", Bool, "gave containers of a pod process ids of their own", "set shareProcessNamespace in the pod"),
    gone("docker-endpoint", Text, "Docker's socket", DOCKER),
    gone("docker-env-metadata-whitelist", Text, "environment variables kept in statistics", DOCKER),
    gone("docker-exec-handler", Text, "how commands ran in Docker containers", DOCKER),
    gone("docker-only", Bool, "report statistics of Docker containers only", DOCKER),
    gone("docker-root", Text, "Docker's directory", DOCKER),
    gone("docker-tls", Bool, "talk to Docker over TLS", DOCKER),
    gone("docker-tls-ca", Text, "Docker's certificate authority", DOCKER),
    gone("docker-tls-cert", Text, "the certificate shown to Docker", DOCKER),
    gone("docker-tls-key", Text, "the key of that certificate", DOCKER),
    gone("experimental-dockershim", Bool, "ran the Docker adapter alone", DOCKER),
    gone("experimental-dockershim-root-directory", Text, "the Docker adapter's directory", DOCKER),
    gone("container-runtime", Text, "which runtime to use", "set containerRuntimeEndpoint"),
    gone("enable-cri", Bool, "use the container runtime interface", DROP),
    gone("experimental-cri", Bool, "use the container runtime interface", DROP),
    gone("image-pull-progress-deadline", Duration, "when a Docker pull without progress ended", DOCKER),
    gone("pod-infra-container-image", Text, "the image that holds a pod's namespaces", "configure the sandbox image in the runtime"),
    gone("rkt-api-endpoint", Text, "rkt's socket", RKT),
    gone("rkt-path", Text, "rkt's binary", RKT),
    gone("rkt-stage1-image", Text, "rkt's first stage", RKT),

    gone("cni-bin-dir", Text, "where CNI plugins are", CNI),
    gone("cni-conf-dir", Text, "where CNI is configured", CNI),
    gone("network-plugin", Text, "which network plugin to use", CNI),
    gone("network-plugin-dir", Text, "where network plugins are", CNI),
    gone("network-plugin-mtu", Int32, "the packet size of the pod network", CNI),
    gone("non-masquerade-cidr", Text, "traffic that keeps its source address", "run ip-masq-agent"),
    gone("configure-cbr0", Bool, "set up the pod bridge", CNI),
    gone("reconcile-cidr", Bool, "follow the node's pod network", CNI),

    gone("cadvisor-port", Int32, "the port of cAdvisor's own server", "read /metrics/cadvisor, or run cAdvisor as a DaemonSet"),
    gone("enable-custom-metrics", Bool, "collect metrics of pods", "use the custom metrics API"),

    gone("low-diskspace-threshold-mb", Int32, "free disk below which no pod was admitted", "set evictionHard for nodefs.available"),
    gone("outofdisk-transition-frequency", Duration, "how long the condition OutOfDisk lasted", "set evictionPressureTransitionPeriod"),
    gone("keep-terminated-pod-volumes", Bool, "kept volumes of ended pods", DROP),

    gone("api-servers", List, "the API servers", "set --kubeconfig"),
    gone("require-kubeconfig", Bool, "end without a kubeconfig", DROP),
    gone("experimental-bootstrap-kubeconfig", Text, "how to ask for a certificate", "set --bootstrap-kubeconfig"),
    gone("bootstrap-checkpoint-path", Text, "where pods were kept over restarts", DROP),
    gone("master-service-namespace", Text, "the namespace of the API server's service", DROP),
    gone("register-schedulable", Bool, "register the node schedulable", "set registerWithTaints"),
    gone("cloud-config", Text, "how to reach the cloud", "run the cloud controller manager and set --cloud-provider=external"),
    gone("auth-path", Text, "a file with credentials", "set --kubeconfig"),

    gone("dynamic-config-dir", Text, "where configuration from the API was kept", "write a file and set --config"),
    gone("init-config-dir", Text, "where the first configuration was", "write a file and set --config"),

    gone("babysit-daemons", Bool, "protected Docker and the network from memory shortage", "set OOMScoreAdjust in their units"),
    gone("chaos-chance", Text, "made requests fail at random", DROP),
    gone("containerized", Bool, "the kubelet ran in a container", "run the kubelet on the host"),
    gone("really-crash-for-testing", Bool, "let the kubelet end on a panic", DROP),
    gone("seccomp-profile-root", Text, "where seccomp profiles are", "put them in seccomp below --root-dir"),
    gone("experimental-check-node-capabilities-before-mount", Bool, "looked for mount tools first", DROP),

    gone("alsologtostderr", Bool, "wrote logs to two places", GLOG),
    gone("log-backtrace-at", Text, "printed a stack at a line", GLOG),
    gone("log-dir", Text, "where logs were kept", GLOG),
    gone("logtostderr", Bool, "wrote logs to standard error", GLOG),
    gone("stderrthreshold", Text, "which logs went to standard error", GLOG),
];
