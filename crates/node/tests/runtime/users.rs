//! Pods with user namespaces: root inside, unprivileged users on the node.
//!
//! A runtime may not support them, as containerd before 2.0; the agent then rejects such pods, and
//! the runtime must only report that.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_runtime::wire::{
    Capability, ContainerConfig, ExecRequest, IdMapping, Int64Value, Mount, NamespaceMode,
    NamespaceOption, PodSandboxConfig, SecurityProfile, UserNamespace, security_profile,
};
use plimsoll_runtime::{Session, UserNamespaceSupport};
use plimsoll_testkit::mount::unmount_below;
use tokio::io::AsyncReadExt;

use crate::scene::{
    Sandbox, Scene, labels, lasting, named, own_processes, script, security, until,
};

/// The number of ids of a pod.
const IDS: u32 = 65_536;

/// The id range of a pod.
#[derive(Clone, Copy)]
struct Users {
    first: u32,
    pid: NamespaceMode,
}

impl Users {
    /// Ids that no other case has; `None` if the runtime has no user namespaces.
    async fn new(scene: &Scene) -> Option<Users> {
        static NEXT: AtomicU32 = AtomicU32::new(100);
        match scene.runtime().user_namespaces().await.unwrap() {
            UserNamespaceSupport::Full => Some(Users {
                first: NEXT.fetch_add(1, Ordering::Relaxed) * IDS,
                pid: NamespaceMode::Container,
            }),
            UserNamespaceSupport::Lacking(_) => None,
        }
    }

    fn mappings(self) -> Vec<IdMapping> {
        vec![IdMapping {
            host_id: self.first,
            container_id: 0,
            length: IDS,
        }]
    }

    fn options(self) -> NamespaceOption {
        NamespaceOption {
            pid: self.pid.into(),
            userns_options: Some(UserNamespace {
                mode: NamespaceMode::Pod.into(),
                uids: self.mappings(),
                gids: self.mappings(),
            }),
            ..own_processes()
        }
    }

    fn pod(self, scene: &Scene) -> PodSandboxConfig {
        let mut pod = scene.pod();
        let linux = pod.linux.as_mut().unwrap();
        let context = linux.security_context.as_mut().unwrap();
        context.namespace_options = Some(self.options());
        pod
    }

    fn container(self, mut config: ContainerConfig) -> ContainerConfig {
        security(&mut config).namespace_options = Some(self.options());
        for mount in &mut config.mounts {
            mount.uid_mappings = self.mappings();
            mount.gid_mappings = self.mappings();
        }
        config
    }

    async fn run(self, scene: &Scene) -> Sandbox {
        scene.run(self.pod(scene)).await
    }

    async fn start(self, scene: &Scene, config: ContainerConfig) -> String {
        let sandbox = self.run(scene).await;
        scene.start(&sandbox, &self.container(config)).await
    }
}

fn mount(path: &Path, inside: &str) -> Mount {
    Mount {
        host_path: path.to_string_lossy().into_owned(),
        container_path: inside.to_owned(),
        ..Mount::default()
    }
}

fn owner(path: &Path) -> (u32, u32) {
    let metadata = path.metadata().unwrap();
    (metadata.uid(), metadata.gid())
}

