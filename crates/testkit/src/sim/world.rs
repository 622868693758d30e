//! One seed from beginning to end: a machine whose process is started, used, killed at a chosen
//! point and started again on what its disk kept; in the last life nothing fails, everything is
//! brought to an end, and the oracle judges.

use super::clients::{Clients, caller, locked};
use super::clock::{SimClock, SimEntropy};
use super::coverage::Coverage;
use super::executor::{Executor, SimSpawn, Stop};
use super::faults::{Planted, SimStore};
use super::oracle::Oracle;
use super::plans::{SimPlan, plans, types};
use super::power::{Point, Power};
use super::rng::Rng;
use super::tools::{self, Ledger};
use super::vfs::Disk;
use engine::schema::JsonSchemas;
use engine::{AllowAll, Engine, PlanFile};
use kernel::contracts::{Clock, Entropy, Spawn, Store};
use kernel::ids::{PlanId, RealmId};
use kernel::limits::Limits;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// More steps than a life takes; one that takes more goes round in circles.
const STEPS_PER_LIFE: u64 = 300_000;
/// How long a feed's reader waits when there is nothing.
const FEED_LOOK_MS: u64 = 700;
/// How many rows of the feed are read at once.
const FEED_ROWS: usize = 7;
/// How long runs may go on after the last client is done.
const AFTERWARDS_MS: u64 = 12_000;
/// How long a process is down between two lives.
const DOWN_MS: i64 = 1_500;

/// What one simulation is made of. The same knobs give the same simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Knobs {
    /// The seed.
    pub seed: u64,
    /// How many plans there are.
    pub plans: usize,
    /// How many commands clients give in each life.
    pub commands: u64,
    /// How often the process dies.
    pub crashes: u64,
    /// What is wrong on purpose.
    pub planted: Option<Planted>,
}

impl Knobs {
    /// The usual size.
    pub fn new(seed: u64) -> Self {
        Self { seed, plans: 3, commands: 14, crashes: 3, planted: None }
    }

    /// The same with a planted fault.
    #[must_use]
    pub fn with(mut self, planted: Planted) -> Self {
        self.planted = Some(planted);
        self
    }
}

/// What came of a simulation.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What it was made of.
    pub knobs: Knobs,
    /// How many steps were taken.
    pub steps: u64,
    /// In which order, as one number.
    pub trace: u64,
    /// How many runs were acknowledged.
    pub runs: usize,
    /// What crashes met.
    pub coverage: Coverage,
    /// What is wrong; nothing if all is well.
    pub wrong: Vec<String>,
}

/// Simulates one seed. A panic anywhere is a finding too.
pub fn simulate(knobs: Knobs) -> Outcome {
    kernel::planted::plant(knobs.planted.and_then(Planted::switch));
    match catch_unwind(AssertUnwindSafe(|| simulated(knobs))) {
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Outcome {
                knobs,
                steps: 0,
                trace: 0,
                runs: 0,
                coverage: Coverage::default(),
                wrong: vec![format!("panic: {}", text.unwrap_or("without words"))],
            }
        }
    }
}

fn simulated(knobs: Knobs) -> Outcome {
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => panic!("no folder for the simulation: {error}"),
    };
    let mut machine = Machine::new(knobs);
    for life in 0..=knobs.crashes {
        machine.live(folder.path(), life == knobs.crashes);
        if !locked(&machine.oracle).wrong().is_empty() {
            break;
        }
    }
    let oracle = locked(&machine.oracle);
    Outcome {
        knobs,
        steps: machine.executor.steps(),
        trace: machine.executor.trace(),
        runs: oracle.runs(),
        coverage: machine.coverage.clone(),
        wrong: oracle.wrong().to_vec(),
    }
}

/// What survives every crash: the disk, the world outside, and the seed.
struct Machine {
    knobs: Knobs,
    rng: Rng,
    power: Arc<Power>,
    disk: Disk,
    executor: Executor,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    ledger: Arc<Ledger>,
    oracle: Arc<Mutex<Oracle>>,
    whims: Arc<Mutex<Rng>>,
    plans: Arc<Vec<SimPlan>>,
    kinds: BTreeMap<String, &'static str>,
    coverage: Coverage,
    /// Where the last life ended.
    died_at: Option<Point>,
}

/// One life of the process.
struct Process {
    clients: Arc<Clients>,
    store: Arc<dyn Store>,
}

