//! A client of the demo over `/run` and `/resume`, with its replies, proposed calls and calendar
//! events.

use crate::process::Server;
use jiff::civil::{Date, DateTime};
use jiff::{ToSpan, Zoned};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use testkit::harness::wait_for;
use testkit::http::{Answer, Client, NoAnswer, Request};

/// How long things may take on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(120);
/// Of every answer.
const KEYS: [&str; 6] = ["message", "pending_action", "response", "status", "thread_id", "url"];
/// How far the calendar is read: as far as it can be at once.
const CALENDAR_DAYS: u32 = 366;

/// An event: its begin, its end and its name.
pub type Event = (String, String, String);

/// A demo server and its client. Killed when dropped.
pub struct DemoClient {
    server: Server,
    client: Client,
}

impl DemoClient {
    /// A demo over this folder; its tools may be on their way yet.
    pub fn start(data: &Path) -> Self {
        Self::with_variables(data, &[])
    }

    /// The same with variables.
    pub fn with_variables(data: &Path, variables: &[(&str, &str)]) -> Self {
        let words = ["--demo", "--data", data.to_str().unwrap()];
        let all = [&[("LOG_LEVEL", "warn")][..], variables].concat();
        let server = Server::start(&words, &all);
        let client = client_of(&server);
        Self { server, client }
    }

    /// Another one who talks with it.
    pub fn client(&self) -> Client {
        client_of(&self.server)
    }

    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// SIGTERM; it must end in good order.
    pub fn stop(self) {
        let (ended, _) = self.server.stop();
        assert_eq!(ended.code, Some(0), "{ended:#?}");
    }

    pub fn run(&mut self, thread: &str, request: &str) -> ThreadReply {
        self.post("/run", &json!({"thread_id": thread, "user_request": request}))
    }

    pub fn resume(&mut self, body: &Value) -> ThreadReply {
        self.post("/resume", body)
    }

    /// Approves calls, or rejects them with these words.
    pub fn decide(
        &mut self,
        thread: &str,
        decisions: &[(&ProposedCall, Option<&str>)],
    ) -> ThreadReply {
        let ids = decisions.iter().map(|(call, words)| (call.id.as_str(), *words));
        self.resume(&approvals(thread, &ids.collect::<Vec<_>>()))
    }

    /// Answers the only question.
    pub fn answer(&mut self, thread: &str, question: &Question, response: &str) -> ThreadReply {
        self.resume(&answers(thread, &[(question.id.as_str(), response)]))
    }

    /// The thread as a session.
    pub fn thread(&mut self, thread: &str) -> Value {
        let path = format!("/api/v1/sessions/{thread}?space=thread");
        let shown = self.client.get(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(shown.status, 200, "{shown:?}");
        shown.json()
    }

    pub fn get(&mut self, path: &str) -> Value {
        self.client.get(path).unwrap_or_else(|error| panic!("{path}: {error}")).json()
    }

    pub fn post(&mut self, path: &str, body: &Value) -> ThreadReply {
        ThreadReply::of(self.client.post(path, body))
            .unwrap_or_else(|error| panic!("{body}: {error}"))
    }

    /// The same in this trace.
    pub fn post_in(&mut self, traceparent: &str, path: &str, body: &Value) -> ThreadReply {
        let text = body.to_string();
        let headers = [("traceparent", traceparent)];
        let request = Request { method: "POST", path, headers: &headers, body: Some(&text) };
        ThreadReply::of(self.client.send(&request))
            .unwrap_or_else(|error| panic!("{body}: {error}"))
    }

    /// The metrics as they are now.
    pub fn metrics(&mut self) -> String {
        self.client.get("/metrics").unwrap_or_else(|error| panic!("no metrics: {error}")).body
    }

    /// The events as the calendar has them, from yesterday on.
    pub fn listed(&mut self) -> Vec<Value> {
        let from = Zoned::now().date().yesterday().unwrap();
        let arguments = json!({"start_time": from.to_string(), "duration_days": CALENDAR_DAYS});
        let body = json!({"arguments": arguments});
        let said = wait_for("the calendar to be read", LIMIT, || {
            let said = self.post("/api/v1/tools/list_events/call", &body);
            // Not there yet, right after a start.
            (said.status != 404).then_some(said)
        });
        let events = &said.body["result"]["structuredContent"]["events"];
        events.as_array().unwrap_or_else(|| panic!("{said:?}")).clone()
    }

    /// The same in short, in order.
    pub fn calendar(&mut self) -> Vec<Event> {
        let text = |event: &Value, key: &str| event[key].as_str().unwrap().to_owned();
        let listed = self.listed();
        let short = |event| (text(event, "start"), text(event, "end"), text(event, "name"));
        let mut events: Vec<Event> = listed.iter().map(short).collect();
        events.sort();
        events
    }
}

fn client_of(server: &Server) -> Client {
    let address = server.url.strip_prefix("http://").unwrap();
    Client::new(address.parse().unwrap()).limit(LIMIT)
}

/// The body that decides about these calls.
pub fn approvals(thread: &str, decisions: &[(&str, Option<&str>)]) -> Value {
    let decision = |(id, words): &(&str, Option<&str>)| match words {
        None => json!({"call_id": id, "approved": true}),
        Some(words) => json!({"call_id": id, "approved": false, "feedback": words}),
    };
    let list: Vec<Value> = decisions.iter().map(decision).collect();
    json!({"thread_id": thread, "approvals": list})
}

/// The body that answers these questions.
pub fn answers(thread: &str, given: &[(&str, &str)]) -> Value {
    let answer = |(id, text): &(&str, &str)| json!({"call_id": id, "response": text});
    let list: Vec<Value> = given.iter().map(answer).collect();
    json!({"thread_id": thread, "clarification_responses": list})
}

/// A call that somebody has to decide about.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposedCall {
    pub id: String,
    pub tool: String,
    pub arguments: Value,
}

