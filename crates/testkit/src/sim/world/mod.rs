//! One seed from beginning to end: a machine whose process is started, used, killed at a chosen
//! point and started again on what its disk kept; in the last life nothing fails, everything is
//! brought to an end, and the oracle judges.

mod engine_parts;
mod second;
mod process;

use super::coverage::{Coverage, Seen};
use super::faults::Planted;
use super::faults::other_writer::OtherWriter;
use super::judging::{follow, heal, judge, wait_for_all};
pub use super::knobs::{Knobs, Outcome};
use super::limits::{admit_plans, of_rough_seed, of_seed, redrawn};
use super::people::clients::{Clients, locked};
use super::people::webhooks::{Notified, Posting};
use super::rng::Rng;
use super::sides::{Side, sides};
use super::troubles::Troubles;
use crate::panics::during;
use crate::sim::judge::oracle::Oracle;
use crate::sim::judge::recovery::CrashRecord;
use crate::sim::judge::rule_delays::{Life, RuleTiming};
use crate::sim::judge::truth::Truth;
use crate::sim::machine::archive::Archive;
use crate::sim::machine::blobs::Syncing;
use crate::sim::machine::clock::{SimClock, SimEntropy};
use crate::sim::machine::executor::{Executor, Stop};
use crate::sim::machine::nodes::{Met, Nodes};
use crate::sim::machine::power::{Point, Power};
use crate::sim::machine::storage::{Embedded, SimStorage, StoreOpener};
use crate::sim::machine::vfs::Disk;
use crate::sim::outside::panicking::PLANNED;
use crate::sim::outside::policy::SimPolicy;
use crate::sim::outside::receiver::Receiver;
use crate::sim::outside::tools::Ledger;
use crate::sim::programs::plans::{SimPlan, plans, types};
use kernel::contracts::{Blobs, Clock, Entropy};
use kernel::limits::Limits;
use kernel::planted;
use process::Process;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// More steps than a life takes; one that takes more goes round in circles.
const STEPS_PER_LIFE: u64 = 300_000;
/// How long runs may go on after the last client is done.
const AFTERWARDS_MS: u64 = 12_000;
/// How long a process is down between two lives.
const DOWN_MS: i64 = 1_500;
/// How long it is down before the last one of a rough seed: no session is parked for longer.
const LONG_DOWN_MS: i64 = 60 * 60 * 1_000;
/// How much later a rule may act than recovery takes to look again. The shortest wait that a
/// restart can repeat is longer than both.
const LATE_MS: u64 = 250;
/// The same for two supervisors: one that was refused may have the session in mind until its run
/// comes to rest, and what it has claimed is not the other one's.
const LATE_OF_TWO_MS: u64 = 120_000;
/// Which of the seed's streams is that of two nodes.
const NODES_STREAM: u64 = 31;
/// Which of the seed's streams is the sink's.
const SINK_STREAM: u64 = 8;
/// Which of the seed's streams decides about its limits.
const LIMITS_STREAM: u64 = 6;
/// In so many lives of a hundred a rough seed's process dies of a recovery, and in so many if the
/// life before ended so: a run is given up only after several such deaths.
const RECOVERY_DIES: (u64, u64) = (50, 80);

/// Simulates one seed over the embedded store.
pub fn simulate(knobs: Knobs) -> Outcome {
    simulate_on(knobs, &Embedded)
}

/// Simulates one seed. A panic that no one planned is a finding too, also if someone caught it.
pub fn simulate_on(knobs: Knobs, opener: &dyn StoreOpener) -> Outcome {
    planted::plant(knobs.planted.and_then(Planted::switch));
    let (outcome, heard) = during(|| simulated(knobs, opener));
    let is_planned = |heard: &String| heard.contains(PLANNED);
    match outcome {
        Some(mut outcome) => {
            let found = heard.into_iter().filter(|heard| !is_planned(heard));
            outcome.wrong.extend(found.map(|heard| format!("panic: {heard}")));
            outcome
        }
        None => Outcome::ended(knobs, heard),
    }
}

