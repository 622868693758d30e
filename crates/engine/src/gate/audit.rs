//! Which decisions of the gate the audit keeps, beside those that an event is about. Denials are
//! always kept. Permits are kept unless an event says the same. Lists are left out, because they
//! show what may be used, except the event feed and asks of others: those show what people wrote.

use crate::catalog::roster::starting;
use crate::gate::Gate;
use crate::gate::admission::AdmittedCall;
use crate::gate::trail::Trail;
use crate::refusal::Result;
use crate::request::{CallRequest, UnseenCall};
use kernel::contracts::policy::{Context, Decision, Request, Resource};
use kernel::event::{Event, Fact, Occasion};
use kernel::identity::audit::{Entry, Mac, Object, Ruling};
use kernel::journal::audit_entries;
use kernel::session::Session;
use kernel::tool::call::{Caller, Reach, Verdict};
use kernel::values::caller::Act;
use kernel::values::ids::{PlanId, RealmId, ToolName};
use kernel::values::trace::TraceParent;
use serde_json::Value;
use std::sync::Arc;

/// How the audit names a session that something is done to.
const SESSION: &str = "session";
const RECORD_TYPE: &str = "record_type";

/// A direct call, as its request says.
struct DirectCall<'a> {
    tool: &'a str,
    arguments: &'a Value,
    trace: Option<TraceParent>,
    occasion: &'a Occasion,
}

/// A call that is denied after it was allowed, or that a reply wants in place of another one.
pub(crate) struct DeniedCall<'a> {
    pub(crate) tool: &'a ToolName,
    pub(crate) arguments: &'a Value,
    pub(crate) why: &'a str,
    /// The policies that decided.
    pub(crate) policies: &'a [Arc<str>],
}

impl Gate {
    /// Where decisions are kept that no event is about; nowhere in local mode.
    fn beside(&self) -> Option<&Arc<Trail>> {
        self.trail.as_ref().filter(|trail| trail.rules().unjournaled)
    }

    /// The entry of an event that is not applied yet, if the audit keeps one, with the caller that
    /// did it, where one did it just now.
    pub(crate) fn journaled(
        &self,
        session: &Session,
        event: &Event,
        doer: Option<&Caller>,
    ) -> Option<Entry> {
        let trail = self.trail.as_ref()?;
        if let (Some(caller), Fact::SessionCreated { id, .. }) = (doer, &event.fact) {
            let object = Object::new(SESSION, id.to_string());
            return Some(Entry::by(event.at, caller, Act::Run.name(), object));
        }
        let entry = audit_entries::entry(session, event, &|bytes| trail.digest(bytes))?;
        let entry = match (doer, &event.fact) {
            (Some(caller), Fact::RunStarted { .. }) => {
                // Its occasion says more than the route, and its span is the run's own.
                let door = entry.door.clone();
                let trace = entry.trace;
                let begun = entry.done_by(caller);
                Entry { door: door.or(begun.door), trace: trace.or(begun.trace), ..begun }
            }
            (Some(caller), _) => entry.done_by(caller),
            (None, _) => entry,
        };
        Some(self.done_as(&session.key.realm, entry))
    }

    /// The same with the principal that the realm does it as, if it is done as one.
    fn done_as(&self, realm: &RealmId, entry: Entry) -> Entry {
        let is_of_records = entry.object.kind == RECORD_TYPE;
        // In a session that is there nothing is begun with a thing of the catalog.
        let is_begun =
            entry.object.kind != SESSION && Act::from_name(&entry.act).is_some_and(Act::is_run_as);
        if !is_of_records && !is_begun {
            return entry;
        }
        Entry { run_as: self.policy.acts_as(realm), ..entry }
    }

    /// Keeps a decision. An error means that it could not be kept: then it must not be acted upon.
    pub(crate) fn note(&self, request: &Request<'_>, decision: &Decision) -> Result<()> {
        let Some(trail) = self.beside() else { return Ok(()) };
        let Request { act, subject, resource, context } = request;
        if decision.allows() && !trail.keeps_allowed(*act) {
            return Ok(());
        }
        let (verdict, why) = audit_entries::of_verdict(&decision.verdict);
        let entry = Entry {
            arguments: context.arguments.map(|value| digested(trail, value)),
            verdict,
            why,
            policies: decision.policies.clone(),
            version: decision.version.clone(),
            ..Entry::by(self.clock.now(), subject, act.name(), object_of(resource))
        };
        trail.push(subject, &self.done_as(&subject.realm, entry))
    }

