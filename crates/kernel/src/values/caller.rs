//! Callers: a subject in one realm, the acts that policy decides about, and the scopes that limit a
//! credential.

use crate::values::ids::{RealmId, SessionKey, Space};
use crate::values::named_enum::named;
use crate::values::trace::TraceParent;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Subject in local mode, where nothing has an owner.
pub const LOCAL: &str = "local";

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Caller {
    /// Whose data it may see.
    pub realm: RealmId,
    /// `local` in local mode.
    pub subject: Arc<str>,
    /// The actor, if it is not the subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Arc<str>>,
    /// The most that its credential allows; none is no ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Scopes>,
    /// Whether it may administer the realm.
    #[serde(default)]
    pub admin: bool,
    /// Others who could have its credential.
    #[serde(default, skip_serializing_if = "KeyMakers::is_empty")]
    pub makers: KeyMakers,
    /// How its request came in, if known.
    #[serde(skip)]
    pub via: Via,
}

/// Who made the key of a caller, or the text of it that was shown, where that is someone else than
/// the caller: each of them was shown that text, so what is done with it could be theirs. It is for
/// one question alone, whether another person answers; beside that a caller is the same whatever
/// key it comes with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyMakers(Option<Arc<[Arc<str>]>>);

impl KeyMakers {
    pub fn is_empty(&self) -> bool {
        self.subjects().next().is_none()
    }

    pub fn subjects(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.as_deref().unwrap_or_default().iter()
    }
}

impl FromIterator<Arc<str>> for KeyMakers {
    fn from_iter<I: IntoIterator<Item = Arc<str>>>(makers: I) -> Self {
        // Most often there is none, and nothing is allocated.
        let mut makers = makers.into_iter().peekable();
        Self(makers.peek().is_some().then(|| makers.collect()))
    }
}

impl PartialEq for KeyMakers {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for KeyMakers {}

impl Hash for KeyMakers {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

/// Where a request came in, the trace that it is a part of, and what it says of itself. It is for
/// the audit, and for who asks where a decision came from: a caller is the same wherever it calls.
#[derive(Debug, Clone, Default)]
pub struct Via(Option<Arc<RequestOrigin>>);

#[derive(Debug)]
struct RequestOrigin {
    door: String,
    trace: Option<TraceParent>,
    headers: BTreeMap<String, String>,
}

impl Via {
    /// By this endpoint: its kind and its route.
    pub fn new(door: String, trace: Option<TraceParent>) -> Self {
        Self::saying(door, trace, BTreeMap::new())
    }

    /// The same of a request with headers that say something of it. Nothing checks what.
    pub fn saying(
        door: String,
        trace: Option<TraceParent>,
        headers: BTreeMap<String, String>,
    ) -> Self {
        Self(Some(Arc::new(RequestOrigin { door, trace, headers })))
    }

    pub fn door(&self) -> Option<&str> {
        self.0.as_ref().map(|place| place.door.as_str())
    }

    /// The kind of the endpoint alone, such as `rest`.
    pub fn kind(&self) -> Option<&str> {
        self.door()?.split(' ').next()
    }

    /// The span of who called.
    pub fn trace(&self) -> Option<TraceParent> {
        self.0.as_ref()?.trace
    }

    /// Headers in which the request describes itself, if it has any.
    pub fn headers(&self) -> Option<&BTreeMap<String, String>> {
        self.0.as_ref().map(|place| &place.headers).filter(|headers| !headers.is_empty())
    }
}

impl PartialEq for Via {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Via {}

impl Hash for Via {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

impl Caller {
    /// A subject that calls for itself, with no ceiling, and administers nothing.
    pub fn new(realm: impl Into<RealmId>, subject: impl Into<Arc<str>>) -> Self {
        let realm = realm.into();
        let subject = subject.into();
        Self {
            realm,
            subject,
            actor: None,
            scopes: None,
            admin: false,
            makers: KeyMakers::default(),
            via: Via::default(),
        }
    }

    /// The same, administering its realm.
    #[must_use]
    pub fn administering(self) -> Self {
        Self { admin: true, ..self }
    }

    /// This caller as the principal that its realm acts as, if that acts as one: so it uses a login
    /// of one's own at another server. In local mode there is one person, who logs in for all.
    pub fn acting_as(&self, principal: Option<&Arc<str>>) -> Cow<'_, Self> {
        match principal.filter(|_| &*self.subject != LOCAL) {
            Some(principal) => Cow::Owned(Self { subject: principal.clone(), ..self.clone() }),
            None => Cow::Borrowed(self),
        }
    }

    /// The subject and its actor.
    pub fn hands(&self) -> impl Iterator<Item = &Arc<str>> {
        std::iter::once(&self.subject).chain(&self.actor)
    }

