//! The guarantees of a store, tested on every backend.
//!
//! A case is a function of a fresh, empty store. `contract!` lists the cases and makes a test of
//! each for redb, and one for a real etcd (tier: tools).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod backend;
mod compaction;
mod etcd_only;
mod expiry;
mod files;
mod model;
mod reads;
mod retention;
mod snapshots;
mod space;
mod transactions;
mod watches;

/// Makes one test per case and backend.
macro_rules! contract {
    ($($module:ident: $($case:ident),+;)+) => {
        mod redb {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let backend = crate::backend::redb();
                    crate::$module::$case(backend.store()).await;
                }
            )+)+
        }

        mod etcd {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                #[ignore = "tier: tools"]
                async fn $case() {
                    let backend = crate::backend::etcd().await;
                    crate::$module::$case(backend.store()).await;
                }
            )+)+
        }
    };
}

contract! {
    reads:
        empty_store_is_at_revision_one,
        key_reads_back_with_its_revisions,
        absent_key_is_not_an_error,
        past_revisions_are_readable,
        future_revisions_are_errors,
        range_is_in_byte_order_and_ends_with_its_prefix,
        pages_continue_and_count_the_remaining_keys,
        pages_of_one_revision_do_not_see_later_writes,
        limit_of_zero_only_counts,
        arbitrary_bytes_are_keys_and_values,
        closed_store_returns_errors;
    transactions:
        create_needs_absence,
        update_needs_the_last_revision,
        delete_needs_the_last_revision,
        several_keys_change_at_one_revision,
        nothing_changes_when_one_comparison_fails,
        deleting_nothing_makes_no_revision,
        recreated_key_has_a_new_create_revision,
        duplicate_key_in_a_transaction_is_rejected,
        oversized_transaction_is_rejected_before_it_is_sent,
        one_of_many_concurrent_creates_wins,
        concurrent_increments_are_all_applied;
    watches:
        changes_arrive_in_order_without_gaps,
        watch_from_the_past_continues_live,
        watch_is_limited_to_its_prefix,
        previous_entries_are_sent_on_request,
        delete_has_its_revision,
        transaction_arrives_whole_and_in_order,
        progress_is_reported_without_changes,
        watch_from_the_future_waits,
        slow_watcher_is_dropped_and_others_are_not,
        closing_ends_watches;
    compaction:
        reads_below_the_compacted_revision_fail,
        watches_below_the_compacted_revision_fail,
        current_values_survive_compaction,
        compacting_the_future_fails,
        compacting_twice_is_not_an_error,
        compaction_never_hides_a_delete;
    expiry:
        key_expires_and_watchers_are_notified,
        later_put_without_expiry_stays;
    snapshots:
        snapshot_has_one_revision,
        snapshot_has_expiry_times,
        open_store_is_ready;
    model:
        random_operations_agree_with_the_model;
}
