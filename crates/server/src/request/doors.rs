//! What every handler has at hand: the engine, the entrance, the upstreams, and the few things that
//! doors share.

use crate::counters::{Answers, Reloads};
use crate::gateway::Gateway;
use crate::problem::{Failure, Result};
use crate::realms::keeper::RealmKeeper;
use crate::request::answer::documents::{CardInputs, Documents};
use crate::request::answer::underway::Underway;
use crate::request::auth::{Entrance, Visitor};
use crate::request::choice::ChooseSkill;
use crate::request::cursors::Cursors;
use crate::request::push::PushParts;
use crate::request::rate::{CallerRates, SharedRate};
use crate::secrets::card_keys::CardKeys;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use engine::refusal::{Quota, Refusal, RefusalCode};
use engine::{Engine, Share, ShareExhausted, Shares};
use futures::future::{pending, poll_fn, select};
use identity::{Identity, Standing, VerifiedCaller};
use kernel::contracts::Clock;
use kernel::contracts::backup::Backup;
use kernel::definition::pipeline::Pipeline;
use kernel::identity::roles::Role;
use kernel::identity::shares::SharedLimit;
use kernel::limits::Limits;
use kernel::tool::call::Caller;
use kernel::tool::rules::Pattern;
use kernel::values::caller::{Act, Scope};
use kernel::values::ids::{AgentName, ContentHash, Millis, RealmId};
use policy::CedarPolicy;
use project::a2a_serving::A2aServing;
use project::realm::default_realm;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use telemetry::Telemetry;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// The doors of one server.
pub(crate) struct Doors {
    /// What decides and does.
    pub(crate) engine: Engine,
    /// Who may come in.
    pub(crate) entrance: Entrance,
    /// Who is known. In local mode no one is asked for a key, and keys can be made.
    pub(crate) identity: Arc<Identity>,
    /// Who makes and removes realms.
    pub(crate) realms: Arc<RealmKeeper>,
    /// The servers behind this one.
    pub(crate) gateway: Arc<Gateway>,
    /// Copies of all that it keeps.
    pub(crate) backup: Arc<dyn Backup>,
    /// Seals places in lists and in the feed.
    pub(crate) cursors: Cursors,
    /// The agent of requests that name none in the realm that every server has, where one is set.
    pub(crate) usual_agent: Option<AgentName>,
    /// Where events go, by name.
    pub(crate) sinks: Vec<SinkFacts>,
    /// The policies of files, where there can be some. In local mode they decide nothing.
    pub(crate) policies: Option<Arc<CedarPolicy>>,
    /// How agents of others call this server.
    pub(crate) a2a: A2aServing,
    /// What signs the cards that they read.
    pub(crate) card_keys: Arc<CardKeys>,
    /// The cards themselves, and those of AgentVault's profile.
    pub(crate) cards: Documents<CardInputs>,
    pub(crate) vault_cards: Documents<CardInputs>,
    /// Those of callers with credentials, as clients of 1.0 alone read them.
    pub(crate) extended_cards: Documents<CardInputs>,
    /// `/openapi.json`, by the hash of the pipelines in it.
    pub(crate) descriptions: Documents<ContentHash>,
    /// Which skill their messages are for, where the host program knows.
    pub(crate) choose_skill: Option<ChooseSkill>,
    /// What webhooks of A2A are kept and posted with; none where there are no webhooks.
    pub(crate) push: Option<Arc<PushParts>>,
    /// One permit for each stream of A2A that is open.
    pub(crate) a2a_streams: Arc<Semaphore>,
    /// One permit for each event stream that is open.
    pub(crate) streams: Arc<Semaphore>,
    stream_shares: Shares,
    /// One permit for each byte that bodies of requests may have together.
    pub(crate) bodies: Arc<Semaphore>,
    /// The requests under way, and their answers that wait to be read.
    pub(crate) underway: Underway,
    /// How many logins at upstreams are begun.
    pub(crate) logins_begun: CallerRates,
    /// How many people come back from one that is not under way.
    pub(crate) logins_returned: SharedRate,
    /// What is measured and traced.
    pub(crate) telemetry: Telemetry,
    /// What was answered, by status.
    pub(crate) answers: Answers,
    /// What became of files that changed.
    pub(crate) reloads: Arc<Reloads>,
    /// By which a client that can read our data folder recognises this server.
    pub(crate) token: String,
    /// The folder that holds the data, as an absolute path.
    pub(crate) data: PathBuf,
    /// When it all began.
    pub(crate) started: Millis,
    closing: watch::Sender<bool>,
}

/// The place of an open stream, among those of its caller and among all.
#[derive(Debug)]
pub(crate) struct StreamPlace {
    _share: Share,
    _place: OwnedSemaphorePermit,
}

/// What the settings say of a sink; how it is, the engine knows.
#[derive(Debug, Clone)]
pub(crate) struct SinkFacts {
    pub(crate) name: String,
    /// What it is, in the word of the settings.
    pub(crate) kind: &'static str,
    /// Where it leads, without secrets.
    pub(crate) target: Option<String>,
    /// The types that go there; all where nothing is said.
    pub(crate) types: Option<Vec<Pattern>>,
}

/// The doors as handlers get them.
pub(crate) type Shared = Arc<Doors>;

