//! `waypost doctor`: all is well, something is wrong, and a server that runs is told apart.

use crate::process::{Server, waypost, write};
use crate::rest::{self, Rest};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use testkit::damage::make_unreadable;
use testkit::harness::wait_for;

/// The levels by check.
fn level<'a>(report: &'a Value, name: &str) -> &'a str {
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name);
    check.and_then(|check| check["level"].as_str()).unwrap_or("absent")
}

#[test]
fn a_new_project_has_no_findings() {
    let folder = tempfile::tempdir().unwrap();
    waypost(folder.path(), &["init"]).code(0);
    // A program that listens on the usual port of this machine is not ours.
    write(folder.path(), &[("waypost.toml", "[server]\nport = 0\n[tools]\ndemo = true\n")]);
    let ended = waypost(folder.path(), &["doctor"]).code(0).says("0 failed");
    let checks = [
        "config", "plans", "data", "space", "port", "server", "mcp", "sinks", "traces", "clock",
        "tls",
    ];
    for check in checks {
        let told = |line: &str| line.split_whitespace().nth(1) == Some(check);
        assert!(ended.stdout.lines().any(told), "nothing on `{check}`: {ended:#?}");
    }
    assert!(!folder.path().join(".waypost").exists());
    let report = waypost(folder.path(), &["--json", "doctor"]).code(0).json();
    assert_eq!(report["healthy"], true);
    assert_eq!(level(&report, "plans"), "ok");
}

#[test]
fn problems_are_reported_and_end_with_8() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("waypost.toml", "[server]\nprot = 0\n")]);
    let ended = waypost(folder.path(), &["doctor"]).code(8);
    assert!(ended.stdout.starts_with("fail  config"), "{ended:#?}");
    assert!(ended.stdout.contains("waypost.toml:2:1"), "{ended:#?}");

    let broken = "description: x\nstartStepId: a\nsteps: []\n";
    write(folder.path(), &[("waypost.toml", "[server]\nport = 0\n"), ("plans/x/a.yaml", broken)]);
    let report = waypost(folder.path(), &["--json", "doctor"]).code(8).json();
    assert_eq!((level(&report, "config"), level(&report, "plans")), ("ok", "fail"));

    write(folder.path(), &[("data", "a file")]);
    let report = waypost(folder.path(), &["--json", "doctor", "--data", "data"]).code(8).json();
    assert_eq!(level(&report, "data"), "fail");
}

#[test]
fn policies_are_checked_and_an_unserved_change_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let allow = "permit (principal, action, resource);\n";
    write(folder.path(), &[("waypost.toml", "[server]\nport = 0\n"), ("policies/a.cedar", allow)]);
    let report = waypost(folder.path(), &["--json", "doctor"]).code(0).json();
    assert_eq!(level(&report, "policies"), "ok", "{report}");
    let _server = Server::of_project(folder.path());
    let report = waypost(folder.path(), &["--json", "doctor"]).code(0).json();
    assert_eq!((level(&report, "policies"), level(&report, "reload")), ("ok", "absent"));

    write(folder.path(), &[("policies/a.cedar", "permit (principal, actions, resource);\n")]);
    let limit = Duration::from_secs(120);
    let report = wait_for("doctor to tell of a change that is not served", limit, || {
        let report = waypost(folder.path(), &["--json", "doctor"]).code(8).json();
        (level(&report, "reload") == "warn").then_some(report)
    });
    assert_eq!(level(&report, "policies"), "fail", "{report}");
    assert!(report.to_string().contains("therefore not served: policies"), "{report}");
}

#[test]
fn upstreams_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let settings = "[server]\nport = 0\n[mcp.servers.a]\ncommand = \"no-such-program\"\n";
    write(folder.path(), &[("waypost.toml", settings)]);
    let ended = waypost(folder.path(), &["doctor"]).code(0);
    assert!(ended.stdout.contains("1 upstream, 0 disabled: a (stdio)"), "{ended:#?}");
    assert!(ended.stdout.contains("is not here: `no-such-program`"), "{ended:#?}");
    let is_theirs = |line: &&str| line.split_whitespace().nth(1) == Some("mcp");
    let theirs: Vec<&str> = ended.stdout.lines().filter(is_theirs).collect();
    let alone = waypost(folder.path(), &["mcp", "doctor"]).code(0);
    assert_eq!(alone.stdout.lines().collect::<Vec<_>>(), theirs, "the part about upstreams");
    waypost(folder.path(), &["mcp", "doctor", "--call", "x"]).code(2).says("NAME");
    let json = r#"{"mcpServers": {"b": {"url": "https://${NO_SUCH_VARIABLE}/mcp"}}}"#;
    write(folder.path(), &[(".mcp.json", json)]);
    let report = waypost(folder.path(), &["--json", "doctor"]).code(8).json();
    assert_eq!(level(&report, "mcp"), "fail", "{report}");
    let alone = waypost(folder.path(), &["--json", "mcp", "doctor"]).code(8).json();
    assert_eq!((&alone["healthy"], level(&alone, "mcp")), (&json!(false), "fail"), "{alone}");
}

