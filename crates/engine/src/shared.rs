//! What all parts of the engine share, and how an engine is built.

use crate::arrivals::Arrivals;
use crate::catalog::{Catalog, Filed, PlanFile, ProjectFiles};
use crate::command::Command;
use crate::counts::{Counters, Counts, Now};
use crate::deltas::{Deltas, Listeners};
use crate::feed::{Feed, Watch};
use crate::gate::Gate;
use crate::line::Lines;
pub(crate) use crate::locks::lock;
use crate::models::Models;
use crate::observers::Observers;
use crate::once::Keys;
use crate::outboxes::Outboxes;
use crate::pages::Pages;
use crate::rates::Rates;
use crate::refusal::{Refusal, RefusalCode};
use crate::registry::{Registry, ToolSource};
use crate::rest::Rest;
use crate::suspects::Suspects;
use kernel::call::{Caller, ToolSpec, Wants};
use kernel::contracts::{
    Blobs, Clock, CrashMarks, Definitions, Entropy, Policy, Spawn, Store, StoreFigures, Zones,
};
use kernel::ids::{ContentHash, PlanId, RealmId, RunId, SessionKey, time_ordered_bits};
use kernel::limits::Limits;
use kernel::observe::Observer;
use kernel::plan::mistake::Mistake;
use kernel::plan::{Closure, Plan};
use kernel::rules::ToolRules;
use kernel::schema::Schemas;
use kernel::sink::Deliveries;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tokio::sync::{Semaphore, mpsc};

/// What an engine is made of.
pub struct Parts {
    /// Sessions.
    pub store: Arc<dyn Store>,
    /// Stored plans, agents and providers.
    pub definitions: Arc<dyn Definitions>,
    /// Large values.
    pub blobs: Arc<dyn Blobs>,
    /// The log of deliveries of events.
    pub deliveries: Arc<dyn Deliveries>,
    /// The tools from code.
    pub tools: Vec<ToolSource>,
    /// Which of them there are, and what they may cost.
    pub rules: ToolRules,
    /// Beginnings of the names of tools that may come later, from other servers.
    pub awaited: Vec<String>,
    /// The models that agents name.
    pub models: Models,
    /// Who sees what it does.
    pub observers: Vec<Arc<dyn Observer>>,
    /// Who may call what.
    pub policy: Arc<dyn Policy>,
    /// The schema validator.
    pub schemas: Arc<dyn Schemas>,
    /// What is being worked on, for the process after this one.
    pub marks: Arc<dyn CrashMarks>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Local time.
    pub zones: Arc<dyn Zones>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// Tasks.
    pub spawn: Arc<dyn Spawn>,
    /// The limits.
    pub limits: Arc<Limits>,
    /// `session_ttl_ms` of realms that have one of their own.
    pub session_ttls: BTreeMap<RealmId, u64>,
}

/// The engine. Cheap to clone; all clones are one engine.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) definitions: Arc<dyn Definitions>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) deliveries: Arc<dyn Deliveries>,
    pub(crate) schemas: Arc<dyn Schemas>,
    pub(crate) suspects: Suspects,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) zones: Arc<dyn Zones>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) spawn: Arc<dyn Spawn>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) session_ttls: BTreeMap<RealmId, u64>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) feed: Arc<Feed>,
    /// Who hears turns while they are made.
    pub(crate) listeners: Arc<Listeners>,
    /// Who sees what is done.
    pub(crate) observers: Observers,
    models: RwLock<Arc<Models>>,
    /// One permit for each turn of a model that runs.
    pub(crate) turns: Semaphore,
    pub(crate) counters: Counters,
    /// The sinks that events go to.
    pub(crate) outboxes: Arc<Outboxes>,
    /// Where to send commands for the sessions that are being driven.
    pub(crate) driven: Mutex<HashMap<SessionKey, mpsc::Sender<Command>>>,
    /// Sessions that nobody drives, a few of them.
    pub(crate) rest: Rest,
    /// Keyed requests that are under way.
    pub(crate) keys: Arc<Keys>,
    /// Who waits for cases of pipelines.
    pub(crate) lines: Arc<Lines>,
    /// The pages that threads wait for.
    pub(crate) pages: Pages,
    /// Closures of runs that came out of the store.
    pub(crate) closures: Mutex<HashMap<ContentHash, Arc<Closure>>>,
    /// How often sessions were parked by this process.
    pub(crate) parked: Mutex<HashMap<SessionKey, u32>>,
    pub(crate) stopping: AtomicBool,
}

/// How many closures of stored runs are kept.
pub(crate) const CLOSURES_MAX: usize = 1_024;

