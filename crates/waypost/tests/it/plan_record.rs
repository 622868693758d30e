//! `waypost plan run --record`: a real run becomes an example, which needs no server.

use crate::process::{Server, waypost, write};
use crate::rest::{self, Rest};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Asks a bank, and once more if it is not well; the answer is what it said and what was put in.
const PLAN: &str = "\
description: What money costs
steps:
  - id: ask
    type: tool_call
    toolId: bank.rate
    arguments: {}
    saveAs: found
    on_error: [{retry: {times: 3, wait_ms: 1, jitter: 0}}]
    nextStepId: end
  - id: end
    type: final_response
    message: \"{{ promptInput.who }} pays {{ context.found.rate }}\"
";
/// Nobody listens on port 1.
const AWAY: &str = "[providers.bank]\ntype = \"rest\"\ndocument = \"bank.yaml\"\n\
                    base_url = \"http://127.0.0.1:1\"\n";
const ASKING: &str = "\
description: Asks for a name
steps:
  - {id: ask, type: human_in_the_loop, message: What is your name?, nextStepIdOnInput: end}
  - {id: end, type: final_response, message: done}
";

#[test]
fn a_recorded_run_passes_without_its_servers_until_it_is_edited() {
    let asked = AtomicU32::new(0);
    let bank = Rest::start(Arc::new(move |_: &str| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => Some((503, "{}".to_owned())),
        _ => Some((200, "{\"rate\": 7}".to_owned())),
    }));
    let settings = bank.settings();
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("waypost.toml", settings.as_str()),
        ("bank.yaml", rest::DOCUMENT),
        ("plans/shop/rate.yaml", PLAN),
    ];
    write(folder.path(), &files);
    let server = Server::of_project(folder.path());
    rest::await_tool(&server, "bank.rate");
    let file = folder.path().join("run.yaml");
    let recorded = ["plan", "run", "shop/rate", "who=Ada", "--record", file.to_str().unwrap()];
    let ended = server.run(&recorded).code(0).says("the data of a real run");
    assert_eq!(ended.stdout, "Ada pays 7\n");
    server.run(&recorded).code(2).says("nothing is overwritten");
    assert_eq!(server.stop().0.code, Some(0));

    let example = fs::read_to_string(&file).unwrap();
    assert!(example.contains("503") && example.contains("rate: 7"), "{example}");
    // The server that the plan called is not there any more.
    write(folder.path(), &[("waypost.toml", AWAY)]);
    let tested = |text: &str| {
        write(folder.path(), &[("plans/shop/rate.yaml", format!("{PLAN}{text}").as_str())]);
        waypost(folder.path(), &["plan", "test"])
    };
    let passed = tested(&example).code(0);
    assert!(passed.stdout.ends_with("1 passed, 0 failed\n"), "{passed:#?}");
    let ended = tested(&example.replace("rate: 7", "rate: 8")).code(1);
    assert!(ended.stdout.contains("Ada pays 8"), "{ended:#?}");
}

#[test]
fn a_run_that_waits_for_a_person_is_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("waypost.toml", ""), ("plans/hello/ask.yaml", ASKING)]);
    let server = Server::of_project(folder.path());
    let file = folder.path().join("run.yaml");
    let recorded = ["plan", "run", "hello/ask", "--record", file.to_str().unwrap()];
    server.run(&recorded).code(3).says("has not ended, so nothing was recorded");
    assert!(!file.exists());
}
