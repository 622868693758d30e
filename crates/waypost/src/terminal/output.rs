//! What a command prints: data to standard output, talk to standard error. With `--json` data is
//! one JSON document per line and a failure is one JSON line. Everything else goes through
//! `printable` on its way out: much of it was written by others.

use crate::exit::{Exit, Failure, Result};
use crate::terminal::screen::{Screen, Tone, stderr_has_colour};
use kernel::values::visible;
use serde_json::Value;
use std::io::{self, ErrorKind, Write};

/// How this process prints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
}

impl Output {
    /// Prints JSON or plain text.
    pub(crate) fn new(json: bool) -> Self {
        Self { json, quiet: false }
    }

    /// The same, without talk where `--quiet` asks for that.
    pub(crate) fn hushed(self, quiet: bool) -> Self {
        Self { quiet, ..self }
    }

    /// Whether `--json` was given.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Prints a JSON document on one line, whatever `--json` says.
    pub(crate) fn document(self, value: &Value) -> Result<()> {
        to_stdout(&format!("{value}\n"))
    }

    /// Prints lines of text that cannot steer a terminal, ended by a line break.
    pub(crate) fn text(self, text: &str) -> Result<()> {
        to_stdout(&format!("{}\n", printable(text)))
    }

    /// Prints text that is safe already and may have colours, ended by a line break.
    pub(crate) fn painted(self, text: &str) -> Result<()> {
        to_stdout(&format!("{text}\n"))
    }

    /// Prints a line whose first word says how it went, in the colour of this tone.
    pub(crate) fn judged(self, tone: Tone, line: &str) -> Result<()> {
        let line = printable(line);
        let end = line.find(' ').unwrap_or(line.len());
        let (word, rest) = line.split_at(end);
        self.painted(&format!("{}{rest}", Screen::of_stdout().paint(tone, word)))
    }

    /// Prints this document with `--json`, else what people read instead of it.
    pub(crate) fn either(
        self,
        document: &Value,
        text: impl FnOnce() -> Result<()>,
    ) -> Result<Exit> {
        if self.json {
            self.document(document)?
        } else {
            text()?
        }
        Ok(Exit::Ok)
    }

    /// The same where what people read is a text.
    pub(crate) fn data(self, document: &Value, text: &str) -> Result<Exit> {
        self.either(document, || self.text(text))
    }

    /// Says that something is done: as this document with `--json`, else as talk.
    pub(crate) fn done(self, document: &Value, talk: &str) -> Result<Exit> {
        self.talk(talk);
        self.either(document, || Ok(()))
    }

    /// Prints a piece of text that is safe already as it comes, and no line break.
    pub(crate) fn piece(self, text: &str) -> Result<()> {
        to_stdout(text)
    }

    /// Whether anything but data and failures is printed: not with `--json`, where standard error
    /// is for programs too, and not with `--quiet`.
    pub(crate) fn talks(self) -> bool {
        !self.json && !self.quiet
    }

    /// Tells a person something, where it talks.
    pub(crate) fn talk(self, text: &str) {
        if self.talks() {
            to_stderr(&printable(text));
        }
    }

    /// Tells why the command failed.
    pub(crate) fn failure(self, failure: &Failure) {
        if failure.message.is_empty() {
            return;
        }
        if self.json {
            to_stderr(&failure.to_json().to_string());
        } else {
            to_stderr(&labelled(&printable(&failure.to_string())));
        }
    }
    /// The value, if there is one; a failure is told.
    pub(crate) fn or_tell<T>(self, result: Result<T>) -> Option<T> {
        result.map_err(|failure| self.failure(&failure)).ok()
    }
}

/// One write and one flush: a reader of a stream sees whole lines as they come.
fn to_stdout(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(unwritten)
}

fn unwritten(error: io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Failure::unread(),
        _ => {
            let what = format!("cannot write to standard output: {error}");
            Failure::new(Exit::Failed, "unwritten", what)
        }
    }
}

