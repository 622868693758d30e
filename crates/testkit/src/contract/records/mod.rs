//! What every store of records promises, told against the contract `Records` alone.
//! `records_contract!` makes a test of each promise for an arm.

pub mod scene;
pub mod saves;
pub mod finds;
pub mod counts;
pub mod scopes;
pub mod deletes;
pub mod calls;
pub mod random;

/// The tests of one arm, an expression that gives a new one: put it into a module of its own.
#[macro_export]
macro_rules! records_contract {
    ($arm:expr) => {
        $crate::records_contract! { $arm;
            saves: what_is_saved_is_there_after_a_restart,
                a_save_changes_one_version_or_nothing,
                an_id_is_taken_once,
                a_merge_finds_its_record_by_ref_name,
                a_ref_name_is_unique_without_case_in_its_tenant,
                unique_fields_are_unique_together,
                references_lead_to_records_that_are_there,
                an_invalid_record_is_not_written,
                realms_and_types_are_apart;
            finds: rows_are_those_that_the_evaluator_takes,
                rows_are_ordered_by_the_fields_and_then_by_id,
                pages_follow_each_other_without_gap_or_overlap,
                a_cursor_holds_though_its_row_is_gone,
                a_page_ends_before_it_has_too_many_bytes,
                what_is_embedded_is_counted,
                fields_are_chosen,
                a_type_that_is_not_declared_is_refused;
            counts: groups_are_those_of_the_evaluator,
                there_are_not_more_groups_than_allowed,
                usage_is_counted_by_realm_and_owner;
            scopes: rows_outside_the_scope_are_not_there,
                a_save_fits_its_scope_before_and_after,
                hidden_fields_are_kept_and_never_shown,
                what_is_embedded_is_in_scope,
                a_type_that_is_not_admitted_is_empty;
            deletes: a_deleted_record_is_gone,
                a_record_that_others_refer_to_stays,
                of_many_all_go_or_none,
                a_dry_run_deletes_nothing,
                a_removed_realm_leaves_nothing;
            calls: a_call_writes_once,
                a_call_that_was_refused_can_be_made_again,
                a_call_stands_for_one_write_in_its_realm,
                an_outcome_is_forgotten_after_30_days,
                a_closed_store_refuses;
        }
    };
    ($arm:expr; $($topic:ident: $($promise:ident),+;)+) => {
        $($(
            #[test]
            fn $promise() {
                $crate::contract::records::scene::keep(
                    $arm,
                    $crate::contract::records::$topic::$promise,
                );
            }
        )+)+
    };
}
