//! The contract of policy: may this caller do this to that? All questions have one shape, whatever
//! is done: calling a tool, starting a run, answering an ask, reading a list.

use crate::identity::audit::Ruling;
use crate::identity::directory::Directory;
use crate::identity::realm::RealmSettings;
use crate::identity::roles::Target;
use crate::tool::call::{ToolSpec, Verdict};
use crate::values::caller::{Act, Answerers, Caller};
use crate::values::datum::Sources;
use crate::values::ids::RealmId;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// One question.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub act: Act,
    pub subject: &'a Caller,
    pub resource: Resource<'a>,
    /// What else is known.
    pub context: Context<'a>,
}

impl Request<'_> {
    /// Whether a realm that acts as a principal does it as that one, too: what is begun with a
    /// thing of the catalog, and all that is done with records. Answering and administering are
    /// always the caller's own.
    pub fn is_run_as(&self) -> bool {
        match self.resource {
            Resource::RecordType(_) => true,
            Resource::Tool(_)
            | Resource::Plan(_)
            | Resource::InlinePlan
            | Resource::Agent(_)
            | Resource::Pipeline(_) => self.act.is_run_as(),
            Resource::Session(_)
            | Resource::Ask { .. }
            | Resource::Blob(_)
            | Resource::Definition { .. }
            | Resource::Upstream(_)
            | Resource::Sink(_)
            | Resource::Principal(_)
            | Resource::Server => false,
        }
    }
}

