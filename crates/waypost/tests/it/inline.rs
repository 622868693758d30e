//! Asks that are answered at a terminal: `waypost inbox` walks through them, `waypost plan run`
//! asks at once. A script gets the list and exit code 3.

use crate::process::Server;
use crate::talk;
use crate::terminal::Terminal;

const CHOICE: &str = "[a]pprove [r]eject [s]kip [q]uit> ";

fn at<'a>(server: &'a Server, words: &[&'a str]) -> Vec<&'a str> {
    [&["--server", server.url.as_str()][..], words].concat()
}

fn open_asks(server: &Server) -> usize {
    let asks = server.json(&["inbox", "ls"]).code(0).json();
    asks["items"].as_array().unwrap().len()
}

#[test]
fn a_plan_asks_at_the_terminal() {
    let server = Server::demo();
    let folder = tempfile::tempdir().unwrap();
    let run = at(&server, &["plan", "run", "interaction::greeting"]);
    let mut terminal = Terminal::open(folder.path(), &run);
    terminal.shows("name (string)> ", 1);
    terminal.types("\n");
    terminal.shows("name (string)> ", 2);
    terminal.types("Ada\n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("Hello, Ada!"), "{shown}");

    let mut terminal = Terminal::open(folder.path(), &run);
    terminal.shows("name (string)> ", 1);
    terminal.types("/skip\n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(3), "{shown}");
    assert!(shown.contains("waits for a person"), "{shown}");
    assert_eq!(open_asks(&server), 1);
    server.run(&["plan", "run", "interaction::greeting"]).code(3).says("waits for a person");
}

#[test]
fn the_inbox_is_walked_through() {
    let (folder, server) = talk::served();
    for (thread, request) in [("a", "add 2 and 3"), ("b", "add 4 and 5"), ("c", "add something")] {
        server.run(&["run", request, "--thread", thread]).code(3);
    }
    let mut terminal = Terminal::open(folder.path(), &at(&server, &["inbox"]));
    // What was typed before the card, or is pasted, decides nothing.
    terminal.shows(CHOICE, 1);
    terminal.types("\u{1b}[200~approve\u{1b}[201~\n");
    terminal.shows(CHOICE, 2);
    assert_eq!(open_asks(&server), 3, "{}", terminal.screen());
    terminal.types("perhaps\n");
    terminal.shows(CHOICE, 3);
    terminal.types("a\n");
    terminal.shows("The sum is 5.", 1);
    terminal.shows(CHOICE, 4);
    terminal.types("r\n");
    terminal.shows("why not> ", 1);
    terminal.types("too much\n");
    terminal.shows("As you like.", 1);
    terminal.shows("answer> ", 1);
    terminal.types("/skip\n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("3 asks to go") && shown.contains("1 ask left for later"), "{shown}");
    assert_eq!(open_asks(&server), 1);

    let listed = server.run(&["inbox"]).code(0);
    assert!(listed.stdout.starts_with("ASK ") && listed.stdout.contains("clarify"), "{listed:#?}");
}

#[test]
fn an_ask_that_someone_else_answers_is_told() {
    let (folder, server) = talk::served();
    server.run(&["run", "add 2 and 3", "--thread", "a"]).code(3);
    let mut terminal = Terminal::open(folder.path(), &at(&server, &["inbox"]));
    terminal.shows(CHOICE, 1);
    server.run(&["inbox", "approve", "--last"]).code(0);
    terminal.types("a\n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("was decided by"), "{shown}");
    assert!(shown.contains("no asks are open"), "{shown}");
}
