//! From a configuration to a specification.

use super::*;
use crate::wire::{
    IdMapping, ImageSpec, Int64Value, KeyValue, LinuxContainerConfig, LinuxContainerResources,
    LinuxPodSandboxConfig, LinuxSandboxSecurityContext, Mount, MountPropagation, NamespaceMode,
    NamespaceOption, SecurityProfile, UserNamespace, security_profile,
};

/// Makes a specification and hands it to libcontainer's reader.
fn made(config: &ContainerConfig, pod: &PodSandboxConfig, image: &ImageConfig) -> Value {
    let made = try_make(config, pod, image).unwrap();
    check(&made.json).unwrap();
    made.json
}

fn try_make(
    config: &ContainerConfig,
    pod: &PodSandboxConfig,
    image: &ImageConfig,
) -> Result<Made, SpecError> {
    make(&Input {
        config,
        sandbox_config: pod,
        image,
        accounts: &Accounts {
            passwd: "root:x:0:0:::\nweb:x:101:102:::\n".to_owned(),
            group: "web:x:102:\nextra:x:103:web\n".to_owned(),
        },
        rights: &Rights::all(),
        rootfs: Path::new("/roots/c"),
        sandbox: &SandboxDir::new(Path::new("/sandboxes/s")),
        pause: 42,
        target: None,
        cgroup_path: "/pods/c",
        is_cgroup_v2: false,
        node_name: "node-1",
        devices: &[],
        image_volumes: &[ImageVolume {
            path: "/roots/c-volume-0".into(),
        }],
    })
}

fn pod() -> PodSandboxConfig {
    PodSandboxConfig {
        hostname: "web-0".to_owned(),
        ..PodSandboxConfig::default()
    }
}

fn image() -> ImageConfig {
    ImageConfig {
        entrypoint: vec!["/entry".to_owned()],
        cmd: vec!["serve".to_owned()],
        env: vec!["PATH=/bin".to_owned(), "MODE=image".to_owned()],
        user: "web".to_owned(),
        working_dir: "/srv".to_owned(),
        volumes: vec!["/data".to_owned()],
        ..ImageConfig::default()
    }
}

fn with_security(change: impl FnOnce(&mut LinuxContainerSecurityContext)) -> ContainerConfig {
    let mut security = LinuxContainerSecurityContext {
        namespace_options: Some(options(NamespaceMode::Pod, NamespaceMode::Container)),
        masked_paths: vec!["/proc/kcore".to_owned()],
        readonly_paths: vec!["/proc/sys".to_owned()],
        ..LinuxContainerSecurityContext::default()
    };
    change(&mut security);
    ContainerConfig {
        linux: Some(LinuxContainerConfig {
            security_context: Some(security),
            resources: Some(LinuxContainerResources {
                oom_score_adj: 999,
                ..LinuxContainerResources::default()
            }),
        }),
        ..ContainerConfig::default()
    }
}

fn options(all: NamespaceMode, pid: NamespaceMode) -> NamespaceOption {
    NamespaceOption {
        network: all.into(),
        ipc: all.into(),
        pid: pid.into(),
        ..NamespaceOption::default()
    }
}

fn mount<'a>(spec: &'a Value, target: &str) -> Option<&'a Value> {
    let mounts = spec["mounts"].as_array().unwrap();
    mounts.iter().find(|mount| mount["destination"] == target)
}

#[test]
fn container_without_settings_uses_those_of_its_image() {
    let spec = made(&with_security(|_| {}), &pod(), &image());
    let process = &spec["process"];
    assert_eq!(process["args"], json!(["/entry", "serve"]));
    assert_eq!(process["cwd"], "/srv");
    assert_eq!(process["user"]["uid"], 101);
    assert_eq!(process["user"]["additionalGids"], json!([102, 103]));
    assert_eq!(process["oomScoreAdj"], 999);
    assert_eq!(
        process["env"],
        json!(["PATH=/bin", "HOSTNAME=web-0", "MODE=image"])
    );
    assert_eq!(spec["linux"]["cgroupsPath"], "/pods/c");
    assert_eq!(spec["linux"]["maskedPaths"], json!(["/proc/kcore"]));
    assert_eq!(spec["linux"]["rootfsPropagation"], "private");
    assert_eq!(
        mount(&spec, "/dev/shm").unwrap()["source"],
        "/sandboxes/s/shm"
    );
}