    /// Keeps that the scopes of a credential do not cover an act, whatever it would be done to.
    pub(crate) fn note_out_of_scope(&self, caller: &Caller, act: Act) -> Result<()> {
        let why = format!("the credential does not have the scope `{}`", act.scope().name());
        self.note_endpoint_denial(caller, act, Object::only("any"), why)
    }

    /// Keeps that an endpoint refuses what policy is not asked about, or allows in the caller's realm.
    pub(crate) fn note_endpoint_denial(
        &self,
        caller: &Caller,
        act: Act,
        object: Object,
        why: String,
    ) -> Result<()> {
        let Some(trail) = self.beside() else { return Ok(()) };
        let entry = Entry::by(self.clock.now(), caller, act.name(), object);
        trail.push(caller, &Entry { verdict: Ruling::Deny, why: Some(why), ..entry })
    }

    /// Keeps that a caller is shown what others wrote, as a feed of events does, where reads are
    /// kept. An error means that it could not be kept: then it must not be shown.
    pub(crate) fn note_shown(&self, caller: &Caller, object: Object, detail: Value) -> Result<()> {
        match self.beside() {
            Some(trail) if trail.rules().reads => {
                self.note_done(caller, Act::Read.name(), object, detail)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Keeps what an endpoint did for a caller that policy is not asked about as such. An error
    /// means that it could not be kept: then it must not be done.
    pub(crate) fn note_done(
        &self,
        caller: &Caller,
        act: &'static str,
        object: Object,
        detail: Value,
    ) -> Result<()> {
        let Some(trail) = self.beside() else { return Ok(()) };
        let entry = Entry::by(self.clock.now(), caller, act, object);
        trail.push(caller, &Entry { detail: Some(detail), ..entry })
    }

    /// Keeps what was decided about a direct call that becomes no run. A denial of one that would
    /// become a run is kept like this, too.
    pub(crate) fn note_call(&self, call: &AdmittedCall<'_>, request: &CallRequest) -> Result<()> {
        let Some(trail) = self.beside() else { return Ok(()) };
        let is_read = call.reach == Reach::Reads && call.decision.allows();
        if is_read && !trail.rules().reads {
            return Ok(());
        }
        let CallRequest { tool, arguments, trace, occasion, .. } = request;
        let direct = DirectCall { tool: tool.name().as_str(), arguments, trace: *trace, occasion };
        self.note_direct(trail, call.caller, &direct, &call.decision)
    }

    fn note_direct(
        &self,
        trail: &Arc<Trail>,
        caller: &Caller,
        call: &DirectCall<'_>,
        decision: &Decision,
    ) -> Result<()> {
        let DirectCall { tool, arguments, trace, occasion } = call;
        let (verdict, why) = audit_entries::of_verdict(&decision.verdict);
        let object = Object::new("tool", *tool);
        let via = &caller.via;
        let route = || via.door().map(str::to_owned);
        // Every read that is audited comes here: what others set step by step is set at once.
        let entry = Entry {
            actor: caller.actor.clone(),
            run_as: self.policy.acts_as(&caller.realm),
            arguments: Some(digested(trail, arguments)),
            verdict,
            why,
            policies: decision.policies.clone(),
            version: decision.version.clone(),
            // It says more than the route.
            door: door_of(occasion).or_else(route),
            trace: trace.or_else(|| via.trace()),
            headers: via.headers().cloned().unwrap_or_default(),
            ..Entry::new(self.clock.now(), caller.subject.clone(), Act::Call.name(), object)
        };
        trail.push(caller, &entry)
    }

    /// Keeps that a caller asked for a tool, or for a plan as a tool, that is there and that it
    /// does not see: the first that has one of its names.
    pub(crate) fn note_unseen(&self, caller: &Caller, call: &UnseenCall) -> Result<()> {
        if self.note_unseen_tool(caller, call)? {
            return Ok(());
        }
        let is_plan = |name: &&String| self.catalog.plan_spec(&caller.realm, name).is_some();
        match call.names.iter().find(is_plan) {
            Some(plan) => {
                let plan = PlanId::from(plan.as_str());
                self.note_unstarted(caller, &plan, Some(&call.arguments))
            }
            None => Ok(()),
        }
    }

    /// The same where only a tool can be meant: whether there is such a tool.
    pub(crate) fn note_unseen_tool(&self, caller: &Caller, call: &UnseenCall) -> Result<bool> {
        let Some(trail) = self.beside() else { return Ok(false) };
        let UnseenCall { names, arguments, trace, occasion } = call;
        let is_hidden = |name: &&String| {
            let listed = self.catalog.tool(&caller.realm, name);
            listed.is_some_and(|listed| !self.sees(caller, Resource::Tool(listed.tool.judged())))
        };
        let Some(tool) = names.iter().find(is_hidden) else { return Ok(false) };
        let direct = DirectCall { tool, arguments, trace: *trace, occasion };
        self.note_direct(trail, caller, &direct, &unseen().into())?;
        Ok(true)
    }

    /// Keeps that a caller asked for a plan, an agent or a pipeline that is there and that it does
    /// not see.
    pub(crate) fn note_unstarted(
        &self,
        caller: &Caller,
        plan: &PlanId,
        arguments: Option<&Value>,
    ) -> Result<()> {
        let (act, resource) = starting(plan);
        let is_there = || self.catalog.plan(&caller.realm, plan).is_some();
        if self.beside().is_none() || !is_there() || self.sees(caller, resource) {
            return Ok(());
        }
        let context = Context { arguments, ..Context::default() };
        self.note(&Request { act, subject: caller, resource, context }, &unseen().into())
    }

    /// Keeps that a call was denied that had been allowed, or that a reply wanted in place of
    /// another one.
    pub(crate) fn note_denied(&self, caller: &Caller, denied: &DeniedCall<'_>) -> Result<()> {
        let Some(trail) = self.beside() else { return Ok(()) };
        let DeniedCall { tool, arguments, why, policies } = *denied;
        let object = Object::new("tool", tool.as_str());
        let entry = Entry {
            arguments: Some(digested(trail, arguments)),
            verdict: Ruling::Deny,
            why: Some(why.to_owned()),
            policies: policies.to_vec(),
            ..Entry::by(self.clock.now(), caller, Act::Call.name(), object)
        };
        trail.push(caller, &self.done_as(&caller.realm, entry))
    }

    /// Refuses a caller of whom too much waits to be kept already.
    pub(crate) fn check_room(&self, caller: &Caller) -> Result<()> {
        self.beside().map_or(Ok(()), |trail| trail.check_room(caller))
    }

    /// Whether callers wait until what was decided is kept.
    pub(crate) fn is_strict(&self) -> bool {
        self.beside().is_some_and(|trail| trail.rules().strict)
    }

    /// Waits until all that was decided is kept, where callers wait for that.
    pub(crate) async fn settled(&self) {
        if let Some(trail) = self.beside().filter(|trail| trail.rules().strict) {
            trail.settled().await;
        }
    }
}

/// The verdict about something that a caller cannot see.
fn unseen() -> Verdict {
    Verdict::Deny("the caller does not see it".to_owned())
}

fn digested(trail: &Trail, value: &Value) -> Mac {
    audit_entries::arguments_mac(value, &|bytes| trail.digest(bytes))
}

fn door_of(occasion: &Occasion) -> Option<String> {
    match (occasion.trigger.as_deref(), occasion.endpoint.as_deref()) {
        (Some(trigger), Some(endpoint)) => Some([trigger, " ", endpoint].concat()),
        (one, other) => one.or(other).map(str::to_owned),
    }
}

/// The object of a request, as the audit names it.
fn object_of(resource: &Resource<'_>) -> Object {
    match *resource {
        Resource::Tool(spec) => Object::new("tool", spec.name.as_str()),
        Resource::Plan(id) => Object::new("plan", id),
        Resource::InlinePlan => Object::only("inline_plan"),
        Resource::Agent(name) => Object::new("agent", name),
        Resource::Pipeline(name) => Object::new("pipeline", name),
        Resource::Session(facts) => {
            Object { id: facts.id.map(str::to_owned), ..Object::only(SESSION) }
        }
        Resource::Ask { kind, .. } => Object::new("ask", kind),
        Resource::Blob(hash) => Object::new("blob", hash),
        Resource::Definition { kind, name, .. } => {
            Object::new("definition", format!("{kind}/{name}"))
        }
        Resource::RecordType(name) => Object::new(RECORD_TYPE, name),
        Resource::Upstream(name) => Object::new("upstream", name),
        Resource::Sink(name) => Object::new("sink", name),
        Resource::Principal(id) => Object::new("principal", id),
        Resource::Server => Object::only("server"),
    }
}
