//! The contract between the agent and a container runtime, tested on each runtime.
//!
//! A case is a function of a [`scene::Scene`]: a runtime, and the environment of the case's pods.
//! `contract!` lists the cases. All are of tier root: `cargo test --test runtime -- --ignored cri/`
//! runs them on containerd, `embedded/` on the embedded runtime. `vm/embedded` is of tier vm: the
//! cases in a virtual machine.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod backend;
mod cgroups;
mod collection;
mod containers;
mod exec;
mod filters;
mod images;
mod isolation;
mod logs;
mod process;
mod restart;
mod sandboxes;
mod scene;
mod stats;
mod users;
mod vm;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use plimsoll_runtime::embedded::helper_main;

use backend::{Backend, Suite};

/// Makes one trial per case and runtime.
macro_rules! contract {
    ($suite:expr, $runtime:expr; $($module:ident: $($case:ident),+;)+) => {
        vec![$($(trial(
            $suite,
            $runtime,
            concat!(stringify!($module), "/", stringify!($case)),
            |scene| Box::pin($module::$case(scene)),
        ),)+)+]
    };
}

fn trials(suite: &'static Suite, runtime: Backend) -> Vec<Trial> {
    contract! { suite, runtime;
        sandboxes:
            the_runtime_tells_its_name_and_that_it_is_ready,
            a_sandbox_is_ready_then_stopped_then_gone,
            stopping_and_removing_again_is_fine,
            removing_takes_running_containers_along,
            stopping_ends_all_containers,
            lists_are_filtered_by_id_state_and_labels,
            labels_and_annotations_come_back,
            attempts_tell_sandboxes_of_a_pod_apart,
            a_pod_on_the_nodes_network_shares_it,
            a_pod_has_its_own_host_name_and_resolver,
            unknown_sandboxes_are_not_found,
            unknown_runtime_handler_is_refused;
        containers:
            a_container_is_created_then_runs_then_ends,
            success_is_completed_with_code_zero,
            failure_is_an_error_with_its_code,
            a_process_killed_by_a_signal_has_128_more,
            a_program_that_does_not_exist_does_not_start,
            a_handler_of_the_stop_signal_ends_in_time,
            a_process_that_ignores_the_stop_signal_is_killed,
            stopping_without_grace_kills_at_once,
            stopping_what_has_ended_is_fine,
            removing_ends_a_running_container_but_keeps_its_log,
            lists_are_filtered_by_id_state_sandbox_and_labels,
            metadata_labels_and_annotations_come_back,
            attempts_live_side_by_side,
            times_are_in_order,
            many_pods_start_at_once,
            two_may_stop_one_container,
            unknown_containers_are_not_found;
        process:
            command_and_arguments_replace_those_of_the_image,
            arguments_alone_follow_the_entrypoint,
            environment_is_that_of_the_image_and_the_container,
            the_working_directory_is_made,
            users_and_groups_are_numbers_or_names,
            mounts_are_seen_and_told,
            read_only_mounts_cannot_be_written,
            a_read_only_root_cannot_be_written,
            capabilities_are_added_and_dropped,
            a_privileged_container_sees_devices;
        isolation:
            containers_of_a_pod_share_network_and_ipc_but_not_processes,
            shared_memory_is_shared_in_a_pod,
            a_shared_process_namespace_shows_all_processes,
            processes_of_another_container_can_be_joined,
            processes_of_the_node_can_be_shared,
            paths_are_masked_and_read_only,
            cgroups_cannot_be_written,
            cgroups_can_be_written_by_a_privileged_container,
            kernel_settings_are_the_pods_own,
            devices_are_given_by_name,
            later_mounts_are_seen_only_where_asked_for,
            new_privileges_can_be_forbidden;
        users:
            the_runtime_tells_whether_pods_can_have_users,
            root_of_a_pod_is_an_ordinary_user_of_the_node,
            the_root_file_system_is_roots,
            streams_and_terminals_are_the_pods,
            users_of_the_image_are_the_pods,
            volumes_keep_their_owners_on_disk,
            a_volume_that_cannot_be_mapped_is_refused,
            who_escapes_has_no_power_over_the_node,
            processes_are_shared_by_those_with_the_same_users,
            rights_in_a_pod_are_rights_over_the_pod,
            a_pod_is_not_the_nodes_and_its_own_at_once;
        filters:
            the_default_filter_holds_back_what_touches_the_node,
            a_right_opens_its_calls,
            a_filter_holds_for_users_and_for_commands,
            a_filter_of_the_nodes_is_used,
            a_container_does_not_run_without_its_filter,
            a_privileged_container_has_no_filter;
        logs:
            lines_have_time_stream_and_tag,
            long_lines_are_cut_into_parts,
            a_last_line_without_end_is_kept,
            bytes_that_are_no_text_are_kept,
            nothing_is_lost_of_much_output,
            a_renamed_log_is_opened_anew,
            a_terminal_has_one_stream;
        exec:
            output_and_exit_code_come_back,
            a_command_sees_the_containers_world,
            a_slow_command_is_ended_at_its_time_limit,
            commands_run_only_in_running_containers,
            much_output_comes_back_whole,
            streams_are_handed_over_or_served_elsewhere,
            attaching_joins_the_first_process,
            ports_are_reached_or_served_elsewhere;
        cgroups:
            a_container_is_placed_below_its_pod,
            values_are_written_as_asked,
            limits_of_a_running_container_change,
            a_memory_hog_is_killed_inside_its_limit,
            files_of_v2_are_written_by_name,
            a_container_dies_as_a_whole_if_asked_for,
            the_cgroup_goes_with_the_container;
        stats:
            usage_is_told_per_container,
            file_systems_of_images_are_told;
        images:
            an_image_is_known_by_name_and_id,
            an_unknown_image_is_no_error,
            an_image_is_pulled_from_a_registry,
            a_registry_wants_the_right_password,
            a_pull_of_nothing_says_what_was_missing,
            a_removed_image_is_gone,
            a_container_tells_which_image_it_runs,
            a_container_is_made_of_an_id;
        collection:
            of_dead_containers_the_newest_stays_until_its_pod_goes,
            who_comes_while_a_node_is_cleared_keeps_its_dead,
            unused_images_go_for_age_and_for_want_of_space,
            full_logs_are_rotated_and_go_on;
        restart:
            everything_is_found_again,
            what_ended_meanwhile_is_told;
    }
}

fn trial(
    suite: &'static Suite,
    runtime: Backend,
    name: &str,
    case: for<'a> fn(&'a scene::Scene) -> scene::Running<'a>,
) -> Trial {
    // These stop the runtime, or remove what others use.
    let disturbs_others = name.starts_with("restart/") || name.starts_with("collection/");
    let name = format!("{runtime}/{name}");
    Trial::test(name, move || {
        match disturbs_others {
            true => suite.run_alone(runtime, case),
            false => suite.run(runtime, case),
        }
        Ok(())
    })
    .with_kind("tier: root")
    .with_ignored_flag(true)
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(backend::HELPER_WORD) {
        return helper_main();
    }
    let arguments = Arguments::from_args();
    let suite: &'static Suite = Box::leak(Box::new(Suite::new()));
    let all = Backend::ALL.into_iter().flat_map(|runtime| {
        let in_machine = std::iter::once(vm::trial(runtime));
        trials(suite, runtime).into_iter().chain(in_machine)
    });
    let conclusion = libtest_mimic::run(&arguments, all.collect());
    suite.end();
    conclusion.exit_code()
}
