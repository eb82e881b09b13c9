//! What containers share with each other and with the node, and what they cannot access.

use std::process::Command;

use plimsoll_runtime::wire::{
    Device, Mount, MountPropagation, NamespaceMode, NamespaceOption, PodSandboxConfig,
};
use plimsoll_testkit::mount::unmount_below;

use crate::scene::{Scene, labels, lasting, named, own_processes, script, security, until};

pub(crate) async fn containers_of_a_pod_share_network_and_ipc_but_not_processes(scene: &Scene) {
    let sandbox = scene.run_pod().await;
    let one = scene.start(&sandbox, &named(lasting(), "one", 0)).await;
    let two = scene.start(&sandbox, &named(lasting(), "two", 0)).await;
    for (namespace, is_shared) in [
        ("net", true),
        ("ipc", true),
        ("uts", true),
        ("pid", false),
        ("mnt", false),
    ] {
        let link = format!("readlink /proc/self/ns/{namespace}");
        let inside_one = scene.shell(&one, &link).await;
        let inside_two = scene.shell(&two, &link).await;
        assert_eq!(inside_one == inside_two, is_shared, "{namespace}");
        assert_ne!(inside_one, of_node(namespace), "{namespace}");
    }
    // The shell, its child, and the command that counts.
    let own = scene.shell(&one, "ls -d /proc/[0-9]* | wc -l").await;
    assert!(own.parse::<usize>().unwrap() < 10, "{own}");
}

pub(crate) async fn shared_memory_is_shared_in_a_pod(scene: &Scene) {
    let sandbox = scene.run_pod().await;
    let one = scene.start(&sandbox, &named(lasting(), "one", 0)).await;
    let two = scene.start(&sandbox, &named(lasting(), "two", 0)).await;
    scene.shell(&one, "echo hello > /dev/shm/note").await;
    assert_eq!(scene.shell(&two, "cat /dev/shm/note").await, "hello");
    let size = scene
        .shell(&two, "df -k /dev/shm | tail -n 1 | awk '{print $2}'")
        .await;
    assert_eq!(size, "65536");
    let other = scene.start_alone(&lasting()).await;
    assert_eq!(scene.shell(&other, "ls /dev/shm").await, "");
}

pub(crate) async fn a_shared_process_namespace_shows_all_processes(scene: &Scene) {
    let shared = with_processes(NamespaceMode::Pod);
    let sandbox = scene.run(in_namespaces(scene.pod(), &shared)).await;
    let mut one = named(script("exec sleep 4242"), "one", 0);
    security(&mut one).namespace_options = Some(shared.clone());
    scene.start(&sandbox, &one).await;
    let mut two = named(lasting(), "two", 0);
    security(&mut two).namespace_options = Some(shared);
    let two = scene.start(&sandbox, &two).await;
    assert_sees(scene, &two, "sleep 4242").await;
}

pub(crate) async fn processes_of_another_container_can_be_joined(scene: &Scene) {
    let sandbox = scene.run_pod().await;
    let target = named(script("exec sleep 4243"), "target", 0);
    let target = scene.start(&sandbox, &target).await;
    let mut joining = named(lasting(), "joining", 0);
    let mut options = with_processes(NamespaceMode::Target);
    options.target_id = target;
    security(&mut joining).namespace_options = Some(options);
    let joining = scene.start(&sandbox, &joining).await;
    assert_sees(scene, &joining, "sleep 4243").await;
}

pub(crate) async fn processes_of_the_node_can_be_shared(scene: &Scene) {
    let shared = with_processes(NamespaceMode::Node);
    let sandbox = scene.run(in_namespaces(scene.pod(), &shared)).await;
    let mut config = lasting();
    security(&mut config).namespace_options = Some(shared);
    let id = scene.start(&sandbox, &config).await;
    let inside = scene.shell(&id, "readlink /proc/self/ns/pid").await;
    assert_eq!(inside, of_node("pid"));
}

pub(crate) async fn paths_are_masked_and_read_only(scene: &Scene) {
    let mut config = lasting();
    let context = security(&mut config);
    context.masked_paths = vec!["/proc/keys".to_owned(), "/sys/firmware".to_owned()];
    context.readonly_paths = vec!["/proc/sys".to_owned()];
    let id = scene.start_alone(&config).await;
    assert_eq!(scene.shell(&id, "cat /proc/keys").await, "");
    assert_eq!(scene.shell(&id, "ls /sys/firmware").await, "");
    let tried = scene.shell(&id, "(echo x > /proc/sys/kernel/domainname) 2>&1 || true");
    let tried = tried.await;
    assert!(tried.contains("Read-only file system"), "{tried}");
}

/// Root with the default capabilities would lift its own limits.
pub(crate) async fn cgroups_cannot_be_written(scene: &Scene) {
    let id = scene.start_alone(&lasting()).await;
    // Opened for writing, without a write.
    let writable = "find /sys/fs/cgroup -type f | while read file; do \
                    (: >> $file) 2> /dev/null && echo $file; done; true";
    assert_eq!(scene.shell(&id, writable).await, "");
    for attempt in [
        "echo -1 > $cgroup/memory.limit_in_bytes",
        "echo max > $cgroup/memory.max",
        "echo 1 > $cgroup/cgroup.procs",
        "echo /bin/sh > $cgroup/release_agent",
        "mkdir $cgroup/own",
        "mount -o remount,rw $cgroup",
        "mount -o remount,bind,rw $cgroup",
        "umount $cgroup",
    ] {
        let cgroup = "cgroup=/sys/fs/cgroup/memory; [ -d $cgroup ] || cgroup=/sys/fs/cgroup";
        let refused = format!("{cgroup}; ! ({attempt}) 2>&1");
        let text = scene.shell(&id, &refused).await;
        let is_refused = [
            "Read-only file system",
            "permission denied",
            "not permitted",
        ];
        let is_refused = is_refused.iter().any(|reason| text.contains(reason));
        let is_missing = text.contains("nonexistent directory");
        assert!(is_refused || is_missing, "{attempt}: {text}");
    }
}

