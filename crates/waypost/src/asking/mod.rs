//! Asks that a person answers at the terminal, on the spot: what is asked is shown, what was typed
//! before is dropped, and a paste decides nothing about calls and failed steps. Arguments begin
//! with what they are.

pub(crate) mod following;
mod fields;

use crate::context::Context;
use crate::exit::{Exit, Result};
use crate::outcome;
use crate::proposals;
use crate::remote::client::{Client, Request, read};
use crate::terminal::editor::Words;
use crate::terminal::input;
use crate::terminal::lines::Lines;
use crate::terminal::output::{Output, one_line};
use crate::terminal::table::relative;
use engine::system::clock::SystemClock;
use kernel::contracts::Clock;
use kernel::values::visible::{exposed, exposed_json};
use serde_json::{Map, Value, json};
use std::io::{IsTerminal, stderr, stdin, stdout};
use wire::rest::{
    ApproveReply, Ask, AskKind, AskedCall, AuthorizeAction, AuthorizeReply, CallDecision,
    ClarifyReply, FillAction, FillReply, FixAction, FixReply, Proposal, ReplyAnswer,
};

/// What a person said to an ask.
#[derive(Debug, PartialEq)]
enum Said {
    Reply(Value),
    Later,
    Leave,
}

/// The outcome of an ask.
#[derive(Debug)]
pub(crate) enum Settled {
    /// The reply won; what the server answered.
    Answered(Value),
    /// The person leaves this one for later.
    Later,
    /// The person leaves.
    Leave,
}

/// What a person does about a failed step.
#[derive(Clone, Copy)]
enum Mending<'a> {
    /// What is proposed.
    Take(&'a Proposal),
    /// One of the ask's actions.
    Act(FixAction),
}

/// What a person does about calls.
#[derive(Clone, Copy, PartialEq)]
enum Deciding {
    /// They run.
    Approve,
    /// They do not.
    Reject,
    /// They run with other arguments.
    Edit,
}

/// A line of an answer, or what was typed instead of one.
enum Line {
    Text(String),
    Said(Said),
}

