//! Random histories of agents: turns with questions, guarded, free, unknown and broken calls;
//! people who approve, edit, refuse, decline or say nothing; tools that fail in every way; runs
//! that are cancelled, conversations that are summed up, processes that end in between. Whatever
//! happened, a model reads exactly one result for each call, in every provider's format.
//! `WAYPOST_SIM_SEED` runs one seed.

use kernel::ask::{Ask, AskBody, AskedCall, FixAction};
use kernel::conversation::llm::{Message, Prompt, ToolChoice};
use kernel::event::TurnKind;
use kernel::values::ids::Millis;
use llms::config::{ModelConfig, ModelKind, Remote};
use llms::request_body;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use testkit::scene::{Improvised, Scene, Waits};
use testkit::sim::rng::Rng;

const HISTORIES: u64 = 300;
/// After so many answers and replies the rest of a history is cancelled.
const WAITS_MAX: u32 = 120;

/// What the histories must have met between them, or they say nothing.
const MET: &[&str] = &[
    "User clarification: ",
    "No clarification: `eve` declined",
    "No clarification: nobody answered in time",
    "User rejected this action: ",
    "User rejected this action: nobody answered in time",
    "User approved this action.",
    "Auto-approved (non-confirmation tool).",
    "Deferred pending clarification.",
    "Not executed: the user changed the arguments of this call.",
    "Error: there is no tool ",
    "Error: the arguments are not a JSON object",
    "do not fit its schema",
    "Error: policy refuses ",
    "Error: one turn may call ",
    "Error: not now",
    "Error: nobody is there",
    "Not executed: a person skipped it",
    "Not executed: the run ended before this was done",
    "Not executed: the very same call was made too often",
    "What was said before: ",
];

#[test]
fn every_call_has_one_result_in_every_format() {
    let one: Option<u64> =
        std::env::var("WAYPOST_SIM_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = one.map_or(0..HISTORIES, |seed| seed..seed + 1);
    let mut met = BTreeSet::new();
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let mut played = Improvised::begin(&scene(&mut rng));
        let checked = catch_unwind(AssertUnwindSafe(|| {
            play(&mut played, &mut rng);
            let whole = prompt(played.said());
            played.prompts().iter().chain([&whole]).for_each(check);
        }));
        let alone = format!("WAYPOST_SIM_SEED={seed} runs it alone");
        assert!(checked.is_ok(), "seed {seed} ({alone}):\n{}", played.journal());
        let told: Vec<&str> = played.prompts().iter().flat_map(texts).collect();
        met.extend(MET.iter().copied().filter(|part| told.iter().any(|text| text.contains(*part))));
    }
    let missing: Vec<&&str> = MET.iter().filter(|part| !met.contains(**part)).collect();
    assert!(one.is_some() || missing.is_empty(), "no history met {missing:?}");
}

fn play(played: &mut Improvised, rng: &mut Rng) {
    for _ in 0..WAITS_MAX {
        if rng.chance(3) {
            played.restart();
        }
        if rng.chance(2) {
            played.cancel();
        }
        match played.waits_for() {
            None => return,
            Some(Waits::Turn(kind)) => {
                let line = turn(rng, kind);
                played.answer(line);
            }
            Some(Waits::Reply(ask)) => {
                let line = reply(rng, ask);
                played.reply(line);
            }
        }
    }
    for _ in 0..WAITS_MAX {
        if played.waits_for().is_none() {
            return;
        }
        played.cancel();
    }
    panic!("it does not end");
}

