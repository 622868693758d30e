//! `waypost child`: a command that ends with the process that started it, and all that it started
//! with it.

use crate::process::{binary_folder, waypost};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testkit::harness::{processes_with, send_signal, wait_for};

const LIMIT: Duration = Duration::from_secs(60);

/// Ignores that it should end, and so does what it starts. `$0` marks both.
const STUBBORN: &str = r#"trap "" TERM HUP INT
sh -c 'trap "" TERM HUP INT; while :; do sleep 1; done' "$0" &
while :; do sleep 1; done"#;

fn binary() -> PathBuf {
    binary_folder().join("waypost")
}

/// A word that is among the arguments of one test's processes only.
fn mark(test: &str) -> String {
    format!("mark-of-{test}-{}", std::process::id())
}

/// Waits until so many processes bear the mark; we and our tests do not.
fn wait_for_marked(mark: &str, count: usize) {
    let what = format!("{count} processes with `{mark}`");
    wait_for(&what, LIMIT, || (processes_with(mark).len() == count).then_some(()));
}

/// A process with all that bears its mark; all are killed in the end, whatever comes.
struct Marked {
    child: Child,
    mark: String,
}

impl Marked {
    fn start(command: &mut Command, mark: &str) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: command.spawn().unwrap(), mark: mark.to_owned() }
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        processes_with(&self.mark).iter().for_each(|seen| send_signal("KILL", seen.pid));
    }
}

#[test]
fn a_command_inherits_pipes_and_passes_its_exit_code_on() {
    let folder = tempfile::tempdir().unwrap();
    let ended = waypost(folder.path(), &["child", "--", "sh", "-c", "echo said; exit 7"]).code(7);
    assert_eq!(ended.stdout, "said\n");
    waypost(folder.path(), &["child", "--", "sh", "-c", "kill -KILL $$"]).code(128 + 9);
    waypost(folder.path(), &["child", "--", "no-such-program"]).code(2).says("`no-such-program`");
    waypost(folder.path(), &["child"]).code(2);
}

#[test]
fn a_command_does_not_start_when_its_parent_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    // The first process of all is certainly not the parent.
    let ended = waypost(folder.path(), &["child", "--parent", "1", "--", "echo", "started"]);
    let ended = ended.code(1).says("parent");
    assert_eq!(ended.stdout, "");
}

#[test]
fn processes_left_by_a_command_are_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mark = mark("left");
    let script = "sh -c 'while :; do sleep 1; done' \"$0\" >/dev/null 2>&1 & exit 3";
    waypost(folder.path(), &["child", "--", "sh", "-c", script, &mark]).code(3);
    // What was killed may take a moment to be gone.
    wait_for_marked(&mark, 0);
}

#[test]
fn a_stubborn_command_is_killed_with_all_that_it_started() {
    let mark = mark("stubborn");
    let mut command = Command::new(binary());
    command.args(["child", "--grace-ms", "100", "--", "sh", "-c", STUBBORN, &mark]);
    let mut supervised = Marked::start(&mut command, &mark);
    // The supervisor, the command and its child.
    wait_for_marked(&mark, 3);
    send_signal("TERM", supervised.child.id());
    let status = wait_for("the supervisor to end", LIMIT, || supervised.child.try_wait().unwrap());
    assert_eq!(status.code(), Some(128 + 9), "{status}");
    wait_for_marked(&mark, 0);
}

#[test]
fn a_command_ends_when_its_parent_is_killed() {
    let mark = mark("orphan");
    let mut shell = Command::new("sh");
    // Not the last command of the shell, so that the shell stays.
    shell.arg("-c").arg("\"$0\" child --grace-ms 100 -- sh -c \"$1\" \"$2\"; exit 0");
    shell.arg(binary()).args([STUBBORN, &mark]);
    let mut parent = Marked::start(&mut shell, &mark);
    // The shell itself, the supervisor, the command and its child.
    wait_for_marked(&mark, 4);
    parent.child.kill().unwrap();
    parent.child.wait().unwrap();
    wait_for_marked(&mark, 0);
}
