//! Prints a story: sentences, the equivalent command and the server's answer, which says where
//! parts of it are left out. Pauses are for a person at a terminal; with `--json` each is one line.

use crate::exit::Result;
use crate::outcome;
use crate::terminal::output::{Output, printable};
use serde_json::{Map, Value, json};
use std::io::{IsTerminal, stdout};
use std::time::Duration;

/// How long a reader has for a sentence, and for an answer.
const SENTENCE: Duration = Duration::from_millis(1_000);
const ANSWER: Duration = Duration::from_millis(1_500);

const LINE_CHARS_MAX: usize = 80;
/// What an answer shows at most.
const TEXT_CHARS_MAX: usize = 160;
const ITEMS_MAX: usize = 6;
const DEPTH_MAX: usize = 7;

/// An answer of a server, and what of it is shown.
#[derive(Debug)]
pub(super) struct ShownAnswer<'a> {
    pub(super) status: u16,
    pub(super) whole: &'a Value,
    pub(super) parts: Value,
}

/// Who tells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Narrator {
    output: Output,
    has_pauses: bool,
}

impl Narrator {
    pub(super) fn new(output: Output, is_fast: bool) -> Self {
        let has_pauses = !is_fast && !output.is_json() && stdout().is_terminal();
        Self { output, has_pauses }
    }

    /// The head of a story.
    pub(super) async fn title(self, name: &str, about: &str) -> Result<()> {
        let text = format!("== {name}: {about} ==\n");
        self.tell(&json!({"story": name, "about": about}), &text, SENTENCE).await
    }

    pub(super) async fn say(self, text: &str) -> Result<()> {
        self.tell(&json!({"say": text}), &format!("{}\n", wrapped(text)), SENTENCE).await
    }

    /// A line of text, and below it a caret at this character.
    pub(super) async fn point(self, line: &str, position: usize) -> Result<()> {
        let caret = format!("{}^", " ".repeat(position.min(line.chars().count())));
        let told = format!("{}\n", indented(&format!("{line}\n{caret}")));
        self.tell(&json!({"line": line, "position": position}), &told, SENTENCE).await
    }

    /// The command that is about to be done.
    pub(super) fn command(self, curl: &str) -> Result<()> {
        if self.output.is_json() {
            return Ok(());
        }
        self.output.text(&indented(&format!("$ {curl}")))
    }

    /// Something that happened by itself, or to a process.
    pub(super) async fn happened(self, text: &str) -> Result<()> {
        let told = format!("{}\n", folded(&format!("  * {text}")));
        self.tell(&json!({"happened": text}), &told, SENTENCE).await
    }

    pub(super) async fn answer(self, curl: &str, told: &ShownAnswer<'_>) -> Result<()> {
        let ShownAnswer { status, whole, parts } = told;
        let answer = shortened(parts, DEPTH_MAX);
        let is_whole = answer == **whole;
        let document =
            json!({"curl": curl, "status": status, "answer": answer, "shortened": !is_whole});
        // A comment as a shell has it: no server prints this line.
        let note = if is_whole { "" } else { ", shortened" };
        let text = printable(&outcome::pretty(&answer));
        let text = indented(&format!("# HTTP {status}{note}\n{text}"));
        let text: String = text.lines().map(|line| format!("{}\n", folded(line))).collect();
        self.tell(&document, &text, ANSWER).await
    }

    /// Prints it, and leaves a reader this long for it.
    async fn tell(self, document: &Value, text: &str, time: Duration) -> Result<()> {
        self.output.data(document, text)?;
        if self.has_pauses {
            tokio::time::sleep(time).await;
        }
        Ok(())
    }
}

/// A text in lines that fit.
fn wrapped(text: &str) -> String {
    wrapped_to(text, LINE_CHARS_MAX)
}

/// A line as it is, or, if it is too long, in lines that fit and begin further to the right.
fn folded(line: &str) -> String {
    if line.chars().count() <= LINE_CHARS_MAX {
        return line.to_owned();
    }
    let text = line.trim_start();
    let begin = " ".repeat(line.len() - text.len());
    let width = LINE_CHARS_MAX.saturating_sub(begin.len() + 2);
    format!("{begin}{}", wrapped_to(text, width).replace('\n', &format!("\n{begin}  ")))
}

fn wrapped_to(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let used = lines.last().map_or(0, |line| line.chars().count());
        if used > 0 && used + 1 + word.chars().count() > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}

/// The same value, as far as a reader wants it.
fn shortened(value: &Value, depth: usize) -> Value {
    match value {
        Value::String(text) if text.chars().count() > TEXT_CHARS_MAX => {
            let kept: String = text.chars().take(TEXT_CHARS_MAX).collect();
            Value::from(format!("{kept}…"))
        }
        Value::Array(items) if depth > 0 => {
            let kept = items.iter().take(ITEMS_MAX).map(|item| shortened(item, depth - 1));
            let mut kept: Vec<Value> = kept.collect();
            if items.len() > ITEMS_MAX {
                kept.push(Value::from(format!("… and {} more", items.len() - ITEMS_MAX)));
            }
            Value::Array(kept)
        }
        Value::Object(fields) if depth > 0 => {
            let kept =
                fields.iter().map(|(name, field)| (name.clone(), shortened(field, depth - 1)));
            Value::Object(kept.collect::<Map<_, _>>())
        }
        Value::Array(_) | Value::Object(_) => Value::from("…"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit() {
        let text = "word ".repeat(40);
        let told = wrapped(&text);
        assert!(told.lines().count() > 1);
        assert!(told.lines().all(|line| line.chars().count() <= LINE_CHARS_MAX), "{told}");
        assert_eq!(told.split_whitespace().count(), 40);
        assert_eq!(wrapped("a b"), "a b");
        let line = format!("    \"body\": \"{text}\"");
        let told = folded(&line);
        assert!(told.lines().all(|line| line.chars().count() <= LINE_CHARS_MAX), "{told}");
        assert!(told.lines().skip(1).all(|line| line.starts_with("      word")), "{told}");
        assert_eq!(folded("    \"a\": 1"), "    \"a\": 1");
    }

    #[test]
    fn an_answer_is_cut_and_says_so() {
        let long = "x".repeat(TEXT_CHARS_MAX + 1);
        let value = json!({"items": [1, 2, 3, 4, 5, 6, 7, 8], "text": long, "deep": {"er": [[]]}});
        let short = shortened(&value, 2);
        assert_eq!(short["items"][ITEMS_MAX], json!("… and 2 more"));
        assert_eq!(
            short["text"].as_str().map(|text| text.chars().count()),
            Some(TEXT_CHARS_MAX + 1)
        );
        assert_eq!(short["deep"]["er"], json!("…"));
        assert_eq!(shortened(&json!({"a": [1, null]}), 6), json!({"a": [1, null]}));
    }
}
