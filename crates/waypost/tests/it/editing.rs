//! The line editor of `waypost chat` at a terminal: keys move and change what is typed, what was
//! said before comes back, and the conversation outlives Ctrl-C, a resize and its server.

use crate::process::{Running, Server, write};
use crate::talk;
use crate::terminal::Terminal;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use testkit::harness::wait_for;

const CARD: &str = "run it? [y]es [n]o [e]dit [a]ll> ";
const LEFT: &str = "\u{1b}[D";
const UP: &str = "\u{1b}[A";
const BACKSPACE: &str = "\u{7f}";
const ALT_ENTER: &str = "\u{1b}\r";
const CTRL_A: &str = "\u{1}";
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";
const CTRL_R: &str = "\u{12}";
const LIMIT: Duration = Duration::from_secs(120);
/// No person has an editor of their own in these tests.
const NO_EDITOR: [(&str, &str); 2] = [("EDITOR", ""), ("VISUAL", "")];

/// A chat in this thread that shows its prompt.
fn chat(folder: &Path, server: &Server, thread: &str) -> Terminal {
    let words = ["--server", server.url.as_str(), "chat", "--thread", thread];
    let terminal = Terminal::open_with(folder, &words, 100, &NO_EDITOR);
    terminal.shows("\n> ", 1);
    terminal
}

#[test]
fn keys_change_what_is_typed() {
    let (folder, server) = talk::served();
    let mut terminal = chat(folder.path(), &server, "t");
    terminal.at_prompt().types("dd 20 and 3");
    terminal.at_prompt().types(&LEFT.repeat(" and 3".len()));
    terminal.at_prompt().types(&format!("{BACKSPACE}{CTRL_A}a\r"));
    terminal.shows("\n> add 2 and 3\n", 1);
    terminal.shows(CARD, 1);
    terminal.at_prompt().types("y\r");
    terminal.shows("The sum is 5.", 1);
    let shown = terminal.shown().text();
    assert!(!shown.contains("^["), "no key is taken for text:\n{shown}");
    terminal.quit();
}

#[test]
fn several_lines_are_one_request() {
    let (folder, server) = talk::served();
    let mut terminal = chat(folder.path(), &server, "t");
    terminal.at_prompt().types(&format!("be so kind{ALT_ENTER}and add 2 and 3\r"));
    terminal.shows("\n> be so kind\nand add 2 and 3\n", 1);
    terminal.shows(CARD, 1);
    terminal.at_prompt().types("y\r");
    terminal.shows("The sum is 5.", 1);
    terminal.at_prompt().types("once more\\\r");
    terminal.at_prompt().types("add 4 and 5\r");
    terminal.shows(CARD, 2);
    terminal.at_prompt().types("y\r");
    terminal.shows("The sum is 9.", 1);
    terminal.quit();
}

#[test]
fn the_history_is_recalled_and_searched() {
    let (folder, server) = talk::served();
    let mut terminal = chat(folder.path(), &server, "one");
    terminal.at_prompt().types("what is this?\r");
    terminal.shows("I can only add.", 1);
    terminal.at_prompt().types("who are you?\r");
    terminal.shows("I can only add.", 2);
    terminal.quit();
    let kept = folder.path().join("state/waypost/chat_history");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "what is this?\nwho are you?\n");
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);

    let mut terminal = chat(folder.path(), &server, "two");
    terminal.at_prompt().types(&format!("{UP}{UP}\r"));
    terminal.shows("\n> what is this?\n", 1);
    terminal.shows("I can only add.", 1);
    terminal.at_prompt().types(&format!("{CTRL_R}who"));
    terminal.shows("(reverse-i-search)`who': who are you?", 1);
    terminal.at_prompt().types("\r");
    terminal.shows("\n> who are you?\n", 1);
    terminal.shows("I can only add.", 2);
    terminal.quit();
}

#[test]
fn commands_and_agents_are_completed() {
    let (folder, server) = talk::served();
    let mut terminal = chat(folder.path(), &server, "t");
    terminal.at_prompt().types("/ag\t ad\t\r");
    terminal.shows("\n> /agent adder\n", 1);
    terminal.shows("(you talk to `adder` from now on)", 1);
    terminal.at_prompt().types("/agent addre\r");
    terminal.shows("did you mean `adder`?", 1);
    terminal.at_prompt().types("/agent\r");
    terminal.shows("\nadder\n", 1);
    terminal.quit();
}

