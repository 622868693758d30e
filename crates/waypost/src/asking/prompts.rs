//! Prompts that chats, the inbox and runs share: a choice, a line or JSON. Invalid input is asked
//! for again, until there is an answer or the person leaves.

use crate::exit::{Failure, Result};
use crate::terminal::input;
use crate::terminal::lines::Lines;
use crate::terminal::output::Output;
use crate::terminal::paste::TypedText;
use serde_json::Value;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The person answers later.
    Later,
    /// The person leaves, or there is nothing more to read.
    Leave,
    /// Someone else answered, and the person was told.
    AlreadyDecided,
    /// It could not be asked or sent.
    Failed(Failure),
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// What a person answers.
pub(crate) type Answer<T> = Result<T, Unanswered>;

/// Who asks at a terminal.
pub(crate) trait Prompts {
    /// Where a person is told something.
    fn output(&self) -> Output;

    /// What a person types.
    fn lines(&mut self) -> &mut Lines;

    /// The next line, whatever it says; an editor begins with the text `initial`.
    async fn next_line(&mut self, prompt: &str, initial: &str) -> Answer<TypedText>;

    /// Obeys a command. Whether the line was one, after which it is asked again.
    async fn command(&mut self, typed: &TypedText) -> Answer<bool>;

    /// Helps a person who typed nothing.
    fn help(&self) {}

    /// The next line that is no command.
    async fn typed(&mut self, prompt: &str, initial: &str) -> Answer<TypedText> {
        loop {
            let typed = self.next_line(prompt, initial).await?;
            if !self.command(&typed).await? {
                return Ok(typed);
            }
        }
    }

    /// What the person chose; typed, not pasted. `read` is given a word in small letters, and says
    /// what to tell a person who typed one that is not offered; `words` are those that are.
    async fn choice<T>(
        &mut self,
        prompt: &str,
        words: &str,
        read: impl Fn(&str) -> Result<Answer<T>, String>,
    ) -> Answer<T> {
        loop {
            let typed = self.next_line(prompt, "").await?;
            if typed.is_pasted {
                self.output().talk(&format!("a paste does not answer this: type {words}"));
            } else if self.command(&typed).await? {
                continue;
            } else {
                match read(&typed.text.trim().to_lowercase()) {
                    Ok(choice) => return choice,
                    Err(told) => self.output().talk(&told),
                }
            }
            // Lines that came with one that is no answer are none either.
            self.lines().drop_typed_ahead().await?;
        }
    }

    /// A line that says something.
    async fn line(&mut self, prompt: &str) -> Answer<String> {
        self.line_from(prompt, "").await
    }

    /// The same, where an editor begins with the text `initial`.
    async fn line_from(&mut self, prompt: &str, initial: &str) -> Answer<String> {
        loop {
            let typed = self.typed(prompt, initial).await?;
            match typed.text.trim() {
                "" => self.help(),
                text => return Ok(text.to_owned()),
            }
        }
    }

    /// JSON, or a file of it, that an editor begins with this. What is neither is asked for again,
    /// and nothing that was typed is lost.
    async fn json(&mut self, prompt: &str, mut begin: String) -> Answer<Value> {
        loop {
            let line = self.line_from(prompt, &begin).await?;
            if let Some(value) = self.output().or_tell(input::text_or_file(&line)) {
                return Ok(value);
            }
            begin = line;
        }
    }
}
