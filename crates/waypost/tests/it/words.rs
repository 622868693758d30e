//! What people type: input without `--input`, files and ids of plans, words without quotes, the
//! beginning of an id, the newest one, and what a removal would remove.

use crate::process::{Server, waypost, write};
use crate::talk;

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
        waypost(folder.path(), &["plan", "validate", name]).code(0).says("1 plans, 0 errors");
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
    let words = ["run", "adder", "add", "2", "and", "3", "--thread", "t"];
    server.run(&words).code(3);
    let asks = server.json(&["inbox", "ls"]).code(0).json();
    assert_eq!(asks["items"][0]["calls"][0]["arguments"]["b"], 3, "{asks}");
}
