//! Our own shelf. Prompts: one for each plan, which asks a model to run it, and one for each agent,
//! which gives it the instructions of the agent's own model. Resources: plans,
//! sessions with their histories, runs and blobs, under `waypost://`, and what is told of records.
//! What a caller may not see is not there for it.

mod resource_uri;
mod record_resource;
mod contents;
mod prompt;
mod agent;

use edge::record_source::RecordSource;
use edge::request::cursors::{Cursors, Purpose};
use edge::views::rows;
use engine::refusal::{Refusal, RefusalKind};
use engine::{Engine, Inspection, KnownAgent, Watch};
use futures::future::BoxFuture;
use kernel::contracts::shelf::{
    Changes, CompletionRequest, CompletionTarget, Completions, PromptRequest, PromptSpec,
    ResourceSpec, Shelf, ShelfFuture, TemplateSpec, WRONG_REQUEST,
};
use kernel::contracts::{ListPage, PageRequest, SessionFilter, SessionRef};
use kernel::definition::plan::Plan;
use kernel::journal::projection::SessionRow;
use kernel::tool::call::{Caller, ToolOutput, ToolSpec};
use kernel::values::fault::Fault;
use kernel::values::ids::{PlanId, SessionId};
use kernel::values::names::{Alphabet, inward};
use record_resource::RecordResource;
use resource_uri::{Family, ResourceUri};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::watch;
use wire::rest::{self, RunAnswer};

/// Our own shelf.
pub struct OwnShelf {
    engine: Engine,
    cursors: Cursors,
    records: Option<RecordSource>,
}

/// What our cursors begin with: at this place of the resources of records, after this plan, or at
/// this place of the sessions.
const RECORDS: &str = "records:";
const AFTER_PLAN: &str = "plan:";
const SESSIONS: &str = "sessions:";

impl OwnShelf {
    /// The shelf of this engine; cursors in what it shows are sealed with these.
    pub fn new(engine: Engine, cursors: Cursors) -> Self {
        Self { engine, cursors, records: None }
    }

    /// The same with what is told of records, where there are types.
    #[must_use]
    pub fn with_records(self, records: Option<RecordSource>) -> Self {
        Self { records, ..self }
    }

    /// What this caller may read of records, if it is the server's to tell.
    fn records(&self, caller: &Caller) -> Option<&RecordSource> {
        self.records.as_ref().filter(|_| record_resource::are_there(&self.engine, caller))
    }

    /// A plan by the name that a client writes: as its prompt was listed, or its own id.
    fn plan(&self, caller: &Caller, written: &str) -> Option<Arc<ToolSpec>> {
        let named = inward(written, Alphabet::Mcp);
        let listed = named.and_then(|id| self.engine.tools().plan(caller, &id));
        listed.or_else(|| self.engine.tools().plan(caller, written))
    }

    /// An agent by the name that a client writes.
    fn agent(&self, caller: &Caller, written: &str) -> Option<KnownAgent> {
        self.engine.catalog().agent(caller, &agent::named(written)?)
    }

    /// What an agent's prompt may name.
    fn around(&self, caller: &Caller) -> agent::PromptContext {
        let tools = self.engine.tools().list(caller);
        agent::PromptContext {
            now: self.engine.clock().now().rfc3339(),
            tools: tools.iter().map(|spec| spec.name.clone()).collect(),
        }
    }

    /// What is told of records, then all that a session has to do with.
    async fn listed(
        &self,
        caller: &Caller,
        page: &PageRequest,
    ) -> Result<ListPage<ResourceSpec>, Fault> {
        let limit = page.limit.max(1);
        let first = match page.cursor.as_deref() {
            None => Some(0),
            Some(cursor) => cursor.strip_prefix(RECORDS).and_then(|first| first.parse().ok()),
        };
        let Some(first) = first else { return self.plans_and_sessions(caller, page).await };
        let all = self.records(caller).map(|_| RecordResource::specs()).unwrap_or_default();
        let items: Vec<ResourceSpec> = all.iter().skip(first).take(limit).cloned().collect();
        let next = first + items.len();
        let next_cursor = match items.len() == limit {
            true if next < all.len() => Some(format!("{RECORDS}{next}")),
            true => Some(AFTER_PLAN.to_owned()),
            false => None,
        };
        if next_cursor.is_some() {
            return Ok(ListPage { items, next_cursor });
        }
        let rest = PageRequest { cursor: None, limit: limit - items.len() };
        let ListPage { items: more, next_cursor } = self.plans_and_sessions(caller, &rest).await?;
        Ok(ListPage { items: items.into_iter().chain(more).collect(), next_cursor })
    }

