//! Policy tests in `policies/tests.yaml`: who does what to what, and the expected verdict. They
//! need no server, and no tools where the file describes them.

use crate::decide::{Policies, Question};
use kernel::contracts::policy::{Context, Decision, Request, Resource, SessionFacts};
use kernel::definition::plan::mistake::{Mistake, Position};
use kernel::definition::plan::source::{Node, NodeKind, Subject};
use kernel::identity::grants::Grants;
use kernel::identity::principal::{DataDomain, Principal, Roster};
use kernel::identity::roles::Roles;
use kernel::limits::Limits;
use kernel::tool::call::{OutputKind, Pace, Reach, ToolSpec, Verdict};
use kernel::values::caller::{Act, Caller};
use kernel::values::ids::{Millis, RealmId};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How mistakes of the file are reported.
const TESTS: Subject = Subject {
    noun: "tests of policies",
    if_empty: "it has `cases`, each with `subject`, `act`, `resource` and `expect`",
    if_large: "keep fewer cases",
    if_deep: "arguments are not that deep",
};
/// The keys of the file.
const KEYS: [&str; 2] = ["cases", "tools"];
/// The space of a session that a case does not name.
const SPACE: &str = "session";

/// The tests of one file.
#[derive(Debug, Default)]
pub struct Cases {
    file: String,
    tools: BTreeMap<String, Arc<ToolSpec>>,
    cases: Vec<(Position, Case)>,
}

#[derive(Debug, Clone)]
pub struct Setup<'a> {
    /// The tools that the file does not describe.
    pub tools: &'a [Arc<ToolSpec>],
    /// The realm of cases that name none.
    pub realm: RealmId,
    /// The moment of cases that name none.
    pub now: Millis,
    /// Whether all built-in roles permit something; else only `admin` does.
    pub builtin: bool,
}

/// One test.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    #[serde(default)]
    name: Option<String>,
    subject: Arc<str>,
    #[serde(default)]
    roles: Vec<Arc<str>>,
    #[serde(default)]
    actor: Option<Arc<str>>,
    #[serde(default)]
    realm: Option<RealmId>,
    /// Data domain of its principal, if it is one.
    #[serde(default)]
    data_domain: Option<DataDomain>,
    #[serde(default)]
    properties: BTreeMap<String, Value>,
    act: Act,
    resource: On,
    #[serde(default)]
    arguments: Option<Value>,
    /// Milliseconds since 1970.
    #[serde(default)]
    now: Option<i64>,
    expect: Expected,
    /// The policies that decide, where that matters.
    #[serde(default)]
    by: Option<OneOrMore>,
    /// The row filters that hold, where that matters.
    #[serde(default)]
    rows: Option<OneOrMore>,
    /// The fields that are hidden, where that matters.
    #[serde(default)]
    hide: Option<OneOrMore>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expected {
    Allow,
    Deny,
    Ask,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    Several(Vec<String>),
}

impl OneOrMore {
    /// In order, without spaces around them.
    fn sorted(&self) -> Vec<&str> {
        let all = match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several.as_slice(),
        };
        let mut all: Vec<&str> = all.iter().map(|one| one.trim()).collect();
        all.sort_unstable();
        all
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum On {
    Tool(String),
    Plan(String),
    InlinePlan,
    Agent(String),
    Pipeline(String),
    Session(Facts),
    Ask {
        kind: String,
        session: Facts,
    },
    Blob(String),
    Definition {
        kind: String,
        name: String,
        #[serde(default, rename = "definedBy")]
        defined_by: Option<String>,
    },
    /// By its full name.
    #[serde(alias = "record_type")]
    RecordType(String),
    Upstream(String),
    Sink(String),
    Principal(String),
    Server,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Facts {
    owner: Option<String>,
    space: Option<String>,
    plan: Option<String>,
    agent: Option<String>,
    pipeline: Option<String>,
}

/// A tool as a file describes it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DescribedTool {
    #[serde(default)]
    input_schema: Option<Arc<Value>>,
    #[serde(default)]
    reach: Option<Reach>,
    #[serde(default)]
    idempotent: bool,
    #[serde(default)]
    tags: Vec<String>,
}

impl Cases {
    /// Reads a file, given by name and text.
    pub fn read(file: &str, text: &str) -> Result<Self, Vec<Mistake>> {
        let filed = |mistake: Mistake| Mistake { file: Some(file.to_owned()), ..mistake };
        let root = Node::parse_as(&TESTS, text, &Limits::default())
            .map_err(|found| found.into_iter().map(filed).collect::<Vec<_>>())?;
        let mut read = Self { file: file.to_owned(), ..Self::default() };
        let mut mistakes = read.fill(&root);
        if mistakes.is_empty() {
            return Ok(read);
        }
        mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
        Err(mistakes.into_iter().map(filed).collect())
    }