impl ProposedCall {
    pub fn text(&self, key: &str) -> &str {
        self.arguments[key].as_str().unwrap_or_else(|| panic!("no `{key}`: {self:?}"))
    }

    /// The event that it creates.
    #[track_caller]
    pub fn event(&self) -> Event {
        assert_eq!(self.tool, "create_event", "{self:?}");
        let start: DateTime = self.text("start").parse().unwrap();
        let minutes = self.arguments["duration_minutes"].as_i64().unwrap();
        (start.to_string(), (start + minutes.minutes()).to_string(), self.text("name").to_owned())
    }
}

/// A question that somebody has to answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub id: String,
    pub text: String,
}

/// What the demo said.
#[derive(Debug)]
pub struct ThreadReply {
    pub status: u16,
    pub body: Value,
}

impl ThreadReply {
    pub fn of(answer: Result<Answer, NoAnswer>) -> Result<Self, NoAnswer> {
        answer.map(|answer| Self { status: answer.status, body: answer.json() })
    }

    /// The answer of a request that is done: nothing else is in it.
    #[track_caller]
    pub fn success(&self) -> &str {
        let response = self.body["response"].as_str().unwrap_or_default();
        let expected = json!({"status": "success", "response": response, "thread_id": null,
            "pending_action": null, "url": null, "message": null});
        assert_eq!((self.status, &self.body), (200, &expected));
        assert!(!response.is_empty(), "{self:?}");
        response
    }

    /// The calls that somebody has to decide about, and nothing else.
    #[track_caller]
    pub fn calls(&self, thread: &str) -> Vec<ProposedCall> {
        let asked = |call: &Value| ProposedCall {
            id: text(&call["call_id"]),
            tool: text(&call["tool_name"]),
            arguments: call["arguments"].clone(),
        };
        let pending = self.pending(thread, ("confirmation_required", "confirmation"));
        let calls: Vec<ProposedCall> =
            pending["tool_calls"].as_array().unwrap().iter().map(asked).collect();
        let ids: BTreeSet<&String> = calls.iter().map(|call| &call.id).collect();
        assert_eq!(ids.len(), calls.len(), "{self:?}");
        calls
    }

    /// The only one.
    #[track_caller]
    pub fn call(&self, thread: &str) -> ProposedCall {
        let mut calls = self.calls(thread);
        assert_eq!(calls.len(), 1, "{self:?}");
        calls.remove(0)
    }

    /// The questions that somebody has to answer, and nothing else.
    #[track_caller]
    pub fn questions(&self, thread: &str) -> Vec<Question> {
        let pending = self.pending(thread, ("clarification_required", "clarification"));
        let question = |asked: &Value| {
            assert!(asked["context"].is_string(), "{asked}");
            Question { id: text(&asked["call_id"]), text: text(&asked["question"]) }
        };
        pending["clarifications"].as_array().unwrap().iter().map(question).collect()
    }

    #[track_caller]
    fn pending(&self, thread: &str, (status, kind): (&str, &str)) -> &Value {
        let keys: Vec<&str> = self.body.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(BTreeSet::from_iter(keys), BTreeSet::from(KEYS), "{self:?}");
        let said = (self.status, &self.body["status"], &self.body["thread_id"]);
        assert_eq!(said, (202, &json!(status), &json!(thread)), "{self:?}");
        for key in ["response", "url", "message"] {
            assert_eq!(self.body[key], Value::Null, "{self:?}");
        }
        assert_eq!(self.body["pending_action"]["kind"], kind, "{self:?}");
        &self.body["pending_action"]
    }

    /// It was not done, and why.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) {
        assert_eq!((self.status, &self.body["code"]), (status, &json!(code)), "{self:?}");
        assert_eq!(self.body["status"], "error", "{self:?}");
        assert!(self.body["message"].as_str().is_some_and(|words| !words.is_empty()), "{self:?}");
        assert!(self.body.as_object().unwrap().contains_key("hint"), "{self:?}");
        assert_eq!(self.body["pending_action"], Value::Null, "{self:?}");
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// The arguments that create an event of half an hour.
pub fn creates(name: &str, start: &str) -> Value {
    json!({"calendar_id": "primary", "duration_minutes": 30, "name": name, "start": start})
}

/// A calendar with these events besides.
pub fn with(calendar: &[Event], more: impl IntoIterator<Item = Event>) -> Vec<Event> {
    let mut all = calendar.to_vec();
    all.extend(more);
    all.sort();
    all
}

/// A day and a time as the calendar writes them.
pub fn at(day: Date, hour: i8, minute: i8) -> String {
    day.at(hour, minute, 0, 0).to_string()
}

/// What a request meant: the day may have changed while it was on its way.
pub struct Meant(Zoned);

impl Meant {
    /// Before it is sent.
    pub fn from_now() -> Self {
        Self(Zoned::now())
    }

    /// Once it is answered: what it meant when it was sent, or a moment later.
    #[track_caller]
    pub fn is<T: PartialEq + std::fmt::Debug>(&self, said: &T, meant: impl Fn(&Zoned) -> T) {
        let before = meant(&self.0);
        let after = meant(&Zoned::now());
        assert!(*said == before || *said == after, "{said:?}, and not {before:?}");
    }
}