fn simulated(knobs: Knobs, opener: &dyn StoreOpener) -> Outcome {
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => panic!("no folder for the simulation: {error}"),
    };
    let storage = SimStorage { folder: folder.path(), opener };
    let mut machine = Machine::new(knobs, storage.folder);
    for life in 0..=knobs.crashes {
        machine.live(storage, life == knobs.crashes);
        if !machine.sides.iter().all(|side| locked(&side.oracle).wrong().is_empty()) {
            break;
        }
    }
    let mut wrong: Vec<String> =
        machine.other_writer.iter().flat_map(|other_writer| other_writer.wrong()).collect();
    let mut runs = 0;
    for side in &machine.sides {
        side.count(&mut machine.coverage);
        let oracle = locked(&side.oracle);
        wrong.extend(oracle.wrong().iter().cloned());
        runs += oracle.runs();
    }
    let changed = machine.policy.changes().map_or(0, |changes| changes.count());
    machine.coverage.count(Seen::PolicyChanged, changed);
    machine.coverage.count(Seen::DriverPanicked, machine.troubles.panics.in_drivers());
    machine.coverage.count(Seen::Parked, machine.troubles.damage.parked());
    let met = machine.nodes.as_ref().map_or_else(Met::default, |nodes| nodes.met());
    machine.coverage.count(Seen::SecondActed, met.acted);
    machine.coverage.count(Seen::SecondRefused, met.refused);
    machine.coverage.count(Seen::SecondFenced, met.taken_over);
    Outcome {
        knobs,
        steps: machine.executor.steps(),
        trace: machine.executor.trace(),
        runs,
        events: match (&machine.receiver, &machine.notified) {
            (Some(receiver), _) => receiver.counts(),
            (None, Some(notified)) => notified.counts(),
            (None, None) => (0, 0),
        },
        other_writes: machine.other_writer.as_ref().map_or(0, |other_writer| other_writer.writes()),
        coverage: machine.coverage.clone(),
        wrong,
    }
}

/// What survives every crash: the disk, the world outside, and the seed.
struct Machine {
    knobs: Knobs,
    rng: Rng,
    power: Arc<Power>,
    disk: Disk,
    sides: Vec<Arc<Side>>,
    executor: Executor,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    /// The seed's limits, and those of this life.
    usual: Limits,
    limits: Arc<Limits>,
    troubles: Arc<Troubles>,
    /// The lives that there were, and this one.
    lived: Vec<Life>,
    ledger: Arc<Ledger>,
    policy: Arc<SimPolicy>,
    /// Whether models are well, and quick.
    models_calm: Arc<AtomicBool>,
    /// That of the first realm, which hears of all that is no realm's.
    oracle: Arc<Mutex<Oracle>>,
    archive: Arc<Archive>,
    /// Who events are sent to.
    receiver: Option<Arc<Receiver>>,
    /// Who is notified by webhooks.
    notified: Option<Arc<Notified>>,
    /// Who else writes to the sessions.
    other_writer: Option<Arc<OtherWriter>>,
    /// The nodes, where there are two.
    nodes: Option<Arc<Nodes>>,
    whims: Arc<Mutex<Rng>>,
    plans: Arc<Vec<SimPlan>>,
    kinds: BTreeMap<String, &'static str>,
    coverage: Coverage,
    /// Where the last life ended.
    died_at: Option<Point>,
}

