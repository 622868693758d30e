//! Translates a policy request into Cedar: principal, action, resource and context.

use crate::dependencies::{ARGUMENTS, DATA_DOMAIN, NOW, SOURCES};
use crate::schema::{Kind, TOOL_ACTION, identity};
use cedar_policy::{
    Context, Entities, Entity, EntityId, EntityTypeName, EntityUid, ParseErrors, Request,
    RestrictedExpression,
};
use kernel::contracts::policy::{Request as Asked, Resource, SessionFacts, Trigger};
use kernel::identity::principal::{DataDomain, Roster};
use kernel::identity::roles::Roles;
use kernel::tool::call::ToolSpec;
use kernel::values::caller::Act;
use kernel::values::datum::Sources;
use kernel::values::ids::Millis;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Attributes of an entity.
type Attributes = HashMap<String, RestrictedExpression>;

/// A question in the words of Cedar, without its context.
pub(crate) struct CedarQuestion {
    pub(crate) entities: Entities,
    subject: EntityUid,
    act: EntityUid,
    resource: EntityUid,
    /// The own action of the tool, where it is about one.
    tool: Option<EntityUid>,
}

impl CedarQuestion {
    /// The question, for policies that do not name the tool's own action.
    pub(crate) fn request(&self, context: Context) -> Option<Request> {
        self.with_action(&self.act, context)
    }

    /// The question, for policies that name the own action of this tool.
    pub(crate) fn tool_request(&self, context: Context) -> Option<Request> {
        self.with_action(self.tool.as_ref()?, context)
    }

    fn with_action(&self, action: &EntityUid, context: Context) -> Option<Request> {
        let subject = self.subject.clone();
        let resource = self.resource.clone();
        Request::new(subject, action.clone(), resource, context, None).ok()
    }
}

/// A subject, with what is known of it beside its principal, and its roles.
struct Person<'a> {
    subject: &'a str,
    known: Attributes,
    held: HashSet<EntityUid>,
}

/// The names of all types of entities, read once.
#[derive(Debug)]
pub(crate) struct Names(Vec<EntityTypeName>);

impl Names {
    pub(crate) fn new() -> Result<Self, String> {
        let read =
            |kind: &Kind| kind.name().parse().map_err(|error: ParseErrors| error.to_string());
        Kind::ALL.iter().map(read).collect::<Result<Vec<_>, _>>().map(Self)
    }

    fn uid(&self, kind: Kind, id: &str) -> EntityUid {
        EntityUid::from_type_name_and_id(self.0[kind as usize].clone(), EntityId::new(id))
    }

    fn reference(&self, kind: Kind, id: &str) -> RestrictedExpression {
        RestrictedExpression::new_entity_uid(self.uid(kind, id))
    }

    /// A question: who asks, with its roles, what it does, and to what. The principals are there
    /// where a policy reads what is known of one. Nothing where Cedar does not take it, so that
    /// nothing can be evaluated.
    pub(crate) fn stated(
        &self,
        asked: &Asked<'_>,
        roles: &Roles,
        principals: Option<&Roster>,
    ) -> Option<CedarQuestion> {
        let caller = asked.subject;
        let about = &asked.resource;
        let realm = self.uid(Kind::Realm, caller.realm.as_str());
        let in_realm = || one("realm", RestrictedExpression::new_entity_uid(realm.clone()));
        let mut known = in_realm();
        if let Some(actor) = &caller.actor {
            known.insert("actor".to_owned(), self.reference(Kind::Subject, actor));
        }
        let held: HashSet<EntityUid> =
            roles.iter().map(|role| self.uid(Kind::Role, role)).collect();
        let (kind, name) = identity(about);
        let resource = self.uid(kind, &name);
        let tool = (kind == Kind::Tool).then(|| self.tool_action(&name));
        let act = self.uid(Kind::Action, asked.act.name());
        let own = Person { subject: &caller.subject, known, held };
        let mut entities = vec![self.person(own, principals)?];
        if principals.is_some() {
            for subject in others(asked) {
                let other = Person { subject, known: in_realm(), held: HashSet::new() };
                entities.push(self.person(other, principals)?);
            }
        }
        let known = self.attributes(about);
        entities.push(Entity::new(resource.clone(), known, HashSet::from([realm])).ok()?);
        if let Some(tool) = &tool {
            let group = HashSet::from([self.uid(Kind::Action, Act::Call.name())]);
            entities.push(Entity::new_no_attrs(tool.clone(), group));
        }
        let subject = self.uid(Kind::Subject, &caller.subject);
        let entities = Entities::from_entities(entities, None).ok()?;
        Some(CedarQuestion { entities, subject, act, resource, tool })
    }

    /// Someone, with the data domain and the properties of its principal, if it is one.
    fn person(&self, person: Person<'_>, principals: Option<&Roster>) -> Option<Entity> {
        let Person { subject, mut known, held } = person;
        let found = principals.and_then(|all| all.of_subject(subject));
        let principal = found.map(|one| &*one.principal);
        if let Some(domain) = principal.and_then(|principal| principal.data_domain.as_ref()) {
            known.insert(DATA_DOMAIN.to_owned(), of_domain(domain)?);
        }
        let properties = principal.into_iter().flat_map(|principal| &principal.properties);
        let tags = properties.map(|(name, value)| (name.clone(), texts(value)));
        Entity::new_with_tags(self.uid(Kind::Subject, subject), known, held, tags).ok()
    }

