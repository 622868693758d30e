//! Tasks made of whole journals, and of every part of them that a late reader would see.

use super::*;
use kernel::event::read;
use serde_json::json;

const RUN: &str = "run_00000000000000000000000000000007";

fn ask_id(number: u32) -> String {
    format!("ask_{number:032x}")
}

fn opened(number: u32) -> Value {
    json!({"type": "ask.opened", "data": {"id": ask_id(number), "run": RUN, "frame": 1,
        "step": "ask", "title": "go on?", "body": {"kind": "clarify", "message": "go on?"},
        "digest": "d", "createdAt": 1}})
}

fn withdrawn(number: u32) -> Value {
    json!({"type": "ask.withdrawn", "data": {"ask": ask_id(number)}})
}

fn decided(number: u32) -> Value {
    json!({"type": "ask.decided", "data": {"ask": ask_id(number),
        "decision": {"by": "ann", "at": 1, "reply": {"kind": "clarify", "answer": "yes"}}}})
}

fn received(id: &str, misfit: Option<&str>) -> Value {
    let mut data = json!({"run": RUN, "id": id,
        "message": {"value": {"messageId": id}, "from": "input"}});
    if let Some(misfit) = misfit {
        data["misfit"] = json!(misfit);
    }
    json!({"type": "message.received", "data": data})
}

fn started() -> Value {
    json!({"type": "run.started", "data": {"run": RUN, "plan": "p", "closure": "c",
        "input": {"value": {}, "from": "input"}, "by": "ann", "frame": 1, "start": "one"}})
}

fn chosen() -> Value {
    json!({"type": "step.chosen", "data": {"frame": 1, "step": "s", "next": null}})
}

fn published(kind: &str) -> Value {
    json!({"type": "event.published", "data": {"frame": 1, "step": "s", "next": null,
        "published": {"event": {"type": kind, "text": "half"}}}})
}

fn ended(outcome: &Value) -> Value {
    json!({"type": "run.ended", "data": {"run": RUN, "outcome": outcome}})
}

fn completed(answer: Value) -> Value {
    ended(&json!({"how": "completed", "answer": {"value": answer, "from": "plan"}}))
}

fn failed(name: &str) -> Value {
    ended(&json!({"how": "failed", "fault": {"name": name, "message": "no"}}))
}

fn call_started() -> Value {
    json!({"type": "call.started", "data": {"call": format!("call_{:032x}", 1)}})
}

fn events(facts: &[Value]) -> Vec<Event> {
    let mut row = Vec::new();
    for (seq, fact) in (1_u64..).zip(facts) {
        let kind: &Value = &fact["type"];
        let data: &Value = &fact["data"];
        row.push(json!({"seq": seq, "at": seq, "v": 1, "type": kind, "data": data}));
    }
    read(&Value::Array(row).to_string()).unwrap()
}

fn word(state: &TaskState) -> String {
    match state {
        TaskState::Submitted => "submitted".to_owned(),
        TaskState::Working => "working".to_owned(),
        TaskState::Asking(TaskAsks { no, asks, misfit }) => {
            let misfit = misfit.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            format!("asking #{no} of {}{misfit}", asks.len())
        }
        TaskState::Completed => "completed".to_owned(),
        TaskState::Failed(fault) => format!("failed {}", fault.name),
        TaskState::Rejected(fault) => format!("rejected {}", fault.name),
        TaskState::Cancelled => "cancelled".to_owned(),
    }
}

fn words(facts: &[Value]) -> Vec<String> {
    let mut task = Task::default();
    let updates = events(facts).iter().flat_map(|event| task.apply(event)).collect::<Vec<_>>();
    let told = |update: &TaskUpdate| match update {
        TaskUpdate::Status(status) => format!("{}: {}", status.at.0, word(&status.state)),
        TaskUpdate::Chunk(Chunk::Answer(answer)) => format!("answer {}", answer.to_value()),
        TaskUpdate::Chunk(Chunk::Published(event)) => format!("artifact {}", event["text"]),
    };
    updates.iter().map(told).collect()
}

fn history(facts: &[Value]) -> Vec<String> {
    let mut task = Task::default();
    events(facts).iter().for_each(|event| drop(task.apply(event)));
    let told = |line: &Line| match line {
        Line::Received(received) => received.id.to_string(),
        Line::Asked(asking) => word(&TaskState::Asking(asking.clone())),
    };
    task.lines.iter().map(told).collect()
}