const HELP: &str = "/skip leaves this one for later, /quit or q leaves";
const NO_PASTE: &str = "a paste does not answer this: type it";
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

    /// Asks until the server takes the answer. One that does not fit is asked for again.
    pub(crate) async fn settle(
        &mut self,
        context: &Context,
        client: &Client,
        ask: &Ask,
        wait: u64,
    ) -> Result<Settled> {
        let said = said(client, ask).await;
        self.output.text(&card(ask, said.as_deref()))?;
        self.lines.drop_typed_ahead().await?;
        loop {
            // At an editor Ctrl-C is a key: it ends the command as the signal does elsewhere.
            let said = self.said(ask).await.map_err(|failure| match failure.exit {
                Exit::Interrupted => context.interrupted(),
                _ => failure,
            })?;
            let reply = match said {
                Said::Reply(reply) => reply,
                Said::Later => return Ok(Settled::Later),
                Said::Leave => return Ok(Settled::Leave),
            };
            match send(context, client, ask, &reply, wait).await {
                Err(failure) if failure.exit == Exit::Usage => self.output.failure(&failure),
                sent => return sent.map(Settled::Answered),
            }
        }
    }

    async fn said(&mut self, ask: &Ask) -> Result<Said> {
        match ask.kind {
            AskKind::Approve => self.approve(ask).await,
            AskKind::Clarify => self.clarify(ask).await,
            AskKind::Fill => self.fill(ask).await,
            AskKind::Authorize => self.authorize().await,
            AskKind::Fix => self.fix(ask).await,
        }
    }

    async fn approve(&mut self, ask: &Ask) -> Result<Said> {
        let choices = [
            ("approve", Deciding::Approve),
            ("reject", Deciding::Reject),
            ("edit", Deciding::Edit),
        ];
        let prompt = "[a]pprove [r]eject [e]dit [s]kip [q]uit> ";
        let decided = match self.choice(prompt, &choices).await? {
            Ok(decided) => decided,
            Err(said) => return Ok(said),
        };
        let feedback = if decided == Deciding::Reject {
            match self.line("why not> ").await? {
                Line::Text(why) => Some(why),
                Line::Said(said) => return Ok(said),
            }
        } else {
            None
        };
        let mut decisions = Vec::new();
        for AskedCall { call_id, tool, arguments, .. } in &ask.calls {
            let edited = if decided == Deciding::Edit {
                let prompt = format!("arguments of {}, {JSON}", exposed(tool));
                match self.json(&prompt, exposed_json(&arguments.to_string())).await? {
                    Ok(edited) => Some(edited),
                    Err(said) => return Ok(said),
                }
            } else {
                None
            };
            decisions.push(CallDecision {
                call_id: call_id.clone(),
                approve: decided != Deciding::Reject,
                feedback: feedback.clone(),
                arguments: edited,
            });
        }
        Ok(Said::Reply(json!(ApproveReply { decisions })))
    }

    async fn clarify(&mut self, ask: &Ask) -> Result<Said> {
        self.output.talk(HELP);
        let reply = |answer| Ok(Said::Reply(json!(ClarifyReply { action: None, answer })));
        if ask.questions.len() < 2 {
            return match self.line("answer> ").await? {
                Line::Text(text) => reply(Some(json!(text))),
                Line::Said(said) => Ok(said),
            };
        }
        let mut answers = Map::new();
        for asked in &ask.questions {
            match self.line(&format!("{}> ", exposed(&asked.question))).await? {
                Line::Text(text) => answers.insert(asked.call_id.clone(), json!(text)),
                Line::Said(said) => return Ok(said),
            };
        }
        reply(Some(Value::Object(answers)))
    }

    /// A form field by field; one without fields as a whole.
    async fn fill(&mut self, ask: &Ask) -> Result<Said> {
        self.output.talk(HELP);
        let schema = ask.schema.as_ref().unwrap_or(&Value::Null);
        let fields = schema["properties"].as_object().filter(|fields| !fields.is_empty());
        let content = match fields {
            Some(fields) => {
                let required: Vec<&str> = texts(&schema["required"]);
                let mut content = Map::new();
                for (name, field) in fields {
                    let is_required = required.contains(&name.as_str());
                    match self.field(name, field, is_required).await? {
                        Ok(Some(value)) => content.insert(name.clone(), value),
                        Ok(None) => None,
                        Err(said) => return Ok(said),
                    };
                }
                Value::Object(content)
            }
            None => match self.whole(schema).await? {
                Ok(value) => value,
                Err(said) => return Ok(said),
            },
        };
        let content = Some(content);
        Ok(Said::Reply(json!(FillReply { action: FillAction::Accept, content })))
    }

    /// One field; none where it may be left out and is.
    async fn field(
        &mut self,
        name: &str,
        field: &Value,
        is_required: bool,
    ) -> Result<Result<Option<Value>, Said>> {
        let kind = field["type"].as_str().unwrap_or("any");
        let optional = if is_required { "" } else { ", optional" };
        let title = field["title"].as_str().unwrap_or(name);
        let prompt = exposed(&format!("{title} ({kind}{optional})> "));
        loop {
            let Some(typed) = self.lines.ask(&prompt).await? else { return Ok(Err(Said::Leave)) };
            if let Some(said) = command(typed.text.trim()) {
                return Ok(Err(said));
            }
            match typed.text.trim() {
                "" if is_required => self.output.talk(HELP),
                "" => return Ok(Ok(None)),
                text => match fields::checked(field, value_of(text, kind)) {
                    Ok(value) => return Ok(Ok(Some(value))),
                    Err(why) => self.output.talk(&exposed(&why)),
                },
            }
        }
    }

    async fn whole(&mut self, schema: &Value) -> Result<Result<Value, Said>> {
        if schema["type"] == "string" {
            return Ok(match self.line("answer> ").await? {
                Line::Text(text) => Ok(json!(text)),
                Line::Said(said) => Err(said),
            });
        }
        self.json(JSON, String::new()).await
    }

    /// JSON, or a file of it, that an editor begins with this. What is neither is asked for again,
    /// and nothing that was typed is lost.
    async fn json(&mut self, prompt: &str, mut begin: String) -> Result<Result<Value, Said>> {
        loop {
            let line = match self.line_from(prompt, &begin).await? {
                Line::Text(line) => line,
                Line::Said(said) => return Ok(Err(said)),
            };
            match input::text_or_file(&line) {
                Ok(value) => return Ok(Ok(value)),
                Err(failure) => self.output.failure(&failure),
            }
            begin = line;
        }
    }

    async fn authorize(&mut self) -> Result<Said> {
        let choices = [("done", AuthorizeAction::Done), ("no", AuthorizeAction::Decline)];
        let action = match self.choice("[d]one [n]o [s]kip [q]uit> ", &choices).await? {
            Ok(action) => action,
            Err(said) => return Ok(said),
        };
        Ok(Said::Reply(json!(AuthorizeReply { action, code: None })))
    }

    async fn fix(&mut self, ask: &Ask) -> Result<Said> {
        let acts = outcome::fix_actions(ask);
        let names: Vec<&str> = acts.iter().map(|(name, _)| *name).collect();
        let take = if ask.proposal.is_some() { "[t]ake the proposal, " } else { "" };
        let prompt = format!("{take}{} (/skip for later)> ", names.join(", "));
        let mut offered: Vec<(&str, Mending<'_>)> =
            acts.iter().map(|(name, action)| (*name, Mending::Act(*action))).collect();
        offered.extend(ask.proposal.iter().map(|proposal| ("take", Mending::Take(proposal))));
        let action = match self.choice(&prompt, &offered).await? {
            Ok(Mending::Act(action)) => action,
            Ok(Mending::Take(proposal)) => {
                return Ok(Said::Reply(json!(proposals::taken(proposal))));
            }
            Err(said) => return Ok(said),
        };
        let arguments = None;
        let output = None;
        let plan_id = None;
        let proposal = false;
        let mut reply = FixReply { action, arguments, output, plan_id, proposal };
        let wanted = match action {
            // Only rules ask a model: it is not offered.
            FixAction::Retry | FixAction::Skip | FixAction::Abort | FixAction::Propose => None,
            FixAction::Edit => {
                let before =
                    ask.calls.first().map(|call| exposed_json(&call.arguments.to_string()));
                Some((&mut reply.arguments, "the whole arguments", before.unwrap_or_default()))
            }
            FixAction::Settle => Some((&mut reply.output, "what it returned", String::new())),
            FixAction::Correct => {
                match self.line("the plan's id> ").await? {
                    Line::Text(id) => reply.plan_id = Some(id),
                    Line::Said(said) => return Ok(said),
                }
                None
            }
        };
        if let Some((place, what, before)) = wanted {
            self.output.talk(what);
            match self.json(JSON, before).await? {
                Ok(value) => *place = Some(value),
                Err(said) => return Ok(said),
            }
        }
        Ok(Said::Reply(json!(reply)))
    }

    /// One of these words, or the beginning of one; typed, not pasted.
    async fn choice<T: Copy>(
        &mut self,
        prompt: &str,
        choices: &[(&str, T)],
    ) -> Result<Result<T, Said>> {
        loop {
            let Some(typed) = self.lines.ask(prompt).await? else { return Ok(Err(Said::Leave)) };
            let word = typed.text.trim().to_lowercase();
            if typed.is_pasted {
                self.output.talk(NO_PASTE);
            } else if let Some(said) = command(&word) {
                return Ok(Err(said));
            } else {
                match chosen(&word, choices) {
                    Some(Ok(choice)) => return Ok(Ok(choice)),
                    Some(Err(said)) => return Ok(Err(said)),
                    None if word.is_empty() => self.output.talk(HELP),
                    None => self.output.talk(&unknown(&word)),
                }
            }
            // Lines that came with one that is no answer are none either.
            self.lines.drop_typed_ahead().await?;
        }
    }

    /// A line that says something.
    async fn line(&mut self, prompt: &str) -> Result<Line> {
        self.line_from(prompt, "").await
    }

    /// The same, where an editor begins with this text.
    async fn line_from(&mut self, prompt: &str, initial: &str) -> Result<Line> {
        loop {
            let Some(typed) = self.lines.ask_from(prompt, initial).await? else {
                return Ok(Line::Said(Said::Leave));
            };
            match (command(typed.text.trim()), typed.text.trim()) {
                (Some(said), _) => return Ok(Line::Said(said)),
                (None, "") => self.output.talk(HELP),
                (None, text) => return Ok(Line::Text(text.to_owned())),
            }
        }
    }
}