    /// All plans, then the sessions, newest first.
    async fn plans_and_sessions(
        &self,
        caller: &Caller,
        page: &PageRequest,
    ) -> Result<ListPage<ResourceSpec>, Fault> {
        let limit = page.limit.max(1);
        let mut items = Vec::new();
        let cursor = page.cursor.as_deref().unwrap_or(AFTER_PLAN);
        let sessions = match (cursor.strip_prefix(AFTER_PLAN), cursor.strip_prefix(SESSIONS)) {
            (None, None) => return Err(Fault::new(WRONG_REQUEST, "the cursor is not one of ours")),
            (None, Some(inner)) => Some(inner.to_owned()).filter(|inner| !inner.is_empty()),
            (Some(after), _) => {
                let plans = self.engine.tools().plans(caller);
                let first = plans.partition_point(|spec| spec.name.as_str() <= after);
                let page = &plans[first..plans.len().min(first.saturating_add(limit))];
                items.extend(page.iter().map(|spec| plan_resource(spec)));
                let last = page.last().filter(|_| first + page.len() < plans.len());
                if let Some(last) = last {
                    let next_cursor = Some(format!("{AFTER_PLAN}{}", last.name));
                    return Ok(ListPage { items, next_cursor });
                }
                None
            }
        };
        let room =
            limit.saturating_sub(items.len()).min(self.engine.limits().page_items_max.max(1));
        if room == 0 {
            return Ok(ListPage { items, next_cursor: Some(SESSIONS.to_owned()) });
        }
        let page = PageRequest { cursor: sessions, limit: room };
        let found = self.engine.sessions().list(caller, &SessionFilter::default(), &page).await;
        let ListPage { items: rows, next_cursor } = found.map_err(fault)?;
        items.extend(rows.iter().map(session_resource));
        Ok(ListPage { items, next_cursor: next_cursor.map(|next| format!("{SESSIONS}{next}")) })
    }

    async fn contents(&self, caller: &Caller, uri: &str) -> Result<Option<Vec<Value>>, Fault> {
        if let Some(resource) = RecordResource::read(uri) {
            let Some(source) = self.records(caller) else { return Ok(None) };
            let told = resource.contents(&self.engine, source, caller).await?;
            return Ok(Some(vec![contents::of_value(uri, &told)]));
        }
        let Some(resource) = ResourceUri::read(uri) else { return Ok(None) };
        let content = match resource {
            ResourceUri::Plan(id) => visible_plan(&self.engine, caller, &id)
                .map(|plan| contents::of_value(uri, &*plan.source)),
            ResourceUri::Session(id) => {
                let session = self.session(caller, id).await?;
                session.map(|session| contents::of_value(uri, &session))
            }
            ResourceUri::History(id) => {
                let history = self.history(caller, id).await?;
                history.map(|history| contents::of_value(uri, &history))
            }
            ResourceUri::Run(id) => {
                let report = found(self.engine.runs().report(caller, id).await)?;
                report.map(|report| contents::of_value(uri, &rows::run_answer(report)))
            }
            ResourceUri::Blob(hash) => {
                let bytes = found(self.engine.sessions().blob(caller, &hash).await)?;
                bytes.map(|bytes| contents::of_bytes(uri, bytes))
            }
        };
        Ok(content.map(|content| vec![content]))
    }

