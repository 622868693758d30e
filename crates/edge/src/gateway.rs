//! The upstreams while they run: started, kept in the catalog, shown and stopped. What is
//! configured is there from the start on, and changes with the files of a project that is watched;
//! what is stored is one realm's own, and comes and goes.

mod follow;
mod stored_provider;
mod configured;

use configured::ConfiguredUpstream;
use engine::Engine;
use engine::refusal::Refusal;
use follow::{FollowedUpstream, follow};
use identity::Identity;
use kernel::contracts::Definitions;
use kernel::definition::plan::mistake::Mistake;
use kernel::values::fault::Fault;
use kernel::values::ids::RealmId;
use policy::CedarPolicy;
use project::realm::default_realm;
use project::upstream_entries::{Entry, Ourselves, config_of, stored};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{oneshot, watch};
use upstreams::{
    LoginCallback, LoginPlaces, LoginResult, Remote, RemoteParts, Upstream, UpstreamConfig,
    UpstreamState, place_of, subject_mark,
};

pub use configured::UpstreamChanges;
pub use stored_provider::{StoredProvider, leads_inside, left_out, stored_providers};

/// Looks a variable of the environment up.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What a `Remote` calls the fault of a login that is not its own.
const NOT_FOUND: &str = "LoginNotFound";

/// What a gateway is made of.
pub struct GatewayParts {
    /// What has the catalog.
    pub engine: Engine,
    /// Where stored providers are.
    pub definitions: Arc<dyn Definitions>,
    /// What upstreams are built from.
    pub remote: RemoteParts,
    /// The variables that stored providers may name, as far as their realms may.
    pub variables: Lookup,
    /// What is set for realms.
    pub identity: Arc<Identity>,
    /// How this server itself is reached.
    pub ourselves: Ourselves,
    /// The policies of files, which tools that arrive may not fit.
    pub policies: Option<Arc<CedarPolicy>>,
}

/// The upstreams of one server.
pub struct Gateway {
    parts: GatewayParts,
    /// What is configured, also what is left alone.
    configured: Mutex<Vec<ConfiguredUpstream>>,
    stored: Mutex<Stored>,
    /// What was started and is not in the catalog yet; nothing once that is watched.
    starting: Mutex<Option<Vec<StartingUpstream>>>,
    /// What is stored or configured changes one by one, with what runs for it.
    pub changing: tokio::sync::Mutex<()>,
    /// Whether everything is being stopped: what begins after that would be stopped by no one.
    ended: AtomicBool,
}

/// An upstream as it is shown; without one that runs it is left alone.
#[derive(Clone)]
pub struct Member {
    /// What may be shown of it.
    pub facts: wire::rest::Upstream,
    /// It, while it runs.
    pub upstream: Option<Arc<Upstream>>,
}

/// The stored ones of each realm, by name.
type Stored = BTreeMap<RealmId, BTreeMap<String, StoredUpstream>>;

/// A stored one.
struct StoredUpstream {
    member: Member,
    running: Option<RunningUpstream>,
}

/// What runs for an upstream; who follows it ends with this.
struct RunningUpstream {
    remote: Arc<Remote>,
    stop: watch::Sender<bool>,
    /// Its tools are out of the catalog.
    gone: oneshot::Receiver<()>,
}

impl RunningUpstream {
    /// Ends it; its tools are gone on return.
    async fn end(self) {
        self.stop.send_replace(true);
        // An error means that its follower is gone, and its tools with it.
        let _ = self.gone.await;
        self.remote.stop().await;
    }
}

/// An upstream that was started.
struct StartingUpstream {
    upstream: Arc<Upstream>,
    /// Ends when its tools are in the catalog for the first time.
    listed: oneshot::Receiver<()>,
}

