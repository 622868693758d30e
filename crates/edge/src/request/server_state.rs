//! What every handler has at hand: the engine, the entrance, the upstreams, and the few things that
//! endpoints share.

use crate::backup::FolderBackup;
use crate::counters::{Answers, Reloads};
use crate::gateway::{Gateway, Member};
use crate::problem::{Failure, Result};
use crate::realms::keeper::RealmKeeper;
use crate::record_source::RecordSource;
use crate::request::answer::underway::Underway;
use crate::request::auth::{Entrance, Visitor};
use crate::request::cursors::Cursors;
use crate::request::rate::{CallerRates, SharedRate};
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use engine::refusal::{Quota, Refusal, RefusalCode};
use engine::{Engine, Share, ShareExhausted, Shares};
use futures::future::{pending, poll_fn, select};
use identity::{Identity, Standing, VerifiedCaller};
use kernel::contracts::Clock;
use kernel::contracts::policy::Resource;
use kernel::definition::pipeline::Pipeline;
use kernel::identity::roles::Role;
use kernel::identity::shares::SharedLimit;
use kernel::limits::Limits;
use kernel::tool::call::Caller;
use kernel::tool::rules::Pattern;
use kernel::values::caller::{Act, Scope};
use kernel::values::ids::{AgentName, Millis, RealmId};
use policy::CedarPolicy;
use project::realm::default_realm;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use telemetry::Telemetry;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// What all endpoints of one server share.
pub struct ServerState {
    /// What decides and does.
    pub engine: Engine,
    /// Who may come in.
    pub entrance: Entrance,
    /// Who is known. In local mode no one is asked for a key, and keys can be made.
    pub identity: Arc<Identity>,
    /// Who makes and removes realms.
    pub realms: Arc<RealmKeeper>,
    /// The servers behind this one.
    pub gateway: Arc<Gateway>,
    /// Copies of all that it keeps.
    pub backup: FolderBackup,
    /// Seals places in lists and in the feed.
    pub cursors: Cursors,
    /// The agent of requests that name none in the realm that every server has, where one is set.
    pub usual_agent: Option<AgentName>,
    /// Where events go, by name.
    pub sinks: Vec<SinkFacts>,
    /// The policies of files, where there can be some. In local mode they decide nothing.
    pub policies: Option<Arc<CedarPolicy>>,
    /// Whether there can be webhooks.
    pub has_webhooks: bool,
    /// Where there are types of records.
    pub records: Option<RecordSource>,
    /// One permit for each event stream that is open.
    pub streams: Arc<Semaphore>,
    stream_shares: Shares,
    /// One permit for each byte that bodies of requests may have together.
    pub bodies: Arc<Semaphore>,
    /// The requests under way, and their answers that wait to be read.
    pub underway: Underway,
    /// How many logins at upstreams are begun.
    pub logins_begun: CallerRates,
    /// How many people come back from one that is not under way.
    pub logins_returned: SharedRate,
    /// What is measured and traced.
    pub telemetry: Telemetry,
    /// What was answered, by status.
    pub answers: Answers,
    /// What became of files that changed.
    pub reloads: Arc<Reloads>,
    /// By which a client that can read our data folder recognises this server.
    pub token: String,
    /// The folder that holds the data, as an absolute path.
    pub data: PathBuf,
    /// When it all began.
    pub started: Millis,
    closing: watch::Sender<bool>,
}

/// The place of an open stream, among those of its caller and among all.
#[derive(Debug)]
pub struct StreamPlace {
    _share: Share,
    _place: OwnedSemaphorePermit,
}

/// What the settings say of a sink; how it is, the engine knows.
#[derive(Debug, Clone)]
pub struct SinkFacts {
    pub name: String,
    /// What it is, in the word of the settings.
    pub kind: &'static str,
    /// Where it leads, without secrets.
    pub target: Option<String>,
    /// The types that go there; all where nothing is said.
    pub types: Option<Vec<Pattern>>,
}

/// The state as handlers get it.
pub type Shared = Arc<ServerState>;

/// What the handlers of an endpoint have at hand: the state of the server, and what is its own
/// beside it.
pub trait EndpointState: Send + Sync {
    fn server(&self) -> &Shared;
}

impl EndpointState for Shared {
    fn server(&self) -> &Shared {
        self
    }
}

impl<T: EndpointState> EndpointState for Arc<T> {
    fn server(&self) -> &Shared {
        (**self).server()
    }
}