/// Whether this file system supports idmapped mounts: tmpfs since Linux 6.3.
fn is_mappable(path: &Path) -> bool {
    let output = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let kind = output("stat", &["-f", "-c", "%T", &path.to_string_lossy()]);
    let release = output("uname", &["-r"]);
    let mut numbers = release
        .split(['.', '-'])
        .map(|number| number.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    kind.trim() != "tmpfs" || version >= (6, 3)
}

/// The processes whose command line is this, with the user each has on the node.
fn processes(command: &str) -> Vec<(i32, u32)> {
    let wanted = command.replace(' ', "\0") + "\0";
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let found = all.filter_map(|pid| {
        let dir = PathBuf::from(format!("/proc/{pid}"));
        let command = std::fs::read_to_string(dir.join("cmdline")).ok()?;
        let uid = dir.metadata().ok()?.uid();
        (command == wanted).then_some((pid, uid))
    });
    found.collect()
}

/// The only process with a command line, once it is there.
async fn process(command: &str) -> (i32, u32) {
    until(&format!("{command:?} runs"), async || {
        let found = processes(command);
        assert!(found.len() < 2, "{found:?}");
        found.first().copied()
    })
    .await
}

pub(crate) async fn runtime_reports_user_namespace_support(scene: &Scene) {
    let runtime = scene.runtime();
    let version = runtime.version().await.unwrap();
    let support = runtime.user_namespaces().await.unwrap();
    let is_old = version.runtime_name == "containerd" && version.runtime_version.starts_with("1.");
    let expected = match is_old {
        true => UserNamespaceSupport::Lacking(String::new()),
        false => UserNamespaceSupport::Full,
    };
    assert_eq!(support, expected, "{version:?}");
}

pub(crate) async fn root_of_a_pod_is_an_ordinary_user_of_the_node(scene: &Scene) {
    let Some(users) = Users::new(scene).await else {
        return;
    };
    let id = users.start(scene, script("exec sleep 4321")).await;
    let shown = scene
        .shell(&id, "id -u; id -g; cat /proc/self/uid_map")
        .await;
    let words: Vec<&str> = shown.split_whitespace().collect();
    let first = users.first.to_string();
    assert_eq!(words, ["0", "0", "0", &first, "65536"]);
    let (pid, uid) = process("sleep 4321").await;
    assert_eq!(uid, users.first);
    for line in ["Uid:", "Gid:"] {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let ids = status.lines().find_map(|text| text.strip_prefix(line));
        let ids: Vec<u32> = ids
            .unwrap()
            .split_whitespace()
            .flat_map(str::parse)
            .collect();
        assert_eq!(ids, [users.first; 4]);
    }
    scene.shell(&id, "sleep 4322 > /dev/null 2>&1 &").await;
    let (command, uid) = process("sleep 4322").await;
    assert_eq!(uid, users.first, "of a command");
    let of = |pid: i32, kind: &str| std::fs::read_link(format!("/proc/{pid}/ns/{kind}")).unwrap();
    for kind in ["user", "mnt", "net", "pid", "ipc", "uts"] {
        assert_eq!(of(pid, kind), of(command, kind), "{kind}");
        assert_ne!(
            of(pid, kind),
            of(std::process::id().cast_signed(), kind),
            "{kind}"
        );
    }
    let caps = "grep CapEff /proc/self/status | cut -f 2";
    assert_eq!(scene.shell(&id, caps).await, "00000000a80425fb");
}

pub(crate) async fn the_root_file_system_is_roots(scene: &Scene) {
    let Some(users) = Users::new(scene).await else {
        return;
    };
    let id = users.start(scene, lasting()).await;
    let shell = async |script: &str| scene.shell(&id, script).await;
    assert_eq!(
        shell("stat -c '%u %g' / /bin /bin/sh | sort -u").await,
        "0 0"
    );
    shell("echo x > /file; mkdir /dir; chown 1000:1001 /dir").await;
    assert_eq!(shell("stat -c '%u %g' /file /dir").await, "0 0\n1000 1001");
    assert_eq!(shell("cat /file").await, "x");
    // Mounts that the runtime adds.
    for file in ["/etc/hosts", "/etc/hostname", "/etc/resolv.conf"] {
        assert_eq!(
            shell(&format!("stat -c '%u %g' {file}")).await,
            "0 0",
            "{file}"
        );
        shell(&format!(": >> {file}")).await;
    }
    shell("echo x > /dev/null; echo x > /dev/shm/note; head -c 8 /dev/urandom > /dev/zero").await;
    assert_eq!(
        shell("stat -c %u /dev /dev/shm /dev/pts | sort -u").await,
        "0"
    );
    shell("ls /sys/class/net/lo /proc/self/fd /dev/mqueue > /dev/null").await;
    let cgroup = "ls /sys/fs/cgroup/memory/memory.usage_in_bytes /sys/fs/cgroup/memory.current";
    assert_ne!(shell(&format!("{cgroup} 2> /dev/null || true")).await, "");
}

pub(crate) async fn streams_and_terminals_are_the_pods(scene: &Scene) {
    let Some(users) = Users::new(scene).await else {
        return;
    };
    let sandbox = users.run(scene).await;
    let mut config = users.container(script("echo out > /dev/stdout; echo error > /dev/stderr"));
    security(&mut config).run_as_user = Some(Int64Value { value: 1000 });
    let printed = scene.output_in(&sandbox, &config).await;
    assert_eq!(printed, "out\nerror");
    let mut config = named(
        users.container(script("tty; stat -c %u $(tty); id -u")),
        "tty",
        0,
    );
    config.tty = true;
    let printed = scene.output_in(&sandbox, &config).await;
    assert_eq!(printed.replace('\r', ""), "/dev/pts/0\n0\n0");

    let id = scene
        .start(&sandbox, &named(users.container(lasting()), "lasting", 0))
        .await;
    let shown = scene
        .shell(&id, "echo out > /dev/stdout; echo out >> /dev/stderr")
        .await;
    assert_eq!(shown, "out");
    let request = ExecRequest {
        container_id: id,
        cmd: ["sh", "-c", "echo x > $(tty); stat -c %u $(tty)"]
            .map(str::to_owned)
            .to_vec(),
        stdin: true,
        stdout: true,
        stderr: false,
        tty: true,
    };
    let Session::Here(mut streams) = scene.runtime().exec(&request).await.unwrap() else {
        return;
    };
    let mut text = String::new();
    let read = streams
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .await;
    read.unwrap();
    assert_eq!(text.replace('\r', ""), "x\n0\n");
}

pub(crate) async fn users_of_the_image_are_the_pods(scene: &Scene) {
    let Some(users) = Users::new(scene).await else {
        return;
    };
    let mut config = users.container(script("exec sleep 4323"));
    let context = security(&mut config);
    context.run_as_user = Some(Int64Value { value: 1000 });
    context.run_as_group = Some(Int64Value { value: 1001 });
    context.supplemental_groups = vec![2000];
    context.no_new_privs = true;
    let sandbox = users.run(scene).await;
    let id = scene.start(&sandbox, &config).await;
    assert_eq!(process("sleep 4323").await.1, users.first + 1000);
    let identity =
        "id -u; id -g; id -G; grep -e CapEff -e NoNewPrivs /proc/self/status | cut -f 2; pwd";
    let shown = scene.shell(&id, identity).await;
    assert_eq!(shown, "1000\n1001\n1001 2000\n0000000000000000\n1\n/");
    assert_eq!(scene.shell(&id, "echo $HOME").await, "/");
    let refused = scene.shell(&id, "(: > /file) 2>&1 || true").await;
    assert!(refused.contains("ermission denied"), "{refused}");

    let mut config = named(users.container(lasting()), "too-high", 0);
    security(&mut config).run_as_user = Some(Int64Value { value: 65_536 });
    let refused = refused_container(scene, &sandbox, &config).await;
    let problem = "user or group id 65536 is not mapped in the pod's user namespace";
    assert!(refused.contains(problem), "{refused}");
}

pub(crate) async fn volumes_keep_their_owners_on_disk(scene: &Scene) {
    let Some(users) = Users::new(scene).await else {
        return;
    };
    let (disk, memory) = (scene.folder().join("disk"), scene.folder().join("memory"));
    for folder in [&disk, &memory] {
        std::fs::create_dir(folder).unwrap();
    }
    run(
        "mount",
        &["-t", "tmpfs", "tmpfs", &memory.to_string_lossy()],
    );
    for folder in [&disk, &memory] {
        for (name, mode) in [("secret", 0o600), ("message", 0o666)] {
            let file = folder.join(name);
            std::fs::write(&file, "of the node").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    }
    let mut config = lasting();
    config.mounts = vec![
        mount(&disk, "/disk"),
        mount(&memory, "/memory"),
        mount(&memory, "/disk/inner"),
        mount(&disk.join("message"), "/run/message"),
        Mount {
            readonly: true,
            ..mount(&disk, "/read-only")
        },
    ];
    std::fs::create_dir(disk.join("inner")).unwrap();
    if !is_mappable(&memory) || !is_mappable(&disk) {
        let sandbox = users.run(scene).await;
        let id = scene.create(&sandbox, &users.container(config)).await;
        let refused = scene
            .runtime()
            .start_container(&id)
            .await
            .unwrap_err()
            .chain();
        assert!(
            refused.contains("tmpfs has no idmapped mounts on this kernel"),
            "{refused}"
        );
        scene.clear().await;
        unmount_below(scene.folder());
        return;
    }
    let id = users.start(scene, config.clone()).await;
    let shell = async |script: &str| scene.shell(&id, script).await;
    for folder in ["/disk", "/memory", "/disk/inner", "/read-only"] {
        let shown = shell(&format!("stat -c %u {folder}/secret; cat {folder}/secret")).await;
        assert_eq!(shown, "0\nof the node", "{folder}");
    }
    shell("echo mine > /disk/mine; chown 1000:1001 /disk/mine; echo mine > /memory/mine").await;
    assert_eq!(owner(&disk.join("mine")), (1000, 1001));
    assert_eq!(owner(&memory.join("mine")), (0, 0));
    shell("echo done > /run/message").await;
    assert_eq!(
        std::fs::read_to_string(disk.join("message")).unwrap(),
        "done\n"
    );
    let shown = shell("(: > /read-only/file) 2>&1 || true").await;
    assert!(shown.contains("Read-only file system"), "{shown}");

    // Without a mapping the node's files belong to the overflow user.
    let mut plain = users.container(config);
    for mount in &mut plain.mounts {
        mount.uid_mappings.clear();
        mount.gid_mappings.clear();
    }
    let sandbox = users.run(scene).await;
    let id = scene.start(&sandbox, &plain).await;
    let shown = scene
        .shell(
            &id,
            "stat -c %u /disk/secret; cat /disk/secret 2>&1 || true",
        )
        .await;
    assert!(
        shown.starts_with("65534\n") && shown.contains("ermission denied"),
        "{shown}"
    );
    scene.clear().await;
    unmount_below(scene.folder());
}

/// The error names the volume and its file system, and the container does not start.
pub(crate) async fn a_volume_that_cannot_be_mapped_is_refused(scene: &Scene) {
    let Some(users) = Users::new(scene).await else {
        return;
    };
    let mut config = lasting();
    config.mounts = vec![mount(Path::new("/sys/kernel"), "/kernel")];
    let sandbox = users.run(scene).await;
    let id = scene.create(&sandbox, &users.container(config)).await;
    let refused = scene.runtime().start_container(&id).await.unwrap_err();
    let shown = refused.chain();
    let problem = "mount /sys/kernel at /kernel in the pod's user namespace: sysfs has no idmapped \
                   mounts on this kernel";
    assert!(shown.contains(problem), "{shown}");
    let status = scene.ended(&id).await;
    assert_eq!(
        (status.exit_code, status.reason.as_str()),
        (128, "StartError")
    );
    assert!(status.message.contains(problem), "{}", status.message);
}

/// The permissions of a process that has escaped from all namespaces but its user namespace.
pub(crate) async fn escaped_process_has_no_rights_on_the_node(scene: &Scene) {
    let Some(users) = Users::new(scene).await else {
        return;
    };
    let secret = scene.folder().join("secret");
    std::fs::write(&secret, "of the node").unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    for folder in secret
        .ancestors()
        .skip(1)
        .take_while(|path| path.parent().is_some())
    {
        let mode = folder.metadata().unwrap().mode();
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode | 0o011)).unwrap();
    }
    users.start(scene, script("exec sleep 4324")).await;
    let (pid, _) = process("sleep 4324").await;
    let escaped = |script: &str| {
        let shown = Command::new("nsenter")
            .args(["-t", &pid.to_string(), "-U", "--", "/bin/sh", "-c", script])
            .output()
            .unwrap();
        let text = [shown.stdout, shown.stderr].concat();
        (shown.status.success(), String::from_utf8(text).unwrap())
    };
    let (done, shown) = escaped("id -u; readlink /proc/self/ns/mnt; grep CapEff /proc/self/status");
    assert!(
        done && shown.starts_with("0\n") && shown.contains("1ffffffffff"),
        "{shown}"
    );
    let secret = secret.display();
    for attempt in [
        format!("cat {secret}"),
        format!("echo x >> {secret}"),
        format!("chown 0 {secret}"),
        format!("rm {secret}"),
        "mount -t tmpfs tmpfs /mnt".to_owned(),
        "mknod /tmp/plimsoll-users-device b 1 1".to_owned(),
        "kill -0 1".to_owned(),
        "hostname elsewhere".to_owned(),
        "echo 1 > /proc/sys/vm/drop_caches".to_owned(),
        "cat /proc/1/environ".to_owned(),
    ] {
        let (done, shown) = escaped(&attempt);
        assert!(!done, "{attempt}: {shown}");
    }
}

