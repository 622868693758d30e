//! `waypost chat` at a terminal: only what a person types after they saw a card decides about it.

use crate::process::{Server, command};
use crate::talk;
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use testkit::harness::wait_for;

const LIMIT: Duration = Duration::from_secs(120);
const CARD: &str = "run it? [y]es [n]o [e]dit [a]ll> ";
const REFUSED: &str = "a paste does not answer this: type y, n, e or a";

/// A chat at a terminal of its own; killed when dropped.
struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    /// Starts `waypost` with a terminal as its standard input, output and error.
    fn open(folder: &Path, arguments: &[&str]) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        // It must not become the terminal of the test itself.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let line = || open(name.as_str(), flags, Mode::empty()).unwrap();
        let child = command(folder, arguments)
            .env("TERM", "xterm")
            .env("XDG_STATE_HOME", folder.join("state"))
            .stdin(line())
            .stdout(line())
            .stderr(line())
            .spawn()
            .unwrap();
        let keyboard = File::from(master);
        let mut output = keyboard.try_clone().unwrap();
        let screen = Arc::new(Mutex::new(Vec::new()));
        let shown = screen.clone();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // It fails once the other side is closed.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shown.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Self { child, keyboard, screen }
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().unwrap()).into_owned()
    }

    fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this was shown so often.
    fn shows(&self, text: &str, times: usize) {
        let what = format!("`{text}`, {times} times, on the screen");
        wait_for(&what, LIMIT, || {
            let screen = self.screen();
            assert!(screen.matches(text).count() <= times, "too often `{text}`:\n{screen}");
            (screen.matches(text).count() == times).then_some(())
        });
    }

    /// Leaves the chat.
    fn quit(mut self) {
        self.types("/quit\n");
        let status = wait_for("the chat to end", LIMIT, || self.child.try_wait().unwrap());
        let screen = self.screen();
        assert!(status.success(), "{status}:\n{screen}");
        wait_for("the terminal to be left as it was", LIMIT, || {
            let screen = self.screen();
            (screen.rfind("\u{1b}[?2004l") > screen.rfind("\u{1b}[?2004h")).then_some(())
        });
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Both fail only when the process is gone already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

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
