//! `/system/permissions`: what a subject may do, decided as it would be if it did it. Domains and
//! actions of the area `waypost` are those of policies: the types of resources, and the acts. The
//! area `integration` has the names that clients of an existing service know for what is done with
//! records. Nothing is done, and the audit keeps nothing. About others and with other roles only
//! those ask who administer the realm; only they learn which policy decided.

use axum::Json;
use axum::http::StatusCode;
use edge::problem::{Failure, Result};
use edge::request::auth::Visitor;
use edge::request::body::{JsonBody, OptionalBody};
use edge::request::server_state::{ServerState, Who};
use identity::realm_policy::not_enabled;
use kernel::contracts::policy::{Context, Decision, Request, Resource, SessionFacts};
use kernel::identity::roles::Roles;
use kernel::tool::call::{Caller, OutputKind, Pace, Reach, ToolSpec, Verdict};
use kernel::values::caller::Act;
use policy::{applicable, names_field};
use serde_json::{Value, json};
use std::sync::Arc;
use wire::permissions::{
    DecisionScope, FilterConstraint, MatchedRule, PermissionCheck, PermissionDecision,
    PermissionEffect, PermissionLandscape, PermissionQuery, ScopedConstraint,
};

/// The area of everything that policies name.
const AREA: &str = "waypost";
/// The area and the domain of what is done with records.
const RECORDS_AREA: &str = "integration";
const RECORDS_DOMAIN: &str = "query";
/// The member of arguments that names a type of records.
const ROOT_TYPE: &str = "rootType";
/// Any area, domain or action.
const ANY: &str = "*";
/// Sessions that callers make.
const SPACE: &str = "session";
/// What is asked where nothing else is said.
const APPROVAL: &str = "approve";

/// What is done with records, in the words of clients.
struct RecordAction {
    name: &'static str,
    tool: &'static str,
    /// What it does to the type that it is about.
    act: Act,
}

const fn record_action(name: &'static str, tool: &'static str, act: Act) -> RecordAction {
    RecordAction { name, tool, act }
}

static RECORD_ACTIONS: [RecordAction; 12] = [
    record_action("listRootTypes", "query_rootTypes", Act::Read),
    record_action("plan", "query_plan", Act::Read),
    record_action("find", "query_find", Act::Read),
    record_action("count", "query_count", Act::Read),
    record_action("save", "query_save", Act::Save),
    record_action("delete", "query_delete", Act::Remove),
    record_action("deleteMany", "query_deleteMany", Act::Remove),
    record_action("importAnalyze", "query_importAnalyze", Act::Save),
    record_action("importRows", "query_importRows", Act::Save),
    record_action("importCommit", "query_importCommit", Act::Save),
    record_action("importCancel", "query_importCancel", Act::Save),
    record_action("export", "query_export", Act::Read),
];

/// `POST /check`.
pub(crate) async fn check(
    Who { server, .. }: Who,
    visitor: Visitor,
    JsonBody(query): JsonBody<PermissionQuery>,
) -> Result<Json<PermissionCheck>> {
    let about = PermissionSubject::of(&server, &visitor, &query)?;
    let domain = required(query.functional_domain.as_ref(), "functionalDomain")?;
    let action = required(query.action.as_ref(), "action")?;
    let mut known =
        applicable().filter(|(act, kind)| is_same(domain, kind) && is_same(action, act.name()));
    let is_in = |area: &str| fits(query.area.as_ref(), area);
    let decision = known
        .next()
        .filter(|_| is_in(AREA))
        .map(|(act, kind)| about.decision(&server, &query, act, kind))
        .or_else(|| {
            let mut actions = RECORD_ACTIONS.iter();
            let action = actions.find(|known| is_same(action, known.name))?;
            let is_of_records = is_in(RECORDS_AREA) && is_same(domain, RECORDS_DOMAIN);
            is_of_records.then(|| about.of_records(&server, &query, action)).flatten()
        });
    // Where no policy is about it, nothing permits it.
    let decision = decision.unwrap_or_else(nothing);
    Ok(Json(DecisionView::of(decision, about.is_told).check()))
}

