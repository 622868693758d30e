//! A traced day of a demo: a plan, a conversation with an approval, a call; and helpers that find
//! the spans of each.

use crate::thread_client::{DemoClient, LIMIT, ProposedCall};
use jiff::{ToSpan, Zoned};
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};
use testkit::harness::wait_for;
use testkit::servers::otlp::{Collector, Span};

/// The callers' spans: of the plan, of the conversation, of the call, of a call that only reads.
pub const PLAN: &str = "00-11111111111111111111111111111111-1111111111111112-01";
pub const TALK: &str = "00-22222222222222222222222222222222-2222222222222223-01";
pub const CALL: &str = "00-33333333333333333333333333333333-3333333333333334-01";
pub const READ: &str = "00-44444444444444444444444444444444-4444444444444445-01";

/// What is said, given to tools and given back by them in the course of the day, and nowhere else.
pub const WORDS: [&str; 3] = ["Persimmon", "Zanzibarfest", "Quokkaparade"];

/// Spans are sent soon, and all of them.
pub const SOON: [(&str, &str); 2] =
    [("OTEL_BSP_SCHEDULE_DELAY", "50"), ("OTEL_TRACES_SAMPLER", "parentbased_always_on")];

/// How long spans may take to arrive.
const SPANS_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// The variables by which a server sends its spans to a collector, with these besides.
pub fn sending<'a>(url: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut all = vec![("OTEL_EXPORTER_OTLP_ENDPOINT", url)];
    all.extend(SOON);
    all.extend(more);
    all
}

/// A plan run, a conversation and two calls, each in a trace of its own.
pub fn spend_a_day(demo: &mut DemoClient) {
    // The calendar's tools may be on their way yet.
    demo.listed();
    plan(demo);
    let call = talk(demo, "traced", "Zanzibarfest");
    demo.decide("traced", &[(&call, None)]).success();
    let day = Zoned::now().date() + 70.days();
    let event = json!({"calendar_id": "primary", "name": "Quokkaparade", "duration_minutes": 30,
        "start": format!("{day}T09:00:00")});
    let body = json!({"arguments": event});
    let called = demo.post_in(CALL, "/api/v1/tools/create_event/call", &body);
    assert_eq!(called.status, 200, "{called:?}");
    let body = json!({"arguments": {"a": 1, "b": 2}});
    let read = demo.post_in(READ, "/api/v1/tools/math::add/call", &body);
    assert_eq!(read.status, 200, "{read:?}");
}

/// A run in which no model has a part.
fn plan(demo: &mut DemoClient) {
    let plan = json!({
        "planId": "it/sum",
        "description": "adds, and says what it was given",
        "startStepId": "add",
        "steps": [
            {"id": "add", "type": "tool_call", "toolId": "math::add",
             "arguments": {"a": 1, "b": 2}, "saveAs": "sum", "nextStepId": "end"},
            {"id": "end", "type": "final_response", "message": {"jsonPath": "$.promptInput.note"}},
        ],
    });
    let body = json!({"plan": plan, "input": {"note": "Persimmon"}});
    let ran = demo.post_in(PLAN, "/api/v1/runs", &body);
    let said = (ran.status, &ran.body["run"]["answer"]);
    assert_eq!(said, (200, &json!("Persimmon")), "{ran:?}");
}

/// A conversation up to the approval of its one call.
pub fn talk(demo: &mut DemoClient, thread: &str, event: &str) -> ProposedCall {
    let day = Zoned::now().date() + 71.days();
    let request = format!("create an event called {event} on {day} at 9am");
    let body = json!({"thread_id": thread, "user_request": request});
    demo.post_in(TALK, "/run", &body).call(thread)
}

/// Looks at all spans until something is found in them.
#[track_caller]
pub fn find<T>(collector: &Collector, what: &str, look: impl Fn(&[Span]) -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        let spans = collector.spans();
        if let Some(found) = look(&spans) {
            return found;
        }
        let names: Vec<String> =
            spans.iter().map(|span| format!("{} of {}", span.name, span.trace)).collect();
        let waited = begun.elapsed();
        assert!(waited < SPANS_LIMIT, "waited {waited:?} for {what}; there are {names:#?}");
        thread::sleep(POLL);
    }
}

/// The spans of one trace.
#[derive(Debug)]
pub struct Trace {
    pub spans: Vec<Span>,
}

impl Trace {
    /// The trace of this caller, once spans of all these names are there.
    #[track_caller]
    pub fn of(collector: &Collector, traceparent: &str, names: &[&str]) -> Self {
        let (trace, _) = parts(traceparent);
        find(collector, &format!("{names:?} of {trace}"), |spans| {
            let spans: Vec<Span> = spans.iter().filter(|one| one.trace == trace).cloned().collect();
            let there = |name: &&str| spans.iter().any(|span| span.name == **name);
            names.iter().all(there).then_some(Self { spans })
        })
    }

    /// The first of this name.
    #[track_caller]
    pub fn the(&self, name: &str) -> &Span {
        let found = self.spans.iter().find(|span| span.name == name);
        found.unwrap_or_else(|| panic!("no `{name}` in {self:#?}"))
    }

    /// All whose names begin like this.
    pub fn all(&self, begin: &str) -> Vec<&Span> {
        self.spans.iter().filter(|span| span.name.starts_with(begin)).collect()
    }

    /// The run's own span, below the caller's, with all others below it: one tree.
    #[track_caller]
    pub fn root(&self, traceparent: &str) -> &Span {
        let runs = self.all("invoke_workflow ");
        assert_eq!(runs.len(), 1, "one run: {self:#?}");
        let root = runs[0];
        assert_eq!(root.parent.as_deref(), Some(parts(traceparent).1), "{root:#?}");
        for span in &self.spans {
            assert!(self.is_below(span, &root.id), "{} hangs loose in {self:#?}", span.name);
            assert!(span.began >= root.began && span.ended <= root.ended, "{span:#?}");
        }
        root
    }

    fn is_below(&self, span: &Span, root: &str) -> bool {
        let mut at = span;
        // No way up is longer than there are spans.
        for _ in 0..self.spans.len() {
            if at.id == root {
                return true;
            }
            let above = self.spans.iter().find(|one| Some(&one.id) == at.parent.as_ref());
            let Some(above) = above else { return false };
            at = above;
        }
        false
    }
}

/// Trace and span of a caller.
pub fn parts(traceparent: &str) -> (&str, &str) {
    (&traceparent[3..35], &traceparent[36..52])
}

/// How often something of this name was measured; the counts of all its labels together.
pub fn measured(metrics: &str, name: &str) -> f64 {
    let begin = format!("{name}_count");
    let counts = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix(begin.as_str())?;
        rest.starts_with(['{', ' ']).then(|| rest.rsplit(' ').next())?
    });
    counts.filter_map(|count| count.parse::<f64>().ok()).sum()
}

/// Waits until this was measured.
pub fn is_measured(demo: &mut DemoClient, name: &str) {
    wait_for(&format!("`{name}` to have been measured"), LIMIT, || {
        (measured(&demo.metrics(), name) > 0.0).then_some(())
    });
}

#[track_caller]
pub fn said<'a>(span: &'a Span, attribute: &str) -> &'a str {
    let value: &Value = span.says(attribute);
    value.as_str().unwrap_or_else(|| panic!("no text `{attribute}` in {span:#?}"))
}
