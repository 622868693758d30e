//! Tables at a terminal: they fit it, count their rows and say why they are empty. In a pipe all of
//! it is written out, without colours.

use crate::process::Server;
use crate::terminal::Terminal;
use unicode_width::UnicodeWidthStr;

/// The client's own name of a session, in letters of two columns each.
const KEY: &str = "田中さんとの長い会話のための名前";

/// A server where a run of that session waits.
fn waiting() -> Server {
    let server = Server::demo();
    server.run(&["plan", "run", "interaction::greeting", "--session", KEY]).code(3);
    server
}

/// What a command shows at a terminal of so many columns.
fn shown(server: &Server, words: &[&str], columns: u16, variables: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [&["--server", server.url.as_str()][..], words].concat();
    let terminal = Terminal::open_with(folder.path(), &arguments, columns, variables);
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    let lines = shown.lines().map(str::trim_end);
    let lines = lines.filter(|line| !line.starts_with("using the server at "));
    lines.collect::<Vec<_>>().join("\n")
}

const PLAIN: &[(&str, &str)] = &[("NO_COLOR", "1")];

#[test]
fn lists_fit_the_terminal() {
    let server = waiting();
    for columns in [60, 80, 140] {
        for (words, noun) in [(["inbox", "ls"], "1 open ask"), (["session", "ls"], "1 session")] {
            let text = shown(&server, &words, columns, PLAIN);
            let lines: Vec<&str> = text.lines().collect();
            let fits = lines.iter().all(|line| line.width() <= usize::from(columns));
            assert!(fits, "{columns} columns:\n{text}");
            assert_eq!(lines.len(), 3, "{columns} columns:\n{text}");
            assert_eq!(lines[2], noun, "{text}");
            assert!(lines[1].contains("田中"), "{columns} columns:\n{text}");
            assert!(lines[1].contains(" ago") || lines[1].contains(" now"), "{text}");
            assert!(!text.contains('\u{1b}'), "NO_COLOR holds: {text:?}");
        }
    }
}

#[test]
fn only_terminals_get_colour_and_pipes_get_every_column() {
    let server = waiting();
    let coloured = shown(&server, &["session", "ls"], 140, &[]);
    assert!(coloured.contains("\u{1b}[33mwaiting\u{1b}[0m"), "{coloured:?}");
    let dumb = shown(&server, &["session", "ls"], 140, &[("TERM", "dumb")]);
    assert!(!dumb.contains('\u{1b}'), "{dumb:?}");

    let piped = server.run(&["session", "ls"]).code(0);
    let listed = server.json(&["session", "ls"]).code(0).json();
    let session = &listed["items"][0];
    for member in ["id", "updatedAt", "key"] {
        let text = session[member].as_str().unwrap();
        assert!(piped.stdout.contains(text), "no `{text}` in {piped:#?}");
    }
    assert!(!piped.stdout.contains('\u{1b}'), "{piped:#?}");
    assert!(!piped.stderr.contains("1 session"), "{piped:#?}");
}

#[test]
fn an_empty_list_says_why() {
    let server = Server::demo();
    let text = shown(&server, &["inbox", "ls"], 80, PLAIN);
    assert_eq!(text, "no asks are open: no run waits for a person");
    let text = shown(&server, &["session", "ls"], 140, PLAIN);
    assert!(text.starts_with("no sessions match: "), "{text}");
}