#[test]
fn a_command_replaces_the_entry_point_and_arguments_follow_it() {
    let words = |command: &[&str], args: &[&str]| {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let config = ContainerConfig {
            command: owned(command),
            args: owned(args),
            ..with_security(|_| {})
        };
        made(&config, &pod(), &image())["process"]["args"].clone()
    };
    assert_eq!(words(&["sh"], &[]), json!(["sh"]));
    assert_eq!(words(&[], &["-v"]), json!(["/entry", "-v"]));
    assert_eq!(words(&["sh"], &["-c"]), json!(["sh", "-c"]));
    let nothing = try_make(&with_security(|_| {}), &pod(), &ImageConfig::default());
    assert_eq!(nothing.unwrap_err(), SpecError::NoCommand);
}

#[test]
fn the_containers_environment_wins() {
    let config = ContainerConfig {
        tty: true,
        envs: [("MODE", "own"), ("EMPTY", ""), ("LINE", "a=b")]
            .map(|(key, value)| KeyValue {
                key: key.to_owned(),
                value: value.as_bytes().to_vec(),
            })
            .to_vec(),
        ..with_security(|_| {})
    };
    let spec = made(&config, &pod(), &image());
    assert_eq!(
        spec["process"]["env"],
        json!([
            "PATH=/bin",
            "TERM=xterm",
            "HOSTNAME=web-0",
            "MODE=own",
            "EMPTY=",
            "LINE=a=b"
        ])
    );
    assert_eq!(spec["process"]["terminal"], true);
}

#[test]
fn configured_user_overrides_the_images() {
    let id = |value| Some(Int64Value { value });
    let user = |change: &dyn Fn(&mut LinuxContainerSecurityContext)| {
        let config = with_security(|security| change(security));
        try_make(&config, &pod(), &image()).map(|made| made.json["process"]["user"].clone())
    };
    let numeric = user(&|security| {
        security.run_as_user = id(7);
        security.run_as_group = id(8);
        security.supplemental_groups = vec![9];
    });
    assert_eq!(
        numeric.unwrap(),
        json!({"uid": 7, "gid": 8, "additionalGids": [8, 9]})
    );
    let named = user(&|security| security.run_as_username = "root".to_owned());
    assert_eq!(named.unwrap()["uid"], 0);
    let group = user(&|security| security.run_as_group = id(8));
    assert_eq!(group.unwrap_err(), SpecError::GroupWithoutUser(8));
    let negative = user(&|security| security.run_as_user = id(-1));
    assert_eq!(negative.unwrap_err(), SpecError::IdOutOfRange(-1));
}

#[test]
fn namespaces_are_the_pods_the_machines_or_its_own() {
    let kinds = |all, pid| {
        let config = with_security(|security| {
            security.namespace_options = Some(options(all, pid));
        });
        let spec = made(&config, &pod(), &image());
        let namespaces = spec["linux"]["namespaces"].as_array().unwrap().clone();
        namespaces
            .iter()
            .map(|namespace| {
                let path = namespace["path"].as_str().unwrap_or("own");
                format!("{} {path}", namespace["type"].as_str().unwrap())
            })
            .collect::<Vec<String>>()
    };
    assert_eq!(
        kinds(NamespaceMode::Pod, NamespaceMode::Container),
        [
            "mount own",
            "network /proc/42/ns/net",
            "uts /proc/42/ns/uts",
            "ipc /proc/42/ns/ipc",
            "pid own"
        ]
    );
    assert_eq!(
        kinds(NamespaceMode::Node, NamespaceMode::Node),
        ["mount own"]
    );
    assert_eq!(
        kinds(NamespaceMode::Node, NamespaceMode::Pod),
        ["mount own", "pid /proc/42/ns/pid"]
    );
    let target = with_security(|security| {
        security.namespace_options = Some(options(NamespaceMode::Pod, NamespaceMode::Target));
    });
    let refused = try_make(&target, &pod(), &image()).unwrap_err();
    assert_eq!(refused, SpecError::NoTarget);
}

#[test]
fn privileged_container_has_no_masked_paths() {
    let spec = made(
        &with_security(|security| security.privileged = true),
        &pod(),
        &image(),
    );
    assert_eq!(spec["linux"]["maskedPaths"], json!([]));
    assert_eq!(spec["linux"]["readonlyPaths"], json!([]));
    assert_eq!(
        spec["process"]["capabilities"]["bounding"]
            .as_array()
            .unwrap()
            .len(),
        41
    );
    let options = mount(&spec, "/sys").unwrap()["options"].as_array().unwrap();
    assert!(options.contains(&json!("rw")));
}

