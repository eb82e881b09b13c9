//! Cgroups of containers: paths, settings, enforcement of limits.

use plimsoll_runtime::wire::{ContainerConfig, LinuxContainerResources};
use plimsoll_testkit::cgroup;

use crate::scene::{Scene, cgroup_of, lasting, resources, script, until};

const MIB: i64 = 1024 * 1024;

pub(crate) async fn a_container_is_placed_below_its_pod(scene: &Scene) {
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &script("exec sleep 1000")).await;
    let at = cgroup_of(&sandbox, &id);
    until("the command is alone there", async || {
        let [process] = cgroup::processes(&at)[..] else {
            return None;
        };
        let line = std::fs::read_to_string(format!("/proc/{process}/cmdline"));
        (line.ok()? == "sleep\x001000\x00").then_some(())
    })
    .await;
}

pub(crate) async fn cgroup_values_match_the_request(scene: &Scene) {
    let mut config = lasting();
    *resources(&mut config) = LinuxContainerResources {
        cpu_period: 100_000,
        cpu_quota: 50_000,
        cpu_shares: 256,
        memory_limit_in_bytes: 64 * MIB,
        oom_score_adj: 987,
        cpuset_cpus: "0".to_owned(),
        ..LinuxContainerResources::default()
    };
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &config).await;
    let at = cgroup_of(&sandbox, &id);
    assert_values(scene, &at, 256, 50_000, 64 * MIB);
    assert_eq!(cgroup::read("cpuset", &at, "cpuset.cpus"), "0");
    assert_eq!(scene.shell(&id, "cat /proc/1/oom_score_adj").await, "987");
    assert_eq!(
        scene.shell(&id, "cat /proc/self/oom_score_adj").await,
        "987"
    );
}

pub(crate) async fn limits_of_a_running_container_change(scene: &Scene) {
    let mut config = lasting();
    *resources(&mut config) = limits(256, 50_000, 64 * MIB);
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &config).await;
    let at = cgroup_of(&sandbox, &id);
    for (shares, quota, memory) in [(512, 100_000, 128 * MIB), (128, 20_000, 48 * MIB)] {
        let wanted = limits(shares, quota, memory);
        let runtime = scene.runtime();
        let updated = runtime.update_container_resources(&id, &wanted).await;
        updated.unwrap_or_else(|error| panic!("{}", error.chain()));
        assert_values(scene, &at, shares, quota, memory);
    }
    // Settings that are not named stay.
    let only_cpu = LinuxContainerResources {
        cpu_shares: 1024,
        ..LinuxContainerResources::default()
    };
    let runtime = scene.runtime();
    runtime
        .update_container_resources(&id, &only_cpu)
        .await
        .unwrap();
    assert_values(scene, &at, 1024, 20_000, 48 * MIB);
}

pub(crate) async fn a_memory_hog_is_killed_inside_its_limit(scene: &Scene) {
    let id = scene
        .start_alone(&hog("exec dd if=/dev/zero of=/dev/null bs=256M"))
        .await;
    assert_killed_for_memory(scene, &id).await;

    let within = script("dd if=/dev/zero of=/dev/null bs=8M count=2");
    let id = scene.start_alone(&within).await;
    let status = scene.ended(&id).await;
    assert_eq!((status.exit_code, status.reason.as_str()), (0, "Completed"));
}

pub(crate) async fn files_of_v2_are_written_by_name(scene: &Scene) {
    if !cgroup::is_unified() {
        return;
    }
    let mut config = lasting();
    let wanted = [("memory.high", 48 * MIB), ("memory.low", 16 * MIB)];
    let resources = resources(&mut config);
    resources.memory_limit_in_bytes = 64 * MIB;
    resources.unified = wanted
        .map(|(file, value)| (file.to_owned(), value.to_string()))
        .into();
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &config).await;
    let at = cgroup_of(&sandbox, &id);
    for (file, value) in wanted {
        assert_eq!(cgroup::read("memory", &at, file), value.to_string());
    }
}

pub(crate) async fn memory_oom_group_kills_the_whole_container(scene: &Scene) {
    if !cgroup::is_unified() {
        return;
    }
    // A child that exceeds the limit, and a parent that would continue.
    let mut config = hog("dd if=/dev/zero of=/dev/null bs=256M; sleep 1000");
    let whole = ("memory.oom.group".to_owned(), "1".to_owned());
    resources(&mut config).unified = [whole].into();
    let id = scene.start_alone(&config).await;
    assert_killed_for_memory(scene, &id).await;
}

pub(crate) async fn cgroup_is_removed_with_the_container(scene: &Scene) {
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &lasting()).await;
    let at = cgroup_of(&sandbox, &id);
    assert!(cgroup::exists(&at));
    scene.runtime().remove_container(&id).await.unwrap();
    assert!(!cgroup::exists(&at));
}

/// The reason may follow the exit: containerd receives them separately.
async fn assert_killed_for_memory(scene: &Scene, id: &str) {
    assert_eq!(scene.ended(id).await.exit_code, 137);
    until("the reason OOMKilled is reported", async || {
        let status = scene.status(id).await;
        (status.reason == "OOMKilled").then_some(())
    })
    .await;
}

fn hog(text: &str) -> ContainerConfig {
    let mut config = script(text);
    resources(&mut config).memory_limit_in_bytes = 32 * MIB;
    config
}

fn limits(shares: i64, quota: i64, memory: i64) -> LinuxContainerResources {
    LinuxContainerResources {
        cpu_period: 100_000,
        cpu_quota: quota,
        cpu_shares: shares,
        memory_limit_in_bytes: memory,
        ..LinuxContainerResources::default()
    }
}

fn assert_values(scene: &Scene, at: &str, shares: i64, quota: i64, memory: i64) {
    let read = |controller, file| cgroup::read(controller, at, file);
    if cgroup::is_unified() {
        let weights = scene.cpu_weights(u64::try_from(shares).unwrap());
        let weight = read("cpu", "cpu.weight").parse().unwrap();
        assert!(weights.contains(&weight), "{weight} for {shares} shares");
        assert_eq!(read("cpu", "cpu.max"), format!("{quota} 100000"));
        assert_eq!(read("memory", "memory.max"), memory.to_string());
    } else {
        assert_eq!(read("cpu", "cpu.shares"), shares.to_string());
        assert_eq!(read("cpu", "cpu.cfs_quota_us"), quota.to_string());
        assert_eq!(read("cpu", "cpu.cfs_period_us"), "100000");
        assert_eq!(read("memory", "memory.limit_in_bytes"), memory.to_string());
    }
}