/// What a person reads who typed a word that is not offered, such as the `y` of a chat.
fn unknown(word: &str) -> String {
    let word = exposed(word);
    format!("`{word}` is not offered here: type one of the words, or how only it begins; {HELP}")
}

/// What can be typed at every prompt.
fn command(line: &str) -> Option<Said> {
    match line {
        "/skip" => Some(Said::Later),
        "/quit" | "/exit" | "q" => Some(Said::Leave),
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
fn chosen<T: Copy>(word: &str, choices: &[(&str, T)]) -> Option<Result<T, Said>> {
    if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == word) {
        return Some(Ok(*choice));
    }
    let fitting: Vec<&(&str, T)> =
        choices.iter().filter(|(name, _)| !word.is_empty() && name.starts_with(word)).collect();
    match (fitting.as_slice(), word) {
        ([(_, choice)], _) => Some(Ok(*choice)),
        ([], "s" | "skip") => Some(Err(Said::Later)),
        ([], "q" | "quit") => Some(Err(Said::Leave)),
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
pub(crate) async fn said(client: &Client, ask: &Ask) -> Option<String> {
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
    for why in ask.calls.iter().filter_map(outcome::why_asked) {
        lines.push(format!("  asked because {}", exposed(&why)));
    }
    for (answer, then) in outcome::if_answered(ask) {
        lines.push(format!("  {answer}: {}", exposed(&then)));
    }
    // Last, beside the key that takes it.
    lines.extend(ask.proposal.iter().flat_map(proposals::lines));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_word_is_enough_if_it_is_unique() {
        let two = [("approve", 1), ("reject", 2)];
        assert_eq!(chosen("a", &two), Some(Ok(1)));
        assert_eq!(chosen("reject", &two), Some(Ok(2)));
        assert_eq!(chosen("s", &two), Some(Err(Said::Later)));
        assert_eq!(chosen("q", &two), Some(Err(Said::Leave)));
        assert_eq!(chosen("", &two), None);
        assert_eq!(chosen("perhaps", &two), None);
        let many = [("settle", 1), ("skip", 2)];
        assert_eq!(chosen("s", &many), None, "it could be both");
        assert_eq!(chosen("sk", &many), Some(Ok(2)));
        assert_eq!(chosen("skip", &many), Some(Ok(2)), "the action, not the one for later");
    }

    #[test]
    fn a_field_is_what_its_type_says() {
        assert_eq!(value_of("36", "integer"), json!(36));
        assert_eq!(value_of("36", "string"), json!("36"));
        assert_eq!(value_of("Ada", "any"), json!("Ada"));
    }
}