/// Tells the engine why the tools of an upstream are not there, if they are not. One that wants a
/// login is no reason to hold up an agent: that may take days.
fn note_away(engine: &Engine, upstream: &Upstream) {
    let status = upstream.status();
    let is_failing = matches!(status.state, UpstreamState::Connecting | UpstreamState::Failing);
    let is_away = is_failing && upstream.tools().is_empty();
    let why = status.last_error.map_or_else(
        || format!("upstream `{}` is not ready: it has not answered yet", upstream.name()),
        |fault| format!("upstream `{}` is not ready: {}", upstream.name(), fault.message),
    );
    let prefix = &upstream.config().prefix;
    engine.tools().note_away(upstream.name(), prefix, is_away.then_some(why));
}

impl Gateway {
    /// Starts what is configured, and returns at once.
    pub fn start(parts: GatewayParts, entries: &[Entry], configs: Vec<UpstreamConfig>) -> Self {
        let mut configured = Vec::new();
        let mut starting = Vec::new();
        for entry in entries {
            let config = configs.iter().find(|config| config.name == entry.name).cloned();
            let (known, next) = ConfiguredUpstream::start(&parts, entry, config);
            configured.push(known);
            starting.extend(next);
        }
        Self {
            parts,
            configured: Mutex::new(configured),
            stored: Mutex::default(),
            starting: Mutex::new(Some(starting)),
            changing: tokio::sync::Mutex::default(),
            ended: AtomicBool::new(false),
        }
    }

    /// Tells the engine when all that was started so far was heard, or is known to be away.
    pub fn watch_arrivals(&self) {
        let starting = self.starting().take().unwrap_or_default();
        let engine = self.parts.engine.clone();
        for next in &starting {
            note_away(&engine, &next.upstream);
        }
        let arriving = async move {
            let engine = &engine;
            let arrivals =
                starting.into_iter().map(|StartingUpstream { upstream, listed }| async move {
                    upstream.tried().await;
                    note_away(engine, &upstream);
                    if !upstream.tools().is_empty() {
                        // An error means that they are in the catalog, or were taken out already.
                        let _ = listed.await;
                    }
                });
            futures::future::join_all(arrivals).await;
            engine.tools().end_arrivals();
        };
        self.parts.remote.spawn.task("upstream arrivals", Box::pin(arriving));
    }

    fn await_first(&self, next: StartingUpstream) {
        if let Some(starting) = self.starting().as_mut() {
            starting.push(next);
        }
    }

    fn starting(&self) -> MutexGuard<'_, Option<Vec<StartingUpstream>>> {
        self.starting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The upstreams that are there for a realm, by name.
    pub fn members(&self, realm: &RealmId) -> Vec<Member> {
        let known = self.all_configured();
        let stored = self.stored();
        let configured = known.iter().filter(|known| known.entry.is_for(realm));
        let of_store = stored.get(realm).into_iter().flat_map(BTreeMap::values);
        let mut all: Vec<Member> = configured
            .map(|known| known.member.clone())
            .chain(of_store.map(|kept| kept.member.clone()))
            .collect();
        all.sort_by(|left, right| left.facts.name.cmp(&right.facts.name));
        all
    }

    /// All that run for a realm.
    pub fn running(&self, realm: &RealmId) -> Vec<Arc<Upstream>> {
        self.members(realm).into_iter().filter_map(|member| member.upstream).collect()
    }

    /// All that run, whichever realm they are there for.
    pub fn all_running(&self) -> Vec<Arc<Upstream>> {
        let known = self.all_configured();
        let stored = self.stored();
        let of_store = stored.values().flat_map(BTreeMap::values).map(|kept| &kept.member);
        let members = known.iter().map(|known| &known.member).chain(of_store);
        members.filter_map(|member| member.upstream.clone()).collect()
    }

    /// Where stored providers are.
    pub fn definitions(&self) -> &Arc<dyn Definitions> {
        &self.parts.definitions
    }

    /// The configured upstream of this name that is there for a realm.
    pub fn configured(&self, realm: &RealmId, name: &str) -> Option<wire::rest::Upstream> {
        let is_it =
            |known: &&ConfiguredUpstream| known.entry.name == name && known.entry.is_for(realm);
        self.all_configured().iter().find(is_it).map(|known| known.member.facts.clone())
    }

