//! Processes, files and networks of the embedded runtime on this machine.
//!
//! What it has in common with other runtimes is in `crates/node/tests/runtime`. All cases here are of tier
//! root: `cargo test --test embedded -- --ignored --skip vm/`; `vm/embedded` is of tier vm: the
//! cases in a virtual machine. The binary is its own helper.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking and shows what it measured"
)]

mod adoption;
mod footprint;
mod isolation;
mod network;
mod scene;
mod streams;
mod vm;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use plimsoll_runtime::embedded::helper_main;

use scene::Scene;

/// One trial per case, each with a scene of its own.
macro_rules! cases {
    ($($module:ident: $($case:ident),+;)+) => {
        vec![$($(trial(
            concat!(stringify!($module), "/", stringify!($case)),
            |scene| Box::pin($module::$case(scene)),
        ),)+)+]
    };
}

type Case = fn(&mut Scene) -> std::pin::Pin<Box<dyn Future<Output = ()> + '_>>;

fn trial(name: &'static str, case: Case) -> Trial {
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(Failed::from)?;
        runtime.block_on(async {
            let mut scene = Scene::new().await;
            case(&mut scene).await;
            scene.finish().await;
        });
        Ok(())
    })
    .with_kind("tier: root")
    .with_ignored_flag(true)
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(scene::HELPER) {
        return helper_main();
    }
    if std::env::args().nth(1).as_deref() == Some(adoption::AGENT) {
        return adoption::agent_main();
    }
    let mut trials = cases! {
        adoption:
            containers_outlive_the_runtime_and_are_found_again,
            a_killed_agent_leaves_everything_running,
            an_agent_may_be_killed_at_any_moment,
            the_end_of_a_container_is_noted_while_no_agent_runs,
            container_ends_when_its_monitor_dies,
            a_helper_that_dies_is_replaced,
            incomplete_containers_are_removed,
            a_directory_has_one_runtime_at_a_time;
        isolation:
            processes_stand_in_their_cgroups,
            disks_of_the_machine_cannot_be_read,
            host_mounts_are_visible_only_with_propagation,
            the_first_process_of_a_shared_pod_leads_nowhere,
            a_container_may_join_the_processes_of_another,
            many_pods_start_and_end_at_once,
            a_container_with_frozen_processes_can_be_stopped,
            the_binary_cannot_be_written_through_a_process;
        streams:
            a_command_has_three_streams,
            a_command_with_a_terminal_knows_its_size,
            hanging_up_kills_the_command,
            missing_command_is_reported,
            stdin_once_closes_stdin_after_the_first_attach,
            many_attach_to_one_terminal,
            slow_reader_does_not_block_other_readers;
        network:
            pods_reach_each_other_and_the_machine_reaches_them,
            addresses_are_given_back,
            cni_plugins_are_run;
        footprint:
            a_pod_starts_soon,
            monitors_are_small;
    };
    trials.push(vm::trial());
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, trials).exit_code()
}
