//! The tools of the misbehaving MCP server. Most go wrong in a way of their own; a few work, so
//! that a test can see whether everything else is still served.

use super::options::Bad;
use super::state::State;
use super::talk::Talk;
use super::words::{Era, INVALID_PARAMS, Request, notification, text};
use crate::fuzz::hostile::{self, Case, Kind};
use serde_json::{Value, json};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

const HANG_MAX: Duration = Duration::from_secs(600);
const HANG_POLL: Duration = Duration::from_millis(20);
const REPLY_WAIT: Duration = Duration::from_secs(240);
/// How many notifications come before the answer of `flood`.
const FLOOD: u64 = 20_000;
/// The size of the answer of `huge`.
const HUGE_BYTES: usize = 100_000_000;
const HUGE_NAME_CHARS: usize = 100_000;
/// How many tools a list has that is too large: about 28 MB.
const HUGE_LIST: usize = 100_000;
/// How many tools stand on each page of a list without an end.
const PAGE: u64 = 10;

type Call = fn(&State, &Request, &mut dyn Talk) -> io::Result<()>;

struct Tool {
    name: &'static str,
    description: &'static str,
    reads: bool,
    call: Call,
}

const fn reads(name: &'static str, description: &'static str, call: Call) -> Tool {
    Tool { name, description, reads: true, call }
}

const fn writes(name: &'static str, description: &'static str, call: Call) -> Tool {
    Tool { name, description, reads: false, call }
}

const TOOLS: &[Tool] = &[
    reads("echo", "Answers with `text`.", |_, request, talk| {
        let said = argument(request, "text").as_str().unwrap_or_default().to_owned();
        done(request, talk, text(said))
    }),
    reads("add", "Adds `a` and `b`.", |_, request, talk| {
        let number = |name: &str| argument(request, name).as_i64().unwrap_or_default();
        let sum = number("a") + number("b");
        let mut result = text(sum.to_string());
        result["structuredContent"] = json!({"sum": sum});
        done(request, talk, result)
    }),
    reads("beside", "Says what came beside the call.", |_, request, talk| {
        let meta = &request.params["_meta"];
        let header = &request.traceparent;
        done(request, talk, text(json!({"meta": meta, "traceparent": header}).to_string()))
    }),
    reads("under_way", "Says how many calls hang.", |state, request, talk| {
        done(request, talk, text(state.hanging().to_string()))
    }),
    reads("written", "Says how often `write` was called.", |state, request, talk| {
        done(request, talk, text(state.writes().to_string()))
    }),
    reads("lists", "Says how often it was asked for its list.", |state, request, talk| {
        done(request, talk, text(state.lists().to_string()))
    }),
    writes("write", "Counts that it was called.", |state, request, talk| {
        done(request, talk, text(state.write().to_string()))
    }),
    writes("fail", "Says that it failed.", |_, request, talk| {
        let mut result = text("this tool fails");
        result["isError"] = json!(true);
        done(request, talk, result)
    }),
    writes("change", "Says that the list has changed.", |state, request, talk| {
        state.change();
        done(request, talk, text("changed"))
    }),
    reads("progress", "Tells its progress three times.", |_, request, talk| {
        for step in 1..=3 {
            talk.tell(&request.progress(step, 3))?;
        }
        done(request, talk, text("progressed"))
    }),
    writes("ask", "Asks a person for a name; `who` says whom.", ask),
    writes("lie", "Promises a number and gives a text.", |_, request, talk| {
        let mut result = text("three");
        result["structuredContent"] = json!({"sum": "three"});
        done(request, talk, result)
    }),
    writes("hang", "Never answers.", hang),
    writes("flood", "Tells its progress 20,000 times.", |_, request, talk| {
        for step in 1..=FLOOD {
            talk.tell(&request.progress(step, FLOOD))?;
        }
        done(request, talk, text("flooded"))
    }),
    writes("die", "Ends the server in the middle of the call.", |_, request, talk| {
        // Something was said already, so the connection is in use when it breaks.
        let _ = talk.tell(&request.progress(1, 2));
        std::process::exit(1)
    }),
    writes("huge", "Answers with 100 MB.", |_, request, talk| {
        let id = &request.id;
        let text = "x".repeat(HUGE_BYTES);
        talk.garble(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\
             \"text\":\"{text}\"}}]}}}}"
        ))
    }),
    writes("other_id", "Answers under another id.", |_, request, talk| {
        let mut answer = request.result(text("for somebody else"));
        answer["id"] = json!("no-such-id");
        talk.answer(200, &answer)
    }),
    writes("garbage", "Answers with something that is no JSON.", |_, _, talk| {
        talk.garble("{\"jsonrpc\": \"2.0\", what?")
    }),
    writes("half", "Breaks off in the middle of its answer.", |_, _, talk| talk.break_off()),
    writes("no_result", "Answers with a result of another shape.", |_, request, talk| {
        done(request, talk, json!({"content": "text", "isError": "no"}))
    }),
    writes("demand", "Asks the client for something that does not exist.", demand),
];

