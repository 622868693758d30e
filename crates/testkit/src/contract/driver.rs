//! The driver of a session, and what it appends: events that say little, and the rows beside
//! them. What a promise needs more it adds to the append.

use futures::executor::block_on;
use kernel::ask::{Ask, AskBody, AskStatus, Decision, Reply};
use kernel::contracts::{PageRequest, Read, Store, Ticket};
use kernel::event::{CallRequest, Event, Fact, VERSION};
use kernel::journal::projection::{
    Append, AskChange, HistoryRow, PinnedSpec, RunRow, SessionRow, StoredClosure,
};
use kernel::journal::trim::Trim;
use kernel::session::{RunSpent, RunStatus};
use kernel::tool::call::ToolSpec;
use kernel::values::datum::{BlobRef, Datum, DatumValue, Origin, blobs_named};
use kernel::values::ids::{
    AskId, CallId, ContentHash, ContextKey, Fence, FrameId, Millis, PlanId, RealmId, RunId,
    SessionId, SessionKey, Space, StepId, ToolName,
};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The driver of a session: knows how far it got.
#[derive(Debug, Clone)]
pub struct Driver {
    /// The session after what was appended last.
    pub row: SessionRow,
}

impl Driver {
    /// Of a session that is not there yet.
    pub fn new(realm: &str, id: &str) -> Self {
        Self::of(SessionKey::new(realm, Space::session(), id))
    }

    /// The same, in any space.
    pub fn of(key: SessionKey) -> Self {
        let row = SessionRow {
            id: SessionId::of(&[key.to_string().as_bytes()]),
            key,
            owner: None,
            status: RunStatus::Running,
            run: None,
            plan: None,
            step: None,
            last_error: None,
            seq: 0,
            wake_at: None,
            created_at: Millis(10),
            updated_at: Millis(10),
            parked: None,
            fence: Fence::NONE,
        };
        Self { row }
    }

    pub fn key(&self) -> &SessionKey {
        &self.row.key
    }

    /// Something else changed the session, and the driver saw it.
    pub fn saw_a_change(&mut self) {
        self.row.fence = self.row.fence.next();
    }

    /// The first append.
    pub fn created(&mut self) -> Append {
        let id = self.row.id;
        let key = self.row.key.clone();
        self.append(vec![Fact::SessionCreated { id, key, owner: None }])
    }

    /// Some later append, of one event.
    #[allow(clippy::should_implement_trait, reason = "a driver is no iterator")]
    pub fn next(&mut self) -> Append {
        self.append(vec![Fact::TimerFired { timer: "t".to_owned() }])
    }

    /// An append of these events.
    pub fn append(&mut self, facts: Vec<Fact>) -> Append {
        let after = self.row.seq;
        let fence = self.row.fence;
        let events: Vec<Event> = (after + 1..)
            .zip(facts)
            .map(|(seq, fact)| Event { seq, at: Millis(10), v: VERSION, fact })
            .collect();
        self.row.seq += events.len() as u64;
        self.row.fence = fence.next();
        let body = text_of(&events);
        Append {
            creates: after == 0,
            fence,
            owned: false,
            first_seq: after + 1,
            blobs: blobs_named(&body),
            held: Event::held_blobs(&events),
            body,
            session: self.row.clone(),
            snapshot: None,
            runs: Vec::new(),
            asks: Vec::new(),
            history: Vec::new(),
            closure: None,
            pins: BTreeMap::new(),
            specs: Vec::new(),
            once: None,
            earlier: None,
            tally: None,
            audit: Vec::new(),
            events: Vec::new(),
        }
    }

    /// The row of its run of this number, which is under way.
    pub fn run_row(&self, no: u32) -> RunRow {
        RunRow {
            id: RunId::of(&[self.key().to_string().as_bytes(), &no.to_be_bytes()]),
            no,
            owner: None,
            plan: PlanId::from("math/add"),
            status: RunStatus::Running,
            step: Some(StepId::from("one")),
            answer: None,
            last_error: None,
            started_at: Millis(11),
            ended_at: None,
            changed_at: Millis(11),
            spent: RunSpent::default(),
            stopped: None,
            bytes: 0,
        }
    }