impl Engine {
    /// An engine over these parts, or all that is wrong with its tools. It drives nothing until
    /// someone calls.
    pub fn start(parts: Parts) -> Result<Self, Vec<Mistake>> {
        let limits = parts.limits;
        let arrivals = Arrivals::new(!parts.awaited.is_empty(), limits.upstream_connect_timeout_ms);
        let rules = (parts.rules, parts.awaited);
        let registry = Registry::new(parts.tools, rules, parts.schemas.as_ref())?;
        let catalog = Arc::new(Catalog::new(registry, parts.schemas.clone(), limits.clone()));
        let gate = Arc::new(Gate {
            catalog: catalog.clone(),
            policy: parts.policy,
            schemas: parts.schemas.clone(),
            clock: parts.clock.clone(),
            limits: limits.clone(),
            calls: Arc::new(Semaphore::new(limits.calls_active_max)),
            rates: Rates::new(limits.call_rates_max),
            arrivals,
        });
        let feed = Arc::new(Feed::default());
        let woken = feed.clone();
        parts.store.on_commit(Arc::new(move |keys| woken.committed(keys)));
        Ok(Self {
            shared: Arc::new(Shared {
                store: parts.store,
                definitions: parts.definitions,
                blobs: parts.blobs,
                deliveries: parts.deliveries,
                schemas: parts.schemas,
                suspects: Suspects::new(parts.marks),
                clock: parts.clock,
                zones: parts.zones,
                entropy: parts.entropy,
                spawn: parts.spawn,
                session_ttls: parts.session_ttls,
                catalog,
                gate,
                feed,
                listeners: Arc::new(Listeners::new(limits.turn_deltas_max)),
                observers: Observers::new(parts.observers),
                models: RwLock::new(Arc::new(parts.models)),
                turns: Semaphore::new(limits.turns_active_max.clamp(1, Semaphore::MAX_PERMITS)),
                counters: Counters::default(),
                outboxes: Arc::default(),
                rest: Rest::new(limits.sessions_rested_max, limits.session_rested_bytes_max),
                keys: Arc::default(),
                lines: Arc::default(),
                pages: Pages::default(),
                driven: Mutex::default(),
                closures: Mutex::default(),
                parked: Mutex::default(),
                stopping: AtomicBool::new(false),
                limits,
            }),
        })
    }

    /// Time.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    /// Randomness.
    pub fn entropy(&self) -> &Arc<dyn Entropy> {
        &self.shared.entropy
    }

    /// The limits.
    pub fn limits(&self) -> &Arc<Limits> {
        &self.shared.limits
    }

    /// The tools that this caller sees; nothing else can be called by it.
    pub fn tools_for(&self, caller: &Caller) -> Vec<Arc<ToolSpec>> {
        self.shared.gate.visible(caller)
    }

    /// One of them.
    pub fn tool_for(&self, caller: &Caller, name: &str) -> Option<Arc<ToolSpec>> {
        self.shared.gate.find(caller, name).map(|listed| listed.tool.spec().clone())
    }

    /// All that this caller can call, by name: the tools, and the plans as tools.
    pub fn callable_for(&self, caller: &Caller) -> Vec<Arc<ToolSpec>> {
        let mut specs = self.shared.gate.visible(caller);
        specs.extend(self.shared.gate.visible_plans(caller));
        specs.sort_by(|left, right| left.name.cmp(&right.name));
        specs
    }

    /// One of them.
    pub fn callable(&self, caller: &Caller, name: &str) -> Option<Arc<ToolSpec>> {
        self.tool_for(caller, name).or_else(|| self.shared.gate.find_plan(caller, name))
    }

    /// The plans among them, by name.
    pub fn plan_tools_for(&self, caller: &Caller) -> Vec<Arc<ToolSpec>> {
        self.shared.gate.visible_plans(caller)
    }

    /// One of these.
    pub fn plan_tool(&self, caller: &Caller, id: &str) -> Option<Arc<ToolSpec>> {
        self.shared.gate.find_plan(caller, id)
    }

    /// A number that grows whenever what can be called or prompted changes.
    pub fn catalog_version(&self) -> tokio::sync::watch::Receiver<u64> {
        self.shared.catalog.version()
    }

    /// An id for a run that a door wants to know before it starts.
    pub fn new_run_id(&self) -> RunId {
        RunId(self.shared.id_bits())
    }

    /// What a source brings now, in place of what it brought before: all at once for whoever lists
    /// or calls. Tools that cannot be used, or whose names are taken, are left out and told.
    pub fn replace_tools(&self, source: ToolSource) -> Vec<Mistake> {
        self.shared.catalog.replace_tools(source)
    }

    /// The servers that bring the awaited tools were all heard, or are away: nobody waits for their
    /// tools any more.
    pub fn end_arrivals(&self) {
        self.shared.gate.arrivals.end();
    }

    /// Whether a call that wants this can simply be made anew: nothing is held for the answer.
    pub fn can_be_asked_anew(&self, caller: &Caller, tool: &str, wants: &Wants) -> bool {
        let listed = self.shared.gate.find(caller, tool);
        listed.is_some_and(|listed| listed.tool.can_be_asked_anew(&wants.state))
    }