/// `POST /evaluate` and `POST /fd/evaluate`.
pub(crate) async fn evaluate(
    Who { server, .. }: Who,
    visitor: Visitor,
    OptionalBody(query): OptionalBody<PermissionQuery>,
) -> Result<Json<PermissionLandscape>> {
    let about = PermissionSubject::of(&server, &visitor, &query)?;
    let mut all = PermissionLandscape::default();
    let is_wanted = |area: &str, domain: &str, action: &str| {
        fits(query.area.as_ref(), area)
            && fits(query.functional_domain.as_ref(), domain)
            && fits(query.action.as_ref(), action)
    };
    for (act, kind) in applicable() {
        if is_wanted(AREA, kind, act.name()) {
            let said = DecisionView::of(about.decision(&server, &query, act, kind), about.is_told);
            note(&mut all, [AREA, kind, act.name()], said);
        }
    }
    for action in &RECORD_ACTIONS {
        if is_wanted(RECORDS_AREA, RECORDS_DOMAIN, action.name)
            && let Some(decision) = about.of_records(&server, &query, action)
        {
            let said = DecisionView::of(decision, about.is_told);
            note(&mut all, [RECORDS_AREA, RECORDS_DOMAIN, action.name], said);
        }
    }
    Ok(Json(all))
}

fn note(all: &mut PermissionLandscape, names: [&str; 3], said: DecisionView) {
    let [area, domain, action] = names.map(str::to_owned);
    let PermissionLandscape { allow, deny, decisions, .. } = all;
    let effects = if said.effect == PermissionEffect::Allow { allow } else { deny };
    let domains = effects.entry(area.clone()).or_default();
    domains.entry(domain.clone()).or_default().push(action.clone());
    let actions = decisions.entry(area).or_default().entry(domain).or_default();
    actions.insert(action, said.decision());
}

fn is_same(asked: &str, name: &str) -> bool {
    asked.eq_ignore_ascii_case(name)
}

/// Whether a filter lets this name through.
fn fits(asked: Option<&String>, name: &str) -> bool {
    asked.is_none_or(|asked| asked == ANY || is_same(asked, name))
}

fn required<'q>(given: Option<&'q String>, name: &str) -> Result<&'q str> {
    given.map(String::as_str).ok_or_else(|| {
        Failure::wrong_value(&format!("/{name}"), format!("`{name}` is required"))
            .hint("`POST /system/permissions/evaluate` lists domains and actions")
    })
}

/// Whom a question is about.
struct PermissionSubject {
    subject: Caller,
    /// Roles that it is taken to have beside its own.
    more: Roles,
    /// As whom things are looked up that the subject may not see; none for oneself.
    asker: Option<Arc<Caller>>,
    /// Whether who asks may learn which policy decided.
    is_told: bool,
}

impl PermissionSubject {
    fn of(server: &ServerState, visitor: &Visitor, query: &PermissionQuery) -> Result<Self> {
        let caller = &visitor.caller;
        if query.realm.as_ref().is_some_and(|realm| realm != caller.realm.as_str()) {
            let message = "`realm` is not the realm of the request";
            return Err(Failure::new(StatusCode::FORBIDDEN, "realm_not_allowed", message)
                .hint("choose the realm with `X-Realm`"));
        }
        let directory = server.identity.directory();
        let own = directory.resolve(&caller.subject);
        let other = query.identity.as_ref().filter(|identity| directory.resolve(identity) != own);
        let roles = query.roles.iter().flatten().map(|role| Arc::<str>::from(role.as_str()));
        let more: Roles = roles.collect();
        let is_told = visitor.administers();
        if other.is_none() && more.is_empty() {
            let subject = Caller::clone(caller);
            return Ok(Self { subject, more, asker: None, is_told });
        }
        let asker = visitor.foremost();
        server.engine.admin().permit(asker, Act::Administer, Resource::Server)?;
        if !more.is_empty() && server.policies.is_none() {
            let message = "this server has no policies, so that no other roles can be tried";
            return Err(Failure::wrong_value("/roles", message).hint("leave `roles` out"));
        }
        let subject = match other {
            Some(identity) => Caller::new(caller.realm.clone(), identity.as_str()),
            None => Caller::clone(caller),
        };
        Ok(Self { subject, more, asker: Some(Arc::new(asker.clone())), is_told })
    }