pub(crate) async fn processes_are_shared_by_those_with_the_same_users(scene: &Scene) {
    let Some(users) = Users::new(scene).await else {
        return;
    };
    let users = Users {
        pid: NamespaceMode::Pod,
        ..users
    };
    let sandbox = users.run(scene).await;
    let one = named(users.container(script("exec sleep 4325")), "one", 0);
    scene.start(&sandbox, &one).await;
    let two = named(users.container(lasting()), "two", 0);
    let two = scene.start(&sandbox, &two).await;
    process("sleep 4325").await;
    let shown = scene.shell(&two, "ps -o args").await;
    assert!(shown.contains("sleep 4325"), "{shown}");
    // The sandbox's process is inaccessible, for exec too.
    let shown = scene.shell(&two, "ls /proc/1/root 2>&1 || true").await;
    assert!(shown.contains("ermission denied"), "{shown}");
}

pub(crate) async fn rights_in_a_pod_are_rights_over_the_pod(scene: &Scene) {
    let Some(users) = Users::new(scene).await else {
        return;
    };
    let mut pod = users.pod(scene);
    pod.linux.as_mut().unwrap().sysctls = labels(&[
        ("net.ipv4.ip_unprivileged_port_start", "77"),
        ("kernel.shm_rmid_forced", "1"),
    ]);
    let sandbox = scene.run(pod).await;
    let mut config = users.container(lasting());
    let context = security(&mut config);
    context.capabilities = Some(Capability {
        add_capabilities: vec!["SYS_ADMIN".to_owned(), "NET_ADMIN".to_owned()],
        ..Capability::default()
    });
    context.masked_paths = vec!["/proc/keys".to_owned(), "/sys/firmware".to_owned()];
    context.readonly_paths = vec!["/proc/sys".to_owned()];
    context.seccomp = Some(SecurityProfile {
        profile_type: security_profile::ProfileType::RuntimeDefault.into(),
        localhost_ref: String::new(),
    });
    let id = scene.start(&sandbox, &config).await;
    let shell = async |script: &str| scene.shell(&id, script).await;
    shell("mkdir -p /mnt && mount -t tmpfs tmpfs /mnt && echo x > /mnt/file && umount /mnt").await;
    shell("ip link set lo down && ip link set lo up").await;
    assert_eq!(
        shell("cat /proc/sys/net/ipv4/ip_unprivileged_port_start").await,
        "77"
    );
    assert_eq!(shell("cat /proc/sys/kernel/shm_rmid_forced").await, "1");
    assert_eq!(shell("cat /proc/keys; ls /sys/firmware").await, "");
    assert_eq!(
        shell("grep Seccomp: /proc/self/status | cut -f 2").await,
        "2"
    );
    for attempt in [
        "echo 1 > /proc/sys/kernel/panic",
        "echo 1 > /proc/sysrq-trigger",
        "mknod /device b 1 1",
        "mount -t ext4 /dev/vda /mnt",
    ] {
        let shown = shell(&format!("! ({attempt}) 2>&1")).await;
        assert_ne!(shown, "", "{attempt}");
    }
    let writable = "find /sys/fs/cgroup -type f | while read file; do \
                    (: >> $file) 2> /dev/null && echo $file; done; true";
    assert_eq!(shell(writable).await, "");
}