    fn fill(&mut self, root: &Node) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let NodeKind::Map(entries) = &root.kind else {
            let mistake = Mistake::error("expected a map with `cases`").hint(TESTS.if_empty);
            return vec![mistake.at(root.begin(), "")];
        };
        for (key, _) in entries.iter().filter(|(key, _)| !KEYS.contains(&key.text.as_str())) {
            let mistake = Mistake::error(format!("unknown key `{}`", key.text))
                .hint("the keys are `cases` and `tools`");
            mistakes.push(mistake.at(key.begin(), format!("/{}", key.text)));
        }
        match root.get("tools").map(|tools| &tools.kind) {
            None => {}
            Some(NodeKind::Map(tools)) => {
                for (key, node) in tools {
                    match serde_json::from_value::<DescribedTool>(node.to_value()) {
                        Ok(tool) => {
                            let spec = Arc::new(tool.spec(&key.text));
                            self.tools.insert(key.text.clone(), spec);
                        }
                        Err(error) => mistakes.push(unread(&error.to_string(), node.begin())),
                    }
                }
            }
            Some(_) => {
                let mistake = Mistake::error("`tools` is not a map").hint("give each its name");
                mistakes.push(mistake.at(root.begin(), "/tools"));
            }
        }
        match root.get("cases").map(|cases| &cases.kind) {
            Some(NodeKind::List(cases)) => {
                for node in cases {
                    match serde_json::from_value::<Case>(node.to_value()) {
                        Ok(case) => self.cases.push((node.begin(), case)),
                        Err(error) => mistakes.push(unread(&error.to_string(), node.begin())),
                    }
                }
            }
            _ => {
                let mistake = Mistake::error("`cases` is not a list").hint(TESTS.if_empty);
                mistakes.push(mistake.at(root.begin(), "/cases"));
            }
        }
        mistakes
    }

    pub fn len(&self) -> usize {
        self.cases.len()
    }

    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// Runs all, and returns those that fail, each where it stands.
    pub fn run(&self, policies: &Policies, setup: &Setup<'_>) -> Vec<Mistake> {
        let failed = |(position, case): &(Position, Case)| {
            let why = self.failure(case, policies, setup)?;
            let name = case.name.as_ref().map(|name| format!("`{name}`: ")).unwrap_or_default();
            let mut mistake = Mistake::error(format!("{name}{why}")).at(*position, "");
            mistake.file = Some(self.file.clone());
            Some(mistake)
        };
        self.cases.iter().filter_map(failed).collect()
    }

    /// What is decided of one case, written as in the file, but without `expect`. Tools that this
    /// file describes are known.
    pub fn explain(
        &self,
        case: &str,
        policies: &Policies,
        setup: &Setup<'_>,
    ) -> Result<Decision, Vec<Mistake>> {
        let node = Node::parse_as(&TESTS, case, &Limits::default())?;
        let mut value = node.to_value();
        if let Some(fields) = value.as_object_mut() {
            fields.entry("expect").or_insert_with(|| json!("allow"));
        }
        let case: Case = serde_json::from_value(value)
            .map_err(|error| vec![unread(&error.to_string(), node.begin())])?;
        self.judged(&case, policies, setup).map_err(|why| vec![Mistake::error(why)])
    }

    fn failure(&self, case: &Case, policies: &Policies, setup: &Setup<'_>) -> Option<String> {
        match self.judged(case, policies, setup) {
            Ok(decision) => case.compared(&decision),
            Err(why) => Some(why),
        }
    }

    fn judged(
        &self,
        case: &Case,
        policies: &Policies,
        setup: &Setup<'_>,
    ) -> Result<Decision, String> {
        let spec = match &case.resource {
            On::Tool(name) => match self.tool(name, setup) {
                Some(spec) => Some(spec),
                None => return Err(format!("there is no tool `{name}`; describe it in `tools`")),
            },
            _ => None,
        };
        let realm = case.realm.clone().unwrap_or_else(|| setup.realm.clone());
        let caller = Caller { actor: case.actor.clone(), ..Caller::new(realm, &*case.subject) };
        let resource = case.resource.resource(spec.map(AsRef::as_ref));
        let context = Context { arguments: case.arguments.as_ref(), ..Context::default() };
        let request = Request { act: case.act, subject: &caller, resource, context };
        let roles: Roles = case.roles.iter().cloned().collect();
        let principals = case.principals();
        Ok(policies.judge(&Question {
            request: &request,
            roles: &roles,
            principals: &principals,
            now: case.now.map_or(setup.now, Millis),
            builtin: setup.builtin,
        }))
    }

    fn tool<'t>(&'t self, name: &str, setup: &Setup<'t>) -> Option<&'t Arc<ToolSpec>> {
        let of_catalog = || setup.tools.iter().find(|spec| spec.name.as_str() == name);
        self.tools.get(name).or_else(of_catalog)
    }
}

