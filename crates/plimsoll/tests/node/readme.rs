//! README's commands work as printed, in order, and print the output shown.
//!
//! They run as root with the machine's `kubectl`, in mount and network namespaces of their own: the
//! data directory, the logs, the ports and the bridge are the default ones, and are not those of
//! the machine. Two programs are stand-ins, first in `PATH`: `cargo run --release -- …` is the
//! program under test instead of another build of it, and `cargo install` and `apt-get` do nothing.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plimsoll_testkit::vm::slowness;

use crate::cluster::PLIMSOLL;
use crate::transcript::{Step, blocks, compare};

/// The command that runs until it is stopped, in a terminal of its own.
const UP: &str = "cargo run --release -- up";

/// Its output when it is ready for the next commands.
const UP_IS_READY: &str = "is Ready. In another terminal:";

const CARGO: &str = r#"#!/bin/bash
case "$1 $2" in
"run --release")
    shift 2
    [ "$1" = -q ] && shift
    [ "$1" = -- ] || exit 2
    shift
    exec "$PLIMSOLL" "$@"
    ;;
"install --path") [ -f "$3/Cargo.toml" ] ;;
*) echo "no stand-in for cargo $*" >&2; exit 2 ;;
esac
"#;

/// Gives the commands a machine of their own, as far as `up` uses it by default. `/sys` shows the
/// network cards of the namespace in which it was mounted.
const BEGIN: &str = r#"
set -u
ip link set lo up
mkdir "$SANDBOX/cgroup"
mount --rbind /sys/fs/cgroup "$SANDBOX/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$SANDBOX/cgroup" /sys/fs/cgroup
umount -l "$SANDBOX/cgroup"
mount -t tmpfs -o size=1g tmpfs /var/lib
mount -t tmpfs tmpfs /var/log
up=
end() {
    code=$?
    "$PLIMSOLL" down --purge --grace-period 0s >"$SANDBOX/end" 2>&1
    [ -z "$up" ] || wait "$up"
    exit $code
}
trap end EXIT
fails() {
    cat "$SANDBOX/$1.out"
    exit 1
}
"#;

fn script(steps: &[Step], patience: u32) -> String {
    let mut script = BEGIN.to_owned();
    for (number, step) in steps.iter().enumerate() {
        let command = &step.command;
        let out = format!("\"$SANDBOX/{number}.out\"");
        script += &match command.as_str() {
            UP => format!(
                "{command} >{out} 2>&1 & up=$!\n\
                 for _ in $(seq {patience}); do grep -q '{UP_IS_READY}' {out} && break; sleep 0.1; done\n\
                 grep -q '{UP_IS_READY}' {out} || fails {number}\n"
            ),
            _ => format!("{{ {command}\n}} >{out} 2>&1 </dev/null || fails {number}\n"),
        };
    }
    script + "[ ! -e /var/lib/plimsoll ]\n"
}

fn write_program(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
#[ignore = "tier: root"]
fn commands_of_readme_work_as_printed() {
    let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(repository.join("README.md")).unwrap();
    let steps: Vec<Step> = blocks(&readme).into_iter().flatten().collect();
    assert!(steps.iter().any(|step| step.command == UP));
    let sandbox = tempfile::tempdir().unwrap();
    let programs = sandbox.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    write_program(&programs.join("cargo"), CARGO);
    write_program(&programs.join("apt-get"), "#!/bin/sh\n");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("unshare")
        .args(["--mount", "--net", "--propagation", "private", "bash", "-c"])
        .arg(script(&steps, 600 * slowness()))
        .current_dir(&repository)
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("PLIMSOLL", PLIMSOLL)
        .env("SANDBOX", sandbox.path())
        .env("HOME", sandbox.path())
        .env("LC_ALL", "C.UTF-8")
        .env_remove("KUBECONFIG")
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let read = |name: String| std::fs::read_to_string(sandbox.path().join(name));
    let mut differences = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let Ok(printed) = read(format!("{number}.out")) else {
            differences.push(format!("{} was not run", step.command));
            break;
        };
        if let Err(difference) = compare(&step.output, &printed) {
            differences.push(format!("{}\n{difference}", step.command));
        }
    }
    let complaints = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && differences.is_empty(),
        "{}\n{complaints}\n{}",
        output.status,
        differences.join("\n\n")
    );
}
