//! Input as people type it: without `--input`, as files and ids of plans, as words without quotes,
//! by a prefix of an id, the newest one; and what a removal would remove.

use crate::process::{Server, waypost, write};
use crate::talk;
use std::time::Duration;
use testkit::harness::wait_for;

const GREET: &str = r#"description: greets
startStepId: end
parameters: {type: object, properties: {name: {type: string}}, required: [name]}
steps:
  - {id: end, type: final_response, message: "Hello, {{ promptInput.name }}!"}
examples:
  - {name: greets, input: {name: Ada}, expect: {status: completed, answer: "Hello, Ada!"}}
"#;

#[test]
fn a_plan_takes_its_input_and_may_be_a_file() {
    let server = Server::demo();
    let run = ["plan", "run", "math::conditional_add", "a=2", "b=3"];
    assert_eq!(server.run(&run).code(0).stdout, "The sum 5 is positive.\n");
    let both = ["plan", "run", "math::conditional_add", "a=2", "--input", "b=3"];
    server.run(&both).code(2).says("cannot be used with");

    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("greet.yaml", GREET), ("wrong.yaml", "steps: []\n")]);
    let at = ["--server", server.url.as_str()];
    let run = [&at[..], &["plan", "run", "greet.yaml", "name=Eve"]].concat();
    assert_eq!(waypost(folder.path(), &run).code(0).stdout, "Hello, Eve!\n");
    let wrong = [&at[..], &["plan", "run", "wrong.yaml"]].concat();
    waypost(folder.path(), &wrong).code(1).says("wrong.yaml");
}

#[test]
fn a_plan_has_a_file_an_id_and_a_domain() {
    let folder = tempfile::tempdir().unwrap();
    let files = [("waypost.toml", ""), ("plans/desk/greet.yaml", GREET)];
    write(folder.path(), &files);
    for name in ["desk/greet", "plans/desk/greet.yaml", "plans/desk", "."] {
        let tested = waypost(folder.path(), &["plan", "test", name]).code(0);
        assert!(tested.stdout.ends_with("1 passed, 0 failed\n"), "{name}: {tested:#?}");
        waypost(folder.path(), &["plan", "validate", name]).code(0).says("1 plan, 0 errors");
    }
    let drawn = waypost(folder.path(), &["plan", "graph", "desk/greet"]).code(0);
    assert!(drawn.stdout.contains("end"), "{drawn:#?}");
    waypost(folder.path(), &["plan", "test", "desk/refund"]).code(2).says("cannot read");
}

#[test]
fn a_request_needs_no_quotes() {
    let (_folder, server) = talk::served();
    let words = ["run", "what", "is", "on", "my", "calendar"];
    assert_eq!(server.run(&words).code(0).stdout, "I can only add.\n");
    assert_eq!(server.run(&["run", "refund", "A-8"]).code(0).stdout, "I can only add.\n");
    assert_eq!(server.run(&["run", "adder", "hello"]).code(0).stdout, "I can only add.\n");
    server.run(&["run", "ader", "what is new?"]).code(1).says("no agent `ader`");
    let words = ["run", "adder", "add", "2", "and", "3", "--thread", "t"];
    server.run(&words).code(3);
    let asks = server.json(&["inbox", "ls"]).code(0).json();
    assert_eq!(asks["items"][0]["calls"][0]["arguments"]["b"], 3, "{asks}");
}

#[test]
fn the_beginning_of_an_id_is_enough() {
    let server = Server::demo();
    for session in ["one", "two"] {
        server.run(&["plan", "run", "interaction::greeting", "--session", session]).code(3);
    }
    let asks = server.json(&["inbox", "ls"]).code(0).json();
    let ids: Vec<&str> =
        asks["items"].as_array().unwrap().iter().map(|ask| ask["id"].as_str().unwrap()).collect();
    let alike = ids[0].bytes().zip(ids[1].bytes()).take_while(|(one, two)| one == two).count();
    let shown = server.run(&["inbox", "show", &ids[0][..=alike]]).code(0);
    assert!(shown.stdout.contains(ids[0]), "{shown:#?}");
    // Nothing but the prefix is no beginning of an id.
    if alike > "ask_".len() {
        let both = server.run(&["inbox", "show", &ids[0][..alike]]).code(2).says("fits 2 asks");
        assert!(both.stderr.contains(ids[1]), "{both:#?}");
    }
    let wrong = if ids.iter().any(|id| id.starts_with("ask_f")) { "ask_0f0f" } else { "ask_f" };
    server.run(&["inbox", "show", wrong]).code(1).says("waypost inbox ls");

    let newest = server.json(&["session", "show", "--last"]).code(0).json();
    assert_eq!(newest["session"]["key"], "two");
    let id = newest["session"]["id"].as_str().unwrap();
    let same = server.json(&["session", "show", &id[..id.len() - 1]]).code(0).json();
    assert_eq!(same["session"]["key"], "two");
    let greeted = server.run(&["inbox", "answer", "--last", "name=Ada"]).code(0);
    assert_eq!(greeted.stdout, "Hello, Ada!\n");
    let left = server.json(&["inbox", "ls"]).code(0).json();
    assert_eq!(left["items"][0]["session"]["key"], "one");
    server.run(&["session", "show", "one", "--last"]).code(2).says("cannot be used with");
    server.run(&["inbox", "answer", "--last", "x", "--action", "skip"]).code(2).says("too many");
}

#[test]
fn a_removal_can_be_tried_and_says_what_it_keeps() {
    let server = Server::demo();
    let add = ["plan", "run", "math::conditional_add", "a=2", "b=3", "--session", "done"];
    server.run(&add).code(0);
    server.run(&["plan", "run", "interaction::greeting", "--session", "open"]).code(3);
    let old = ["session", "prune", "--older-than", "0s", "--dry-run"];
    let tried = server.json(&old).code(0).json();
    assert_eq!(tried["sessions"].as_array().map(Vec::len), Some(1), "{tried}");
    assert_eq!(tried["kept"]["active"], 1, "{tried}");
    server.run(&old).code(0).says("1 session would be removed").says("1 not over");
    let young = ["session", "prune", "--older-than", "30d"];
    server.run(&young).code(0).says("2 sessions kept: 1 not over").says("1 used more recently");
    let left = server.json(&["session", "ls"]).code(0).json();
    assert_eq!(left["items"].as_array().map(Vec::len), Some(2), "{left}");

    let kept = server.run(&["session", "rm", "open", "--dry-run"]).code(0);
    assert!(kept.stdout.contains("would stay: it is waiting"), "{kept:#?}");
    let tried = server.run(&["session", "rm", "done", "--dry-run"]).code(0);
    assert!(tried.stdout.contains("(completed) would be removed"), "{tried:#?}");
    let agents = server.run(&["agent", "rm", "assistant", "--dry-run"]).code(0);
    assert!(agents.stdout.contains("would stay"), "{agents:#?}");
    wait_for("the session to be removed", Duration::from_secs(60), || {
        (server.run(&["session", "rm", "done"]).code == Some(0)).then_some(())
    });
    server.run(&["session", "show", "done"]).code(1).says("no session `done`");
}
