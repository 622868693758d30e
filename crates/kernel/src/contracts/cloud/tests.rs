//! What rows of the journal tell the world, and what they keep to themselves.

use super::*;
use crate::ask::remedy::{Remedy, RemedyAttempt, RuleHold};
use crate::ask::{Ask, AskBody, AskedCall, Decision, Reply};
use crate::event::{Event, Fact, Outcome};
use crate::tool::call::CallProgress;
use crate::values::datum::{Datum, Origin};
use crate::values::fault::Fault;
use crate::values::ids::{CallId, ContentHash, FrameId, SessionKey, Space};

const AT: Millis = Millis(1_700_000_000_000);

fn key() -> SessionKey {
    SessionKey::new("acme", Space::session(), "T-100")
}

fn row(facts: Vec<Fact>) -> FeedRow {
    let events: Vec<Event> =
        (7..).zip(facts).map(|(seq, fact)| Event { seq, at: AT, v: VERSION, fact }).collect();
    let body = serde_json::to_string(&events).unwrap();
    FeedRow { cursor: 42, session: SessionId(1), key: key(), owner: None, plan: None, body }
}

fn told(facts: Vec<Fact>) -> Vec<CloudEvent> {
    cloud_events(&row(facts)).unwrap()
}

fn secret(value: &str) -> Arc<Datum> {
    Arc::new(Datum::inline(json!(value), Origin::Join))
}

fn published(event: Value, source: Option<&str>) -> Fact {
    Fact::EventPublished {
        frame: FrameId(0),
        step: "tell".into(),
        published: PublishedEvent { source: source.map(Into::into), event: Arc::new(event) },
        next: None,
    }
}

fn finished(events: Vec<Value>) -> Fact {
    let published =
        |event| PublishedEvent { source: Some("events.out".into()), event: Arc::new(event) };
    Fact::CallFinished {
        call: CallId(3),
        output: secret("hush"),
        settled: None,
        published: events.into_iter().map(published).collect(),
    }
}

fn started() -> Fact {
    Fact::RunStarted {
        run: RunId(2),
        plan: "trade/repair".into(),
        closure: ContentHash::of(b"x"),
        input: secret("hush"),
        by: "ann".into(),
        frame: FrameId(0),
        start: "a".into(),
        trace: None,
        subject: None,
        actor: None,
        scopes: None,
        about: None,
        rules: None,
    }
}

fn ended(outcome: Outcome) -> Fact {
    Fact::RunEnded { run: RunId(2), outcome }
}

fn asked(body: AskBody) -> Fact {
    Fact::AskOpened(Box::new(Ask {
        id: AskId(4),
        run: RunId(2),
        frame: FrameId(0),
        step: "pay".into(),
        title: "hush".to_owned(),
        body,
        digest: ContentHash::of(b"x"),
        created_at: AT,
        expires_at: Some(AT),
        wanted: None,
        answerers: None,
        subject: None,
        held: None,
        tried: Vec::new(),
        next: crate::ask::context::NextSteps::default(),
        about: Vec::new(),
    }))
}

#[test]
fn published_events_are_sent_unchanged() {
    let event = json!({"type": "TradeRepaired", "tradeId": "T-100"});
    let told = told(vec![published(event.clone(), Some("events.out"))]);
    let expected = CloudEvent {
        id: format!("{}.7", SessionId(1)),
        kind: "TradeRepaired".to_owned(),
        source: "events.out".to_owned(),
        subject: "T-100".to_owned(),
        at: AT,
        realm: "acme".into(),
        session: SessionId(1),
        seq: 7,
        cursor: 42,
        data: event.clone(),
    };
    assert_eq!(told, [expected]);
    let written: Value = serde_json::from_str(&told[0].to_json()).unwrap();
    let structured = json!({
        "specversion": "1.0",
        "id": "ses_00000000000000000000000000000001.7",
        "type": "TradeRepaired",
        "source": "events.out",
        "subject": "T-100",
        "time": "2023-11-14T22:13:20.000Z",
        "datacontenttype": "application/json",
        "waypostrealm": "acme",
        "waypostsession": "ses_00000000000000000000000000000001",
        "sequence": "00000000000000000007",
        "data": event,
    });
    assert_eq!(written, structured);
}