/// The answer to `tools/list`.
pub(super) fn list(state: &State, request: &Request) -> Value {
    let options = &state.options;
    let number = state.list();
    if options.is(Bad::EndlessPages) {
        let page = request.params["cursor"].as_str().and_then(|page| page.parse().ok());
        let page: u64 = page.unwrap_or(0);
        let tools = (0..PAGE).map(|tool| plain(&format!("tool_{}", page * PAGE + tool)));
        let tools: Vec<Value> = tools.collect();
        return json!({"tools": tools, "nextCursor": (page + 1).to_string()});
    }
    let mut tools: Vec<Value> = TOOLS.iter().map(listed).collect();
    if options.is(Bad::Hostile) {
        let listed = hostile::of(Kind::Listed);
        tools.extend(listed.filter_map(|case| serde_json::from_slice(&case.bytes()).ok()));
        tools.extend(hostile::of(Kind::Answered).map(|case| plain(case.name)));
    }
    if options.is(Bad::HugeList) {
        let filler = "x".repeat(200);
        tools.extend((0..HUGE_LIST).map(|tool| {
            json!({"name": format!("tool_{tool}"), "description": filler,
                "inputSchema": {"type": "object"}})
        }));
    }
    if options.is(Bad::Renames) {
        tools.push(plain(&format!("echo_{number}")));
    }
    if options.is(Bad::Grows) {
        let changes = state.changes_after(u64::MAX, Duration::ZERO);
        tools.extend((1..=changes).map(|change| plain(&format!("grown_{change}"))));
    }
    if options.is(Bad::HugeNames) {
        tools.push(plain(&"n".repeat(HUGE_NAME_CHARS)));
        tools.push(json!({"name": 7, "inputSchema": {"type": "object"}}));
        tools.push(json!("no tool at all"));
    }
    if options.is(Bad::WrongSchemas) {
        tools.push(json!({"name": "misdescribed", "inputSchema": {"type": "nonsense"}}));
        tools.push(json!({"name": "undescribed"}));
        let object = json!({"type": "object"});
        let endless = endless();
        tools.push(json!({"name": "endless_input", "inputSchema": endless}));
        tools.push(json!({"name": "endless_output", "inputSchema": object,
            "outputSchema": endless}));
        tools.push(json!({"name": "bell\u{7}", "inputSchema": object}));
    }
    json!({"tools": tools})
}

/// A schema with 2^40 ways through every value.
fn endless() -> Value {
    let mut levels = json!({"l40": {"type": "string"}});
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        levels[format!("l{level}")] = json!({"anyOf": [next, next]});
    }
    json!({"type": "object", "anyOf": [{"$ref": "#/$defs/l0"}], "$defs": levels})
}

fn listed(tool: &Tool) -> Value {
    let mut item = json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": tool.reads},
    });
    if matches!(tool.name, "add" | "lie") {
        item["outputSchema"] = json!({
            "type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"],
        });
    }
    item
}

fn plain(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

/// Answers `tools/call`.
pub(super) fn call(state: &State, request: &Request, talk: &mut dyn Talk) -> io::Result<()> {
    let name = request.params["name"].as_str().unwrap_or_default();
    if let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) {
        return (tool.call)(state, request, talk);
    }
    // A name that an earlier list had is as unknown as any other.
    if state.options.is(Bad::Renames) && name == format!("echo_{}", state.lists()) {
        return done(request, talk, text(name));
    }
    if state.options.is(Bad::Hostile)
        && let Some(case) = hostile::of(Kind::Answered).find(|case| case.name == name)
    {
        return raw(state, request, talk, case);
    }
    talk.answer(200, &request.error(INVALID_PARAMS, &format!("Unknown tool: {name}")))
}

fn argument<'a>(request: &'a Request, name: &str) -> &'a Value {
    &request.params["arguments"][name]
}

fn done(request: &Request, talk: &mut dyn Talk, result: Value) -> io::Result<()> {
    talk.answer(200, &request.result(result))
}

