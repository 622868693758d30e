//! The rules for messages, tasks and streams.

use super::finding::{Report, none_of};
use serde_json::Value;
use wire::a2a::task::TaskState;

/// The state of a task, if it is one.
pub(super) fn state(task: &Value) -> Option<TaskState> {
    let state = TaskState::from_word(task["status"]["state"].as_str()?)?;
    (state != TaskState::Unspecified).then_some(state)
}

/// Holds a message of the agent against them.
pub(super) fn message(message: &Value, report: &mut Report) {
    report.must("4.1.4", "a message has an id, its role and parts", none_of(faults(message)));
}

fn faults(message: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    if message["messageId"].as_str().is_none_or(str::is_empty) {
        wrong.push("there is no `messageId`".to_owned());
    }
    if message["role"] != "ROLE_AGENT" {
        wrong.push(format!("`role` is {}", message["role"]));
    }
    wrong.extend(part_faults(message));
    wrong
}

/// What is wrong with the parts of a message or an artifact.
fn part_faults(object: &Value) -> Vec<String> {
    let parts = object["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    if parts.is_empty() {
        return vec!["`parts` has no entry".to_owned()];
    }
    let kinds = ["text", "raw", "url", "data"];
    let count = |part: &Value| kinds.iter().filter(|kind| part.get(**kind).is_some()).count();
    let wrong = parts.iter().map(count).enumerate().filter(|(_, count)| *count != 1);
    wrong.map(|(index, count)| format!("part {index} is {count} of {kinds:?}")).collect()
}

/// Holds a task against them.
pub(super) fn task(task: &Value, report: &mut Report) {
    let mut wrong = Vec::new();
    if task["id"].as_str().is_none_or(str::is_empty) {
        wrong.push("there is no `id`".to_owned());
    }
    if state(task).is_none() {
        wrong.push(format!("`status.state` is {}", task["status"]["state"]));
    }
    report.must("4.1.1", "a task has an id and a state", none_of(wrong));
    let context = match task["contextId"].as_str() {
        Some(id) if !id.is_empty() => Ok(()),
        _ => Err("there is no `contextId`".to_owned()),
    };
    report.must("3.4.1", "a context that the agent made is in its answer", context);
    let time = match task["status"]["timestamp"].as_str() {
        Some(time) if !is_utc(time) => Err(format!("`{time}`")),
        Some(_) | None => Ok(()),
    };
    report.must("5.6.1", "a timestamp is in UTC, as ISO 8601 writes it", time);
    let mut wrong = Vec::new();
    for artifact in task["artifacts"].as_array().into_iter().flatten() {
        if artifact["artifactId"].as_str().is_none_or(str::is_empty) {
            wrong.push("there is no `artifactId`".to_owned());
        }
        wrong.extend(part_faults(artifact));
    }
    report.must("4.1.7", "an artifact has an id and parts", none_of(wrong));
    if task["status"]["message"].is_object() {
        message(&task["status"]["message"], report);
    }
}

/// `2025-10-28T10:30:00.000Z`, with or without a fraction.
fn is_utc(time: &str) -> bool {
    time.ends_with('Z') && time.parse::<wire::a2a::value::Timestamp>().is_ok()
}

/// The events of a stream, if they are in the order of one. In JSON-RPC each is a result.
pub(super) fn events(text: &str, in_rpc: bool) -> Result<Vec<Value>, String> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let mut events = Vec::new();
    for line in data {
        let event: Value = serde_json::from_str(line.trim())
            .map_err(|error| format!("an event is no JSON: {error}"))?;
        events.push(if in_rpc { event["result"].clone() } else { event });
    }
    let Some((first, rest)) = events.split_first() else {
        return Err("it has no events".to_owned());
    };
    if first["message"].is_object() {
        return match rest.is_empty() {
            true => Ok(events),
            false => Err(format!("{} events follow its message", rest.len())),
        };
    }
    if !first["task"].is_object() {
        return Err(format!("it begins with {first}"));
    }
    let is_update = |event: &&Value| {
        ["statusUpdate", "artifactUpdate"].iter().any(|name| event[*name].is_object())
    };
    if let Some(other) = rest.iter().find(|event| !is_update(event)) {
        return Err(format!("{other} follows its task"));
    }
    let last = rest.iter().rev().find(|event| event["statusUpdate"].is_object());
    let last = last.map_or(&first["task"], |event| &event["statusUpdate"]);
    match state(last) {
        Some(state) if state.is_terminal() || state.is_interrupted() => Ok(events),
        _ => Err(format!("it ends while the task is {}", last["status"]["state"])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn broken(check: impl Fn(&mut Report)) -> Vec<&'static str> {
        let mut report = Report::default();
        check(&mut report);
        let wrong = report.findings.iter().filter(|finding| finding.is_wrong());
        wrong.map(|finding| finding.section).collect()
    }

    fn good() -> Value {
        json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED",
            "timestamp": "2026-01-02T03:04:05.678Z",
            "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}},
            "artifacts": [{"artifactId": "a", "parts": [{"data": null}]}]})
    }

    #[test]
    fn each_fault_of_a_task_has_its_section() {
        assert_eq!(broken(|report| task(&good(), report)), [""; 0]);
        for (pointer, value, section) in [
            ("/id", json!(""), "4.1.1"),
            ("/status/state", json!("completed"), "4.1.1"),
            ("/contextId", Value::Null, "3.4.1"),
            ("/status/timestamp", json!("2026-01-02T03:04:05+01:00"), "5.6.1"),
            ("/artifacts/0/parts", json!([]), "4.1.7"),
            ("/artifacts/0/parts/0", json!({"text": "a", "data": 1}), "4.1.7"),
            ("/status/message/role", json!("ROLE_USER"), "4.1.4"),
        ] {
            let mut wrong = good();
            *wrong.pointer_mut(pointer).unwrap() = value;
            assert_eq!(broken(|report| task(&wrong, report)), [section], "{pointer}");
        }
    }

    #[test]
    fn a_stream_is_one_message_or_a_task_until_it_is_over() {
        let event = |event: Value| format!("data: {}\n\n", json!({"result": event}));
        let begun = event(json!({"task": {"id": "t", "status": {"state": "TASK_STATE_WORKING"}}}));
        let over = event(json!({"statusUpdate": {"status": {"state": "TASK_STATE_COMPLETED"}}}));
        let said = event(json!({"message": {"messageId": "m"}}));
        for (text, is_good) in [
            (format!("{begun}{over}"), true),
            (said.clone(), true),
            (begun.clone(), false),
            (over.clone(), false),
            (format!("{said}{said}"), false),
            (format!("{begun}{said}{over}"), false),
            (String::new(), false),
            ("data: {\n\n".to_owned(), false),
        ] {
            assert_eq!(events(&text, true).is_ok(), is_good, "{text}");
        }
    }
}
