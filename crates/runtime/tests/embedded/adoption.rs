//! An agent is killed, and the next one adopts its pods.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use plimsoll_runtime::Runtime;
use plimsoll_runtime::embedded::Embedded;
use plimsoll_runtime::wire::{ContainerFilter, ContainerState, PodSandboxFilter, PodSandboxState};

use crate::scene::{Scene, alive, kill, pid_in, shell, trees, until};

/// The argument with which this binary is an agent that starts a pod and waits to be killed.
pub(crate) const AGENT: &str = "test-agent";

pub(crate) async fn containers_outlive_the_runtime_and_are_found_again(scene: &mut Scene) {
    let pod = scene.pod();
    let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
    let line = "while true; do echo tick; sleep 0.05; done";
    let running = scene.run(&sandbox, &pod, shell("running", line)).await;
    let ended = scene.run(&sandbox, &pod, shell("ended", "exit 7")).await;
    scene.wait_for_exit(&ended).await;
    let created = shell("created", "true");
    let created = scene
        .runtime()
        .create_container(&sandbox, &created, &pod)
        .await
        .unwrap();
    let before = scene.status(&running).await;
    scene.end();
    let log = scene.logs().join("running/0.log");
    let size = fs::metadata(&log).unwrap().len();
    until("the log grows without an agent", || async {
        (fs::metadata(&log).unwrap().len() > size).then_some(())
    })
    .await;
    scene.start().await;
    assert_eq!(scene.status(&running).await, before);
    assert_eq!(scene.status(&ended).await.exit_code, 7);
    assert_eq!(
        scene.status(&created).await.state(),
        ContainerState::ContainerCreated
    );
    let status = scene.runtime().pod_sandbox_status(&sandbox).await.unwrap();
    assert_eq!(status.state(), PodSandboxState::SandboxReady);
    // A started container cannot be started again, a created one can.
    scene.runtime().start_container(&running).await.unwrap_err();
    scene.runtime().start_container(&created).await.unwrap();
    assert_eq!(scene.wait_for_exit(&created).await.exit_code, 0);
    // The names are still in use.
    let again = shell("running", "true");
    let refused = scene
        .runtime()
        .create_container(&sandbox, &again, &pod)
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("is reserved for"), "{refused}");
}

pub(crate) async fn a_killed_agent_leaves_everything_running(scene: &mut Scene) {
    scene.end();
    let mut agent = Command::new("/proc/self/exe")
        .arg(AGENT)
        .arg(scene.dir.path())
        .arg(&scene.name)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(agent.stdout.take().unwrap()).lines();
    let container = lines.next().unwrap().unwrap();
    agent.kill().unwrap();
    agent.wait().unwrap();
    scene.start().await;
    let all = ContainerFilter::default();
    let found = scene.runtime().list_containers(&all).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].id, container);
    assert_eq!(found[0].state(), ContainerState::ContainerRunning);
    assert_eq!(
        scene.exec(&container, &["echo", "hello"]).await,
        ("hello\n".to_owned(), 0)
    );
    let sandboxes = scene
        .runtime()
        .list_pod_sandboxes(&PodSandboxFilter::default())
        .await;
    assert_eq!(sandboxes.unwrap().len(), 1);
}

