//! A proposal for a failed step is accepted with one key at a terminal: in the inbox, and in a
//! chat.

use crate::heal;
use crate::process::{Server, write};
use crate::rest::{self, Rest};
use crate::terminal::Terminal;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const IN_INBOX: &str = "[t]ake the proposal, ";
const IN_CHAT: &str = "take the proposal? [t]ake [l]ater> ";

/// The kinds of the asks that are open.
fn open_asks(server: &Server) -> Vec<String> {
    let asks = server.json(&["inbox", "ls"]).code(0).json();
    let kind = |ask: &Value| ask["kind"].as_str().unwrap().to_owned();
    asks["items"].as_array().unwrap().iter().map(kind).collect()
}

#[test]
fn one_key_accepts_a_proposal_in_the_inbox() {
    let folder = heal::project("{draft: {}}");
    let server = Server::of_project(folder.path());
    server.run(&["plan", "run", "work/fails", "--session", "s"]).code(3);
    let inbox = ["--server", server.url.as_str(), "inbox"];
    let mut terminal = Terminal::open(folder.path(), &inbox);
    terminal.shows(IN_INBOX, 1);
    let screen = terminal.screen();
    for part in ["proposal correct", "correction drafted/ask_", "Goes on without it."] {
        assert!(screen.contains(part), "no `{part}` in:\n{screen}");
    }
    terminal.types("\u{1b}[200~t\u{1b}[201~\n");
    terminal.shows("a paste does not answer this", 1);
    terminal.shows(IN_INBOX, 2);
    assert_eq!(open_asks(&server), ["fix"], "{}", terminal.screen());
    terminal.types("t\n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("done"), "{shown}");
    assert_eq!(heal::asks(&server, &[]), Vec::<Value>::new());
}

const AGENT: &str = r#"
refName: payer
name: Payer
description: Pays.
llmConfigRef: paying
enabledTools: ["bank.pay"]
"#;

const RULES: &str = r#"
version: 1
about: Pays once.
rules:
  - rule: say what came of it
    when: {after: bank__pay, failed: false}
    say: It is paid now.
  - rule: pay
    when: {said: 'pay'}
    calls:
      - tool: bank__pay
        args: {}
fallback: {say: I can only pay.}
"#;

const AGAIN: &str = "steps:\n  - {id: say, type: final_response, \
                     message: {action: retry, why: nothing was booked}}\n";

/// A project whose agent pays at a bank that hangs up on the first payment. A plan proposes what to
/// do about it.
fn paying(bank: &Rest) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let settings = format!(
        "[models.paying]\nprovider = \"rules\"\nrules = \"rules/paying.yaml\"\n\n\
         [agents]\ndefault = \"payer\"\n\n\
         {}[supervisor]\n\
         on_error = [{{ when = {{ tool = \"bank.*\" }}, plan = \"fixes/again\" }}]\n",
        bank.settings()
    );
    write(
        folder.path(),
        &[
            ("waypost.toml", settings.as_str()),
            ("bank.yaml", rest::DOCUMENT),
            ("agents/payer.yaml", AGENT),
            ("rules/paying.yaml", RULES),
            ("plans/fixes/again.yaml", AGAIN),
        ],
    );
    folder
}

#[test]
fn one_key_accepts_a_proposal_in_a_chat() {
    let payments = Arc::new(AtomicUsize::new(0));
    let made = payments.clone();
    let bank = Rest::start(Arc::new(move |_: &str| match made.fetch_add(1, Ordering::SeqCst) {
        0 => None,
        _ => Some((200, "{}".to_owned())),
    }));
    let folder = paying(&bank);
    let server = Server::of_project(folder.path());
    rest::await_tool(&server, "bank.pay");
    let chat = ["--server", server.url.as_str(), "chat", "--thread", "t"];
    let mut terminal = Terminal::open(folder.path(), &chat);
    terminal.shows("\n> ", 1);
    // What was typed before the card takes nothing.
    terminal.types("pay\nt\n");
    terminal.shows(IN_CHAT, 1);
    let screen = terminal.screen();
    assert!(screen.contains("proposal retry: nothing was booked"), "{screen}");
    assert!(screen.contains("no one knows whether it happened"), "{screen}");
    assert_eq!(open_asks(&server), ["fix"], "{screen}");
    assert_eq!(payments.load(Ordering::SeqCst), 1);
    terminal.types("\u{1b}[200~t\u{1b}[201~\n");
    terminal.shows("a paste does not answer this: type t or l", 1);
    terminal.shows(IN_CHAT, 2);
    terminal.types("l\n");
    terminal.shows("/card shows it again", 1);
    assert_eq!(open_asks(&server), ["fix"], "{}", terminal.screen());
    terminal.types("/card\n");
    terminal.shows(IN_CHAT, 3);
    terminal.types("t\n");
    terminal.shows("It is paid now.", 1);
    assert_eq!(payments.load(Ordering::SeqCst), 2);
    assert_eq!(open_asks(&server), Vec::<String>::new());
    terminal.quit();
}