#[test]
fn several_events_of_one_call_get_numbered_ids() {
    let told = told(vec![finished(vec![json!({"type": "A"}), json!({"type": "B"}), json!(1)])]);
    let ids: Vec<String> = told.iter().map(|event| event.id.replace(&"0".repeat(31), "")).collect();
    assert_eq!(ids, ["ses_1.7", "ses_1.7.2"]);
    assert_eq!(told[1].data, json!({"type": "B"}));
}

#[test]
fn an_event_without_a_source_gets_the_source_of_its_realm() {
    let told = told(vec![published(json!({"type": "A"}), None)]);
    assert_eq!(told[0].source, "waypost/acme");
}

#[test]
fn run_events_have_names_and_no_content() {
    let fault = Fault::new("Boom", "hush");
    let told = told(vec![
        started(),
        Fact::RunPaused { run: RunId(2), by: "hush".into() },
        Fact::RunContinued { run: RunId(2), by: "hush".into() },
        ended(Outcome::Completed { answer: secret("hush") }),
        ended(Outcome::Failed { fault }),
        ended(Outcome::Cancelled { by: "hush".into(), unknown: Vec::new() }),
    ]);
    let kinds: Vec<&str> = told.iter().map(|event| event.kind.as_str()).collect();
    let expected = ["started", "paused", "continued", "completed", "failed", "cancelled"];
    assert_eq!(kinds, expected.map(|how| format!("waypost.run.{how}.v1")));
    let data = json!({
        "session": SessionId(1), "key": "T-100", "space": "session", "run": RunId(2),
        "plan": "trade/repair",
    });
    assert_eq!(told[0].data, data);
    assert_eq!(told[3].data["run"], json!(RunId(2)));
    for event in told {
        assert!(!event.to_json().contains("hush"), "{}", event.to_json());
    }
}

#[test]
fn ask_events_have_kinds_and_no_content() {
    let call = |tool: &str| AskedCall {
        call_id: CallId(1),
        tool: tool.into(),
        arguments: Arc::new(json!({"iban": "hush"})),
    };
    let reply = Reply::Clarify { answer: Some(json!("hush")) };
    let decision = Box::new(Decision::new("hush", AT, reply));
    let told = told(vec![
        asked(AskBody::Approve { calls: vec![call("pay"), call("book")] }),
        asked(AskBody::Clarify { message: "hush".to_owned(), questions: Vec::new() }),
        Fact::AskDecided { ask: AskId(4), decision },
        Fact::AskExpired { ask: AskId(4) },
        Fact::AskWithdrawn { ask: AskId(4) },
    ]);
    let kinds: Vec<&str> = told.iter().map(|event| event.kind.as_str()).collect();
    let expected = ["opened", "opened", "decided", "expired", "withdrawn"];
    assert_eq!(kinds, expected.map(|how| format!("waypost.ask.{how}.v1")));
    let data = json!({
        "session": SessionId(1), "key": "T-100", "space": "session", "run": RunId(2),
        "ask": AskId(4), "kind": "approve", "step": "pay", "tools": ["pay", "book"],
        "expiresAt": "2023-11-14T22:13:20.000Z",
    });
    assert_eq!(told[0].data, data);
    assert_eq!(told[1].data["kind"], json!("clarify"));
    assert_eq!(told[2].data["ask"], json!(AskId(4)));
    for event in told {
        assert!(!event.to_json().contains("hush"), "{}", event.to_json());
    }
}