/// A failure with its label in colour, where colours may be used.
fn labelled(failure: &str) -> String {
    match failure.strip_prefix("error:") {
        Some(rest) if stderr_has_colour() => format!("{}{rest}", Tone::Bad.paint("error:")),
        _ => failure.to_owned(),
    }
}

/// No one is left to tell when standard error is gone, so a failed write is no failure.
fn to_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}

const GAP: &str = "  ";
/// A line of a list ends here; the whole text is one `show` away.
const CELL_CHARS_MAX: usize = 100;

/// Names and values under each other, the values aligned; values of several lines are indented.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    fields: Vec<(&'static str, String)>,
}

impl Fields {
    /// Adds a field; an empty value is left out.
    pub(crate) fn add(&mut self, name: &'static str, value: impl Into<String>) {
        let value = printable(&value.into());
        if !value.is_empty() {
            self.fields.push((name, value));
        }
    }

    pub(crate) fn text(&self) -> String {
        let width = self.fields.iter().map(|(name, _)| name.chars().count()).max();
        let width = width.unwrap_or_default();
        let line = |(name, value): &(&str, String)| {
            if value.contains('\n') {
                let indented: Vec<String> =
                    value.lines().map(|line| format!("{GAP}{line}")).collect();
                format!("{name}\n{}", indented.join("\n"))
            } else {
                format!("{name:width$}{GAP}{value}")
            }
        };
        let lines: Vec<String> = self.fields.iter().map(line).collect();
        lines.join("\n")
    }
}

/// Text that cannot steer a terminal: the author of a plan or an answer must not be able to
/// repaint the screen of the person who reads it, nor to hide something from them.
pub(crate) fn printable(text: &str) -> String {
    visible::readable(text)
}

/// A text that fits a line: safe, without breaks, cut where it is too long.
pub(crate) fn one_line(text: &str) -> String {
    let line = printable(text).replace(['\n', '\t'], " ");
    if line.chars().count() <= CELL_CHARS_MAX {
        return line;
    }
    let kept: String = line.chars().take(CELL_CHARS_MAX - 1).collect();
    format!("{kept}…")
}

/// `1 session`, `2 sessions`.
pub(crate) fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    match noun.strip_suffix('y') {
        _ if count == 1 => format!("1 {noun}"),
        Some(stem) if !stem.ends_with(['a', 'e', 'o']) => format!("{count} {stem}ies"),
        _ => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_a_failure_and_no_usage_error() {
        let failure = unwritten(io::Error::from(ErrorKind::StorageFull));
        assert_eq!((failure.exit, failure.code.as_str()), (Exit::Failed, "unwritten"));
        assert_eq!(unwritten(io::Error::from(ErrorKind::BrokenPipe)).exit, Exit::Ok);
    }

    #[test]
    fn a_long_text_is_cut_to_a_line() {
        let line = one_line(&"x".repeat(CELL_CHARS_MAX + 1));
        assert_eq!(line.chars().count(), CELL_CHARS_MAX);
        assert!(line.ends_with('…'));
    }

    #[test]
    fn a_count_has_its_plural() {
        let told = [(0, "session"), (1, "session"), (2, "session"), (2, "delivery"), (2, "key")]
            .map(|(count, noun)| counted(count, noun));
        assert_eq!(told, ["0 sessions", "1 session", "2 sessions", "2 deliveries", "2 keys"]);
    }

    #[test]
    fn fields_leave_out_what_is_empty_and_indent_what_is_long() {
        let mut fields = Fields::default();
        fields.add("id", "a");
        fields.add("step", "");
        fields.add("status", "b");
        fields.add("context", "{\n}");
        assert_eq!(fields.text(), "id       a\nstatus   b\ncontext\n  {\n  }");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\n");
        assert_eq!(one_line("a\u{202e}b\u{200b}\n\u{e0041}"), "a\\u{202e}b\\u{200b} \\u{e0041}");
    }
}
