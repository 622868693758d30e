//! The commands that talk to a server, end to end over the demo's plans.

use crate::process::{Server, waypost, waypost_with};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;
use testkit::harness::wait_for;
use testkit::http::Client;

fn open_ask(server: &Server, session: &str) -> String {
    let asks = server.json(&["inbox", "ls", "--session", session]).code(0).json();
    assert_eq!(asks["items"].as_array().map(Vec::len), Some(1), "{asks}");
    asks["items"][0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn plans_are_listed_shown_and_run() {
    let server = Server::demo();
    let plans = server.run(&["plan", "ls"]).code(0);
    assert!(plans.stdout.contains("\ninteraction::greeting "), "{plans:#?}");
    let plan = server.json(&["plan", "show", "math::conditional_add"]).code(0).json();
    assert_eq!(plan["plan"]["startStepId"], "add");

    let run = ["plan", "run", "math::conditional_add", "--input", "a=2", "b=3"];
    assert_eq!(server.run(&run).code(0).stdout, "The sum 5 is positive.\n");
    let answer = server.json(&run).code(0).json();
    assert_eq!(answer["run"]["answer"], "The sum 5 is positive.");
    let fanned = server.run(&["plan", "run", "math::fan_out", "--input", "items=[1,2]"]).code(0);
    let fanned: Value = serde_json::from_str(&fanned.stdout).unwrap();
    assert_eq!(fanned["items"], serde_json::json!([11, 12]));

    let wrong = ["plan", "run", "math::conditional_add", "--input", "a=two", "b=3"];
    server.run(&wrong).code(2).says("/a: ");
    server.run(&["plan", "run", "math::nothing"]).code(1).says("hint: ");
    server.run(&["plan", "run", "math::fan_uot"]).code(1).says("did you mean `math::fan_out`?");
}

#[test]
fn a_question_is_answered_once() {
    let server = Server::demo();
    let asked = server.run(&["plan", "run", "interaction::greeting", "--session", "ada"]).code(3);
    let ask = open_ask(&server, "ada");
    assert!(asked.stdout.contains(&ask), "{asked:#?}");
    let asked = asked.says(&format!("waypost --server {} inbox answer {ask} name=..", server.url));
    assert!(asked.stdout.contains("What is your name?"), "{asked:#?}");

    let shown = server.run(&["inbox", "show", &ask]).code(0);
    assert!(shown.stdout.contains("minLength"), "{shown:#?}");
    // Off its schema: refused, and still open.
    server.run(&["inbox", "answer", &ask, "name="]).code(2).says("/");
    server.run(&["inbox", "approve", &ask]).code(2).says("it is not about calls");
    assert_eq!(open_ask(&server, "ada"), ask);

    let answered = server.run(&["inbox", "answer", &ask, "name=Ada"]).code(0);
    assert_eq!(answered.stdout, "Hello, Ada!\n");
    server.run(&["inbox", "answer", &ask, "name=Eve"]).code(1).says("error: ");
    let shown = server.json(&["inbox", "show", &ask]).code(0).json();
    assert_eq!(shown["decision"]["reply"]["content"]["name"], "Ada");
    let empty = server.json(&["inbox", "ls"]).code(0).json();
    assert_eq!(empty["items"], serde_json::json!([]));
}

#[test]
fn a_session_is_listed_shown_and_followed() {
    let server = Server::demo();
    let run = ["plan", "run", "math::conditional_add", "--session", "sum", "--input", "a=2", "b=3"];
    server.run(&run).code(0);
    server.run(&["plan", "run", "interaction::greeting", "--session", "open"]).code(3);

    let waiting = server.run(&["session", "ls", "--status", "waiting"]).code(0);
    assert!(waiting.stdout.contains("interaction::greeting"), "{waiting:#?}");
    assert!(!waiting.stdout.contains("math::conditional_add"), "{waiting:#?}");
    server.run(&["session", "ls", "--status", "wating"]).code(2).says("waiting");
    let shown = server.run(&["session", "show", "sum"]).code(0);
    for part in ["completed", "validate::is_positive", "\"sum\": 5"] {
        assert!(shown.stdout.contains(part), "no `{part}` in {shown:#?}");
    }
    server.run(&["session", "show", "nobody"]).code(1).says("nobody");
    server.run(&["session", "show", "opne"]).code(1).says("did you mean `open`?");
    server.run(&["session", "tail", "opne"]).code(1).says("did you mean `open`?");

    let tail = server.json(&["session", "tail", "sum"]).code(0);
    let lines: Vec<Value> =
        tail.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!((types[0], types[types.len() - 1]), ("snapshot", "end"));
    let started = types.iter().position(|kind| *kind == "run.started").unwrap();
    let after = lines[started]["seq"].to_string();
    let rest = server.run(&["session", "tail", "sum", "--after", &after]).code(0);
    assert!(!rest.stdout.contains("run.started"), "{rest:#?}");
    assert!(rest.stdout.contains("run.ended"), "{rest:#?}");
    assert_eq!(rest.stdout.lines().count(), types.len() - started - 2, "{rest:#?}");
}

#[test]
fn a_failed_step_is_fixed_or_cancelled() {
    let server = Server::demo();
    let run = ["plan", "run", "test::plan_that_fails", "--session"];
    server.run(&[&run[..], &["fixed"]].concat()).code(3).says("--action retry");
    let ask = open_ask(&server, "fixed");
    server.run(&["inbox", "answer", &ask]).code(2).says("of kind `fix`: it needs an action");
    let fixed = server.run(&["inbox", "answer", &ask, "--action", "skip"]).code(0);
    assert_eq!(fixed.stdout, "This is only said when a person skipped the step.\n");

    server.run(&[&run[..], &["aborted"]].concat()).code(3);
    let ask = open_ask(&server, "aborted");
    let aborted = server.run(&["inbox", "answer", &ask, "--action", "abort"]).code(0);
    assert_eq!(aborted.says("failed").stdout, "");

    server.run(&[&run[..], &["cancelled"]].concat()).code(3);
    let ask = open_ask(&server, "cancelled");
    let cancelled = server.run(&["session", "cancel", "cancelled"]).code(0);
    assert!(cancelled.stdout.ends_with(" cancelled\n"), "{cancelled:#?}");
    server.run(&["inbox", "answer", &ask, "--action", "skip"]).code(1);
    server.run(&["session", "cancel", "cancelled"]).code(1).says("no active run");
}

#[test]
fn a_run_is_paused_and_resumed() {
    let server = Server::demo();
    server.run(&["plan", "run", "interaction::greeting", "--session", "held"]).code(3);
    let paused = server.run(&["session", "pause", "held"]).code(0);
    assert!(paused.stdout.starts_with("run_"), "{paused:#?}");
    let ask = open_ask(&server, "held");
    server.run(&["session", "continue", "held"]).code(0);
    let answered = server.run(&["inbox", "answer", &ask, "name=Ada"]).code(0);
    assert_eq!(answered.stdout, "Hello, Ada!\n");
    server.run(&["session", "pause", "held"]).code(1).says("no active run");
    server.run(&["session", "pause", "hled"]).code(1).says("did you mean `held`?");
}

#[test]
fn a_session_is_tried_again_copied_and_exported() {
    let server = Server::demo();
    server.run(&["plan", "run", "test::plan_that_fails", "--session", "stuck"]).code(3);
    // It fails again, and somebody is asked again.
    server.run(&["session", "retry", "stuck"]).code(3).says("--action");
    let copy = server.run(&["session", "fork", "stuck"]).code(0).stdout;
    let copy = copy.trim_end();
    assert!(copy.starts_with("ses_"), "{copy}");
    server.run(&["session", "show", copy]).code(0);
    server.run(&["session", "fork", "stuck", "--at", "999"]).code(2).says("/at");

    let export = server.run(&["session", "export", "stuck"]).code(0).json();
    assert_eq!(export["events"][0]["type"], "session.created");
    assert!(export["history"].is_array(), "{export}");
    server.run(&["session", "export", "stcuk"]).code(1).says("did you mean `stuck`?");
    server.run(&["session", "cancel", "stuck"]).code(0);
    server.run(&["session", "retry", "stuck"]).code(1).says("no active run");
}

/// A server that knows one session, and breaks its export off. Gives its address.
fn breaking_off(session: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let request = lines.next().unwrap_or_default();
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let kind = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let answer = match request.contains("/export") {
                true => {
                    let begun = "{\"events\":[{\"seq\":1},";
                    let length = begun.len();
                    format!("{kind}\r\ntransfer-encoding: chunked\r\n\r\n{length:x}\r\n{begun}\r\n")
                }
                false => format!("{kind}\r\ncontent-length: {}\r\n\r\n{session}", session.len()),
            };
            let _ = (&stream).write_all(answer.as_bytes());
        }
    });
    format!("http://{address}")
}