    /// Everyone who may be behind what it does: who acts, and who else could have its credential.
    pub fn people(&self) -> impl Iterator<Item = &Arc<str>> {
        self.hands().chain(self.makers.subjects())
    }

    /// Whose it is what this caller makes: the subject's; no one's in local mode.
    pub fn owner(&self) -> Option<Arc<str>> {
        (&*self.subject != LOCAL).then(|| self.subject.clone())
    }

    /// The session that this caller means by an id that it chose, or that was made for it.
    pub fn key(&self, space: Space, id: impl Into<Arc<str>>) -> SessionKey {
        let owner = if space.is_owned() { self.owner() } else { None };
        SessionKey { realm: self.realm.clone(), space, id: id.into(), owner }
    }
}

/// Who may answer an ask, if a policy narrows that.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Answerers {
    /// Lists of roles and principals, `role:x` and `principal:y`: who answers is in each. What
    /// policy says in general may have `owner` in it, for the subject that the run acts for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<Vec<String>>,
    /// Only someone else: not who started the run, called for it, or changed what it does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other: bool,
    /// The involved subjects, as of when it was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub involved: Vec<Arc<str>>,
    /// Makers of the keys of these subjects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub makers: Vec<Arc<str>>,
    /// Whether the lists are what policy says in general. Then they are shown, and decide nothing.
    #[serde(skip)]
    pub is_general: bool,
}

named! {
    /// Acts on resources, about which policy decides.
    Act {
        /// Starts a run of a plan.
        Run = "run",
        /// Says something to an agent.
        Talk = "talk",
        /// Submits a case to a pipeline.
        Submit = "submit",
        /// Calls a tool.
        Call = "call",
        /// Reads or lists.
        Read = "read",
        /// Cancels or pauses a run.
        Cancel = "cancel",
        /// Starts a run from a place in the history of another.
        Fork = "fork",
        /// Takes whole histories out.
        Export = "export",
        /// Saves a record.
        Save = "save",
        /// Removes a session, or a record.
        Remove = "remove",
        /// Answers an ask, or lets a run continue.
        Answer = "answer",
        /// Changes a plan, agent, pipeline or provider.
        Define = "define",
        /// Logs in at an upstream.
        LogIn = "log_in",
        /// Operates the server: checks, sinks, retention, reloads.
        Operate = "operate",
        /// Administers a realm or the server.
        Administer = "administer",
        /// Acts as another subject.
        Impersonate = "impersonate",
    }
}

impl Act {
    /// Whether a realm that acts as a principal does it as that one, too: what is begun with a
    /// thing of the catalog. Answering and administering are always the caller's own. What is done
    /// with records depends on the resource (`Request::is_run_as`).
    pub fn is_run_as(self) -> bool {
        matches!(self, Self::Run | Self::Talk | Self::Submit | Self::Call)
    }

    /// The scope that a credential needs for it.
    pub fn scope(self) -> Scope {
        match self {
            Self::Read | Self::Export => Scope::Read,
            Self::Run
            | Self::Talk
            | Self::Submit
            | Self::Call
            | Self::Cancel
            | Self::Fork
            | Self::Save
            | Self::Remove
            | Self::LogIn => Scope::Use,
            Self::Answer => Scope::Answer,
            Self::Define => Scope::Define,
            Self::Operate => Scope::Operate,
            Self::Administer | Self::Impersonate => Scope::Admin,
        }
    }
}

named! {
    /// Limits of a credential.
    Scope {
        /// Reading.
        Read = "read",
        /// Running, talking, submitting, calling, and what belongs to one's own runs.
        Use = "use",
        /// Answering asks.
        Answer = "answer",
        /// Changing definitions.
        Define = "define",
        /// Operating the server.
        Operate = "operate",
        /// Everything.
        Admin = "admin",
    }
}

/// The scopes of a credential. Each of them allows reading, only `admin` allows the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Scopes(u8);

impl Scopes {
    /// Whether this act is within them.
    pub fn allow(self, act: Act) -> bool {
        let needed = act.scope();
        self.has(Scope::Admin) || self.has(needed) || (needed == Scope::Read && self.0 != 0)
    }

    /// Whether this scope itself is among them.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }

    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.iter().copied().filter(move |scope| self.has(*scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | (1 << scope as u8)))
    }
}

impl Serialize for Scopes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Scope::name))
    }
}

