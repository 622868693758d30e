//! State that all parts of the engine share, and the construction of an engine.

use crate::catalog::models::Models;
use crate::catalog::plan_cache::PlanCache;
use crate::catalog::registry::{Registry, SwitchedOff, ToolSource};
use crate::catalog::{Catalog, UpstreamRealms};
use crate::command::Command;
use crate::gate::Gate;
use crate::gate::arrivals::Arrivals;
use crate::gate::breakers::Breakers;
use crate::gate::list_cache::ListCaches;
use crate::gate::rates::Rates;
use crate::gate::trail::{AuditParts, Trail};
use crate::observe::counts::{Counters, Counts};
use crate::observe::observers::Observers;
use crate::observe::sinks::Outboxes;
use crate::observe::webhooks::LiveWebhooks;
use crate::refusal::{Refusal, RefusalCode, Result};
use crate::sessions::cache::SessionCache;
use crate::sessions::closed_realms::ClosedRealms;
use crate::sessions::suspects::Suspects;
use crate::shares::processor::Processor;
use crate::shares::storage::Storage;
use crate::shares::{RealmSource, Shares};
use crate::system::clock::timeout;
pub(crate) use crate::system::locks::lock;
use crate::waiting::attendants::Attendants;
use crate::waiting::case_queue::CaseQueues;
use crate::waiting::deltas::Listeners;
use crate::waiting::feed::Watchers;
use crate::waiting::idempotency::Keys;
use crate::waiting::login_pages::Pages;
use kernel::contracts::observe::Observer;
use kernel::contracts::sink::Deliveries;
use kernel::contracts::{
    Blobs, Clock, CommitNotice, CrashMarks, Definitions, Entropy, Policy, Spawn, Store, Zones,
};
use kernel::definition::plan::Closure;
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::shares::SharedLimit;
use kernel::limits::Limits;
use kernel::tool::rules::ToolRules;
use kernel::tool::schema::Schemas;
use kernel::values::ids::{ContentHash, RealmId, SessionKey, time_ordered_bits};
use quick_cache::sync::Cache;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};

/// Dependencies and configuration of an engine.
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
    /// The realms that other servers, and what they bring, are there for; none where they are there
    /// for all.
    pub upstreams_of: Option<UpstreamRealms>,
    /// The tools that the settings leave out.
    pub switched_off: SwitchedOff,
    /// The models that agents name.
    pub models: Models,
    pub observers: Vec<Arc<dyn Observer>>,
    pub policy: Arc<dyn Policy>,
    /// The audit; none where nothing is kept.
    pub audit: Option<AuditParts>,
    /// The schema validator.
    pub schemas: Arc<dyn Schemas>,
    /// Marks of the sessions being worked on, for the next process.
    pub marks: Arc<dyn CrashMarks>,
    pub clock: Arc<dyn Clock>,
    /// Local time.
    pub zones: Arc<dyn Zones>,
    pub entropy: Arc<dyn Entropy>,
    pub spawn: Arc<dyn Spawn>,
    pub limits: Arc<Limits>,
    /// `session_ttl_ms` of realms that have one of their own.
    pub session_ttls: BTreeMap<RealmId, u64>,
    /// The realms whose callers share the limits; none in local mode, where nothing is shared.
    pub realms: Option<Arc<dyn RealmSource>>,
}

/// The engine. Cheap to clone; all clones are one engine.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

/// An engine for a part of it that must not keep it alive.
#[derive(Clone)]
pub struct WeakEngine {
    shared: Weak<Shared>,
}

