//! What a store promises, run on every backend.
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
        an_empty_store_is_at_revision_one,
        a_key_reads_back_with_its_revisions,
        an_absent_key_is_no_error,
        the_past_reads_as_it_was,
        the_future_cannot_be_read,
        a_range_is_in_byte_order_and_ends_with_its_prefix,
        pages_go_on_where_they_ended_and_count_the_rest,
        pages_of_one_revision_do_not_see_later_writes,
        a_limit_of_zero_only_counts,
        arbitrary_bytes_are_keys_and_values,
        a_closed_store_refuses;
    transactions:
        create_needs_absence,
        update_needs_the_last_revision,
        delete_needs_the_last_revision,
        several_keys_change_at_one_revision,
        nothing_changes_when_one_comparison_fails,
        deleting_nothing_makes_no_revision,
        a_key_created_again_is_new,
        a_key_written_twice_is_refused,
        oversize_is_refused_before_it_is_sent,
        of_many_concurrent_creates_one_wins,
        concurrent_increments_are_all_counted;
    watches:
        changes_come_in_order_without_gaps,
        a_watch_from_the_past_goes_on_live,
        a_watch_sees_only_its_prefix,
        previous_entries_come_on_request,
        a_delete_carries_its_revision,
        one_transaction_arrives_whole_and_in_order,
        progress_is_told_without_changes,
        a_watch_from_the_future_waits,
        a_slow_watcher_is_cut_off_and_others_are_not,
        closing_ends_watches;
    compaction:
        reads_below_the_compacted_revision_fail,
        watches_below_the_compacted_revision_fail,
        what_is_current_survives_compaction,
        compacting_the_future_fails,
        compacting_twice_is_no_error,
        a_delete_is_never_missed_because_of_compaction;
    expiry:
        a_key_expires_and_watchers_see_it,
        a_later_put_without_expiry_stays;
    snapshots:
        a_snapshot_is_of_one_revision,
        a_snapshot_knows_when_keys_expire,
        a_store_is_ready;
    model:
        random_operations_agree_with_the_model;
}