impl Machine {
    fn new(knobs: Knobs) -> Self {
        let power = Arc::new(Power::default());
        let executor = Executor::new(knobs.seed, power.clone());
        let plans = plans(&mut Rng::stream(knobs.seed, 2), knobs.plans.max(1));
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
            clock: Arc::new(SimClock(executor.clone())),
            entropy: Arc::new(SimEntropy::new(Rng::stream(knobs.seed, 4))),
            executor,
            ledger: Arc::default(),
            oracle: Arc::default(),
            whims: Arc::new(Mutex::new(Rng::stream(knobs.seed, 5))),
            plans: Arc::new(plans),
            kinds,
            coverage: Coverage::default(),
            died_at: None,
        }
    }

    /// One life: start, work, die; or, if it is the last, end well and be judged.
    fn live(&mut self, folder: &Path, last: bool) {
        let death = if last { None } else { Some(self.death()) };
        self.power.switch_on(death);
        if last {
            self.ledger.calm_down();
        }
        match self.start(folder) {
            Ok(process) => self.work(process, last),
            // The power may go while the store is being opened.
            Err(why) if self.power.is_on() => locked(&self.oracle).accuse(why),
            Err(_) => {}
        }
        self.power.switch_off();
        self.died_at = self.power.cut();
        self.executor.drop_tasks();
        self.executor.pass(DOWN_MS);
        if let Err(error) = self.disk.crash(&mut self.rng) {
            locked(&self.oracle).accuse(format!("the disk image cannot be written: {error}"));
        }
    }

    /// Where the process will die, if it gets that far.
    fn death(&mut self) -> (Point, u64) {
        let point = self.rng.pick(&Point::ALL).copied().unwrap_or(Point::Step);
        let most = match point {
            Point::Step => 1_500,
            Point::DiskWrite => 400,
            Point::DiskSync | Point::Queued | Point::Durable => 80,
            Point::BeforeSend | Point::BeforeEffect | Point::AfterEffect | Point::BeforeAnswer => {
                40
            }
        };
        (point, 1 + self.rng.below(most))
    }

    fn start(&self, folder: &Path) -> Result<Process, String> {
        let limits = Arc::new(Limits {
            call_timeout_ms: 5_000,
            recover_interval_ms: 2_000,
            snapshot_floor_bytes: 4_096,
            ..Limits::default()
        });
        let spawn: Arc<dyn Spawn> = Arc::new(SimSpawn(self.executor.clone()));
        let (power, oracle) = (self.power.clone(), self.oracle.clone());
        let parts = stores::Parts {
            spawn: spawn.clone(),
            clock: self.clock.clone(),
            limits: limits.clone(),
            fatal: Arc::new(move |why: String| {
                if power.is_on() {
                    locked(&oracle).accuse(format!("fatal: {why}"));
                }
            }),
            vfs: Some(self.disk.name().to_owned()),
        };
        let opened = stores::open(&stores::Place::Folder(folder.to_owned()), parts)
            .map_err(|error| format!("the store does not open: {error}"))?;
        let store: Arc<dyn Store> = Arc::new(SimStore {
            inner: opened.store,
            power: self.power.clone(),
            planted: self.knobs.planted,
            fed: AtomicU64::new(0),
        });
        let engine = Engine::start(engine::Parts {
            store: store.clone(),
            definitions: opened.definitions,
            blobs: opened.blobs,
            tools: tools::all(&self.ledger, &self.clock, &self.power, &self.whims),
            policy: Arc::new(AllowAll),
            schemas: Arc::new(JsonSchemas::default()),
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
            spawn,
            limits,
            session_ttls: BTreeMap::new(),
        });
        let file = |plan: &SimPlan| PlanFile {
            file: format!("{}.yaml", plan.id),
            text: plan.source().to_string(),
            default_id: PlanId::from(plan.id.as_str()),
        };
        let files = self.plans.iter().map(file).collect();
        engine
            .load_plans(&RealmId::from("default"), files)
            .map_err(|mistakes| format!("the plans do not load: {mistakes:?}"))?;
        let clients = Arc::new(Clients {
            engine,
            executor: self.executor.clone(),
            plans: self.plans.clone(),
            rng: self.whims.clone(),
            oracle: self.oracle.clone(),
            busy: AtomicU64::new(0),
        });
        Ok(Process { clients, store })
    }

    fn work(&mut self, process: Process, last: bool) {
        let Process { clients, store } = process;
        let met = Mutex::new(Vec::new());
        let main = async {
            let found = clients.sessions().await;
            *locked(&met) = found;
            clients.engine.keep_recovering();
            let commands = if last { 0 } else { self.knobs.commands };
            clients.busy.store(commands, Ordering::SeqCst);
            for _ in 0..commands {
                self.executor.spawn(Box::pin(clients.clone().one()));
            }
            self.executor.spawn(Box::pin(follow(clients.clone(), store.clone())));
            if last {
                return judge(&clients, &store, &self.plans, &self.ledger).await;
            }
            while clients.busy.load(Ordering::SeqCst) > 0 {
                clients.sleep(500).await;
            }
            clients.sleep(AFTERWARDS_MS).await;
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

/// Follows the feed for as long as the process lives.
async fn follow(clients: Arc<Clients>, store: Arc<dyn Store>) {
    let realm = caller().realm;
    loop {
        let after = locked(&clients.oracle).cursor();
        match store.feed(&realm, after, FEED_ROWS).await {
            Ok(rows) if !rows.is_empty() => locked(&clients.oracle).feed(&rows),
            _ => clients.sleep(FEED_LOOK_MS).await,
        }
    }
}

/// How many of its last events are told of a session that does not end.
const LAST_EVENTS: u64 = 12;

/// Brings everything to an end and judges it.
async fn judge(clients: &Clients, store: &Arc<dyn Store>, plans: &[SimPlan], ledger: &Ledger) {
    for row in clients.bring_to_an_end().await {
        let last = store.events(&row.key, row.seq.saturating_sub(LAST_EVENTS), 100).await;
        let last: Vec<String> =
            last.unwrap_or_default().into_iter().map(|(_, text)| text).collect();
        let (name, status, last) = (&row.key.id, row.status.name(), last.join("\n      "));
        let what = format!("session {name} does not end: {status}\n      {last}");
        locked(&clients.oracle).accuse(what);
    }
    // The feed is a moment behind.
    clients.sleep(20 * FEED_LOOK_MS).await;
    let sessions = clients.sessions().await;
    let mut oracle = std::mem::take(&mut *locked(&clients.oracle));
    let judged = oracle.judge(store.as_ref(), &caller().realm, &sessions, (plans, ledger)).await;
    if let Err(error) = judged {
        oracle.accuse(format!("the store cannot be read: {error}"));
    }
    *locked(&clients.oracle) = oracle;
}
