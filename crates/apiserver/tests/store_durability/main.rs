//! Data that the embedded store has acknowledged stays, whatever happens to the process or the
//! disk.
//!
//! - [`kill`]: a child process writes under load and is killed; its file is opened and checked.
//! - [`faults`]: the n-th write, flush or read fails; the disk is full.
//! - [`power_loss`]: the machine stops and loses part of the unflushed data.
//! - [`damage`]: flipped bits in the file. [`upgrade`]: files of earlier formats.
//! - [`ledger`] writes so that every loss is visible, and checks; [`disk`] is a disk that can fail.
//!
//! `PLIMSOLL_CRASH_RUNS` sets how often the process is killed and the power fails.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "the numbers of a run are its result")]

mod damage;
mod disk;
mod faults;
mod kill;
mod ledger;
mod power_loss;
mod upgrade;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Enough for every change; hundreds on demand.
const DEFAULT_RUNS: u64 = 25;

fn runs() -> u64 {
    let runs = std::env::var("PLIMSOLL_CRASH_RUNS");
    runs.map_or(DEFAULT_RUNS, |runs| {
        runs.parse().expect("PLIMSOLL_CRASH_RUNS is a number")
    })
}

fn main() -> ExitCode {
    if kill::is_child() {
        return kill::run_child();
    }
    let trials = vec![
        trial("a_killed_process_loses_nothing_acknowledged", || {
            kill::killed(runs())
        }),
        trial("a_power_loss_loses_nothing_acknowledged", || {
            power_loss::survived(runs())
        }),
        trial(
            "a_failed_write_loses_nothing_and_the_store_goes_on",
            faults::failed_writes,
        ),
        trial(
            "after_a_failed_flush_writes_are_refused_until_reopened",
            faults::failed_flushes,
        ),
        trial("a_failed_read_is_over_by_itself", faults::failed_reads),
        trial("a_full_disk_is_told_and_recovers", faults::full_disk),
        trial("the_file_is_for_its_owner_only", faults::file_mode),
        trial("a_file_is_opened_by_one_process_only", faults::opened_twice),
        trial("a_file_that_is_no_store_is_refused", faults::not_a_store),
        trial(
            "a_flipped_bit_is_an_error_of_its_object_alone",
            damage::one_value,
        ),
        trial(
            "a_flipped_bit_in_a_key_is_an_error_of_its_object",
            damage::one_key,
        ),
        trial(
            "bits_flipped_anywhere_show_no_wrong_value_and_end_no_process",
            damage::anywhere,
        ),
        trial(
            "a_page_damaged_while_the_store_is_open_loses_nothing",
            damage::while_open,
        ),
        trial(
            "a_store_of_format_1_opens_with_every_object",
            upgrade::opens,
        ),
        trial(
            "a_migration_cut_off_anywhere_leaves_one_format_or_the_other",
            upgrade::cut_off,
        ),
        trial("a_store_of_a_newer_format_is_refused", upgrade::newer),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn trial(name: &str, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

/// Runs a test that awaits.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}
