//! The upstreams while they run: started, kept in the catalog, shown and stopped. What is
//! configured is there from the start to the end; what is stored comes and goes.

use engine::refusal::Refusal;
use engine::{Engine, ListChanges, ToolSource};
use futures::future::{Either, select};
use kernel::contracts::{Definitions, Spawn, Tool};
use kernel::definition::plan::mistake::{Mistake, Severity};
use kernel::values::datum::value_weight;
use kernel::values::fault::Fault;
use kernel::values::ids::RealmId;
use project::upstream_entries::{Entry, Facts, Ourselves, config_of, stored};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, oneshot, watch};
use upstreams::{Changed, LoginPlaces, Remote, RemoteParts, Returned, Upstream, UpstreamConfig};

/// Looks a variable of the environment up.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What a `Remote` calls the fault of a login that is not its own.
const NOT_FOUND: &str = "LoginNotFound";

/// What a gateway is made of.
pub(crate) struct GatewayParts {
    /// What has the catalog.
    pub(crate) engine: Engine,
    /// Where stored providers are.
    pub(crate) definitions: Arc<dyn Definitions>,
    /// What upstreams are built from.
    pub(crate) remote: RemoteParts,
    /// The variables that stored providers may name.
    pub(crate) variables: Lookup,
    /// How this server itself is reached.
    pub(crate) ourselves: Ourselves,
}

/// The upstreams of one server.
pub(crate) struct Gateway {
    parts: GatewayParts,
    configured: Arc<Remote>,
    /// What is configured, also what is left alone.
    members: Vec<Member>,
    stored: Mutex<BTreeMap<String, Kept>>,
    /// What was started and is not in the catalog yet; nothing once that is watched.
    coming: Mutex<Option<Vec<Coming>>>,
    /// What is stored changes one by one, with what runs for it.
    pub(crate) changing: tokio::sync::Mutex<()>,
    /// Ends those who follow what is configured, when it is dropped.
    _following: watch::Sender<bool>,
}

/// An upstream as it is shown; without one that runs it is left alone.
#[derive(Clone)]
pub(crate) struct Member {
    /// What may be shown of it.
    pub(crate) facts: Facts,
    /// It, while it runs.
    pub(crate) upstream: Option<Arc<Upstream>>,
}

/// A stored one.
struct Kept {
    member: Member,
    running: Option<Running>,
}

struct Running {
    remote: Arc<Remote>,
    stop: watch::Sender<bool>,
    /// Its tools are out of the catalog.
    gone: oneshot::Receiver<()>,
}

/// An upstream that was started.
struct Coming {
    upstream: Arc<Upstream>,
    /// Ends when its tools are in the catalog for the first time.
    listed: oneshot::Receiver<()>,
}

impl Gateway {
    /// Starts what is configured, and returns at once.
    pub(crate) fn start(
        parts: GatewayParts,
        entries: &[Entry],
        configs: Vec<UpstreamConfig>,
    ) -> Self {
        let configured = Arc::new(Remote::start(configs, parts.remote.clone()));
        let following = watch::Sender::new(false);
        let mut coming = Vec::new();
        for upstream in configured.upstreams() {
            // No one waits for the end of what is configured.
            let (listed, _) = follow(&parts, upstream.clone(), following.subscribe());
            coming.push(Coming { upstream: upstream.clone(), listed });
        }
        let running = |name: &str| {
            configured.upstreams().iter().find(|upstream| upstream.name() == name).cloned()
        };
        let member =
            |entry: &Entry| Member { upstream: running(&entry.name), facts: entry.facts() };
        let members = entries.iter().map(member).collect();
        Self {
            parts,
            members,
            configured,
            stored: Mutex::default(),
            coming: Mutex::new(Some(coming)),
            changing: tokio::sync::Mutex::default(),
            _following: following,
        }
    }