/// What an act is done to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Resource<'a> {
    Tool(&'a ToolSpec),
    /// A plan of the catalog, by its id.
    Plan(&'a str),
    /// A plan that comes with the request. It has no name that could be trusted.
    InlinePlan,
    /// An agent, by its name.
    Agent(&'a str),
    /// A pipeline, by its name.
    Pipeline(&'a str),
    /// A session, or a run of it.
    Session(SessionFacts<'a>),
    /// What a run asks.
    Ask {
        /// Its kind, such as `approve`.
        kind: &'a str,
        /// The session of that run.
        session: SessionFacts<'a>,
    },
    /// A large value, by the hash of its content.
    Blob(&'a str),
    /// A stored definition.
    Definition {
        /// `plan`, `agent` or `provider`.
        kind: &'a str,
        name: &'a str,
        /// Who stored its newest version; `None` if unknown or not stored yet.
        defined_by: Option<&'a str>,
    },
    /// The records of a type, by its full name.
    RecordType(&'a str),
    /// A server whose tools, prompts and resources are offered here, by its name.
    Upstream(&'a str),
    /// Where events go, by its name.
    Sink(&'a str),
    /// Someone who is known by name, by the id: whom a caller acts as.
    Principal(&'a str),
    /// The realm as a whole: its feed, its figures, its retention.
    Server,
}

/// What policy knows of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionFacts<'a> {
    /// `None` if unknown.
    pub owner: Option<&'a str>,
    /// The space of its key.
    pub space: &'a str,
    /// The plan of its latest run.
    pub plan: Option<&'a str>,
    /// The agent that is talked to in it.
    pub agent: Option<&'a str>,
    /// The pipeline whose case it is.
    pub pipeline: Option<&'a str>,
    /// Its id in its space, for the audit: policy does not decide by it.
    pub id: Option<&'a str>,
}

impl<'a> SessionFacts<'a> {
    /// The same with its owner, where one is known.
    #[must_use]
    pub fn owned_by(self, owner: Option<&'a str>) -> Self {
        Self { owner: owner.or(self.owner), ..self }
    }
}

impl<'a> Resource<'a> {
    /// The same as this directory knows it: whose a session is by whichever identity of its owner,
    /// and who stored a definition.
    #[must_use]
    pub fn known_to(self, directory: &'a Directory) -> Self {
        let known = |facts: SessionFacts<'a>| {
            facts.owned_by(directory.owner(facts.owner, facts.pipeline.is_some()))
        };
        match self {
            Self::Session(facts) => Self::Session(known(facts)),
            Self::Ask { kind, session } => Self::Ask { kind, session: known(session) },
            Self::Definition { kind, name, defined_by } => {
                let defined_by = defined_by.map(|subject| directory.resolve(subject));
                Self::Definition { kind, name, defined_by }
            }
            _ => self,
        }
    }

    /// The target of this act for the built-in roles.
    pub fn target(&self, act: Act, subject: &str) -> Target {
        let is_own = |facts: &SessionFacts<'_>| facts.owner == Some(subject);
        match self {
            Self::Tool(spec) if spec.only_reads_records() => Target::RecordReader,
            Self::Tool(_)
            | Self::Plan(_)
            | Self::InlinePlan
            | Self::Agent(_)
            | Self::Pipeline(_) => Target::Catalog,
            // Its prompts and resources are there to be used, as its tools are.
            Self::Upstream(_) if act == Act::Read => Target::Catalog,
            Self::Session(facts) if is_own(facts) => Target::OwnSession,
            Self::Session(_) => Target::OtherSession,
            Self::Ask { session, .. } if is_own(session) => Target::OwnAsk,
            Self::Ask { .. } => Target::OtherAsk,
            Self::Blob(_) => Target::Blob,
            Self::RecordType(_) => Target::Records,
            Self::Definition { .. } => Target::Definition,
            Self::Upstream(_) | Self::Sink(_) => Target::Neighbour,
            Self::Principal(_) | Self::Server => Target::Server,
        }
    }
}

/// As messages name it.
impl fmt::Display for Resource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(spec) => write!(f, "tool `{}`", spec.name),
            Self::Plan(id) => write!(f, "plan `{id}`"),
            Self::InlinePlan => f.write_str("a plan of one's own"),
            Self::Agent(name) => write!(f, "agent `{name}`"),
            Self::Pipeline(name) => write!(f, "pipeline `{name}`"),
            Self::Session(_) => f.write_str("this session"),
            Self::Ask { .. } => f.write_str("this ask"),
            Self::Blob(hash) => write!(f, "blob `{hash}`"),
            Self::Definition { kind, name, .. } => write!(f, "the definition of {kind} `{name}`"),
            Self::RecordType(name) => write!(f, "records of type `{name}`"),
            Self::Upstream(name) => write!(f, "upstream `{name}`"),
            Self::Sink(name) => write!(f, "sink `{name}`"),
            Self::Principal(id) => write!(f, "principal `{id}`"),
            Self::Server => f.write_str("the server"),
        }
    }
}

/// What else is known of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'a> {
    /// The arguments of a call or the input of a run; none where it is only asked whether it could
    /// be allowed at all, with some arguments.
    pub arguments: Option<&'a Value>,
    /// Where the arguments came from, where that is known: a step of a plan knows it, and neither a
    /// direct call nor a model's.
    pub sources: Option<&'a Sources>,
    /// What led to it.
    pub trigger: Trigger,
}

/// What led to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Trigger {
    /// The caller itself, at an endpoint.
    #[default]
    Door,
    /// A run, which acts for who started it.
    Run,
}

/// What policy says of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether it may be done.
    pub verdict: Verdict,
    /// What must hold beside that.
    pub obligations: Vec<Obligation>,
    /// The version of the policies that said so.
    pub version: Option<Arc<str>>,
    /// The ids of the policies that decided; none where no policy permits it.
    pub policies: Vec<Arc<str>>,
}

impl Decision {
    /// It may be done, whatever else holds.
    pub fn allow() -> Self {
        Verdict::Allow.into()
    }

    /// Whether it may be done now.
    pub fn allows(&self) -> bool {
        self.verdict == Verdict::Allow
    }

    /// Whether it may be done now, or once a person approved it.
    pub fn shows(&self) -> bool {
        matches!(self.verdict, Verdict::Allow | Verdict::Ask(_))
    }

    /// Its verdict without a reason.
    pub fn ruling(&self) -> Ruling {
        match self.verdict {
            Verdict::Allow => Ruling::Allow,
            Verdict::Ask(_) => Ruling::Ask,
            Verdict::Deny(_) => Ruling::Deny,
        }
    }
}

impl Decision {
    /// Who may approve it, if an obligation narrows that.
    pub fn answerers(&self) -> Option<Answerers> {
        let mut narrowed = Answerers::default();
        for obligation in &self.obligations {
            match obligation {
                Obligation::Answerers(list) => {
                    narrowed.lists.push(list.iter().map(Answerer::to_string).collect());
                }
                Obligation::Other => narrowed.other = true,
                Obligation::Rows(_) | Obligation::Hide(_) => {}
            }
        }
        (narrowed != Answerers::default()).then_some(narrowed)
    }

    /// The queries that records must fit to exist for the caller: all of them.
    pub fn rows(&self) -> Vec<Arc<str>> {
        let mut found: Vec<Arc<str>> = Vec::new();
        for obligation in &self.obligations {
            match obligation {
                Obligation::Rows(query) if !found.contains(query) => found.push(query.clone()),
                _ => {}
            }
        }
        found
    }

    /// The fields of records that do not exist for the caller.
    pub fn hidden(&self) -> Vec<Arc<str>> {
        let mut found: Vec<Arc<str>> = Vec::new();
        for obligation in &self.obligations {
            let Obligation::Hide(fields) = obligation else { continue };
            for field in fields.iter() {
                if !found.contains(field) {
                    found.push(field.clone());
                }
            }
        }
        found
    }
}

impl From<Verdict> for Decision {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, obligations: Vec::new(), version: None, policies: Vec::new() }
    }
}

