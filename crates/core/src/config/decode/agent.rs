//! Settings of the agent: what it serves, its runtime, its pods' surroundings, shutdown.

use super::super::document::Node;
use super::super::{AuthorizationMode, NodeConfig, ShutdownGracePeriod};
use super::fields::{Fields, bool_of, int32_of, int64_of};
use crate::problem::quoted;

pub(super) fn decode(fields: &mut Fields<'_>, config: &mut NodeConfig) {
    decode_serving(fields, config);
    decode_authorization(fields, config);
    decode_runtime(fields, config);
    decode_pods(fields, config);
    decode_machine(fields, config);
}

fn decode_serving(fields: &mut Fields<'_>, config: &mut NodeConfig) {
    fields.text_or_default("address", &mut config.address);
    fields.int32("port", &mut config.port);
    fields.text_or_default("healthzBindAddress", &mut config.healthz_bind_address);
    fields.exact_int32("healthzPort", &mut config.healthz_port);
    fields.text("tlsCertFile", &mut config.tls_cert_file);
    fields.text("tlsPrivateKeyFile", &mut config.tls_private_key_file);
    fields.bool("rotateCertificates", &mut config.rotate_certificates);
    fields.bool("serverTLSBootstrap", &mut config.server_tls_bootstrap);
    fields.bool(
        "enableDebuggingHandlers",
        &mut config.enable_debugging_handlers,
    );
    fields.bool(
        "enableSystemLogHandler",
        &mut config.enable_system_log_handler,
    );
    fields.duration(
        "streamingConnectionIdleTimeout",
        &mut config.streaming_connection_idle_timeout,
    );
}

fn decode_authorization(fields: &mut Fields<'_>, config: &mut NodeConfig) {
    fields.text(
        "authentication.x509.clientCAFile",
        &mut config.client_ca_file,
    );
    fields.bool("authentication.webhook.enabled", &mut config.token_webhook);
    fields.duration(
        "authentication.webhook.cacheTTL",
        &mut config.token_cache_ttl,
    );
    fields.bool(
        "authentication.anonymous.enabled",
        &mut config.anonymous_auth,
    );
    fields.word(
        "authorization.mode",
        &mut config.authorization_mode,
        AuthorizationMode::from_word,
        |word| format!("unknown authorization mode {}", quoted(word)),
    );
    fields.duration(
        "authorization.webhook.cacheAuthorizedTTL",
        &mut config.authorized_cache_ttl,
    );
    fields.duration(
        "authorization.webhook.cacheUnauthorizedTTL",
        &mut config.unauthorized_cache_ttl,
    );
}

fn decode_runtime(fields: &mut Fields<'_>, config: &mut NodeConfig) {
    fields.text(
        "containerRuntimeEndpoint",
        &mut config.container_runtime_endpoint,
    );
    fields.text("imageServiceEndpoint", &mut config.image_service_endpoint);
    fields.duration("runtimeRequestTimeout", &mut config.runtime_request_timeout);
    fields.exact_int32("registryPullQPS", &mut config.registry_pull_qps);
    fields.int32("registryBurst", &mut config.registry_burst);
    fields.set(
        "serializeImagePulls",
        &mut config.serialize_image_pulls,
        |node| Some(Some(bool_of(node)?)),
    );
    fields.set(
        "maxParallelImagePulls",
        &mut config.max_parallel_image_pulls,
        |node| Some(Some(int32_of(node)?)),
    );
    fields.duration(
        "containerLogMonitorInterval",
        &mut config.container_log_monitor_interval,
    );
}

fn decode_pods(fields: &mut Fields<'_>, config: &mut NodeConfig) {
    fields.duration("syncFrequency", &mut config.sync_frequency);
    fields.duration("fileCheckFrequency", &mut config.file_check_frequency);
    fields.duration(
        "crashLoopBackOff.maxContainerRestartPeriod",
        &mut config.max_container_restart_period,
    );
    fields.text("clusterDomain", &mut config.cluster_domain);
    fields.texts("clusterDNS", &mut config.cluster_dns);
    fields.text("resolvConf", &mut config.resolv_conf);
    fields.bool("seccompDefault", &mut config.seccomp_default);
    fields.texts("allowedUnsafeSysctls", &mut config.allowed_unsafe_sysctls);
    fields.set(
        "userNamespaces.idsPerPod",
        &mut config.user_namespace_ids_per_pod,
        int64_of,
    );
}

fn decode_machine(fields: &mut Fields<'_>, config: &mut NodeConfig) {
    fields.exact_int32("nodeStatusMaxImages", &mut config.node_status_max_images);
    fields.text("providerID", &mut config.provider_id);
    let zero_is_default = fields.zero_is_default;
    fields.set("maxOpenFiles", &mut config.max_open_files, |node| {
        int64_of(node).filter(|number| *number != 0 || !zero_is_default)
    });
    fields.exact_duration("shutdownGracePeriod", &mut config.shutdown_grace_period);
    fields.exact_duration(
        "shutdownGracePeriodCriticalPods",
        &mut config.shutdown_grace_period_critical_pods,
    );
    fields.set(
        "shutdownGracePeriodByPodPriority",
        &mut config.shutdown_grace_period_by_pod_priority,
        |node| Some(node.as_sequence()?.iter().map(shutdown_period).collect()),
    );
}

/// A field that is left out is zero, as upstream.
fn shutdown_period(node: &Node) -> ShutdownGracePeriod {
    let priority = node.get("priority").and_then(int32_of);
    let grace_secs = node.get("shutdownGracePeriodSeconds").and_then(int64_of);
    ShutdownGracePeriod {
        priority: priority.unwrap_or_default(),
        grace_secs: grace_secs.unwrap_or_default(),
    }
}