pub(crate) async fn cgroups_can_be_written_by_a_privileged_container(scene: &Scene) {
    let mut pod = scene.pod();
    let linux = pod.linux.as_mut().unwrap();
    linux.security_context.as_mut().unwrap().privileged = true;
    let sandbox = scene.run(pod).await;
    let mut config = lasting();
    security(&mut config).privileged = true;
    let id = scene.start(&sandbox, &config).await;
    let own = "cgroup=/sys/fs/cgroup/memory; [ -d $cgroup ] || cgroup=/sys/fs/cgroup; \
               : >> $cgroup/cgroup.procs";
    scene.shell(&id, own).await;
}

pub(crate) async fn kernel_settings_are_the_pods_own(scene: &Scene) {
    let setting = "/proc/sys/net/ipv4/ip_unprivileged_port_start";
    let mut pod = scene.pod();
    pod.linux.as_mut().unwrap().sysctls = labels(&[
        ("net.ipv4.ip_unprivileged_port_start", "77"),
        ("kernel.shm_rmid_forced", "1"),
    ]);
    let sandbox = scene.run(pod).await;
    let id = scene.start(&sandbox, &lasting()).await;
    assert_eq!(scene.shell(&id, &format!("cat {setting}")).await, "77");
    let forced = "cat /proc/sys/kernel/shm_rmid_forced";
    assert_eq!(scene.shell(&id, forced).await, "1");
    assert_ne!(std::fs::read_to_string(setting).unwrap(), "77\n");
}

pub(crate) async fn devices_are_added_by_name(scene: &Scene) {
    let mut config = lasting();
    config.devices = vec![Device {
        host_path: "/dev/null".to_owned(),
        container_path: "/dev/void".to_owned(),
        permissions: "rw".to_owned(),
    }];
    let id = scene.start_alone(&config).await;
    scene
        .shell(&id, "test -c /dev/void && echo gone > /dev/void")
        .await;
}

pub(crate) async fn later_mounts_are_visible_only_with_propagation(scene: &Scene) {
    let folder = scene.folder().join("shared");
    std::fs::create_dir_all(folder.join("late")).unwrap();
    run(
        "mount",
        &["-t", "tmpfs", "tmpfs", &folder.to_string_lossy()],
    );
    run("mount", &["--make-shared", &folder.to_string_lossy()]);
    std::fs::create_dir(folder.join("late")).unwrap();
    let mut config = lasting();
    config.mounts = [
        ("/private", MountPropagation::PropagationPrivate),
        ("/follows", MountPropagation::PropagationHostToContainer),
    ]
    .map(|(inside, propagation)| Mount {
        host_path: folder.to_string_lossy().into_owned(),
        container_path: inside.to_owned(),
        propagation: propagation.into(),
        ..Mount::default()
    })
    .to_vec();
    let id = scene.start_alone(&config).await;
    let late = folder.join("late").to_string_lossy().into_owned();
    run("mount", &["-t", "tmpfs", "tmpfs", &late]);
    std::fs::write(folder.join("late/file"), "").unwrap();
    assert_eq!(scene.shell(&id, "ls /follows/late").await, "file");
    assert_eq!(scene.shell(&id, "ls /private/late").await, "");
    scene.clear().await;
    unmount_below(scene.folder());
}

pub(crate) async fn new_privileges_can_be_forbidden(scene: &Scene) {
    let asks = "grep NoNewPrivs /proc/self/status | cut -f 2";
    assert_eq!(scene.output(&script(asks)).await, "0");
    let mut config = script(asks);
    security(&mut config).no_new_privs = true;
    assert_eq!(scene.output(&config).await, "1");
}

/// Waits until a container sees a command line; a shell takes a moment until exec.
async fn assert_sees(scene: &Scene, id: &str, command: &str) {
    until(&format!("{command:?} is seen"), async || {
        let seen = scene.shell(id, "ps -o args").await;
        seen.lines().any(|line| line == command).then_some(())
    })
    .await;
}

fn with_processes(mode: NamespaceMode) -> NamespaceOption {
    let mut options = own_processes();
    options.pid = mode.into();
    options
}

fn in_namespaces(mut pod: PodSandboxConfig, options: &NamespaceOption) -> PodSandboxConfig {
    let linux = pod.linux.as_mut().unwrap();
    let context = linux.security_context.as_mut().unwrap();
    context.namespace_options = Some(options.clone());
    pod
}

fn of_node(namespace: &str) -> String {
    let link = std::fs::read_link(format!("/proc/self/ns/{namespace}"));
    link.unwrap().to_string_lossy().into_owned()
}

fn run(program: &str, words: &[&str]) {
    let status = Command::new(program).args(words).status().unwrap();
    assert!(status.success(), "{program} {words:?}");
}