pub(crate) async fn an_agent_may_be_killed_at_any_moment(scene: &mut Scene) {
    let all = ContainerFilter::default();
    // The steps of a pod's start, as they show on disk.
    let steps = [
        ("sandboxes", "config"),
        ("sandboxes", "shm"),
        ("sandboxes", "pause.json"),
        ("sandboxes", "sandbox.json"),
        ("containers", "config.json"),
        ("containers", "container.json"),
        ("containers", "monitor.json"),
        ("containers", "oci/*/state.json"),
        ("containers", "started.json"),
    ];
    for (turn, (kind, file)) in steps.into_iter().enumerate() {
        scene.end();
        let mut agent = Command::new("/proc/self/exe")
            .arg(AGENT)
            .arg(scene.dir.path())
            .arg(&scene.name)
            .arg(turn.to_string())
            .spawn()
            .unwrap();
        // The first pod is complete, the second has this step.
        let root = scene.root();
        until("the agent comes so far", || async {
            (count(&root.join(kind), file) >= 2).then_some(())
        })
        .await;
        agent.kill().unwrap();
        agent.wait().unwrap();
        scene.start().await;
        let found = scene.runtime().list_containers(&all).await.unwrap();
        assert!(!found.is_empty());
        for container in &found {
            let dir = scene.root().join("containers").join(&container.id);
            let is_started = dir.join("started.json").exists();
            match container.state() {
                ContainerState::ContainerRunning => {
                    assert!(alive(pid_in(&dir.join("started.json"))));
                    assert_eq!(scene.exec(&container.id, &["true"]).await.1, 0);
                }
                state => assert!(!is_started, "{state:?}"),
            }
        }
        // Every process belongs to a known container or sandbox.
        let sandboxes = scene
            .runtime()
            .list_pod_sandboxes(&PodSandboxFilter::default())
            .await;
        let known: Vec<String> = sandboxes
            .unwrap()
            .into_iter()
            .map(|sandbox| sandbox.id)
            .collect();
        let known: Vec<&str> = known
            .iter()
            .map(String::as_str)
            .chain(found.iter().map(|container| container.id.as_str()))
            .collect();
        let own = trees().into_iter().map(|tree| tree.join(&scene.name));
        let own = own.into_iter().find(|tree| tree.exists()).unwrap();
        for entry in fs::read_dir(own).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_dir() && !known.contains(&name.as_str()) {
                let left = fs::read_to_string(entry.path().join("cgroup.procs")).unwrap();
                assert_eq!(left, "", "{name} is unknown");
            }
        }
        for sandbox in scene
            .runtime()
            .list_pod_sandboxes(&PodSandboxFilter::default())
            .await
            .unwrap()
        {
            scene
                .runtime()
                .remove_pod_sandbox(&sandbox.id)
                .await
                .unwrap();
        }
    }
}

/// Starts pods, prints their containers' ids, and waits to be killed. With a number, it continues
/// to start pods.
pub(crate) fn agent_main() -> ExitCode {
    let mut args = std::env::args().skip(2);
    let (dir, name) = (args.next().unwrap(), args.next().unwrap());
    let turn = args.next();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut scene = Scene::in_dir(Path::new(&dir), &name).await;
        if let Some(turn) = turn {
            churn(&mut scene, &turn).await;
        }
        let pod = scene.pod();
        let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
        let id = scene
            .run(&sandbox, &pod, shell("main", "exec sleep 1000"))
            .await;
        let mut out = std::io::stdout();
        std::io::Write::write_all(&mut out, format!("{id}\n").as_bytes()).unwrap();
        std::future::pending::<()>().await;
    });
    ExitCode::SUCCESS
}

async fn churn(scene: &mut Scene, turn: &str) {
    loop {
        let mut pod = scene.pod();
        pod.metadata.as_mut().unwrap().uid.push_str(turn);
        let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
        let config = shell("main", "exec sleep 1000");
        scene.run(&sandbox, &pod, config).await;
    }
}

/// How many directories have the file; `*` stands for any one directory.
fn count(dir: &Path, file: &str) -> usize {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let has = |path: &Path| match file.split_once("/*/") {
        Some((upper, lower)) => count(&path.join(upper), lower) > 0,
        None => path.join(file).exists(),
    };
    entries.filter(|entry| has(&entry.path())).count()
}