    /// What a tool wanted of this caller will not be given.
    pub fn forget_wants(&self, caller: &Caller, tool: &str, wants: &Wants) {
        if let Some(listed) = self.shared.gate.find(caller, tool) {
            listed.tool.forget(&wants.state);
        }
    }

    /// The plans of the caller's realm.
    pub fn plans_for(&self, caller: &Caller) -> Vec<Arc<Plan>> {
        self.shared.catalog.plans(&caller.realm)
    }

    /// One of them.
    pub fn plan_for(&self, caller: &Caller, id: &PlanId) -> Option<Arc<Plan>> {
        self.shared.catalog.plan(&caller.realm, id)
    }

    /// Adds a project's plans: all of them or none. Gives warnings, or all mistakes.
    pub fn load_plans(
        &self,
        realm: &RealmId,
        files: Vec<PlanFile>,
    ) -> Result<Vec<Mistake>, Vec<Mistake>> {
        self.shared.catalog.add_files(realm, &files)
    }

    /// Reads all agents, plans and pipelines of a project's files anew, without changing anything:
    /// they are checked as if those that the files brought before were gone. Gives warnings beside
    /// them, or all mistakes.
    pub fn read_files(
        &self,
        realm: &RealmId,
        files: &ProjectFiles,
    ) -> Result<(Filed, Vec<Mistake>), Vec<Mistake>> {
        self.shared.catalog.read_files(realm, files)
    }

    /// A project's files bring these now, in place of what they brought before: all at once. Runs
    /// that began keep what they pin, and what is stored stays.
    pub fn set_files(&self, realm: &RealmId, files: Filed) {
        self.shared.catalog.set_files(realm, files);
    }

    /// Checks a plan without adding it. Gives warnings, or all mistakes.
    pub fn validate_plan(
        &self,
        caller: &Caller,
        source: &Value,
    ) -> Result<Vec<Mistake>, Vec<Mistake>> {
        self.shared.gate.read_plan_to_keep(caller, source).map(|(_, warnings)| warnings)
    }

    /// Warnings of rules that fit no tool and no plan of this realm, once its plans are loaded.
    pub fn idle_rules(&self, realm: &RealmId) -> Vec<Mistake> {
        self.shared.catalog.idle_rules(realm)
    }

    /// Wakes after commits of this session.
    pub fn watch(&self, key: &SessionKey) -> Watch {
        self.shared.feed.watch(key)
    }

    /// Wakes after commits of any session.
    pub fn watch_all(&self) -> Watch {
        self.shared.feed.watch_all()
    }

    /// Hears the turns of this session's agents while they are made. Nothing of that is kept, and
    /// whoever is too slow loses some; what a turn came to is in the journal.
    pub fn deltas(&self, key: &SessionKey) -> Deltas {
        self.shared.listeners.listen(key)
    }

    /// The models that agents name from now on. Turns that are under way end with theirs.
    pub fn replace_models(&self, models: Models) {
        let mut known = self.shared.models.write().unwrap_or_else(PoisonError::into_inner);
        *known = Arc::new(models);
    }

    /// The models that agents name now.
    pub fn models(&self) -> Arc<Models> {
        self.shared.models()
    }

    /// The models that agents can name, by name.
    pub fn model_names(&self) -> Vec<String> {
        self.shared.models().names().map(str::to_owned).collect()
    }

    /// Whether work can be taken.
    pub fn healthy(&self) -> Result<(), Refusal> {
        if self.shared.stopping.load(Ordering::Acquire) {
            return Err(stopping());
        }
        self.shared.store.healthy().map_err(Refusal::from)
    }

    /// What the store says of its own work; none where it says nothing.
    pub fn store_figures(&self) -> Option<StoreFigures> {
        self.shared.store.figures()
    }

    /// What happened since the start, and what goes on now.
    pub fn counts(&self) -> Counts {
        let shared = &self.shared;
        let (calls, turns) = (shared.gate.calls_free(), shared.turns.available_permits());
        let limits = &shared.limits;
        shared.counters.read(Now {
            sessions_active: lock(&shared.driven).len() as u64,
            calls_active: limits.calls_active_max.saturating_sub(calls) as u64,
            turns_active: limits.turns_active_max.saturating_sub(turns) as u64,
            cases_waiting: shared.lines.waiting() as u64,
        })
    }
}

impl Shared {
    /// The models as they are now.
    pub(crate) fn models(&self) -> Arc<Models> {
        self.models.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A new time-ordered id's bits.
    pub(crate) fn id_bits(&self) -> u128 {
        time_ordered_bits(self.clock.now(), self.entropy.bits())
    }
}

/// The server is stopping.
pub(crate) fn stopping() -> Refusal {
    Refusal::new(RefusalCode::Stopping, "the server is stopping")
        .hint("send it again when it is back")
}
