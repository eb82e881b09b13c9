//! The same cases in a virtual machine, where cgroups are v2.

use std::path::Path;
use std::time::Duration;

use libtest_mimic::Trial;

use plimsoll_testkit::vm::Machine;

use crate::backend::Backend;

/// Emulated cpus are slow, and share the host's with other tests.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// Clients of registries need CA certificates, even without TLS.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// One trial: this program with the cases of a runtime, inside.
pub(crate) fn trial(runtime: Backend) -> Trial {
    Trial::test(format!("vm/{runtime}"), move || {
        let cases = format!("{runtime}/");
        Ok(machine(runtime).run_own_tests(&[&cases], LIMIT)?)
    })
    .with_kind("tier: vm")
    .with_ignored_flag(true)
}

/// A machine with the programs that the cases of a runtime need.
fn machine(runtime: Backend) -> Machine {
    let mut machine = Machine::new().memory_mib(2048).tool("docker-registry");
    if Path::new(CERTIFICATES).exists() {
        machine = machine.file(Path::new(CERTIFICATES), CERTIFICATES);
    }
    match runtime {
        Backend::Cri => machine.containerd(),
        Backend::Embedded => machine,
    }
}