    /// A session as `GET /api/v1/sessions/{id}` shows it, its context, and its latest run.
    async fn session(&self, caller: &Caller, id: SessionId) -> Result<Option<Value>, Fault> {
        let inspected = found(self.engine.sessions().inspect(caller, &SessionRef::Id(id)).await)?;
        let Some(Inspection { row, context }) = inspected else { return Ok(None) };
        let report = match row.run {
            Some(run) => found(self.engine.runs().report(caller, run).await)?,
            None => None,
        };
        Ok(Some(match report.map(rows::run_answer) {
            Some(RunAnswer { run, session }) => {
                json!({"session": session, "run": run, "context": context})
            }
            None => json!({"session": rows::session(row, Vec::new()), "context": context}),
        }))
    }

    async fn history(
        &self,
        caller: &Caller,
        id: SessionId,
    ) -> Result<Option<rest::Page<rest::HistoryEntry>>, Fault> {
        let page = PageRequest { cursor: None, limit: self.engine.limits().page_items_default };
        let session = SessionRef::Id(id);
        let newest = found(self.engine.sessions().history(caller, &session, &page).await)?;
        // The next page is to be had where the REST API lists it.
        let of = Purpose::history(caller, &session);
        Ok(newest.map(|ListPage { items, next_cursor }| rest::Page {
            items: items.into_iter().map(rows::history_entry).collect(),
            next_cursor: self.cursors.next(&of, next_cursor),
        }))
    }

    async fn waking(&self, caller: &Caller, uri: &str) -> Result<Option<Box<dyn Changes>>, Fault> {
        if RecordResource::read(uri).is_some() {
            // Nobody is told when types or rights change: clients read them again.
            let known = self.records(caller);
            return Ok(known.map(|_| Box::new(Never) as Box<dyn Changes>));
        }
        let Some(resource) = ResourceUri::read(uri) else { return Ok(None) };
        Ok(match resource {
            ResourceUri::Plan(id) => PlanChanges::of(&self.engine, caller, id)
                .map(|changes| Box::new(changes) as Box<dyn Changes>),
            ResourceUri::Session(id) | ResourceUri::History(id) => {
                found(self.engine.sessions().get(caller, &SessionRef::Id(id)).await)?
                    .map(|row| self.session_changes(&row))
            }
            ResourceUri::Run(id) => found(self.engine.runs().report(caller, id).await)?
                .map(|report| self.session_changes(&report.session)),
            ResourceUri::Blob(hash) => found(self.engine.sessions().blob(caller, &hash).await)?
                .map(|_| Box::new(Never) as Box<dyn Changes>),
        })
    }

    fn session_changes(&self, row: &SessionRow) -> Box<dyn Changes> {
        Box::new(SessionChanges(self.engine.feed().watch(&row.key)))
    }

    async fn completed(
        &self,
        caller: &Caller,
        completion: &CompletionRequest<'_>,
    ) -> Result<Option<Vec<String>>, Fault> {
        let argument = completion.argument;
        let typed = completion.typed;
        let family = match completion.of {
            CompletionTarget::Prompt(name) if self.agent(caller, name).is_some() => {
                return Ok(Some(Vec::new()));
            }
            CompletionTarget::Prompt(name) => {
                let plan = self.plan(caller, name);
                return Ok(plan.map(|plan| prompt::choices(&plan, argument, typed)));
            }
            CompletionTarget::Template(template) => Family::of(template),
        };
        let Some(family) = family else { return Ok(None) };
        let mut values: Vec<String> = match family {
            _ if argument != family.variable() => Vec::new(),
            Family::Plans => {
                let plans = self.engine.tools().plans(caller);
                plans.iter().map(|spec| spec.name.to_string()).collect()
            }
            Family::Sessions | Family::Histories => {
                let rows = self.newest_sessions(caller).await?;
                rows.iter().map(|row| row.id.to_string()).collect()
            }
            Family::Runs => {
                let rows = self.newest_sessions(caller).await?;
                rows.iter().filter_map(|row| row.run.map(|run| run.to_string())).collect()
            }
            // No one types a hash.
            Family::Blobs => Vec::new(),
        };
        values.retain(|value| value.starts_with(typed));
        Ok(Some(values))
    }

    async fn newest_sessions(&self, caller: &Caller) -> Result<Vec<SessionRow>, Fault> {
        let page = PageRequest { cursor: None, limit: self.engine.limits().page_items_max };
        let found = self.engine.sessions().list(caller, &SessionFilter::default(), &page).await;
        found.map(|paged| paged.items).map_err(fault)
    }
}

