use serde_json::{Value, json};

use super::*;
use crate::pods::spec::testing::{node, of_node, pod_with};

fn of(
    pod: Value,
    container: Value,
    user: ImageUser,
) -> Result<LinuxContainerSecurityContext, String> {
    let container = json!({"name": "c", "securityContext": container});
    let pod = pod_with(json!({"securityContext": pod, "containers": [container]}));
    let container = &pod.spec.as_ref().unwrap().containers[0];
    container_security(&node("/k"), &pod, container, &user, &of_node())
        .map_err(|error| error.to_string())
}

fn of_root(pod: Value, container: Value) -> LinuxContainerSecurityContext {
    of(pod, container, ImageUser::Id(0)).unwrap()
}

fn id(value: i64) -> Option<Int64Value> {
    Some(Int64Value { value })
}

#[test]
fn container_overrides_pod_and_pod_overrides_image() {
    let pod = json!({"runAsUser": 1, "runAsGroup": 2, "seLinuxOptions": {"level": "pod"}});
    let got = of_root(pod.clone(), json!(null));
    assert_eq!((got.run_as_user, got.run_as_group), (id(1), id(2)));
    assert_eq!(got.selinux_options.unwrap().level, "pod");

    let own = json!({"runAsUser": 3, "seLinuxOptions": {"level": "own"}});
    let got = of_root(pod, own);
    assert_eq!((got.run_as_user, got.run_as_group), (id(3), id(2)));
    assert_eq!(got.selinux_options.unwrap().level, "own");

    let got = of(json!({}), json!({}), ImageUser::Id(65534)).unwrap();
    assert_eq!(got.run_as_user, id(65534));
    let got = of(json!({}), json!({}), ImageUser::Name("www".to_owned())).unwrap();
    assert_eq!(
        (got.run_as_user, got.run_as_username.as_str()),
        (None, "www")
    );
    let got = of(
        json!({"runAsUser": 0}),
        json!({}),
        ImageUser::Name("www".to_owned()),
    )
    .unwrap();
    assert_eq!((got.run_as_user, got.run_as_username.as_str()), (id(0), ""));
}

#[test]
fn containers_that_must_not_be_root_are_checked() {
    let whose = "(pod: \"pod_ns(uid-1)\", container: c)";
    let name = || ImageUser::Name("www".to_owned());
    for (pod, own, user, want) in [
        (json!({}), json!({}), ImageUser::Id(0), None),
        (
            json!({"runAsNonRoot": true}),
            json!({"runAsNonRoot": false}),
            ImageUser::Id(0),
            None,
        ),
        (
            json!({"runAsNonRoot": true}),
            json!({"runAsUser": 7}),
            ImageUser::Id(0),
            None,
        ),
        (
            json!({"runAsNonRoot": true}),
            json!({"runAsUser": 7}),
            name(),
            None,
        ),
        (
            json!({"runAsNonRoot": true}),
            json!({}),
            ImageUser::Id(7),
            None,
        ),
        (
            json!({"runAsUser": 0}),
            json!({"runAsNonRoot": true}),
            ImageUser::Id(7),
            Some("container's runAsUser breaks non-root policy"),
        ),
        (
            json!({"runAsNonRoot": true}),
            json!({}),
            ImageUser::Id(0),
            Some("container has runAsNonRoot and image will run as root"),
        ),
        (
            json!({"runAsNonRoot": true}),
            json!({}),
            name(),
            Some(
                "container has runAsNonRoot and image has non-numeric user (www), cannot verify \
                 user is non-root",
            ),
        ),
        (
            json!({"runAsNonRoot": true}),
            json!({}),
            ImageUser::Id(1 << 31),
            Some(
                "container has runAsNonRoot and image has an invalid user id (2147483648). (Must \
                 be 1-(2147483647)): must be between 0 and 2147483647, inclusive",
            ),
        ),
    ] {
        let got = of(pod.clone(), own.clone(), user);
        let want = want.map(|text| format!("{text} {whose}"));
        assert_eq!(got.err(), want, "{pod} {own}");
    }
}

#[test]
fn privileges_match_the_security_context() {
    let got = of_root(
        json!({}),
        json!({
            "privileged": true, "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
            "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]},
        }),
    );
    assert!(got.privileged && got.readonly_rootfs && got.no_new_privs);
    let capabilities = got.capabilities.unwrap();
    assert_eq!(capabilities.add_capabilities, ["NET_ADMIN"]);
    assert_eq!(capabilities.drop_capabilities, ["ALL"]);

    let got = of_root(json!({}), json!({}));
    assert!(!got.privileged && !got.readonly_rootfs && !got.no_new_privs);
    assert_eq!(got.capabilities, None);
    assert!(!of_root(json!({}), json!({"allowPrivilegeEscalation": true})).no_new_privs);
}

#[test]
fn groups_are_those_of_the_pod() {
    let pod = json!({
        "fsGroup": 1, "supplementalGroups": [2, 3], "supplementalGroupsPolicy": "Strict",
    });
    let got = of_root(pod, json!({}));
    assert_eq!(got.supplemental_groups, [1, 2, 3]);
    assert_eq!(got.supplemental_groups_policy, 1);
    let got = of(
        json!({"supplementalGroupsPolicy": "Odd"}),
        json!({}),
        ImageUser::Id(0),
    );
    assert_eq!(
        got.unwrap_err(),
        "unsupported supplementalGroupsPolicy: Odd"
    );
}

