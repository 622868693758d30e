//! The seeded simulation: the real engine and the real store under an executor, a clock and a disk
//! that obey a seed. `WAYPOST_SIM_SEED` runs one seed, `WAYPOST_SIM_SECONDS` runs for longer; see
//! `docs/reference/simulation.md`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests may panic, and how long they take is measured by the real clock"
)]

use kernel::planted::Switch;
use std::io::Write;
use std::time::{Duration, Instant};
use testkit::model_store::simulated::Simulated;
use testkit::sim::coverage::{Coverage, Seen};
use testkit::sim::faults::Planted;
use testkit::sim::machine::power::Point;
use testkit::sim::shrink::{shrink, story};
use testkit::sim::world::{Knobs, Outcome, simulate, simulate_on};

/// How many seeds of each kind `cargo xtask test` runs.
const SAMPLE_SEEDS: u64 = 2;
/// How many seeds `cargo xtask prove` runs at most, and for how long it begins new ones where what
/// is looked for was met.
const SEEDS: u64 = 120;
/// However slow the machine is, so many are run.
const SEEDS_MIN: u64 = 60;
/// How many seeds with a sink.
const SINK_SEEDS: u64 = 30;
/// How many seeds with webhooks, and how many of them over the model store.
const WEBHOOK_SEEDS: u64 = 24;
const WEBHOOK_MODEL_SEEDS: u64 = 6;
/// How many seeds with another writer.
const ELSEWHERE_SEEDS: u64 = 30;
/// How many seeds over the model store.
const MODEL_SEEDS: u64 = 12;
const BUDGET: Duration = Duration::from_secs(20);
/// The same for plans that talk.
const TALKING_SEEDS_MIN: u64 = 40;
/// The same for two realms on one machine.
const SHARED_SEEDS_MIN: u64 = 40;
/// The same for plans with rules for their failed steps.
const HEALING_SEEDS_MIN: u64 = 40;
/// How many seeds with models that are asked about failed steps.
const ADVISED_SEEDS: u64 = 40;
/// How many seeds with two supervisors.
const TWO_SEEDS: u64 = 40;
/// Within how many seeds a planted fault must be caught.
const PLANTED_SEEDS: u64 = 150;

/// One line past the test runner's capture: seeds belong into every log.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// These knobs, unless `WAYPOST_SIM_KNOBS` says `plans,commands,crashes`.
fn knobs(usual: Knobs) -> Knobs {
    let Ok(text) = std::env::var("WAYPOST_SIM_KNOBS") else { return usual };
    let numbers: Vec<u64> = text.split(',').filter_map(|part| part.trim().parse().ok()).collect();
    match numbers.as_slice() {
        [plans, commands, crashes] => {
            Knobs { plans: *plans as usize, commands: *commands, crashes: *crashes, ..usual }
        }
        _ => panic!("WAYPOST_SIM_KNOBS is plans,commands,crashes and not `{text}`"),
    }
}

/// Fails where something is wrong, and says what the least is that shows it.
fn hold(outcome: Outcome) {
    if !outcome.wrong.is_empty() {
        let first = story(&outcome);
        panic!("{first}smallest: {}", story(&shrink(outcome)));
    }
}

/// `cargo xtask test` runs this and one planted fault, `cargo xtask prove` everything here.
#[test]
fn a_few_seeds_of_each_kind_lose_nothing_and_repeat_nothing() {
    let mut runs = 0;
    for seed in 0..SAMPLE_SEEDS {
        let kinds = [
            mixed(seed),
            mixed(seed).talking(),
            shared(seed),
            mixed(seed).healing(),
            Knobs::new(seed).advised(),
            Knobs { sink: true, ..Knobs::new(seed) },
            notifying(seed),
        ];
        for knobs in kinds {
            let outcome = simulate(knobs);
            runs += outcome.runs;
            hold(outcome);
        }
        hold(of_two(seed, None));
    }
    assert!(runs > 0, "nothing was done");
}

