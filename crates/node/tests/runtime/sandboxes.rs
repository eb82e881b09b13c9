//! Lifecycle, listing and settings of sandboxes.

use std::time::Duration;

use plimsoll_runtime::wire::{
    ContainerFilter, ContainerState, DnsConfig, NamespaceMode, PodSandboxFilter, PodSandboxState,
    PodSandboxStateValue,
};

use crate::scene::{Scene, labels, lasting, named, own_processes, security};

pub(crate) async fn runtime_reports_its_name_and_readiness(scene: &Scene) {
    let version = scene.runtime().version().await.unwrap();
    assert!(!version.runtime_name.is_empty());
    assert!(!version.runtime_version.is_empty());
    assert_eq!(version.runtime_api_version, "v1");
    let status = scene.runtime().status().await.unwrap();
    for name in ["RuntimeReady", "NetworkReady"] {
        let condition = status.conditions.iter().find(|c| c.r#type == name);
        assert!(condition.is_some_and(|c| c.status), "{name}: {status:?}");
    }
}

pub(crate) async fn sandbox_is_ready_then_stopped_then_removed(scene: &Scene) {
    let runtime = scene.runtime();
    let sandbox = scene.run_pod().await;
    let status = runtime.pod_sandbox_status(&sandbox.id).await.unwrap();
    assert_eq!(status.id, sandbox.id);
    assert_eq!(status.state(), PodSandboxState::SandboxReady);
    assert_eq!(status.metadata, sandbox.config.metadata);
    let age = now_nanos() - status.created_at;
    assert!((0..60_000_000_000).contains(&age), "made {age} ns ago");

    runtime.stop_pod_sandbox(&sandbox.id).await.unwrap();
    let status = runtime.pod_sandbox_status(&sandbox.id).await.unwrap();
    assert_eq!(status.state(), PodSandboxState::SandboxNotready);

    runtime.remove_pod_sandbox(&sandbox.id).await.unwrap();
    let error = runtime.pod_sandbox_status(&sandbox.id).await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    assert_eq!(listed(scene, &scene.own_sandboxes()).await, [""; 0]);
}

pub(crate) async fn stopping_and_removing_is_idempotent(scene: &Scene) {
    let runtime = scene.runtime();
    let sandbox = scene.run_pod().await;
    for _ in 0..2 {
        runtime.stop_pod_sandbox(&sandbox.id).await.unwrap();
    }
    for _ in 0..2 {
        runtime.remove_pod_sandbox(&sandbox.id).await.unwrap();
    }
    runtime.stop_pod_sandbox(&sandbox.id).await.unwrap();
}

pub(crate) async fn removing_a_sandbox_removes_running_containers(scene: &Scene) {
    let runtime = scene.runtime();
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &lasting()).await;
    runtime.remove_pod_sandbox(&sandbox.id).await.unwrap();
    let error = runtime.container_status(&id).await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
}

pub(crate) async fn stopping_ends_all_containers(scene: &Scene) {
    let runtime = scene.runtime();
    let sandbox = scene.run_pod().await;
    let one = scene.start(&sandbox, &named(lasting(), "one", 0)).await;
    let two = scene.start(&sandbox, &named(lasting(), "two", 0)).await;
    runtime.stop_pod_sandbox(&sandbox.id).await.unwrap();
    for id in [&one, &two] {
        let status = scene.status(id).await;
        assert_eq!(status.state(), ContainerState::ContainerExited);
    }
    let filter = ContainerFilter {
        pod_sandbox_id: sandbox.id.clone(),
        ..ContainerFilter::default()
    };
    assert_eq!(runtime.list_containers(&filter).await.unwrap().len(), 2);
}

pub(crate) async fn lists_are_filtered_by_id_state_and_labels(scene: &Scene) {
    let mut blue = scene.pod();
    blue.labels.insert("color".to_owned(), "blue".to_owned());
    let blue = scene.run(blue).await;
    let plain = scene.run_pod().await;
    let stopped = scene.run_pod().await;
    let runtime = scene.runtime();
    runtime.stop_pod_sandbox(&stopped.id).await.unwrap();

    let own = scene.own_sandboxes();
    let mut all = vec![blue.id.clone(), plain.id.clone(), stopped.id.clone()];
    all.sort();
    assert_eq!(listed(scene, &own).await, all);

    let mut by_id = own.clone();
    by_id.id = plain.id.clone();
    assert_eq!(listed(scene, &by_id).await, [plain.id.as_str()]);

    let mut by_label = own.clone();
    by_label.label_selector.extend(labels(&[("color", "blue")]));
    assert_eq!(listed(scene, &by_label).await, [blue.id.as_str()]);

    let mut by_state = own.clone();
    by_state.state = Some(PodSandboxStateValue {
        state: PodSandboxState::SandboxNotready.into(),
    });
    assert_eq!(listed(scene, &by_state).await, [stopped.id.as_str()]);
    by_state.state = Some(PodSandboxStateValue {
        state: PodSandboxState::SandboxReady.into(),
    });
    by_state.id = stopped.id;
    assert_eq!(listed(scene, &by_state).await, [""; 0]);
}