#[test]
fn an_upstream_whose_calls_are_refused_is_reported() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let bank = Rest::start(Arc::new(move |_: &str| {
        counted.fetch_add(1, Ordering::SeqCst);
        Some((503, "{}".to_owned()))
    }));
    let folder = tempfile::tempdir().unwrap();
    let limits =
        "[server]\nport = 0\n\n[limits]\nbreaker_failures = 2\nbreaker_open_ms = 600000\n\n";
    let settings = format!("{limits}{}", bank.settings());
    write(folder.path(), &[("waypost.toml", settings.as_str()), ("bank.yaml", rest::DOCUMENT)]);
    let server = Server::of_project(folder.path());
    rest::await_tool(&server, "bank.rate");
    let refused = "calls of `bank` are refused: 2 failed in a row";
    let call = || server.run(&["tool", "call", "bank.rate", "{}"]);
    call();
    let well = waypost(folder.path(), &["doctor"]).code(0);
    assert!(!well.stdout.contains("are refused"), "one failure is no reason: {well:#?}");
    call();
    let told = waypost(folder.path(), &["doctor"]).code(0);
    assert!(told.stdout.contains(refused), "{told:#?}");
    assert!(told.stdout.contains("`waypost mcp test bank` checks it now"), "{told:#?}");
    let report = waypost(folder.path(), &["--json", "doctor"]).code(0).json();
    let check = report["checks"].as_array().unwrap().iter().find(|check| check["what"] == refused);
    let check = check.unwrap_or_else(|| panic!("nothing of a breaker in {report}"));
    assert_eq!((&check["name"], &check["level"]), (&json!("mcp"), &json!("warn")), "{check}");
    // It says what is so: another call is not sent.
    let ended = call();
    assert!(ended.code != Some(0) && ended.stderr.contains("are refused"), "{ended:#?}");
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[test]
fn event_sinks_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let hook = "[events.sinks.hook]\ntype = \"webhook\"\nurl = \"http://127.0.0.1:1\"\n\
                secret = \"${HOOK}\"\n";
    let file = "[events.sinks.lines]\ntype = \"file\"\npath = \"out/events.jsonl\"\n";
    let settings = format!("[server]\nport = 0\n{hook}{file}");
    let secret = "HOOK=whsec_aHVudGVyMmh1bnRlcjJodW50ZXIyaHVu\n";
    write(folder.path(), &[("waypost.toml", settings.as_str()), (".env", secret)]);
    let ended = waypost(folder.path(), &["doctor"]).code(0);
    assert!(ended.stdout.contains("2 sinks of events: hook (webhook), lines (file)"), "{ended:#?}");
    assert!(!folder.path().join(".waypost").exists());
    // A file where the folder should be: a test that runs as root may write everywhere else.
    write(folder.path(), &[("data/out/events.jsonl/x", "")]);
    let report = waypost(folder.path(), &["--json", "doctor", "--data", "data"]).code(8).json();
    let told = report.to_string();
    assert!(told.contains("the file of `lines` is a folder"), "{told}");
    write(folder.path(), &[(".env", "HOOK=hunter2\n")]);
    let ended = waypost(folder.path(), &["doctor"]).code(8);
    assert!(ended.stdout.contains("`secret` must be `whsec_`"), "{ended:#?}");
    assert!(!ended.stdout.contains("hunter2"), "{ended:#?}");
}