#[test]
fn edited_arguments_start_from_the_present_ones() {
    let (folder, server) = talk::served();
    let mut terminal = chat(folder.path(), &server, "t");
    terminal.at_prompt().types("add 2 and 3\r");
    terminal.shows(CARD, 1);
    terminal.at_prompt().types("e\r");
    terminal.shows("arguments, JSON or @file> {\"a\":2,\"b\":3}", 1);
    // Not JSON: it is asked for again, and nothing that was typed is lost.
    terminal.at_prompt().types(&format!("{BACKSPACE}0\r"));
    terminal.shows("is not JSON", 1);
    terminal.shows("arguments, JSON or @file> {\"a\":2,\"b\":30\n", 2);
    terminal.at_prompt().types("}\r");
    terminal.shows("The sum is 32.", 1);
    terminal.quit();
}

#[test]
fn ctrl_c_drops_a_line_and_ctrl_d_leaves() {
    let (folder, server) = talk::served();
    let mut terminal = chat(folder.path(), &server, "t");
    terminal.at_prompt().types(&format!("half a line{CTRL_C}"));
    terminal.shows("(/quit or Ctrl-D leaves)", 1);
    terminal.shows("\n> ", 2);
    terminal.at_prompt().types("what is this?\r");
    terminal.shows("I can only add.", 1);
    terminal.shows("\n> ", 3);
    terminal.at_prompt().types(CTRL_D);
    let (code, written) = terminal.ends();
    assert_eq!(code, Some(0), "{written}");
    assert!(written.ends_with('\n'), "the shell's prompt begins a line: {written:?}");
}

#[test]
fn a_signal_that_ends_a_command_leaves_the_terminal_as_it_was() {
    let (folder, server) = talk::served();
    // While a line is edited, and while the answer to a card may come from elsewhere.
    for thread in ["line", "card"] {
        let mut terminal = chat(folder.path(), &server, thread);
        if thread == "card" {
            terminal.at_prompt().types("add 2 and 3\r");
            terminal.shows(CARD, 1);
        }
        assert!(!terminal.at_prompt().takes_lines(), "{thread}");
        assert_eq!(terminal.ended_by("TERM"), Some(143), "{thread}: {}", terminal.screen());
        assert!(terminal.takes_lines(), "{thread}");
    }
    let inbox = ["--server", server.url.as_str(), "inbox"];
    let mut terminal = Terminal::open_with(folder.path(), &inbox, 100, &NO_EDITOR);
    assert!(!terminal.at_prompt().takes_lines());
    assert_eq!(terminal.ended_by("INT"), Some(130), "{}", terminal.screen());
    assert!(terminal.takes_lines());
}

#[test]
fn a_line_fits_a_terminal_that_is_resized() {
    let (folder, server) = talk::served();
    let mut terminal = chat(folder.path(), &server, "t");
    let line = "please tell me, and take your time, what it is when you add 2 and 3";
    terminal.at_prompt().types(line);
    terminal.shows(line, 1);
    let before = terminal.screen().len();
    terminal.resize(40);
    wait_for("the line to be drawn anew", LIMIT, || {
        let screen = terminal.screen();
        let drawn = screen.get(before..).unwrap_or_default();
        drawn.contains(&line[line.len() - 20..]).then_some(())
    });
    terminal.at_prompt().types("?\r");
    terminal.shows(CARD, 1);
    let lines = terminal.shown().lines();
    let head = format!("> {}", &line[..38]);
    let tail = format!("{}?", &line[38..]);
    let place = lines.iter().position(|row| *row == head.trim_end());
    assert_eq!(place.and_then(|row| lines.get(row + 1)), Some(&tail), "{lines:#?}");
    terminal.at_prompt().types("y\r");
    terminal.shows("The sum is 5.", 1);
    terminal.quit();
}

const FETCHING: &str = r#"
refName: fetcher
name: Fetcher
description: Fetches a page.
llmConfigRef: fetching
enabledTools: ["http::request"]
"#;

/// A project whose agent fetches a page here.
fn fetching(folder: &Path, page: &str) {
    let settings = format!(
        "[tools.http]\nallow = [\"{page}\"]\n\n\
         [models.fetching]\nprovider = \"rules\"\nrules = \"rules/fetching.yaml\"\n\n\
         [agents]\ndefault = \"fetcher\"\n"
    );
    let rules = format!(
        "version: 1\nabout: Fetches once.\nrules:\n  \
         - rule: say what came of it\n    when: {{after: http__request, failed: false}}\n    \
         say: It is fetched now.\n  \
         - rule: fetch\n    when: {{said: 'fetch'}}\n    calls:\n      \
         - tool: http__request\n        args: {{method: GET, url: 'http://{page}/'}}\n\
         fallback: {{say: I can only fetch.}}\n"
    );
    write(
        folder,
        &[
            ("waypost.toml", settings.as_str()),
            ("agents/fetcher.yaml", FETCHING),
            ("rules/fetching.yaml", rules.as_str()),
        ],
    );
}

