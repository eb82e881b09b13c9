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
pub(super) const FIELDS: &[Field] = &[
    Field::new("nodeName", Shape::Text),
    Field::new("nodeIP", Shape::Text),
    Field::new("servingInfo.bindAddress", Shape::Text),
    Field::new("servingInfo.bindNetwork", Shape::Text),
    Field::new("servingInfo.certFile", Shape::Text),
    Field::new("servingInfo.keyFile", Shape::Text),
    Field::new("servingInfo.clientCA", Shape::Text),
    Field::new("servingInfo.namedCertificates", Shape::Records(NAMED_CERTIFICATE_FIELDS)),
    Field::new("servingInfo.minTLSVersion", Shape::Text),
    Field::new("servingInfo.cipherSuites", Shape::TextList),
    Field::new("masterKubeConfig", Shape::Text),
    Field::new("masterClientConnectionOverrides.acceptContentTypes", Shape::Text),
    Field::new("masterClientConnectionOverrides.contentType", Shape::Text),
    Field::new("masterClientConnectionOverrides.qps", Shape::Float),
    Field::new("masterClientConnectionOverrides.burst", Shape::Int32),
    Field::new("dnsDomain", Shape::Text),
    Field::new("dnsIP", Shape::Text),
    Field::new("dnsBindAddress", Shape::Text),
    Field::new("dnsNameservers", Shape::TextList),
    Field::new("dnsRecursiveResolvConf", Shape::Text),
    Field::new("networkPluginName", Shape::Text),
    Field::new("networkConfig.networkPluginName", Shape::Text),
    Field::new("networkConfig.mtu", Shape::Int64),
    Field::new("volumeDirectory", Shape::Text),
    Field::new("imageConfig.format", Shape::Text),
    Field::new("imageConfig.latest", Shape::Bool),
    Field::new("allowDisabledDocker", Shape::Bool),
    Field::new("podManifestConfig.path", Shape::Text),
    Field::new("podManifestConfig.fileCheckIntervalSeconds", Shape::Int64),
    Field::new("authConfig.authenticationCacheTTL", Shape::Text),
    Field::new("authConfig.authenticationCacheSize", Shape::Int64),
    Field::new("authConfig.authorizationCacheTTL", Shape::Text),
    Field::new("authConfig.authorizationCacheSize", Shape::Int64),
    Field::new("dockerConfig.execHandlerName", Shape::Text),
    Field::new("dockerConfig.dockerShimSocket", Shape::Text),
    Field::new("dockerConfig.dockerShimRootDirectory", Shape::Text),
    Field::new("iptablesSyncPeriod", Shape::Text),
    Field::new("enableUnidling", Shape::Bool),
    Field::new("volumeConfig.localQuota.perFSGroup", Shape::Any),
    Field::new("proxyArguments", Shape::TextListMap),
    Field::new("kubeletArguments", Shape::Any),
];

/// The kubelet's name for a field, where the node takes it from there.
pub(super) fn kubelet_field(path: &str) -> Option<&'static str> {
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