    fn tool_action(&self, tool: &str) -> EntityUid {
        self.uid(Kind::Action, &format!("{TOOL_ACTION}{tool}"))
    }

    fn attributes(&self, resource: &Resource<'_>) -> Attributes {
        match resource {
            Resource::Tool(spec) => of_tool(spec),
            Resource::Plan(_) => one("inline", RestrictedExpression::new_bool(false)),
            Resource::InlinePlan => one("inline", RestrictedExpression::new_bool(true)),
            Resource::Session(facts) => self.of_session(facts),
            Resource::Ask { kind, session } => {
                let mut known = one("kind", text(kind));
                // The members of a map have different names, so they always make a record.
                if let Ok(facts) = RestrictedExpression::new_record(self.of_session(session)) {
                    known.insert("session".to_owned(), facts);
                }
                known
            }
            Resource::Definition { kind, name, defined_by } => {
                let mut known = one("kind", text(kind));
                known.insert("name".to_owned(), text(name));
                if let Some(subject) = defined_by {
                    known.insert("definedBy".to_owned(), self.reference(Kind::Subject, subject));
                }
                known
            }
            _ => Attributes::new(),
        }
    }

    fn of_session(&self, facts: &SessionFacts<'_>) -> Attributes {
        let mut known = one("space", text(facts.space));
        let entities = [
            ("owner", Kind::Subject, facts.owner),
            ("plan", Kind::Plan, facts.plan),
            ("agent", Kind::Agent, facts.agent),
            ("pipeline", Kind::Pipeline, facts.pipeline),
        ];
        for (name, kind, id) in entities {
            if let Some(id) = id {
                known.insert(name.to_owned(), self.reference(kind, id));
            }
        }
        known
    }
}

/// The context of a request. Time and sources are included only if a policy reads them.
pub(crate) fn context(
    trigger: Trigger,
    now: Option<Millis>,
    sources: Option<&Sources>,
    arguments: Option<RestrictedExpression>,
) -> Option<Context> {
    let word = match trigger {
        Trigger::Door => "door",
        Trigger::Run => "run",
    };
    let mut members = vec![("trigger".to_owned(), text(word))];
    if let Some(now) = now {
        let moment = RestrictedExpression::new_datetime(now.rfc3339());
        members.push((NOW.to_owned(), moment));
    }
    // Of arguments without sources no one knows where they came from.
    if let Some(sources) = sources.filter(|sources| !sources.is_empty()) {
        let words: BTreeSet<&str> = sources.values().flatten().map(|one| one.from.word()).collect();
        let words = RestrictedExpression::new_set(words.into_iter().map(text));
        members.push((SOURCES.to_owned(), words));
    }
    if let Some(arguments) = arguments {
        members.push((ARGUMENTS.to_owned(), arguments));
    }
    Context::from_pairs(members).ok()
}

fn of_tool(spec: &ToolSpec) -> Attributes {
    let tags = spec.tags.iter().map(|tag| text(tag));
    Attributes::from([
        ("reach".to_owned(), text(spec.reach.name())),
        ("idempotent".to_owned(), RestrictedExpression::new_bool(spec.idempotent)),
        ("tags".to_owned(), RestrictedExpression::new_set(tags)),
    ])
}

/// The subjects that a policy can reach beside who asks: the actor, and the owner of a session or
/// who stored a definition.
fn others<'r>(asked: &Asked<'r>) -> BTreeSet<&'r str> {
    let owner = match asked.resource {
        Resource::Session(facts) | Resource::Ask { session: facts, .. } => facts.owner,
        Resource::Definition { defined_by, .. } => defined_by,
        _ => None,
    };
    let mut found: BTreeSet<&str> =
        asked.subject.actor.as_deref().into_iter().chain(owner).collect();
    found.remove(&*asked.subject.subject);
    found
}

/// The data domain of a principal. None where its segment is larger than numbers of Cedar: a forbid
/// that asks for it must not take it for absent.
fn of_domain(domain: &DataDomain) -> Option<RestrictedExpression> {
    let DataDomain { org_ref_name, account_num, tenant_id, data_segment, owner_id } = domain;
    let written = [
        ("orgRefName", org_ref_name),
        ("accountNum", account_num),
        ("tenantId", tenant_id),
        ("ownerId", owner_id),
    ];
    let mut members = Attributes::new();
    for (name, value) in written {
        if let Some(value) = value {
            members.insert(name.to_owned(), text(value));
        }
    }
    if let Some(segment) = data_segment {
        let segment = RestrictedExpression::new_long(i64::try_from(*segment).ok()?);
        members.insert("dataSegment".to_owned(), segment);
    }
    RestrictedExpression::new_record(members).ok()
}

/// A property of a principal, which is a set of texts whatever its kind: a list has several, and
/// anything else is one.
fn texts(property: &Value) -> RestrictedExpression {
    let written = |value: &Value| match value {
        Value::String(own) => text(own),
        other => text(&other.to_string()),
    };
    match property {
        Value::Array(items) => RestrictedExpression::new_set(items.iter().map(written)),
        single => RestrictedExpression::new_set([written(single)]),
    }
}

fn one(name: &str, value: RestrictedExpression) -> Attributes {
    Attributes::from([(name.to_owned(), value)])
}

fn text(value: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(value.to_owned())
}