#[test]
fn a_task_is_submitted_works_and_ends_with_its_answer() {
    let facts = [
        started(),
        received("m1", None),
        chosen(),
        published("a2a.artifact"),
        published("order.shipped"),
        completed(json!("done")),
    ];
    let told = ["3: working", "artifact \"half\"", "answer \"done\"", "6: completed"];
    assert_eq!(words(&facts), told);
    assert_eq!(history(&facts), ["m1"]);
    let told = ["3: completed"];
    assert_eq!(words(&[started(), received("m1", None), completed(Value::Null)]), told);
}

#[test]
fn an_open_question_is_the_state_and_an_answered_one_is_history() {
    let facts = [
        started(),
        received("m1", None),
        opened(1),
        opened(2),
        received("m2", Some("no such key")),
        decided(1),
        received("m3", None),
        decided(2),
        chosen(),
        completed(json!(1)),
    ];
    let told = [
        "3: asking #1 of 1",
        "4: asking #2 of 2",
        "5: asking #3 of 2 (no such key)",
        "6: asking #4 of 1",
        "8: working",
        "answer 1",
        "10: completed",
    ];
    assert_eq!(words(&facts), told);
    let lines = [
        "m1",
        "asking #1 of 1",
        "asking #2 of 2",
        "m2",
        "asking #3 of 2 (no such key)",
        "m3",
        "asking #4 of 1",
    ];
    assert_eq!(history(&facts), lines);
}

#[test]
fn a_note_does_not_answer_the_question() {
    let facts = [started(), received("m1", None), opened(1), received("m2", None)];
    assert_eq!(words(&facts), ["3: asking #1 of 1"]);
    assert_eq!(history(&facts), ["m1", "m2"]);
}

#[test]
fn an_ask_held_by_a_rule_is_not_input_required() {
    let mut held = opened(1);
    held["data"]["held"] = json!({"rule": "r", "does": "retry", "until": 9, "try": 1, "of": 3});
    assert_eq!(words(&[started(), held, decided(1)]), ["2: working"]);
}

#[test]
fn a_cancelled_task_does_not_return_to_working() {
    let facts = [
        started(),
        opened(1),
        json!({"type": "run.closing", "data": {"run": RUN, "why": {"cancelled": "ann"}}}),
        withdrawn(1),
        ended(&json!({"how": "cancelled", "by": "ann", "unknown": []})),
    ];
    assert_eq!(words(&facts), ["2: asking #1 of 1", "5: cancelled"]);
    assert_eq!(history(&facts), ["asking #1 of 1"]);
}

#[test]
fn a_refusal_rejects_a_task_that_made_no_call() {
    for (facts, state) in [
        (vec![started(), failed("Rejected")], "2: rejected Rejected"),
        (vec![started(), failed("Declined")], "2: rejected Declined"),
        (vec![started(), call_started(), failed("Rejected")], "3: failed Rejected"),
        (vec![started(), call_started(), failed("TaskRejected")], "3: rejected TaskRejected"),
        (vec![started(), failed("Timeout")], "2: failed Timeout"),
    ] {
        assert_eq!(words(&facts).last().unwrap(), state);
    }
}

#[test]
fn a_proxied_call_has_an_output_also_if_it_failed() {
    let mut proxied = started();
    proxied["data"]["plan"] = json!("a2a/mcp.execute_tool");
    let call = json!({"type": "call.failed", "data": {"call": format!("call_{:032x}", 1),
        "how": "unknown", "fault": {"name": "Timeout", "message": "late"}}});
    let facts = [proxied, received("m1", None), call_started(), call, failed("Timeout")];
    let told = words(&facts);
    assert_eq!(told[0], "3: working");
    assert!(told[1].starts_with("answer {\"success\":false"), "{told:?}");
    assert!(told[1].contains("MCP_TIMEOUT") && told[1].contains("unknown"), "{told:?}");
    assert_eq!(told[2], "5: failed A2A_PROXY/MCP_TIMEOUT");
}

#[test]
fn late_and_early_readers_see_the_same_task() {
    let facts = [
        started(),
        received("m1", None),
        chosen(),
        opened(1),
        received("m2", Some("no")),
        decided(1),
        received("m3", None),
        published("a2a.artifact"),
        completed(json!({"a": 1})),
    ];
    let events = events(&facts);
    let mut whole = Task::default();
    let all: Vec<Vec<TaskUpdate>> = events.iter().map(|event| whole.apply(event)).collect();
    for cut in 0..=events.len() {
        let mut late = Task::default();
        events[..cut].iter().for_each(|event| drop(late.apply(event)));
        let rest: Vec<Vec<TaskUpdate>> =
            events[cut..].iter().map(|event| late.apply(event)).collect();
        assert_eq!(rest, all[cut..], "after {cut} events");
        assert_eq!(late, whole);
    }
}
