//! Asks a person at the terminal: shows the ask, drops what was typed before, and ignores pastes
//! where calls and failed steps are decided. Edited arguments start from the present ones.

pub(crate) mod prompts;
pub(crate) mod following;
mod fields;

use crate::context::Context;
use crate::exit::{Exit, Result};
use crate::outcome;
use crate::proposals;
use crate::remote::client::{Client, Request, read};
use crate::terminal::editor::Words;
use crate::terminal::lines::Lines;
use crate::terminal::output::{Output, one_line};
use crate::terminal::paste::TypedText;
use crate::terminal::table::relative;
use engine::system::clock::SystemClock;
use kernel::contracts::Clock;
use kernel::values::visible::{exposed, exposed_json};
use prompts::{Answer, Prompts, Unanswered};
use serde_json::{Map, Value, json};
use std::io::{IsTerminal, stderr, stdin, stdout};
use wire::rest::{
    ApproveReply, Ask, AskKind, AskedCall, AuthorizeAction, AuthorizeReply, CallDecision,
    ClarifyReply, FillAction, FillReply, FixAction, FixReply, Proposal, ReplyAnswer,
};

/// What a person does about a failed step.
#[derive(Clone, Copy)]
enum FixChoice<'a> {
    /// What is proposed.
    Take(&'a Proposal),
    /// One of the ask's actions.
    Act(FixAction),
}

/// What a person does about calls.
#[derive(Clone, Copy, PartialEq)]
enum CallChoice {
    /// They run.
    Approve,
    /// They do not.
    Reject,
    /// They run with other arguments.
    Edit,
}

const HELP: &str = "/skip leaves this one for later, /quit or q leaves";
/// What can be typed at every prompt.
const COMMANDS: &[&str] = &["/skip", "/quit", "/exit"];
const JSON: &str = "JSON or @file> ";

/// Asks the person at the terminal.
pub(crate) struct Asker {
    output: Output,
    lines: Lines,
}

impl Asker {
    /// For the person at this terminal; none where a program reads or writes.
    pub(crate) fn of(context: &Context) -> Option<Self> {
        let is_person = stdin().is_terminal() && stdout().is_terminal() && stderr().is_terminal();
        let output = context.output;
        let words = Words { commands: COMMANDS, ..Words::default() };
        (is_person && output.talks()).then(|| Self { output, lines: Lines::of_answers(words) })
    }

    /// Asks until the server takes the answer; what it says then. An answer that does not fit is
    /// asked for again.
    pub(crate) async fn settle(
        &mut self,
        context: &Context,
        client: &Client,
        ask: &Ask,
        wait: u64,
    ) -> Answer<Value> {
        let said = last_request(client, ask).await;
        self.output.text(&card(ask, said.as_deref()))?;
        self.lines.drop_typed_ahead().await?;
        loop {
            let reply = match self.reply(ask).await {
                // At an editor Ctrl-C is a key: it ends the command as the signal does elsewhere.
                Err(Unanswered::Failed(failure)) if failure.exit == Exit::Interrupted => {
                    return Err(context.interrupted().into());
                }
                reply => reply?,
            };
            match send(context, client, ask, &reply, wait).await {
                Err(failure) if failure.exit == Exit::Usage => self.output.failure(&failure),
                // Someone else was faster: it says who.
                Err(failure) if failure.code == "ask_decided" => {
                    self.output.failure(&failure);
                    return Err(Unanswered::AlreadyDecided);
                }
                sent => return Ok(sent?),
            }
        }
    }

    async fn reply(&mut self, ask: &Ask) -> Answer<Value> {
        match ask.kind {
            AskKind::Approve => self.approve(ask).await,
            AskKind::Clarify => self.clarify(ask).await,
            AskKind::Fill => self.fill(ask).await,
            AskKind::Authorize => self.authorize().await,
            AskKind::Fix => self.fix(ask).await,
        }
    }