impl WeakEngine {
    /// None once nobody else has it.
    pub fn upgrade(&self) -> Option<Engine> {
        self.shared.upgrade().map(|shared| Engine { shared })
    }
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
    pub(crate) watchers: Arc<Watchers>,
    /// Listeners of turn deltas.
    pub(crate) listeners: Arc<Listeners>,
    pub(crate) observers: Observers,
    models: RwLock<Arc<Models>>,
    /// One permit for each turn of a model that runs.
    pub(crate) turns: Semaphore,
    pub(crate) turn_shares: Shares,
    /// How many sessions may be exported beside those that are.
    pub(crate) exports: Arc<Semaphore>,
    pub(crate) export_shares: Shares,
    /// Those of sessions that are being driven.
    pub(crate) run_shares: Shares,
    /// Whose session is driven next; none in local mode.
    pub(crate) processor: Option<Arc<Processor>>,
    pub(crate) storage: Arc<Storage>,
    /// The realms whose callers share the limits, if they do.
    realms: Option<Arc<dyn RealmSource>>,
    pub(crate) counters: Counters,
    /// The sinks that events go to.
    pub(crate) outboxes: Arc<Outboxes>,
    /// The webhooks that runs notify.
    pub(crate) webhooks: LiveWebhooks,
    /// Where to send commands for the sessions that are being driven.
    pub(crate) driven: Mutex<HashMap<SessionKey, mpsc::Sender<Command>>>,
    /// Sessions that no one drives, a few of them.
    pub(crate) rest: SessionCache,
    /// Keyed requests that are under way.
    pub(crate) keys: Arc<Keys>,
    /// Queues of requests for one case.
    pub(crate) case_queues: Arc<CaseQueues>,
    /// The pages that threads wait for.
    pub(crate) pages: Pages,
    /// The clients that wait for the runs of their direct calls.
    pub(crate) attending: Arc<Attendants>,
    /// Generated plans of calls that have a run of their own.
    pub(crate) call_plans: PlanCache,
    /// Closures of runs that came out of the store.
    pub(crate) closures: Cache<ContentHash, Arc<Closure>>,
    /// The realms in which nothing is driven any more.
    pub(crate) closed: ClosedRealms,
    /// How often sessions were parked by this process.
    pub(crate) parked: Mutex<HashMap<SessionKey, u32>>,
    pub(crate) stopping: AtomicBool,
}

/// How often a stop looks whether all is done.
const STOP_LOOK_MS: u64 = 20;
/// How long a stop waits for the audit.
const AUDIT_WAIT_MS: u64 = 5_000;
/// How many callers' rates of calls are remembered.
const CALL_RATES_MAX: usize = 16_384;
/// How many closures of stored runs are kept.
const CLOSURES_MAX: usize = 1_024;

