//! How a server begins and ends: one line on standard output, one process per data folder, a
//! temporary folder that goes with it, and an orderly end.

use crate::process::{Server, binary_folder, waypost, waypost_with};
use std::path::Path;
use std::time::Duration;
use testkit::harness::wait_for;

const IDLE_STOP_LIMIT: Duration = Duration::from_secs(30);

#[test]
fn a_start_reports_unfinished_runs() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let arguments = ["--demo", "--data", data.to_str().unwrap()];
    let first = Server::start(&arguments, &[]);
    assert!(!first.log().contains("waiting for a person"), "{}", first.log());
    first.run(&["plan", "run", "interaction::greeting"]).code(3);
    drop(first);
    let second = Server::start(&arguments, &[]);
    wait_for("what was left undone", Duration::from_secs(60), || {
        second.log().contains("1 waiting for a person (`waypost inbox`)").then_some(())
    });
}

/// Without an installed `waypost`, what is printed begins with the path of the built one.
#[test]
fn commands_are_printed_as_a_shell_finds_them() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let arguments = ["--demo", "--data", data.to_str().unwrap()];
    let program = binary_folder().join("waypost");
    let program = program.to_str().unwrap();
    let not_on_path = [("PATH", "")];

    let first = Server::start(&arguments, &not_on_path);
    wait_for("what to try", Duration::from_secs(60), || {
        first.log().contains("mcp snippet claude-code").then_some(())
    });
    let log = first.log();
    let url = first.url.as_str();
    assert!(log.contains(program) && log.contains(&format!(" --server {url} chat")), "{log}");
    assert!(!log.contains("\n  waypost "), "{log}");
    let run = ["--server", url, "plan", "run", "interaction::greeting"];
    let asked = waypost_with(folder.path(), &run, &not_on_path).code(3).says(program);
    assert!(!asked.stderr.contains("\n  waypost "), "{asked:#?}");
    drop(first);
    let second = Server::start(&arguments, &not_on_path);
    wait_for("what was left undone", Duration::from_secs(60), || {
        second.log().contains("1 waiting for a person (`").then_some(())
    });
    assert!(!second.log().contains("`waypost inbox`"), "{}", second.log());

    let written = waypost_with(folder.path(), &["init", "shop"], &not_on_path).code(0);
    let written = written.says(program).says(" plan test shop");
    assert!(!written.stderr.contains("now try: waypost "), "{written:#?}");
    waypost(folder.path(), &["init", "desk"]).code(0).says("now try: waypost plan test desk");
}

#[test]
fn a_demo_stops_cleanly_and_leaves_no_files() {
    let server = Server::demo();
    let folders = server.temporary();
    assert_eq!(folders.len(), 1, "{folders:?}");
    assert!(is_private(&folders[0]), "{folders:?}");
    assert_ne!(server.port(), "0");
    let line = format!("waypost listening on {}\n", server.url);

    let (ended, left) = server.stop();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    // With nobody inside there is nothing to wait for. The promise is 10 seconds; a busy machine
    // may take longer.
    assert!(ended.took < IDLE_STOP_LIMIT, "{ended:#?}");
    assert_eq!(ended.stdout, line);
    assert!(ended.stderr.contains("try this"), "{ended:#?}");
    assert!(left.is_empty(), "{left:?}");
}

#[cfg(unix)]
fn is_private(folder: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(folder).unwrap().permissions().mode() & 0o777 == 0o700
}

#[cfg(not(unix))]
fn is_private(folder: &Path) -> bool {
    folder.is_dir()
}

#[test]
fn a_stop_does_not_wait_for_people() {
    let server = Server::demo();
    server.run(&["plan", "run", "interaction::greeting", "--session", "open"]).code(3);
    let (ended, left) = server.stop();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_data_folder_has_one_holder() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let first = Server::start(&["--demo", "--data", data], &[]);
    assert!(first.temporary().is_empty());

    let second = waypost(folder.path(), &["up", "--demo", "--port", "0", "--data", data]).code(2);
    let second = second.says(&first.pid().to_string()).says("hint: ");
    assert_eq!(second.stdout, "");

    // A kept folder is there after the end, and what it holds too.
    first.run(&["plan", "run", "interaction::greeting", "--session", "kept"]).code(3);
    assert_eq!(first.stop().0.code, Some(0));
    let third = Server::start(&["--demo", "--data", data], &[]);
    let shown = third.json(&["session", "show", "kept"]).code(0).json();
    assert_eq!(shown["session"]["status"], "waiting");
}

