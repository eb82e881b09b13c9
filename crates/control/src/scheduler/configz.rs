//! The configuration in force, as a `KubeSchedulerConfiguration`.

use plimsoll_core::scheduling::configuration::{Configuration, KIND, Plugins};
use plimsoll_core::scheduling::profile::Profile;
use plimsoll_core::scheduling::registry::{API_VERSION, ExtensionPoint};
use serde_json::{Map, Value, json};

pub(super) fn configz(configuration: &Configuration) -> Value {
    let election = &configuration.leader_election;
    let connection = &configuration.client_connection;
    let profiles = configuration.profiles.iter().map(|profile| {
        let plugins = configuration.plugins.get(&profile.scheduler_name);
        json!({
            "schedulerName": profile.scheduler_name,
            "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
            "plugins": plugins.map(enabled_plugins),
            "pluginConfig": plugin_config(profile),
        })
    });
    json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "parallelism": configuration.parallelism,
        "percentageOfNodesToScore": configuration.percentage_of_nodes_to_score,
        "podInitialBackoffSeconds": configuration.pod_initial_backoff_seconds,
        "podMaxBackoffSeconds": configuration.pod_max_backoff_seconds,
        "enableProfiling": configuration.enable_profiling,
        "enableContentionProfiling": configuration.enable_contention_profiling,
        "delayCacheUntilActive": configuration.delay_cache_until_active,
        "leaderElection": {
            "leaderElect": election.leader_elect,
            "leaseDuration": election.lease_duration.to_string(),
            "renewDeadline": election.renew_deadline.to_string(),
            "retryPeriod": election.retry_period.to_string(),
            "resourceLock": election.resource_lock,
            "resourceName": election.resource_name,
            "resourceNamespace": election.resource_namespace,
        },
        "clientConnection": {
            "kubeconfig": connection.kubeconfig,
            "acceptContentTypes": connection.accept_content_types,
            "contentType": connection.content_type,
            "qps": connection.qps,
            "burst": connection.burst,
        },
        "profiles": profiles.collect::<Vec<Value>>(),
    })
}

fn enabled_plugins(plugins: &Plugins) -> Value {
    let points = ExtensionPoint::ALL.map(|point| {
        let enabled = plugins.at(point).iter();
        let enabled = enabled.map(|plugin| match point {
            ExtensionPoint::Score => json!({"name": plugin.name, "weight": plugin.weight}),
            _ => json!({"name": plugin.name}),
        });
        let enabled: Vec<Value> = enabled.collect();
        (point.as_str().to_owned(), json!({"enabled": enabled}))
    });
    let points = points
        .into_iter()
        .filter(|(_, set)| set["enabled"] != json!([]));
    Value::Object(points.collect())
}

/// The arguments that are not the default ones, by plugin.
fn plugin_config(profile: &Profile) -> Value {
    let mut by_plugin = Map::new();
    for argument in profile.changed_arguments() {
        let mut args = by_plugin.entry(argument.plugin).or_insert(json!({}));
        for part in argument.field.split('.') {
            if args.is_null() {
                *args = json!({});
            }
            args = &mut args[part];
        }
        *args = argument.value;
    }
    let by_plugin = by_plugin.into_iter();
    by_plugin
        .map(|(name, args)| json!({"name": name, "args": args}))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::scheduling::configuration::read;

    #[test]
    fn configz_reads_back_as_the_same_configuration() {
        let file = format!(
            "apiVersion: {API_VERSION}\nkind: {KIND}\npodMaxBackoffSeconds: 20\nprofiles:\n\
             - schedulerName: second\n  pluginConfig:\n  - name: InterPodAffinity\n    \
             args: {{hardPodAffinityWeight: 7}}\n"
        );
        let first = read(file.as_bytes());
        assert!(first.problems.is_empty(), "{:?}", first.problems);
        let handlers = configz(&first.configuration);
        assert_eq!(handlers["profiles"][0]["schedulerName"], "second");
        assert_eq!(
            handlers["profiles"][0]["pluginConfig"][0]["args"]["hardPodAffinityWeight"],
            7
        );
        assert_eq!(handlers["leaderElection"]["leaseDuration"], "15s");
        let plugins = &handlers["profiles"][0]["plugins"];
        assert_eq!(plugins["bind"]["enabled"][0]["name"], "DefaultBinder");
    }
}
