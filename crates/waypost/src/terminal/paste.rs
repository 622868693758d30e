//! Bracketed paste: on request a terminal marks what is pasted, so that it is not taken for typing.

use std::io::{self, IsTerminal, Write};

const BEGIN: &str = "\u{1b}[200~";
const END: &str = "\u{1b}[201~";
pub(super) const MARKS_ON: &str = "\u{1b}[?2004h";
pub(super) const MARKS_OFF: &str = "\u{1b}[?2004l";

/// What a person gave as one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypedText {
    /// The text, without marks.
    pub(crate) text: String,
    /// Whether any of it was pasted.
    pub(crate) is_pasted: bool,
}

impl TypedText {
    /// A line that was typed.
    pub(crate) fn by_hand(text: String) -> Self {
        Self { text, is_pasted: false }
    }
}

/// What came next.
#[derive(Debug)]
pub(crate) enum TerminalInput {
    Line(TypedText),
    /// Ctrl-C.
    Interrupt,
    /// Nothing more comes.
    End,
}

/// Puts the lines of one paste together.
#[derive(Debug, Default)]
pub(crate) struct Paste {
    /// The lines of a paste whose end has not come yet.
    lines: Vec<String>,
}

impl Paste {
    /// Takes the next line; none while the end of a paste is missing.
    pub(crate) fn take(&mut self, line: &str) -> Option<TypedText> {
        let begin = line.rfind(BEGIN);
        let end = line.rfind(END);
        let is_pasted = !self.lines.is_empty() || begin.is_some() || end.is_some();
        if !is_pasted {
            return Some(TypedText::by_hand(line.to_owned()));
        }
        self.lines.push(line.replace(BEGIN, "").replace(END, ""));
        // Whichever mark comes last decides; a line without one is in the middle of a paste.
        if end < begin || end.is_none() {
            return None;
        }
        let text = std::mem::take(&mut self.lines).join("\n");
        Some(TypedText { text, is_pasted })
    }
}

/// The terminal marks pastes for as long as this lives.
pub(crate) struct PasteMode;

impl PasteMode {
    /// Asks the terminal for marks, where there is one that can be asked.
    pub(crate) fn begin() -> Option<Self> {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if !cfg!(unix) || dumb || !io::stderr().is_terminal() {
            return None;
        }
        // From here on Ctrl-C does not end this process before it has turned the marks off.
        #[cfg(unix)]
        let _ = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()).ok()?;
        send(MARKS_ON);
        Some(Self)
    }

    /// Asks again: another program may have turned the marks off.
    pub(crate) fn renew(&self) {
        send(MARKS_ON);
    }
}

impl Drop for PasteMode {
    fn drop(&mut self) {
        send(MARKS_OFF);
    }
}

/// Sends a request to the terminal; one that is gone does not need it.
fn send(request: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(request.as_bytes()).and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(lines: &[&str]) -> Vec<Option<TypedText>> {
        let mut paste = Paste::default();
        lines.iter().map(|line| paste.take(line)).collect()
    }

    fn pasted(text: &str) -> Option<TypedText> {
        Some(TypedText { text: text.to_owned(), is_pasted: true })
    }

    #[test]
    fn typed_lines_are_passed_on_unchanged() {
        let typed = |text: &str| Some(TypedText::by_hand(text.to_owned()));
        assert_eq!(taken(&["y", "", "[200~"]), [typed("y"), typed(""), typed("[200~")]);
    }

    #[test]
    fn the_lines_of_a_paste_are_one_answer() {
        let lines = ["\u{1b}[200~create it", "yes", "\u{1b}[201~", "y"];
        let expected =
            [None, None, pasted("create it\nyes\n"), Some(TypedText::by_hand("y".to_owned()))];
        assert_eq!(taken(&lines), expected);
        let one = "please \u{1b}[200~run it\u{1b}[201~ now";
        assert_eq!(taken(&[one]), [pasted("please run it now")]);
    }

    #[test]
    fn a_mark_inside_a_paste_does_not_end_it() {
        // A terminal that leaves marks in what is pasted cannot say where the paste ends.
        let lines = ["\u{1b}[200~a\u{1b}[201~\u{1b}[200~b", "y\u{1b}[201~"];
        assert_eq!(taken(&lines), [None, pasted("ab\ny")]);
        assert_eq!(taken(&["\u{1b}[201~y"]), [pasted("y")], "the begin was dropped");
    }
}