    /// Tells the engine when all that was started so far was heard, or is known to be away.
    pub(crate) fn watch_arrivals(&self) {
        let coming = self.coming().take().unwrap_or_default();
        let engine = self.parts.engine.clone();
        let arriving = async move {
            let arrivals = coming.into_iter().map(|Coming { upstream, listed }| async move {
                upstream.tried().await;
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

    fn await_first(&self, next: Coming) {
        if let Some(coming) = self.coming().as_mut() {
            coming.push(next);
        }
    }

    fn coming(&self) -> MutexGuard<'_, Option<Vec<Coming>>> {
        self.coming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All upstreams, by name.
    pub(crate) fn members(&self) -> Vec<Member> {
        let stored = self.stored();
        let of_store = stored.values().map(|kept| kept.member.clone());
        let mut all: Vec<Member> = self.members.iter().cloned().chain(of_store).collect();
        all.sort_by(|left, right| left.facts.name.cmp(&right.facts.name));
        all
    }

    /// All that run.
    pub(crate) fn running(&self) -> Vec<Arc<Upstream>> {
        let stored = self.stored();
        let members = self.members.iter().chain(stored.values().map(|kept| &kept.member));
        members.filter_map(|member| member.upstream.clone()).collect()
    }

    /// Where stored providers are.
    pub(crate) fn definitions(&self) -> &Arc<dyn Definitions> {
        &self.parts.definitions
    }

    /// The configured upstream of this name.
    pub(crate) fn configured(&self, name: &str) -> Option<&Facts> {
        self.members.iter().map(|member| &member.facts).find(|facts| facts.name == name)
    }

    /// Where logins come back to; nowhere without a door for them.
    pub(crate) fn places(&self) -> Option<&LoginPlaces> {
        self.parts.remote.login.as_ref()
    }

    /// Whether a login of this state is under way. All upstreams share one vault.
    pub(crate) async fn knows_login(&self, state: &str) -> bool {
        self.configured.knows_login(state).await
    }

    /// Someone came back from a login: the upstream that it was for. Each stored provider has its
    /// own `Remote`, and one that does not know a login says so and leaves it to the others.
    pub(crate) async fn finish_login(&self, returned: Returned) -> Result<Arc<Upstream>, Fault> {
        let of_store: Vec<Arc<Remote>> = {
            let stored = self.stored();
            let running = stored.values().filter_map(|kept| kept.running.as_ref());
            running.map(|running| running.remote.clone()).collect()
        };
        let mut finished = self.configured.finish_login(returned.clone()).await;
        for remote in of_store {
            match finished {
                Err(fault) if fault.name == NOT_FOUND => {
                    finished = remote.finish_login(returned.clone()).await;
                }
                other => return other,
            }
        }
        finished
    }

    /// What a stored provider leads to, if it can be used beside the others. The caller holds
    /// `changing`.
    pub(crate) fn config_of(&self, entry: &Entry) -> Result<UpstreamConfig, Mistake> {
        let lookup = self.parts.variables.clone();
        let variables = move |name: &str| stored::may_name(name).then(|| lookup(name)).flatten();
        let config = config_of(entry, &variables)?;
        if self.parts.ourselves.are(&config) {
            let what = format!("`{}` leads back to this server", entry.name);
            let mistake = Mistake::error(what).hint("its tools are here already");
            return Err(entry.place.mistake(mistake));
        }
        let is_same = |member: &Member| {
            member.facts.name != entry.name && member.facts.prefix == config.prefix
        };
        let other = self.members().into_iter().find(is_same);
        match other.filter(|_| !config.prefix.is_empty()) {
            None => Ok(config),
            Some(Member { facts, .. }) => {
                let (prefix, other, origin) = (&config.prefix, facts.name, facts.origin);
                let what = format!("the tools of `{other}` ({origin}) begin with `{prefix}`, too");
                Err(entry.place.mistake(Mistake::error(what).hint("give it another `prefix`")))
            }
        }
    }

    /// Does this to its end, also where the one who asked for it goes away meanwhile: what is
    /// stored and what runs for it change together. Nothing only where the server is ending.
    pub(crate) async fn to_the_end<T: Send + 'static>(
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
    pub(crate) async fn begin(&self, entry: &Entry, config: UpstreamConfig) {
        if !entry.is_disabled() && self.runs_as(entry, &config) {
            return;
        }
        self.end(&entry.name).await;
        let running = (!entry.is_disabled()).then(|| {
            let remote = Arc::new(Remote::start(vec![config], self.parts.remote.clone()));
            let stop = watch::Sender::new(false);
            let upstream = remote.upstreams().first().cloned();
            let gone = upstream.map(|upstream| {
                let (listed, gone) = follow(&self.parts, upstream.clone(), stop.subscribe());
                self.await_first(Coming { upstream, listed });
                gone
            });
            // There is always the one that was given.
            let gone = gone.unwrap_or_else(|| oneshot::channel().1);
            Running { remote, stop, gone }
        });
        let upstream =
            running.as_ref().and_then(|running| running.remote.upstreams().first().cloned());
        let member = Member { facts: entry.facts(), upstream };
        self.stored().insert(entry.name.clone(), Kept { member, running });
    }

    /// Whether a stored provider runs with exactly this; then it is shown as the entry says.
    fn runs_as(&self, entry: &Entry, config: &UpstreamConfig) -> bool {
        let mut stored = self.stored();
        let Some(Kept { member, .. }) = stored.get_mut(&entry.name) else { return false };
        let is_same = member.upstream.as_ref().is_some_and(|known| known.config() == config);
        if is_same {
            member.facts = entry.facts();
        }
        is_same
    }

    /// Stops a stored provider; its tools are gone on return. The caller holds `changing`.
    pub(crate) async fn end(&self, name: &str) {
        let kept = self.stored().remove(name);
        let Some(Running { remote, stop, gone }) = kept.and_then(|kept| kept.running) else {
            return;
        };
        stop.send_replace(true);
        // An error means that its follower is gone, and its tools with it.
        let _ = gone.await;
        remote.stop().await;
    }

    /// Forgets what a login at a stored provider brought, before that goes for good. The caller
    /// holds `changing`.
    pub(crate) async fn log_out(&self, name: &str) {
        let upstream = self.stored().get(name).and_then(|kept| kept.member.upstream.clone());
        let Some(upstream) = upstream else { return };
        let RemoteParts { clock, limits, .. } = &self.parts.remote;
        let ms = limits.upstream_connect_timeout_ms;
        match engine::timeout(clock.as_ref(), ms, upstream.log_out()).await {
            Some(Ok(())) => {}
            // One that has no logins says so too.
            Some(Err(fault)) => tracing::debug!(upstream = name, %fault, "it was not logged out"),
            None => tracing::warn!(upstream = name, "it could not be logged out in time"),
        }
    }

    /// Stops everything; child processes are ended on return.
    pub(crate) async fn stop(&self) {
        let stored = std::mem::take(&mut *self.stored());
        let remotes = stored.into_values().filter_map(|kept| kept.running);
        let stops = futures::future::join_all(remotes.map(|running| async move {
            running.remote.stop().await;
        }));
        futures::future::join(self.configured.stop(), stops).await;
    }

    fn stored(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the catalog as the upstream is, until either ends. Wakes those who wait for its tools to
/// be there for the first time, and for that end.
fn follow(
    parts: &GatewayParts,
    upstream: Arc<Upstream>,
    mut stop: watch::Receiver<bool>,
) -> (oneshot::Receiver<()>, oneshot::Receiver<()>) {
    let (here, listed) = oneshot::channel::<()>();
    let (left, gone) = oneshot::channel();
    let source = format!("upstream `{}`", upstream.name());
    tell_opened(parts, source.clone(), upstream.opened_pages(), stop.clone());
    let (engine, spawn) = (parts.engine.clone(), parts.remote.spawn.clone());
    let following = async move {
        let mut changes = upstream.changes();
        let mut told: Vec<Mistake> = Vec::new();
        let mut here = Some(here);
        let mut seen: Option<Changed> = None;
        loop {
            // Seen before it is read: a change in between wakes us again.
            let version = *changes.borrow_and_update();
            if version > 0 {
                let now = upstream.changed();
                let before = seen.replace(now);
                if before.is_none_or(|before| before.tools != now.tools) {
                    let tools = ToolSource::new(source.as_str(), upstream.tools());
                    let tools = tools.of_upstream(upstream.name());
                    let mistakes = taken_in(&engine, spawn.as_ref(), tools).await;
                    for mistake in mistakes.iter().filter(|mistake| !told.contains(mistake)) {
                        tracing::warn!(upstream = upstream.name(), "{mistake}");
                    }
                    told = mistakes;
                    upstream.count_tools(engine.tools().count_of(&source));
                    // Those who wait are woken when it goes.
                    drop(here.take());
                }
                let lists = since(now, before.unwrap_or_default());
                engine.catalog().tell_lists(upstream.name(), lists);
            }
            match select(pin!(changes.changed()), pin!(stop.changed())).await {
                Either::Left((Ok(()), _)) => {}
                Either::Left((Err(_), _)) | Either::Right(_) => break,
            }
        }
        engine.tools().replace(ToolSource::new(source, Vec::new()).of_upstream(upstream.name()));
        // No one waits for the end of what is configured.
        let _ = left.send(());
    };
    parts.remote.spawn.task("upstream tools", Box::pin(following));
    (listed, gone)
}

/// What clients are told of the other lists of an upstream; of its tools the catalog tells them.
fn since(now: Changed, before: Changed) -> ListChanges {
    ListChanges {
        tools: 0,
        prompts: now.prompts.saturating_sub(before.prompts),
        resources: now.resources.saturating_sub(before.resources),
    }
}

/// How many bytes of schemas are compiled at once. Most upstreams have fewer, and their tools can
/// be called as soon as they are shown as ready.
const AT_ONCE_BYTES: u64 = 256 * 1024;

fn is_quick(tools: &[Arc<dyn Tool>]) -> bool {
    let schemas = tools.iter().flat_map(|tool| {
        let spec = tool.spec();
        [Some(&spec.input_schema), spec.output_schema.as_ref()].into_iter().flatten()
    });
    schemas.map(|schema| value_weight(schema)).sum::<u64>() <= AT_ONCE_BYTES
}

/// Puts the tools of a source into the catalog, and gives back what is wrong with those that are
/// left out. Many schemas take their time to be compiled: not on a worker that serves others.
async fn taken_in(engine: &Engine, spawn: &dyn Spawn, tools: ToolSource) -> Vec<Mistake> {
    if is_quick(&tools.tools) {
        return engine.tools().replace(tools);
    }
    let (done, mistakes) = oneshot::channel();
    let engine = engine.clone();
    let taking = async move {
        // The receiver may be gone.
        let _ = done.send(engine.tools().replace(tools));
    };
    spawn.thread("upstream schemas", Box::pin(taking));
    mistakes.await.unwrap_or_default()
}

/// Tells the engine which pages of an upstream were opened, until either ends.
fn tell_opened(
    parts: &GatewayParts,
    source: String,
    mut opened: broadcast::Receiver<String>,
    mut stop: watch::Receiver<bool>,
) {
    let engine = parts.engine.clone();
    let telling = async move {
        while let Either::Left((heard, _)) = select(pin!(opened.recv()), pin!(stop.changed())).await
        {
            match heard {
                Ok(page) => engine.tools().page_opened(&source, &page),
                // Who waits for what was missed looks in their own time.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    };
    parts.remote.spawn.task("opened pages", Box::pin(telling));
}

/// The providers that are stored, and what is wrong with the others: a variable may be gone since,
/// and the rest must still serve.
pub(crate) async fn stored_entries(
    definitions: &dyn Definitions,
    realm: &RealmId,
    is_taken: impl Fn(&str) -> bool,
) -> Result<(Vec<Entry>, Vec<Mistake>), Refusal> {
    let (mut entries, mut mistakes) = (Vec::new(), Vec::new());
    for definition in definitions.list(realm, stored::KIND).await? {
        let name = definition.name.as_str();
        if is_taken(name) {
            let what = format!("the stored provider `{name}` is left out: its name is configured");
            mistakes.push(Mistake::warning(what).hint("remove it, or rename the configured one"));
            continue;
        }
        match stored::entry_of_body(name, definition.body) {
            Ok(entry) => entries.push(entry),
            Err(mistake) => mistakes.push(left_out(mistake)),
        }
    }
    Ok((entries, mistakes))
}

/// A mistake in what is stored does not keep the server from starting.
pub(crate) fn left_out(mistake: Mistake) -> Mistake {
    Mistake { severity: Severity::Warning, ..mistake }
}
