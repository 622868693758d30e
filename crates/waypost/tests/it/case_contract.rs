//! A pipeline of trade failures against the real binary: requests to `up --demo`, what MCP clients
//! see, case memory over a restart, and what stops a start.
//!
//! Which test holds which part:
//!
//! | part | here | elsewhere |
//! |---|---|---|
//! | config validation | `a_file_with_mistakes_stops_the_start` | `pipeline_reader` in the kernel |
//! | factories with error cases | the same | `server/tests/it/pipeline_start.rs` |
//! | YAML, missing resources | `a_file_that_is_not_there_stops_the_start` | the same |
//! | handlers and publishing | `the_documented_requests_are_answered` | `server/tests/it/case_contract.rs` |
//! | tools, schemas, registry | `clients_see_the_documented_tool` | `tools/src` |
//! | stub rules and fallback | `the_documented_requests_are_answered` | `demo/src/rules` |
//! | memory, isolation | `a_case_is_remembered_over_a_restart` | `engine/tests/it/cases.rs` |
//! | deployment, routing | `a_port_that_is_taken_stops_the_start` | `pipeline_start.rs` there |
//! | step limits, error paths | | `server/tests/it/case_contract.rs` |
//! | end-to-end smoke tests | `the_documented_requests_are_answered` | |
//!
//! Copies and immutability have no test: what was read is shared, and no code can change it. That a
//! wrong set of pipelines changes nothing of the one before is in `engine/tests/it/cases.rs`.

use crate::peer::MODERN;
use crate::process::{Server, waypost, write};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;
use testkit::harness::wait_for;
use testkit::http::{Answer, Client, Request};

/// How long an answer may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

fn client_of(server: &Server) -> Client {
    let address = server.url.strip_prefix("http://").unwrap();
    Client::new(address.parse().unwrap()).limit(LIMIT)
}

/// `curl -X POST .../trade/failures -H 'content-type: application/json' -d BODY`.
fn post(client: &mut Client, route: &str, body: &str) -> Answer {
    let request = Request { method: "POST", path: route, headers: &[], body: Some(body) };
    client.send(&request).unwrap_or_else(|error| panic!("{body}: {error}"))
}

fn get(client: &mut Client, path: &str) -> Value {
    let answer = client.get(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.json()
}

/// The types of all events of a case's journal.
fn journal(client: &mut Client, pipeline: &str, case: &str) -> Vec<String> {
    let export = get(client, &format!("/api/v1/sessions/{case}/export?space=case:{pipeline}"));
    let events = export["events"].as_array().unwrap_or_else(|| panic!("{export}"));
    events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

fn has(journal: &[String], kind: &str) -> bool {
    journal.iter().any(|known| known == kind)
}

/// "Health Check", "Try it" 1 and 2, and what the original's stub does with anything else.
#[test]
fn the_documented_requests_are_answered() {
    let server = Server::demo();
    let mut client = client_of(&server);
    assert_eq!(get(&mut client, "/health"), json!({"status": "UP"}));
    // A turn waits until the servers behind the demo were heard, and a request for 10 seconds.
    wait_for("the tools of the demo's calendar", LIMIT, || {
        let shown = client.get("/api/v1/tools/create_event").ok()?;
        (shown.status == 200).then_some(())
    });

    let known = r#"{"tradeId":"T-100","reason":"Missing ISIN"}"#;
    let answer = post(&mut client, "/trade/failures", known);
    let expected = json!({"status": "ok", "path": "deterministic", "resultEvent": {
        "type": "TradeRepaired", "tradeId": "T-100", "by": "deterministic-processor",
        "details": {"action": "lookup+enrich ISIN"}}});
    assert_eq!((answer.status, answer.json()), (200, expected));
    let told = journal(&mut client, "trade-failures", "T-100");
    assert!(has(&told, "event.published") && has(&told, "run.ended"), "{told:?}");
    assert!(!has(&told, "turn.started") && !has(&told, "agent.entered"), "{told:?}");

    let counterparty = r#"{"tradeId":"T-101","reason":"Invalid Counterparty"}"#;
    let answer = post(&mut client, "/trade/failures", counterparty).json();
    assert_eq!(answer["resultEvent"]["type"], "TradeEscalated", "{answer}");

    let unknown = r#"{"tradeId":"T-200","reason":"LEI not found in registry"}"#;
    let answer = post(&mut client, "/trade/failures", unknown);
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = answer.json();
    let ticket = answer["result"]["ticketId"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(ticket.starts_with("TICKET-") && ticket.len() == "TICKET-".len() + 36, "{ticket}");
    let expected = json!({"status": "ok", "path": "agent", "tradeId": "T-200", "result": {
        "status": "created", "ticketId": ticket, "tradeId": "T-200",
        "category": "ReferenceData", "summary": "Counterparty LEI issue"}});
    assert_eq!(answer, expected);
    let told = journal(&mut client, "trade-failures", "T-200");
    assert!(has(&told, "turn.started") && has(&told, "call.finished"), "{told:?}");

    let odd = r#"{"tradeId":"T-201","reason":"Nobody knows"}"#;
    let event = post(&mut client, "/trade/failures", odd).json()["result"]["event"].clone();
    for (key, value) in [("type", "TradeEscalated"), ("by", "agent"), ("tradeId", "T-201")] {
        assert_eq!(event[key], value, "{event}");
    }
    assert_eq!((&event["reason"], &event["caseId"]), (&json!("Nobody knows"), &json!("T-201")));

    let stats = get(&mut client, "/api/v1/pipelines/trade-failures/stats");
    assert_eq!((&stats["total"], &stats["share"]), (&json!(4), &json!(0.5)), "{stats}");
}

#[test]
fn clients_see_the_documented_tool() {
    let server = Server::demo();
    let mut client = client_of(&server);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {}});
    let list =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
    let headers = [
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "tools/list"),
    ];
    let body = list.to_string();
    let request = Request { method: "POST", path: "/mcp", headers: &headers, body: Some(&body) };
    let listed = client.send(&request).unwrap().json();
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    let named = |name: &str| tools.iter().find(|tool| tool["name"] == name);
    let ticket = named("case.raiseTicket").unwrap_or_else(|| panic!("{listed}"));
    let text = |about: &str| json!({"type": "string", "description": about});
    let schema = json!({
        "type": "object",
        "properties": {
            "tradeId": text("The trade identifier, instead of `key`, where it is about a trade"),
            "key": text("The id of what the ticket is about, such as an order"),
            "category": text("Ticket category, e.g. ReferenceData"),
            "summary": text("Brief summary of the issue"),
            "detail": text("Detailed description of the failure"),
        },
        "required": ["summary"],
    });
    assert_eq!(ticket["inputSchema"], schema);
    assert_eq!(
        ticket["description"],
        "Creates a support ticket for something that a person has to look into."
    );
    let publish = named("events.publish").unwrap_or_else(|| panic!("{listed}"));
    assert_eq!(publish["inputSchema"]["required"], json!(["type"]));
}