impl Shelf for OwnShelf {
    fn prompts(&self, caller: &Caller) -> Vec<Arc<PromptSpec>> {
        let plans = self.engine.tools().plans(caller);
        let plans = plans.iter().map(|plan| Arc::new(prompt::spec(plan)));
        let agents = self.engine.catalog().agents(caller);
        plans.chain(agents.iter().map(|known| Arc::new(agent::spec(known)))).collect()
    }

    fn prompt_spec(&self, caller: &Caller, name: &str) -> Option<Arc<PromptSpec>> {
        let agent = self.agent(caller, name).map(|known| Arc::new(agent::spec(&known)));
        agent.or_else(|| self.plan(caller, name).map(|plan| Arc::new(prompt::spec(&plan))))
    }

    fn prompt<'a>(
        &'a self,
        caller: &'a Caller,
        prompting: &'a PromptRequest<'a>,
    ) -> ShelfFuture<'a, ToolOutput> {
        let name = prompting.name;
        let arguments = prompting.arguments;
        let agent = self.agent(caller, name);
        let agent = agent.map(|known| agent::filled(&known, arguments, self.around(caller)));
        let plan = || self.plan(caller, name).map(|plan| prompt::filled(&plan, arguments));
        let filled = agent.or_else(plan).map(ToolOutput::Value);
        Box::pin(std::future::ready(Ok(filled)))
    }

    fn resources<'a>(
        &'a self,
        caller: &'a Caller,
        page: &'a PageRequest,
    ) -> BoxFuture<'a, Result<ListPage<ResourceSpec>, Fault>> {
        Box::pin(self.listed(caller, page))
    }

    fn templates(&self, _caller: &Caller) -> Vec<TemplateSpec> {
        Family::ALL.into_iter().map(Family::spec).collect()
    }

    /// All URIs that are written as ours are.
    fn lists(&self, _caller: &Caller, uri: &str) -> bool {
        let is_of_records = self.records.is_some() && RecordResource::read(uri).is_some();
        is_of_records || ResourceUri::read(uri).is_some()
    }

    fn read<'a>(&'a self, caller: &'a Caller, uri: &'a str) -> ShelfFuture<'a, Vec<Value>> {
        Box::pin(self.contents(caller, uri))
    }

    fn changes<'a>(
        &'a self,
        caller: &'a Caller,
        uri: &'a str,
    ) -> ShelfFuture<'a, Box<dyn Changes>> {
        Box::pin(self.waking(caller, uri))
    }

    fn complete<'a>(
        &'a self,
        caller: &'a Caller,
        completion: &'a CompletionRequest<'a>,
    ) -> ShelfFuture<'a, Completions> {
        Box::pin(async move {
            let values = self.completed(caller, completion).await?;
            Ok(values.map(Completions::from))
        })
    }
}

/// Wakes after each commit of a session.
struct SessionChanges(Watch);

impl Changes for SessionChanges {
    fn next(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.changed())
    }
}

/// Wakes when a plan was stored again, or can no longer be seen.
struct PlanChanges {
    engine: Engine,
    caller: Caller,
    id: PlanId,
    known: Option<Arc<Plan>>,
    versions: watch::Receiver<u64>,
}

impl PlanChanges {
    fn of(engine: &Engine, caller: &Caller, id: PlanId) -> Option<Self> {
        // Watched before it is read, so that no change is lost between the two.
        let versions = engine.catalog().version(&caller.realm);
        let known = Some(visible_plan(engine, caller, &id)?);
        Some(Self { engine: engine.clone(), caller: caller.clone(), id, known, versions })
    }

    async fn changed(&mut self) {
        loop {
            // The sender lives as long as the engine, and that as long as this.
            if self.versions.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            let now = visible_plan(&self.engine, &self.caller, &self.id);
            let same = match (&self.known, &now) {
                (Some(known), Some(now)) => Arc::ptr_eq(known, now),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            if !same {
                self.known = now;
                return;
            }
        }
    }
}

impl Changes for PlanChanges {
    fn next(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.changed())
    }
}