    /// What would be decided if the subject did this.
    fn decision(
        &self,
        server: &ServerState,
        query: &PermissionQuery,
        act: Act,
        kind: &str,
    ) -> Decision {
        let id = query.resource_id.as_deref().unwrap_or_default();
        let spec = match (kind, id) {
            ("Tool", "") => Some(Arc::new(some_tool())),
            ("Tool", name) => self.tool(server, name),
            _ => None,
        };
        // A tool that is not there for the subject cannot be called: nothing is to be decided.
        let Some(resource) = resource(kind, id, query.owner_id.as_deref(), spec.as_deref()) else {
            return nothing();
        };
        self.judged(server, query, act, resource)
    }

    /// What would be decided if the subject did this with records: with those of a type, where one
    /// is named, else with the tool. None where there is no such tool for the subject.
    fn of_records(
        &self,
        server: &ServerState,
        query: &PermissionQuery,
        action: &RecordAction,
    ) -> Option<Decision> {
        let in_arguments = || query.resource.as_ref()?.get(ROOT_TYPE)?.as_str();
        let named = query.model_class.as_deref().or_else(in_arguments);
        if let Some(name) = named {
            return Some(self.judged(server, query, action.act, Resource::RecordType(name)));
        }
        let spec = self.tool(server, action.tool)?;
        Some(self.judged(server, query, Act::Call, Resource::Tool(&spec)))
    }

    fn judged(
        &self,
        server: &ServerState,
        query: &PermissionQuery,
        act: Act,
        resource: Resource<'_>,
    ) -> Decision {
        let arguments = query.resource.as_ref().map(|fields| Value::Object(fields.clone()));
        let arguments = arguments.as_ref().filter(|_| act == Act::Call);
        let context = Context { arguments, ..Context::default() };
        let request = Request { act, subject: &self.subject, resource, context };
        match &server.policies {
            Some(files) if !self.more.is_empty() && server.entrance.base().is_some() => {
                // Other roles do not bring what the realm does not have.
                let directory = server.identity.directory();
                let settings = directory.realms.restricting(&self.subject.realm);
                let denied = settings.and_then(|settings| not_enabled(settings, &request));
                denied.unwrap_or_else(|| files.decide_with(&request, &self.more))
            }
            // In local mode everybody may do everything, with whatever roles.
            _ => server.engine.admin().foresee(&request),
        }
    }

    fn tool(&self, server: &ServerState, name: &str) -> Option<Arc<ToolSpec>> {
        let tools = server.engine.tools();
        let asked = self.asker.as_ref().and_then(|asker| tools.judged(asker, name));
        asked.or_else(|| tools.judged(&self.subject, name))
    }
}

/// What an act of this type is done to; none where it is a tool that is not there.
fn resource<'q>(
    kind: &str,
    id: &'q str,
    owner: Option<&'q str>,
    spec: Option<&'q ToolSpec>,
) -> Option<Resource<'q>> {
    let session =
        SessionFacts { owner, space: SPACE, plan: None, agent: None, pipeline: None, id: None };
    let found = match kind {
        "Tool" => Resource::Tool(spec?),
        "Plan" => Resource::Plan(id),
        "Agent" => Resource::Agent(id),
        "Pipeline" => Resource::Pipeline(id),
        "Session" => Resource::Session(session),
        "Ask" => Resource::Ask { kind: APPROVAL, session },
        "Blob" => Resource::Blob(id),
        "Definition" => {
            let (kind, name) = id.split_once(':').unwrap_or(("", id));
            Resource::Definition { kind, name, defined_by: owner }
        }
        "RecordType" => Resource::RecordType(id),
        "Upstream" => Resource::Upstream(id),
        "Sink" => Resource::Sink(id),
        "Principal" => Resource::Principal(id),
        _ => Resource::Server,
    };
    Some(found)
}