/// An agent, what people want of it, and what its tools will come back with.
fn scene(rng: &mut Rng) -> Scene {
    let mut agent = String::from(
        "refName: worker\nname: Worker\ndescription: Does things.\nllmConfigRef: fast\n\
         approve: [create_event, update_event]\n",
    );
    if rng.chance(40) {
        agent.push_str(
            "tool_types:\n  calendar: [create_event, update_event, list_events]\n  \
             others: ['math::*', 'test::*', 'write::*']\n",
        );
    }
    let steps = 3 + rng.below(10);
    let compact = match rng.chance(40) {
        true => format!(", compact_tokens: 50, keep_turns: {}", 1 + rng.below(3)),
        false => String::new(),
    };
    agent.push_str(&format!("limits: {{steps: {steps}{compact}}}\n"));
    let mut scene = Scene { agents: vec![agent], ..Scene::default() };
    for number in 0..2 + rng.below(3) {
        scene.inputs.push(json!({"user_request": format!("wish {number}")}));
    }
    for tool in ["create_event", "update_event", "list_events", "write::pay", "test::given"] {
        for _ in 0..30 {
            let line = outcome(rng, tool == "test::given");
            scene.tools.push(format!("{tool} {line}"));
        }
    }
    let mut option = |name: &str, value: &str, percent: u64| {
        if rng.chance(percent) {
            scene.options.insert(name.to_owned(), value.to_owned());
        }
    };
    option("finish", "last", 50);
    option("turn_calls_max", "4", 20);
    option("turn_attempts_max", "2", 50);
    scene
}

/// How one call comes back.
fn outcome(rng: &mut Rng, may_want: bool) -> &'static str {
    let wants = "? {\"who\": {\"kind\": \"form\", \"message\": \"who?\", \
                 \"schema\": {\"required\": [\"name\"]}}}";
    match rng.below(10) {
        0 => "! unknown Lost the connection broke",
        1 => "! failed Busy not now",
        2 => "! not_sent Away nobody is there",
        3 | 4 if may_want => wants,
        3 => "= \"\"",
        4 => "= {\"content\": [{\"type\": \"text\", \"text\": \"two\\nlines\"}]}",
        _ => "= {\"id\": \"e1\"}",
    }
}

/// What a model answers.
fn turn(rng: &mut Rng, kind: TurnKind) -> String {
    if rng.chance(6) {
        let kinds = ["overloaded", "rate_limited", "unreachable", "bad_request"];
        return json!({"error": rng.pick(&kinds)}).to_string();
    }
    let line = match kind {
        TurnKind::Route => {
            let types = ["calendar", "others"];
            let allowed: Vec<&str> = types.into_iter().filter(|_| rng.chance(70)).collect();
            let decision = if rng.chance(90) { "allow" } else { "refuse" };
            let route =
                json!({"decision": decision, "note": "as drawn", "allowed_tool_types": allowed});
            if rng.chance(5) { json!({"text": "let me think"}) } else { json!({"route": route}) }
        }
        TurnKind::Sum => json!({"text": "Much was done."}),
        TurnKind::Act if rng.chance(20) => json!({"text": "That is all."}),
        TurnKind::Act => {
            let calls: Vec<Value> = (0..1 + rng.below(6)).map(|_| call(rng)).collect();
            json!({"text": if rng.chance(30) { "Let me see." } else { "" }, "calls": calls})
        }
    };
    line.to_string()
}

fn call(rng: &mut Rng) -> Value {
    let number = rng.below(4);
    let (tool, arguments) = match rng.below(16) {
        0 | 1 => ("request_clarification", json!({"question": format!("Which {number}?")})),
        2..=4 => ("create_event", json!({"name": format!("Event {number}")})),
        5 => ("update_event", json!({"event_id": number})),
        6 | 7 => ("list_events", json!({"day": number})),
        8 => ("math__add", json!({"a": number, "b": 1})),
        9 => ("write__asked", json!({"what": number})),
        10 => ("write__denied", json!({})),
        11 => ("write__pay", json!({"amount": number})),
        12 => ("test__given", json!({})),
        13 => ("test__always_fail", json!({})),
        14 => ("create_event", json!({"start": "no name"})),
        _ if rng.chance(50) => ("list_events", json!("{broken")),
        _ => ("no_such_tool", json!({"number": number})),
    };
    json!({"tool": tool, "arguments": arguments})
}