    /// Its question at this step.
    pub fn ask(&self, step: &str) -> Ask {
        Ask {
            id: AskId::of(&[self.key().to_string().as_bytes(), step.as_bytes()]),
            run: self.run_row(1).id,
            frame: FrameId(0),
            step: StepId::from(step),
            title: "go on?".to_owned(),
            body: AskBody::Clarify { message: "go on?".to_owned(), questions: Vec::new() },
            digest: ContentHash::of(step.as_bytes()),
            created_at: Millis(12),
            expires_at: Some(Millis(99)),
            wanted: None,
            answerers: None,
            subject: None,
            held: None,
            tried: Vec::new(),
            next: kernel::ask::context::NextSteps::default(),
            about: Vec::new(),
        }
    }

    /// An append that opens one ask for each of these steps.
    pub fn asking(&mut self, steps: &[&str]) -> Append {
        let mut append = self.next();
        append.asks =
            steps.iter().map(|step| AskChange::Opened(Box::new(self.ask(step)))).collect();
        append
    }
}

/// Someone answered this ask.
pub fn decided(ask: &Ask, by: &str) -> AskChange {
    AskChange::Closed {
        ask: ask.id,
        status: AskStatus::Decided,
        decision: Some(Box::new(decision(by))),
    }
}

/// What they answered.
pub fn decision(by: &str) -> Decision {
    Decision::new(by, Millis(20), Reply::Clarify { answer: Some(json!("yes")) })
}

/// A page of so many, after a cursor.
pub fn page(limit: usize, cursor: Option<String>) -> PageRequest {
    PageRequest { cursor, limit }
}

/// The realm of most sessions here.
pub fn realm() -> RealmId {
    RealmId::from("r")
}

/// Waits until an append is durable.
#[track_caller]
pub fn done(ticket: Ticket) {
    assert_eq!(block_on(ticket), Ok(()));
}

/// A call's two events and its history row, at this position.
pub fn call(a: &mut Driver, position: &[u8], step: &str) -> Append {
    let call = CallId::of(&[position, &a.row.seq.to_be_bytes()]);
    let step = StepId::from(step);
    let tool = ToolName::from("math::add");
    let request = CallRequest {
        call,
        frame: FrameId(0),
        step: step.clone(),
        try_no: 0,
        tool: tool.clone(),
        arguments: Arc::new(json!({"a": position})),
        sources: BTreeMap::new(),
        save_as: ContextKey::from("sum"),
        next: None,
        approve: false,
        grant: None,
        replaces: None,
    };
    let output = Arc::new(Datum::inline(json!(position), Origin::Call(call)));
    let mut append = a.append(vec![
        Fact::CallRequested(Box::new(request)),
        Fact::CallFinished { call, output, settled: None, published: Vec::new() },
    ]);
    append.history = vec![HistoryRow {
        position: position.to_vec(),
        run: a.run_row(1).id,
        step,
        tool,
        success: true,
        requested_seq: append.first_seq,
        finished_seq: append.first_seq + 1,
    }];
    append
}

/// An append with one call of a run that ended then.
pub fn ended_run(a: &mut Driver, no: u32, ended_at: i64) -> Append {
    let position = [&no.to_be_bytes()[..], &[1]].concat();
    let mut append = call(a, &position, "x");
    let ended_at = Millis(ended_at);
    let ended = RunRow {
        status: RunStatus::Completed,
        ended_at: Some(ended_at),
        changed_at: ended_at,
        ..a.run_row(no)
    };
    append.history[0].run = ended.id;
    append.runs = vec![ended];
    append
}

/// A trim up to this event, with some event as the base: what is in it is not the store's concern.
pub fn trim_at(a: &Driver, seq: u64, last_run: u32) -> Trim {
    let fact = Fact::TimerFired { timer: "base".to_owned() };
    let base = Event { seq, at: Millis(10), v: VERSION, fact };
    Trim {
        key: a.key().clone(),
        id: a.row.id,
        fence: a.row.fence,
        before: Millis(100),
        seq,
        base: text_of(&base),
        last_run,
    }
}

/// A session with two old runs, in the events 2 to 5, with a snapshot of the first, and a third run
/// that continues from event 7.
pub fn three_runs(store: &dyn Store) -> Driver {
    let mut a = Driver::new("r", "a");
    done(store.append(a.created()));
    let mut first = ended_run(&mut a, 1, 20);
    first.snapshot = Some("three".to_owned());
    let ask = a.ask("one");
    first.asks = vec![AskChange::Opened(Box::new(ask.clone())), decided(&ask, "ann")];
    done(store.append(first));
    done(store.append(ended_run(&mut a, 2, 30)));
    let timer = |name: &str| Fact::TimerFired { timer: name.to_owned() };
    let mut third = a.append(vec![timer("six"), timer("seven")]);
    third.runs = vec![a.run_row(3)];
    done(store.append(third));
    a
}