impl Machine {
    fn new(knobs: Knobs, folder: &Path) -> Self {
        let power = Arc::new(Power::default());
        let executor = Executor::new(knobs.seed, power.clone());
        let clock: Arc<dyn Clock> = Arc::new(SimClock(executor.clone()));
        let syncing = match knobs.planted {
            Some(Planted::NoSync) => Syncing::Never,
            Some(Planted::RowBeforeBlob) => Syncing::Late,
            _ => Syncing::InTime,
        };
        let sides = sides(knobs, folder, &clock, syncing);
        let receiver =
            knobs.sink.then(|| Arc::new(Receiver::new(Rng::stream(knobs.seed, SINK_STREAM))));
        let mut rng = Rng::stream(knobs.seed, LIMITS_STREAM);
        let mut usual = of_seed(&mut rng);
        if let Some(receiver) = &receiver {
            usual = receiver.limits(usual);
        }
        if knobs.rough {
            usual = of_rough_seed(usual, &mut rng);
        }
        let troubles = Arc::new(Troubles::new(knobs, &power, &clock));
        let other_writer = knobs.other_writer.then(|| Arc::new(OtherWriter::new(clock.clone())));
        let of_nodes = || Nodes::new(Rng::stream(knobs.seed, NODES_STREAM), executor.clone());
        let nodes = knobs.two.then(of_nodes);
        let whims = &mut Rng::stream(knobs.seed, 7);
        let mut policy =
            SimPolicy::new(whims, clock.clone(), troubles.panics.clone()).planted(knobs.planted);
        if knobs.shared {
            policy = policy.shared(knobs.planted == Some(Planted::OldPolicyDecides));
        }
        let mut plans = plans(&mut Rng::stream(knobs.seed, 2), knobs.plans.max(1), knobs.talks);
        for plan in &mut plans {
            plan.heals = knobs.heals;
            plan.advised = knobs.advised;
        }
        let mut kinds = BTreeMap::new();
        for plan in &plans {
            kinds.extend(types(&plan.nodes));
            kinds.insert(plan.end_id(), "final_response");
        }
        Self {
            knobs,
            rng: Rng::stream(knobs.seed, 3),
            disk: Disk::new(power.clone(), knobs.planted == Some(Planted::NoSync)),
            power,
            entropy: Arc::new(SimEntropy::new(Rng::stream(knobs.seed, 4))),
            executor,
            limits: Arc::new(usual.clone()),
            usual,
            troubles,
            lived: Vec::new(),
            ledger: Arc::default(),
            policy: Arc::new(policy),
            clock,
            models_calm: Arc::default(),
            oracle: sides[0].oracle.clone(),
            sides,
            archive: Arc::default(),
            receiver,
            notified: knobs.webhooks.then(Arc::default),
            other_writer,
            nodes,
            whims: Arc::new(Mutex::new(Rng::stream(knobs.seed, 5))),
            plans: Arc::new(plans),
            kinds,
            coverage: Coverage::default(),
            died_at: None,
        }
    }

    /// One life: start, work, die; or, if it is the last, end well and be judged.
    fn live(&mut self, storage: SimStorage<'_>, last: bool) {
        let death = if last { None } else { Some(self.death()) };
        self.power.switch_on(death);
        if last {
            self.calm_down();
        }
        self.troubles.damage.heal();
        if self.knobs.rough && self.lives() > 0 {
            self.limits = Arc::new(redrawn(&self.usual, &mut self.rng));
            self.coverage.count(Seen::LimitsLowered, u64::from(!admit_plans(&self.limits)));
        }
        self.begin_life();
        match self.start(storage) {
            Ok(process) => self.work(process, last),
            // The power may go while the store is being opened.
            Err(why) if self.power.is_on() => locked(&self.oracle).accuse(why),
            Err(_) => {}
        }
        self.power.switch_off();
        self.died_at = self.power.cut();
        self.executor.drop_tasks();
        self.crash();
        let now = self.clock.now();
        self.lived.iter_mut().for_each(|life| life.ended = life.ended.or(Some(now)));
        let is_next_last = self.lives() == self.knobs.crashes;
        let long = self.knobs.rough && is_next_last;
        self.executor.pass(if long { LONG_DOWN_MS } else { DOWN_MS });
    }

    /// How many lives there were, this one included.
    fn lives(&self) -> u64 {
        self.lived.len() as u64
    }

    fn begin_life(&mut self) {
        let began = self.clock.now();
        planted::begin_process(began.0);
        self.lived.push(Life { began, ended: None });
    }

    /// From now on nothing goes wrong any more.
    fn calm_down(&self) {
        self.ledger.calm_down();
        self.policy.calm_down();
        self.receiver.iter().for_each(|receiver| receiver.calm_down());
        self.models_calm.store(true, Ordering::SeqCst);
        self.troubles.panics.calm_down();
    }

    /// Leaves of the files what a power cut leaves, and checks what must exist.
    fn crash(&mut self) {
        let mut left = self.disk.crash(&mut self.rng);
        for side in &self.sides {
            left = left.and_then(|()| side.crash(&mut self.rng));
        }
        if let Err(error) = left {
            locked(&self.oracle).accuse(format!("the disk image cannot be written: {error}"));
        }
    }