/// Wakes nobody: what is named by its content never changes.
struct Never;

impl Changes for Never {
    fn next(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

fn visible_plan(engine: &Engine, caller: &Caller, id: &PlanId) -> Option<Arc<Plan>> {
    engine.tools().plan(caller, id.as_str())?;
    engine.catalog().plan(caller, id)
}

fn plan_resource(spec: &ToolSpec) -> ResourceSpec {
    ResourceSpec {
        uri: ResourceUri::Plan(PlanId::from(spec.name.as_str())).to_string(),
        name: spec.name.to_string(),
        title: None,
        description: Some(format!("The source of plan `{}`. {}", spec.name, spec.description)),
        mime_type: Some("application/json".to_owned()),
        bytes: None,
        listed: None,
    }
}

fn session_resource(row: &SessionRow) -> ResourceSpec {
    let plan = row.plan.as_ref().map(|plan| format!(" with plan `{plan}`")).unwrap_or_default();
    let state = if row.run.is_some() { row.status.name() } else { "new" };
    ResourceSpec {
        uri: ResourceUri::Session(row.id).to_string(),
        name: row.key.id.to_string(),
        title: None,
        description: Some(format!("A session{plan}: {state}.")),
        mime_type: Some("application/json".to_owned()),
        bytes: None,
        listed: None,
    }
}

/// What is not there is no fault: another shelf may hold it.
fn found<T>(result: Result<T, Refusal>) -> Result<Option<T>, Fault> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(refusal) if refusal.kind() == RefusalKind::NotFound => Ok(None),
        Err(refusal) => Err(fault(refusal)),
    }
}

