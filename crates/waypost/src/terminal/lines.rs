//! Reads lines that a person types, with a history. Pasted text is distinguished from typed text,
//! and what was typed before a question was shown does not answer it. Uses a line editor where
//! there is a terminal for it.

use crate::environment::locations::state_folder;
use crate::exit::{Exit, Failure, Result};
use crate::terminal::editor::{LineEditor, Words};
use crate::terminal::keys::{Keys, LentTerminal, flush, waiting};
use crate::terminal::paste::{Paste, PasteMode, TerminalInput, TypedText};
use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Stdin};

/// How many lines of the past are kept.
const KEPT_MAX: usize = 1_000;
const FILE: &str = "chat_history";
/// A paste that is under way brings its next line sooner than this.
const QUIET: Duration = Duration::from_millis(100);

/// Standard input, line by line.
pub(crate) struct Lines {
    typed: tokio::io::Lines<BufReader<Stdin>>,
    /// Whether a person sits there; else it is a program that has written all of it.
    pub(crate) is_person: bool,
    /// What Ctrl-C says instead of ending the command; an editor hears it as a key.
    leaves: Option<&'static str>,
    past: Vec<String>,
    file: Option<PathBuf>,
    mode: Option<PasteMode>,
    /// Reads instead of all that, where there is one; a thread has it while it waits for a line.
    editor: Option<Box<LineEditor>>,
    /// Whether all that was typed up to now was dropped: the editor has read nothing ahead.
    is_dropped: bool,
}

impl Lines {
    /// Reads what comes from now on, for a conversation: a person's lines are remembered, these
    /// words are completed, and Ctrl-C only says how to leave.
    pub(crate) fn of_conversation(words: Words) -> Self {
        let is_person = io::stdin().is_terminal();
        let file = is_person.then(state_folder).flatten().map(|folder| folder.join(FILE));
        let past = file.as_ref().and_then(|file| fs::read_to_string(file).ok());
        let past: Vec<String> =
            past.map(|text| text.lines().map(str::to_owned).collect()).unwrap_or_default();
        let mut editor = LineEditor::open(words, KEPT_MAX).map(Box::new);
        if let Some(editor) = &mut editor {
            past.iter().for_each(|line| editor.remember(line));
        }
        let leaves = Some("(/quit or Ctrl-D leaves)");
        Self { past, file, leaves, ..Self::open(is_person, editor) }
    }

    /// Reads what comes from now on, for answers: nothing is remembered, these words are completed,
    /// and Ctrl-C ends the command.
    pub(crate) fn of_answers(words: Words) -> Self {
        let editor = LineEditor::open(words, KEPT_MAX).map(Box::new);
        Self::open(io::stdin().is_terminal(), editor)
    }

    fn open(is_person: bool, editor: Option<Box<LineEditor>>) -> Self {
        let typed = BufReader::new(tokio::io::stdin()).lines();
        // An editor asks the terminal for marks itself.
        let mode = (is_person && editor.is_none()).then(PasteMode::begin).flatten();
        let leaves = None;
        let past = Vec::new();
        let file = None;
        Self { typed, is_person, leaves, past, file, mode, editor, is_dropped: false }
    }

    /// The next line; none at the end. A person is shown what is asked for, and Ctrl-C says how to
    /// leave, or ends the command.
    pub(crate) async fn ask(&mut self, prompt: &str) -> Result<Option<TypedText>> {
        self.ask_from(prompt, "").await
    }

    /// The same, where an editor begins with the text `initial`.
    pub(crate) async fn ask_from(
        &mut self,
        prompt: &str,
        initial: &str,
    ) -> Result<Option<TypedText>> {
        loop {
            match (self.hear(prompt, initial).await?, self.leaves) {
                (TerminalInput::Line(typed), _) => return Ok(Some(typed)),
                (TerminalInput::End, _) => return Ok(None),
                (TerminalInput::Interrupt, Some(how)) => show(&format!("{how}\n")),
                (TerminalInput::Interrupt, None) => {
                    return Err(Failure::new(Exit::Interrupted, "interrupted", "interrupted"));
                }
            }
        }
    }

    /// The same, where Ctrl-C is an answer of its own. All lines of a paste are one. An editor
    /// begins with the text `initial`.
    pub(crate) async fn hear(&mut self, prompt: &str, initial: &str) -> Result<TerminalInput> {
        self.is_dropped = false;
        if let Some(editor) = self.editor.take() {
            return self.edited(editor, prompt, initial).await;
        }
        if !self.is_person {
            let line = self.typed.next_line().await.map_err(unreadable)?;
            return Ok(line
                .map_or(TerminalInput::End, |line| TerminalInput::Line(TypedText::by_hand(line))));
        }
        let mut paste = Paste::default();
        show(prompt);
        loop {
            tokio::select! {
                line = self.typed.next_line() => {
                    let Some(line) = line.map_err(unreadable)? else {
                        // What comes next begins on a line of its own.
                        show("\n");
                        return Ok(TerminalInput::End);
                    };
                    if let Some(typed) = paste.take(&line) {
                        return Ok(TerminalInput::Line(typed));
                    }
                }
                // The terminal has dropped the rest of a paste, and its end with it.
                Ok(()) = tokio::signal::ctrl_c(), if self.leaves.is_some() => {
                    show("\n");
                    return Ok(TerminalInput::Interrupt);
                }
            }
        }
    }