pub(crate) async fn the_end_of_a_container_is_noted_while_no_agent_runs(scene: &mut Scene) {
    let pod = scene.pod();
    let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
    let go = scene.dir.path().join("go");
    fs::create_dir(&go).unwrap();
    let mut config = shell(
        "main",
        "while ! [ -e /go/now ]; do sleep 0.02; done; echo bye; exit 3",
    );
    config.mounts = vec![plimsoll_runtime::wire::Mount {
        container_path: "/go".to_owned(),
        host_path: go.display().to_string(),
        ..Default::default()
    }];
    let id = scene.run(&sandbox, &pod, config).await;
    let dir = scene.root().join("containers").join(&id);
    scene.end();
    fs::write(go.join("now"), "").unwrap();
    let monitor = pid_in(&dir.join("monitor.json"));
    until("the monitor ends", || async {
        (!alive(monitor)).then_some(())
    })
    .await;
    scene.start().await;
    let status = scene.status(&id).await;
    assert_eq!((status.exit_code, status.reason.as_str()), (3, "Error"));
    assert!(status.finished_at > status.started_at);
    let log = fs::read_to_string(&status.log_path).unwrap();
    assert!(log.ends_with(" stdout F bye\n"), "{log}");
}

pub(crate) async fn container_ends_when_its_monitor_dies(scene: &mut Scene) {
    let pod = scene.pod();
    let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
    let id = scene
        .run(&sandbox, &pod, shell("main", "exec sleep 1000"))
        .await;
    let dir = scene.root().join("containers").join(&id);
    let process = pid_in(&dir.join("started.json"));
    let mut changes = scene.runtime().changes();
    kill(pid_in(&dir.join("monitor.json")));
    changes.changed().await.unwrap();
    let status = scene.status(&id).await;
    assert_eq!((status.exit_code, status.reason.as_str()), (255, "Unknown"));
    assert!(!alive(process));
    // The same while no agent runs.
    let other = scene
        .run(&sandbox, &pod, shell("other", "exec sleep 1000"))
        .await;
    let dir = scene.root().join("containers").join(&other);
    let process = pid_in(&dir.join("started.json"));
    scene.end();
    kill(pid_in(&dir.join("monitor.json")));
    scene.start().await;
    let status = scene.wait_for_exit(&other).await;
    assert_eq!((status.exit_code, status.reason.as_str()), (255, "Unknown"));
    assert!(!alive(process));
}

pub(crate) async fn a_helper_that_dies_is_replaced(scene: &mut Scene) {
    let pod = scene.pod();
    let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
    let before = scene
        .run(&sandbox, &pod, shell("before", "exec sleep 1000"))
        .await;
    let own = std::process::id().to_string();
    let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap();
    let helpers = children.split_whitespace().map(|pid| pid.parse().unwrap());
    for helper in helpers.filter(|pid| is_helper_of(*pid, &scene.root())) {
        kill(helper);
    }
    let after = scene
        .run(&sandbox, &pod, shell("after", "exec sleep 1000"))
        .await;
    for id in [before, after] {
        assert_eq!(scene.exec(&id, &["true"]).await.1, 0);
    }
}

fn is_helper_of(pid: i32, root: &Path) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    let mut links = files
        .flatten()
        .filter_map(|file| fs::read_link(file.path()).ok());
    links.any(|link| link.starts_with(root))
}

pub(crate) async fn incomplete_containers_are_removed(scene: &mut Scene) {
    let pod = scene.pod();
    let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
    let id = scene
        .run(&sandbox, &pod, shell("main", "exec sleep 1000"))
        .await;
    scene
        .runtime()
        .stop_container(&id, Duration::ZERO)
        .await
        .unwrap();
    scene.end();
    // As if the agent had been killed before it recorded that they are complete.
    let pause = pid_in(
        &scene
            .root()
            .join("sandboxes")
            .join(&sandbox)
            .join("pause.json"),
    );
    assert!(alive(pause));
    for path in ["sandboxes", "containers"] {
        for entry in fs::read_dir(scene.root().join(path)).unwrap() {
            let dir = entry.unwrap().path();
            for name in ["sandbox.json", "container.json"] {
                let _ = fs::remove_file(dir.join(name));
            }
        }
    }
    scene.start().await;
    let all = ContainerFilter::default();
    assert!(
        scene
            .runtime()
            .list_containers(&all)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(!alive(pause));
}

pub(crate) async fn a_directory_has_one_runtime_at_a_time(scene: &mut Scene) {
    let refused = Embedded::new(scene.options()).await.unwrap_err();
    assert!(
        refused.chain().ends_with("another process uses it"),
        "{}",
        refused.chain()
    );
}