#[test]
fn an_export_is_streamed_and_a_broken_one_is_reported() {
    let server = Server::demo();
    server.run(&["plan", "run", "interaction::greeting", "--session", "open"]).code(3);
    let mut client = Client::new(server.url.trim_start_matches("http://").parse().unwrap());
    let whole: Value = client.get("/api/v1/sessions/open/export").unwrap().json();
    let pretty = server.run(&["session", "export", "open"]).code(0);
    assert_eq!(pretty.stdout, format!("{}\n", serde_json::to_string_pretty(&whole).unwrap()));
    let line = server.json(&["session", "export", "open"]).code(0);
    assert_eq!(line.stdout, format!("{whole}\n"));

    let session = client.get("/api/v1/sessions/open").unwrap().body;
    let url = breaking_off(session);
    let folder = tempfile::tempdir().unwrap();
    let ended = waypost(folder.path(), &["--server", &url, "session", "export", "open"]).code(6);
    let cut = "the answer was cut before its end";
    let ended = ended.says(cut);
    assert_eq!(ended.stdout.trim_end(), "{\n  \"events\": [\n    {\n      \"seq\": 1\n    }");

    // A file has its name only where it is whole.
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let file = out.join("open.json");
    let to = ["session", "export", "open", "--output", file.to_str().unwrap()];
    waypost(folder.path(), &[&["--server", url.as_str()][..], &to[..]].concat()).code(6).says(cut);
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0, "something is left behind");
    assert_eq!(server.run(&to).code(0).says("exported ses_").stdout, "");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), pretty.stdout);
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 1, "something is left behind");
    std::fs::write(&file, "kept").unwrap();
    server.run(&to).code(2).says("nothing is overwritten").says("name another file");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
}