impl Doors {
    /// Doors before this engine and these upstreams, with what makes realms and backups, seals
    /// places and measures.
    pub(crate) fn new(
        engine: Engine,
        entrance: Entrance,
        realms: Arc<RealmKeeper>,
        gateway: Arc<Gateway>,
        backup: Arc<dyn Backup>,
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
            a2a: A2aServing::default(),
            card_keys: Arc::new(CardKeys::none()),
            cards: Documents::default(),
            vault_cards: Documents::default(),
            extended_cards: Documents::default(),
            descriptions: Documents::default(),
            choose_skill: None,
            push: None,
            a2a_streams: Arc::new(Semaphore::new(limits.a2a_streams_max)),
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
    pub(crate) fn default_agent(&self, realm: &RealmId) -> Option<AgentName> {
        let directory = self.identity.directory();
        let own = directory.realms.0.get(realm).and_then(|own| own.default_agent.clone());
        let usual = || self.usual_agent.clone().filter(|_| *realm == default_realm());
        own.or_else(usual)
    }

    pub(crate) fn limits(&self) -> &Limits {
        self.engine.limits()
    }

    /// The caller's pipeline whose route this is. They can change while we serve, so they are asked
    /// for.
    pub(crate) fn pipeline_at(&self, caller: &Caller, path: &str) -> Option<Arc<Pipeline>> {
        self.engine.catalog().pipeline_at(caller, path)
    }

    /// Waits until this credential is not good any more, or this realm is gone. Nothing is begun
    /// before it is polled.
    pub(crate) fn lapse(
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
    pub(crate) async fn lapse_of_answer(&self, verified: &VerifiedCaller, realm: &RealmId) {
        next_poll().await;
        lapsed(&self.identity, &**self.engine.clock(), verified, realm).await;
    }

    /// Room for one more stream of this caller; else why there is none, which says nothing where
    /// all share one limit.
    pub(crate) fn free_stream(
        &self,
        caller: &Caller,
    ) -> Result<StreamPlace, Option<ShareExhausted>> {
        let share = self.stream_shares.try_take(caller).map_err(Some)?;
        match self.streams.clone().try_acquire_owned() {
            Ok(place) => Ok(StreamPlace { _share: share, _place: place }),
            Err(_) => Err(self.stream_shares.crowded(caller)),
        }
    }

    /// How many streams this caller may have open, where it has a share.
    pub(crate) fn stream_quota(&self, caller: &Caller) -> Option<Quota> {
        self.stream_shares.crowded(caller).map(|full| full.quota())
    }

    /// Streams end: the server is closing.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Wakes when the server is closing.
    pub(crate) fn closing(&self) -> Closing {
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
pub(crate) struct Closing(watch::Receiver<bool>);

impl Closing {
    /// Waits for it.
    pub(crate) async fn begun(&mut self) {
        // The sender lives as long as the doors; if it is gone, so is the server.
        let _ = self.0.wait_for(|closing| *closing).await;
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Visitor {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self> {
        visitor(parts).cloned()
    }
}

/// Who calls, as the frame established it, and at which doors.
pub(crate) struct Who {
    pub(crate) doors: Shared,
    pub(crate) caller: Arc<Caller>,
}

impl FromRequestParts<Shared> for Who {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, doors: &Shared) -> Result<Self> {
        let caller = visitor(parts)?.caller.clone();
        Ok(Self { doors: doors.clone(), caller })
    }
}

/// A caller who may administer. Asked for before a body is read: a stranger learns nothing of it.
pub(crate) struct Administrator {
    pub(crate) doors: Shared,
    pub(crate) caller: Arc<Caller>,
}

impl FromRequestParts<Shared> for Administrator {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, doors: &Shared) -> Result<Self> {
        let caller = visitor(parts)?.administrator.clone();
        let caller = caller.ok_or_else(|| doors.entrance.no_administrator())?;
        Ok(Self { doors: doors.clone(), caller })
    }
}

/// Who sends this request.
fn visitor(parts: &Parts) -> Result<&Visitor> {
    // Every door is in the frame: without it no one may come in.
    parts.extensions.get::<Visitor>().ok_or_else(no_caller)
}

/// Refuses who does not administer the whole server: this is of no realm, or of all of them.
pub(crate) fn for_whole_server(doors: &Doors, visitor: &Visitor, what: &str) -> Result<()> {
    if visitor.is_everywhere(&[Role::Admin]) {
        return Ok(());
    }
    let message = format!("{what} needs the role `admin` in `*`");
    let act = Act::Administer;
    let caller = visitor.foremost();
    doors.engine.audits().note_beyond(caller, act, message.clone());
    let code = RefusalCode::Forbidden(act);
    Err(Refusal::new(code, message).hint("ask an administrator of the server").into())
}

/// What is answered where it must be known who calls, and is not.
pub(crate) fn no_caller() -> Failure {
    let message = "this endpoint is outside the frame, so its caller is unknown";
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "no_caller", message)
}

/// The scope that the credential of a caller does not have for an act, if one is missing: then the
/// caller is refused, and the audit keeps that.
pub(crate) fn missing_scope(doors: &Doors, caller: &Caller, act: Act) -> Option<Scope> {
    let _missing = caller.scopes.filter(|scopes| !scopes.allow(act))?;
    doors.engine.audits().note_out_of_scope(caller, act);
    Some(act.scope())
}

#[cfg(test)]
mod tests;
