//! The same cases in a virtual machine, where cgroups are v2.

use std::path::Path;
use std::time::Duration;

use libtest_mimic::Trial;
use plimsoll_testkit::vm::Machine;

/// Emulated cpus are slow, and share the host's with other tests.
const LIMIT: Duration = Duration::from_secs(30 * 60);

const PROGRAM: &str = "/test/embedded";

/// One trial: this program with all its cases, inside.
pub(crate) fn trial() -> Trial {
    Trial::test("vm/embedded", || {
        let own = std::env::current_exe()?;
        let mut machine = Machine::new().memory_mib(1024).program(&own, PROGRAM);
        for plugin in ["bridge", "host-local"] {
            let path = Path::new("/usr/lib/cni").join(plugin);
            machine = machine.program(&path, &path.display().to_string());
        }
        let command = [
            PROGRAM,
            "--ignored",
            "--color",
            "never",
            "--test-threads",
            "1",
            "--skip",
            "vm/",
        ];
        let outcome = machine.run(&command, LIMIT, &mut std::io::stdout());
        match outcome.status {
            Some(0) => Ok(()),
            status => Err(format!("the cases failed in the machine ({status:?})").into()),
        }
    })
    .with_kind("tier: vm")
    .with_ignored_flag(true)
}
