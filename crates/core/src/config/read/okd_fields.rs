//! The fields of OKD's `NodeConfig`, apart from the arguments.
//!
//! Matches openshift/origin 3.6 to 3.9, pkg/cmd/server/api/v1/types.go.

use super::shape::{Field, Shape};

const NAMED_CERTIFICATE_FIELDS: &[Field] = &[
    Field::new("names", Shape::TextList),
    Field::new("certFile", Shape::Text),
    Field::new("keyFile", Shape::Text),
];

/// All fields, those of nested objects by their dotted path.
#[rustfmt::skip]
pub(crate) const FIELDS: &[Field] = &[
    Field::new("nodeName", Shape::Text),
    Field::new("nodeIP", Shape::Text),
    Field::new("servingInfo.bindAddress", Shape::Text).without_effect("give --kubelet-listen to plimsoll node"),
    Field::new("servingInfo.bindNetwork", Shape::Text).without_effect("give --kubelet-listen to plimsoll node"),
    Field::new("servingInfo.certFile", Shape::Text),
    Field::new("servingInfo.keyFile", Shape::Text),
    Field::new("servingInfo.clientCA", Shape::Text),
    Field::new("servingInfo.namedCertificates", Shape::Records(NAMED_CERTIFICATE_FIELDS)).without_effect("one certificate serves all names"),
    Field::new("servingInfo.minTLSVersion", Shape::Text),
    Field::new("servingInfo.cipherSuites", Shape::TextList),
    Field::new("masterKubeConfig", Shape::Text),
    Field::new("masterClientConnectionOverrides.acceptContentTypes", Shape::Text).without_effect("requests to the API server are JSON"),
    Field::new("masterClientConnectionOverrides.contentType", Shape::Text).without_effect("requests to the API server are JSON"),
    Field::new("masterClientConnectionOverrides.qps", Shape::Float).without_effect("requests to the API server are not limited; the server limits them"),
    Field::new("masterClientConnectionOverrides.burst", Shape::Int32).without_effect("requests to the API server are not limited; the server limits them"),
    Field::new("dnsDomain", Shape::Text),
    Field::new("dnsIP", Shape::Text),
    Field::new("dnsBindAddress", Shape::Text).without_effect("nodes do not serve DNS"),
    Field::new("dnsNameservers", Shape::TextList).without_effect("nodes do not serve DNS"),
    Field::new("dnsRecursiveResolvConf", Shape::Text).without_effect("nodes do not serve DNS"),
    Field::new("networkPluginName", Shape::Text).without_effect("CNI configures the network"),
    Field::new("networkConfig.networkPluginName", Shape::Text).without_effect("CNI configures the network"),
    Field::new("networkConfig.mtu", Shape::Int64).without_effect("CNI configures the network"),
    Field::new("volumeDirectory", Shape::Text),
    Field::new("imageConfig.format", Shape::Text).without_effect("there are no images of OpenShift"),
    Field::new("imageConfig.latest", Shape::Bool).without_effect("there are no images of OpenShift"),
    Field::new("allowDisabledDocker", Shape::Bool).without_effect("there is no Docker"),
    Field::new("podManifestConfig.path", Shape::Text),
    Field::new("podManifestConfig.fileCheckIntervalSeconds", Shape::Int64),
    Field::new("authConfig.authenticationCacheTTL", Shape::Text),
    Field::new("authConfig.authenticationCacheSize", Shape::Int64).without_effect("caches have a fixed size"),
    Field::new("authConfig.authorizationCacheTTL", Shape::Text),
    Field::new("authConfig.authorizationCacheSize", Shape::Int64).without_effect("caches have a fixed size"),
    Field::new("dockerConfig.execHandlerName", Shape::Text).without_effect("there is no Docker"),
    Field::new("dockerConfig.dockerShimSocket", Shape::Text).without_effect("there is no Docker"),
    Field::new("dockerConfig.dockerShimRootDirectory", Shape::Text).without_effect("there is no Docker"),
    Field::new("iptablesSyncPeriod", Shape::Text).without_effect("nodes have no service proxy"),
    Field::new("enableUnidling", Shape::Bool).without_effect("nodes have no service proxy"),
    Field::new("volumeConfig.localQuota.perFSGroup", Shape::Any).without_effect("set limits of ephemeral-storage in pods"),
    Field::new("proxyArguments", Shape::TextListMap).without_effect("nodes have no service proxy"),
    Field::new("kubeletArguments", Shape::Any),
];

/// The kubelet's name for a field, where the node takes it from there.
pub(crate) fn kubelet_field(path: &str) -> Option<&'static str> {
    Some(match path {
        "servingInfo.certFile" => "tlsCertFile",
        "servingInfo.keyFile" => "tlsPrivateKeyFile",
        "servingInfo.clientCA" => "authentication.x509.clientCAFile",
        "servingInfo.minTLSVersion" => "tlsMinVersion",
        "servingInfo.cipherSuites" => "tlsCipherSuites",
        "authConfig.authenticationCacheTTL" => "authentication.webhook.cacheTTL",
        "authConfig.authorizationCacheTTL" => "authorization.webhook.cacheAuthorizedTTL",
        "dnsDomain" => "clusterDomain",
        "podManifestConfig.path" => "staticPodPath",
        "volumeDirectory" => "--root-dir",
        "nodeName" => "--hostname-override",
        "nodeIP" => "--node-ip",
        "masterKubeConfig" => "--kubeconfig",
        _ => return None,
    })
}
