//! `waypost chat` at a terminal: only what a person types after they saw a card decides about it.

use crate::process::Server;
use crate::talk;
use crate::terminal::Terminal;
use serde_json::Value;
use std::fs;

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
    assert!(terminal.screen().contains("(what was typed before this is dropped)"));
    // Nothing was left: this is the first answer.
    terminal.types("n\n");
    terminal.shows("why not> ", 1);
    terminal.types("it is not needed\n");
    terminal.shows("\n> ", 2);
    assert_eq!(open_asks(&server), Vec::<String>::new());
    terminal.quit();
    let calendar = fs::read_to_string(data.join("calendar/calendars/primary.ics"));
    assert!(!calendar.is_ok_and(|events| events.contains("Retro")), "the event was created");
}

#[test]
fn a_paste_approves_nothing_and_what_is_typed_then_does() {
    let (folder, server) = talk::served();
    let chat = ["--server", server.url.as_str(), "chat", "--thread", "t"];
    let mut terminal = Terminal::open(folder.path(), &chat);
    terminal.shows("\u{1b}[?2004h", 1);
    terminal.shows("\n> ", 1);
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
