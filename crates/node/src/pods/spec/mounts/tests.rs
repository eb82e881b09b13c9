use serde_json::{Value, json};

use super::*;
use crate::pods::spec::testing::{node, pod_with};
use crate::volumes::MountedVolume;

fn volumes(root: &Path) -> MountedVolumes {
    let volume = |name: &str, is_read_only| {
        let volume = MountedVolume {
            path: root.join(name),
            plugin: "kubernetes.io~empty-dir",
            inner_name: name.to_owned(),
            is_read_only,
            is_managed: true,
            is_in_memory: false,
            claim: None,
        };
        (name.to_owned(), volume)
    };
    [volume("disk", false), volume("config", true)]
        .into_iter()
        .collect()
}

struct Case {
    dir: tempfile::TempDir,
    node: NodeContext,
    spec: Value,
    container: Value,
    ips: Vec<String>,
}

fn case(mounts: Value) -> Case {
    let dir = tempfile::tempdir().unwrap();
    let mut node = node(dir.path());
    node.pod_logs_dir = dir.path().join("logs");
    node.hosts_file = dir.path().join("hosts");
    Case {
        node,
        dir,
        spec: json!({}),
        container: json!({"name": "c", "volumeMounts": mounts}),
        ips: vec!["10.1.0.2".to_owned()],
    }
}

impl Case {
    fn plan(&self) -> Result<MountPlan, SpecError> {
        let mut spec = self.spec.clone();
        spec["containers"] = json!([self.container]);
        let pod = pod_with(spec);
        plan(&MountInput {
            node: &self.node,
            pod: &pod,
            container: &pod.spec.as_ref().unwrap().containers[0],
            pod_ips: &self.ips,
            volumes: &volumes(self.dir.path()),
            environment: &[("POD".to_owned(), b"p-0".to_vec())].into(),
        })
    }

    fn mounts(&self) -> Vec<Mount> {
        self.plan().unwrap().carry_out().unwrap()
    }

    fn refused(&self) -> String {
        self.plan().unwrap_err().to_string()
    }
}

#[test]
fn mounts_match_the_containers_volume_mounts() {
    let case = case(json!([
        {"name": "disk", "mountPath": "/data"},
        {"name": "disk", "mountPath": "relative", "readOnly": true},
        {"name": "config", "mountPath": "/config"},
        {"name": "disk", "mountPath": "/in", "mountPropagation": "HostToContainer"},
        {"name": "disk", "mountPath": "/both", "mountPropagation": "Bidirectional"},
        {"name": "disk", "mountPath": "/rro", "readOnly": true, "recursiveReadOnly": "Enabled"},
    ]));
    let got: Vec<_> = case
        .mounts()
        .iter()
        .take(6)
        .map(|mount| {
            let path = mount.container_path.clone();
            (
                path,
                mount.readonly,
                mount.propagation,
                mount.recursive_read_only,
            )
        })
        .collect();
    let want = [
        ("/data", false, 0, false),
        ("/relative", true, 0, false),
        ("/config", true, 0, false),
        ("/in", false, 1, false),
        ("/both", false, 2, false),
        ("/rro", true, 0, true),
    ];
    assert_eq!(
        got,
        want.map(|(path, ro, way, rro)| (path.to_owned(), ro, way, rro))
    );
}

#[test]
fn invalid_mounts_are_refused_in_upstreams_words() {
    for (mount, want) in [
        (
            json!({"name": "no", "mountPath": "/x"}),
            "cannot find volume \"no\" to mount into container \"c\"",
        ),
        (
            json!({"name": "disk", "mountPath": "/x", "subPath": "/a"}),
            "error SubPath `/a` must not be an absolute path",
        ),
        (
            json!({"name": "disk", "mountPath": "/x", "subPath": "a/../b"}),
            "unable to provision SubPath `a/../b`: must not contain '..'",
        ),
        (
            json!({"name": "disk", "mountPath": "/x", "subPathExpr": "$(NO)"}),
            "missing value for NO",
        ),
        (
            json!({"name": "disk", "mountPath": "/x", "mountPropagation": "Odd"}),
            "invalid MountPropagation mode: \"Odd\"",
        ),
        (
            json!({"name": "disk", "mountPath": "/x", "recursiveReadOnly": "Enabled"}),
            "failed to resolve recursive read-only mode: volume \"disk\" requested recursive \
             read-only mode, but it is not read-only",
        ),
        (
            json!({"name": "disk", "mountPath": "/x", "readOnly": true,
                "recursiveReadOnly": "IfPossible", "mountPropagation": "Bidirectional"}),
            "failed to resolve recursive read-only mode: volume \"disk\" requested recursive \
             read-only mode, but it is not compatible with propagation \"Bidirectional\"",
        ),
    ] {
        assert_eq!(case(json!([mount])).refused(), want);
    }
}

