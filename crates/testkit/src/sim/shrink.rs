//! Shrinks a failing simulation: fewer crashes, commands and plans, as long as it still fails.

use super::world::{Knobs, Outcome, simulate};

/// How many simulations shrinking may cost.
const TRIES_MAX: u32 = 60;

/// The smallest failing simulation that is found from this one.
pub fn shrink(failed: Outcome) -> Outcome {
    let mut smallest = failed;
    let mut tries = 0;
    loop {
        let before = smallest.knobs;
        for knobs in smaller(before) {
            tries += 1;
            if tries > TRIES_MAX {
                return smallest;
            }
            let outcome = simulate(knobs);
            if !outcome.wrong.is_empty() {
                smallest = outcome;
                break;
            }
        }
        if smallest.knobs == before {
            return smallest;
        }
    }
}

/// Smaller simulations, the much smaller ones first.
fn smaller(knobs: Knobs) -> Vec<Knobs> {
    let mut all = Vec::new();
    for commands in [knobs.commands / 2, knobs.commands.saturating_sub(1)] {
        all.push(Knobs { commands, ..knobs });
    }
    all.push(Knobs { crashes: knobs.crashes.saturating_sub(1), ..knobs });
    all.push(Knobs { plans: knobs.plans.saturating_sub(1).max(1), ..knobs });
    all.retain(|smaller| *smaller != knobs && smaller.commands > 0);
    all
}

/// What to say of a failure, with all that is needed to see it again.
pub fn story(outcome: &Outcome) -> String {
    let Knobs { seed, plans, commands, crashes, talks, heals, planted, sink, other_writer, .. } =
        outcome.knobs;
    let Knobs { rough, shared, advised, two, webhooks, .. } = outcome.knobs;
    let mut text = format!(
        "seed {seed} fails with {plans} plans, {commands} commands per life, {crashes} crashes, \
         talks {talks}, heals {heals}, advised {advised}, rough {rough}, two supervisors: {two}, \
         with a sink: {sink}, webhooks: {webhooks}, another writer: {other_writer}, two realms: \
         {shared}, planted {planted:?}; see it again with WAYPOST_SIM_SEED={seed} \
         WAYPOST_SIM_KNOBS={plans},{commands},{crashes}\n"
    );
    for wrong in &outcome.wrong {
        text.push_str("  - ");
        text.push_str(wrong);
        text.push('\n');
    }
    text
}