impl ServerState {
    /// The state around this engine and these upstreams, with what makes realms and backups, seals
    /// places and measures.
    pub fn new(
        engine: Engine,
        entrance: Entrance,
        realms: Arc<RealmKeeper>,
        gateway: Arc<Gateway>,
        backup: FolderBackup,
        cursors: Cursors,
        telemetry: Telemetry,
    ) -> Self {
        let limits = engine.limits();
        let login_shares = engine.shares(SharedLimit::Logins);
        let logins_begun = CallerRates::new("logins", limits.logins_per_minute, login_shares);
        Self {
            entrance,
            identity: realms.identity.clone(),
            realms,
            gateway,
            backup,
            cursors,
            usual_agent: None,
            sinks: Vec::new(),
            policies: None,
            has_webhooks: false,
            records: None,
            streams: Arc::new(Semaphore::new(limits.streams_max)),
            stream_shares: engine.shares(SharedLimit::Streams),
            bodies: Arc::new(Semaphore::new(bodies_bytes(limits))),
            underway: Underway::new(&engine),
            logins_begun,
            logins_returned: SharedRate::per_minute(limits.logins_per_minute),
            telemetry,
            answers: Answers::default(),
            reloads: Arc::default(),
            token: format!("{:032x}", engine.entropy().bits()),
            data: PathBuf::new(),
            started: engine.clock().now(),
            closing: watch::Sender::new(false),
            // The last: the others are made with it.
            engine,
        }
    }

    /// The agent of requests in this realm that name none, where one is set.
    pub fn default_agent(&self, realm: &RealmId) -> Option<AgentName> {
        let directory = self.identity.directory();
        let own = directory.realms.0.get(realm).and_then(|own| own.default_agent.clone());
        let usual = || self.usual_agent.clone().filter(|_| *realm == default_realm());
        own.or_else(usual)
    }

    /// Whom requests are for that name no one: the one that is set, else the only one there is.
    pub fn agent_of_nameless(&self, caller: &Caller) -> Option<AgentName> {
        let set = self.default_agent(&caller.realm);
        set.or_else(|| match self.engine.catalog().agents(caller).as_slice() {
            [only] => Some(only.agent.name.clone()),
            _ => None,
        })
    }

    /// The upstreams that this caller may read, judged at once.
    pub fn readable_upstreams(&self, caller: &Caller) -> Vec<Member> {
        let members = self.gateway.members(&caller.realm);
        self.engine
            .admin()
            .readable(caller, members, |member| Resource::Upstream(&member.facts.name))
    }

    pub fn limits(&self) -> &Limits {
        self.engine.limits()
    }

    /// The caller's pipeline whose route this is. They can change while we serve, so they are asked
    /// for.
    pub fn pipeline_at(&self, caller: &Caller, path: &str) -> Option<Arc<Pipeline>> {
        self.engine.catalog().pipeline_at(caller, path)
    }

    /// Waits until this credential is not good any more, or this realm is gone. Nothing is begun
    /// before it is polled.
    pub fn lapse(
        &self,
        verified: &Arc<VerifiedCaller>,
        realm: &RealmId,
    ) -> impl Future<Output = ()> + Send + use<> {
        let identity = self.identity.clone();
        let clock = self.engine.clock().clone();
        let verified = verified.clone();
        let realm = realm.clone();
        async move { lapsed(&identity, &*clock, &verified, &realm).await }
    }

    /// The same for an answer that most often is there before anything could lapse: after one wait
    /// for the body of its request. It is watched from the second wait on.
    pub async fn lapse_of_answer(&self, verified: &VerifiedCaller, realm: &RealmId) {
        next_poll().await;
        lapsed(&self.identity, &**self.engine.clock(), verified, realm).await;
    }

    /// Room for one more stream of this caller; else why there is none, which says nothing where
    /// all share one limit.
    pub fn free_stream(&self, caller: &Caller) -> Result<StreamPlace, Option<ShareExhausted>> {
        let share = self.stream_shares.try_take(caller).map_err(Some)?;
        match self.streams.clone().try_acquire_owned() {
            Ok(place) => Ok(StreamPlace { _share: share, _place: place }),
            Err(_) => Err(self.stream_shares.crowded(caller)),
        }
    }

    /// How many streams this caller may have open, where it has a share.
    pub fn stream_quota(&self, caller: &Caller) -> Option<Quota> {
        self.stream_shares.crowded(caller).map(|full| full.quota())
    }

    /// Streams end: the server is closing.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Wakes when the server is closing.
    pub fn closing(&self) -> Closing {
        Closing(self.closing.subscribe())
    }
}

