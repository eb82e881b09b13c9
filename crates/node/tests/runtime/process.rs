//! The first process of a container: arguments, user, capabilities, file system.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use plimsoll_runtime::wire::{Capability, ContainerConfig, Int64Value, KeyValue, Mount};

use crate::backend::OPINIONATED;
use crate::scene::{Scene, image, lasting, script, security};

pub(crate) async fn command_and_arguments_replace_those_of_the_image(scene: &Scene) {
    let mut config = opinionated();
    config.command = vec!["echo".to_owned(), "mine".to_owned()];
    assert_eq!(scene.output(&config).await, "mine");
    config.args = vec!["too".to_owned()];
    assert_eq!(scene.output(&config).await, "mine too");
}

pub(crate) async fn arguments_alone_follow_the_entrypoint(scene: &Scene) {
    let mut config = opinionated();
    assert_eq!(scene.output(&config).await, "entrypoint cmd");
    config.args = vec!["mine".to_owned()];
    assert_eq!(scene.output(&config).await, "entrypoint mine");
}

pub(crate) async fn environment_is_that_of_the_image_and_the_container(scene: &Scene) {
    let mut config = opinionated();
    config.command = vec!["env".to_owned()];
    config.envs = [("COLOR", "blue"), ("EMPTY", ""), ("TEXT", "a=b $(c) 'd'")]
        .map(|(key, value)| KeyValue {
            key: key.to_owned(),
            value: value.as_bytes().to_vec(),
        })
        .to_vec();
    let printed = scene.output(&config).await;
    let lines: Vec<&str> = printed.lines().collect();
    for line in [
        "COLOR=blue",
        "SHAPE=round",
        "EMPTY=",
        "PATH=/bin",
        "TEXT=a=b $(c) 'd'",
    ] {
        assert!(lines.contains(&line), "{line} is not in {lines:?}");
    }
    let host_name = lines.iter().find(|line| line.starts_with("HOSTNAME="));
    assert_eq!(host_name, Some(&"HOSTNAME=pod-0"));
    let colors = lines.iter().filter(|line| line.starts_with("COLOR="));
    assert_eq!(colors.count(), 1);
}

pub(crate) async fn the_working_directory_is_made(scene: &Scene) {
    let mut config = opinionated();
    config.command = vec!["pwd".to_owned()];
    assert_eq!(scene.output(&config).await, "/var");
    config.working_dir = "/some/where/new".to_owned();
    assert_eq!(scene.output(&config).await, "/some/where/new");
}

pub(crate) async fn users_and_groups_are_numbers_or_names(scene: &Scene) {
    let ids = "echo $(id -u) $(id -g) $(id -G | tr ' ' '\\n' | sort -n)";
    assert_eq!(scene.output(&script(ids)).await, "0 0 0");

    let mut numbers = script(ids);
    let context = security(&mut numbers);
    context.run_as_user = Some(Int64Value { value: 1000 });
    context.run_as_group = Some(Int64Value { value: 1001 });
    context.supplemental_groups = vec![2000, 3000];
    assert_eq!(scene.output(&numbers).await, "1000 1001 1001 2000 3000");

    let mut by_name = script(ids);
    security(&mut by_name).run_as_username = "nobody".to_owned();
    assert_eq!(scene.output(&by_name).await, "65534 65534 65534");

    let mut of_image = script(ids);
    of_image.image = Some(image(OPINIONATED));
    assert_eq!(scene.output(&of_image).await, "65534 65534 65534");
}