/// What must hold beside a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obligation {
    /// Only one of these answers what is asked.
    Answerers(Vec<Answerer>),
    /// Someone else than who started the run, or changed something in it, answers what is asked.
    Other,
    /// Only records that this query takes exist for the caller. Its variables are the caller's.
    Rows(Arc<str>),
    /// These fields of records do not exist for the caller.
    Hide(Arc<[Arc<str>]>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answerer {
    /// Everyone with this role.
    Role(Arc<str>),
    Principal(Arc<str>),
}

/// As asks and policies write it.
impl fmt::Display for Answerer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Role(name) => write!(f, "role:{name}"),
            Self::Principal(name) => write!(f, "principal:{name}"),
        }
    }
}

/// Decides who may do what. The caller's scopes are checked before and are not its concern.
pub trait Policy: Send + Sync {
    /// Decides one request. A tool that it allows with arguments of unknown sources it also shows
    /// without arguments.
    fn decide(&self, request: &Request<'_>) -> Decision;

    /// The ruling alone, which is all that most callers need.
    fn ruling(&self, request: &Request<'_>) -> Ruling {
        self.decide(request).ruling()
    }

    /// Decides one act on each resource, in order. Used for lists.
    fn decide_all(&self, subject: &Caller, act: Act, resources: &[Resource<'_>]) -> Vec<Decision> {
        let context = Context::default();
        let asked = |resource: &Resource<'_>| {
            self.decide(&Request { act, subject, resource: *resource, context })
        };
        resources.iter().map(asked).collect()
    }

    /// Who may answer what runs ask, as an inbox shows it where no policy narrows one ask: `owner`
    /// for the subject that the run acts for, `role:x` and `principal:y`. None where everyone may
    /// who sees it. It is shown, and decides nothing.
    fn answerers(&self) -> Option<Vec<String>> {
        None
    }

    /// Whether this caller is one whom a list of answerers names, as `role:x` or `principal:y`.
    fn is_named(&self, caller: &Caller, answerer: &str) -> bool {
        answerer.strip_prefix("principal:") == Some(&*caller.subject)
    }

    /// Whether this caller is another person than this subject: not the same one, not a key of the
    /// same maker, and not with a key that this one made. The admin key is never another.
    fn is_other(&self, caller: &Caller, subject: &str) -> bool {
        caller.people().all(|one| &**one != subject)
    }

    /// Whether this caller is another person than one who came with a key of this maker.
    fn is_other_than_maker(&self, caller: &Caller, maker: &str) -> bool {
        caller.people().all(|one| &**one != maker)
    }

    /// Its version: as long as that stays, the same question without arguments has the same answer,
    /// and may be remembered. None where nothing may be remembered.
    fn version(&self) -> Option<Arc<str>> {
        None
    }

    /// Settings of a realm that no verdict covers: enabled models, enabled agents, the number of
    /// records per search.
    fn settings(&self, _realm: &RealmId) -> RealmSettings {
        RealmSettings::default()
    }

    /// The principal that a realm acts as, if it does: what is begun there must be allowed to it as
    /// well as to the caller.
    fn acts_as(&self, _realm: &RealmId) -> Option<Arc<str>> {
        None
    }

    /// Whether it allows everything to everybody, so that no one needs to ask.
    fn allows_everything(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Allows what has this name.
    struct Only(&'static str);

    impl Policy for Only {
        fn decide(&self, request: &Request<'_>) -> Decision {
            match request.resource {
                Resource::Plan(id) if id == self.0 => Decision::allow(),
                _ => Verdict::Deny("another".to_owned()).into(),
            }
        }
    }

    #[test]
    fn verdicts_of_a_list_keep_its_order() {
        let ann = Caller::new("default", "ann");
        let plans = [Resource::Plan("a"), Resource::Plan("b"), Resource::InlinePlan];
        let said = Only("b").decide_all(&ann, Act::Run, &plans);
        let allowed: Vec<bool> = said.iter().map(Decision::allows).collect();
        assert_eq!(allowed, [false, true, false]);
    }

    #[test]
    fn row_filters_and_hidden_fields_of_a_decision_are_told_once() {
        let hide = |fields: &[&str]| {
            Obligation::Hide(fields.iter().map(|field| Arc::<str>::from(*field)).collect())
        };
        let rows = |query: &str| Obligation::Rows(query.into());
        let obligations = vec![
            rows("a:1"),
            hide(&["cost", "note"]),
            Obligation::Other,
            rows("b:2"),
            rows("a:1"),
            hide(&["margin", "cost"]),
        ];
        let decision = Decision { obligations, ..Decision::allow() };
        assert_eq!(decision.rows().join(" "), "a:1 b:2");
        assert_eq!(decision.hidden().join(" "), "cost note margin");
        assert!(Decision::allow().rows().is_empty() && Decision::allow().hidden().is_empty());
    }

    #[test]
    fn a_realm_that_acts_as_a_principal_reads_and_changes_records_as_that_one() {
        let ann = Caller::new("default", "ann");
        let is_run_as = |act: Act, resource: Resource<'_>| {
            let context = Context::default();
            Request { act, subject: &ann, resource, context }.is_run_as()
        };
        for act in [Act::Read, Act::Save, Act::Remove] {
            assert!(is_run_as(act, Resource::RecordType("shop.Order")), "{act:?}");
        }
        assert!(is_run_as(Act::Run, Resource::Plan("a")));
        assert!(!is_run_as(Act::Read, Resource::Plan("a")));
        assert!(!is_run_as(Act::Run, Resource::Server));
    }

    #[test]
    fn a_verdict_that_asks_shows_but_does_not_allow() {
        let said = |verdict: Verdict| {
            let decision = Decision::from(verdict);
            (decision.allows(), decision.shows(), decision.ruling())
        };
        assert_eq!(said(Verdict::Allow), (true, true, Ruling::Allow));
        assert_eq!(said(Verdict::Ask(String::new())), (false, true, Ruling::Ask));
        assert_eq!(said(Verdict::Deny(String::new())), (false, false, Ruling::Deny));
    }
}