#[test]
fn kernel_files_are_hidden_unless_unmasked() {
    let got = of_root(json!({}), json!({}));
    assert!(got.masked_paths.contains(&"/proc/kcore".to_owned()));
    assert!(got.readonly_paths.contains(&"/proc/sys".to_owned()));
    let got = of_root(json!({}), json!({"procMount": "Unmasked"}));
    assert!(got.masked_paths.is_empty() && got.readonly_paths.is_empty());
}

#[test]
fn seccomp_is_the_containers_the_pods_or_the_nodes() {
    let profile = |kind: &str| json!({"seccompProfile": {"type": kind}});
    let local = json!({"seccompProfile": {"type": "Localhost", "localhostProfile": "a/b.json"}});
    for (pod, own, want) in [
        (json!({}), json!({}), (ProfileType::Unconfined, "")),
        (
            profile("RuntimeDefault"),
            json!({}),
            (ProfileType::RuntimeDefault, ""),
        ),
        (
            profile("RuntimeDefault"),
            profile("Unconfined"),
            (ProfileType::Unconfined, ""),
        ),
        (
            json!({}),
            local.clone(),
            (ProfileType::Localhost, "/k/seccomp/a/b.json"),
        ),
        (
            local,
            json!({}),
            (ProfileType::Localhost, "/k/seccomp/a/b.json"),
        ),
    ] {
        let got = of_root(pod, own).seccomp.unwrap();
        assert_eq!(
            (got.profile_type, got.localhost_ref.as_str()),
            (want.0.into(), want.1)
        );
    }
    let got = of(json!({}), profile("Localhost"), ImageUser::Id(0));
    assert_eq!(
        got.unwrap_err(),
        "localhostProfile must be set if seccompProfile type is Localhost."
    );
    let mut node = node("/k");
    node.seccomp_default = true;
    let got = seccomp(&node, None, &Container::default()).unwrap();
    assert_eq!(got.profile_type, i32::from(ProfileType::RuntimeDefault));
}

#[test]
#[expect(deprecated, reason = "older runtimes read the field")]
fn app_armor_is_the_containers_the_annotations_or_the_pods() {
    let profile = |kind: &str| json!({"type": kind});
    let local = json!({"type": "Localhost", "localhostProfile": "mine"});
    let of = |pod: &Value, annotation: Option<&str>, own: &Value| {
        let container = json!({"name": "c", "securityContext": {"appArmorProfile": own}});
        let spec = json!({
            "securityContext": {"appArmorProfile": pod}, "containers": [container],
        });
        let mut pod = pod_with(spec);
        pod.metadata.annotations =
            annotation.map(|value| [(format!("{APP_ARMOR_ANNOTATION}c"), value.to_owned())].into());
        let container = &pod.spec.as_ref().unwrap().containers[0];
        let got = container_security(&node("/k"), &pod, container, &ImageUser::Id(0), &of_node());
        got.map(|context| (context.apparmor, context.apparmor_profile))
            .map_err(|error| error.to_string())
    };
    let none = Value::Null;
    for (pod, annotation, own, kind, name, deprecated) in [
        (
            &profile("Unconfined"),
            None,
            &none,
            ProfileType::Unconfined,
            "",
            "unconfined",
        ),
        (
            &profile("Unconfined"),
            Some("runtime/default"),
            &none,
            ProfileType::RuntimeDefault,
            "",
            "runtime/default",
        ),
        (
            &none,
            Some("localhost/other"),
            &local,
            ProfileType::Localhost,
            "mine",
            "localhost/mine",
        ),
        (
            &none,
            Some("localhost/o"),
            &none,
            ProfileType::Localhost,
            "o",
            "localhost/o",
        ),
    ] {
        let (got, old) = of(pod, annotation, own).unwrap();
        let got = got.unwrap();
        assert_eq!(
            (got.profile_type, got.localhost_ref.as_str()),
            (kind.into(), name)
        );
        assert_eq!(old, deprecated);
    }
    assert_eq!(
        of(&none, Some("nonsense"), &none).unwrap(),
        (None, String::new())
    );
    assert_eq!(
        of(&none, None, &profile("Localhost")).unwrap_err(),
        "missing localhost apparmor profile name"
    );
    assert_eq!(
        of(&none, None, &profile("Odd")).unwrap_err(),
        "unknown apparmor profile type: \"Odd\""
    );
}

#[test]
fn image_without_a_user_runs_as_root() {
    use plimsoll_runtime::wire::Image;
    assert_eq!(ImageUser::from_image(None), ImageUser::Id(0));
    let image = |uid: Option<i64>, username: &str| Image {
        uid: uid.map(|value| Int64Value { value }),
        username: username.to_owned(),
        ..Image::default()
    };
    let user = |image: &Image| ImageUser::from_image(Some(image));
    assert_eq!(user(&image(None, "")), ImageUser::Id(0));
    assert_eq!(user(&image(Some(7), "x")), ImageUser::Id(7));
    assert_eq!(user(&image(None, "x")), ImageUser::Name("x".to_owned()));
}