#[test]
fn a_running_server_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let server = Server::start(&["--demo", "--data", data], &[]);
    let settings = format!("[server]\nport = {}\n", server.port());
    write(folder.path(), &[("waypost.toml", settings.as_str())]);
    let doctor = ["--json", "doctor", "--data", data];
    let report = waypost(folder.path(), &doctor).code(0).json();
    for check in ["server", "port", "lock"] {
        assert_eq!(level(&report, check), "ok", "{report}");
    }
    let lock = report["checks"].as_array().unwrap().iter().find(|check| check["name"] == "lock");
    let what = lock.unwrap()["what"].as_str().unwrap();
    assert!(what.contains(&server.pid().to_string()), "{what}");
}

#[test]
fn unreadable_sessions_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let place = data.to_str().unwrap();
    let server = Server::start(&["--demo", "--data", place], &[]);
    server.run(&["plan", "run", "interaction::greeting", "--session", "lost"]).code(3);
    server.stop().0.code(0);
    make_unreadable(&data, "lost");

    let server = Server::start(&["--demo", "--data", place], &[]);
    let settings = format!("[server]\nport = {}\n", server.port());
    write(folder.path(), &[("waypost.toml", settings.as_str())]);
    let doctor = ["--json", "doctor", "--data", place];
    let report = waypost(folder.path(), &doctor).code(0).json();
    assert_eq!(level(&report, "parked"), "absent", "{report}");
    let why = "event 1 of type `lost.session.created` v1 cannot be read by this release";
    server.run(&["session", "cancel", "lost"]).code(1).says(why);

    let listed = server.json(&["session", "ls", "--status", "parked"]).code(0).json();
    let session = &listed["items"][0];
    let found = (&session["key"], &session["status"]);
    assert_eq!(found, (&json!("lost"), &json!("waiting")), "{listed}");
    let id = session["id"].as_str().unwrap();
    let report = waypost(folder.path(), &doctor).code(0).json();
    let checks = report["checks"].as_array().unwrap();
    let told = checks.iter().find(|check| check["name"] == "parked").unwrap();
    let what = told["what"].as_str().unwrap();
    let begins = format!("1 sessions cannot be read and are tried again later; {id}: {why}");
    assert!(what.starts_with(&begins), "{what}");
    let about = (&told["level"], &told["hint"]);
    let hint = json!("`waypost session ls --status parked` lists them");
    assert_eq!(about, (&json!("warn"), &hint));

    let table = server.run(&["session", "ls"]).code(0).stdout;
    assert!(table.contains(&format!("{id}  parked")), "{table}");
    let shown = server.run(&["session", "show", "lost"]).code(0).stdout;
    let parked = session["parked"]["until"].as_str().unwrap();
    for line in [&format!("parked       {why}"), &format!("tried again  {parked}")] {
        assert!(shown.contains(line.as_str()), "no `{line}` in {shown}");
    }
}

#[test]
fn another_waypost_on_the_port_is_distinguished_from_our_own() {
    let one = tempfile::tempdir().unwrap();
    let two = tempfile::tempdir().unwrap();
    write(one.path(), &[("waypost.toml", "")]);
    let server = Server::of_project(one.path());
    let settings = format!("[server]\nport = {}\n", server.port());
    write(one.path(), &[("waypost.toml", settings.as_str())]);
    write(two.path(), &[("waypost.toml", settings.as_str())]);
    let check = |folder: &Path, name: &str| {
        let report = waypost(folder, &["--json", "doctor"]).json();
        let found = report["checks"].as_array().unwrap().iter().find(|one| one["name"] == name);
        found.unwrap_or_else(|| panic!("no `{name}` in {report}")).clone()
    };
    let data = one.path().canonicalize().unwrap().join(".waypost");
    let place = format!("127.0.0.1:{}", server.port());
    let held = json!({
        "level": "fail",
        "name": "port",
        "what": format!(
            "another Waypost (pid {}, folder {}) holds {place}", server.pid(), data.display()
        ),
        "hint": "stop it, or let `waypost up --port 0` take a free port",
    });
    assert_eq!(check(two.path(), "port"), held);
    let other = format!("none runs for this folder; another answers at {}", server.url);
    assert_eq!(check(two.path(), "server")["what"], other);
    waypost(two.path(), &["doctor"]).code(8);
    let ours = json!({"level": "ok", "name": "port", "what": format!("{place} is our server's")});
    assert_eq!(check(one.path(), "port"), ours);
    assert_eq!(check(one.path(), "server")["what"], format!("{} is ready", server.url));
}