#[test]
fn a_folder_that_lost_its_database_is_served_only_if_a_new_one_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let first = Server::start(&["--demo", "--data", data], &[]);
    first.run(&["plan", "run", "interaction::greeting", "--session", "kept"]).code(3);
    assert_eq!(first.stop().0.code, Some(0));

    std::fs::write(folder.path().join("data/waypost.db"), "").unwrap();
    let refused = waypost(folder.path(), &["up", "--demo", "--port", "0", "--data", data]).code(2);
    refused.says("`secret.key`").says("`waypost up --new`");

    let second = Server::start(&["--demo", "--new", "--data", data], &[]);
    second.run(&["plan", "run", "interaction::greeting", "--session", "kept"]).code(3);
    assert_eq!(second.stop().0.code, Some(0));
    // A database that is there stays, whatever the flag says.
    let third = Server::start(&["--demo", "--new", "--data", data], &[]);
    let shown = third.json(&["session", "show", "kept"]).code(0).json();
    assert_eq!(shown["session"]["status"], "waiting");
}

#[test]
fn a_store_that_went_back_is_served_only_if_the_loss_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let database = data.join("waypost.db");
    let older = folder.path().join("older.db");
    let data = data.to_str().unwrap();
    let first = Server::start(&["--demo", "--data", data], &[]);
    assert_eq!(first.stop().0.code, Some(0));
    std::fs::copy(&database, &older).unwrap();
    let second = Server::start(&["--demo", "--data", data], &[]);
    second.run(&["plan", "run", "interaction::greeting", "--session", "kept"]).code(3);
    assert_eq!(second.stop().0.code, Some(0));

    std::fs::copy(&older, &database).unwrap();
    let told = waypost(folder.path(), &["doctor", "--data", data]).code(8);
    assert!(told.stdout.contains("the store went back"), "{told:#?}");
    let third = Server::start(&["--demo", "--after-loss", "--data", data], &[]);
    assert_eq!(third.stop().0.code, Some(0));
    // Accepted once, it is the state that the next start expects.
    let fourth = Server::start(&["--demo", "--data", data], &[]);
    assert_eq!(fourth.stop().0.code, Some(0));
}

#[cfg(unix)]
#[test]
fn a_server_whose_lock_file_is_gone_ends() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&["--demo", "--data", data.to_str().unwrap()], &[]);
    std::fs::remove_file(data.join("lock")).unwrap();
    let ended = server.ends();
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    ended.says("`lock` was removed or replaced");
}

#[test]
fn a_start_that_cannot_succeed_says_why() {
    let server = Server::demo();
    let folder = tempfile::tempdir().unwrap();
    waypost(folder.path(), &["up", "--demo", "--port", server.port()])
        .code(2)
        .says(server.port())
        .says("hint: stop it, or let `waypost up --port 0` take a free port");
    waypost(folder.path(), &["up", "--demo", "--host", "0.0.0.0"]).code(2).says("not loopback");
    waypost(folder.path(), &["up", "nowhere"]).code(2).says("nowhere");
    let toml = folder.path().join("waypost.toml");
    std::fs::write(toml, "[server]\nprot = 1\n").unwrap();
    waypost(folder.path(), &["up", "--ephemeral"]).code(2).says("waypost.toml:2:1");
}

#[test]
fn an_unreachable_server_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody listens on port 1, and nobody without rights can.
    let nowhere = ["--server", "http://127.0.0.1:1"];
    let ended = waypost(folder.path(), &[&nowhere[..], &["tool", "ls"]].concat()).code(6);
    assert_eq!(ended.says("waypost up").stdout, "");
    let ended = waypost(folder.path(), &[&nowhere[..], &["--json", "tool", "ls"]].concat()).code(6);
    let line: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!(line["code"], "unreachable");
    waypost(folder.path(), &["--server", "nowhere", "tool", "ls"]).code(2).says("--server");
}
