//! Policy is asked about everything: what it denies is refused and writes nothing, what may not be
//! read is not there, lists are judged at once, and scopes are a ceiling over all of it.

use crate::world::{WAIT_MS, World, caller};
use crate::{ASK, READ};
use engine::{
    AgentFile, AllowAll, AuditParts, AuditRules, CaseReport, Parts, PipelineFile, Refusal,
    RefusalCode, RunRequest, RunSession, RunTarget, SessionReply, SubmitOptions, ThreadMessage,
};
use kernel::ask::{FixAction, Reply};
use kernel::contracts::policy::{Context, Decision, Request, Resource};
use kernel::contracts::{AskFilter, PageRequest, Policy, SessionFilter, SessionRef};
use kernel::limits::Limits;
use kernel::tool::call::{Caller, Verdict};
use kernel::values::caller::{Act, LOCAL, Scope};
use kernel::values::ids::{AskId, ContentHash, RealmId, RunId};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const HELPER: &str = "refName: helper\nllmConfigRef: fast\n";
const CASES: &str = "\
http: {route: /cases}
schema: {caseIdField: id, allowedFields: [id, reason], requiredFields: [id, reason]}
handlers: [{reason: known, type: escalate}]
tools: ['slow::read']
llm: {type: model, params: {name: fast}}
";

/// Denies these acts, and notes which lists it judged.
#[derive(Default)]
struct Denying {
    acts: Mutex<Vec<Act>>,
    judged: Mutex<Vec<(Act, usize)>>,
}

impl Denying {
    fn deny(&self, acts: &[Act]) {
        *self.acts.lock().unwrap() = acts.to_vec();
    }

    /// The lists that it judged since it was last asked this.
    fn judged(&self) -> Vec<(Act, usize)> {
        std::mem::take(&mut *self.judged.lock().unwrap())
    }
}

impl Policy for Denying {
    fn decide(&self, request: &Request<'_>) -> Decision {
        match self.acts.lock().unwrap().contains(&request.act) {
            true => Verdict::Deny("as the test wants".to_owned()).into(),
            false => Decision::allow(),
        }
    }

    fn decide_all(&self, subject: &Caller, act: Act, resources: &[Resource<'_>]) -> Vec<Decision> {
        self.judged.lock().unwrap().push((act, resources.len()));
        let context = Context::default();
        let one = |resource: &Resource<'_>| {
            self.decide(&Request { act, subject, resource: *resource, context })
        };
        resources.iter().map(one).collect()
    }

    fn version(&self) -> Option<Arc<str>> {
        Some(format!("{:?}", self.acts.lock().unwrap()).into())
    }
}

async fn world(folder: &Path) -> (World, Arc<Denying>) {
    let policy = Arc::new(Denying::default());
    let held = policy.clone();
    let world = World::changed(folder, &[ASK, READ], |parts| Parts { policy: held, ..parts }).await;
    let realm = RealmId::from("default");
    let catalog = world.engine.catalog();
    let agent = AgentFile { file: "helper.yaml".to_owned(), text: HELPER.to_owned() };
    catalog.set_agents_from_files(&realm, vec![agent]).unwrap();
    add_cases(&world);
    (world, policy)
}

fn add_cases(world: &World) {
    let pipeline = PipelineFile {
        file: "cases.yaml".to_owned(),
        text: CASES.to_owned(),
        default_name: "cases".into(),
    };
    world.engine.catalog().set_pipelines(&"default".into(), vec![pipeline]).unwrap();
}

fn named(session: &str) -> SessionRef {
    SessionRef::Key { key: session.into(), space: None }
}

fn yes() -> Reply {
    Reply::Clarify { answer: Some(json!("yes")) }
}

fn resume() -> SessionReply {
    SessionReply { input: Some(json!("yes")), ..SessionReply::default() }
}

fn page() -> PageRequest {
    PageRequest { cursor: None, limit: 100 }
}

fn inline(source: Value) -> RunRequest {
    RunRequest {
        target: RunTarget::Inline(source),
        input: json!({}),
        session: RunSession::New,
        once: None,
        about: Default::default(),
    }
}

fn says_ok() -> Value {
    json!({"planId": "own", "steps": [{"id": "end", "type": "final_response", "message": "ok"}]})
}

/// What there is to do something to.
struct Open {
    /// A run that waits for a person.
    run: RunId,
    ask: AskId,
    /// A run whose step failed.
    stuck: RunId,
}