/// Every other seed is a rough one.
fn mixed(seed: u64) -> Knobs {
    let knobs = Knobs::new(seed);
    if seed % 2 == 1 { knobs.rough() } else { knobs }
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_done_twice() {
    hunt(mixed, SEEDS_MIN, &[&Seen::ALL[..], &Seen::ROUGH[..]].concat());
}

#[test]
fn turns_are_begun_again_and_their_calls_have_one_result_each() {
    hunt(|seed| mixed(seed).talking(), TALKING_SEEDS_MIN, &Seen::TALK);
}

/// Two realms share the machine; some seeds have agents.
fn shared(seed: u64) -> Knobs {
    let knobs = mixed(seed).shared();
    if seed % 4 == 3 { knobs.talking() } else { knobs }
}

#[test]
fn realms_share_a_machine_and_nothing_else_while_policies_change_and_subjects_vanish() {
    hunt(shared, SHARED_SEEDS_MIN, &Seen::SHARED);
}

#[test]
fn rules_act_once_in_their_time_despite_answers_and_crashes() {
    hunt(|seed| mixed(seed).healing(), HEALING_SEEDS_MIN, &Seen::HEAL);
}

#[test]
fn proposals_run_without_approval_only_where_they_cannot_write() {
    let mut coverage = Coverage::default();
    for seed in 0..ADVISED_SEEDS {
        let outcome = simulate(Knobs::new(seed).advised());
        coverage.add(&outcome.coverage);
        hold(outcome);
    }
    for seen in Seen::ADVISED {
        tell(&format!("advised: {} {}", coverage.seen(seen), seen.name()));
        assert!(coverage.seen(seen) > 0, "never met: {}", seen.name());
    }
}

/// Two engines over one store, of which the second is now and then taken for dead while it runs.
fn of_two(seed: u64, planted: Option<Planted>) -> Outcome {
    let knobs = knobs(Knobs::new(seed)).supervised_by_two();
    let knobs = planted.map_or(knobs, |planted| knobs.with(planted));
    simulate_on(knobs, &Simulated::new(seed))
}

#[test]
fn of_two_supervisors_one_acts_also_where_the_other_is_taken_for_dead() {
    let one = number("WAYPOST_SIM_SEED");
    let seeds = one.map_or(0..TWO_SEEDS, |seed| seed..seed + 1);
    let mut coverage = Coverage::default();
    for seed in seeds {
        let outcome = of_two(seed, None);
        coverage.add(&outcome.coverage);
        assert!(outcome.wrong.is_empty(), "over the model store: {}", story(&outcome));
        if seed == 0 {
            let again = of_two(seed, None);
            assert_eq!((outcome.steps, outcome.trace), (again.steps, again.trace));
        }
    }
    for seen in Seen::TWO.into_iter().chain(Seen::HEAL) {
        tell(&format!("two supervisors: {} {}", coverage.seen(seen), seen.name()));
    }
    for seen in Seen::TWO {
        assert!(one.is_some() || coverage.seen(seen) > 0, "never met: {}", seen.name());
    }
}

/// Simulates seed after seed, at least so many; all of these must be seen.
fn hunt(knobs_of: fn(u64) -> Knobs, seeds_min: u64, demanded: &[Seen]) {
    let one = number("WAYPOST_SIM_SEED");
    let seconds = number("WAYPOST_SIM_SECONDS");
    let seeds = match (one, seconds) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(_)) => 0..u64::MAX,
        (None, None) => 0..SEEDS,
    };
    let budget = seconds.map_or(BUDGET, Duration::from_secs);
    let least = if seconds.is_some() { 0 } else { seeds_min };
    let begin = Instant::now();
    let mut coverage = Coverage::default();
    let mut ran = 0u64;
    let mut steps = 0u64;
    let mut runs = 0usize;
    for seed in seeds {
        let enough = ran >= least && (seconds.is_some() || has_met(&coverage, demanded));
        if enough && begin.elapsed() > budget {
            break;
        }
        let outcome = simulate(knobs(knobs_of(seed)));
        ran += 1;
        steps += outcome.steps;
        runs += outcome.runs;
        coverage.add(&outcome.coverage);
        hold(outcome);
    }
    tell(&format!(
        "simulation: {ran} seeds, {steps} steps, {runs} runs acknowledged, {} places, {:.1} s",
        coverage.places(),
        begin.elapsed().as_secs_f64()
    ));
    tell(&coverage.table());
    tell(&coverage.counts());
    if one.is_none() && ran >= seeds_min {
        for point in Point::ALL {
            assert!(coverage.at(point) > 0, "no crash met a run at `{}`", point.name());
        }
        for seen in demanded {
            assert!(coverage.seen(*seen) > 0, "never met: {}", seen.name());
        }
    }
}