impl Engine {
    /// An engine over these parts, or all that is wrong with its tools. It drives nothing until
    /// someone calls.
    pub fn start(parts: Parts) -> Result<Self, Vec<Mistake>> {
        let limits = parts.limits;
        let realms = parts.realms;
        let shares = |limit| Shares::new(limit, limits.clone(), realms.clone());
        let wait_ms = limits.upstream_start_timeout_ms.max(limits.upstream_connect_timeout_ms);
        let arrivals = Arrivals::new(!parts.awaited.is_empty(), wait_ms);
        let tools = parts.tools;
        let rules = parts.rules;
        let off = parts.switched_off;
        let registry = Registry::new(tools, rules, parts.awaited, off, parts.schemas.as_ref())?;
        let schemas = parts.schemas.clone();
        let owners = parts.upstreams_of;
        let catalog = Arc::new(Catalog::new(registry, schemas, limits.clone(), owners));
        let gate = Arc::new(Gate {
            catalog: catalog.clone(),
            policy: parts.policy,
            schemas: parts.schemas.clone(),
            clock: parts.clock.clone(),
            limits: limits.clone(),
            calls: Arc::new(Semaphore::new(limits.calls_active_max)),
            call_shares: shares(SharedLimit::Calls),
            rates: Rates::new(CALL_RATES_MAX),
            breakers: Breakers::default(),
            arrivals,
            judged: ListCaches::default(),
            trail: parts
                .audit
                .map(|audit| Arc::new(Trail::new(audit, parts.clock.clone(), parts.spawn.clone()))),
        });
        let watchers = Arc::new(Watchers::default());
        let woken = watchers.clone();
        let told = move |commits: &[CommitNotice<'_>]| woken.committed(commits);
        parts.store.on_commit(Arc::new(told));
        let clock = parts.clock.clone();
        let spawn = parts.spawn.clone();
        let workers = spawn.workers();
        let store = parts.store.clone();
        let of = realms.clone();
        let storage = Arc::new(Storage::new(limits.clone(), of, store, clock, spawn));
        Ok(Self {
            shared: Arc::new(Shared {
                storage,
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
                watchers,
                listeners: Arc::new(Listeners::new(limits.turn_deltas_max)),
                observers: Observers::new(parts.observers),
                models: RwLock::new(Arc::new(parts.models)),
                turns: Semaphore::new(limits.turns_active_max.clamp(1, Semaphore::MAX_PERMITS)),
                turn_shares: shares(SharedLimit::Turns),
                exports: Arc::new(Semaphore::new(limits.exports_active_max)),
                export_shares: shares(SharedLimit::Exports),
                run_shares: shares(SharedLimit::Runs),
                processor: realms.is_some().then(|| Processor::new(workers)),
                counters: Counters::default(),
                outboxes: Arc::default(),
                webhooks: LiveWebhooks::default(),
                rest: SessionCache::default(),
                keys: Arc::default(),
                case_queues: Arc::default(),
                pages: Pages::default(),
                attending: Arc::default(),
                driven: Mutex::default(),
                call_plans: PlanCache::default(),
                closures: Cache::new(CLOSURES_MAX),
                closed: ClosedRealms::default(),
                parked: Mutex::default(),
                stopping: AtomicBool::new(false),
                realms,
                limits,
            }),
        })
    }

    pub fn downgrade(&self) -> WeakEngine {
        WeakEngine { shared: Arc::downgrade(&self.shared) }
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    pub fn entropy(&self) -> &Arc<dyn Entropy> {
        &self.shared.entropy
    }

    pub fn limits(&self) -> &Arc<Limits> {
        &self.shared.limits
    }

    /// Shares of a limit that is kept outside of the engine. The caller counts by itself.
    pub fn shares(&self, limit: SharedLimit) -> Shares {
        Shares::new(limit, self.shared.limits.clone(), self.shared.realms.clone())
    }

    /// Whether work can be taken.
    pub fn healthy(&self) -> Result<()> {
        if self.shared.stopping.load(Ordering::Acquire) {
            return Err(stopping());
        }
        self.shared.store.healthy().map_err(Refusal::from)
    }

    /// Counters since the start, and current gauges.
    pub fn counts(&self) -> Counts {
        let shared = &self.shared;
        let free = |places: &Semaphore| places.available_permits();
        let limits = &shared.limits;
        Counts {
            sessions_active: lock(&shared.driven).len() as u64,
            calls_active: limits.calls_active_max.saturating_sub(free(&shared.gate.calls)) as u64,
            turns_active: limits.turns_active_max.saturating_sub(free(&shared.turns)) as u64,
            cases_waiting: shared.case_queues.waiting() as u64,
            webhooks_live: shared.webhooks.len() as u64,
            ..shared.counters.read()
        }
    }

    /// Takes nothing new, lets what is under way finish for a moment, and closes the store.
    pub async fn stop(&self) {
        self.shared.outboxes.stop();
        self.shared.stopping.store(true, Ordering::Release);
        let clock = self.shared.clock.clone();
        // A clock that is set meanwhile neither cuts it short nor holds it up.
        let deadline = clock.elapsed() + Duration::from_millis(self.shared.limits.stop_wait_ms);
        let busy = || !lock(&self.shared.driven).is_empty() || self.shared.outboxes.are_sending();
        while busy() && clock.elapsed() < deadline {
            clock.sleep_until(clock.now().plus_ms(STOP_LOOK_MS)).await;
        }
        if let Some(trail) = &self.shared.gate.trail {
            let written = timeout(clock.as_ref(), AUDIT_WAIT_MS, trail.settled()).await;
            if written.is_none() {
                tracing::error!("the audit was not written to its end");
            }
        }
        if let Err(error) = self.shared.store.close().await {
            tracing::warn!(%error, "the store did not close in good order");
        }
    }
}

impl Shared {
    /// The models as they are now.
    pub(crate) fn models(&self) -> Arc<Models> {
        self.models.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The models that can be asked in a realm.
    pub(crate) fn models_of(&self, realm: &RealmId) -> Arc<Models> {
        let models = self.models();
        let settings = self.gate.policy.settings(realm);
        match settings.enabled_models {
            Some(_) => Arc::new(models.only(|name| settings.enables_model(name))),
            None => models,
        }
    }

    /// The models from now on.
    pub(crate) fn set_models(&self, models: Models) {
        let mut known = self.models.write().unwrap_or_else(PoisonError::into_inner);
        *known = Arc::new(models);
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