pub(crate) async fn sandbox_labels_and_annotations_are_returned(scene: &Scene) {
    let mut config = scene.pod();
    config.annotations = labels(&[
        ("kubernetes.io/config.seen", "2026-01-01T00:00:00Z"),
        (
            "plimsoll.test/text",
            "several\nlines, \"quoted\" and ümlauts",
        ),
        ("plimsoll.test/empty", ""),
    ]);
    let sandbox = scene.run(config).await;
    let runtime = scene.runtime();
    let status = runtime.pod_sandbox_status(&sandbox.id).await.unwrap();
    assert_eq!(status.labels, sandbox.config.labels);
    assert_eq!(status.annotations, sandbox.config.annotations);
    let list = runtime.list_pod_sandboxes(&scene.own_sandboxes()).await;
    let item = &list.unwrap()[0];
    assert_eq!(item.labels, sandbox.config.labels);
    assert_eq!(item.annotations, sandbox.config.annotations);
    assert_eq!(item.metadata, sandbox.config.metadata);
    assert_eq!(item.created_at, status.created_at);
}

pub(crate) async fn attempts_distinguish_sandboxes_of_a_pod(scene: &Scene) {
    let first = scene.run_pod().await;
    scene.runtime().stop_pod_sandbox(&first.id).await.unwrap();
    let mut again = first.config.clone();
    again.metadata.as_mut().unwrap().attempt = 1;
    let second = scene.run(again).await;
    assert_ne!(first.id, second.id);
    let list = scene
        .runtime()
        .list_pod_sandboxes(&scene.own_sandboxes())
        .await;
    let attempt = |id: &str| {
        let found = list.as_ref().unwrap().iter().find(|item| item.id == id);
        found.unwrap().metadata.as_ref().unwrap().attempt
    };
    assert_eq!((attempt(&first.id), attempt(&second.id)), (0, 1));
}

pub(crate) async fn a_pod_on_the_nodes_network_shares_it(scene: &Scene) {
    let on_node = {
        let mut options = own_processes();
        options.network = NamespaceMode::Node.into();
        options
    };
    let mut config = scene.pod();
    // The name is the node's too.
    config.hostname = String::new();
    let linux = config.linux.as_mut().unwrap();
    let context = linux.security_context.as_mut().unwrap();
    context.namespace_options = Some(on_node.clone());
    let sandbox = scene.run(config).await;
    let mut container = lasting();
    security(&mut container).namespace_options = Some(on_node);
    let id = scene.start(&sandbox, &container).await;
    let inside = scene.shell(&id, "readlink /proc/self/ns/net").await;
    let outside = std::fs::read_link("/proc/self/ns/net").unwrap();
    assert_eq!(inside, outside.to_string_lossy());
    let status = scene
        .runtime()
        .pod_sandbox_status(&sandbox.id)
        .await
        .unwrap();
    let options = status
        .linux
        .and_then(|l| l.namespaces)
        .and_then(|n| n.options);
    assert_eq!(options.unwrap().network(), NamespaceMode::Node);

    let apart = scene.start_alone(&lasting()).await;
    let inside = scene.shell(&apart, "readlink /proc/self/ns/net").await;
    assert_ne!(inside, outside.to_string_lossy());
}

pub(crate) async fn a_pod_has_its_own_host_name_and_resolver(scene: &Scene) {
    let mut config = scene.pod();
    config.hostname = "web-0".to_owned();
    config.dns_config = Some(DnsConfig {
        servers: vec!["10.96.0.10".to_owned()],
        searches: vec![
            "test.svc.cluster.local".to_owned(),
            "cluster.local".to_owned(),
        ],
        options: vec!["ndots:5".to_owned()],
    });
    let sandbox = scene.run(config).await;
    let id = scene.start(&sandbox, &lasting()).await;
    assert_eq!(scene.shell(&id, "hostname").await, "web-0");
    assert_eq!(scene.shell(&id, "cat /etc/hostname").await, "web-0");
    let resolver = scene.shell(&id, "cat /etc/resolv.conf").await;
    let mut lines: Vec<&str> = resolver.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "nameserver 10.96.0.10",
            "options ndots:5",
            "search test.svc.cluster.local cluster.local",
        ]
    );
}

pub(crate) async fn unknown_sandboxes_are_not_found(scene: &Scene) {
    let runtime = scene.runtime();
    let error = runtime.pod_sandbox_status("0badc0de").await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    runtime.stop_pod_sandbox("0badc0de").await.unwrap();
    runtime.remove_pod_sandbox("0badc0de").await.unwrap();
    let filter = PodSandboxFilter {
        id: "0badc0de".to_owned(),
        ..PodSandboxFilter::default()
    };
    assert_eq!(listed(scene, &filter).await, [""; 0]);
    let (config, pod) = (lasting(), scene.pod());
    let created = runtime.create_container("0badc0de", &config, &pod);
    assert!(created.await.is_err());
}

async fn listed(scene: &Scene, filter: &PodSandboxFilter) -> Vec<String> {
    let list = scene.runtime().list_pod_sandboxes(filter).await.unwrap();
    let mut ids: Vec<String> = list.into_iter().map(|item| item.id).collect();
    ids.sort();
    ids
}

pub(crate) fn now_nanos() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since.unwrap_or(Duration::ZERO).as_nanos()).unwrap()
}

pub(crate) async fn unknown_runtime_handler_is_refused(scene: &Scene) {
    let run = scene.runtime();
    let refused = run.run_pod_sandbox(&scene.pod(), "no-such-handler").await;
    let shown = refused.unwrap_err().chain();
    let expected = "no runtime for \"no-such-handler\" is configured";
    assert!(shown.contains(expected), "{shown}");
}
