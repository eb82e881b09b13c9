//! Which system calls containers may make.

use plimsoll_runtime::wire::security_profile::ProfileType;
use plimsoll_runtime::wire::{Capability, ContainerConfig, Int64Value, SecurityProfile};

use crate::scene::{Scene, lasting, script, security};

/// Whether a filter is loaded (0 or 2), and which capabilities there are.
const LOOK: &str = "grep -E '^(Seccomp|CapEff|CapBnd|NoNewPrivs):' /proc/self/status | tr -d '\\t'";
const TRY: &str = "unshare -m true 2>&1 || true";

fn filtered(mut config: ContainerConfig, kind: ProfileType, path: &str) -> ContainerConfig {
    security(&mut config).seccomp = Some(SecurityProfile {
        profile_type: kind.into(),
        localhost_ref: path.to_owned(),
    });
    config
}

pub(crate) async fn default_seccomp_filter_denies_calls_that_change_the_node(scene: &Scene) {
    let text = format!("{LOOK}; {TRY}");
    let open = filtered(script(&text), ProfileType::Unconfined, "");
    let open = scene.output(&open).await;
    assert!(open.contains("Seccomp:0"), "{open}");
    let confined = filtered(script(&text), ProfileType::RuntimeDefault, "");
    let confined = scene.output(&confined).await;
    assert!(confined.contains("Seccomp:2"), "{confined}");
    assert!(confined.contains("Operation not permitted"), "{confined}");
    // Capabilities are the same with and without a filter.
    let rights = |shown: &str| -> Vec<String> {
        let lines = shown.lines().filter(|line| line.starts_with("Cap"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(rights(&confined), rights(&open));
}

pub(crate) async fn capability_allows_its_system_calls(scene: &Scene) {
    let mut config = filtered(script(TRY), ProfileType::RuntimeDefault, "");
    security(&mut config).capabilities = Some(Capability {
        add_capabilities: vec!["SYS_ADMIN".to_owned()],
        ..Capability::default()
    });
    assert_eq!(scene.output(&config).await, "");
}

pub(crate) async fn seccomp_filter_applies_to_users_and_exec(scene: &Scene) {
    for no_new_privs in [false, true] {
        let mut config = filtered(lasting(), ProfileType::RuntimeDefault, "");
        let context = security(&mut config);
        context.run_as_user = Some(Int64Value { value: 1000 });
        context.no_new_privs = no_new_privs;
        let id = scene.start_alone(&config).await;
        let of_first = LOOK.replace("/proc/self", "/proc/1");
        for look in [LOOK, &of_first] {
            let shown = scene.shell(&id, look).await;
            assert!(shown.contains("Seccomp:2"), "{shown}");
            assert!(shown.contains("CapEff:0000000000000000"), "{shown}");
            let forbidden = format!("NoNewPrivs:{}", u8::from(no_new_privs));
            assert!(shown.contains(&forbidden), "{shown}");
        }
    }
}

pub(crate) async fn a_filter_of_the_nodes_is_used(scene: &Scene) {
    let path = scene.folder().join("filter.json");
    std::fs::write(
        &path,
        r#"{"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"],
            "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28}]}"#,
    )
    .unwrap();
    let text = "mkdir /tmp/x 2>&1; touch /tmp/y && echo fine";
    let path = format!("localhost/{}", path.display());
    let config = filtered(script(text), ProfileType::Localhost, &path);
    let shown = scene.output(&config).await;
    assert!(shown.contains("No space left on device"), "{shown}");
    assert!(shown.ends_with("fine"), "{shown}");
}

pub(crate) async fn a_container_does_not_run_without_its_filter(scene: &Scene) {
    let config = filtered(
        lasting(),
        ProfileType::Localhost,
        "localhost//no/such/filter.json",
    );
    let sandbox = scene.run_pod().await;
    let runtime = scene.runtime();
    let made = runtime.create_container(&sandbox.id, &config, &sandbox.config);
    let refused = made.await.unwrap_err().chain();
    let is_named = refused.contains("cannot load seccomp profile \"/no/such/filter.json\"");
    assert!(is_named, "{refused}");
}

pub(crate) async fn a_privileged_container_has_no_filter(scene: &Scene) {
    let mut config = filtered(script(LOOK), ProfileType::RuntimeDefault, "");
    security(&mut config).privileged = true;
    let mut pod = scene.pod();
    let linux = pod.linux.as_mut().unwrap();
    linux.security_context.as_mut().unwrap().privileged = true;
    let sandbox = scene.run(pod).await;
    let shown = scene.output_in(&sandbox, &config).await;
    assert!(shown.contains("Seccomp:0"), "{shown}");
}