#[test]
fn mounts_are_ordered_by_depth_and_replace_the_defaults() {
    let bind = |target: &str, propagation: i32| Mount {
        container_path: target.to_owned(),
        host_path: format!("/host{target}"),
        propagation,
        ..Mount::default()
    };
    let config = ContainerConfig {
        mounts: vec![
            Mount {
                readonly: true,
                recursive_read_only: true,
                ..bind("/a/b/c", 1)
            },
            bind("/a", 0),
            bind("/dev/shm/", 0),
            Mount {
                image: Some(ImageSpec::default()),
                ..bind("/image", 0)
            },
        ],
        ..with_security(|_| {})
    };
    let spec = made(&config, &pod(), &image());
    let own: Vec<&str> = spec["mounts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mount| mount["destination"].as_str().unwrap())
        .skip_while(|target| *target != "/a")
        .collect();
    assert_eq!(own, ["/a", "/image", "/dev/shm/", "/a/b/c"]);
    assert!(mount(&spec, "/dev/shm").is_none());
    let inner = &mount(&spec, "/a/b/c").unwrap()["options"];
    assert_eq!(*inner, json!(["rbind", "rslave", "ro", "rro"]));
    let image = mount(&spec, "/image").unwrap();
    assert_eq!(image["source"], "/roots/c-volume-0");
    assert_eq!(image["options"], json!(["rbind", "rprivate", "ro"]));
    assert_eq!(spec["linux"]["rootfsPropagation"], "slave");
}

#[test]
fn cgroups_are_made_read_only_unless_they_are_the_containers_own_choice() {
    let usual = with_security(|_| {});
    assert_eq!(read_only(&usual), [PathBuf::from("/sys/fs/cgroup")]);
    let privileged = with_security(|security| security.privileged = true);
    assert!(read_only(&privileged).is_empty());
    for (target, is_own) in [
        ("/sys", true),
        ("/sys/fs/cgroup/", true),
        ("/sys/fs/cgroup/memory", false),
        ("/system", false),
    ] {
        let mut config = usual.clone();
        config.mounts.push(Mount {
            container_path: target.to_owned(),
            host_path: "/anything".to_owned(),
            ..Mount::default()
        });
        assert_eq!(read_only(&config).is_empty(), is_own, "{target}");
    }
}

#[test]
fn directories_that_must_be_there_are_named() {
    let made = try_make(&with_security(|_| {}), &pod(), &image()).unwrap();
    assert_eq!(made.directories, [Path::new("/data"), Path::new("/srv")]);
}

#[test]
fn seccomp_filter_is_loaded_early_unless_no_new_privs_is_set() {
    use security_profile::ProfileType;
    let made = |kind: ProfileType, no_new_privs: bool, privileged: bool| {
        let config = with_security(|security| {
            security.no_new_privs = no_new_privs;
            security.privileged = privileged;
            security.seccomp = Some(SecurityProfile {
                profile_type: kind.into(),
                localhost_ref: String::new(),
            });
        });
        try_make(&config, &pod(), &image()).unwrap()
    };
    for (kind, no_new_privs, privileged, is_confined) in [
        (ProfileType::RuntimeDefault, false, false, true),
        (ProfileType::RuntimeDefault, true, false, true),
        (ProfileType::RuntimeDefault, false, true, false),
        (ProfileType::Unconfined, false, false, false),
    ] {
        let made = made(kind, no_new_privs, privileged);
        let has_rights = made.json["process"].get("capabilities").is_some();
        assert_eq!(made.confinement.is_some(), is_confined, "{kind:?}");
        assert_eq!(has_rights, no_new_privs || !is_confined, "{kind:?}");
        let kept = made.confinement.and_then(|all| all.capabilities);
        assert_eq!(kept.is_some(), !has_rights, "{kind:?}");
    }
}

#[test]
fn a_filter_that_is_not_there_is_refused() {
    let config = with_security(|security| {
        security.seccomp = Some(SecurityProfile {
            profile_type: security_profile::ProfileType::Localhost.into(),
            localhost_ref: "localhost//no/such/filter.json".to_owned(),
        });
    });
    let refused = try_make(&config, &pod(), &image()).unwrap_err().to_string();
    assert_eq!(
        refused,
        "cannot load seccomp profile \"/no/such/filter.json\": No such file or directory (os error 2)"
    );
}

#[test]
fn a_profile_of_the_machine_is_passed_on() {
    let profile = |kind: security_profile::ProfileType| {
        let config = with_security(|security| {
            security.apparmor = Some(SecurityProfile {
                profile_type: kind.into(),
                localhost_ref: "localhost/web".to_owned(),
            });
        });
        made(&config, &pod(), &image())["process"]["apparmorProfile"].clone()
    };
    assert_eq!(profile(security_profile::ProfileType::Localhost), "web");
    assert_eq!(
        profile(security_profile::ProfileType::RuntimeDefault),
        Value::Null
    );
}

#[test]
fn host_network_has_the_hostname_of_the_node() {
    let pod = PodSandboxConfig {
        linux: Some(LinuxPodSandboxConfig {
            security_context: Some(LinuxSandboxSecurityContext {
                namespace_options: Some(options(NamespaceMode::Node, NamespaceMode::Container)),
                ..LinuxSandboxSecurityContext::default()
            }),
            ..LinuxPodSandboxConfig::default()
        }),
        ..pod()
    };
    let spec = made(&with_security(|_| {}), &pod, &image());
    let env = spec["process"]["env"].as_array().unwrap();
    assert!(env.contains(&json!("HOSTNAME=node-1")));
}

fn own_users() -> Vec<IdMapping> {
    vec![IdMapping {
        host_id: 131_072,
        container_id: 0,
        length: 65_536,
    }]
}

fn in_user_namespace() -> NamespaceOption {
    NamespaceOption {
        userns_options: Some(UserNamespace {
            mode: NamespaceMode::Pod.into(),
            uids: own_users(),
            gids: own_users(),
        }),
        ..options(NamespaceMode::Pod, NamespaceMode::Container)
    }
}

fn pod_in_user_namespace() -> PodSandboxConfig {
    PodSandboxConfig {
        linux: Some(LinuxPodSandboxConfig {
            security_context: Some(LinuxSandboxSecurityContext {
                namespace_options: Some(in_user_namespace()),
                ..LinuxSandboxSecurityContext::default()
            }),
            ..LinuxPodSandboxConfig::default()
        }),
        ..pod()
    }
}

#[test]
fn container_with_a_user_namespace_is_created_from_a_stage() {
    let mut config = with_security(|security| {
        security.namespace_options = Some(in_user_namespace());
    });
    let volume = Mount {
        container_path: "/data".to_owned(),
        host_path: "/volumes/data".to_owned(),
        propagation: MountPropagation::PropagationHostToContainer.into(),
        uid_mappings: own_users(),
        gid_mappings: own_users(),
        ..Mount::default()
    };
    config.mounts = vec![volume];
    let made = try_make(&config, &pod_in_user_namespace(), &image()).unwrap();
    check(&made.json).unwrap();
    let stage = made.stage.unwrap();
    assert_eq!((stage.user, stage.group), (131_072 + 101, 131_072 + 102));
    assert_eq!(stage.user_namespace, Path::new("/proc/42/ns/user"));
    assert_eq!(stage.rootfs, Path::new("/roots/c"));
    let namespaces = made.json["linux"]["namespaces"].as_array().unwrap();
    let user = json!({ "type": "user", "path": "/staged/namespaces/user" });
    assert!(namespaces.contains(&user), "{namespaces:?}");
    let data = mount(&made.json, "/data").unwrap()["source"]
        .as_str()
        .unwrap();
    let source = stage
        .sources
        .iter()
        .find(|source| source.staged == Path::new(data));
    let source = source.unwrap();
    assert_eq!(source.path, Path::new("/volumes/data"));
    assert!(source.is_mapped && source.follows);
    // Nothing is left that names the machine's own directories.
    let sources = made.json["mounts"].as_array().unwrap().iter();
    let bound = sources.filter(|mount| mount["type"] == "bind");
    for mount in bound {
        let source = mount["source"].as_str().unwrap();
        assert!(source.starts_with("/staged/mounts/"), "{source}");
    }
    let env = made.json["process"]["env"].as_array().unwrap();
    assert!(env.contains(&json!("HOME=/")), "{env:?}");
}

#[test]
fn a_container_has_the_users_of_its_sandbox_and_no_others() {
    let own = with_security(|security| security.namespace_options = Some(in_user_namespace()));
    let refused = |config: &ContainerConfig, pod: &PodSandboxConfig| {
        try_make(config, pod, &image()).unwrap_err()
    };
    assert_eq!(refused(&own, &pod()), SpecError::OtherUsers);
    let of_machine = with_security(|_| {});
    let sandbox = pod_in_user_namespace();
    assert_eq!(refused(&of_machine, &sandbox), SpecError::OtherUsers);
    let mut too_high = own.clone();
    let linux = too_high.linux.as_mut().unwrap();
    let security = linux.security_context.as_mut().unwrap();
    security.supplemental_groups = vec![65_536];
    assert_eq!(refused(&too_high, &sandbox), SpecError::IdNotMapped(65_536));
    let mut others = own;
    let mut uid_mappings = own_users();
    uid_mappings[0].host_id = 0;
    others.mounts = vec![Mount {
        container_path: "/data".to_owned(),
        host_path: "/volumes/data".to_owned(),
        uid_mappings,
        gid_mappings: own_users(),
        ..Mount::default()
    }];
    let expected = SpecError::MountMappings("/data".to_owned());
    assert_eq!(refused(&others, &sandbox), expected);
}
