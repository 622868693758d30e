//! What a caller may do: the scopes of its credential first, then policy, for every act on every
//! resource. Handles ask here before they do anything. Where policy allows everything this is a
//! branch, and nothing is looked up for it. The servers behind this one are there for some realms:
//! in the others nobody may do anything with them, whatever policy says, and the catalog does not
//! find their tools.

use crate::catalog::no_plan;
use crate::catalog::roster::{KnownAgent, starting};
use crate::gate::Gate;
use crate::gate::list_cache::{ListCache, ListVersion};
use crate::refusal::{Refusal, RefusalCode, Result};
use kernel::ask::{Answerers, Ask, OWNER};
use kernel::contracts::policy::{Context, Decision, Request, Resource, SessionFacts};
use kernel::contracts::{FeedRow, Policy, SessionAsk, SessionRun};
use kernel::definition::agent::TALKS;
use kernel::definition::pipeline::Pipeline;
use kernel::definition::plan::Plan;
use kernel::identity::audit::Ruling;
use kernel::journal::projection::SessionRow;
use kernel::session::Run;
use kernel::tool::call::{Caller, ToolSpec, Verdict};
use kernel::values::caller::Act;
use kernel::values::fault::Fault;
use kernel::values::ids::{PlanId, SessionKey};
use serde_json::Value;
use std::sync::Arc;

/// Everyone may do everything: local mode.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

impl Policy for AllowAll {
    fn decide(&self, _request: &Request<'_>) -> Decision {
        Decision::allow()
    }

    fn allows_everything(&self) -> bool {
        true
    }
}

/// Whether the scopes of a caller's credential cover an act.
fn covers(caller: &Caller, act: Act) -> bool {
    caller.scopes.is_none_or(|scopes| scopes.allow(act))
}

/// The decision for an upstream of another realm.
fn of_another_realm() -> Decision {
    Verdict::Deny("the server belongs to another realm".to_owned()).into()
}

impl Gate {
    /// Whether nothing needs to be asked about this act of this caller.
    pub(crate) fn is_free(&self, caller: &Caller, act: Act) -> bool {
        self.policy.allows_everything()
            && covers(caller, act)
            && self.catalog.has_all_upstreams(&caller.realm)
    }

    /// Decides one request. Scopes are a ceiling: they forbid, and grant nothing.
    pub(crate) fn decide(&self, request: &Request<'_>) -> Decision {
        if !covers(request.subject, request.act) {
            let needed = request.act.scope().name();
            let why = format!("the credential does not have the scope `{needed}`");
            return Verdict::Deny(why).into();
        }
        if self.is_elsewhere(request.subject, &request.resource) {
            return of_another_realm();
        }
        self.policy.decide(request)
    }

    /// The ruling alone.
    pub(crate) fn ruling(&self, request: &Request<'_>) -> Ruling {
        let is_ours = covers(request.subject, request.act)
            && !self.is_elsewhere(request.subject, &request.resource);
        if is_ours { self.policy.ruling(request) } else { Ruling::Deny }
    }