#[test]
fn a_fix_ask_event_is_sent_once_no_rule_holds_the_step() {
    let fault = Fault::new("Boom", "hush");
    let how = CallProgress::Failed;
    let actions = Vec::new();
    let plans = Vec::new();
    let body = AskBody::Fix { fault, call: None, how, actions, plans };
    let with = |held: Option<RuleHold>, tried: Vec<RemedyAttempt>| {
        let Fact::AskOpened(ask) = asked(body.clone()) else { panic!("nothing is asked") };
        Fact::AskOpened(Box::new(Ask { held, tried, ..*ask }))
    };
    let held = RuleHold {
        rule: "step 1".into(),
        does: Remedy::Retry,
        try_no: 2,
        of: 3,
        until: AT.plus_ms(500),
    };
    let rule = "step 1".into();
    let does = Remedy::Retry;
    let tried = RemedyAttempt { rule, does, times: 3, waits: 0, found: None };
    let told = told(vec![with(Some(held), Vec::new()), with(None, vec![tried])]);
    let kinds: Vec<&str> = told.iter().map(|event| event.kind.as_str()).collect();
    let expected = ["held", "opened", "escalated"];
    assert_eq!(kinds, expected.map(|how| format!("waypost.ask.{how}.v1")));
    let members = &told[0].data;
    assert_eq!((&members["rule"], &members["try"]), (&json!("step 1"), &json!(2)));
    assert_eq!(members["until"], json!("2023-11-14T22:13:20.500Z"));
    assert_eq!(told[1].data, told[2].data);
    assert_ne!(told[1].id, told[2].id);
}

#[test]
fn rows_without_events_for_sinks_are_not_parsed() {
    let quiet = [
        Fact::SessionCreated { id: SessionId(1), key: key(), owner: None },
        Fact::StepChosen { frame: FrameId(0), step: "a".into(), next: None },
        Fact::TimerFired { timer: "\"type\":\"run.ended\"".to_owned() },
        finished(Vec::new()),
    ];
    let row = row(quiet.into());
    assert!(!may_tell(&row.body), "{}", row.body);
    assert_eq!(cloud_events(&row), Ok(Vec::new()));
    let no_json = FeedRow { body: "no JSON".to_owned(), ..row };
    assert_eq!(cloud_events(&no_json), Ok(Vec::new()));
}

#[test]
fn unknown_facts_are_skipped() {
    let future = json!([
        {"seq": 1, "at": 5, "v": 1, "type": "run.renamed", "data": {"run": 1}},
        {"seq": 2, "at": 5, "v": 2, "type": "run.started", "data": {"run": RunId(2), "plan": "p"}},
        {"seq": 3, "at": 5, "v": 1, "type": "run.ended", "data": {"run": "odd"}},
        {"seq": 4, "at": 5, "v": 1, "type": "run.slept"},
        {"seq": 5, "at": 5, "v": 1, "type": "run.paused", "data": {"run": RunId(2), "by": "x"}},
    ]);
    let mut row = row(Vec::new());
    row.body = future.to_string();
    let told = cloud_events(&row).unwrap();
    let told: Vec<(u64, &str)> = told.iter().map(|e| (e.seq, e.kind.as_str())).collect();
    assert_eq!(told, [(5, "waypost.run.paused.v1")]);
    row.body = "{\"type\":\"run.started\"}".to_owned();
    assert!(cloud_events(&row).is_err());
}

#[test]
fn an_event_source_is_always_a_uri_reference() {
    for (text, written) in [
        ("events.out", "events.out"),
        ("https://a.test/x?y=1#z", "https://a.test/x?y=1#z"),
        ("trade failures/é", "trade%20failures/%C3%A9"),
        ("100% sure", "100%25%20sure"),
        ("a%20b", "a%20b"),
        ("urn:x:y", "urn:x:y"),
        ("1x:y/z:a", "1x%3Ay/z:a"),
        (":a", "%3Aa"),
        ("a#b#c", "a#b%23c"),
        ("<[x]>", "%3C%5Bx%5D%3E"),
    ] {
        assert_eq!(uri_reference(text), written, "{text}");
    }
}
