//! The same cases in a virtual machine, where cgroups are v2.

use std::path::{Path, PathBuf};
use std::time::Duration;

use libtest_mimic::Trial;

use plimsoll_testkit::vm::Machine;

use crate::backend::Backend;

/// Emulated cpus are slow, and share the host's with whatever else is tested.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// Clients of registries want to know whom to trust, even where nothing is encrypted.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

const PROGRAM: &str = "/test/runtime";

/// One trial: this program with the cases of a runtime, inside.
pub(crate) fn trial(runtime: Backend) -> Trial {
    let name = format!("vm/{runtime}");
    Trial::test(name, move || {
        let own = std::env::current_exe()?;
        let mut machine = Machine::new().memory_mib(2048).program(&own, PROGRAM);
        if Path::new(CERTIFICATES).exists() {
            machine = machine.file(Path::new(CERTIFICATES), CERTIFICATES);
        }
        for program in tools(runtime) {
            let inside = program.to_string_lossy().into_owned();
            machine = machine.program(&program, &inside);
        }
        let cases = format!("{runtime}/");
        let command = [
            PROGRAM,
            "--ignored",
            "--color",
            "never",
            "--skip",
            "vm/",
            &cases,
        ];
        let outcome = machine.run(&command, LIMIT, &mut std::io::stdout());
        match outcome.status {
            Some(0) => Ok(()),
            status => Err(format!("the cases failed in the machine ({status:?})").into()),
        }
    })
    .with_ignored_flag(true)
}

/// The programs of the distribution that the cases of a runtime need.
fn tools(runtime: Backend) -> Vec<PathBuf> {
    let mut names = vec!["docker-registry"];
    let mut files = Vec::new();
    if runtime == Backend::Cri {
        names.extend(["containerd", "containerd-shim-runc-v2", "ctr", "runc"]);
        let plugins = Path::new("/usr/lib/cni");
        files.extend(["host-local", "loopback", "ptp"].map(|name| plugins.join(name)));
    }
    files.extend(names.into_iter().map(find));
    files
}

fn find(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("there is no {name}\nhint: run scripts/test, which installs it"))
}
