//! What a person answers to what an agent asks: cards are shown, and only what is typed after that
//! decides. Commands work at every prompt; Ctrl-C leaves the answer for later.

use super::cards::{self, Said};
use super::typed::Meant;
use super::{Came, Chat};
use crate::exit::{Failure, Result};
use crate::outcome;
use crate::process::folder::TemporaryFolder;
use crate::terminal::input;
use crate::terminal::paste::{Heard, Typed};
use crate::terminal::screen::Tone;
use crate::threads;
use kernel::values::visible::exposed_json;
use serde_json::Value;
use std::fs;
use wire::conversations::{
    Approval, ClarificationInfo, ClarificationResponse, ElicitationAction, ElicitationResponse,
    PendingAction, ResumeThread, ToolCallInfo,
};

const CHOICE: &str = "run it? [y]es [n]o [e]dit [a]ll> ";

impl Chat {
    /// What a person answers to what is asked, or how the chat continues without an answer.
    pub(super) async fn answered(
        &mut self,
        action: &PendingAction,
    ) -> Result<Result<ResumeThread, Came>> {
        let mut body = ResumeThread { thread_id: self.thread.clone(), ..ResumeThread::default() };
        match action {
            PendingAction::Clarification { clarifications } => {
                match self.clarify(clarifications).await? {
                    Ok(answers) => body.clarification_responses = Some(answers),
                    Err(came) => return Ok(Err(came)),
                }
            }
            PendingAction::Confirmation { tool_calls } => match self.decide(tool_calls).await? {
                Ok(approvals) => body.approvals = Some(approvals),
                Err(came) => return Ok(Err(came)),
            },
            PendingAction::FormElicitation { elicitation_id, schema, message } => {
                self.show_anew(&cards::form(message, schema)).await?;
                let content = match self.fill().await? {
                    Ok(content) => content,
                    Err(came) => return Ok(Err(came)),
                };
                let action = match content {
                    Some(_) => ElicitationAction::Accept,
                    None => ElicitationAction::Decline,
                };
                let elicitation_id = elicitation_id.clone();
                let response = ElicitationResponse { elicitation_id, action, content };
                body.elicitation_responses = Some(vec![response]);
            }
            PendingAction::OauthUrl { .. } => return Ok(Err(Came::NobodyAnswers)),
        }
        Ok(Ok(body))
    }

    /// Prints a card; a program has it in the event already.
    pub(super) fn show(&self, card: &str) -> Result<()> {
        if self.output.is_json() { Ok(()) } else { self.output.judged(Tone::Waiting, card) }
    }

    /// The same with what has to be answered: no one can have answered it before they saw it.
    pub(super) async fn show_anew(&mut self, card: &str) -> Result<()> {
        self.show(card)?;
        card.clone_into(&mut self.card);
        if self.lines.drop_typed_ahead().await? {
            self.output.talk("(what was typed before this is dropped)");
        }
        Ok(())
    }

    async fn clarify(
        &mut self,
        asked: &[ClarificationInfo],
    ) -> Result<Result<Vec<ClarificationResponse>, Came>> {
        let mut answers = Vec::new();
        for one in asked {
            self.show_anew(&cards::question(one)).await?;
            match self.words("answer> ").await? {
                Ok(response) => {
                    answers.push(ClarificationResponse { call_id: one.call_id.clone(), response });
                }
                Err(came) => return Ok(Err(came)),
            }
        }
        Ok(Ok(answers))
    }

    /// A decision about every call. After a reply that the server refused, only those with edited
    /// arguments are asked about again.
    async fn decide(&mut self, calls: &[ToolCallInfo]) -> Result<Result<Vec<Approval>, Came>> {
        let kept = std::mem::take(&mut self.decided);
        let mut all = false;
        for (index, call) in calls.iter().enumerate() {
            let before = kept.iter().find(|before| before.call_id == call.call_id);
            if let Some(before) = before.filter(|before| before.arguments.is_none()) {
                self.decided.push(before.clone());
                continue;
            }
            let card = cards::call(call, index, calls.len());
            let said = if all {
                self.show(&card)?;
                Ok(Said::Yes)
            } else {
                self.show_anew(&card).await?;
                self.choice().await?
            };
            all |= said == Ok(Said::All);
            let approval = match said {
                Ok(said) => self.approval(call, said).await?,
                Err(came) => Err(came),
            };
            match approval {
                Ok(approval) => self.decided.push(approval),
                Err(came) => return Ok(Err(came)),
            }
        }
        Ok(Ok(self.decided.clone()))
    }

    async fn approval(
        &mut self,
        call: &ToolCallInfo,
        said: Said,
    ) -> Result<Result<Approval, Came>> {
        let mut approval = threads::approval(&call.call_id);
        match said {
            Said::Yes | Said::All => {}
            Said::No => match self.words("why not> ").await? {
                Ok(why) => (approval.approved, approval.feedback) = (false, Some(why)),
                Err(came) => return Ok(Err(came)),
            },
            Said::Edit => match self.arguments(call).await? {
                Ok(arguments) => approval.arguments = Some(arguments),
                Err(came) => return Ok(Err(came)),
            },
        }
        Ok(Ok(approval))
    }