async fn lapsed(
    identity: &Identity,
    clock: &dyn Clock,
    verified: &VerifiedCaller,
    realm: &RealmId,
) {
    // Before the first look: what changes after it wakes us.
    let mut changed = identity.changed();
    while identity.has_realm(realm)
        && let Standing::Good { until } = identity.standing(verified)
    {
        let ends = async {
            match until {
                Some(until) => clock.sleep_until(until).await,
                None => pending().await,
            }
        };
        let _ = select(pin!(changed.changed()), pin!(ends)).await;
    }
}

/// Waits for the next poll of its task, which it asks for: no event needs to come in between.
async fn next_poll() {
    let mut is_next = false;
    poll_fn(|context| {
        if std::mem::replace(&mut is_next, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// How many bytes bodies may have together: at least one body fits.
fn bodies_bytes(limits: &Limits) -> usize {
    limits.bodies_bytes_max.max(limits.body_bytes_max).min(Semaphore::MAX_PERMITS)
}

/// Wakes when the server is closing.
pub struct Closing(watch::Receiver<bool>);

impl Closing {
    /// Waits for it.
    pub async fn begun(&mut self) {
        // The sender lives as long as the state; if it is gone, so is the server.
        let _ = self.0.wait_for(|closing| *closing).await;
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Visitor {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self> {
        visitor(parts).cloned()
    }
}

/// Who calls, as the frame established it, and the state of the server.
pub struct Who {
    pub server: Shared,
    pub caller: Arc<Caller>,
}

impl<S: EndpointState> FromRequestParts<S> for Who {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let caller = visitor(parts)?.caller.clone();
        Ok(Self { server: state.server().clone(), caller })
    }
}

/// A caller who may administer. Asked for before a body is read: a stranger learns nothing of it.
pub struct Administrator {
    pub server: Shared,
    pub caller: Arc<Caller>,
}

impl FromRequestParts<Shared> for Administrator {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, server: &Shared) -> Result<Self> {
        let caller = visitor(parts)?.administrator.clone();
        let caller = caller.ok_or_else(|| server.entrance.no_administrator())?;
        Ok(Self { server: server.clone(), caller })
    }
}

/// Who sends this request.
pub(super) fn visitor(parts: &Parts) -> Result<&Visitor> {
    // Every route is in the frame: without it no one may come in.
    parts.extensions.get::<Visitor>().ok_or_else(no_caller)
}

/// Refuses who does not administer the whole server: this is of no realm, or of all of them.
pub fn for_whole_server(server: &ServerState, visitor: &Visitor, what: &str) -> Result<()> {
    if visitor.is_everywhere(&[Role::Admin]) {
        return Ok(());
    }
    let message = format!("{what} needs the role `admin` in `*`");
    let act = Act::Administer;
    let caller = visitor.foremost();
    server.engine.audits().note_beyond(caller, act, message.clone());
    let code = RefusalCode::Forbidden(act);
    Err(Refusal::new(code, message).hint("ask an administrator of the server").into())
}

/// What is answered where it must be known who calls, and is not.
pub fn no_caller() -> Failure {
    let message = "this endpoint is outside the frame, so its caller is unknown";
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "no_caller", message)
}

/// The scope that the credential of a caller does not have for an act, if one is missing: then the
/// caller is refused, and the audit keeps that.
pub fn missing_scope(server: &ServerState, caller: &Caller, act: Act) -> Option<Scope> {
    let _missing = caller.scopes.filter(|scopes| !scopes.allow(act))?;
    server.engine.audits().note_out_of_scope(caller, act);
    Some(act.scope())
}

/// Refuses to change an agent that a file brings.
pub fn refuse_filed_agent(server: &ServerState, caller: &Caller, name: &AgentName) -> Result<()> {
    let known = server.engine.catalog().agent(caller, name);
    if known.is_none_or(|known| known.version.is_some()) {
        return Ok(());
    }
    let message = format!("agent `{name}` is in a file of the project, and changed only there");
    Err(Refusal::new(RefusalCode::AgentInFile, message)
        .hint("change the file in `agents/` and start the server again, or use another `refName`")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Wake, Waker};

    /// Notes that it was woken.
    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn waiting_for_the_next_poll_wakes_its_own_task() {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let mut context = Context::from_waker(&waker);
        let mut waiting = pin!(next_poll());
        assert_eq!(waiting.as_mut().poll(&mut context), Poll::Pending);
        assert!(woken.0.load(Ordering::Relaxed), "nobody would poll it again");
        assert_eq!(waiting.as_mut().poll(&mut context), Poll::Ready(()));
    }
}
