//! Answers of a person to an agent's asks: cards are shown, and only what is typed after that
//! decides. Commands work at every prompt; Ctrl-C leaves the answer for later.

use super::Chat;
use super::cards::{self, CardAnswer};
use super::line_intent::LineIntent;
use crate::asking::prompts::{Answer, Prompts, Unanswered};
use crate::exit::{Failure, Result};
use crate::outcome;
use crate::process::folder::TemporaryFolder;
use crate::terminal::input;
use crate::terminal::lines::Lines;
use crate::terminal::output::Output;
use crate::terminal::paste::{TerminalInput, TypedText};
use crate::terminal::screen::Tone;
use crate::threads;
use kernel::values::visible::exposed_json;
use serde_json::Value;
use std::fs;
use wire::conversations::{
    Approval, ClarificationInfo, ClarificationResponse, ElicitationAction, ElicitationResponse,
    PendingAction, ResumeThread, ToolCallInfo,
};
use wire::rest::Ask;

const CHOICE: &str = "run it? [y]es [n]o [e]dit [a]ll> ";
const CHOICES: &str = "y, n, e or a";

impl Chat {
    /// What a person answers to what is asked, or how the chat continues without an answer.
    pub(super) async fn answered(&mut self, action: &PendingAction) -> Answer<ResumeThread> {
        // A program has the event, and shows no cards.
        let asks = if self.output.is_json() { Vec::new() } else { self.open_asks().await };
        let mut body = ResumeThread { thread_id: self.thread.clone(), ..ResumeThread::default() };
        match action {
            PendingAction::Clarification { clarifications } => {
                body.clarification_responses = Some(self.clarify(clarifications, &asks).await?);
            }
            PendingAction::Confirmation { tool_calls } => {
                body.approvals = Some(self.decide(tool_calls, &asks).await?);
            }
            PendingAction::FormElicitation { elicitation_id, schema, message } => {
                self.show_anew(&cards::form(elicitation_id, message, schema, &asks)).await?;
                let content = self.fill().await?;
                let action = match content {
                    Some(_) => ElicitationAction::Accept,
                    None => ElicitationAction::Decline,
                };
                let elicitation_id = elicitation_id.clone();
                let response = ElicitationResponse { elicitation_id, action, content };
                body.elicitation_responses = Some(vec![response]);
            }
            PendingAction::OauthUrl { .. } => return Err(Unanswered::Leave),
        }
        Ok(body)
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
        asks: &[Ask],
    ) -> Answer<Vec<ClarificationResponse>> {
        let mut answers = Vec::new();
        for one in asked {
            self.show_anew(&cards::question(one, asks)).await?;
            let response = self.line("answer> ").await?;
            answers.push(ClarificationResponse { call_id: one.call_id.clone(), response });
        }
        Ok(answers)
    }

    /// A decision about every call. After a reply that the server refused, only those with edited
    /// arguments are asked about again.
    async fn decide(&mut self, calls: &[ToolCallInfo], asks: &[Ask]) -> Answer<Vec<Approval>> {
        let kept = std::mem::take(&mut self.decided);
        let mut all = false;
        for (index, call) in calls.iter().enumerate() {
            let before = kept.iter().find(|before| before.call_id == call.call_id);
            if let Some(before) = before.filter(|before| before.arguments.is_none()) {
                self.decided.push(before.clone());
                continue;
            }
            let card = cards::call(call, index, calls.len(), asks);
            let said = if all {
                self.show(&card)?;
                CardAnswer::Yes
            } else {
                self.show_anew(&card).await?;
                self.choice(CHOICE, CHOICES, read).await?
            };
            all |= said == CardAnswer::All;
            let approval = self.approval(call, said).await?;
            self.decided.push(approval);
        }
        Ok(self.decided.clone())
    }

    async fn approval(&mut self, call: &ToolCallInfo, said: CardAnswer) -> Answer<Approval> {
        let mut approval = threads::approval(&call.call_id);
        match said {
            CardAnswer::Yes | CardAnswer::All => {}
            CardAnswer::No => {
                approval.feedback = Some(self.line("why not> ").await?);
                approval.approved = false;
            }
            CardAnswer::Edit => approval.arguments = Some(self.arguments(call).await?),
        }
        Ok(approval)
    }

    /// The arguments with which a call may run: edited in the person's editor, else on the line,
    /// which begins with what they are. Lines that came together with the `e` do not count.
    async fn arguments(&mut self, call: &ToolCallInfo) -> Answer<Value> {
        self.lines.drop_typed_ahead().await?;
        let mut before = exposed_json(&call.arguments.to_string());
        if let Some(text) = self.edited(&call.arguments).await? {
            if let Some(value) = self.output.or_tell(input::text_or_file(&text)) {
                return Ok(value);
            }
            before = text;
        }
        self.json("arguments, JSON or @file> ", before).await
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

    /// What a form is filled in with; none declines it.
    async fn fill(&mut self) -> Answer<Option<Value>> {
        loop {
            let line = self.line("name=value .., JSON or @file> ").await?;
            if line == "/decline" {
                return Ok(None);
            }
            let words: Vec<String> = match line.starts_with(['{', '@']) {
                true => vec![line],
                false => line.split_whitespace().map(str::to_owned).collect(),
            };
            if let Some(value) = self.output.or_tell(input::words(&words)) {
                return Ok(Some(value));
            }
        }
    }
}

impl Prompts for Chat {
    fn output(&self) -> Output {
        self.output
    }

    fn lines(&mut self) -> &mut Lines {
        &mut self.lines
    }

    /// Ends, too, where someone else answers before anything is typed.
    async fn next_line(&mut self, prompt: &str, initial: &str) -> Answer<TypedText> {
        let heard = match initial {
            "" => self.hear_unless_answered(prompt).await?,
            _ => self.lines.hear(prompt, initial).await?,
        };
        match heard {
            TerminalInput::Line(typed) => Ok(typed),
            TerminalInput::Interrupt => Err(Unanswered::Later),
            TerminalInput::End => Err(Unanswered::Leave),
        }
    }

    async fn command(&mut self, typed: &TypedText) -> Answer<bool> {
        let line = typed.text.trim();
        if !line.starts_with('/') || line == "/decline" || typed.is_pasted {
            return Ok(false);
        }
        match self.meant(line)? {
            LineIntent::Leave => return Err(Unanswered::Leave),
            LineIntent::Later => return Err(Unanswered::Later),
            LineIntent::Say(_) => return Ok(false),
            LineIntent::Agent(name) => {
                self.output.or_tell(self.switch(&name).await);
            }
            LineIntent::Card => self.show(&self.card)?,
            LineIntent::Nothing => {}
        }
        Ok(true)
    }
}

fn read(word: &str) -> Result<Answer<CardAnswer>, String> {
    let said = CardAnswer::read(word).map(Ok);
    said.ok_or_else(|| format!("{CHOICES}; /later leaves it open, /quit leaves"))
}