pub(crate) async fn mounts_are_visible_and_reported(scene: &Scene) {
    let (folder, file) = (scene.folder().join("shared"), scene.folder().join("file"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("a"), "from the node").unwrap();
    std::fs::write(&file, "one file").unwrap();
    let mut config = lasting();
    config.mounts = vec![mount(&folder, "/mnt/shared"), mount(&file, "/etc/the-file")];
    let id = scene.start_alone(&config).await;
    assert_eq!(scene.shell(&id, "cat /mnt/shared/a").await, "from the node");
    assert_eq!(scene.shell(&id, "cat /etc/the-file").await, "one file");
    scene.shell(&id, "echo from inside > /mnt/shared/b").await;
    let written = std::fs::read_to_string(folder.join("b")).unwrap();
    assert_eq!(written, "from inside\n");

    let status = scene.status(&id).await;
    for mount in &config.mounts {
        let is_same = |m: &&Mount| m.container_path == mount.container_path;
        let found = status.mounts.iter().find(is_same).unwrap();
        assert_eq!(found.host_path, mount.host_path);
        assert!(!found.readonly);
    }
}

pub(crate) async fn read_only_mounts_cannot_be_written(scene: &Scene) {
    let folder = scene.folder().join("shared");
    std::fs::create_dir(&folder).unwrap();
    let mut config = lasting();
    let mut read_only = mount(&folder, "/mnt");
    read_only.readonly = true;
    config.mounts = vec![read_only];
    let id = scene.start_alone(&config).await;
    let tried = scene.shell(&id, "touch /mnt/a 2>&1 || true").await;
    assert!(tried.contains("Read-only file system"), "{tried}");
    assert!(scene.status(&id).await.mounts.iter().any(|m| m.readonly));
}

pub(crate) async fn a_read_only_root_cannot_be_written(scene: &Scene) {
    let writes = "touch /a 2>&1 && echo written";
    assert_eq!(scene.output(&script(writes)).await, "written");
    let mut config = script(writes);
    security(&mut config).readonly_rootfs = true;
    let tried = scene.output(&config).await;
    assert!(tried.contains("Read-only file system"), "{tried}");
}

pub(crate) async fn capabilities_are_added_and_dropped(scene: &Scene) {
    let effective = "grep CapEff /proc/self/status | cut -f 2";
    // The fourteen default capabilities of Docker and later runtimes.
    assert_eq!(scene.output(&script(effective)).await, "00000000a80425fb");

    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let mut one = script(effective);
    security(&mut one).capabilities = Some(Capability {
        add_capabilities: words(&["NET_BIND_SERVICE"]),
        drop_capabilities: words(&["ALL"]),
        add_ambient_capabilities: Vec::new(),
    });
    assert_eq!(scene.output(&one).await, "0000000000000400");

    let mut more = script(effective);
    security(&mut more).capabilities = Some(Capability {
        add_capabilities: words(&["NET_ADMIN"]),
        drop_capabilities: words(&["CHOWN"]),
        add_ambient_capabilities: Vec::new(),
    });
    assert_eq!(scene.output(&more).await, "00000000a80435fa");
}

pub(crate) async fn a_privileged_container_sees_devices(scene: &Scene) {
    let device = some_device();
    let looks = format!("test -e {device} && echo seen || echo hidden");
    assert_eq!(scene.output(&script(&looks)).await, "hidden");
    let mut pod = scene.pod();
    let linux = pod.linux.as_mut().unwrap();
    linux.security_context.as_mut().unwrap().privileged = true;
    let sandbox = scene.run(pod).await;
    let mut config = script(&looks);
    security(&mut config).privileged = true;
    assert_eq!(scene.output_in(&sandbox, &config).await, "seen");
}

/// A container without settings, so that those of its image apply.
fn opinionated() -> ContainerConfig {
    let mut config = script("");
    config.command = Vec::new();
    config.image = Some(image(OPINIONATED));
    config
}

fn mount(host: &Path, inside: &str) -> Mount {
    Mount {
        host_path: host.to_string_lossy().into_owned(),
        container_path: inside.to_owned(),
        ..Mount::default()
    }
}

/// A device of this machine that unprivileged containers do not have.
fn some_device() -> String {
    const EVERYWHERE: [&str; 8] = [
        "console", "full", "null", "ptmx", "random", "tty", "urandom", "zero",
    ];
    let entries = std::fs::read_dir("/dev").unwrap().map(Result::unwrap);
    let device = entries.into_iter().find(|entry| {
        let kind = entry.file_type().unwrap();
        let name = entry.file_name();
        kind.is_char_device() && !EVERYWHERE.iter().any(|known| name == *known)
    });
    device.unwrap().path().to_string_lossy().into_owned()
}