fn has_met(coverage: &Coverage, demanded: &[Seen]) -> bool {
    Point::ALL.into_iter().all(|point| coverage.at(point) > 0)
        && demanded.iter().all(|seen| coverage.seen(*seen) > 0)
}

#[test]
fn every_event_gets_out_at_least_once_and_in_order() {
    let one = number("WAYPOST_SIM_SEED");
    let seconds = number("WAYPOST_SIM_SECONDS");
    let seeds = match (one, seconds) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(_)) => 0..u64::MAX,
        (None, None) => 0..SINK_SEEDS,
    };
    let begin = Instant::now();
    let mut ran = 0u64;
    let mut told = 0;
    let mut again = 0;
    for seed in seeds {
        if seconds.is_some_and(|seconds| begin.elapsed() > Duration::from_secs(seconds)) {
            break;
        }
        let outcome = simulate(Knobs { sink: true, ..knobs(Knobs::new(seed)) });
        ran += 1;
        told += outcome.events.0;
        again += outcome.events.1;
        hold(outcome);
    }
    let took = begin.elapsed().as_secs_f64();
    tell(&format!("events out: {ran} seeds, {told} events, {again} came again, {took:.1} s"));
    if one.is_none() {
        assert!(told > 0 && again > 0, "nothing was sent, or nothing twice");
    }
}

/// Tasks with webhooks and answers by message; every other seed has agents, and steps that publish.
fn notifying(seed: u64) -> Knobs {
    let usual = knobs(Knobs::new(seed));
    let usual = if seed % 2 == 1 { usual.talking() } else { usual };
    Knobs { webhooks: true, ..usual }
}

#[test]
fn webhooks_get_every_update_in_order_and_messages_answer_an_ask_once() {
    let one = number("WAYPOST_SIM_SEED");
    let seeds = one.map_or(0..WEBHOOK_SEEDS, |seed| seed..seed + 1);
    let mut told = 0;
    let mut again = 0;
    let mut coverage = Coverage::default();
    for seed in seeds {
        let outcome = simulate(notifying(seed));
        told += outcome.events.0;
        again += outcome.events.1;
        coverage.add(&outcome.coverage);
        hold(outcome);
    }
    tell(&format!("webhooks: {told} updates, {again} came again"));
    if one.is_none() {
        assert!(told > 0 && again > 0, "nothing was posted, or nothing twice");
    }
    for seen in Seen::MESSAGES {
        tell(&format!("messages: {} {}", coverage.seen(seen), seen.name()));
        assert!(one.is_some() || coverage.seen(seen) > 0, "never met: {}", seen.name());
    }
    for seed in 0..WEBHOOK_MODEL_SEEDS {
        let outcome = simulate_on(notifying(seed), &Simulated::new(seed));
        assert!(outcome.wrong.is_empty(), "over the model store: {}", story(&outcome));
    }
}