/// A pipeline whose agent does something else for a case that it knows already.
const NOTES: &str = r#"
http: {route: /notes}
schema:
  caseIdField: tradeId
  allowedFields: [tradeId, reason]
  requiredFields: [tradeId, reason]
tools: [{type: publish-event}, {type: raise-ticket}]
llm:
  type: stub
  params:
    rules:
      version: 1
      rules:
        - rule: seen before
          when: {if: past}
          say: '{"intent": "CALL_TOOL", "tool": "events.publish", "args": {"type": "SeenBefore"}}'
      fallback:
        say: '{"intent": "CALL_TOOL", "tool": "events.publish", "args": {"type": "New"}}'
"#;

fn notes(data: &Path, file: &Path) -> Server {
    let data = data.to_str().unwrap();
    let file = file.to_str().unwrap();
    Server::start(&["--data", data, "--pipeline", file], &[("LOG_LEVEL", "warn")])
}

#[test]
fn a_case_is_remembered_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("notes.yaml", NOTES)]);
    let data = folder.path().join("data");
    let file = folder.path().join("notes.yaml");
    let event = |client: &mut Client, case: &str| {
        let body = json!({"tradeId": case, "reason": "odd"}).to_string();
        let answer = post(client, "/notes", &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["result"]["event"]["type"].clone()
    };
    let session = |client: &mut Client| -> Value {
        get(client, "/api/v1/sessions/T-1?space=case:notes")["id"].clone()
    };
    let server = notes(&data, &file);
    let mut client = client_of(&server);
    assert_eq!(event(&mut client, "T-1"), "New");
    assert_eq!(event(&mut client, "T-1"), "SeenBefore");
    assert_eq!(event(&mut client, "T-2"), "New", "another case knows nothing of it");
    let id = session(&mut client);
    let (ended, _) = server.stop();
    assert_eq!(ended.code, Some(0), "{ended:#?}");

    let server = notes(&data, &file);
    let mut client = client_of(&server);
    assert_eq!(event(&mut client, "T-1"), "SeenBefore");
    assert_eq!(session(&mut client), id, "it is the same session");
    assert_eq!(event(&mut client, "T-3"), "New");
    let told = journal(&mut client, "notes", "T-1");
    assert_eq!(told.iter().filter(|kind| *kind == "run.started").count(), 3, "{told:?}");
}

#[test]
fn a_file_that_is_not_there_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let ended = waypost(folder.path(), &["up", "--port", "0", "--pipeline", "none.yaml"]);
    ended.code(2).says("cannot read the pipeline `none.yaml`").says("--pipeline");
}

#[test]
fn a_file_with_mistakes_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let wrong =
        NOTES.replace("requiredFields: [tradeId, reason]", "requiredFields: [tradeId, who]");
    write(folder.path(), &[("pipelines/notes.yaml", &wrong)]);
    let ended = waypost(folder.path(), &["up", "--port", "0"]).code(2);
    ended.says("there are mistakes in the project's pipelines").says("pipelines/notes.yaml:");
}

#[test]
fn a_port_that_is_taken_stops_the_start() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let own = NOTES.replace("route: /notes", &format!("port: {port}, route: /notes"));
    write(folder.path(), &[("pipelines/notes.yaml", &own)]);
    let ended = waypost(folder.path(), &["up", "--port", "0", "--ephemeral"]).code(2);
    ended.says(&format!("port {port} is taken by another program")).says("pipeline `notes`");
}
