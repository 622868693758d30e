//! The line editor of conversations and answers: history with search, several lines, completion. It
//! distinguishes pasted from typed text.

use crate::terminal::keys::give_back_when_terminated;
use crate::terminal::paste::{TerminalInput, TypedText};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event, EventContext,
    EventHandler, Helper, KeyCode, KeyEvent, Modifiers, RepeatCount,
};
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Terminals that can only pass lines on.
const PLAIN_TERMINALS: [&str; 3] = ["dumb", "cons25", "emacs"];

/// What can be completed: commands, and the names that one of them takes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Words {
    /// The commands; each begins with a slash.
    pub(crate) commands: &'static [&'static str],
    /// The command that takes a name.
    pub(crate) naming: &'static str,
    /// The names that it can take.
    pub(crate) names: Vec<String>,
}

impl Words {
    /// Where the last word before the cursor begins, and what it can become.
    fn fitting(&self, before: &str) -> (usize, Vec<String>) {
        let name = before.strip_prefix(self.naming).and_then(|rest| rest.strip_prefix(' '));
        if let Some(name) = name.filter(|_| !self.naming.is_empty()) {
            let names = self.names.iter().filter(|known| known.starts_with(name)).cloned();
            return (before.len() - name.len(), names.collect());
        }
        if !before.starts_with('/') || before.contains(char::is_whitespace) {
            return (before.len(), Vec::new());
        }
        let commands = self.commands.iter().filter(|known| known.starts_with(before));
        (0, commands.map(|command| (*command).to_owned()).collect())
    }
}

impl Completer for Words {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        cursor: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.fitting(line.get(..cursor).unwrap_or(line)))
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}

impl Validator for Words {
    /// A line continues after a backslash at its end.
    fn validate(&self, typed: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let is_open = typed.input().ends_with('\\');
        Ok(if is_open { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Helper for Words {}

/// Notes that a paste begins; the editor inserts it as it always does.
struct NotesPastes(Arc<AtomicBool>);

impl ConditionalEventHandler for NotesPastes {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext<'_>) -> Option<Cmd> {
        self.0.store(true, Ordering::Relaxed);
        None
    }
}

/// A line editor at the terminal of standard input and output.
pub(crate) struct LineEditor {
    editor: Editor<Words, MemHistory>,
    /// Whether any of the present line was pasted.
    has_paste: Arc<AtomicBool>,
}

impl LineEditor {
    /// An editor that completes these words; none where there is no terminal that can have one.
    pub(crate) fn open(words: Words, kept_max: usize) -> Option<Self> {
        let is_plain =
            std::env::var("TERM").is_ok_and(|term| PLAIN_TERMINALS.contains(&term.as_str()));
        let is_unset = cfg!(unix) && std::env::var_os("TERM").is_none();
        if is_plain || is_unset || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return None;
        }
        // From here on Ctrl-C does not end this process between two lines.
        #[cfg(unix)]
        let _ = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()).ok()?;
        let kept = Config::builder().max_history_size(kept_max).ok()?.build();
        let has_paste = Arc::new(AtomicBool::new(false));
        let editor = editor(words, MemHistory::with_config(&kept), &has_paste).ok()?;
        give_back_when_terminated();
        Some(Self { editor, has_paste })
    }

    /// The next line, with this text to begin with. The thread waits for it.
    pub(crate) fn read(&mut self, prompt: &str, initial: &str) -> io::Result<TerminalInput> {
        self.has_paste.store(false, Ordering::Relaxed);
        match self.editor.readline_with_initial(prompt, (initial, "")) {
            Ok(text) => {
                let is_pasted = self.has_paste.load(Ordering::Relaxed);
                // The backslash only said that the line continues.
                Ok(TerminalInput::Line(TypedText { text: text.replace("\\\n", "\n"), is_pasted }))
            }
            Err(ReadlineError::Interrupted) => Ok(TerminalInput::Interrupt),
            Err(ReadlineError::Eof) => Ok(TerminalInput::End),
            // Keys that are no text say nothing.
            Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                Ok(TerminalInput::Line(TypedText::by_hand(String::new())))
            }
            Err(error) => Err(io::Error::other(error.to_string())),
        }
    }

    /// Drops what was read beyond the last line. The editor has no call for it: a new one takes
    /// over the history.
    pub(crate) fn drop_read_ahead(&mut self) -> io::Result<()> {
        let history = std::mem::replace(self.editor.history_mut(), MemHistory::new());
        let words = self.editor.helper().cloned().unwrap_or_default();
        let fresh = editor(words, history, &self.has_paste);
        self.editor = fresh.map_err(|error| io::Error::other(error.to_string()))?;
        Ok(())
    }

    /// Has a line that arrows and searches find.
    pub(crate) fn remember(&mut self, line: &str) {
        // It is in memory: this fails for no line.
        let _ = self.editor.add_history_entry(line);
    }
}

fn editor(
    words: Words,
    history: MemHistory,
    has_paste: &Arc<AtomicBool>,
) -> rustyline::Result<Editor<Words, MemHistory>> {
    let config = Config::builder().completion_type(CompletionType::List).build();
    let mut editor = Editor::with_history(config, history)?;
    editor.set_helper(Some(words));
    let notes = EventHandler::Conditional(Box::new(NotesPastes(has_paste.clone())));
    editor.bind_sequence(KeyEvent(KeyCode::BracketedPasteStart, Modifiers::NONE), notes);
    editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
    Ok(editor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_the_names_behind_one_are_completed() {
        let words = Words {
            commands: &["/agent", "/card", "/help"],
            naming: "/agent",
            names: vec!["desk".to_owned(), "driver".to_owned()],
        };
        let fitting = |before: &str| {
            let (begin, found) = words.fitting(before);
            (begin, found.join(" "))
        };
        assert_eq!(fitting("/"), (0, "/agent /card /help".to_owned()));
        assert_eq!(fitting("/c"), (0, "/card".to_owned()));
        assert_eq!(fitting("/agent "), (7, "desk driver".to_owned()));
        assert_eq!(fitting("/agent dr"), (7, "driver".to_owned()));
        for nothing in ["", "what is /c", "/what is", "/agents d"] {
            assert_eq!(fitting(nothing), (nothing.len(), String::new()), "{nothing}");
        }
        assert_eq!(Words::default().fitting(" x"), (2, Vec::new()));
    }
}