impl Case {
    /// The subject as a principal, alone.
    fn principals(&self) -> Roster {
        let principal = Principal {
            data_domain: self.data_domain.clone(),
            properties: self.properties.clone(),
            ..Principal::new(self.subject.clone(), Grants::default())
        };
        Roster::combine(&[Arc::new(principal)], std::iter::empty()).0
    }

    /// Differences from the expectation.
    fn compared(&self, decision: &Decision) -> Option<String> {
        let (found, why) = match &decision.verdict {
            Verdict::Allow => (Expected::Allow, ""),
            Verdict::Ask(why) => (Expected::Ask, why.as_str()),
            Verdict::Deny(why) => (Expected::Deny, why.as_str()),
        };
        let mut decided: Vec<&str> = decision.policies.iter().map(AsRef::as_ref).collect();
        decided.sort_unstable();
        let by = if decided.is_empty() { "no policy".to_owned() } else { decided.join(", ") };
        if found != self.expect {
            let expected = self.expect.word();
            let found = found.word();
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            return Some(format!("expected {expected}, decided {found} by {by}{why}"));
        }
        let expected = self.by.as_ref().map(OneOrMore::sorted);
        if let Some(expected) = expected.filter(|expected| *expected != decided) {
            let wanted = expected.join(", ");
            return Some(format!("expected a decision by {wanted}, decided by {by}"));
        }
        differing("the row filters", self.rows.as_ref(), &decision.rows())
            .or_else(|| differing("the hidden fields", self.hide.as_ref(), &decision.hidden()))
    }
}

/// How what was expected differs from what was decided, if something was expected.
fn differing(what: &str, expected: Option<&OneOrMore>, decided: &[Arc<str>]) -> Option<String> {
    let expected = expected?.sorted();
    let mut decided: Vec<&str> = decided.iter().map(|one| one.trim()).collect();
    decided.sort_unstable();
    let listed = |all: &[&str]| match all {
        [] => "none".to_owned(),
        _ => all.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", "),
    };
    (expected != decided)
        .then(|| format!("expected {what} {}, decided {}", listed(&expected), listed(&decided)))
}

impl Expected {
    fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Ask => "ask",
        }
    }
}

impl On {
    /// The same for policy. The tool is there where it is one.
    fn resource<'c>(&'c self, spec: Option<&'c ToolSpec>) -> Resource<'c> {
        match self {
            Self::Tool(_) => spec.map_or(Resource::Server, Resource::Tool),
            Self::Plan(id) => Resource::Plan(id),
            Self::InlinePlan => Resource::InlinePlan,
            Self::Agent(name) => Resource::Agent(name),
            Self::Pipeline(name) => Resource::Pipeline(name),
            Self::Session(facts) => Resource::Session(facts.facts()),
            Self::Ask { kind, session } => Resource::Ask { kind, session: session.facts() },
            Self::Blob(hash) => Resource::Blob(hash),
            Self::Definition { kind, name, defined_by } => {
                Resource::Definition { kind, name, defined_by: defined_by.as_deref() }
            }
            Self::RecordType(name) => Resource::RecordType(name),
            Self::Upstream(name) => Resource::Upstream(name),
            Self::Sink(name) => Resource::Sink(name),
            Self::Principal(id) => Resource::Principal(id),
            Self::Server => Resource::Server,
        }
    }
}

impl Facts {
    fn facts(&self) -> SessionFacts<'_> {
        SessionFacts {
            owner: self.owner.as_deref(),
            space: self.space.as_deref().unwrap_or(SPACE),
            plan: self.plan.as_deref(),
            agent: self.agent.as_deref(),
            pipeline: self.pipeline.as_deref(),
            id: None,
        }
    }
}

impl DescribedTool {
    fn spec(self, name: &str) -> ToolSpec {
        ToolSpec {
            name: name.into(),
            title: String::new(),
            description: String::new(),
            input_schema: self.input_schema.unwrap_or_else(|| Arc::new(json!({}))),
            output_schema: None,
            reach: self.reach.unwrap_or(Reach::Writes),
            idempotent: self.idempotent,
            tags: self.tags,
            pace: Pace::Quick,
            yields: OutputKind::Value,
            unrecorded: false,
            listed: None,
        }
    }
}

fn unread(error: &str, position: Position) -> Mistake {
    Mistake::error(error).at(position, "").hint(
        "a case has `subject`, `act`, `resource` and `expect`, and may have `name`, `roles`, \
         `actor`, `realm`, `dataDomain`, `properties`, `arguments`, `now`, `by`, `rows` and \
         `hide`; a tool may have `inputSchema`, `reach`, `idempotent` and `tags`",
    )
}