/// What a person replies, or that nobody does.
fn reply(rng: &mut Rng, ask: &Ask) -> String {
    let is_fix = matches!(ask.body, AskBody::Fix { .. });
    if !is_fix && rng.chance(10) {
        return "expired".to_owned();
    }
    if !is_fix && !matches!(ask.body, AskBody::Approve { .. }) && rng.chance(15) {
        return json!({"decline": true}).to_string();
    }
    let reply = match &ask.body {
        AskBody::Clarify { questions, .. } => {
            let answers: Vec<String> =
                questions.iter().map(|asked| format!("on {}", asked.question)).collect();
            json!({"answers": answers})
        }
        AskBody::Approve { calls } => {
            let decisions: Vec<Value> = calls.iter().map(|call| decision(rng, call)).collect();
            json!({"decisions": decisions})
        }
        AskBody::Fill { .. } => json!({"name": "ann"}),
        AskBody::Authorize { .. } => json!({}),
        AskBody::Fix { actions, call, .. } => {
            let action = rng.pick(actions).expect("something can be done");
            let mut reply = json!({"action": action});
            match action {
                FixAction::Edit => reply["arguments"] = call.as_ref().map(edited).unwrap(),
                FixAction::Settle => reply["output"] = json!({"id": "found"}),
                FixAction::Skip if rng.chance(50) => reply["output"] = json!("left out"),
                // No plan here has rules, so `correct` is never offered, and `propose` to nobody.
                FixAction::Skip
                | FixAction::Retry
                | FixAction::Abort
                | FixAction::Correct
                | FixAction::Propose => {}
            }
            reply
        }
    };
    reply.to_string()
}

fn decision(rng: &mut Rng, call: &AskedCall) -> Value {
    match rng.below(10) {
        0..=4 => json!({"approve": true}),
        5 => json!({"approve": true, "arguments": edited(call)}),
        6 => json!({"approve": false}),
        _ => json!({"approve": false, "feedback": "I have other plans"}),
    }
}

fn edited(call: &AskedCall) -> Value {
    let mut arguments = (*call.arguments).clone();
    arguments["edited"] = json!(true);
    arguments
}

fn prompt(messages: Vec<Message>) -> Prompt {
    Prompt {
        trace: None,
        messages,
        tools: Vec::new(),
        choice: ToolChoice::Auto,
        answer: None,
        latest: None,
        now: Millis(0),
        zone: "UTC".to_owned(),
    }
}

fn texts(prompt: &Prompt) -> Vec<&str> {
    let texts = prompt.messages.iter().map(|message| match message {
        Message::System { text }
        | Message::User { text }
        | Message::Assistant { text, .. }
        | Message::Result { text, .. } => text.as_str(),
    });
    texts.collect()
}

/// One message, as far as calls go: those that it makes, and results with their texts.
#[derive(Debug, Default)]
struct Spoken {
    calls: Vec<String>,
    results: Vec<(String, String)>,
}

/// A provider: how a model of it is configured, and how its format is read.
struct Wire {
    kind: fn(Remote) -> ModelKind,
    model: &'static str,
    read: fn(&Value) -> Vec<Spoken>,
}

const WIRES: &[Wire] = &[
    Wire { kind: ModelKind::OpenAi, model: "gpt-6.1-terra", read: openai },
    Wire { kind: ModelKind::Anthropic, model: "claude-sonnet-5-5", read: anthropic },
    Wire { kind: ModelKind::Gemini, model: "gemini-3.8-flash", read: gemini },
];

/// One result for each call in what the kernel renders, and the same ones in every format.
fn check(prompt: &Prompt) {
    let rendered = one_each("rendered", &rendered(&prompt.messages));
    let latest = prompt.latest.as_ref().map(|latest| format!("\n\n{latest}"));
    for wire in WIRES {
        let body = request_body(&config(wire), prompt).expect("it would be sent");
        let sent = one_each(wire.model, &(wire.read)(&body));
        let ids = |results: &BTreeMap<String, String>| results.keys().cloned().collect::<Vec<_>>();
        assert_eq!(ids(&sent), ids(&rendered), "{}: other calls\n{body:#}", wire.model);
        for (id, text) in &rendered {
            // A format that has no word for a failure puts one before the text. One whose results
            // are plain texts puts what changes from turn to turn behind the last of them.
            let said = latest.as_deref().and_then(|latest| sent[id].strip_suffix(latest));
            let said = said.unwrap_or(&sent[id]);
            assert!(said.ends_with(text), "{}: `{id}` has another result", wire.model);
        }
    }
}