impl Open {
    async fn begin(world: &World) -> Self {
        let report = world.run("ask", json!({}), "s").await;
        world.permits.add_permits(1);
        let call = json!({"id": "call", "type": "tool_call", "toolId": "slow::write",
            "arguments": {"fail": true}});
        let fails = inline(json!({"planId": "fails", "steps": [call]}));
        let stuck = world.engine.runs().start(&caller(), fails, WAIT_MS).await.unwrap();
        assert_eq!(stuck.run.status.name(), "stuck");
        Self { run: report.run.id, ask: report.asks[0].row.ask.id, stuck: stuck.run.id }
    }
}

/// What each act comes down to, at each entry of the engine that it is asked at.
async fn tried(world: &World, act: Act, open: &Open) -> Vec<Option<Refusal>> {
    let engine = &world.engine;
    let me = &caller();
    let s = &named("s");
    let Open { run, ask, stuck } = *open;
    let runs = engine.runs();
    let sessions = engine.sessions();
    let catalog = engine.catalog();
    let feed = engine.feed();
    match act {
        Act::Run => vec![
            runs.start(me, world.request("read", json!({}), "new"), 0).await.err(),
            runs.start(me, inline(says_ok()), 0).await.err(),
            sessions.create(me, Some("made".to_owned())).await.err(),
        ],
        Act::Talk => {
            let saying = ThreadMessage { thread: "t", text: "hello", ..ThreadMessage::default() };
            vec![
                engine.threads().say(me, saying, 0).await.err(),
                runs.start(me, world.request("agent/helper", json!({}), "new"), 0).await.err(),
            ]
        }
        Act::Submit => {
            let pipeline = catalog.pipeline(me, &"cases".into()).unwrap();
            let case = pipeline.admit(&json!({"id": "1", "reason": "known"})).unwrap();
            let options = SubmitOptions::default();
            vec![engine.cases().submit(me, &pipeline, case, options).await.err()]
        }
        Act::Cancel => vec![runs.cancel(me, run).await.err(), runs.pause(me, run).await.err()],
        Act::Answer => vec![
            engine.asks().reply(me, ask, yes(), None, WAIT_MS).await.err(),
            engine.asks().resume(me, s, resume(), WAIT_MS).await.err(),
            engine.asks().reply_all(me, s, vec![(ask, yes())], None, WAIT_MS).await.err(),
            runs.continue_run(me, run).await.err(),
            runs.retry(me, stuck, WAIT_MS).await.err(),
        ],
        Act::Fork => vec![sessions.fork(me, s, None).await.err()],
        Act::Export => vec![sessions.export(me, s).await.err()],
        Act::Remove => {
            vec![sessions.remove(me, s).await.err(), sessions.remove_unsent(me, s).await.err()]
        }
        Act::Define => vec![
            catalog.register_plan(me, says_ok(), None).await.err(),
            catalog
                .register_agent(me, json!({"refName": "new", "llmConfigRef": "m"}), None)
                .await
                .err(),
            catalog.remove_agent(me, &"helper".into()).await.err(),
            catalog.remove_plan(me, &"read".into()).await.err(),
        ],
        Act::Operate => vec![
            engine.admin().prune(me, 0).await.err(),
            feed.forget_sink(me, "x").await.err(),
            feed.resume_sink(me, "x").await.err(),
            feed.resend(me, "x", "y").await.err(),
        ],
        // What they are done to is an endpoint's, or nobody's yet.
        Act::LogIn | Act::Administer | Act::Impersonate => {
            vec![engine.admin().permit(me, act, Resource::Upstream("x")).err()]
        }
        // A test of its own each: what is denied is not there.
        // Records are saved by tools, never by the engine.
        Act::Call | Act::Read | Act::Save => Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_act_is_refused_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (world, policy) = world(folder.path()).await;
    let open = Open::begin(&world).await;
    let before = world.store.feed_end().await.unwrap();
    for act in Act::ALL {
        policy.deny(&[*act]);
        for (at, refusal) in tried(&world, *act, &open).await.into_iter().enumerate() {
            let code = refusal.map(|refusal| refusal.code);
            assert_eq!(code, Some(RefusalCode::Forbidden(*act)), "entry {at} of {act:?}");
        }
    }
    policy.deny(&[]);
    assert_eq!(world.store.feed_end().await.unwrap(), before, "something was written");
    assert!(world.engine.catalog().plan(&caller(), &"own".into()).is_none());
    assert!(world.engine.catalog().agent(&caller(), &"helper".into()).is_some());
    let replied = world.engine.asks().reply(&caller(), open.ask, yes(), None, WAIT_MS).await;
    assert_eq!(replied.unwrap().run.run.status.name(), "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_resources_look_absent_for_every_act() {
    let folder = tempfile::tempdir().unwrap();
    let (world, policy) = world(folder.path()).await;
    let report = world.run("ask", json!({}), "s").await;
    let run = report.run.id;
    let ask = report.asks[0].row.ask.id;
    policy.deny(Act::ALL);
    let engine = &world.engine;
    let me = &caller();
    let s = &named("s");
    let runs = engine.runs();
    let sessions = engine.sessions();
    let codes = [
        sessions.get(me, s).await.err(),
        sessions.inspect(me, s).await.err(),
        sessions.history(me, s, &page()).await.err(),
        sessions.events(me, s, 0, 10).await.err(),
        sessions.transcript(me, s).await.err(),
        sessions.remove(me, s).await.err(),
        sessions.fork(me, s, None).await.err(),
        sessions.export(me, s).await.err(),
        sessions.blob(me, &ContentHash::of(b"x")).await.err(),
        runs.start(me, world.request("ask", json!({}), "s"), 0).await.err(),
        engine.asks().get(me, ask).await.err(),
        engine.asks().reply(me, ask, yes(), None, 0).await.err(),
        engine.tools().call(me, &"slow::read".into(), json!({}), 0).await.err(),
    ];
    for (at, refusal) in codes.into_iter().enumerate() {
        assert_eq!(refusal.map(|refusal| refusal.code), Some(RefusalCode::NotFound), "{at}");
    }
    for refusal in [runs.report(me, run).await.err(), runs.cancel(me, run).await.err()] {
        assert_eq!(refusal.map(|refusal| refusal.code), Some(RefusalCode::NoRun(run)));
    }
    let listed = sessions.list(me, &SessionFilter::default(), &page()).await.unwrap();
    assert!(listed.items.is_empty());
    assert!(engine.asks().list(me, &AskFilter::default(), &page()).await.unwrap().items.is_empty());
    let catalog = engine.catalog();
    assert!(catalog.plans(me).is_empty() && catalog.agents(me).is_empty());
    assert!(catalog.pipelines(me).is_empty() && catalog.pipeline_at(me, "/cases").is_none());
    assert!(engine.tools().callables(me).is_empty());
    let rows = engine.feed().rows(me, 0, 100).await.unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row.body == "[]"), "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_judged_in_one_batch_and_once_per_version() {
    let folder = tempfile::tempdir().unwrap();
    let (world, policy) = world(folder.path()).await;
    let engine = &world.engine;
    let me = &caller();
    for session in ["a", "b", "c"] {
        engine.sessions().create(me, Some(session.to_owned())).await.unwrap();
    }
    policy.judged();
    engine.sessions().list(me, &SessionFilter::default(), &page()).await.unwrap();
    assert_eq!(policy.judged(), [(Act::Read, 3)]);
    engine.sessions().list(me, &SessionFilter::default(), &page()).await.unwrap();
    assert_eq!(policy.judged(), [(Act::Read, 3)], "sessions change all the time");
    let tools = engine.tools().list(me);
    assert_eq!(policy.judged(), [(Act::Call, tools.len())]);
    assert_eq!(engine.tools().list(me), tools);
    assert!(policy.judged().is_empty(), "the same list was judged twice");
    let other = Caller { actor: Some("eve".into()), ..caller() };
    assert_eq!(engine.tools().list(&other), tools);
    assert_eq!(policy.judged(), [(Act::Call, tools.len())]);
    policy.deny(&[Act::Call]);
    assert!(engine.tools().list(me).is_empty());
    assert_eq!(policy.judged(), [(Act::Call, tools.len())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_are_rejudged_only_after_a_change_of_them_or_of_policy() {
    let folder = tempfile::tempdir().unwrap();
    let (world, policy) = world(folder.path()).await;
    let catalog = world.engine.catalog();
    let me = &caller();
    let count = |who: &Caller| {
        [catalog.plans(who).len(), catalog.agents(who).len(), catalog.pipelines(who).len()]
    };
    let judged = |counts: [usize; 3]| counts.map(|count| (Act::Read, count));
    policy.judged();
    assert_eq!(count(me), [2, 1, 1]);
    assert_eq!(policy.judged(), judged([2, 1, 1]));
    assert_eq!(count(me), [2, 1, 1]);
    assert!(policy.judged().is_empty(), "the same lists were judged twice");
    let other = Caller { actor: Some("eve".into()), ..caller() };
    assert_eq!(count(&other), [2, 1, 1]);
    assert_eq!(policy.judged(), judged([2, 1, 1]));
    catalog.register_plan(me, says_ok(), None).await.unwrap();
    assert_eq!(count(me), [3, 1, 1]);
    assert_eq!(policy.judged(), judged([3, 1, 1]));
    // No one is notified of a change of pipelines alone; their list follows it all the same.
    catalog.set_pipelines(&me.realm, Vec::new()).unwrap();
    assert_eq!(count(me), [3, 1, 0]);
    policy.deny(&[Act::Read]);
    assert_eq!(count(me), [0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_are_a_ceiling_even_where_policy_allows_everything() {
    let folder = tempfile::tempdir().unwrap();
    let allowed = |parts: Parts| Parts { policy: Arc::new(AllowAll), ..parts };
    let world = World::changed(folder.path(), &[ASK], allowed).await;
    let with =
        |scopes: &[Scope]| Caller { scopes: Some(scopes.iter().copied().collect()), ..caller() };
    let reads = with(&[Scope::Read]);
    let answers = with(&[Scope::Answer]);
    let runs = world.engine.runs();
    let tools = world.engine.tools();
    let code = |refusal: Option<Refusal>| refusal.map(|refusal| refusal.code);
    for who in [&reads, &answers] {
        let started = runs.start(who, world.request("ask", json!({}), "s"), 0).await;
        assert_eq!(code(started.err()), Some(RefusalCode::OutOfScope(Act::Run)));
        let called = tools.call(who, &"slow::read".into(), json!({}), 0).await;
        assert_eq!(code(called.err()), Some(RefusalCode::OutOfScope(Act::Call)));
        assert!(tools.list(who).is_empty());
    }
    let report = world.run("ask", json!({}), "s").await;
    let ask = report.asks[0].row.ask.id;
    let asks = world.engine.asks();
    assert_eq!(asks.get(&reads, ask).await.unwrap().row.ask.id, ask);
    let refused = asks.reply(&reads, ask, yes(), None, WAIT_MS).await;
    assert_eq!(code(refused.err()), Some(RefusalCode::OutOfScope(Act::Answer)));
    assert_eq!(code(asks.get(&with(&[]), ask).await.err()), Some(RefusalCode::NotFound));
    asks.reply(&answers, ask, yes(), None, WAIT_MS).await.unwrap();
}

/// Hides one plan, and has a person asked before another.
struct Hiding;

impl Policy for Hiding {
    fn decide(&self, request: &Request<'_>) -> Decision {
        match (request.resource, request.act) {
            (Resource::Plan("read"), _) => Verdict::Deny("it is hidden".to_owned()).into(),
            (Resource::Plan("ask"), Act::Run) => Verdict::Ask("it is large".to_owned()).into(),
            _ => Decision::allow(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_plan_looks_absent_inside_a_callers_own_plan() {
    let folder = tempfile::tempdir().unwrap();
    let hiding = |parts: Parts| Parts { policy: Arc::new(Hiding), ..parts };
    let world = World::changed(folder.path(), &[ASK, READ], hiding).await;
    let runs = world.engine.runs();
    let started = async |plan: &str| {
        let started = runs.start(&caller(), world.request(plan, json!({}), "s"), 0).await;
        let refusal = started.unwrap_err();
        (refusal.code, refusal.message.replace(plan, ""), refusal.hint)
    };
    assert_eq!(started("read").await, started("raed").await);
    let inside = async |plan: &str| {
        let steps = json!([
            {"id": "inner", "type": "plan", "planId": plan, "nextStepId": "end"},
            {"id": "end", "type": "final_response", "message": "ok"},
        ]);
        let source = json!({"planId": "own", "steps": steps});
        runs.start(&caller(), inline(source), 0).await.map_err(|refusal| refusal.code).err()
    };
    assert_eq!(inside("read").await, inside("raed").await);
    assert_eq!(inside("read").await, Some(RefusalCode::InvalidPlan));
    let refusal = runs.start(&caller(), world.request("ask", json!({}), "s"), 0).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::ApprovalNeeded);
    assert!(world.engine.tools().plan(&caller(), "ask").is_some());
    assert!(world.engine.tools().plan(&caller(), "read").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_plan_may_run_sub_plans_its_starter_cannot_see() {
    let outer = "planId: outer\nsteps: [{id: inner, type: plan, planId: read, nextStepId: end}, \
        {id: end, type: final_response, message: ok}]";
    let folder = tempfile::tempdir().unwrap();
    let hiding = |parts: Parts| Parts { policy: Arc::new(Hiding), ..parts };
    let world = World::changed(folder.path(), &[READ, outer], hiding).await;
    world.permits.add_permits(1);
    let report = world.run("outer", json!({}), "s").await;
    assert_eq!((report.run.status.name(), world.sent()), ("completed", 1));
}

/// Lets nobody but `ann` call.
struct AnnCalls;

impl Policy for AnnCalls {
    fn decide(&self, request: &Request<'_>) -> Decision {
        match request.act == Act::Call && &*request.subject.subject != "ann" {
            true => Verdict::Deny("only ann calls".to_owned()).into(),
            false => Decision::allow(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_callers_of_a_tool_may_supply_its_arguments_and_outputs() {
    let folder = tempfile::tempdir().unwrap();
    let judged = |parts: Parts| Parts { policy: Arc::new(AnnCalls), ..parts };
    let world = World::changed(folder.path(), &[], judged).await;
    world.permits.add_permits(1);
    let call = json!({"id": "call", "type": "tool_call", "toolId": "slow::write",
        "arguments": {"fail": true}, "nextStepId": "end"});
    let end = json!({"id": "end", "type": "final_response", "message": "ok"});
    let fails = inline(json!({"planId": "fails", "steps": [call, end]}));
    let stuck = world.engine.runs().start(&caller(), fails, WAIT_MS).await.unwrap();
    let ask = stuck.asks[0].row.ask.id;
    let edit = || {
        let arguments = Some(Arc::new(json!({"n": 1})));
        Reply::Fix { action: FixAction::Edit, arguments, output: None, plan_id: None }
    };
    let settle = || {
        let output = Some(json!("mine"));
        Reply::Fix { action: FixAction::Settle, arguments: None, output, plan_id: None }
    };
    let answers = Some([Scope::Answer].into_iter().collect());
    let narrow = Caller { scopes: answers, ..caller() };
    let asks = world.engine.asks();
    for who in [Caller::new("default", "eve"), narrow] {
        for reply in [edit(), settle()] {
            let refused = asks.reply(&who, ask, reply, None, WAIT_MS).await.err();
            let code = refused.map(|refusal| refusal.code);
            assert_eq!(code, Some(RefusalCode::EditRefused), "{who:?}");
        }
    }
    let settled = asks.reply(&caller(), ask, settle(), None, WAIT_MS).await.unwrap();
    assert_eq!(settled.run.run.status.name(), "completed");
}

/// Lets everyone see their own sessions alone.
struct OwnSessions;

impl Policy for OwnSessions {
    fn decide(&self, request: &Request<'_>) -> Decision {
        match request.resource {
            Resource::Session(facts) if facts.owner != Some(&*request.subject.subject) => {
                Verdict::Deny("it is another's".to_owned()).into()
            }
            _ => Decision::allow(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_of_local_mode_blocks_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let judged = |parts: Parts| Parts { policy: Arc::new(OwnSessions), ..parts };
    let world = World::changed(folder.path(), &[ASK], judged).await;
    let request = || RunRequest {
        session: RunSession::Thread("t".to_owned()),
        ..world.request("ask", json!({}), "t")
    };
    let runs = world.engine.runs();
    let local = Caller::new("default", LOCAL);
    let before = runs.start(&local, request(), WAIT_MS).await.unwrap();
    let own = runs.start(&caller(), request(), WAIT_MS).await.unwrap();
    assert_ne!(own.session.id, before.session.id);
    assert_eq!(own.session.owner.as_deref(), Some("ann"));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_filled_with_readable_rows() {
    let folder = tempfile::tempdir().unwrap();
    let judged = |parts: Parts| Parts { policy: Arc::new(OwnSessions), ..parts };
    let world = World::changed(folder.path(), &[ASK], judged).await;
    let runs = world.engine.runs();
    let bob = Caller::new("default", "bob");
    // Each of ann's has three of bob's after it.
    for number in 0..20 {
        let who = if number % 4 == 0 { caller() } else { bob.clone() };
        let request = world.request("ask", json!({}), &format!("s{number}"));
        runs.start(&who, request, WAIT_MS).await.unwrap();
    }
    for limit in [1, 2, 3, 5, 7, 100] {
        for (who, all) in [(&caller(), 5), (&bob, 15)] {
            let mut found = Vec::new();
            let mut page = PageRequest { cursor: None, limit };
            loop {
                let filter = SessionFilter::default();
                let listed = world.engine.sessions().list(who, &filter, &page).await.unwrap();
                found.extend(listed.items.iter().map(|row| row.key.id.to_string()));
                assert!(listed.items.len() <= limit);
                let Some(cursor) = listed.next_cursor else { break };
                assert_eq!(listed.items.len(), limit, "a page is short, and is not the last one");
                page.cursor = Some(cursor);
            }
            let distinct: BTreeSet<&String> = found.iter().collect();
            assert_eq!((found.len(), distinct.len()), (all, all), "{who:?} {limit}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_of_two_submitters_is_read_by_neither_and_each_run_by_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let judged = |parts: Parts| Parts { policy: Arc::new(OwnSessions), ..parts };
    let world = World::changed(folder.path(), &[], judged).await;
    add_cases(&world);
    let ann = caller();
    let bob = Caller::new("default", "bob");
    let submitted = async |who: &Caller| {
        let pipeline = world.engine.catalog().pipeline(who, &"cases".into()).unwrap();
        let case = pipeline.admit(&json!({"id": "1", "reason": "known"})).unwrap();
        let options = SubmitOptions { wait_ms: WAIT_MS, ..SubmitOptions::default() };
        match world.engine.cases().submit(who, &pipeline, case, options).await {
            Ok(CaseReport::Ran(report)) => report,
            other => panic!("{other:?}"),
        }
    };
    let runs = world.engine.runs();
    let sessions = world.engine.sessions();
    let first = submitted(&ann).await;
    let session = SessionRef::Id(first.session.id);
    assert_eq!(sessions.get(&ann, &session).await.unwrap().owner.as_deref(), Some("ann"));
    let second = submitted(&bob).await;
    assert_eq!(second.session.id, first.session.id);
    for (who, own, other) in [(&ann, &first, &second), (&bob, &second, &first)] {
        let refused = sessions.get(who, &session).await.unwrap_err();
        assert_eq!(refused.code, RefusalCode::NotFound, "{who:?}");
        let removed = sessions.remove_unsent(who, &session).await.unwrap_err();
        assert_eq!(removed.code, RefusalCode::NotFound, "{who:?}");
        let report = runs.report(who, own.run.id).await.unwrap();
        assert_eq!((report.session.run, report.session.owner), (Some(own.run.id), None));
        let refused = runs.report(who, other.run.id).await.unwrap_err();
        assert_eq!(refused.code, RefusalCode::NoRun(other.run.id), "{who:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_chosen_id_of_two_subjects_is_two_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let judged = |parts: Parts| Parts { policy: Arc::new(OwnSessions), ..parts };
    let world = World::changed(folder.path(), &[], judged).await;
    let runs = world.engine.runs();
    let sessions = world.engine.sessions();
    let ann = caller();
    let bob = Caller::new("default", "bob");
    for number in 0..50 {
        let name = format!("s{number}");
        let request = || {
            let session = RunSession::Named(name.clone());
            RunRequest { session, ..inline(says_ok()) }
        };
        let (one, other) = tokio::join!(
            runs.start(&ann, request(), WAIT_MS),
            runs.start(&bob, request(), WAIT_MS)
        );
        let one = one.unwrap().session;
        let other = other.unwrap().session;
        assert_ne!(one.id, other.id);
        for (who, own, others) in [(&ann, &one, &other), (&bob, &other, &one)] {
            assert_eq!(sessions.get(who, &named(&name)).await.unwrap().id, own.id);
            let refused = sessions.get(who, &SessionRef::Id(others.id)).await.unwrap_err();
            assert_eq!(refused.code, RefusalCode::NotFound);
            let again = runs.start(who, request(), WAIT_MS).await.unwrap();
            assert_eq!(again.session.id, own.id, "a session goes on under its id");
        }
    }
    let made = sessions.create(&ann, Some("made".to_owned())).await.unwrap();
    let others = sessions.create(&bob, Some("made".to_owned())).await.unwrap();
    assert_ne!(made.id, others.id);
    for who in [&ann, &bob] {
        let twice = sessions.create(who, Some("made".to_owned())).await.unwrap_err();
        assert_eq!(twice.code, RefusalCode::SessionExists);
    }
}

/// Lets everyone but `bob` run the plan `ask`.
struct BobDoesNotAsk;

impl Policy for BobDoesNotAsk {
    fn decide(&self, request: &Request<'_>) -> Decision {
        match (request.resource, request.act, &*request.subject.subject) {
            (Resource::Plan("ask"), Act::Run, "bob") => Verdict::Deny("not bob".to_owned()).into(),
            _ => Decision::allow(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_needs_the_right_to_start_the_plan_that_runs_where_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    let judged = |parts: Parts| Parts { policy: Arc::new(BobDoesNotAsk), ..parts };
    let world = World::changed(folder.path(), &[ASK, READ], judged).await;
    world.permits.add_permits(1);
    let asking = world.run("ask", json!({}), "s").await;
    let ask = asking.asks[0].row.ask.id;
    world.engine.asks().reply(&caller(), ask, yes(), None, WAIT_MS).await.unwrap();
    assert_eq!(world.run("read", json!({}), "s").await.run.status.name(), "completed");
    let sessions = world.engine.sessions();
    let bob = Caller::new("default", "bob");
    let at = Some(asking.session.seq);
    let anns = SessionRef::Id(asking.session.id);
    let refused = sessions.fork(&bob, &anns, at).await.unwrap_err();
    assert_eq!(refused.code, RefusalCode::Forbidden(Act::Run));
    sessions.fork(&caller(), &named("s"), at).await.unwrap();
    sessions.fork(&bob, &anns, None).await.unwrap();
}

/// Lets everyone read their own sessions, and blobs with those alone.
struct OwnBlobs;

impl Policy for OwnBlobs {
    fn decide(&self, request: &Request<'_>) -> Decision {
        match request.resource {
            Resource::Blob(_) => Verdict::Deny("a hash proves nothing".to_owned()).into(),
            _ => OwnSessions.decide(request),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mentioning_a_blob_gives_no_right_to_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let judged = |parts: Parts| Parts { policy: Arc::new(OwnBlobs), ..parts };
    let world = World::changed(folder.path(), &[], judged).await;
    let runs = world.engine.runs();
    let sessions = world.engine.sessions();
    let started = async |who: &Caller, input: Value| {
        let request = RunRequest { input, ..inline(says_ok()) };
        let report = runs.start(who, request, WAIT_MS).await.unwrap();
        assert_eq!(report.run.status.name(), "completed");
    };
    let ann = caller();
    let bob = Caller::new("default", "bob");
    let large = json!({"text": "x".repeat(20_000)});
    let hash = ContentHash::of(large.to_string().as_bytes());
    started(&ann, large.clone()).await;
    assert_eq!(sessions.blob(&ann, &hash).await.unwrap(), large.to_string().as_bytes());
    started(&bob, json!({"see": format!("blob://{hash}")})).await;
    started(&bob, json!({"blob": {"hash": hash, "bytes": 1}, "from": "input"})).await;
    let refused = sessions.blob(&bob, &hash).await.unwrap_err();
    assert_eq!(refused.code, RefusalCode::NotFound);
    // Who brings the value itself knows it.
    started(&bob, large).await;
    sessions.blob(&bob, &hash).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_feed_contains_own_sessions_of_every_space() {
    let folder = tempfile::tempdir().unwrap();
    let judged = |parts: Parts| Parts { policy: Arc::new(OwnSessions), ..parts };
    let world = World::changed(folder.path(), &[ASK], judged).await;
    let ann = caller();
    let bob = Caller::new("default", "bob");
    world.engine.runs().start(&ann, inline(says_ok()), WAIT_MS).await.unwrap();
    let said = async |who: &Caller| {
        let rows = world.engine.feed().rows(who, 0, 100).await.unwrap();
        assert!(!rows.is_empty());
        rows.iter().filter(|row| row.body != "[]").count()
    };
    assert_eq!(said(&bob).await, 0);
    assert!(said(&ann).await > 0, "its own run is hidden from it");
    let thread = RunSession::Thread("t".to_owned());
    let request = RunRequest { session: thread, ..world.request("ask", json!({}), "t") };
    world.engine.runs().start(&bob, request, WAIT_MS).await.unwrap();
    assert!(said(&bob).await > 0);
}

/// Shows all tools and lets nobody call one.
struct LooksOnly;

impl Policy for LooksOnly {
    fn decide(&self, request: &Request<'_>) -> Decision {
        match request.act == Act::Call && request.context.arguments.is_some() {
            true => Verdict::Deny("the rule of the house".to_owned()).into(),
            false => Decision::allow(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_of_a_denial_is_shown_to_administrators_only() {
    let folder = tempfile::tempdir().unwrap();
    let judged = |parts: Parts| Parts { policy: Arc::new(LooksOnly), ..parts };
    let world = World::changed(folder.path(), &[], judged).await;
    for tool in ["slow::read", "slow::write"] {
        let denied = async |who: Caller| {
            let refused = world.engine.tools().call(&who, &tool.into(), json!({}), 0).await;
            let refusal = refused.unwrap_err();
            assert_eq!(refusal.code, RefusalCode::PolicyDenied);
            refusal.message
        };
        assert_eq!(denied(caller()).await, format!("policy refuses `{tool}`"));
        let told = format!("policy refuses `{tool}`: the rule of the house");
        assert_eq!(denied(caller().administering()).await, told);
    }
}

/// Lets everybody call until it is shut, and counts the calls that it judged.
#[derive(Default)]
struct Closing {
    shut: AtomicBool,
    judged: AtomicUsize,
}

impl Policy for Closing {
    fn decide(&self, request: &Request<'_>) -> Decision {
        if request.act != Act::Call || request.context.arguments.is_none() {
            return Decision::allow();
        }
        self.judged.fetch_add(1, Ordering::SeqCst);
        match self.shut.load(Ordering::SeqCst) {
            true => Verdict::Deny("closed for today".to_owned()).into(),
            false => Decision::allow(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_denied_while_waiting_for_a_permit_is_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let policy = Arc::new(Closing::default());
    let one_at_once = Limits { calls_active_max: 1, ..Limits::default() };
    let change = |parts: Parts| {
        let policy = policy.clone();
        let limits = Arc::new(one_at_once);
        Parts { policy, limits, ..parts }
    };
    let world = World::changed(folder.path(), &[READ], change).await;
    world.start("read", json!({}), "first").await;
    world.until("the first call to hold the only place", |world| world.sent() == 1).await;
    let second = world.start("read", json!({}), "second").await;
    // Each call is judged when it is requested and when it is to be sent.
    let judged = |_: &World| policy.judged.load(Ordering::SeqCst) == 4;
    world.until("the second call to wait for the place", judged).await;
    policy.shut.store(true, Ordering::SeqCst);
    world.permits.add_permits(2);
    let stuck = world.until_status(second.run.id, "stuck").await;
    assert_eq!(stuck.run.last_error.unwrap().name, "PolicyDenied");
    assert_eq!(world.sent(), 1, "a call was sent that was denied before it had its place");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_direct_read_denied_while_waiting_for_a_permit_is_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let policy = Arc::new(Closing::default());
    let one_at_once = Limits { calls_active_max: 1, ..Limits::default() };
    let change = |parts: Parts| {
        let rules = AuditRules { unjournaled: true, reads: false, strict: false };
        let audit = parts.audit.map(|audit| AuditParts { rules, ..audit });
        Parts { policy: policy.clone(), limits: Arc::new(one_at_once), audit, ..parts }
    };
    let world = World::changed(folder.path(), &[], change).await;
    let call = || {
        let engine = world.engine.clone();
        tokio::spawn(async move {
            let tools = engine.tools();
            let read = "slow::read".into();
            tools.call(&caller(), &read, json!({}), WAIT_MS).await
        })
    };
    let first = call();
    world.until("the first call to hold the only place", |world| world.sent() == 1).await;
    let second = call();
    // Each call is judged when it is requested and when it is to be sent.
    let judged = |_: &World| policy.judged.load(Ordering::SeqCst) == 4;
    world.until("the second call to wait for the place", judged).await;
    policy.shut.store(true, Ordering::SeqCst);
    world.permits.add_permits(2);
    assert!(first.await.unwrap().is_ok());
    assert!(second.await.unwrap().is_err());
    assert_eq!(world.sent(), 1, "a call was sent that was denied before it had its place");
}

/// Allows the first call that it judges, and denies all after it.
#[derive(Default)]
struct FirstOnly(AtomicUsize);

impl Policy for FirstOnly {
    fn decide(&self, request: &Request<'_>) -> Decision {
        let is_call = request.act == Act::Call && request.context.arguments.is_some();
        match is_call && self.0.fetch_add(1, Ordering::SeqCst) > 0 {
            true => Verdict::Deny("one was enough".to_owned()).into(),
            false => Decision::allow(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_direct_read_denied_before_sending_is_not_sent() {
    for (reads, strict) in [(false, false), (false, true), (true, false)] {
        let folder = tempfile::tempdir().unwrap();
        let rules = AuditRules { unjournaled: true, reads, strict };
        let change = |parts: Parts| {
            let audit = parts.audit.map(|audit| AuditParts { rules, ..audit });
            Parts { policy: Arc::new(FirstOnly::default()), audit, ..parts }
        };
        let world = World::changed(folder.path(), &[READ], change).await;
        world.permits.add_permits(1);
        let tools = world.engine.tools();
        let called = tools.call(&caller(), &"slow::read".into(), json!({}), WAIT_MS).await;
        assert_eq!((world.sent(), called.is_err()), (0, true), "{rules:?} {called:?}");
    }
}
