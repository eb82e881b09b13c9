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
            runtime_reports_its_name_and_readiness,
            sandbox_is_ready_then_stopped_then_removed,
            stopping_and_removing_is_idempotent,
            removing_a_sandbox_removes_running_containers,
            stopping_ends_all_containers,
            lists_are_filtered_by_id_state_and_labels,
            sandbox_labels_and_annotations_are_returned,
            attempts_distinguish_sandboxes_of_a_pod,
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
            stopping_an_exited_container_succeeds,
            removing_ends_a_running_container_but_keeps_its_log,
            lists_are_filtered_by_id_state_sandbox_and_labels,
            container_metadata_labels_and_annotations_are_returned,
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
            mounts_are_visible_and_reported,
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
            devices_are_added_by_name,
            later_mounts_are_visible_only_with_propagation,
            new_privileges_can_be_forbidden;
        users:
            runtime_reports_user_namespace_support,
            root_of_a_pod_is_an_ordinary_user_of_the_node,
            the_root_file_system_is_roots,
            streams_and_terminals_are_the_pods,
            users_of_the_image_are_the_pods,
            volumes_keep_their_owners_on_disk,
            a_volume_that_cannot_be_mapped_is_refused,
            escaped_process_has_no_rights_on_the_node,
            processes_are_shared_by_those_with_the_same_users,
            rights_in_a_pod_are_rights_over_the_pod,
            user_namespace_excludes_host_network_of_a_pod;
        filters:
            default_seccomp_filter_denies_calls_that_change_the_node,
            capability_allows_its_system_calls,
            seccomp_filter_applies_to_users_and_exec,
            a_filter_of_the_nodes_is_used,
            a_container_does_not_run_without_its_filter,
            a_privileged_container_has_no_filter;
        logs:
            lines_have_time_stream_and_tag,
            long_lines_are_cut_into_parts,
            a_last_line_without_end_is_kept,
            bytes_that_are_no_text_are_kept,
            nothing_is_lost_of_much_output,
            renamed_log_is_reopened,
            a_terminal_has_one_stream;
        exec:
            exec_returns_output_and_exit_code,
            a_command_sees_the_containers_world,
            a_slow_command_is_ended_at_its_time_limit,
            commands_run_only_in_running_containers,
            exec_returns_large_output_completely,
            streams_are_handed_over_or_served_elsewhere,
            attaching_joins_the_first_process,
            ports_are_reached_or_served_elsewhere;
        cgroups:
            a_container_is_placed_below_its_pod,
            cgroup_values_match_the_request,
            limits_of_a_running_container_change,
            a_memory_hog_is_killed_inside_its_limit,
            files_of_v2_are_written_by_name,
            memory_oom_group_kills_the_whole_container,
            cgroup_is_removed_with_the_container;
        stats:
            stats_report_usage_per_container,
            image_file_systems_are_reported;
        images:
            an_image_is_known_by_name_and_id,
            an_unknown_image_is_no_error,
            an_image_is_pulled_from_a_registry,
            pull_needs_the_right_password,
            pull_of_a_missing_image_names_it,
            removed_image_is_not_listed,
            container_status_names_its_image,
            a_container_is_made_of_an_id;
        collection:
            newest_dead_container_stays_until_its_pod_is_deleted,
            pod_that_starts_during_a_collection_keeps_dead_containers,
            unused_images_are_deleted_for_age_and_for_disk_space,
            full_logs_are_rotated_and_continue;
        restart:
            containers_and_sandboxes_survive_a_restart,
            exit_during_an_agent_restart_is_reported;
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
