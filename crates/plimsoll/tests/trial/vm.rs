//! The host's part: starts the virtual machine.

use std::time::Duration;

use libtest_mimic::Trial;
use plimsoll_testkit::images::busybox_archive;
use plimsoll_testkit::vm::{Machine, given_program};

use crate::node::IMAGE;

/// The word that makes this program drive trials.
pub(crate) const DRIVE: &str = "drive";
/// Whether times are held to their limits. A build without optimization, in an emulated machine, on
/// one that has other things to do, is slow by itself; so only a release build is, or one that was
/// given.
pub(crate) const STRICT: &str = "strict";
const LENIENT: &str = "lenient";
/// Where the agent is in the guest.
pub(crate) const PLIMSOLL: &str = "/usr/bin/plimsoll";
/// Where the image of the pods is.
pub(crate) const ARCHIVE: &str = "/test/busybox.tar";
/// Where this program is.
pub(crate) const PROGRAM: &str = "/test/program";

/// Which trials there are ([`crate::plan::stages`]); without it there is a short set.
const PLAN: &str = "PLIMSOLL_TRIALS";
/// Emulated cpus are slow, and share the host's with whatever else is tested.
const LIMIT: Duration = Duration::from_secs(15 * 60);
/// Of a whole run, which takes a quarter of a minute for each trial on a quiet host.
const LONG_LIMIT: Duration = Duration::from_secs(120 * 60);

pub(crate) fn trial() -> Trial {
    Trial::test("vm/eviction", || {
        let folder = tempfile::tempdir()?;
        let archive = busybox_archive(folder.path(), IMAGE);
        let own = std::env::current_exe()?;
        let plan = std::env::var(PLAN).unwrap_or_else(|_| "short".to_owned());
        let given = given_program();
        let is_strict = given.is_some() || !cfg!(debug_assertions);
        let agent = given.unwrap_or_else(|| env!("CARGO_BIN_EXE_plimsoll").into());
        let strictness = if is_strict { STRICT } else { LENIENT };
        let limit = if plan == "short" { LIMIT } else { LONG_LIMIT };
        let outcome = Machine::new()
            .memory_mib(2048)
            .disk_mib(4096)
            .program(&own, PROGRAM)
            .program(&agent, PLIMSOLL)
            .tool("chrt")
            .file(&archive, ARCHIVE)
            .run(
                &[PROGRAM, DRIVE, &plan, strictness],
                limit,
                &mut std::io::stdout(),
            );
        match outcome.status {
            Some(0) => Ok(()),
            status => Err(format!("the trial failed in the machine ({status:?})").into()),
        }
    })
    .with_kind("tier: vm")
    .with_ignored_flag(true)
}
