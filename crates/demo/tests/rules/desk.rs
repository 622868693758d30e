//! The other side of the model: the loop of an agent as the transcript shows it, with a calendar in
//! memory. Clarifications come first, then approvals, then the calls; each text that the model is
//! told is that of the product.

use demo::rules::Rules;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Zoned};
use kernel::conversation::llm::{AnswerForm, Message, ModelCall, Prompt, ToolCard, ToolChoice};
use kernel::values::ids::Millis;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// The rules of the demo.
static RULES: LazyLock<Rules> = LazyLock::new(|| {
    let text = include_str!("../../../../examples/calendar/rules/calendar.yaml");
    Rules::read(text, Path::new("calendar.yaml")).unwrap_or_else(|mistakes| {
        let told: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        panic!("{}", told.join("\n"))
    })
});

const CALENDAR: &[&str] = &["list_calendars", "list_events", "create_event", "update_event"];
const MAPS: &[&str] = &["search_places", "get_directions"];
const CLARIFY: &str = "request_clarification";
/// More turns than any request needs: one that takes more repeats itself.
const TURNS_MAX: usize = 8;

/// Where a run stops.
#[derive(Debug, Clone, PartialEq)]
pub enum Stop {
    /// With an answer.
    Said(String),
    /// With questions: the arguments of each.
    Clarify(Vec<Value>),
    /// With calls that need approval: tool and arguments of each.
    Confirm(Vec<(String, Value)>),
}

/// An event of the toy calendar.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub id: String,
    pub name: String,
    pub start: DateTime,
    pub end: DateTime,
}

pub struct Desk {
    pub now: Zoned,
    pub events: Vec<Event>,
    /// Tools that fail, and what they say.
    pub broken: BTreeMap<String, String>,
    /// What the router decided last.
    pub route: Value,
    messages: Vec<Message>,
    tools: Vec<&'static str>,
    pending: Vec<ModelCall>,
    calls: usize,
    turns: usize,
}

impl Desk {
    pub fn new(now: DateTime, zone: &str) -> Self {
        let zone = TimeZone::get(zone).unwrap();
        Self {
            now: now.to_zoned(zone).unwrap(),
            events: Vec::new(),
            broken: BTreeMap::new(),
            route: Value::Null,
            messages: vec![Message::System { text: "You keep a calendar.".to_owned() }],
            tools: Vec::new(),
            pending: Vec::new(),
            calls: 0,
            turns: 0,
        }
    }

    /// Puts an event on the calendar.
    pub fn put(&mut self, name: &str, start: &str, end: &str) {
        self.events.push(Event {
            id: format!("e{}", self.events.len()),
            name: name.to_owned(),
            start: start.parse().unwrap(),
            end: end.parse().unwrap(),
        });
    }

    /// A person asks for something.
    pub fn run(&mut self, text: &str) -> Stop {
        self.messages.push(Message::User { text: text.to_owned() });
        let mut prompt = self.prompt(&[]);
        let types = json!({"items": {"enum": ["calendar", "maps"]}});
        let schema = Arc::new(json!({"properties": {"allowed_tool_types": types}}));
        prompt.answer = Some(AnswerForm { name: "route".to_owned(), schema });
        let routed = RULES.answer(&prompt).unwrap();
        assert!(routed.calls.is_empty());
        self.route = serde_json::from_str(&routed.text).unwrap();
        self.tools = vec![CLARIFY];
        for allowed in self.route["allowed_tool_types"].as_array().unwrap() {
            self.tools.extend(if allowed == "calendar" { CALENDAR } else { MAPS });
        }
        self.turns = 0;
        self.go()
    }

    /// A person answers the questions.
    pub fn answer(&mut self, answer: &str) -> Stop {
        let pending = std::mem::take(&mut self.pending);
        let (questions, rest): (Vec<_>, Vec<_>) =
            pending.into_iter().partition(|call| call.tool == CLARIFY);
        for call in &questions {
            self.tell(call, &format!("User clarification: {answer}"), false);
        }
        for call in &rest {
            self.tell(call, "Deferred pending clarification.", false);
        }
        if rest.is_empty() {
            return self.go();
        }
        self.show(&rest);
        self.pending = rest;
        if writes(&self.pending).is_empty() {
            self.perform_all();
            return self.go();
        }
        Stop::Confirm(shown(&writes(&self.pending)))
    }

    /// A person decides on each call that needs it: none approves, words refuse.
    pub fn decide(&mut self, decisions: &[Option<&str>]) -> Stop {
        let asked = writes(&self.pending);
        assert_eq!(asked.len(), decisions.len(), "{asked:?}");
        if decisions.iter().all(Option::is_none) {
            self.perform_all();
            return self.go();
        }
        let pending = std::mem::take(&mut self.pending);
        let mut decisions = decisions.iter();
        let mut again = Vec::new();
        for call in pending {
            let refused = if is_write(&call) { *decisions.next().unwrap() } else { None };
            match refused {
                Some(words) => {
                    self.tell(&call, &format!("User rejected this action: {words}"), false);
                }
                None if is_write(&call) => {
                    let told = "User approved this action. Proceeding with execution.";
                    self.tell(&call, told, false);
                    again.push(call);
                }
                None => {
                    let told = "Auto-approved (non-confirmation tool). Proceeding with execution.";
                    self.tell(&call, told, false);
                    again.push(call);
                }
            }
        }
        if !again.is_empty() {
            self.show(&again);
        }
        self.pending = again;
        self.perform_all();
        self.go()
    }