#[test]
fn a_seed_is_the_same_simulation_every_time() {
    let talking = Knobs::new(5).talking();
    let shared = shared(7);
    let healing = Knobs::new(7).healing();
    let talks = [talking, talking.rough()];
    let others = [Knobs::new(3), Knobs::new(11).rough(), shared, healing];
    for knobs in talks.into_iter().chain(others) {
        let one = simulate(knobs);
        let other = simulate(knobs);
        assert_eq!((one.steps, one.trace, one.runs), (other.steps, other.trace, other.runs));
        assert_eq!(one.coverage, other.coverage);
    }
}

#[test]
fn a_session_that_another_writer_changed_is_read_again() {
    let mut writes = 0;
    for seed in 0..ELSEWHERE_SEEDS {
        let outcome = simulate(Knobs { other_writer: true, ..Knobs::new(seed) });
        writes += outcome.other_writes;
        hold(outcome);
    }
    tell(&format!("another writer: {ELSEWHERE_SEEDS} seeds, {writes} writes"));
    assert!(writes > 0, "nobody else wrote");
}

#[test]
fn the_simulation_runs_over_the_model_store() {
    let mut steps = 0;
    let mut runs = 0;
    for seed in 0..MODEL_SEEDS {
        let outcome = simulate_on(mixed(seed), &Simulated::new(seed));
        assert!(outcome.wrong.is_empty(), "over the model store: {}", story(&outcome));
        steps += outcome.steps;
        runs += outcome.runs;
        if seed == 0 {
            let again = simulate_on(mixed(seed), &Simulated::new(seed));
            assert_eq!((outcome.steps, outcome.trace), (again.steps, again.trace));
        }
    }
    tell(&format!("over the model store: {MODEL_SEEDS} seeds, {steps} steps, {runs} runs"));
    assert!(runs > 0, "nothing was done");
}

/// The oracle notices this fault, and says so.
fn is_caught(planted: Planted) {
    is_caught_in(planted, |seed| simulate(Knobs::new(seed).with(planted)));
}

fn is_caught_in(planted: Planted, simulated: impl Fn(u64) -> Outcome) {
    for seed in 0..PLANTED_SEEDS {
        let outcome = simulated(seed);
        if let Some(wrong) = outcome.wrong.first() {
            tell(&format!("planted {planted:?}: caught by seed {seed}: {wrong}"));
            return;
        }
    }
    panic!("planted {planted:?} is not caught in {PLANTED_SEEDS} seeds");
}

#[test]
fn acknowledging_before_the_commit_is_caught() {
    is_caught(Planted::AcknowledgeBeforeCommit);
}

#[test]
fn calling_before_the_start_is_on_record_is_caught() {
    is_caught(Planted::CallBeforeStarted);
}

#[test]
fn a_disk_that_does_not_sync_is_caught() {
    is_caught(Planted::NoSync);
}

#[test]
fn a_row_before_its_blob_is_caught() {
    is_caught(Planted::RowBeforeBlob);
}

#[test]
fn a_lost_wake_up_is_caught() {
    is_caught(Planted::LostWakeUp);
}

#[test]
fn a_feed_that_skips_is_caught() {
    is_caught(Planted::FeedSkips);
}

#[test]
fn a_snapshot_that_is_ahead_is_caught() {
    is_caught(Planted::SnapshotAhead);
}

#[test]
fn a_snapshot_of_a_lost_append_is_caught() {
    is_caught(Planted::SnapshotOfLostAppend);
}

#[test]
fn a_feed_row_that_comes_after_a_newer_one_is_caught() {
    is_caught(Planted::FeedRowLate);
}

#[test]
fn an_append_on_a_stale_fence_that_counts_is_caught() {
    is_caught(Planted::StaleFenceAccepted);
}

#[test]
fn a_stale_session_at_rest_that_is_used_is_caught() {
    is_caught(Planted::StaleRestUsed);
}

#[test]
fn a_sink_position_that_is_ahead_is_caught() {
    is_caught(Planted::PlaceAhead);
}