/// A tool that no policy names.
fn some_tool() -> ToolSpec {
    ToolSpec {
        name: "".into(),
        title: String::new(),
        description: String::new(),
        input_schema: Arc::new(json!({})),
        output_schema: None,
        reach: Reach::Writes,
        idempotent: false,
        tags: Vec::new(),
        pace: Pace::Quick,
        yields: OutputKind::Value,
        unrecorded: false,
        listed: None,
    }
}

/// Nothing permits it.
fn nothing() -> Decision {
    Verdict::Deny(String::new()).into()
}

/// What is left of records, if not everything is. Of a hidden field only those learn who administer
/// the realm.
fn filters(decision: &Decision, is_told: bool) -> Option<Vec<FilterConstraint>> {
    let hidden = decision.hidden();
    let join_op = || "AND".to_owned();
    let mut found = Vec::new();
    for query in decision.rows() {
        let is_shown = is_told || !names_field(&query, &hidden);
        let and_filter_string = is_shown.then(|| query.to_string());
        found.push(FilterConstraint {
            and_filter_string,
            join_op: join_op(),
            excluded_fields: None,
        });
    }
    if is_told && !hidden.is_empty() {
        let excluded_fields = Some(hidden.iter().map(ToString::to_string).collect());
        found.push(FilterConstraint {
            excluded_fields,
            join_op: join_op(),
            ..FilterConstraint::default()
        });
    }
    (!found.is_empty()).then_some(found)
}

/// A decision in the words of the answers.
struct DecisionView {
    effect: PermissionEffect,
    scope: DecisionScope,
    constraints: Option<Vec<ScopedConstraint>>,
    filters: Option<Vec<FilterConstraint>>,
    /// The policies that decided; none where who asks must not learn it.
    rules: Option<Vec<String>>,
}

impl DecisionView {
    fn of(decision: Decision, is_told: bool) -> Self {
        let filters = filters(&decision, is_told);
        let Decision { verdict, policies, .. } = decision;
        let (effect, scope) = match &verdict {
            Verdict::Allow if filters.is_some() => (PermissionEffect::Allow, DecisionScope::Scoped),
            Verdict::Allow => (PermissionEffect::Allow, DecisionScope::Exact),
            Verdict::Ask(_) => (PermissionEffect::Allow, DecisionScope::Scoped),
            Verdict::Deny(_) if policies.is_empty() => {
                (PermissionEffect::Deny, DecisionScope::Default)
            }
            Verdict::Deny(_) => (PermissionEffect::Deny, DecisionScope::Exact),
        };
        let constraints = match verdict {
            Verdict::Ask(reason) => {
                Some(vec![ScopedConstraint { kind: "APPROVAL".to_owned(), reason }])
            }
            Verdict::Allow | Verdict::Deny(_) => None,
        };
        let rules = is_told.then(|| policies.iter().map(ToString::to_string).collect());
        Self { effect, scope, constraints, filters, rules }
    }

    fn first_rule(&self) -> Option<String> {
        self.rules.as_ref().and_then(|rules| rules.first().cloned())
    }

    fn check(self) -> PermissionCheck {
        let effect = self.effect;
        let winning_rule_name = self.first_rule();
        let matched = |name: String| MatchedRule { name, determined_effect: effect };
        PermissionCheck {
            decision: effect,
            final_effect: effect,
            decision_scope: self.scope,
            winning_rule_name,
            winning_rule_priority: None,
            winning_rule_final: None,
            scoped_constraints_present: self.constraints.is_some(),
            scoped_constraints: self.constraints,
            filter_constraints: self.filters,
            not_applicable: None,
            matched_rule_results: self.rules.map(|all| all.into_iter().map(matched).collect()),
            evaluated_rules: None,
            na_label: None,
        }
    }

    fn decision(self) -> PermissionDecision {
        PermissionDecision {
            effect: self.effect,
            decision_scope: self.scope,
            scoped_constraints_present: self.constraints.is_some(),
            rule: self.first_rule(),
            scoped_constraints: self.constraints,
            na_label: None,
            priority: None,
            final_rule: None,
            source: None,
        }
    }
}
