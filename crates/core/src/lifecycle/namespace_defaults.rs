//! What every namespace contains from the start, however it is created: the service account of pods
//! that name none, and the certificate by which pods trust the API server.

/// The service account of pods that name none.
pub const DEFAULT_SERVICE_ACCOUNT: &str = "default";

/// The ConfigMap with the certificate to trust.
pub const ROOT_CA_CONFIG_MAP: &str = "kube-root-ca.crt";

/// The key of the certificate in it.
pub const ROOT_CA_KEY: &str = "ca.crt";

/// The annotation that describes what an object is for.
pub const DESCRIPTION_ANNOTATION: &str = "kubernetes.io/description";

/// The description of the ConfigMap, as upstream's.
pub const ROOT_CA_DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the \
    kube-apiserver when using internal endpoints such as the internal service IP or \
    kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes \
    clusters.";
