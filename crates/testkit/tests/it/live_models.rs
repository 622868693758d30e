//! The providers themselves, where a key is set: a router's turn, an executor's, and plans that are
//! drafted, with each model that is there by default. Only with `WAYPOST_LIVE=1`, because it costs
//! money; what was left out, and why, is printed.

use engine::catalog::schema::JsonSchemas;
use kernel::conversation::llm::{
    AnswerForm, Llm, Message, NullDeltaSink, Prompt, Stop, ToolCard, ToolChoice, Turn, Usage,
};
use kernel::definition::plan::check::PlanScope;
use kernel::definition::plan::flow::load_value;
use kernel::definition::plan::mistake::Mistake;
use kernel::definition::plan::read::Origin;
use kernel::limits::Limits;
use kernel::prompt::draft::{answered, correction, opening};
use kernel::tool::call::{Reach, ToolSpec};
use kernel::values::ids::{AgentName, Millis, ToolName};
use llms::config::ModelConfig;
use llms::price;
use serde_json::{Value, json};
use std::sync::Arc;

const PROVIDERS: [(&str, &str); 3] = [
    ("openai", "OPENAI_API_KEY"),
    ("anthropic", "ANTHROPIC_API_KEY"),
    ("gemini", "GOOGLE_API_KEY"),
];
const SECRET_WORD: &str = "heliotrope";

#[tokio::test]
async fn router_and_executor_work_with_every_provider_whose_key_is_set() {
    if std::env::var("WAYPOST_LIVE").as_deref() != Ok("1") {
        println!("left out: all providers, because WAYPOST_LIVE is not 1");
        return;
    }
    let models = llms::default_models(&|name| std::env::var(name).ok());
    for (name, variable) in PROVIDERS {
        let Some(config) = models.iter().find(|config| config.name == name) else {
            println!("left out: {name}, because {variable} is not set");
            continue;
        };
        let model = llms::open(config).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
        routes(config, &*model).await;
        executes(config, &*model).await;
        drafts(config, &*model).await;
        println!("done: {name} as {:?}", config.kind);
    }
}