fn fault(refusal: Refusal) -> Fault {
    let name = match refusal.kind() {
        RefusalKind::BadRequest => WRONG_REQUEST,
        _ => refusal.code.name(),
    };
    Fault { hint: refusal.hint, ..Fault::new(name, refusal.message) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::catalog::schema::JsonSchemas;
    use engine::system::clock::{SystemClock, SystemEntropy, TokioSpawn};
    use engine::{Parts, PlanFile, RunRequest, RunSession, RunTarget, SwitchedOff};
    use futures::FutureExt;
    use kernel::contracts::Policy;
    use kernel::contracts::policy::{Decision, Request, Resource};
    use kernel::limits::Limits;
    use kernel::tool::call::{Abilities, InputResponses, Verdict};
    use serde_json::Map;
    use std::collections::BTreeMap;
    use std::path::Path;

    /// No one but `root` sees what is called `secret/..`.
    struct Secretive;

    impl Policy for Secretive {
        fn decide(&self, request: &Request<'_>) -> Decision {
            match request.resource {
                Resource::Plan(id)
                    if &*request.subject.subject != "root" && id.starts_with("secret/") =>
                {
                    Verdict::Deny("it is secret".to_owned()).into()
                }
                _ => Decision::allow(),
            }
        }
    }

    fn caller(subject: &str) -> Caller {
        Caller::new("default", subject)
    }

    fn source(id: &str, says: &str) -> Value {
        let step = json!({"id": "end", "type": "final_response", "message": says});
        json!({"planId": id, "description": "says it", "steps": [step]})
    }

    fn own(folder: &Path) -> OwnShelf {
        let clock = Arc::new(SystemClock);
        let limits = Arc::new(Limits::default());
        let spawn = Arc::new(TokioSpawn::new(tokio::runtime::Handle::current()));
        let parts = stores::Parts {
            spawn: spawn.clone(),
            clock: clock.clone(),
            limits: limits.clone(),
            fatal: Arc::new(|why| panic!("{why}")),
            vfs: None,
        };
        let opened =
            stores::open(&stores::StoreLocation::Folder(folder.to_owned()), parts).unwrap();
        let engine = Engine::start(Parts {
            store: opened.store,
            definitions: opened.definitions,
            blobs: opened.blobs,
            deliveries: opened.deliveries,
            tools: Vec::new(),
            rules: kernel::tool::rules::ToolRules::default(),
            awaited: Vec::new(),
            upstreams_of: None,
            switched_off: SwitchedOff::new(),
            models: engine::Models::default(),
            observers: Vec::new(),
            policy: Arc::new(Secretive),
            audit: None,
            schemas: Arc::new(JsonSchemas::default()),
            marks: opened.marks,
            clock,
            zones: Arc::new(engine::Utc),
            entropy: Arc::new(SystemEntropy),
            spawn,
            limits,
            session_ttls: BTreeMap::new(),
            realms: None,
        })
        .unwrap();
        let plan = |id: &str| PlanFile {
            file: format!("{id}.json"),
            text: source(id, "x").to_string(),
            default_id: id.into(),
        };
        let files = vec![plan("open/a"), plan("secret/b")];
        engine.catalog().load_plans(&"default".into(), files).unwrap();
        OwnShelf::new(engine, Cursors::new([7; 32]))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn resources_that_a_caller_may_not_read_are_absent() {
        let folder = tempfile::tempdir().unwrap();
        let own = own(folder.path());
        let uri = "waypost://plans/secret%2Fb";
        let all = PageRequest { cursor: None, limit: 100 };
        let completion = CompletionRequest {
            of: CompletionTarget::Template("waypost://plans/{id}"),
            argument: "id",
            typed: "secret/",
            chosen: None,
        };
        for (subject, plans) in [("ann", 1), ("root", 2)] {
            let caller = caller(subject);
            let sees = plans == 2;
            assert_eq!(own.prompts(&caller).len(), plans);
            assert_eq!(own.prompt_spec(&caller, "secret--b").is_some(), sees);
            let arguments = &Map::new();
            let given = &InputResponses::default();
            let can = Abilities::PERSON;
            let prompting = PromptRequest { name: "secret/b", arguments, given, can };
            let prompt = own.prompt(&caller, &prompting).await.unwrap();
            assert_eq!(prompt.is_some(), sees);
            assert_eq!(own.resources(&caller, &all).await.unwrap().items.len(), plans);
            assert_eq!(own.read(&caller, uri).await.unwrap().is_some(), sees);
            assert_eq!(own.changes(&caller, uri).await.unwrap().is_some(), sees);
            let values = own.complete(&caller, &completion).await.unwrap().unwrap().values;
            assert_eq!(values.len(), plans - 1);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_plan_wakes_when_it_is_stored_again() {
        let folder = tempfile::tempdir().unwrap();
        let own = own(folder.path());
        let ann = caller("ann");
        let changes = own.changes(&ann, "waypost://plans/open%2Fa").await.unwrap();
        let mut changes = changes.unwrap();
        own.engine.catalog().register_plan(&ann, source("open/c", "y"), None).await.unwrap();
        assert_eq!(changes.next().now_or_never(), None, "another plan");
        own.engine.catalog().register_plan(&ann, source("open/a", "y"), None).await.unwrap();
        assert_eq!(changes.next().now_or_never(), Some(()));
        assert_eq!(changes.next().now_or_never(), None);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_session_wakes_after_its_commits() {
        let folder = tempfile::tempdir().unwrap();
        let own = own(folder.path());
        let ann = caller("ann");
        let id = own.engine.sessions().create(&ann, None).await.unwrap().id;
        let read = own.read(&ann, &ResourceUri::Session(id).to_string()).await.unwrap().unwrap();
        assert!(read[0]["text"].as_str().unwrap().contains("\"context\":{}"), "{read:?}");
        let mut woken = Vec::new();
        for resource in [ResourceUri::Session(id), ResourceUri::History(id)] {
            woken.push(own.changes(&ann, &resource.to_string()).await.unwrap().unwrap());
        }
        let request = RunRequest {
            target: RunTarget::Plan("open/a".into()),
            input: json!({}),
            session: RunSession::Existing(SessionRef::Id(id)),
            once: None,
            about: Default::default(),
        };
        let report = own.engine.runs().start(&ann, request, 10_000).await.unwrap();
        for mut changes in woken {
            changes.next().await;
        }
        let of_run = own.changes(&ann, &ResourceUri::Run(report.run.id).to_string()).await.unwrap();
        assert!(of_run.is_some());
    }
}
