//! `waypost chat` at a terminal: only what a person types after they saw a card decides about it,
//! what is open is not lost, and the chat outlives its server.

use crate::process::{Running, Server, waypost, write};
use crate::talk;
use crate::terminal::Terminal;
use serde_json::Value;
use std::fs;
use std::time::Duration;
use testkit::harness::wait_for;

const CARD: &str = "run it? [y]es [n]o [e]dit [a]ll> ";
const REFUSED: &str = "a paste does not answer this: type y, n, e or a";

/// The kinds of the asks that are open.
fn open_asks(server: &Server) -> Vec<String> {
    let asks = server.json(&["inbox", "ls"]).code(0).json();
    let kind = |ask: &Value| ask["kind"].as_str().unwrap().to_owned();
    asks["items"].as_array().unwrap().iter().map(kind).collect()
}

#[test]
fn lines_that_were_typed_before_the_card_approve_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&["--demo", "--data", data.to_str().unwrap()], &[]);
    let chat = ["--server", server.url.as_str(), "chat", "--thread", "t"];
    let mut terminal = Terminal::open(folder.path(), &chat);
    terminal.shows("\n> ", 1);
    terminal.types("create a meeting called Retro tomorrow at 4pm\nyes\ny\nall\na");
    terminal.shows(CARD, 1);
    assert_eq!(open_asks(&server), ["approve"], "{}", terminal.screen());
    // Nothing was left: this is the first answer.
    terminal.types("n\n");
    terminal.shows("why not> ", 1);
    terminal.types("it is not needed\n");
    terminal.shows("\n> ", 2);
    assert_eq!(open_asks(&server), Vec::<String>::new());
    terminal.quit();
    let calendar = fs::read_to_string(data.join("calendar/calendars/primary.json"));
    assert!(!calendar.is_ok_and(|events| events.contains("Retro")), "the event was created");
}

#[test]
fn a_paste_approves_nothing_and_typing_does() {
    let (folder, server) = talk::served();
    let chat = ["--server", server.url.as_str(), "chat", "--thread", "t"];
    let mut terminal = Terminal::open(folder.path(), &chat);
    terminal.shows("\n> ", 1);
    assert!(terminal.screen().contains("\u{1b}[?2004h"), "it asks for the marks of pastes");
    // Several lines are one request, sent by the Enter after them.
    terminal.types("\u{1b}[200~add 2 and 3\ny\nyes\n\u{1b}[201~\n");
    terminal.shows(CARD, 1);
    assert_eq!(open_asks(&server), ["approve"], "{}", terminal.screen());
    for (times, paste) in ["\u{1b}[200~y\u{1b}[201~\n", "\u{1b}[200~y\nyes\nall\n\u{1b}[201~\n"]
        .into_iter()
        .enumerate()
    {
        terminal.types(paste);
        terminal.shows(REFUSED, times + 1);
        terminal.shows(CARD, times + 2);
        assert_eq!(open_asks(&server), ["approve"], "{}", terminal.screen());
    }
    // Two lines at once are no decision and an answer that nobody waits for.
    terminal.types("what?\ny\n");
    terminal.shows(CARD, 4);
    assert_eq!(open_asks(&server), ["approve"], "{}", terminal.screen());
    terminal.types("y\n");
    terminal.shows("The sum is 5.", 1);
    assert_eq!(open_asks(&server), Vec::<String>::new());
    terminal.quit();
}

#[test]
fn a_thread_that_waits_is_shown_and_can_be_left_for_later() {
    let (folder, server) = talk::served();
    server.run(&["run", "add 2 and 3", "--thread", "t"]).code(3);
    let chat = ["--server", server.url.as_str(), "chat", "--thread", "t"];
    let mut terminal = Terminal::open(folder.path(), &chat);
    terminal.shows("> add 2 and 3", 1);
    terminal.shows(CARD, 1);
    terminal.types("/hsitory\n");
    terminal.shows("did you mean `/history`?", 1);
    terminal.shows(CARD, 2);
    // At the card's own prompt it is shown again, too.
    terminal.types("/card\n");
    terminal.shows("[approve] math::add", 2);
    terminal.shows(CARD, 3);
    terminal.types("/later\n");
    terminal.shows("/card shows it again", 1);
    assert_eq!(open_asks(&server), ["approve"], "{}", terminal.screen());
    terminal.types("/card\n");
    terminal.shows(CARD, 4);
    // Ctrl-C leaves it for later, too.
    terminal.types("\u{3}");
    terminal.shows("/card shows it again", 2);
    terminal.types("/card\n");
    terminal.shows(CARD, 5);
    terminal.types("y\n");
    terminal.shows("The sum is 5.", 1);
    terminal.quit();
}

/// Edits arguments: wrong ones first, then right ones.
const EDITOR: &str = r#"
if [ -e tried ]; then echo '{"a": 40, "b": 5}' > "$1"; else echo '{"a": 1}' > "$1"; fi
touch tried
"#;

#[test]
fn arguments_are_edited_and_asked_for_again() {
    let (folder, server) = talk::served();
    write(folder.path(), &[("edit.sh", EDITOR)]);
    let chat = ["--server", server.url.as_str(), "chat", "--thread", "t"];
    let editor = [("EDITOR", "sh edit.sh"), ("VISUAL", "")];
    let mut terminal = Terminal::open_with(folder.path(), &chat, 100, &editor);
    terminal.shows("\n> ", 1);
    terminal.types("add 2 and 3\n");
    terminal.shows(CARD, 1);
    terminal.types("e\n");
    terminal.shows("error:", 1);
    terminal.shows(CARD, 2);
    assert_eq!(open_asks(&server), ["approve"], "{}", terminal.screen());
    terminal.types("e\n");
    terminal.shows("The sum is 45.", 1);
    terminal.quit();
}

#[test]
fn a_decision_of_someone_else_is_shown_with_its_outcome() {
    let (folder, server) = talk::served();
    let chat = ["--server", server.url.as_str(), "chat", "--thread", "t"];
    let mut terminal = Terminal::open(folder.path(), &chat);
    terminal.shows("\n> ", 1);
    terminal.types("add 2 and 3\n");
    terminal.shows(CARD, 1);
    server.run(&["inbox", "approve", "--last"]).code(0);
    terminal.types("y\n");
    terminal.shows("was decided by `", 1);
    terminal.shows("The sum is 5.", 1);
    terminal.quit();
}

#[test]
fn a_chat_outlives_its_server() {
    let (folder, server) = talk::served();
    let url = server.url.clone();
    let port = server.port().to_owned();
    let chat = ["--server", url.as_str(), "chat", "--thread", "t"];
    let mut terminal = Terminal::open(folder.path(), &chat);
    terminal.shows("\n> ", 1);
    drop(server);
    terminal.types("add 2 and 3\n");
    terminal.shows("no server at", 1);
    terminal.shows("\n> ", 2);
    let _again = Running::start(folder.path(), &["up", "--port", &port], &[]);
    wait_for("the server to be back", Duration::from_secs(120), || {
        (waypost(folder.path(), &["--server", &url, "tool", "ls"]).code == Some(0)).then_some(())
    });
    terminal.types("add 2 and 3\n");
    terminal.shows(CARD, 1);
    terminal.types("y\n");
    terminal.shows("The sum is 5.", 1);
    terminal.quit();
}