    /// Decides one act on each of these resources.
    fn decide_all(&self, caller: &Caller, act: Act, resources: &[Resource<'_>]) -> Vec<Decision> {
        if !covers(caller, act) {
            return Vec::new();
        }
        let mut said = self.policy.decide_all(caller, act, resources);
        if !self.catalog.has_all_upstreams(&caller.realm) {
            let judged = said.iter_mut().zip(resources);
            let judged = judged.filter(|(_, resource)| self.is_elsewhere(caller, resource));
            judged.for_each(|(decision, _)| *decision = of_another_realm());
        }
        said
    }

    /// Whether it is a server behind this one that is not there for the caller's realm.
    fn is_elsewhere(&self, caller: &Caller, resource: &Resource<'_>) -> bool {
        let is_there = |name: &str| self.catalog.has_upstream(&caller.realm, name);
        matches!(resource, Resource::Upstream(name) if !is_there(name))
    }

    /// Decides a call of this tool.
    pub(crate) fn decide_call(
        &self,
        caller: &Caller,
        spec: &ToolSpec,
        context: Context<'_>,
    ) -> Decision {
        if self.is_free(caller, Act::Call) {
            return Decision::allow();
        }
        let resource = Resource::Tool(spec);
        self.decide(&Request { act: Act::Call, subject: caller, resource, context })
    }

    /// Whether this caller sees something that can be used: some call of a tool, some start of a
    /// plan, agent or pipeline is allowed, or asked about.
    pub(crate) fn sees(&self, caller: &Caller, resource: Resource<'_>) -> bool {
        let act = match resource {
            Resource::Tool(_) => Act::Call,
            Resource::Agent(_) => Act::Talk,
            Resource::Pipeline(_) => Act::Submit,
            _ => Act::Run,
        };
        let context = Context::default();
        self.is_free(caller, act)
            || self.ruling(&Request { act, subject: caller, resource, context }) != Ruling::Deny
    }

    /// Whether this caller reads it, which the audit keeps. What it may not read is for it like
    /// what is not there, and so is what could not be kept.
    pub(crate) fn reads(&self, caller: &Caller, resource: Resource<'_>) -> bool {
        if self.is_free(caller, Act::Read) {
            return true;
        }
        let context = Context::default();
        let request = Request { act: Act::Read, subject: caller, resource, context };
        let decision = self.decide(&request);
        self.note(&request, &decision).is_ok() && decision.allows()
    }

    /// Whether this caller could read it: only to choose the words in which something else is
    /// refused.
    pub(crate) fn could_read(&self, caller: &Caller, resource: Resource<'_>) -> bool {
        let context = Context::default();
        let request = Request { act: Act::Read, subject: caller, resource, context };
        self.is_free(caller, Act::Read) || self.ruling(&request) == Ruling::Allow
    }

    /// Whether this caller may answer what is asked.
    pub(crate) fn answers(&self, caller: &Caller, asked: &SessionAsk) -> bool {
        let act = Act::Answer;
        let resource = ask_of(asked);
        let context = Context::default();
        let narrowed = asked.row.ask.answerers.as_ref();
        self.is_free(caller, act)
            || self.decide(&Request { act, subject: caller, resource, context }).allows()
                && narrowed.is_none_or(|narrowed| self.fits(caller, narrowed))
    }

    /// Whether this caller is one of those that a policy narrowed an ask to.
    pub(super) fn fits(&self, caller: &Caller, narrowed: &Answerers) -> bool {
        let Answerers { lists, other, involved, makers, is_general } = narrowed;
        let is_in = |list: &Vec<String>| list.iter().any(|who| self.policy.is_named(caller, who));
        let is_named = *is_general || lists.iter().all(is_in);
        is_named && (!other || self.is_other(caller, involved, makers))
    }

    /// Whether this caller is none of those who had a hand in something, nor of those who made the
    /// keys that these came with.
    fn is_other<'a, I>(&self, caller: &Caller, involved: I, makers: I) -> bool
    where
        I: IntoIterator<Item = &'a Arc<str>>,
    {
        involved.into_iter().all(|one| self.policy.is_other(caller, one))
            && makers.into_iter().all(|maker| self.policy.is_other_than_maker(caller, maker))
    }

    /// Refuses an answer of who is not one of those that a policy narrowed an ask to, of a run as
    /// it is now.
    pub(crate) fn permit_narrowed(
        &self,
        caller: &Caller,
        ask: &Ask,
        run: Option<&Run>,
        resource: Resource<'_>,
    ) -> Result<()> {
        let Some(narrowed) = &ask.answerers else { return Ok(()) };
        // Someone may have changed something since it was asked.
        let is_other = |run: &Run| self.is_other(caller, run.involved(), run.makers());
        if self.fits(caller, narrowed) && (!narrowed.other || run.is_none_or(is_other)) {
            return Ok(());
        }
        let refusal = not_narrowed_to(caller, narrowed);
        let act = Act::Answer;
        let context = Context::default();
        let denied = Verdict::Deny(refusal.message.clone()).into();
        self.note(&Request { act, subject: caller, resource, context }, &denied)?;
        Err(refusal)
    }

    /// An ask with those who may answer it, as policy says it in general, unless a policy narrowed
    /// this one.
    pub(crate) fn with_answerers(&self, mut asked: SessionAsk) -> SessionAsk {
        let Ask { answerers, subject, .. } = &mut asked.row.ask;
        let is_narrowed = answerers.as_ref().is_some_and(|narrowed| !narrowed.lists.is_empty());
        if !is_narrowed && let Some(mut list) = self.policy.answerers() {
            list.retain(|who| who != OWNER || subject.is_some());
            let answerers = answerers.get_or_insert_default();
            answerers.lists = vec![list];
            answerers.is_general = true;
        }
        asked
    }

    /// Those of a page that this caller may read, judged at once.
    pub(crate) fn readable<T>(
        &self,
        caller: &Caller,
        mut items: Vec<T>,
        resource: impl Fn(&T) -> Resource<'_>,
    ) -> Vec<T> {
        if items.is_empty() || self.is_free(caller, Act::Read) {
            return items;
        }
        let resources: Vec<Resource<'_>> = items.iter().map(resource).collect();
        let mut read = self.read_of(caller, &resources).into_iter();
        items.retain(|_| read.next().unwrap_or(false));
        items
    }

    /// For each of these whether this caller may read it, judged at once.
    pub(crate) fn read_of(&self, caller: &Caller, resources: &[Resource<'_>]) -> Vec<bool> {
        let said = self.decide_all(caller, Act::Read, resources);
        let mut read: Vec<bool> = said.iter().map(Decision::allows).collect();
        read.resize(resources.len(), false);
        read
    }

    /// Refuses what this caller may not do, and names the act: it is no secret that the resource is
    /// there.
    pub(crate) fn permit(&self, caller: &Caller, act: Act, resource: Resource<'_>) -> Result<()> {
        self.permit_with(caller, act, resource, Context::default())
    }

    fn permit_with(
        &self,
        caller: &Caller,
        act: Act,
        resource: Resource<'_>,
        context: Context<'_>,
    ) -> Result<()> {
        if self.is_free(caller, act) {
            return Ok(());
        }
        let request = Request { act, subject: caller, resource, context };
        let decision = self.decide(&request);
        self.note(&request, &decision)?;
        match decision.verdict {
            Verdict::Allow => Ok(()),
            Verdict::Ask(why) => Err(needs_approval(&resource, &why)),
            Verdict::Deny(why) => Err(forbidden(caller, act, &resource, &why)),
        }
    }

    /// Refuses an act that the scopes of the credential do not cover, whatever it is done to.
    pub(crate) fn permit_act(&self, caller: &Caller, act: Act) -> Result<()> {
        if covers(caller, act) {
            return Ok(());
        }
        self.note_out_of_scope(caller, act)?;
        Err(out_of_scope(caller, act))
    }

    /// Refuses to start a plan of the catalog with this input that the caller may not start. One
    /// that it may not read either is like one that is not there.
    pub(crate) fn permit_start(&self, caller: &Caller, plan: &PlanId, input: &Value) -> Result<()> {
        let (act, resource) = starting(plan);
        let context = Context { arguments: Some(input), ..Context::default() };
        self.permit_with(caller, act, resource, context).map_err(|refusal| {
            match self.could_read(caller, resource) {
                true => refusal,
                false => no_plan(plan),
            }
        })
    }

    /// Whether the starter of a run may still start it: what was asked at its start is asked again
    /// before each turn of a model.
    pub(crate) fn still_starts(&self, starter: &Caller, run: &Run) -> Result<(), Fault> {
        let (act, named) = starting(&run.plan);
        if self.is_free(starter, act) {
            return Ok(());
        }
        // A plan that came with its request is in no catalog.
        let is_inline = act == Act::Run && self.catalog.plan(&starter.realm, &run.plan).is_none();
        let resource = if is_inline { Resource::InlinePlan } else { named };
        let has_input = !is_inline && act != Act::Submit;
        let input = has_input.then(|| run.input.to_value());
        let context = Context { arguments: input.as_ref(), ..Context::default() };
        let request = Request { act, subject: starter, resource, context };
        match self.decide(&request).verdict {
            Verdict::Allow | Verdict::Ask(_) => Ok(()),
            Verdict::Deny(_) => Err(not_any_more(starter, act, &resource)),
        }
    }

    /// The tools that this caller sees.
    pub(crate) fn visible(&self, caller: &Caller) -> Vec<Arc<ToolSpec>> {
        let listing = Listing {
            judged: &self.judged.tools,
            act: Act::Call,
            resource: |spec| Resource::Tool(spec),
            version: &|| self.catalog.version_now(),
            all: &|| self.catalog.specs(&caller.realm),
        };
        self.listed(caller, listing)
    }

    /// The plans of the caller's realm that it sees, as tools.
    pub(crate) fn visible_plans(&self, caller: &Caller) -> Vec<Arc<ToolSpec>> {
        let listing = Listing {
            judged: &self.judged.plan_tools,
            act: Act::Run,
            resource: |spec| Resource::Plan(spec.name.as_str()),
            version: &|| self.catalog.version_now(),
            all: &|| self.catalog.plan_specs(&caller.realm),
        };
        self.listed(caller, listing)
    }

    pub(crate) fn find_plan(&self, caller: &Caller, name: &str) -> Option<Arc<ToolSpec>> {
        let spec = self.catalog.plan_spec(&caller.realm, name)?;
        self.sees(caller, Resource::Plan(name)).then_some(spec)
    }

    /// The plans of the caller's realm that it may read.
    pub(crate) fn readable_plans(&self, caller: &Caller) -> Vec<Arc<Plan>> {
        let listing = Listing {
            judged: &self.judged.plans,
            act: Act::Read,
            resource: |plan| Resource::Plan(plan.id.as_str()),
            version: &|| self.catalog.changes(&caller.realm),
            all: &|| self.catalog.plans(&caller.realm),
        };
        self.listed(caller, listing)
    }

    /// The agents of the caller's realm that it may read.
    pub(crate) fn readable_agents(&self, caller: &Caller) -> Vec<KnownAgent> {
        let listing = Listing {
            judged: &self.judged.agents,
            act: Act::Read,
            resource: |known| Resource::Agent(known.agent.name.as_str()),
            version: &|| self.catalog.changes(&caller.realm),
            all: &|| self.catalog.agents(&caller.realm),
        };
        self.listed(caller, listing)
    }

    /// The pipelines of the caller's realm that it may read.
    pub(crate) fn readable_pipelines(&self, caller: &Caller) -> Vec<Arc<Pipeline>> {
        let listing = Listing {
            judged: &self.judged.pipelines,
            act: Act::Read,
            resource: |pipeline| Resource::Pipeline(pipeline.name.as_str()),
            version: &|| self.catalog.changes(&caller.realm),
            all: &|| self.catalog.pipelines(&caller.realm),
        };
        self.listed(caller, listing)
    }

    /// The current version of tool lists; `None` if they must be judged each time.
    pub(crate) fn list_version(&self) -> Option<ListVersion> {
        self.list_version_at(self.catalog.version_now())
    }

    /// The same where what there is has this version.
    fn list_version_at(&self, catalog: u64) -> Option<ListVersion> {
        let policy = match self.policy.allows_everything() {
            true => None,
            false => Some(self.policy.version()?),
        };
        Some(ListVersion { catalog, policy })
    }

    fn listed<T: Clone>(&self, caller: &Caller, listing: Listing<'_, T>) -> Vec<T> {
        let Listing { judged, act, resource, version, all } = listing;
        if self.is_free(caller, act) {
            return all();
        }
        // Read before the list is: a change in between is found the next time.
        let version = self.list_version_at(version());
        let known = version.as_ref().and_then(|now| judged.find(caller, now));
        if let Some(known) = known {
            return known;
        }
        let mut items = all();
        let resources: Vec<Resource<'_>> = items.iter().map(resource).collect();
        let said = self.decide_all(caller, act, &resources);
        let mut passes = said.iter().map(|decision| match act {
            Act::Read => decision.allows(),
            _ => decision.shows(),
        });
        items.retain(|_| passes.next().unwrap_or(false));
        if let Some(version) = version {
            judged.keep(caller, version, &items);
        }
        items
    }
}

/// A list that policy judges, and that is remembered.
struct Listing<'a, T> {
    judged: &'a ListCache<T>,
    /// The act that decides about each row: what may be read, or used with some arguments, is
    /// listed.
    act: Act,
    /// Each of it as policy knows it.
    resource: fn(&T) -> Resource<'_>,
    /// Grows with every change of it.
    version: &'a dyn Fn() -> u64,
    all: &'a dyn Fn() -> Vec<T>,
}

/// A session's row as policy knows it.
pub(crate) fn session_of(row: &SessionRow) -> Resource<'_> {
    Resource::Session(facts(&row.key, row.plan.as_ref()).owned_by(row.owner.as_deref()))
}