pub(crate) async fn user_namespace_excludes_host_network_of_a_pod(scene: &Scene) {
    let Some(users) = Users::new(scene).await else {
        return;
    };
    let refusal = async |options: NamespaceOption| {
        let mut pod = scene.pod();
        let linux = pod.linux.as_mut().unwrap();
        linux.security_context.as_mut().unwrap().namespace_options = Some(options);
        let refused = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap_err();
        refused.chain()
    };
    let mut options = users.options();
    options.network = NamespaceMode::Node.into();
    let shown = refusal(options).await;
    assert!(shown.contains("cannot share the network"), "{shown}");
    let mut options = users.options();
    options.userns_options.as_mut().unwrap().uids[0].host_id = 0;
    let shown = refusal(options).await;
    assert!(shown.contains("needs one range"), "{shown}");

    // A container cannot use the node's users in a pod with a user namespace.
    let sandbox = users.run(scene).await;
    let shown = refused_container(scene, &sandbox, &lasting()).await;
    assert!(shown.contains("is not that of its sandbox"), "{shown}");
}

/// The error of creating a container.
async fn refused_container(scene: &Scene, sandbox: &Sandbox, config: &ContainerConfig) -> String {
    let runtime = scene.runtime();
    let made = runtime.create_container(&sandbox.id, config, &sandbox.config);
    made.await.unwrap_err().chain()
}

fn run(program: &str, words: &[&str]) {
    let status = Command::new(program).args(words).status().unwrap();
    assert!(status.success(), "{program} {words:?}");
}
