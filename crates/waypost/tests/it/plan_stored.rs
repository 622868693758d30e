//! `waypost plan apply` and `waypost plan rm`: plans that are stored on a server.

use crate::process::{Server, write};
use serde_json::json;

const GREET: &str = "planId: hello/greet\ndescription: Greets\nsteps:\n  - {id: end, type: \
                     final_response, message: Hello}\n";

/// A server of a project with one plan in a file, and the folder in which others are written.
fn house() -> (Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let filed = GREET.replace("planId: hello/greet\n", "");
    let files =
        [("waypost.toml", ""), ("greet.yaml", GREET), ("plans/hello/filed.yaml", filed.as_str())];
    write(folder.path(), &files);
    (Server::of_project(folder.path()), folder)
}

/// A path below the folder, as a command takes it.
fn path(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

#[test]
fn a_plan_is_applied_and_removed() {
    let (server, folder) = house();
    let file = path(&folder, "greet.yaml");
    let applied = server.run(&["plan", "apply", &file]).code(0);
    assert_eq!(applied.stdout, "created    hello/greet  version 1\n");
    let again = server.run(&["plan", "apply", &file]).code(0);
    assert_eq!(again.stdout, "unchanged  hello/greet  version 1\n");
    write(folder.path(), &[("greet.yaml", GREET.replace("Hello", "Goodbye").as_str())]);
    let updated = server.json(&["plan", "apply", &file]).code(0).json();
    assert_eq!(updated, json!({"planId": "hello/greet", "result": "updated", "version": 2}));
    assert_eq!(server.run(&["plan", "run", "hello/greet"]).code(0).stdout, "Goodbye\n");

    let shown = server.run(&["plan", "show", "hello/greet"]).code(0).stdout;
    write(folder.path(), &[("again.yaml", shown.as_str())]);
    let same = server.run(&["plan", "apply", &path(&folder, "again.yaml")]).code(0);
    assert_eq!(same.stdout, "unchanged  hello/greet  version 2\n", "what is shown can be applied");

    let dry = server.json(&["plan", "rm", "hello/greet", "--dry-run"]).code(0).json();
    assert_eq!(dry, json!({"dryRun": true, "planId": "hello/greet", "removed": true}));
    server.run(&["plan", "rm", "hello/greet"]).code(0).says("removed `hello/greet`");
    server.run(&["plan", "rm", "hello/greet"]).code(1).says("there is no plan `hello/greet`");
    server.run(&["plan", "show", "hello/greet"]).code(1).says("there is no plan `hello/greet`");
}

#[test]
fn nothing_is_stored_if_one_of_the_files_is_wrong() {
    let (server, folder) = house();
    let wrong = GREET.replace("hello/greet", "hello/bad").replace("message", "mesage");
    write(folder.path(), &[("bad.yaml", wrong.as_str())]);
    let good = path(&folder, "greet.yaml");
    let bad = path(&folder, "bad.yaml");
    server.run(&["plan", "apply", &good, &bad]).code(2).says("bad.yaml:4:");
    server.run(&["plan", "apply", &path(&folder, "none.yaml")]).code(2).says("there is no file");
    server.run(&["plan", "show", "hello/greet"]).code(1).says("there is no plan `hello/greet`");
}

#[test]
fn a_plan_of_a_file_is_removed_only_there() {
    let (server, folder) = house();
    let file = path(&folder, "plans/hello/filed.yaml");
    let same = server.run(&["plan", "apply", &file]).code(0);
    assert_eq!(same.stdout, "unchanged  hello/filed  a file\n");
    let dry = server.run(&["plan", "rm", "hello/filed", "--dry-run"]).code(0);
    assert!(dry.stdout.contains("would stay"), "{dry:#?}");
    let refused = server.run(&["plan", "rm", "hello/filed"]).code(1);
    let refused = refused.says("plan `hello/filed` is in a file of the project");
    refused.says("remove the file in `plans/`");

    let other = GREET.replace("hello/greet", "hello/filed").replace("Hello", "Stored");
    write(folder.path(), &[("other.yaml", other.as_str())]);
    let over = server.run(&["plan", "apply", &path(&folder, "other.yaml")]).code(0);
    assert_eq!(over.stdout, "created    hello/filed  version 1\n");
    assert_eq!(server.run(&["plan", "run", "hello/filed"]).code(0).stdout, "Stored\n");
    server.run(&["plan", "rm", "hello/filed"]).code(0);
    let back = server.run(&["plan", "run", "hello/filed"]).code(0);
    assert_eq!(back.stdout, "Hello\n", "the file's plan is back");
}