/// A page that never answers the first request for it: a server is killed while it waits for that.
/// Where it is, and how often it was asked for. Its thread ends with the process.
fn slow_page() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let page = listener.local_addr().unwrap().to_string();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    thread::spawn(move || {
        let mut unanswered = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            if counted.fetch_add(1, Ordering::SeqCst) == 0 {
                unanswered.push(stream);
                continue;
            }
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
        }
    });
    (page, asked)
}

/// Waits until the page was asked for once.
fn until_asked(asked: &AtomicUsize) {
    wait_for("the page to be asked for", LIMIT, || {
        (asked.load(Ordering::SeqCst) == 1).then_some(())
    });
}

#[test]
fn a_conversation_outlives_its_server() {
    let (page, asked) = slow_page();
    let folder = tempfile::tempdir().unwrap();
    fetching(folder.path(), &page);
    let server = Server::of_project(folder.path());
    let port = server.port().to_owned();
    let mut terminal = chat(folder.path(), &server, "t");
    terminal.at_prompt().types("fetch\r");
    until_asked(&asked);
    // The chat follows the run by now.
    terminal.shows("- http::request", 1);
    drop(server);
    terminal.shows("waiting for the server, Ctrl-C stops", 1);
    let _again = Running::start(folder.path(), &["up", "--port", &port], &[]);
    terminal.shows("(the server is back)", 1);
    terminal.shows("It is fetched now.", 1);
    terminal.shows("\n> ", 2);
    terminal.quit();
}

/// Stands in for a server that dies before it answers what is said: it hands that over and closes
/// everything. What a chat asks before is answered.
fn dies_when_spoken_to(
    listener: TcpListener,
    hand_over: impl FnOnce(&str) + Send + 'static,
) -> JoinHandle<()> {
    thread::spawn(move || {
        loop {
            let (mut stream, _) = listener.accept().unwrap();
            let request = whole_request(&mut stream);
            if request.starts_with("POST /run ") {
                hand_over(&request);
                // Before the connection: no one may reach this port once the chat has lost that.
                drop(listener);
                return;
            }
            let body = r#"{"status":"ready","items":[],"nextCursor":null}"#;
            let length = body.len();
            let head = format!("content-length: {length}\r\nconnection: close");
            write!(stream, "HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}").unwrap();
        }
    })
}

/// A request with all of its body.
fn whole_request(stream: &mut TcpStream) -> String {
    let mut bytes: Vec<u8> = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            if body.len() >= length {
                return text;
            }
        }
        let count = stream.read(&mut chunk).unwrap();
        assert!(count > 0, "half a request: {text}");
        bytes.extend_from_slice(&chunk[..count]);
    }
}

/// Sends a request to a server, and waits until that begins to answer.
fn passed_on(request: &str, server: &str) {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer: Vec<u8> = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        answer.extend(byte);
    }
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn a_request_lost_with_its_server_is_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    fetching(folder.path(), "127.0.0.1:1");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let url = format!("http://127.0.0.1:{port}");
    let dies = dies_when_spoken_to(listener, |_| {});
    let words = ["--server", url.as_str(), "chat"];
    let mut terminal = Terminal::open_with(folder.path(), &words, 100, &NO_EDITOR);
    terminal.at_prompt().types("hello\r");
    terminal.shows("waiting for the server, Ctrl-C stops", 1);
    dies.join().unwrap();
    let _server = Running::start(folder.path(), &["up", "--port", &port], &[]);
    terminal.shows("(the server is back)", 1);
    terminal.shows("I can only fetch.", 1);
    terminal.quit();
}

#[test]
fn a_request_recorded_before_a_crash_runs_once() {
    let (page, asked) = slow_page();
    let folder = tempfile::tempdir().unwrap();
    fetching(folder.path(), &page);
    let server = Server::of_project(folder.path());
    let behind = format!("127.0.0.1:{}", server.port());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let front = format!("127.0.0.1:{port}");
    let url = format!("http://127.0.0.1:{port}");
    let dies = dies_when_spoken_to(listener, move |request| {
        passed_on(&request.replace(&front, &behind), &behind);
    });
    let words = ["--server", url.as_str(), "chat"];
    let mut terminal = Terminal::open_with(folder.path(), &words, 100, &NO_EDITOR);
    terminal.at_prompt().types("fetch\r");
    terminal.shows("waiting for the server, Ctrl-C stops", 1);
    dies.join().unwrap();
    until_asked(&asked);
    drop(server);
    let _again = Running::start(folder.path(), &["up", "--port", &port], &[]);
    terminal.shows("(the server is back)", 1);
    terminal.shows("It is fetched now.", 1);
    assert_eq!(asked.load(Ordering::SeqCst), 2, "by one run, before and after the restart");
    terminal.quit();
}
