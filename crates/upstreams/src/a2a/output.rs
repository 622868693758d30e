//! Converts an agent's answer into a tool output: content blocks in MCP's shape. Files behind a URL
//! are not fetched.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use wire::a2a::message::{Content, Message, Part};
use wire::a2a::task::Task;

/// The member of `_meta` that names the task and its context.
const META: &str = "waypost/a2a";

/// The output of a task: what it made, and what it says at its end.
pub(super) fn of_task(task: Task) -> Value {
    let ids = json!({"taskId": task.id, "contextId": task.context_id});
    let made = task.artifacts.into_iter().flat_map(|artifact| artifact.parts);
    let said = task.status.message.into_iter().flat_map(|message| message.parts);
    of_parts(made.chain(said).collect(), ids)
}

/// The output of a message that is the whole answer.
pub(super) fn of_message(message: Message) -> Value {
    let ids = json!({"contextId": message.context_id});
    of_parts(message.parts, ids)
}

/// The same as a failure.
pub(super) fn as_failure(mut output: Value) -> Value {
    output["isError"] = Value::Bool(true);
    output
}

fn of_parts(parts: Vec<Part>, ids: Value) -> Value {
    let mut structured: Vec<Value> =
        parts.iter().filter_map(Part::as_data).filter(|data| data.is_object()).cloned().collect();
    let data = parts.iter().filter(|part| part.as_data().is_some()).count();
    let content: Vec<Value> = parts.into_iter().map(block).collect();
    let mut output = json!({"content": content});
    // Of several values none is the output.
    if data == 1
        && let Some(structured) = structured.pop()
    {
        output["structuredContent"] = structured;
    }
    output["_meta"] = json!({META: ids});
    output
}

fn block(part: Part) -> Value {
    let Part { content, filename, media_type, .. } = part;
    match content {
        Content::Text(text) => json!({"type": "text", "text": text}),
        Content::Data(data) => json!({"type": "text", "text": data.to_string()}),
        Content::Url(url) => {
            let name = if filename.is_empty() { url.clone() } else { filename };
            let mut link = json!({"type": "resource_link", "uri": url, "name": name});
            if !media_type.is_empty() {
                link["mimeType"] = json!(media_type);
            }
            link
        }
        Content::Raw(bytes) => {
            let data = STANDARD.encode(bytes);
            match media_type.split('/').next().unwrap_or_default() {
                kind @ ("image" | "audio") => {
                    json!({"type": kind, "data": data, "mimeType": media_type})
                }
                _ => {
                    let name = if filename.is_empty() { "file" } else { &filename };
                    let mut resource = json!({"uri": format!("a2a:{name}"), "blob": data});
                    if !media_type.is_empty() {
                        resource["mimeType"] = json!(media_type);
                    }
                    json!({"type": "resource", "resource": resource})
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(parts: Value) -> Task {
        serde_json::from_value(json!({"id": "t", "contextId": "c", "artifacts": [
            {"artifactId": "a", "parts": parts}], "status": {"state": 3, "message":
            {"messageId": "m", "role": 2, "parts": [{"text": "done"}]}}}))
        .unwrap()
    }

    #[test]
    fn every_message_part_becomes_a_content_block() {
        let parts = json!([{"text": "a"}, {"raw": "dGNr", "mediaType": "text/plain",
            "filename": "o.txt"}, {"raw": "dGNr", "mediaType": "image/png"},
            {"url": "https://a.test/x", "mediaType": "text/html"}, {"data": {"n": 1}}]);
        let output = of_task(task(parts));
        let expected = json!({"content": [
            {"type": "text", "text": "a"},
            {"type": "resource", "resource": {"uri": "a2a:o.txt", "blob": "dGNr",
                "mimeType": "text/plain"}},
            {"type": "image", "data": "dGNr", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "https://a.test/x", "name": "https://a.test/x",
                "mimeType": "text/html"},
            {"type": "text", "text": "{\"n\":1}"},
            {"type": "text", "text": "done"},
        ], "structuredContent": {"n": 1}, "_meta": {META: {"taskId": "t", "contextId": "c"}}});
        assert_eq!(output, expected);
        assert_eq!(as_failure(output)["isError"], true);
    }

    #[test]
    fn only_a_single_data_part_is_structured_content() {
        for parts in [json!([{"data": 1}]), json!([{"data": {}}, {"data": {}}]), json!([])] {
            let output = of_task(task(parts.clone()));
            assert_eq!(output.get("structuredContent"), None, "{parts}");
        }
    }
}
