//! What containers cannot do, and where their processes are.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_runtime::Runtime;
use plimsoll_runtime::wire::{
    Mount, MountPropagation, NamespaceMode, NamespaceOption, PodSandboxConfig,
};
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};

use crate::scene::{Scene, alive, namespaces, pid_in, shell, trees, until};

pub(crate) async fn processes_stand_in_their_cgroups(scene: &mut Scene) {
    let pod = scene.pod();
    let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
    let id = scene
        .run(&sandbox, &pod, shell("main", "exec sleep 1000"))
        .await;
    let container = scene.root().join("containers").join(&id);
    let pause = pid_in(
        &scene
            .root()
            .join("sandboxes")
            .join(&sandbox)
            .join("pause.json"),
    );
    for (pid, want) in [
        (pid_in(&container.join("started.json")), &id),
        (pause, &sandbox),
    ] {
        let cgroups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
        let want = format!("/{}/{want}", scene.name);
        for line in cgroups.lines() {
            let path = line.splitn(3, ':').nth(2).unwrap();
            // A hybrid machine's v2 tree has no controllers and is left alone.
            let is_bare = line.starts_with("0::") && trees().len() > 1;
            assert!(path == want || is_bare, "{pid}: {line}");
        }
    }
    let monitor = pid_in(&container.join("monitor.json"));
    until("the monitor is outside", || async {
        let cgroups = fs::read_to_string(format!("/proc/{monitor}/cgroup")).unwrap();
        (!cgroups.contains(&scene.name)).then_some(())
    })
    .await;
    let score = fs::read_to_string(format!(
        "/proc/{}/oom_score_adj",
        pid_in(&container.join("started.json"))
    ));
    assert_eq!(score.unwrap().trim(), "900");
}

pub(crate) async fn disks_of_the_machine_cannot_be_read(scene: &mut Scene) {
    let pod = scene.pod();
    let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
    let id = scene
        .run(&sandbox, &pod, shell("main", "exec sleep 1000"))
        .await;
    // Memory of the machine as a stand-in that every machine has.
    let (output, code) = scene.exec(&id, &["mknod", "/tmp/mem", "c", "1", "1"]).await;
    assert_eq!(code, 0, "{output}");
    let (output, code) = scene.exec(&id, &["head", "-c", "1", "/tmp/mem"]).await;
    assert_ne!(code, 0);
    assert!(output.contains("Operation not permitted"), "{output}");
    let (output, code) = scene.exec(&id, &["head", "-c", "1", "/dev/zero"]).await;
    assert_eq!((output.as_str(), code), ("\0", 0));
}

pub(crate) async fn the_first_process_of_a_shared_pod_leads_nowhere(scene: &mut Scene) {
    let mut pod = scene.pod();
    share_processes(&mut pod);
    let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
    let mut config = shell("main", "exec sleep 1000");
    let linux = config.linux.as_mut().unwrap();
    let security = linux.security_context.as_mut().unwrap();
    security.namespace_options = Some(namespaces(NamespaceMode::Pod));
    let id = scene.run(&sandbox, &pod, config).await;
    let (processes, _) = scene.exec(&id, &["ps", "-o", "pid,comm"]).await;
    assert!(processes.contains("    1 pause"), "{processes}");
    let (output, code) = scene.exec(&id, &["ls", "/proc/1/root/"]).await;
    assert!(code != 0 || output.is_empty(), "{output}");
    // The process has closed the runtime's directory, as all others have.
    scene.end();
    scene.start().await;
    // The sandbox's process reaps orphans.
    let line = "sh -c 'sleep 0.01 & echo $!'";
    let (orphan, _) = scene.exec(&id, &["sh", "-c", line]).await;
    let orphan = format!("/proc/{}", orphan.trim());
    until("the orphan is gone", || async {
        (scene.exec(&id, &["ls", &orphan]).await.1 != 0).then_some(())
    })
    .await;
}