/// Answers with the bytes of a case. A stream stays open; any other answer ends here.
fn raw(state: &State, request: &Request, talk: &mut dyn Talk, case: &Case) -> io::Result<()> {
    let mut answer = case.bytes();
    let id = request.id.to_string();
    let place = |answer: &[u8]| {
        answer.windows(hostile::ID.len()).position(|part| part == hostile::ID.as_bytes())
    };
    if let Some(at) = place(&answer) {
        answer.splice(at..at + hostile::ID.len(), id.into_bytes());
    }
    talk.send(&answer)?;
    let head = answer.get(..100).unwrap_or(&answer);
    if String::from_utf8_lossy(head).contains("text/event-stream") {
        return hang(state, request, talk);
    }
    Ok(())
}

/// Waits until the client gives up; what it then answers, no one reads.
fn hang(state: &State, request: &Request, talk: &mut dyn Talk) -> io::Result<()> {
    let _hanging = state.hang();
    let begun = Instant::now();
    while begun.elapsed() < HANG_MAX && !state.is_cancelled(&request.id) && !talk.is_gone() {
        thread::sleep(HANG_POLL);
    }
    Ok(())
}

/// Asks for a name: by a request of its own in the era that has them, else by its answer.
fn ask(state: &State, request: &Request, talk: &mut dyn Talk) -> io::Result<()> {
    let message = match argument(request, "who").as_str() {
        Some(who) => format!("What is your name, {who}?"),
        None => "What is your name?".to_owned(),
    };
    let form = json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
        },
    });
    let reply = match wanted(state, request, talk, "elicitation/create", &form)? {
        Some(reply) => reply,
        None => return Ok(()),
    };
    let told = match reply["action"].as_str() {
        Some("accept") => format!("Hello, {}!", reply["content"]["name"].as_str().unwrap_or("?")),
        Some(other) => format!("no name: {other}"),
        None => format!("no name: {reply}"),
    };
    done(request, talk, text(told))
}

/// Asks for what no version knows.
fn demand(state: &State, request: &Request, talk: &mut dyn Talk) -> io::Result<()> {
    match wanted(state, request, talk, "evil/demand", &json!({"give": "everything"}))? {
        Some(reply) => done(request, talk, text(format!("the client answered {reply}"))),
        None => Ok(()),
    }
}

/// What the client answers to this; nothing where it has to call again first.
fn wanted(
    state: &State,
    request: &Request,
    talk: &mut dyn Talk,
    method: &str,
    params: &Value,
) -> io::Result<Option<Value>> {
    if request.era == Era::Modern {
        let given = &request.params["inputResponses"]["wanted"];
        if !given.is_null() {
            return Ok(Some(given.clone()));
        }
        let result = json!({
            "resultType": "input_required",
            "inputRequests": {"wanted": {"method": method, "params": params}},
            "requestState": "state",
        });
        return done(request, talk, result).map(|()| None);
    }
    let (id, reply) = state.ask();
    talk.tell(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
    let begun = Instant::now();
    while begun.elapsed() < REPLY_WAIT && !state.is_cancelled(&request.id) && !talk.is_gone() {
        if let Ok(mut reply) = reply.recv_timeout(HANG_POLL) {
            let member = if reply["error"].is_object() { "error" } else { "result" };
            return Ok(Some(reply[member].take()));
        }
    }
    Ok(None)
}

/// What comes without a request when the list changes, in the era with a stream for it.
pub(super) fn changed() -> Value {
    notification("notifications/tools/list_changed", json!({}))
}

#[cfg(test)]
mod tests {
    use super::super::options::Options;
    use super::*;

    fn names(flags: &str, cursor: Option<&str>) -> (Vec<String>, Value) {
        let words = flags.split_whitespace().map(str::to_owned);
        let state = State::new(Options::read(words).unwrap());
        let message = json!({"id": 1, "method": "tools/list", "params": {"cursor": cursor}});
        let request = Request::read(&message).unwrap();
        let list = list(&state, &request);
        let tools = list["tools"].as_array().unwrap();
        let name = |tool: &Value| tool["name"].as_str().map(str::to_owned);
        (tools.iter().filter_map(name).collect(), list["nextCursor"].clone())
    }

    #[test]
    fn lists_are_as_bad_as_asked_for() {
        let (good, next) = names("", None);
        assert_eq!((good.len(), next), (TOOLS.len(), Value::Null));
        let (paged, next) = names("--bad endless-pages", Some("4"));
        assert_eq!((paged[0].as_str(), next), ("tool_40", json!("5")));
        let (renamed, _) = names("--bad renames", None);
        assert_eq!(renamed.last().map(String::as_str), Some("echo_1"));
        let (grown, _) = names("--bad grows", None);
        assert_eq!(grown.len(), TOOLS.len(), "nothing changed yet");
        let (huge, _) = names("--bad huge-names", None);
        assert_eq!(huge.last().map(String::len), Some(HUGE_NAME_CHARS));
    }
}
