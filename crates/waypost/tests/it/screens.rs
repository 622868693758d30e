//! Screens as a person sees them, most of them compared with those that are kept. `UPDATE_EXPECT=1`
//! writes these anew.

use crate::talk;
use crate::terminal::Terminal;
use std::fs;
use std::path::Path;
use std::time::Duration;
use testkit::harness::wait_for;

const LIMIT: Duration = Duration::from_secs(120);
const SCREENS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/screens");
const CARD: &str = "run it? [y]es [n]o [e]dit [a]ll> ";

/// Compares what is shown with what is kept under this name.
fn compare(name: &str, shown: &str) {
    let path = Path::new(SCREENS).join(name);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::create_dir_all(SCREENS).unwrap();
        fs::write(&path, shown).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{name}: {error}; `UPDATE_EXPECT=1` writes it"));
    assert_eq!(shown, kept, "{name}: `UPDATE_EXPECT=1` writes it anew");
}

/// The same for what a terminal shows now; ports differ from run to run.
fn compare_terminal(name: &str, terminal: &Terminal, url: &str) {
    let lines = terminal.shown().lines();
    let lines = lines.iter().filter(|line| !line.starts_with("using the server at "));
    let text: Vec<String> = lines.map(|line| line.replace(url, "http://127.0.0.1:8420")).collect();
    compare(name, &format!("{}\n", text.join("\n").trim_end()));
}

#[test]
fn a_conversation_matches_its_snapshot() {
    for columns in [60, 100] {
        let (folder, server) = talk::served();
        let chat = ["--server", server.url.as_str(), "chat", "--thread", "t"];
        let variables = [("NO_COLOR", "1"), ("EDITOR", ""), ("VISUAL", "")];
        let mut terminal = Terminal::open_with(folder.path(), &chat, columns, &variables);
        terminal.shows("\n> ", 1);
        terminal.at_prompt().types("/help\r");
        terminal.shows("/decline says", 1);
        terminal
            .at_prompt()
            .types("add 2 and 3, which is not much, and say it in 日本語 if you can\r");
        terminal.shows(CARD, 1);
        terminal.at_prompt().types("n\r");
        terminal.shows("why not> ", 1);
        terminal.at_prompt().types("too little\r");
        terminal.shows("As you like.", 1);
        terminal.at_prompt().types("add 40 and 5\r");
        terminal.shows(CARD, 2);
        terminal.at_prompt().types("y\r");
        terminal.shows("The sum is 45.", 1);
        terminal.shows("\n> ", 4);
        compare_terminal(&format!("chat-{columns}.txt"), &terminal, &server.url);
        terminal.quit();
    }
}

#[test]
fn a_waiting_thread_matches_its_snapshot() {
    let (folder, server) = talk::served();
    server.run(&["run", "add something", "--thread", "t"]).code(3);
    let chat = ["--server", server.url.as_str(), "chat", "--thread", "t"];
    let mut terminal = Terminal::open_with(folder.path(), &chat, 80, &[("NO_COLOR", "1")]);
    terminal.shows("answer> ", 1);
    terminal.at_prompt().types("/later\r");
    terminal.shows("/card shows it again", 1);
    terminal.shows("\n> ", 2);
    compare_terminal("chat-waiting.txt", &terminal, &server.url);
    terminal.quit();
}

#[test]
fn the_banner_of_a_server_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let up = ["up", "--demo", "--port", "0", "--data", "data"];
    let terminal = Terminal::open(folder.path(), &up);
    terminal.shows("waypost listening on ", 1);
    terminal.shows("MCP clients connect to ", 1);
    // What was logged meanwhile comes below.
    let lines = wait_for("what was logged at the start", LIMIT, || {
        let lines = terminal.shown().lines();
        lines.iter().any(|line| line.contains(" serving")).then_some(lines)
    });
    let at = |part: &str| lines.iter().position(|line| line.contains(part)).unwrap();
    let first = at("waypost listening on ");
    let last = at(" mcp snippet ");
    assert!(first < at("try this") && last < at(" serving"), "{lines:#?}");
    let banner = &lines[first..=last];
    assert!(!banner.iter().any(|line| line.contains(" INFO ")), "{banner:#?}");
}