    /// The same from nothing; what `other` gives, if that comes before the first key and waiting
    /// can be ended.
    pub(crate) async fn hear_or<T>(
        &mut self,
        prompt: &str,
        other: impl Future<Output = T>,
    ) -> Result<Result<TerminalInput, T>> {
        let keys = if self.can_be_ended() { Keys::hold(prompt) } else { None };
        let Some(keys) = keys else { return self.hear(prompt, "").await.map(Ok) };
        tokio::select! {
            other = other => return Ok(Err(other)),
            () = keys.pressed() => {}
        }
        keys.erase();
        self.hear(prompt, "").await.map(Ok)
    }

    /// Whether waiting for a line can end before it is begun. An editor does not say what it has
    /// read ahead, so this is only after all of that was dropped.
    pub(crate) fn can_be_ended(&self) -> bool {
        self.is_dropped && self.editor.is_some()
    }

    /// The next line of an editor, which waits on a thread of its own.
    async fn edited(
        &mut self,
        mut editor: Box<LineEditor>,
        prompt: &str,
        initial: &str,
    ) -> Result<TerminalInput> {
        let prompt = prompt.to_owned();
        let initial = initial.to_owned();
        let lent = LentTerminal::now();
        let reading = tokio::task::spawn_blocking(move || {
            let heard = editor.read(&prompt, &initial);
            (editor, heard)
        });
        let (editor, heard) = reading.await.map_err(|error| unreadable(io::Error::other(error)))?;
        lent.returned();
        self.editor = Some(editor);
        heard.map_err(unreadable)
    }

    /// Asks for the marks of pastes again, after another program had the terminal.
    pub(crate) fn mark_pastes_again(&self) {
        if let Some(mode) = &self.mode {
            mode.renew();
        }
    }

    /// Drops all that a person typed up to now: it was typed before they saw what is asked next.
    /// Whether there was anything. What a program wrote stays.
    pub(crate) async fn drop_typed_ahead(&mut self) -> Result<bool> {
        if !self.is_person {
            return Ok(false);
        }
        let mut has_dropped = false;
        loop {
            has_dropped |= self.drop_waiting().map_err(unreadable)?;
            tokio::time::sleep(QUIET).await;
            if !waiting().map_err(unreadable)? {
                // The begin of a line is not counted, and is dropped all the same.
                self.drop_waiting().map_err(unreadable)?;
                self.is_dropped = true;
                return Ok(has_dropped);
            }
        }
    }

    /// Drops what the terminal holds and what was read from it; whether that were whole lines.
    fn drop_waiting(&mut self) -> io::Result<bool> {
        if let Some(editor) = &mut self.editor {
            editor.drop_read_ahead()?;
        }
        let reader = self.typed.get_mut();
        let read_ahead = reader.buffer().len();
        reader.consume(read_ahead);
        let has_waited = waiting()?;
        flush()?;
        Ok(has_waited || read_ahead > 0)
    }

    /// Keeps a line that a person may want to say again.
    pub(crate) fn remember(&mut self, line: &str) {
        if let Some(editor) = &mut self.editor {
            editor.remember(line);
        }
        // One line of the file is one of the past.
        let line = line.replace('\n', " ");
        if self.past.last().is_some_and(|last| *last == line) {
            return;
        }
        self.past.push(line);
        let surplus = self.past.len().saturating_sub(KEPT_MAX);
        self.past.drain(..surplus);
        if let Some(file) = &self.file
            && let Err(error) = keep(file, &self.past)
        {
            tracing::debug!(%error, "what was typed cannot be kept");
            self.file = None;
        }
    }

    /// The newest lines, with the numbers by which they are said again.
    pub(crate) fn past(&self, count: usize) -> impl Iterator<Item = (usize, &str)> {
        let first = self.past.len().saturating_sub(count);
        let numbered = self.past.iter().enumerate().skip(first);
        numbered.map(|(index, line)| (index + 1, line.as_str()))
    }

    /// The line of this number.
    pub(crate) fn nth(&self, number: usize) -> Option<&str> {
        self.past.get(number.checked_sub(1)?).map(String::as_str)
    }
}

/// Written again as a whole, readable by this person only.
fn keep(file: &Path, lines: &[String]) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut text = lines.join("\n");
    text.push('\n');
    options.open(file)?.write_all(text.as_bytes())
}

fn unreadable(error: io::Error) -> Failure {
    Failure::usage(format!("cannot read standard input: {error}"))
}

/// Shows a person something; what cannot be shown is no reason to stop.
fn show(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_file_is_private_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state").join(FILE);
        keep(&file, &["one".to_owned(), "two".to_owned()]).unwrap();
        keep(&file, &["three".to_owned()]).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "three\n");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