    async fn choice(&mut self) -> Result<Result<Said, Came>> {
        loop {
            let typed = match self.reply(CHOICE).await? {
                Ok(typed) => typed,
                Err(came) => return Ok(Err(came)),
            };
            match Said::read(&typed.text) {
                _ if typed.is_pasted => {
                    self.output.talk("a paste does not answer this: type y, n, e or a");
                }
                Some(said) => return Ok(Ok(said)),
                None => self.output.talk("y, n, e or a; /later leaves it open, /quit leaves"),
            }
            // Lines that came with one that is no answer are none either.
            self.lines.drop_typed_ahead().await?;
        }
    }

    /// The next line at a prompt that wants an answer. Commands are done on the spot.
    pub(super) async fn reply(&mut self, prompt: &str) -> Result<Result<Typed, Came>> {
        self.reply_from(prompt, "").await
    }

    /// The same with a text to begin with, where there is a line editor.
    async fn reply_from(&mut self, prompt: &str, initial: &str) -> Result<Result<Typed, Came>> {
        loop {
            let heard = match initial {
                "" => match self.hear_unless_answered(prompt).await? {
                    Ok(heard) => heard,
                    Err(came) => return Ok(Err(came)),
                },
                _ => self.lines.hear(prompt, initial).await?,
            };
            let typed = match heard {
                Heard::Line(typed) => typed,
                Heard::Interrupt => return Ok(Err(Came::Later)),
                Heard::End => return Ok(Err(Came::NobodyAnswers)),
            };
            let line = typed.text.trim();
            if !line.starts_with('/') || line == "/decline" || typed.is_pasted {
                return Ok(Ok(typed));
            }
            match self.meant(line)? {
                Meant::Leave => return Ok(Err(Came::NobodyAnswers)),
                Meant::Later => return Ok(Err(Came::Later)),
                Meant::Say(_) => return Ok(Ok(typed)),
                Meant::Agent(name) => {
                    if let Err(failure) = self.switch(&name).await {
                        self.output.failure(&failure);
                    }
                }
                Meant::Card => self.show(&self.card)?,
                Meant::Nothing => {}
            }
        }
    }

    /// A line that says something.
    async fn words(&mut self, prompt: &str) -> Result<Result<String, Came>> {
        self.words_from(prompt, "").await
    }

    /// The same with a text to begin with.
    async fn words_from(&mut self, prompt: &str, initial: &str) -> Result<Result<String, Came>> {
        loop {
            match self.reply_from(prompt, initial).await? {
                Ok(typed) if typed.text.trim().is_empty() => {}
                Ok(typed) => return Ok(Ok(typed.text.trim().to_owned())),
                Err(came) => return Ok(Err(came)),
            }
        }
    }

    /// The arguments with which a call may run: edited in the person's editor, else on the line,
    /// which begins with what they are. Lines that came together with the `e` do not count.
    async fn arguments(&mut self, call: &ToolCallInfo) -> Result<Result<Value, Came>> {
        self.lines.drop_typed_ahead().await?;
        let mut text = self.edited(&call.arguments).await?;
        let mut before = exposed_json(&call.arguments.to_string());
        loop {
            let line = match text.take() {
                Some(text) => text,
                None => match self.words_from("arguments, JSON or @file> ", &before).await? {
                    Ok(line) => line,
                    Err(came) => return Ok(Err(came)),
                },
            };
            match input::text_or_file(&line) {
                Ok(value) => return Ok(Ok(value)),
                Err(failure) => self.output.failure(&failure),
            }
            before = line;
        }
    }

    /// These arguments as the person leaves them in `$VISUAL` or `$EDITOR`; none where no such
    /// program is set, or where it failed.
    async fn edited(&mut self, arguments: &Value) -> Result<Option<String>> {
        let mut set = ["VISUAL", "EDITOR"].into_iter().filter_map(|name| std::env::var(name).ok());
        let editor = set.find(|editor| !editor.trim().is_empty());
        let Some(editor) = editor.filter(|_| self.lines.is_person) else { return Ok(None) };
        let folder = TemporaryFolder::new()?;
        let file = folder.path().join("arguments.json");
        fs::write(&file, format!("{}\n", outcome::pretty(arguments))).map_err(|error| {
            Failure::usage(format!("cannot write `{}`: {error}", file.display()))
        })?;
        let mut words = editor.split_whitespace();
        let mut command = tokio::process::Command::new(words.next().unwrap_or_default());
        let ended = command.args(words).arg(&file).status().await;
        self.lines.mark_pastes_again();
        match ended {
            Ok(status) if status.success() => input::file(&file).map(Some),
            Ok(status) => {
                self.output.talk(&format!("`{editor}` ended with {status}"));
                Ok(None)
            }
            Err(error) => {
                self.output.talk(&format!("`{editor}` cannot be started: {error}"));
                Ok(None)
            }
        }
    }

    /// What a form is filled in with; the inner none declines it.
    async fn fill(&mut self) -> Result<Result<Option<Value>, Came>> {
        loop {
            let line = match self.words("name=value .., JSON or @file> ").await? {
                Ok(line) => line,
                Err(came) => return Ok(Err(came)),
            };
            if line == "/decline" {
                return Ok(Ok(None));
            }
            let words: Vec<String> = match line.starts_with(['{', '@']) {
                true => vec![line],
                false => line.split_whitespace().map(str::to_owned).collect(),
            };
            match input::words(&words) {
                Ok(value) => return Ok(Ok(Some(value))),
                Err(failure) => self.output.failure(&failure),
            }
        }
    }
}