pub fn closure(text: &str) -> Arc<StoredClosure> {
    Arc::new(StoredClosure { hash: ContentHash::of(text.as_bytes()), body: text.to_owned() })
}

/// The append in which a run of the session starts, with what it pins.
pub fn starting(a: &mut Driver, no: u32, pinned: &Arc<StoredClosure>) -> Append {
    let run = a.run_row(no);
    let fact = Fact::RunStarted {
        run: run.id,
        plan: run.plan.clone(),
        closure: pinned.hash.clone(),
        input: Arc::new(Datum::inline(json!({}), Origin::Input)),
        by: "ann".into(),
        frame: FrameId(no),
        start: StepId::from("one"),
        trace: None,
        subject: None,
        actor: None,
        scopes: None,
        about: None,
        rules: None,
    };
    let mut append = a.append(vec![fact]);
    append.pins = BTreeMap::from([(run.id, pinned.hash.clone())]);
    append.closure = Some(pinned.clone());
    append.runs = vec![run];
    append
}

/// An event that holds this blob.
pub fn holding(hash: &ContentHash) -> Fact {
    let held = DatumValue::Blob(BlobRef { hash: hash.clone(), bytes: 1 });
    let datum = Datum { held, from: Origin::Input, labels: Vec::new() };
    Fact::CallLate { call: CallId(1), result: Ok(Arc::new(datum)) }
}

/// An event whose text speaks of this blob.
pub fn speaking_of(hash: &ContentHash) -> Fact {
    let words = json!(format!("it is at blob://{hash}, all of it"));
    let datum = Datum::inline(words, Origin::Input);
    Fact::CallLate { call: CallId(1), result: Ok(Arc::new(datum)) }
}

/// A session with one run that ended at 20 and pins this.
pub fn pinning(store: &dyn Store, realm: &str, id: &str, pinned: &Arc<StoredClosure>) -> Driver {
    let mut a = Driver::new(realm, id);
    done(store.append(a.created()));
    done(store.append(starting(&mut a, 1, pinned)));
    a.row.status = RunStatus::Completed;
    done(store.append(ended_run(&mut a, 1, 20)));
    a
}

/// Sweeps the closures: how many were looked at, and how many went.
pub fn swept(store: &dyn Store) -> (usize, u64) {
    got(store.sweep_closures(9))
}

/// Whether a closure is there, as it was brought.
pub fn has_closure(store: &dyn Store, realm: &str, closure: &StoredClosure) -> bool {
    got(store.closure(&realm.into(), &closure.hash)).is_some_and(|body| body == closure.body)
}

/// A tool's spec, with this description.
pub fn spec(description: &str) -> Arc<ToolSpec> {
    let spec = json!({
        "name": "math::add", "title": "add", "description": description,
        "inputSchema": {"type": "object"}, "reach": "reads", "idempotent": true,
    });
    Arc::new(serde_json::from_value(spec).unwrap_or_else(|error| panic!("{error}")))
}

/// The same append, with a call in it that pins this spec.
pub fn calling(append: Append, closure: &StoredClosure, spec: &Arc<ToolSpec>) -> Append {
    let pinned =
        PinnedSpec { closure: closure.hash.clone(), hash: spec.hash(), spec: spec.clone() };
    Append { specs: vec![pinned], ..append }
}

/// A spec that was pinned, as it was.
pub fn spec_of(store: &dyn Store, realm: &str, spec: &ToolSpec) -> Option<ToolSpec> {
    let (_, text) = got(store.tool_specs(&realm.into(), &[spec.hash()])).pop()?;
    assert_eq!(ContentHash::of(text.as_bytes()), spec.hash());
    serde_json::from_str(&text).ok()
}

/// What a store answers that is well.
#[track_caller]
pub fn got<T>(read: Read<'_, T>) -> T {
    match block_on(read) {
        Ok(answer) => answer,
        Err(error) => panic!("the store fails: {error}"),
    }
}

/// What must exist.
#[track_caller]
pub fn there<T>(found: Option<T>) -> T {
    match found {
        Some(found) => found,
        None => panic!("it is not there"),
    }
}

/// A value as JSON.
fn text_of<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| panic!("{error}"))
}