pub(crate) async fn a_container_may_join_the_processes_of_another(scene: &mut Scene) {
    let pod = scene.pod();
    let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
    let target = scene
        .run(&sandbox, &pod, shell("target", "exec sleep 4711"))
        .await;
    let mut config = shell("debugger", "ps -o pid,args; exec sleep 1000");
    let linux = config.linux.as_mut().unwrap();
    let security = linux.security_context.as_mut().unwrap();
    security.namespace_options = Some(NamespaceOption {
        target_id: target.clone(),
        ..namespaces(NamespaceMode::Target)
    });
    let debugger = scene.run(&sandbox, &pod, config).await;
    let (processes, _) = scene.exec(&debugger, &["ps", "-o", "pid,args"]).await;
    assert!(processes.contains("1 sleep 4711"), "{processes}");
    // It ends with its target's processes, and all of its own end with it.
    scene
        .runtime()
        .stop_container(&target, Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(scene.wait_for_exit(&debugger).await.exit_code, 137);
}

pub(crate) async fn many_pods_start_and_end_at_once(scene: &mut Scene) {
    scene.end();
    scene.network.pod_cidr = Some("10.231.8.0/24".to_owned());
    scene.start().await;
    let pods: Vec<PodSandboxConfig> = (0..12).map(|_| scene.pod()).collect();
    let scene: &Scene = scene;
    let runtime = scene.runtime();
    let work = pods.iter().map(|pod| async move {
        let sandbox = runtime.run_pod_sandbox(pod, "").await.unwrap();
        let config = shell("main", "exit 3");
        let id = runtime
            .create_container(&sandbox, &config, pod)
            .await
            .unwrap();
        runtime.start_container(&id).await.unwrap();
        let status = scene.wait_for_exit(&id).await;
        runtime.stop_pod_sandbox(&sandbox).await.unwrap();
        runtime.remove_pod_sandbox(&sandbox).await.unwrap();
        status.exit_code
    });
    let codes = futures::future::join_all(work).await;
    assert_eq!(codes, vec![3; 12]);
}

pub(crate) async fn a_container_with_frozen_processes_can_be_stopped(scene: &mut Scene) {
    let pod = scene.pod();
    let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
    let id = scene
        .run(&sandbox, &pod, shell("main", "exec sleep 1000"))
        .await;
    let pid = pid_in(
        &scene
            .root()
            .join("containers")
            .join(&id)
            .join("started.json"),
    );
    // Cgroups that a container with a cgroup namespace could create, deep below its own.
    let freezer = trees().into_iter().find(|tree| tree.ends_with("freezer"));
    let (tree, file, frozen) = match freezer {
        Some(tree) => (tree, "freezer.state", "FROZEN"),
        None => (PathBuf::from("/sys/fs/cgroup"), "cgroup.freeze", "1"),
    };
    let own = tree.join(&scene.name).join(&id).join("a/b/c");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("cgroup.procs"), pid.to_string()).unwrap();
    for cgroup in own.ancestors().take(2) {
        fs::write(cgroup.join(file), frozen).unwrap();
    }
    let stopped = scene.runtime().stop_container(&id, Duration::from_secs(1));
    tokio::time::timeout(Duration::from_secs(10), stopped)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(scene.wait_for_exit(&id).await.exit_code, 137);
    assert!(!alive(pid));
}

fn share_processes(pod: &mut PodSandboxConfig) {
    let linux = pod.linux.as_mut().unwrap();
    let security = linux.security_context.as_mut().unwrap();
    security.namespace_options = Some(namespaces(NamespaceMode::Pod));
}

/// A shared mount of the machine during a test, as most machines have.
struct SharedMount(PathBuf);

impl SharedMount {
    fn new(path: PathBuf) -> SharedMount {
        fs::create_dir(&path).unwrap();
        mount_tmpfs(&path);
        mount_change(&path, MountPropagationFlags::SHARED).unwrap();
        SharedMount(path)
    }
}

impl Drop for SharedMount {
    fn drop(&mut self) {
        // Mounts of containers and the test inside it are unmounted first.
        for path in [self.0.join("late"), self.0.join("back"), self.0.clone()] {
            let _ = unmount(path, UnmountFlags::DETACH);
        }
    }
}

fn mount_tmpfs(path: &Path) {
    mount("tmpfs", path, "tmpfs", MountFlags::empty(), None).unwrap();
}

pub(crate) async fn host_mounts_are_visible_only_with_propagation(scene: &mut Scene) {
    let shared = SharedMount::new(scene.dir.path().join("shared"));
    let pod = scene.pod();
    let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
    let bind = |target: &str, propagation: MountPropagation| Mount {
        container_path: target.to_owned(),
        host_path: shared.0.display().to_string(),
        propagation: propagation.into(),
        ..Mount::default()
    };
    let mut config = shell("main", "exec sleep 1000");
    config.mounts = vec![
        bind("/private", MountPropagation::PropagationPrivate),
        bind("/follows", MountPropagation::PropagationHostToContainer),
    ];
    let one = scene.run(&sandbox, &pod, config).await;
    let mut config = shell("other", "exec sleep 1000");
    let security = config
        .linux
        .as_mut()
        .unwrap()
        .security_context
        .as_mut()
        .unwrap();
    security.privileged = true;
    config.mounts = vec![
        bind("/private", MountPropagation::PropagationPrivate),
        bind("/both", MountPropagation::PropagationBidirectional),
    ];
    let other = scene.run(&sandbox, &pod, config).await;
    let late = shared.0.join("late");
    fs::create_dir(&late).unwrap();
    mount_tmpfs(&late);
    fs::write(late.join("file"), "").unwrap();
    for (id, path, is_seen) in [
        (&one, "/private/late/file", false),
        (&one, "/follows/late/file", true),
        (&other, "/private/late/file", false),
        (&other, "/both/late/file", true),
    ] {
        assert_eq!(
            scene.exec(id, &["ls", path]).await.1 == 0,
            is_seen,
            "{path}"
        );
    }
    let line = "mkdir /both/back && mount -t tmpfs tmpfs /both/back && touch /both/back/file";
    let (output, code) = scene.exec(&other, &["sh", "-c", line]).await;
    assert_eq!(code, 0, "{output}");
    assert!(shared.0.join("back/file").exists());
    // No mount of the container has propagated to the machine.
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let root = format!("roots/{other}");
    assert!(!mounts.contains(&root), "{mounts}");
}

pub(crate) async fn the_binary_cannot_be_written_through_a_process(scene: &mut Scene) {
    let pod = scene.pod();
    let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
    let id = scene
        .run(&sandbox, &pod, shell("main", "exec sleep 1000"))
        .await;
    let container = scene.root().join("containers").join(&id);
    let monitor = pid_in(&container.join("monitor.json"));
    // The executable of a container's first process before exec. While it runs it cannot be written
    // anyway (ETXTBSY), so only the mount options show the protection.
    let view = statvfs(format!("/proc/{monitor}/exe")).unwrap();
    assert!(view.f_flag.contains(StatVfsMountFlags::RDONLY));
}