    async fn approve(&mut self, ask: &Ask) -> Answer<Value> {
        let choices = [
            ("approve", CallChoice::Approve),
            ("reject", CallChoice::Reject),
            ("edit", CallChoice::Edit),
        ];
        let decided = self.one_of("[a]pprove [r]eject [e]dit [s]kip [q]uit> ", &choices).await?;
        let feedback = match decided {
            CallChoice::Reject => Some(self.line("why not> ").await?),
            CallChoice::Approve | CallChoice::Edit => None,
        };
        let mut decisions = Vec::new();
        for AskedCall { call_id, tool, arguments, .. } in &ask.calls {
            let edited = match decided {
                CallChoice::Edit => {
                    let prompt = format!("arguments of {}, {JSON}", exposed(tool));
                    Some(self.json(&prompt, exposed_json(&arguments.to_string())).await?)
                }
                CallChoice::Approve | CallChoice::Reject => None,
            };
            decisions.push(CallDecision {
                call_id: call_id.clone(),
                approve: decided != CallChoice::Reject,
                feedback: feedback.clone(),
                arguments: edited,
            });
        }
        Ok(json!(ApproveReply { decisions }))
    }

    async fn clarify(&mut self, ask: &Ask) -> Answer<Value> {
        self.output.talk(HELP);
        let answer = if ask.questions.len() < 2 {
            json!(self.line("answer> ").await?)
        } else {
            let mut answers = Map::new();
            for asked in &ask.questions {
                let text = self.line(&format!("{}> ", exposed(&asked.question))).await?;
                answers.insert(asked.call_id.clone(), json!(text));
            }
            Value::Object(answers)
        };
        Ok(json!(ClarifyReply { action: None, answer: Some(answer) }))
    }

    /// A form field by field; one without fields as a whole.
    async fn fill(&mut self, ask: &Ask) -> Answer<Value> {
        self.output.talk(HELP);
        let schema = ask.schema.as_ref().unwrap_or(&Value::Null);
        let fields = schema["properties"].as_object().filter(|fields| !fields.is_empty());
        let content = match fields {
            Some(fields) => {
                let required: Vec<&str> = texts(&schema["required"]);
                let mut content = Map::new();
                for (name, field) in fields {
                    let is_required = required.contains(&name.as_str());
                    if let Some(value) = self.field(name, field, is_required).await? {
                        content.insert(name.clone(), value);
                    }
                }
                Value::Object(content)
            }
            None if schema["type"] == "string" => json!(self.line("answer> ").await?),
            None => self.json(JSON, String::new()).await?,
        };
        Ok(json!(FillReply { action: FillAction::Accept, content: Some(content) }))
    }

    /// One field; none where it may be left out and is.
    async fn field(
        &mut self,
        name: &str,
        field: &Value,
        is_required: bool,
    ) -> Answer<Option<Value>> {
        let kind = field["type"].as_str().unwrap_or("any");
        let optional = if is_required { "" } else { ", optional" };
        let title = field["title"].as_str().unwrap_or(name);
        let prompt = exposed(&format!("{title} ({kind}{optional})> "));
        loop {
            let typed = self.typed(&prompt, "").await?;
            match typed.text.trim() {
                "" if is_required => self.help(),
                "" => return Ok(None),
                text => match fields::checked(field, value_of(text, kind)) {
                    Ok(value) => return Ok(Some(value)),
                    Err(why) => self.output.talk(&exposed(&why)),
                },
            }
        }
    }

    async fn authorize(&mut self) -> Answer<Value> {
        let choices = [("done", AuthorizeAction::Done), ("no", AuthorizeAction::Decline)];
        let action = self.one_of("[d]one [n]o [s]kip [q]uit> ", &choices).await?;
        Ok(json!(AuthorizeReply { action, code: None }))
    }

