//! Random types, records, callers and questions: another store must say what the model says, which
//! asks the evaluator about every record. What differs is made small before it is shown.

use super::scene::RecordsArm;
use crate::model_records::{ModelRecords, ModelRecordsState};
use crate::sim::rng::Rng;
use futures::executor::block_on;
use query::records::Records;
use query::records::requests::RecordLimits;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::sync::Arc;

mod world;
mod queries;
mod operations;
mod shrink;

#[cfg(test)]
mod tests;

use operations::{Deed, Operation, Said, ask, operations};
use world::{World, realm_of};

/// How many operations a seed has.
const OPERATIONS: usize = 160;

/// Asks the store of this arm and the model the same. Each seed has types and realms of its own,
/// and leaves nothing.
pub fn agree(arm: impl RecordsArm + 'static, seeds: Range<u64>) {
    let mut tally = Tally::default();
    for seed in seeds {
        let mut rng = Rng::stream(seed, 1);
        let world = World::new(&mut rng, seed);
        let asked = operations(&mut rng, &world, OPERATIONS);
        let _ = writeln!(std::io::stderr(), "records: seed {seed}, {} operations", asked.len());
        let mut runs = Runs { arm: &arm, world: &world, seed, count: 0 };
        if let Some(difference) = runs.difference(&asked, &mut tally) {
            let (asked, difference) = shrink::smallest(&mut runs, asked, difference);
            panic!("{}", report(seed, &world, &asked, &difference));
        }
    }
    // Too many refusals would compare nothing.
    assert!(tally.asked > 4 * tally.not_asked, "{tally:?}");
    assert!(tally.written > tally.asked / 20, "{tally:?}");
}

/// How much was compared.
#[derive(Debug, Default)]
struct Tally {
    asked: usize,
    not_asked: usize,
    written: usize,
}

impl Tally {
    fn note(&mut self, said: &Said) {
        match said {
            Said::NotAsked(_) => self.not_asked += 1,
            Said::Saved(Ok(_)) => {
                self.asked += 1;
                self.written += 1;
            }
            Said::Saved(Err(_))
            | Said::Deleted(_)
            | Said::Record(_)
            | Said::Pages(..)
            | Said::Counted(_) => self.asked += 1,
        }
    }
}

/// Where two stores differ.
struct Difference {
    /// Of the operation.
    place: usize,
    wrong: String,
}

/// Runs of the operations of one seed, each in realms of its own.
struct Runs<'r> {
    arm: &'r dyn RecordsArm,
    world: &'r World,
    seed: u64,
    count: u64,
}

impl Runs<'_> {
    /// The first difference between the two stores.
    fn difference(&mut self, asked: &[Operation], tally: &mut Tally) -> Option<Difference> {
        self.count += 1;
        let run = format!("r{}-{}", self.seed, self.count);
        let model = ModelRecords::open(&Arc::new(ModelRecordsState::default()), limits());
        let mut store = self.arm.open(&self.world.types, limits());
        let mut found = None;
        for (place, operation) in asked.iter().enumerate() {
            if matches!(operation.deed, Deed::Reopen) {
                store = self.reopened(store);
            }
            let right = ask(&model, self.world, operation, &run);
            let said = ask(&*store, self.world, operation, &run);
            tally.note(&right);
            if said != right {
                found = Some(Difference { place, wrong: told(&right, &said) });
                break;
            }
        }
        if found.is_none() && used(&model, &run) != used(&*store, &run) {
            let wrong = told(&used(&model, &run), &used(&*store, &run));
            found = Some(Difference { place: asked.len().saturating_sub(1), wrong });
        }
        for caller in &self.world.callers {
            let removed = block_on(store.remove_realm(realm_of(caller, &run)));
            assert!(removed.is_ok(), "seed {}: a realm cannot be removed: {removed:?}", self.seed);
        }
        assert_eq!(used(&*store, &run), BTreeMap::new(), "a removed realm leaves records");
        let closed = block_on(store.close());
        assert!(closed.is_ok(), "seed {}: the store cannot be closed: {closed:?}", self.seed);
        found
    }

    fn reopened(&self, store: Arc<dyn Records>) -> Arc<dyn Records> {
        let closed = block_on(store.close());
        assert!(closed.is_ok(), "seed {}: the store cannot be closed: {closed:?}", self.seed);
        drop(store);
        self.arm.open(&self.world.types, limits())
    }
}

/// Small enough that they are met, and so much time that none is cut off.
fn limits() -> RecordLimits {
    RecordLimits {
        find_bytes_max: 4_000,
        expand_records_max: 6,
        groups_max: 12,
        delete_many_max: 6,
        record_bytes_max: 3_000,
        query_timeout_ms: 60_000,
    }
}

/// How many records there are in the realms of a run, by realm and owner.
fn used(store: &dyn Records, run: &str) -> BTreeMap<(String, String), u64> {
    let usage = match block_on(store.usage()) {
        Ok(usage) => usage,
        Err(error) => panic!("the store fails: {error}"),
    };
    let of_run = usage.into_iter().filter(|used| used.realm.as_str().starts_with(run));
    of_run.map(|used| ((used.realm.to_string(), used.owner), used.records)).collect()
}

fn told(right: &impl std::fmt::Debug, said: &impl std::fmt::Debug) -> String {
    format!("the evaluator says\n  {right:?}\nand the store\n  {said:?}")
}

fn report(seed: u64, world: &World, asked: &[Operation], difference: &Difference) -> String {
    let mut text = format!("seed {seed}: two stores differ after {} operations\n", asked.len());
    for (number, caller) in world.callers.iter().enumerate() {
        if asked.iter().any(|operation| operation.caller == number) {
            let _ = writeln!(text, "caller {number}: {caller:?}");
        }
    }
    for (number, record_type) in world.types.all().iter().enumerate() {
        let _ = writeln!(text, "type {number}: {record_type:?}");
    }
    for operation in asked {
        let _ = writeln!(text, "{operation:?}");
    }
    text + &difference.wrong
}
