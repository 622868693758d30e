//! The contract suite: what every store promises, one function for each promise, told against the
//! contracts alone. `store_contract!` makes a test of each of them for an arm.

pub mod driver;
pub mod scene;
pub mod arms;
pub mod differential;
pub mod journal;
pub mod ownership;
pub mod lists;
pub mod keys;
pub mod feed;
pub mod retention;
pub mod api_keys;
pub mod claims;
pub mod principals;
pub mod audit;
pub mod realms;
pub mod webhooks;
pub mod records;

/// The tests of one arm, an expression that gives a new one: put it into a module of its own.
#[macro_export]
macro_rules! store_contract {
    ($arm:expr) => {
        $crate::store_contract! { $arm;
            journal: what_is_appended_is_loaded,
                who_knows_a_session_is_told_only_whether_it_changed,
                who_decided_on_an_older_state_is_refused,
                appends_are_queued_without_waiting_and_each_moves_the_fence_by_one,
                what_is_refused_leaves_nothing_and_harms_nobody,
                one_reply_wins,
                an_ask_may_open_and_close_in_one_append,
                a_failed_append_poisons_its_session_until_it_is_loaded,
                history_comes_newest_first_in_pages,
                events_come_one_by_one_as_they_were_written,
                a_snapshot_shortens_the_tail_and_comes_and_goes_with_its_append,
                commits_wake_and_a_closed_store_says_so,
                a_commit_is_told_with_its_events_before_its_ticket_resolves,
                what_is_queued_is_written_before_a_close_returns;
            ownership: due_sessions_are_claimed_and_those_of_a_dead_process_first,
                a_parked_session_is_passed_over_until_its_time_or_its_next_append,
                a_session_is_postponed_unless_something_was_appended,
                the_next_wake_is_the_nearest_one_after_now;
            lists: sessions_are_listed_newest_first,
                sessions_are_found_by_a_blob_that_they_hold,
                a_key_without_a_space_is_the_only_one_or_the_session,
                the_same_id_of_two_owners_is_two_sessions,
                a_subject_means_its_own_where_ids_are_their_owners,
                asks_are_listed_oldest_first,
                asks_that_rules_hold_are_listed_apart,
                a_run_is_kept_up_to_date,
                the_plans_of_runs_are_read_by_a_list_of_ids,
                a_first_run_comes_with_the_first_events_of_its_session,
                runs_of_contexts_are_listed_by_their_last_change,
                sessions_that_are_not_over_are_counted_by_status,
                what_runs_store_is_summed_up_by_realm_and_owner,
                another_realm_sees_nothing,
                roads_are_counted_with_the_runs_that_take_them;
            keys: a_key_is_written_with_what_it_stands_for_and_only_once,
                a_key_that_is_taken_under_its_earlier_route_is_refused_until_that_is_forgotten;
            feed: the_feed_skips_nothing_and_never_goes_back,
                a_consumer_moves_on_only,
                a_sink_begins_once_and_keeps_its_place_until_it_is_forgotten;
            retention: a_removed_session_leaves_nothing,
                old_sessions_are_removed_in_slices_and_their_keys_when_they_are_old_too,
                sessions_with_old_runs_are_found_and_those_with_one_run_are_not,
                old_runs_go_and_a_base_stands_in_their_place,
                a_session_that_is_not_as_the_trim_says_stays_whole,
                sessions_stay_until_every_sink_has_passed_them,
                a_session_is_removed_once_every_sink_has_passed_it,
                old_runs_stay_until_every_sink_has_passed_them,
                a_closure_goes_with_the_last_run_that_pins_it,
                a_trimmed_run_takes_its_closure_along,
                a_spec_is_there_as_long_as_a_closure_that_pins_it;
            api_keys: a_key_is_written_only_against_the_version_that_is_stored,
                of_two_who_write_a_key_at_once_one_is_refused,
                keys_are_listed_by_id_and_one_that_was_revoked_stays,
                a_key_and_its_last_use_are_there_after_a_restart,
                the_last_use_of_a_key_never_goes_back,
                the_use_of_a_key_that_is_not_there_is_ignored;
            claims: claims_of_a_subject_take_the_place_of_those_before,
                claims_are_there_after_a_restart_until_they_are_removed;
            principals: a_principal_is_written_only_against_the_version_that_is_stored,
                principals_are_listed_by_id_and_are_there_after_a_restart;
            realms: a_realm_is_made_once_and_is_there_after_a_restart,
                a_removed_realm_takes_no_write_and_its_name_is_not_given_again,
                a_realm_goes_with_what_could_enter_it_or_not_at_all,
                what_a_removed_realm_owned_is_purged_and_nothing_else;
            webhooks: a_webhook_is_there_after_a_restart_until_it_is_removed,
                a_webhook_takes_the_place_of_one_with_its_name_and_each_run_has_so_many,
                how_far_a_webhook_has_got_is_noted_of_that_webhook_alone,
                webhooks_of_a_realm_are_listed_in_pages_also_those_that_ended,
                a_webhook_goes_with_its_run,
                a_removed_realm_takes_no_webhook_and_keeps_none;
            audit: entries_of_appends_that_are_queued_together_are_each_written_once,
                an_append_and_its_entries_are_written_together_or_not_at_all,
                a_key_and_its_entries_are_written_together_or_not_at_all,
                a_principal_and_its_entries_are_written_together_or_not_at_all,
                of_several_lists_all_are_written_or_none,
                entries_that_are_texts_become_the_same_rows,
                nothing_is_written_to_the_audit_without_keys,
                chains_are_apart_and_stay_whole_after_a_restart,
                old_rows_of_a_chain_are_removed_and_leave_a_base,
                entries_come_newest_first_in_pages,
                a_row_of_an_earlier_moment_hides_none_before_it;
        }
    };
    ($arm:expr; $($topic:ident: $($promise:ident),+;)+) => {
        $($(
            #[test]
            fn $promise() {
                $crate::contract::scene::keep($arm, $crate::contract::$topic::$promise);
            }
        )+)+
    };
}