    async fn fix(&mut self, ask: &Ask) -> Answer<Value> {
        let acts = outcome::fix_actions(ask);
        let names: Vec<&str> = acts.iter().map(|(name, _)| *name).collect();
        let take = if ask.proposal.is_some() { "[t]ake the proposal, " } else { "" };
        let prompt = format!("{take}{} (/skip for later)> ", names.join(", "));
        let mut offered: Vec<(&str, FixChoice<'_>)> =
            acts.iter().map(|(name, action)| (*name, FixChoice::Act(*action))).collect();
        offered.extend(ask.proposal.iter().map(|proposal| ("take", FixChoice::Take(proposal))));
        let action = match self.one_of(&prompt, &offered).await? {
            FixChoice::Act(action) => action,
            FixChoice::Take(proposal) => return Ok(json!(proposals::accepting_reply(proposal))),
        };
        let arguments = None;
        let output = None;
        let plan_id = None;
        let proposal = false;
        let mut reply = FixReply { action, arguments, output, plan_id, proposal };
        match action {
            // Only rules ask a model: it is not offered.
            FixAction::Retry | FixAction::Skip | FixAction::Abort | FixAction::Propose => {}
            FixAction::Edit => {
                let before = ask.calls.first();
                let before = before.map(|call| exposed_json(&call.arguments.to_string()));
                self.output.talk("the whole arguments");
                reply.arguments = Some(self.json(JSON, before.unwrap_or_default()).await?);
            }
            FixAction::Settle => {
                self.output.talk("what it returned");
                reply.output = Some(self.json(JSON, String::new()).await?);
            }
            FixAction::Correct => reply.plan_id = Some(self.line("the plan's id> ").await?),
        }
        Ok(json!(reply))
    }

    /// One of these words, or the beginning of one.
    async fn one_of<T: Copy>(&mut self, prompt: &str, choices: &[(&str, T)]) -> Answer<T> {
        let read = |word: &str| chosen(word, choices).ok_or_else(|| unknown(word));
        self.choice(prompt, "it", read).await
    }
}

impl Prompts for Asker {
    fn output(&self) -> Output {
        self.output
    }

    fn lines(&mut self) -> &mut Lines {
        &mut self.lines
    }

    async fn next_line(&mut self, prompt: &str, initial: &str) -> Answer<TypedText> {
        self.lines.ask_from(prompt, initial).await?.ok_or(Unanswered::Leave)
    }

    async fn command(&mut self, typed: &TypedText) -> Answer<bool> {
        command(typed.text.trim()).map_or(Ok(false), Err)
    }

    fn help(&self) {
        self.output.talk(HELP);
    }
}

/// What a person reads who typed a word that is not offered, such as the `y` of a chat.
fn unknown(word: &str) -> String {
    if word.is_empty() {
        return HELP.to_owned();
    }
    let word = exposed(word);
    format!("`{word}` is not offered here: type one of the words, or how only it begins; {HELP}")
}

/// What can be typed at every prompt.
fn command(line: &str) -> Option<Unanswered> {
    match line {
        "/skip" => Some(Unanswered::Later),
        "/quit" | "/exit" | "q" => Some(Unanswered::Leave),
        _ => None,
    }
}

/// Sends a reply; the server's answer once the run ended or waits again.
pub(crate) async fn send(
    context: &Context,
    client: &Client,
    ask: &Ask,
    reply: &Value,
    wait: u64,
) -> Result<Value> {
    let request = Request::to(&["asks", &ask.id]).waiting(wait);
    context.leaves_running(&ask.session.id);
    context.progress().during("waiting for the run", client.post(request, reply)).await
}

/// The run in the server's answer to a reply.
pub(crate) fn run_of(body: &Value) -> Result<wire::rest::Run> {
    read(body).map(|answer: ReplyAnswer| answer.run)
}

/// The choice that a word stands for: whole, or so much of it that only one fits.
fn chosen<T: Copy>(word: &str, choices: &[(&str, T)]) -> Option<Answer<T>> {
    if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == word) {
        return Some(Ok(*choice));
    }
    let fitting: Vec<&(&str, T)> =
        choices.iter().filter(|(name, _)| !word.is_empty() && name.starts_with(word)).collect();
    match (fitting.as_slice(), word) {
        ([(_, choice)], _) => Some(Ok(*choice)),
        ([], "s" | "skip") => Some(Err(Unanswered::Later)),
        ([], "quit") => Some(Err(Unanswered::Leave)),
        ([], word) => command(word).map(Err),
        _ => None,
    }
}