    /// Where the process will die, if it gets that far.
    fn death(&mut self) -> (Point, u64) {
        let point = self.rng.pick(&Point::usual()).copied().unwrap_or(Point::Step);
        let (first, again) = RECOVERY_DIES;
        let chance = if self.died_at == Some(Point::Stretch) { again } else { first };
        let recovers = self.knobs.rough && self.lives() > 0 && self.rng.chance(chance);
        let point = if recovers { Point::Stretch } else { point };
        (point, 1 + self.rng.below(point.passed_max()))
    }

    /// How late a rule may be.
    fn late_ms_max(&self) -> u64 {
        match self.knobs.two {
            true => LATE_OF_TWO_MS,
            false => self.limits.recover_interval_ms + LATE_MS,
        }
    }

    /// What the stores are held against in this life.
    fn truth<'t>(&'t self, blobs: &'t dyn Blobs) -> Truth<'t> {
        Truth {
            plans: &self.plans,
            ledger: &self.ledger,
            blobs,
            inline_bytes_max: self.limits.context_inline_bytes_max,
            archive: &self.archive,
            crashes: CrashRecord {
                marks: &self.troubles.marks,
                panics: self.troubles.panics.in_drivers(),
                attempts_max: self.limits.recover_attempts_max,
            },
            // What a rough seed hides, or has panic, is late for reasons of its own.
            rule_timing: (!self.knobs.rough)
                .then(|| RuleTiming { lives: &self.lived, late_ms_max: self.late_ms_max() }),
            changes: self.policy.changes(),
        }
    }

    /// Lets so many commands be given, in each realm its share.
    fn command(&self, all: &[Arc<Clients>], commands: u64) {
        let realms = all.len() as u64;
        for (place, clients) in (0..).zip(all) {
            let share = (commands + place) / realms;
            clients.busy.store(share, Ordering::SeqCst);
            for _ in 0..share {
                self.executor.spawn(Box::pin(clients.clone().one()));
            }
        }
    }

    fn work(&mut self, process: Process, last: bool) {
        let Process { clients: all, store, webhooks, blobs, second } = process;
        let first = &all[0];
        let posting = self.notified.clone().map(|notified| {
            let is_ahead = self.knobs.planted == Some(Planted::WebhookAhead);
            Arc::new(Posting { notified, store: webhooks, clients: first.clone(), is_ahead })
        });
        let truth = self.truth(blobs.as_ref());
        let met = Mutex::new(Vec::new());
        let main = async {
            let mut found = Vec::new();
            for clients in &all {
                found.extend(clients.sessions().await);
            }
            let harmed_ms = self.troubles.harm(&found);
            *locked(&met) = found;
            self.send(first).await;
            first.engine.admin().keep_recovering();
            second.into_iter().for_each(|second| second.begin(last));
            self.command(&all, if last { 0 } else { self.knobs.commands });
            for clients in &all {
                self.executor.spawn(Box::pin(follow(clients.clone(), store.clone())));
            }
            if last {
                let mut receiver = self.receiver.as_deref();
                for clients in &all {
                    judge(clients, &store, &truth, receiver.take()).await;
                }
                if let Some(posting) = &posting {
                    posting.judge().await;
                }
                return;
            }
            if let Some(posting) = &posting {
                self.executor.spawn(Box::pin(posting.clone().keep()));
            }
            if let Some(ms) = harmed_ms {
                self.executor.spawn(Box::pin(heal(first.clone(), ms)));
            }
            for clients in &all {
                wait_for_all(clients).await;
            }
            first.sleep(AFTERWARDS_MS).await;
        };
        let ended = self.executor.run_until(main, STEPS_PER_LIFE);
        let met = std::mem::take(&mut *locked(&met));
        match ended {
            Err(Stop::Stalled) => {
                locked(&self.oracle).accuse("nothing can run and no timer is set")
            }
            Err(Stop::TooLong) if last => locked(&self.oracle).accuse("the last life does not end"),
            Ok(()) | Err(Stop::Cut | Stop::TooLong) => {}
        }
        let Some(point) = self.died_at else { return };
        for row in met.iter().filter(|row| row.run.is_some() && !row.status.is_over()) {
            let step = row.step.as_ref().map_or("", |step| step.as_str());
            if let Some(kind) = self.kinds.get(step).copied() {
                self.coverage.note(kind, row.status.name(), point);
            }
        }
    }
}