#[test]
fn recursive_read_only_mounts_depend_on_the_runtime() {
    for (mode, is_supported, want) in [
        ("IfPossible", true, Ok(true)),
        ("IfPossible", false, Ok(false)),
        ("Disabled", true, Ok(false)),
        (
            "Enabled",
            false,
            Err("but it is not supported by the runtime"),
        ),
        ("Odd", true, Err("unknown recursive read-only mode \"Odd\"")),
    ] {
        let mount = json!({"name": "disk", "mountPath": "/x", "readOnly": true,
            "recursiveReadOnly": mode});
        let mut case = case(json!([mount]));
        case.node.supports_recursive_read_only = is_supported;
        match want {
            Ok(want) => assert_eq!(case.mounts()[0].recursive_read_only, want, "{mode}"),
            Err(want) => assert!(case.refused().ends_with(want), "{mode}"),
        }
    }
}

#[test]
fn every_pod_with_an_address_has_a_hosts_file() {
    let hosts = |case: &Case| {
        let mounts = case.mounts();
        let mount = mounts
            .iter()
            .find(|mount| mount.container_path == "/etc/hosts")?;
        fs::read_to_string(&mount.host_path).ok()
    };
    let mut own = case(json!([]));
    own.spec = json!({"hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a"]}]});
    let text = hosts(&own).unwrap();
    assert!(
        text.contains("10.1.0.2\tpod\n") && text.contains("1.2.3.4\ta\n"),
        "{text}"
    );

    let mut shared = case(json!([]));
    shared.spec = json!({"hostNetwork": true});
    shared.ips.clear();
    fs::write(&shared.node.hosts_file, "9.9.9.9\tnode\n").unwrap();
    assert!(hosts(&shared).unwrap().ends_with("9.9.9.9\tnode\n"));

    let mut early = case(json!([]));
    early.ips.clear();
    assert_eq!(hosts(&early), None);

    let covered = case(json!([{"name": "disk", "mountPath": "/etc/hosts"}]));
    let mounts = covered.mounts();
    let at_hosts = mounts
        .iter()
        .filter(|mount| mount.container_path == "/etc/hosts");
    assert_eq!(at_hosts.count(), 1);
}

#[test]
fn each_run_has_a_termination_message_file() {
    let case = case(json!([]));
    let last = |mounts: Vec<Mount>| mounts.last().unwrap().clone();
    let (first, second) = (last(case.mounts()), last(case.mounts()));
    assert_eq!(first.container_path, "/dev/termination-log");
    assert_ne!(first.host_path, second.host_path);
    let dir = case.node.pod_dir("uid-1").join("containers/c");
    assert!(Path::new(&first.host_path).starts_with(&dir));
    let mode = fs::metadata(&first.host_path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o666);
    assert!(case.dir.path().join("logs/ns_pod_uid-1/c").is_dir());

    let mut silent = self::case(json!([]));
    silent.container["terminationMessagePath"] = json!("");
    let mounts = silent.mounts();
    assert_eq!(mounts.len(), 1, "only the hosts file");
}

#[test]
#[ignore = "tier: root"]
fn sub_paths_are_mounted_separately() {
    let case = case(json!([
        {"name": "disk", "mountPath": "/a"},
        {"name": "disk", "mountPath": "/b", "subPathExpr": "logs/$(POD)"},
    ]));
    let disk = case.dir.path().join("disk");
    fs::create_dir(&disk).unwrap();
    fs::set_permissions(&disk, fs::Permissions::from_mode(0o777)).unwrap();
    let mounts = case.mounts();
    let target = case.node.pod_dir("uid-1").join("volume-subpaths/disk/c/1");
    assert_eq!(mounts[1].host_path, target.to_str().unwrap());
    fs::write(target.join("file"), "x").unwrap();
    assert_eq!(fs::read_to_string(disk.join("logs/p-0/file")).unwrap(), "x");
    let mode = fs::metadata(disk.join("logs/p-0"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o777);
    crate::volumes::mount_point::unmount(&target).unwrap();
}