    /// Where logins come back to; nowhere without a route for them.
    pub fn places(&self) -> Option<&LoginPlaces> {
        self.parts.remote.login.as_ref()
    }

    /// Whether a login of this state is under way.
    pub async fn knows_login(&self, state: &str) -> bool {
        let remotes = self.remotes_of(state);
        let mut known = false;
        for remote in remotes {
            known = known || remote.knows_login(state).await;
        }
        known
    }

    /// Someone came back from a login: the upstream that it was for. Each stored provider has its
    /// own `Remote`, and one that does not know a login says so and leaves it to the others.
    pub async fn finish_login(&self, returned: LoginCallback) -> Result<LoginResult, Fault> {
        let unknown = Fault::new(NOT_FOUND, "this login is not known: what it was for is gone");
        let mut finished = Err(unknown.hint("begin another"));
        for remote in self.remotes_of(&returned.state) {
            match finished {
                Err(fault) if fault.name == NOT_FOUND => {
                    finished = remote.finish_login(returned.clone()).await;
                }
                other => return other,
            }
        }
        finished
    }

    /// Who may know the login of this state: the state says where it is kept. Those that are kept
    /// at the vault's root are of what is configured, or of providers in the realm that every
    /// server has.
    fn remotes_of(&self, state: &str) -> Vec<Arc<Remote>> {
        // Locked in the same order everywhere.
        let known = self.all_configured();
        let stored = self.stored();
        let remote =
            |kept: &StoredUpstream| kept.running.as_ref().map(|running| running.remote.clone());
        let Some(place) = place_of(state) else {
            let of_store = stored.get(&default_realm()).into_iter().flatten();
            let of_store = of_store.filter_map(|(_, kept)| remote(kept));
            let of_files = known.iter().filter_map(|known| known.running.as_ref());
            let of_files = of_files.map(|running| running.remote.clone());
            return of_files.chain(of_store).collect();
        };
        let mut segments = place.split('/');
        let (Some(realm), Some(name)) = (segments.next(), segments.next()) else {
            return Vec::new();
        };
        let realm = RealmId::from(realm);
        if let Some(kept) = stored.get(&realm).and_then(|own| own.get(name)) {
            return remote(kept).into_iter().collect();
        }
        let is_it =
            |known: &&ConfiguredUpstream| known.entry.name == name && known.entry.is_for(&realm);
        let running = known.iter().find(is_it).and_then(|known| known.running.as_ref());
        running.map(|running| running.remote.clone()).into_iter().collect()
    }

    /// Removes what the logins of a subject brought, in whichever realm; durable on return.
    pub async fn forget_subject(&self, subject: &str) -> Result<(), Fault> {
        for upstream in self.all_running() {
            upstream.let_go(subject).await;
        }
        let under = format!("*/*/{}/", subject_mark(subject));
        Ok(self.parts.remote.vault.remove_all(&under).await?)
    }

    /// Where in the vault what logins at a stored provider bring is kept. That of a provider in the
    /// realm that every server has is at its root, unless a configured one has the same name.
    fn place(&self, realm: &RealmId, name: &str) -> Option<String> {
        let is_taken = || self.all_configured().iter().any(|known| known.entry.name == name);
        let is_apart = *realm != default_realm() || is_taken();
        is_apart.then(|| format!("{realm}/{name}"))
    }

    /// What a stored provider leads to, if it can be used beside the others. The caller holds
    /// `changing`.
    pub fn config_of(&self, provided: &StoredProvider) -> Result<UpstreamConfig, Mistake> {
        let StoredProvider { realm, entry, .. } = provided;
        let config = self.looked_up(realm, entry)?;
        if self.parts.ourselves.are(&config) {
            let what = format!("`{}` leads back to this server", entry.name);
            let mistake = Mistake::error(what).hint("its tools are here already");
            return Err(entry.place.mistake(mistake));
        }
        let is_same = |member: &Member| {
            member.facts.name != entry.name && member.facts.prefix == config.prefix
        };
        let other = self.members(realm).into_iter().find(is_same);
        match other.filter(|_| !config.prefix.is_empty()) {
            None => Ok(config),
            Some(Member { facts, .. }) => {
                let prefix = &config.prefix;
                let other = facts.name;
                let origin = facts.origin;
                let what = format!("the tools of `{other}` ({origin}) begin with `{prefix}`, too");
                Err(entry.place.mistake(Mistake::error(what).hint("give it another `prefix`")))
            }
        }
    }