    /// Turns of the model until it stops.
    fn go(&mut self) -> Stop {
        loop {
            self.turns += 1;
            assert!(self.turns <= TURNS_MAX, "it goes round in circles: {:#?}", self.messages);
            let turn = RULES.answer(&self.prompt(&self.tools)).unwrap();
            if turn.calls.is_empty() {
                assert!(!turn.text.is_empty(), "an empty answer");
                let text = turn.text.clone();
                self.messages.push(Message::Assistant { text, calls: Vec::new(), native: None });
                return Stop::Said(turn.text);
            }
            self.pending = turn.calls;
            for call in &mut self.pending {
                assert!(self.tools.contains(&call.tool.as_str()), "no such tool: {}", call.tool);
                self.calls += 1;
                call.id = format!("call_{}", self.calls);
            }
            self.show(&self.pending.clone());
            let asks: Vec<Value> = self
                .pending
                .iter()
                .filter(|call| call.tool == CLARIFY)
                .map(|call| (*call.arguments).clone())
                .collect();
            if !asks.is_empty() {
                return Stop::Clarify(asks);
            }
            let writes = writes(&self.pending);
            if !writes.is_empty() {
                return Stop::Confirm(shown(&writes));
            }
            self.perform_all();
        }
    }

    fn prompt(&self, tools: &[&str]) -> Prompt {
        let card = |name: &&str| ToolCard {
            name: (*name).to_owned(),
            description: String::new(),
            input_schema: Arc::new(json!({"type": "object"})),
        };
        Prompt {
            trace: None,
            messages: self.messages.clone(),
            tools: tools.iter().map(card).collect(),
            choice: ToolChoice::Auto,
            answer: None,
            latest: None,
            now: Millis(self.now.timestamp().as_millisecond()),
            zone: self.now.time_zone().iana_name().unwrap().to_owned(),
        }
    }

    fn show(&mut self, calls: &[ModelCall]) {
        let text = String::new();
        let calls = calls.to_vec();
        self.messages.push(Message::Assistant { text, calls, native: None });
    }

    fn tell(&mut self, call: &ModelCall, text: &str, failed: bool) {
        let id = call.id.clone();
        let tool = call.tool.clone();
        self.messages.push(Message::Result { id, tool, text: text.to_owned(), failed });
    }

    fn perform_all(&mut self) {
        for call in std::mem::take(&mut self.pending) {
            match self.broken.get(&call.tool).cloned() {
                Some(why) => self.tell(&call, &why, true),
                None => {
                    let result = self.perform(&call.tool, &call.arguments).to_string();
                    self.tell(&call, &result, false);
                }
            }
        }
    }

    fn perform(&mut self, tool: &str, arguments: &Value) -> Value {
        let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
        let minutes = arguments["duration_minutes"].as_i64().map(SignedDuration::from_mins);
        match tool {
            "list_calendars" => json!({"calendars": [
                {"name": "Primary", "description": "Yours", "calendar_id": "primary"},
            ]}),
            "list_events" => {
                let from: DateTime = text("start_time").parse().unwrap();
                let days = arguments["duration_days"].as_i64().unwrap();
                let until = from + SignedDuration::from_hours(24 * days);
                let inside = |event: &&Event| event.end > from && event.start < until;
                let events: Vec<Value> = self.events.iter().filter(inside).map(listed).collect();
                json!({"events": events})
            }
            "create_event" => {
                assert_eq!(text("calendar_id"), "primary");
                let start: DateTime = text("start").parse().unwrap();
                let id = format!("e{}", self.events.len());
                let name = text("name");
                self.events.push(Event { id, name, start, end: start + minutes.unwrap() });
                details(self.events.last().unwrap())
            }
            "update_event" => {
                let id = text("event_id");
                let event = self.events.iter_mut().find(|event| event.id == id).unwrap();
                let length = minutes.unwrap_or(event.end.duration_since(event.start));
                event.start = text("start").parse().unwrap();
                event.end = event.start + length;
                if let Some(name) = arguments["name"].as_str() {
                    name.clone_into(&mut event.name);
                }
                details(event)
            }
            "search_places" => json!({"places": [{"name": "Cafe One", "address": "Main St 1"}]}),
            "get_directions" => json!({
                "distance_km": 3.2, "minutes": 12, "steps": ["Go north", "Turn left"],
            }),
            other => panic!("no such tool: {other}"),
        }
    }
}

fn is_write(call: &ModelCall) -> bool {
    matches!(call.tool.as_str(), "create_event" | "update_event")
}

fn writes(calls: &[ModelCall]) -> Vec<ModelCall> {
    calls.iter().filter(|call| is_write(call)).cloned().collect()
}

fn shown(calls: &[ModelCall]) -> Vec<(String, Value)> {
    calls.iter().map(|call| (call.tool.clone(), (*call.arguments).clone())).collect()
}

fn wall(time: DateTime) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

fn listed(event: &Event) -> Value {
    json!({
        "event_id": event.id,
        "name": event.name,
        "start": wall(event.start),
        "end": wall(event.end),
        "description": "",
    })
}

fn details(event: &Event) -> Value {
    json!({"event_details": format!("{} at {}", event.name, wall(event.start)), "id": event.id})
}