/// The session of a row of the feed as policy knows it.
pub(crate) fn fed_session(row: &FeedRow) -> Resource<'_> {
    Resource::Session(facts(&row.key, row.plan.as_ref()).owned_by(row.owner.as_deref()))
}

/// A run as policy knows it: a session that it is the latest run of.
pub(crate) fn run_of(run: &SessionRun) -> Resource<'_> {
    Resource::Session(facts(&run.key, Some(&run.row.plan)).owned_by(run.row.owner.as_deref()))
}

/// An ask as policy knows it.
pub(crate) fn ask_of(ask: &SessionAsk) -> Resource<'_> {
    let Ask { body, subject, .. } = &ask.row.ask;
    let session = facts(&ask.key, None).owned_by(subject.as_deref());
    Resource::Ask { kind: body.kind(), session }
}

/// Policy facts of a session with this key, whose latest run is of this plan.
pub(crate) fn facts<'a>(key: &'a SessionKey, plan: Option<&'a PlanId>) -> SessionFacts<'a> {
    let plan = plan.map(PlanId::as_str);
    SessionFacts {
        owner: key.owner.as_deref(),
        space: key.space.as_str(),
        plan,
        agent: plan.and_then(|plan| plan.strip_prefix(TALKS)),
        pipeline: key.space.pipeline(),
        id: Some(&*key.id),
    }
}