/// A router's turn: a form, no tools.
async fn routes(config: &ModelConfig, model: &dyn Llm) {
    for (request, decision) in [
        ("Show me what is on my calendar tomorrow.", "allow"),
        ("Write me a poem about the sea, please.", "refuse"),
    ] {
        let mut prompt = prompt(ROUTER, request);
        prompt.answer = Some(route());
        let turn = turn(config, model, &prompt).await;
        let routed: Value = serde_json::from_str(&turn.text)
            .unwrap_or_else(|error| panic!("{}: {error}: {}", config.name, turn.text));
        assert_eq!(routed["decision"], decision, "{}: {routed}", config.name);
        assert!(routed["note"].is_string(), "{}: {routed}", config.name);
        let types: Vec<&str> = routed["allowed_tool_types"]
            .as_array()
            .map(|types| types.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let expected: &[&str] = if decision == "allow" { &["calendar"] } else { &[] };
        assert_eq!(types, expected, "{}: {routed}", config.name);
    }
}

/// An executor's turns: a call, its result, a refused call after that, and an answer.
async fn executes(config: &ModelConfig, model: &dyn Llm) {
    let request = "What is on my calendar tomorrow? Then book the room `Oak` for it.";
    let mut prompt = prompt(EXECUTOR, request);
    prompt.tools = vec![
        tool("list_events", "Lists the events of a day.", "day"),
        tool("book_room", "Books a room by its name.", "room"),
    ];
    let mut said = String::new();
    for _ in 0..6 {
        let turn = turn(config, model, &prompt).await;
        if turn.calls.is_empty() {
            said = turn.text;
            break;
        }
        let calls = turn.calls.clone();
        let text = turn.text;
        let native = turn.native;
        prompt.messages.push(Message::Assistant { text, calls: turn.calls, native });
        for call in calls {
            let (text, failed) = match call.tool.as_str() {
                "list_events" => (format!("09:00 Meeting `{SECRET_WORD}`, 30 minutes"), false),
                "book_room" => ("The owner rejected this: Oak is being painted.".to_owned(), true),
                other => panic!("{}: it calls `{other}`", config.name),
            };
            prompt.messages.push(Message::Result { id: call.id, tool: call.tool, text, failed });
        }
    }
    assert!(said.to_lowercase().contains(SECRET_WORD), "{}: {said}", config.name);
    let rejected = prompt.messages.iter().any(|message| {
        matches!(message, Message::Result { tool, failed: true, .. } if tool == "book_room")
    });
    assert!(rejected, "{}: it never tried the room: {said}", config.name);
}

/// How many turns a draft may take.
const DRAFT_TURNS_MAX: usize = 4;

/// What plans are drafted for.
const GOALS: [&str; 10] = [
    "add three numbers",
    "find a customer by name and answer with the mail address",
    "find a customer and send a mail that thanks for the last order",
    "send the same mail to every customer of a list of names",
    "ask a person for a date, then create a calendar event on it",
    "list the events of a day and say how many there are",
    "if a customer has no mail address, ask a person for one, else send a mail",
    "look up two customers at the same time and answer with both",
    "create an event for each of a list of titles",
    "cancel an order after a person has agreed",
];

/// Plans that a model writes: how many of them can be used. A model may fail at some; how it is
/// asked and how its answers are read is held by tests that need no key.
async fn drafts(config: &ModelConfig, model: &dyn Llm) {
    let tools = drafting_tools();
    let mut valid = 0;
    for goal in GOALS {
        match draft(config, model, goal, &tools).await {
            Ok(turns) => {
                valid += 1;
                println!("{}: drafted in {turns} turns: {goal}", config.name);
            }
            Err(mistakes) => println!("{}: no plan for `{goal}`: {mistakes:?}", config.name),
        }
    }
    println!("{}: {valid} of {} drafts can be used", config.name, GOALS.len());
    assert!(valid > 0, "{}: not one draft can be used", config.name);
}

/// In how many turns a plan was written, or what is wrong with the last one.
async fn draft(
    config: &ModelConfig,
    model: &dyn Llm,
    goal: &str,
    tools: &[Arc<ToolSpec>],
) -> Result<usize, Vec<Mistake>> {
    let mut prompt = prompt("", goal);
    prompt.messages = opening(goal, tools);
    prompt.choice = ToolChoice::None;
    let mut mistakes = Vec::new();
    for turns in 1..=DRAFT_TURNS_MAX {
        let turn = model.turn(&prompt, &NullDeltaSink).await;
        let turn = turn.unwrap_or_else(|error| panic!("{}: {error:?}", config.name));
        match drafted(&turn.text, tools) {
            Ok(()) => return Ok(turns),
            Err(found) => mistakes = found,
        }
        let text = turn.text;
        let calls = Vec::new();
        let native = turn.native;
        prompt.messages.push(Message::Assistant { text, calls, native });
        prompt.messages.push(correction(&mistakes));
    }
    Err(mistakes)
}

/// Whether an answer is a plan that can be used with these tools.
fn drafted(text: &str, tools: &[Arc<ToolSpec>]) -> Result<(), Vec<Mistake>> {
    let limits = Limits::default();
    let plan = answered(text, limits.plan_bytes_max).map_err(|mistake| vec![mistake])?;
    let tool = |name: &ToolName| tools.iter().find(|spec| spec.name == *name).cloned();
    let no_agents: fn() -> Vec<AgentName> = Vec::new;
    let around = PlanScope {
        tools: &tool,
        withheld: &|_| None,
        awaited: &|_| false,
        plans: &|_| false,
        agents: &|_| false,
        agent_names: &no_agents,
        tool_names: &|| tools.iter().map(|spec| spec.name.clone()).collect(),
        schemas: &JsonSchemas::default(),
    };
    load_value(&plan, &Origin::default(), &limits, &around).map(drop)
}

fn drafting_tools() -> Vec<Arc<ToolSpec>> {
    let of = |name: &str, description: &str, reach: Reach, arguments: &[&str]| {
        let argument = |name: &&str| ((*name).to_owned(), json!({"type": "string"}));
        let properties: serde_json::Map<String, Value> = arguments.iter().map(argument).collect();
        let input = json!({
            "type": "object", "properties": properties, "required": arguments,
            "additionalProperties": false,
        });
        Arc::new(ToolSpec {
            description: description.to_owned(),
            input_schema: Arc::new(input),
            reach,
            ..testkit::specs::tool(name)
        })
    };
    vec![
        of("crm.find", "Finds a customer: {name, mail, orders}.", Reach::Reads, &["name"]),
        of("crm.cancelOrder", "Cancels an order by its id.", Reach::Writes, &["order"]),
        of("mail.send", "Sends a mail.", Reach::Writes, &["to", "text"]),
        of("calendar.list", "Lists the events of a day.", Reach::Reads, &["day"]),
        of("calendar.create", "Creates an event.", Reach::Writes, &["day", "title"]),
        of("text.add", "Adds two numbers, given as texts.", Reach::Reads, &["a", "b"]),
    ]
}

async fn turn(config: &ModelConfig, model: &dyn Llm, prompt: &Prompt) -> Turn {
    let turn = model.turn(prompt, &NullDeltaSink).await;
    let turn = turn.unwrap_or_else(|error| panic!("{}: {error:?}", config.name));
    assert_eq!(turn.stop, Stop::Done, "{}: {turn:?}", config.name);
    let Usage { input, output, .. } = turn.usage;
    assert!(input > 0 && output > 0, "{}: {:?}", config.name, turn.usage);
    let cost = price::of(config).map(|price| price::cost_micros(turn.usage, price));
    println!("{}: {input} tokens in, {output} out, {cost:?} millionths of a dollar", config.name);
    turn
}

fn prompt(system: &str, request: &str) -> Prompt {
    let system = system.to_owned();
    let request = request.to_owned();
    Prompt {
        trace: None,
        messages: vec![Message::System { text: system }, Message::User { text: request }],
        tools: Vec::new(),
        choice: ToolChoice::Auto,
        answer: None,
        latest: None,
        now: Millis(1_794_729_600_000),
        zone: "UTC".to_owned(),
    }
}

fn tool(name: &str, description: &str, argument: &str) -> ToolCard {
    let schema = json!({
        "type": "object",
        "properties": {argument: {"type": "string"}},
        "required": [argument],
    });
    let name = name.to_owned();
    let description = description.to_owned();
    ToolCard { name, description, input_schema: Arc::new(schema) }
}

fn route() -> AnswerForm {
    let schema = json!({
        "type": "object",
        "properties": {
            "decision": {"type": "string", "enum": ["allow", "refuse"]},
            "note": {"type": "string"},
            "allowed_tool_types": {
                "type": "array",
                "items": {"type": "string", "enum": ["calendar", "maps"]},
            },
        },
        "required": ["decision", "note", "allowed_tool_types"],
        "additionalProperties": false,
    });
    AnswerForm { name: "route".to_owned(), schema: Arc::new(schema) }
}

const ROUTER: &str = "You decide whether a request is about the user's calendar or about places. \
    If it is, answer `allow` and name the smallest set of tool types that is enough: `calendar` \
    for events, `maps` for places and ways. If it is about anything else, answer `refuse` with no \
    tool types. The note is one short sentence.";
const EXECUTOR: &str = "You look after the user's calendar with the tools that you have. Today is \
    Sunday, 15 November 2026. Do what you can without asking, one step after the other. If a call \
    is rejected, do not try it again. At the end, tell in one or two sentences what is on the \
    calendar, with the names of the events as they are, and what could not be done.";
