//! The same stories in a virtual machine, where cgroups are v2.

use std::time::Duration;

use libtest_mimic::Trial;
use plimsoll_testkit::vm::{Machine, given_program};

use crate::STORIES_VARIABLE;

/// Those that the kernel has most to do with and that need not be watched closely, which takes a
/// machine that is less slow; [a variable](STORIES_VARIABLE) names others.
///
/// `PLIMSOLL_STORIES="root/ tools/" cargo test -p plimsoll --test stories -- --ignored --nocapture vm/`
const CHOSEN: &str = "01-reservations 02-hard-eviction 06-disk-pressure";

/// Machines that run tests are busy, and all stories take a quarter of an hour.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// The machine's own; a story about memory needs 600 MiB, and two run at once.
const MEMORY_MIB: u32 = 2048;

const PLIMSOLL: &str = env!("CARGO_BIN_EXE_plimsoll");

pub(crate) fn trial() -> Trial {
    Trial::test("vm/stories", || {
        let printed = std::env::var(STORIES_VARIABLE).unwrap_or_else(|_| CHOSEN.to_owned());
        let plimsoll = given_program().unwrap_or_else(|| PLIMSOLL.into());
        let stories = crate::stories_folder();
        let mut machine = Machine::new()
            .memory_mib(MEMORY_MIB)
            .variable(STORIES_VARIABLE, &printed)
            .program(&plimsoll, PLIMSOLL)
            .folder(&stories, &stories.to_string_lossy());
        for tool in ["bash", "jq", "kubectl", "mkfs.ext4"] {
            machine = machine.tool(tool);
        }
        Ok(machine.run_own_tests(&[], LIMIT)?)
    })
    .with_kind("tier: vm")
    .with_ignored_flag(true)
}