#[test]
fn a_webhook_position_that_is_ahead_is_caught() {
    is_caught(Planted::WebhookAhead);
}

#[test]
fn a_server_that_forgets_which_messages_it_got_is_caught() {
    is_caught(Planted::MessagesForgotten);
}

#[test]
fn a_merge_by_finish_order_is_caught() {
    is_caught(Planted::Inside(Switch::MergeByFinishOrder));
}

#[test]
fn an_approval_used_twice_is_caught() {
    is_caught(Planted::Inside(Switch::ApprovalUsedTwice));
}

#[test]
fn a_late_result_that_counts_is_caught() {
    is_caught(Planted::Inside(Switch::LateResultApplied));
}

#[test]
fn a_reply_to_a_withdrawn_ask_is_caught() {
    is_caught(Planted::Inside(Switch::WithdrawnAskAnswered));
}

#[test]
fn a_fork_that_keeps_an_approval_is_caught() {
    is_caught(Planted::Inside(Switch::ForkKeepsApproval));
}

#[test]
fn a_deny_that_is_ignored_at_the_start_is_caught() {
    is_caught(Planted::DenyIgnored);
}

#[test]
fn a_judgement_that_is_skipped_is_caught() {
    is_caught(Planted::JudgementSkipped);
}

#[test]
fn a_decision_by_the_rules_before_a_change_is_caught() {
    is_caught(Planted::OldPolicyDecides);
}

#[test]
fn a_list_with_rows_of_another_realm_is_caught() {
    is_caught(Planted::ListOfTwoRealms);
}

#[test]
fn an_answer_that_leaves_writes_behind_is_caught() {
    is_caught(Planted::Inside(Switch::AnswerLeavesWrites));
}

#[test]
fn a_panicking_write_that_counts_as_not_sent_is_caught() {
    is_caught(Planted::Inside(Switch::PanickedWriteRepeated));
}

#[test]
fn limits_of_today_for_plans_of_yesterday_are_caught() {
    is_caught(Planted::Inside(Switch::PinnedPlansLimited));
}

#[test]
fn deaths_that_count_for_nothing_are_caught() {
    is_caught(Planted::DeathsForgotten);
}

#[test]
fn an_unreadable_session_that_is_not_parked_is_caught() {
    is_caught(Planted::UnreadableNotParked);
}

#[test]
fn a_rule_that_repeats_an_unknown_write_is_caught() {
    is_caught(Planted::Inside(Switch::UnknownWriteRetried));
}

#[test]
fn a_used_up_rule_that_acts_again_is_caught() {
    is_caught(Planted::Inside(Switch::UsedUpRuleActs));
}

#[test]
fn a_correction_that_runs_twice_is_caught() {
    is_caught(Planted::Inside(Switch::CorrectionRunTwice));
}

#[test]
fn an_ask_that_nobody_holds_and_nobody_sees_is_caught() {
    is_caught(Planted::Inside(Switch::HeldByNobody));
}

#[test]
fn a_back_off_that_is_forgotten_is_caught() {
    is_caught(Planted::Inside(Switch::BackoffForgotten));
}

#[test]
fn a_back_off_that_a_restart_repeats_is_caught() {
    is_caught(Planted::Inside(Switch::BackoffRepeated));
}

#[test]
fn a_supervisor_that_acts_although_it_was_refused_is_caught() {
    let planted = Planted::RefusedActs;
    is_caught_in(planted, |seed| of_two(seed, Some(planted)));
}

#[test]
fn a_rule_that_acts_early_is_caught() {
    is_caught(Planted::Inside(Switch::RuleActsEarly));
}

#[test]
fn a_proposal_for_a_write_that_is_sent_unasked_is_caught() {
    is_caught(Planted::Inside(Switch::ProposedWriteActs));
}

#[test]
fn a_draft_that_writes_and_runs_unasked_is_caught() {
    is_caught(Planted::Inside(Switch::WritingDraftRuns));
}