#[test]
fn events_of_all_sessions_are_followed() {
    let server = Server::demo();
    server.run(&["plan", "run", "math::conditional_add", "--input", "a=2", "b=3"]).code(0);
    server.run(&["plan", "run", "interaction::greeting", "--session", "open"]).code(3);
    let enough = |said: &str| said.contains("ask.opened");
    let said = server.follow(&["--json", "events", "tail"], enough);
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["type"], "snapshot");
    let ended = lines.iter().find(|line| line["event"]["type"] == "run.ended").unwrap();
    assert!(ended["session"].as_str().unwrap().starts_with("ses_"), "{ended}");

    let cursor = ended["cursor"].as_str().unwrap();
    assert!(cursor.starts_with('w') && cursor.len() == 41, "{ended}");
    let rest = server.follow(&["events", "tail", "--after", cursor], enough);
    assert!(!rest.contains("run.ended"), "{rest}");
    assert_eq!(rest.lines().count(), 3, "session.created, run.started, ask.opened: {rest}");
    assert!(rest.lines().all(|line| line.starts_with('w')), "each can be gone on after: {rest}");
    server.run(&["events", "tail", "--after", "nowhere"]).code(2).says("hint: ");
}

#[test]
fn old_sessions_are_removed() {
    let server = Server::demo();
    server.run(&["plan", "run", "math::conditional_add", "--input", "a=2", "b=3"]).code(0);
    server.run(&["plan", "run", "interaction::greeting", "--session", "open"]).code(3);
    let young = server.run(&["session", "prune", "--older-than", "30d"]).code(0);
    assert_eq!(young.stdout, "0 sessions removed, 0 runs of others, 0 rows in all\n");
    // The driver of the session may not have released it yet.
    wait_for("the session to be removed", Duration::from_secs(60), || {
        let pruned = server.json(&["session", "prune", "--older-than", "0s"]).code(0).json();
        (pruned["sessions"] == 1).then_some(())
    });
    let left = server.json(&["session", "ls"]).code(0).json();
    assert_eq!(left["items"].as_array().map(Vec::len), Some(1), "{left}");
    assert_eq!(left["items"][0]["key"], "open");
    server.run(&["session", "prune"]).code(2).says("--older-than");
    server.run(&["session", "prune", "--older-than", "soon"]).code(2).says("30d");
}

#[test]
fn sessions_are_removed_with_the_admin_key_where_there_is_one() {
    let key = [("WAYPOST_ADMIN_KEY", "secret")];
    let server = Server::start(&["--demo"], &key);
    let folder = tempfile::tempdir().unwrap();
    let prune = ["--server", server.url.as_str(), "session", "prune", "--older-than", "1h"];
    waypost(folder.path(), &prune).code(4).says("admin key");
    waypost_with(folder.path(), &prune, &[("WAYPOST_ADMIN_KEY", "wrong")]).code(4);
    waypost_with(folder.path(), &prune, &key).code(0);
}

/// A plan whose only step fails, after one try of a rule and one of a correction.
const FAILING: &str = "steps:\n  - id: call\n    type: tool_call\n    \
    toolId: 'test::always_fail'\n    arguments: {}\n    \
    on_error: [{retry: {times: 1, wait_ms: 1}}, {plan: fixes/none}]\n    \
    nextStepId: end\n  - {id: end, type: final_response, message: done}\n";
const NONE: &str = "steps: [{id: say, type: final_response, message: no idea}]\n";

#[test]
fn a_session_shows_what_rules_did_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("waypost.toml", "[tools]\ndemo = true\n");
    write("plans/work/fails.yaml", FAILING);
    write("plans/fixes/none.yaml", NONE);
    let server = Server::of_project(folder.path());
    server.run(&["plan", "run", "work/fails", "--session", "healed"]).code(3);
    let shown = server.run(&["session", "show", "healed"]).code(0);
    for part in ["step 1", "1 of 1", "correct fixes/none", "AlwaysFails"] {
        assert!(shown.stdout.contains(part), "no `{part}` in {shown:#?}");
    }
    let acts = server.json(&["session", "show", "healed"]).code(0).json()["acts"].clone();
    let does: Vec<&str> =
        acts.as_array().unwrap().iter().map(|act| act["held"]["does"].as_str().unwrap()).collect();
    assert_eq!(does, ["retry", "correct"], "{acts}");
}