    /// A stored provider with the variables that its realm may use.
    fn looked_up(&self, realm: &RealmId, entry: &Entry) -> Result<UpstreamConfig, Mistake> {
        let directory = self.parts.identity.directory();
        let settings = directory.realms.0.get(realm);
        let listed = settings.and_then(|own| own.variables.as_deref());
        let refused = Cell::new(None);
        let variables = |name: &str| {
            if stored::may_name(realm, listed, name) {
                return (self.parts.variables)(name);
            }
            refused.set(Some(name.to_owned()));
            None
        };
        let config = config_of(entry, &variables);
        config.map_err(|mistake| match refused.take() {
            Some(name) => entry.place.mistake(stored::not_its_own(realm, &name)),
            None => mistake,
        })
    }

    /// Does this to its end, also where the one who asked for it goes away meanwhile: what is
    /// stored and what runs for it change together. Nothing only where the server is ending.
    pub async fn to_the_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (done, answer) = oneshot::channel();
        let working = async move {
            // The one who asked may be gone.
            let _ = done.send(work.await);
        };
        self.parts.remote.spawn.task("stored providers", Box::pin(working));
        answer.await.ok()
    }

    /// Starts a stored provider in the place of the one of its name; one that is left alone is only
    /// shown, and one that runs just so continues. The caller holds `changing`.
    pub async fn begin(&self, provided: &StoredProvider, config: UpstreamConfig) {
        let StoredProvider { realm, entry, .. } = provided;
        if !entry.is_disabled() && self.runs_as(realm, entry, &config) {
            return;
        }
        self.end(realm, &entry.name).await;
        self.parts.engine.catalog().own_upstream(realm, &entry.name, provided.beginning());
        let running = (!entry.is_disabled()).then(|| self.started(provided, config));
        let upstream =
            running.as_ref().and_then(|running| running.remote.upstreams().first().cloned());
        let member = Member { facts: entry.facts(), upstream };
        let kept = StoredUpstream { member, running };
        self.stored().entry(realm.clone()).or_default().insert(entry.name.clone(), kept);
    }

    /// Starts to connect to a stored provider.
    fn started(&self, provided: &StoredProvider, config: UpstreamConfig) -> RunningUpstream {
        let StoredProvider { realm, entry, is_inside } = provided;
        let parts = match self.place(realm, &entry.name) {
            Some(place) => self.parts.remote.kept_at(&place),
            None => self.parts.remote.clone(),
        };
        let parts = if *is_inside { parts } else { parts.only_public() };
        let remote = Arc::new(Remote::start(vec![config], parts));
        let stop = watch::Sender::new(false);
        let upstream = remote.upstreams().first().cloned();
        let gone = upstream.map(|upstream| {
            let followed =
                FollowedUpstream { upstream: upstream.clone(), realm: Some(realm.clone()) };
            let (listed, gone) = follow(&self.parts, followed, stop.subscribe());
            self.await_first(StartingUpstream { upstream, listed });
            gone
        });
        // There is always the one that was given.
        let gone = gone.unwrap_or_else(|| oneshot::channel().1);
        RunningUpstream { remote, stop, gone }
    }

    /// Whether a stored provider runs with exactly this; then it is shown as the entry says.
    fn runs_as(&self, realm: &RealmId, entry: &Entry, config: &UpstreamConfig) -> bool {
        let mut stored = self.stored();
        let kept = stored.get_mut(realm).and_then(|own| own.get_mut(&entry.name));
        let Some(StoredUpstream { member, .. }) = kept else { return false };
        let is_same = member.upstream.as_ref().is_some_and(|known| known.config() == config);
        if is_same {
            member.facts = entry.facts();
        }
        is_same
    }

    /// Stops a stored provider; its tools are gone on return. The caller holds `changing`.
    pub async fn end(&self, realm: &RealmId, name: &str) {
        let kept = self.take(realm, name);
        self.parts.engine.catalog().disown_upstream(realm, name);
        if let Some(running) = kept.and_then(|kept| kept.running) {
            running.end().await;
        }
    }

    fn take(&self, realm: &RealmId, name: &str) -> Option<StoredUpstream> {
        let mut stored = self.stored();
        let kept = stored.get_mut(realm).and_then(|own| own.remove(name));
        stored.retain(|_, own| !own.is_empty());
        kept
    }

    /// Stops all stored providers of a realm that is removed.
    pub async fn end_realm(&self, realm: &RealmId) {
        let _changing = self.changing.lock().await;
        let names = self.stored().get(realm).map(|own| own.keys().cloned().collect::<Vec<_>>());
        for name in names.unwrap_or_default() {
            self.end(realm, &name).await;
        }
    }

    /// Starts what is stored for a realm that was made just now: one of that name may have been
    /// configured before. What cannot be used is reported and left out.
    pub async fn begin_realm(&self, realm: &RealmId) -> Result<Vec<Mistake>, Refusal> {
        let _changing = self.changing.lock().await;
        let is_configured = |name: &str| self.configured(realm, name).is_some();
        let definitions = self.parts.definitions.as_ref();
        let (providers, mistakes) = stored_providers(definitions, realm, is_configured).await?;
        Ok([mistakes, self.begin_all(&providers).await].concat())
    }

    /// Starts these; what cannot be used is reported and left out. The caller holds `changing`.
    pub async fn begin_all(&self, providers: &[StoredProvider]) -> Vec<Mistake> {
        let mut warnings = Vec::new();
        for provided in providers {
            match self.config_of(provided) {
                Ok(config) => self.begin(provided, config).await,
                Err(mistake) => warnings.push(left_out(mistake)),
            }
        }
        warnings
    }

    /// Forgets what logins at a stored provider brought, before that goes for good. The caller
    /// holds `changing`.
    pub async fn log_out(&self, realm: &RealmId, name: &str) {
        let stored =
            self.stored().get(realm).and_then(|own| own.get(name)?.member.upstream.clone());
        let Some(upstream) = stored else { return };
        let RemoteParts { clock, limits, .. } = &self.parts.remote;
        let ms = limits.upstream_connect_timeout_ms;
        match engine::timeout(clock.as_ref(), ms, upstream.log_out()).await {
            Some(Ok(())) => {}
            // One that has no logins says so too.
            Some(Err(fault)) => tracing::debug!(upstream = name, %fault, "it was not logged out"),
            None => tracing::warn!(upstream = name, "it could not be logged out in time"),
        }
    }

    /// Removes what is left of logins at a stored provider that was stopped for good: those that
    /// callers did for themselves.
    pub async fn forget_logins(&self, realm: &RealmId, name: &str) {
        let under = format!("{realm}/{name}/");
        if let Err(error) = self.parts.remote.vault.remove_all(&under).await {
            tracing::warn!(upstream = name, %error, "what logins brought is not removed");
        }
    }

    /// Stops everything; child processes are ended on return.
    pub async fn stop(&self) {
        self.ended.store(true, Ordering::SeqCst);
        let stored = std::mem::take(&mut *self.stored());
        let stored = stored.into_values().flatten().filter_map(|(_, kept)| kept.running);
        let remotes = stored.map(|running| running.remote).chain(self.configured_remotes());
        let stops = remotes.map(|remote| async move { remote.stop().await });
        futures::future::join_all(stops).await;
    }

    fn stored(&self) -> MutexGuard<'_, Stored> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