/// The results by their calls. Each call has one, and nothing but results comes between.
fn one_each(of: &str, spoken: &[Spoken]) -> BTreeMap<String, String> {
    let mut open: Vec<&str> = Vec::new();
    let mut called = BTreeSet::new();
    let mut results = BTreeMap::new();
    for message in spoken {
        let waits = !open.is_empty();
        assert!(
            !waits || !message.results.is_empty(),
            "{of}: {open:?} have no results\n{spoken:#?}"
        );
        for (id, text) in &message.results {
            let place = open.iter().position(|open| open == id);
            assert!(place.is_some(), "{of}: nobody waits for a result of `{id}`\n{spoken:#?}");
            open.remove(place.unwrap());
            results.insert(id.clone(), text.clone());
        }
        for id in &message.calls {
            assert!(called.insert(id), "{of}: `{id}` is called twice\n{spoken:#?}");
            open.push(id);
        }
    }
    assert!(open.is_empty(), "{of}: {open:?} have no results\n{spoken:#?}");
    results
}

fn config(wire: &Wire) -> ModelConfig {
    let remote =
        Remote { model: wire.model.to_owned(), base_url: None, key: None, headers: Vec::new() };
    ModelConfig {
        name: "fast".to_owned(),
        kind: (wire.kind)(remote),
        max_tokens: None,
        temperature: None,
        timeout_ms: None,
        price: None,
        origin: String::new(),
    }
}

fn rendered(messages: &[Message]) -> Vec<Spoken> {
    let spoken = |message: &Message| match message {
        Message::System { .. } | Message::User { .. } => Spoken::default(),
        Message::Assistant { calls, .. } => {
            let calls = calls.iter().map(|call| call.id.clone()).collect();
            Spoken { calls, results: Vec::new() }
        }
        Message::Result { id, text, .. } => {
            Spoken { calls: Vec::new(), results: vec![(id.clone(), text.clone())] }
        }
    };
    messages.iter().map(spoken).collect()
}

fn openai(body: &Value) -> Vec<Spoken> {
    let spoken = |message: &Value| {
        let calls = list(&message["tool_calls"]).iter().map(|call| text(&call["id"])).collect();
        let results = match message["role"].as_str() {
            Some("tool") => vec![(text(&message["tool_call_id"]), text(&message["content"]))],
            _ => Vec::new(),
        };
        Spoken { calls, results }
    };
    list(&body["messages"]).iter().map(spoken).collect()
}

fn anthropic(body: &Value) -> Vec<Spoken> {
    let spoken = |message: &Value| {
        let mut spoken = Spoken::default();
        for block in list(&message["content"]) {
            match block["type"].as_str() {
                Some("tool_use") => spoken.calls.push(text(&block["id"])),
                Some("tool_result") => {
                    spoken.results.push((text(&block["tool_use_id"]), text(&block["content"])));
                }
                _ => {}
            }
        }
        spoken
    };
    list(&body["messages"]).iter().map(spoken).collect()
}

fn gemini(body: &Value) -> Vec<Spoken> {
    let spoken = |content: &Value| {
        let mut spoken = Spoken::default();
        for part in list(&content["parts"]) {
            if let Some(call) = part.get("functionCall") {
                spoken.calls.push(text(&call["id"]));
            }
            if let Some(result) = part.get("functionResponse") {
                let response = &result["response"];
                let said = response.get("output").unwrap_or(&response["error"]);
                spoken.results.push((text(&result["id"]), text(said)));
            }
        }
        spoken
    };
    list(&body["contents"]).iter().map(spoken).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}