/// The fault of a run whose starter may not continue. Policy's reason is shown to administrators
/// only.
fn not_any_more(starter: &Caller, act: Act, resource: &Resource<'_>) -> Fault {
    let subject = &starter.subject;
    let name = act.name();
    let message = format!("`{subject}` may not do this any more: `{name}` on {resource}");
    Fault::new(Fault::NOT_PERMITTED, message).hint(
        "a run acts for who started it: give that subject the right again and retry, or abort and \
         start it as a subject that has it",
    )
}

/// Only administrators learn why policy says so.
fn forbidden(caller: &Caller, act: Act, resource: &Resource<'_>, why: &str) -> Refusal {
    if !covers(caller, act) {
        return out_of_scope(caller, act);
    }
    let subject = &caller.subject;
    let name = act.name();
    let message = format!("`{subject}` may not do this: `{name}` on {resource}");
    let message = if caller.admin { format!("{message}: {why}") } else { message };
    Refusal::new(RefusalCode::Forbidden(act), message).hint("ask an administrator of the realm")
}

/// Answerers are shown with the ask, so this may name them.
fn not_narrowed_to(caller: &Caller, narrowed: &Answerers) -> Refusal {
    let name = &caller.subject;
    let wanted = match narrowed.other {
        true => "a person who took no part in the run has to answer it",
        false => "a policy says who answers it",
    };
    let message = format!("`{name}` may not answer this ask: {wanted}");
    Refusal::new(RefusalCode::Forbidden(Act::Answer), message)
        .hint("the ask is still open; `mayAnswer` names who may answer it")
}

fn out_of_scope(caller: &Caller, act: Act) -> Refusal {
    let subject = &caller.subject;
    let name = act.name();
    let message = format!("the credential of `{subject}` does not cover `{name}`");
    Refusal::new(RefusalCode::OutOfScope(act), message)
        .hint(format!("use one with the scope `{}`", act.scope().name()))
}

fn needs_approval(resource: &Resource<'_>, why: &str) -> Refusal {
    let message = format!("{resource} needs an approval as a whole: {why}");
    Refusal::new(RefusalCode::ApprovalNeeded, message)
        .hint("only calls of tools can be approved: let the policy ask about those")
}