impl<'de> Deserialize<'de> for Scopes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        let scope = |name: &String| {
            Scope::from_name(name).ok_or_else(|| D::Error::custom(format!("no scope `{name}`")))
        };
        names.iter().map(scope).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_realm_acts_as_a_principal_for_everyone_but_the_one_person_of_a_local_server() {
        let ann = Caller::new("r", "ann");
        let robot = Arc::<str>::from("robot");
        let lent = Caller { actor: Some("sue".into()), ..ann.clone() };
        assert_eq!(ann.acting_as(Some(&robot)).into_owned(), Caller::new("r", "robot"));
        assert_eq!(lent.acting_as(Some(&robot)).actor.as_deref(), Some("sue"));
        let local = Caller::new("r", LOCAL);
        assert_eq!((&*ann.acting_as(None), &*local.acting_as(Some(&robot))), (&ann, &local));
    }

    #[test]
    fn a_scope_allows_reading_and_only_its_own_acts() {
        let answers: Scopes = [Scope::Answer].into_iter().collect();
        assert!(answers.allow(Act::Read) && answers.allow(Act::Answer));
        assert!(!answers.allow(Act::Call) && !answers.allow(Act::Administer));
        let admin: Scopes = [Scope::Admin].into_iter().collect();
        assert!(Act::ALL.iter().all(|act| admin.allow(*act)));
        assert!(!Act::ALL.iter().any(|act| Scopes::default().allow(*act)));
    }

    #[test]
    fn scopes_are_written_by_name_and_read_back() {
        let scopes: Scopes = [Scope::Use, Scope::Answer].into_iter().collect();
        let text = serde_json::to_string(&scopes).unwrap();
        assert_eq!(text, r#"["use","answer"]"#);
        assert_eq!(serde_json::from_str::<Scopes>(&text).unwrap(), scopes);
        assert!(serde_json::from_str::<Scopes>(r#"["all"]"#).is_err());
    }

    #[test]
    fn chosen_ids_are_scoped_to_their_owner_except_in_local_mode() {
        let of = |who: &str| Caller::new("r", who);
        for space in [Space::session(), Space::thread(), Space::context()] {
            let key = |who: &str| of(who).key(space.clone(), "t");
            assert_eq!(key(LOCAL), SessionKey::new("r", space.clone(), "t"));
            assert_eq!(key("ann").owner.as_deref(), Some("ann"));
            assert_ne!(key("ann"), key("bob"));
        }
        let case = Space::case(&"cases".into());
        assert_eq!(of("ann").key(case.clone(), "7"), of("bob").key(case, "7"));
    }

    #[test]
    fn a_via_has_its_endpoint_its_span_and_request_details() {
        let said = BTreeMap::from([("x-agent-id".to_owned(), "a".to_owned())]);
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().ok();
        assert!(trace.is_some());
        for (trace, headers) in
            [(None, BTreeMap::new()), (trace, BTreeMap::new()), (None, said.clone()), (trace, said)]
        {
            let shown = Some(&headers).filter(|headers| !headers.is_empty());
            let via = Via::saying("mcp /mcp".to_owned(), trace, headers.clone());
            assert_eq!((via.door(), via.kind()), (Some("mcp /mcp"), Some("mcp")));
            assert_eq!((via.trace(), via.headers()), (trace, shown));
        }
        let unknown = Via::default();
        assert_eq!((unknown.door(), unknown.trace(), unknown.headers()), (None, None, None));
        assert_eq!(unknown.kind(), None);
    }

    #[test]
    fn caller_equality_ignores_the_endpoint() {
        let ann = Caller::new("r", "ann");
        let called = Caller { via: Via::new("rest /api/v1/keys".to_owned(), None), ..ann.clone() };
        assert_eq!(called.via.door(), Some("rest /api/v1/keys"));
        assert_eq!(called, ann);
        assert_eq!(serde_json::to_string(&called).unwrap(), serde_json::to_string(&ann).unwrap());
    }

    #[test]
    fn key_makers_do_not_change_a_callers_identity() {
        let ann = Caller::new("r", "ann");
        let makers: KeyMakers = [Arc::<str>::from("eve")].into_iter().collect();
        let lent = Caller { actor: Some("bot".into()), makers, ..ann.clone() };
        assert_eq!(lent.people().map(|one| &**one).collect::<Vec<_>>(), ["ann", "bot", "eve"]);
        let again = Caller { actor: None, ..lent.clone() };
        assert_eq!(again, ann);
        let text = serde_json::to_string(&lent).unwrap();
        let read: Caller = serde_json::from_str(&text).unwrap();
        assert_eq!(read.people().collect::<Vec<_>>(), lent.people().collect::<Vec<_>>(), "{text}");
        assert!(ann.makers.is_empty() && std::iter::empty().collect::<KeyMakers>().is_empty());
        assert!(!serde_json::to_string(&ann).unwrap().contains("makers"));
    }

    #[test]
    fn an_older_stored_caller_is_readable() {
        let caller: Caller =
            serde_json::from_str(r#"{"realm": "default", "subject": "ann"}"#).unwrap();
        assert_eq!(caller, Caller::new("default", "ann"));
    }
}