/// What a field is filled in with: a text as it is, else JSON where it reads as JSON.
fn value_of(text: &str, kind: &str) -> Value {
    let json = if kind == "string" { None } else { serde_json::from_str(text).ok() };
    json.unwrap_or_else(|| Value::from(text))
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// What the person said last in the thread that asks. None elsewhere, and where it cannot be read:
/// an ask is shown all the same.
pub(crate) async fn last_request(client: &Client, ask: &Ask) -> Option<String> {
    if ask.session.space != "thread" {
        return None;
    }
    let session = client.get(Request::to(&["sessions", &ask.session.id])).await.ok()?;
    let messages = session["requestState"]["messages"].as_array()?;
    let said = messages.iter().rev().find(|message| message["type"] == "human")?;
    said["content"].as_str().map(str::to_owned)
}

/// What is asked: exactly what would be sent, with nothing hidden in it; before it who asks, and
/// what was said to them, where that is known.
pub(crate) fn card(ask: &Ask, said: Option<&str>) -> String {
    let asked = relative(&ask.created_at, SystemClock.now());
    let mut lines = vec![
        format!("[{}] {}", ask.kind.name(), exposed(&ask.title)),
        format!("  session {}, step {}, {asked}", exposed(&ask.session.key), exposed(&ask.step)),
    ];
    let by = outcome::asked_by(ask);
    lines.extend((!by.is_empty()).then(|| format!("  {}", exposed(&by))));
    lines.extend(said.map(|said| format!("  said: {}", exposed(&one_line(said)))));
    if ask.may_answer != ["*"] || ask.other {
        lines.push(format!("  may answer: {}", exposed(&outcome::may_answer(ask))));
    }
    if ask.body != ask.title && ask.fault.is_none() {
        lines.extend(ask.body.lines().map(|line| format!("  {}", exposed(line))));
    }
    if let Some(fault) = &ask.fault {
        lines.push(format!("  error: {}", exposed(&format!("{}: {}", fault.name, fault.message))));
    }
    if outcome::is_unknown(ask) {
        lines.push("  no one knows whether it happened: check the other system first".to_owned());
    }
    lines.extend(ask.url.iter().map(|url| format!("  {}", exposed(url))));
    for call in &ask.calls {
        lines.push(format!("  {}", exposed(&call.tool)));
        let arguments = outcome::pretty(&call.arguments);
        lines.extend(arguments.lines().map(|line| format!("    {line}")));
    }
    lines.extend(ask.calls.iter().filter_map(reason_line));
    lines.extend(consequence_lines(ask));
    // Last, beside the key that takes it.
    lines.extend(ask.proposal.iter().flat_map(proposals::lines));
    lines.join("\n")
}

/// Who wants this call to be asked about, as a line of a card.
pub(crate) fn reason_line(call: &AskedCall) -> Option<String> {
    let why = outcome::why_asked(call)?;
    Some(format!("  asked because {}", exposed(&why)))
}

/// What follows each answer, as lines of a card.
pub(crate) fn consequence_lines(ask: &Ask) -> Vec<String> {
    let answers = outcome::if_answered(ask).into_iter();
    answers.map(|(answer, then)| format!("  {answer}: {}", exposed(&then))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unique_prefix_of_a_choice_is_enough() {
        let two = [("approve", 1), ("reject", 2)];
        assert!(matches!(chosen("a", &two), Some(Ok(1))));
        assert!(matches!(chosen("reject", &two), Some(Ok(2))));
        assert!(matches!(chosen("s", &two), Some(Err(Unanswered::Later))));
        assert!(matches!(chosen("q", &two), Some(Err(Unanswered::Leave))));
        assert!(chosen("", &two).is_none());
        assert!(chosen("perhaps", &two).is_none());
        let many = [("settle", 1), ("skip", 2)];
        assert!(chosen("s", &many).is_none(), "it could be both");
        assert!(matches!(chosen("sk", &many), Some(Ok(2))));
        assert!(matches!(chosen("skip", &many), Some(Ok(2))), "the action, not the one for later");
    }

    #[test]
    fn a_typed_answer_gets_the_type_of_its_field() {
        assert_eq!(value_of("36", "integer"), json!(36));
        assert_eq!(value_of("36", "string"), json!("36"));
        assert_eq!(value_of("Ada", "any"), json!("Ada"));
    }
}
