//! `waypost chat`: a conversation with an agent, as it goes. What it asks is answered on the spot;
//! Ctrl-C cancels what is under way and not the chat.

mod cards;

use crate::context::Context;
use crate::exit::{Exit, Result};
use crate::remote::client::{Client, Request, problem, read};
use crate::remote::sse::Stream;
use crate::terminal::input;
use crate::terminal::lines::Lines;
use crate::terminal::output::{Output, one_line, printable};
use crate::threads;
use cards::Said;
use clap::Args;
use outbound::sse::Event;
use serde_json::{Value, json};
use std::time::Duration;
use wire::conversations::{
    Approval, ClarificationInfo, ClarificationResponse, ElicitationAction, ElicitationResponse,
    PendingAction, ResumeThread, RunThread, ThreadAnswer, ThreadDelta, ThreadStatus, ToolCallInfo,
};
use wire::rest::{Session, Status};

const EXAMPLES: &str = "\
Examples:
  waypost chat                                  # with the default agent, in a new thread
  waypost chat assistant --thread work          # continues a conversation
  echo 'what is on my calendar?' | waypost chat

While it works Ctrl-C cancels what it does, and not the chat. /quit leaves, /help says more.";

const HELP: &str = "\
/quit      leaves; the thread stays, `--thread` continues it
/thread    the name of this thread
/history   what you said before; !12 says line 12 again
A call that needs your approval is shown first: y runs it, n does not and asks why,
e runs it with other arguments, a runs it and all others that are asked about.
A form takes name=value .., JSON or @file; /decline says no to it.";

/// How many lines of the past are shown.
const PAST_SHOWN: usize = 20;
/// How often we check whether a login is done.
const LOGIN_LOOK: Duration = Duration::from_secs(1);

/// What `waypost chat` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ChatArgs {
    /// The agent, where it is not the default one
    agent: Option<String>,
    /// The thread to continue; a new one if absent
    #[arg(long, value_name = "ID")]
    thread: Option<String>,
}

/// Runs `waypost chat`.
pub(crate) async fn run(args: ChatArgs, context: &Context) -> Result<Exit> {
    let thread = args.thread.unwrap_or_else(threads::new_id);
    let client = context.client().await?;
    client.ready().await?;
    let mut chat = Chat {
        output: context.output,
        client,
        agent: args.agent,
        busy_hint: threads::busy_hint(context, &thread),
        thread,
        lines: Lines::of_conversation(),
        spoken: String::new(),
        turn: 0,
    };
    chat.output.talk(&format!("thread {}; /help says what else can be typed", chat.thread));
    chat.go().await
}

/// A conversation.
struct Chat {
    output: Output,
    client: Client,
    agent: Option<String>,
    thread: String,
    /// What can be done when the thread waits for something else.
    busy_hint: String,
    lines: Lines,
    /// What the agent says in its present turn, as far as it was heard.
    spoken: String,
    /// Which turn that is.
    turn: u32,
}

/// What came of a request.
enum Came {
    /// An answer.
    Answer,
    /// There is nothing more to read, and something has to be answered.
    NobodyAnswers,
}

impl Chat {
    async fn go(&mut self) -> Result<Exit> {
        loop {
            let Some(typed) = self.lines.ask("> ").await? else { return Ok(Exit::Ok) };
            let line = match self.meant(typed.text.trim())? {
                Meant::Nothing => continue,
                Meant::Leave => return Ok(Exit::Ok),
                Meant::Say(line) => line,
            };
            self.lines.remember(&line);
            match self.say(&line).await {
                Ok(Came::Answer) => {}
                Ok(Came::NobodyAnswers) => return Ok(Exit::Paused),
                // A person reads it and continues; a program has to know.
                Err(failure) if self.lines.is_person && failure.exit != Exit::Unreachable => {
                    self.output.failure(&failure);
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// What a line is for.
    fn meant(&self, line: &str) -> Result<Meant> {
        if let Some(number) = line.strip_prefix('!').and_then(|number| number.parse().ok()) {
            let again = self.lines.nth(number).map(str::to_owned);
            return Ok(again.map_or(Meant::Nothing, Meant::Say));
        }
        match line {
            "" => return Ok(Meant::Nothing),
            "/quit" | "/exit" => return Ok(Meant::Leave),
            "/help" => self.output.text(HELP)?,
            "/thread" => self.output.text(&self.thread)?,
            "/history" => {
                for (number, line) in self.lines.past(PAST_SHOWN) {
                    self.output.text(&format!("{number:>5}  {}", one_line(line)))?;
                }
            }
            line => return Ok(Meant::Say(line.to_owned())),
        }
        Ok(Meant::Nothing)
    }

    /// Says something, and answers what is asked until it is done.
    async fn say(&mut self, text: &str) -> Result<Came> {
        let body = RunThread {
            thread_id: self.thread.clone(),
            user_request: text.to_owned(),
            agent: self.agent.clone(),
        };
        let mut answer = self.follow("run", &json!(body)).await?;
        loop {
            let Some(action) = answer.pending_action.take() else { return Ok(Came::Answer) };
            answer = match action {
                PendingAction::OauthUrl { url, message, .. } => {
                    self.await_login(&message, &url).await?
                }
                action => match self.answered(action).await? {
                    Some(body) => self.follow("resume", &json!(body)).await?,
                    None => return Ok(Came::NobodyAnswers),
                },
            };
        }
    }

    /// Follows a request to its answer, and prints what is heard on the way.
    async fn follow(&mut self, door: &str, body: &Value) -> Result<ThreadAnswer> {
        (self.spoken, self.turn) = (String::new(), 0);
        let begun = Stream::begin(&self.client, door, body).await;
        let mut stream = begun.map_err(|failure| threads::refused(&self.busy_hint, failure))?;
        let mut cancelled = false;
        loop {
            let event = tokio::select! {
                event = stream.next() => event?,
                Ok(()) = tokio::signal::ctrl_c(), if self.lines.is_person && !cancelled => {
                    cancelled = true;
                    self.cancel(stream.run.as_deref()).await;
                    continue;
                }
            };
            if event.kind() == "result" {
                return self.result(&event);
            }
            self.heard(&event)?;
        }
    }

    async fn cancel(&self, run: Option<&str>) {
        let Some(run) = run else { return };
        let asked = self.client.post(Request::to(&["runs", run, "cancel"]), &json!({})).await;
        if let Err(failure) = asked {
            self.output.failure(&failure);
        }
    }

    fn heard(&mut self, event: &Event) -> Result<()> {
        let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
        if self.output.is_json() {
            return self.output.document(&json!({"event": event.kind(), "data": data}));
        }
        match event.kind() {
            "delta" => {
                let delta: ThreadDelta = read(&data)?;
                if delta.turn != self.turn {
                    self.end_line()?;
                    self.turn = delta.turn;
                }
                self.spoken.push_str(&delta.text);
                self.output.piece(&printable(&delta.text))?;
            }
            "restarted" => {
                self.end_line()?;
                self.output.talk("(it starts that again)");
            }
            "tool_call" => {
                self.end_line()?;
                let call: ToolCallInfo = read(&data)?;
                let arguments = one_line(&call.arguments.to_string());
                self.output.talk(&format!("- {} {arguments}", printable(&call.tool_name)));
            }
            "tool_result" => {
                if let Some(why) = data["error"].as_str() {
                    self.output.talk(&format!("  it was not done: {}", one_line(why)));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends a line that was printed piece by piece.
    fn end_line(&mut self) -> Result<()> {
        if std::mem::take(&mut self.spoken).is_empty() {
            return Ok(());
        }
        self.output.piece("\n")
    }

    /// The answer, printed where it was not heard already.
    fn result(&mut self, event: &Event) -> Result<ThreadAnswer> {
        let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
        let spoken = self.spoken.clone();
        if self.output.is_json() {
            self.output.document(&json!({"event": "result", "data": data}))?;
        } else {
            self.end_line()?;
        }
        if data["status"] == "error" {
            return Err(problem(500, Some(data)));
        }
        let answer: ThreadAnswer = read(&data)?;
        let response = answer.response.as_deref().unwrap_or_default();
        let is_new = spoken.trim() != response.trim();
        if !self.output.is_json() && answer.status == ThreadStatus::Success && is_new {
            self.output.text(&printable(response))?;
        }
        Ok(answer)
    }

    /// What a person answers to what is asked; none where there is nothing more to read.
    async fn answered(&mut self, action: PendingAction) -> Result<Option<ResumeThread>> {
        let mut body = ResumeThread { thread_id: self.thread.clone(), ..ResumeThread::default() };
        match action {
            PendingAction::Clarification { clarifications } => {
                let Some(answers) = self.clarify(&clarifications).await? else { return Ok(None) };
                body.clarification_responses = Some(answers);
            }
            PendingAction::Confirmation { tool_calls } => {
                let Some(approvals) = self.decide(&tool_calls).await? else { return Ok(None) };
                body.approvals = Some(approvals);
            }
            PendingAction::FormElicitation { elicitation_id, schema, message } => {
                self.show_anew(&cards::form(&message, &schema)).await?;
                let Some(content) = self.fill().await? else { return Ok(None) };
                let action = match content {
                    Some(_) => ElicitationAction::Accept,
                    None => ElicitationAction::Decline,
                };
                let response = ElicitationResponse { elicitation_id, action, content };
                body.elicitation_responses = Some(vec![response]);
            }
            PendingAction::OauthUrl { .. } => return Ok(None),
        }
        Ok(Some(body))
    }

    /// Prints a card; a program has it in the event already.
    fn show(&self, card: &str) -> Result<()> {
        if self.output.is_json() { Ok(()) } else { self.output.text(card) }
    }

    /// The same with what has to be answered: no one can have answered it before they saw it.
    async fn show_anew(&mut self, card: &str) -> Result<()> {
        self.show(card)?;
        if self.lines.drop_typed_ahead().await? {
            self.output.talk("(what was typed before this is dropped)");
        }
        Ok(())
    }

    async fn clarify(
        &mut self,
        asked: &[ClarificationInfo],
    ) -> Result<Option<Vec<ClarificationResponse>>> {
        let mut answers = Vec::new();
        for one in asked {
            self.show_anew(&cards::question(one)).await?;
            let Some(response) = self.words("answer> ").await? else { return Ok(None) };
            answers.push(ClarificationResponse { call_id: one.call_id.clone(), response });
        }
        Ok(Some(answers))
    }

    async fn decide(&mut self, calls: &[ToolCallInfo]) -> Result<Option<Vec<Approval>>> {
        let mut approvals = Vec::new();
        let mut all = false;
        for (index, call) in calls.iter().enumerate() {
            let mut approval = threads::approval(&call.call_id);
            let card = cards::call(call, index, calls.len());
            let said = if all {
                self.show(&card)?;
                Some(Said::Yes)
            } else {
                self.show_anew(&card).await?;
                self.choice().await?
            };
            match said {
                None => return Ok(None),
                Some(Said::Yes) => {}
                Some(Said::All) => all = true,
                Some(Said::No) => {
                    let Some(why) = self.words("why not> ").await? else { return Ok(None) };
                    (approval.approved, approval.feedback) = (false, Some(why));
                }
                Some(Said::Edit) => {
                    let Some(arguments) = self.arguments().await? else { return Ok(None) };
                    approval.arguments = Some(arguments);
                }
            }
            approvals.push(approval);
        }
        Ok(Some(approvals))
    }

    async fn choice(&mut self) -> Result<Option<Said>> {
        loop {
            let Some(typed) = self.lines.ask("run it? [y]es [n]o [e]dit [a]ll> ").await? else {
                return Ok(None);
            };
            match Said::read(&typed.text) {
                _ if typed.is_pasted => {
                    self.output.talk("a paste does not answer this: type y, n, e or a");
                }
                Some(said) => return Ok(Some(said)),
                None => self.output.talk("y, n, e or a"),
            }
            // Lines that came with one that is no answer are none either.
            self.lines.drop_typed_ahead().await?;
        }
    }

    /// A line that says something.
    async fn words(&mut self, prompt: &str) -> Result<Option<String>> {
        loop {
            match self.lines.ask(prompt).await? {
                Some(typed) if typed.text.trim().is_empty() => {}
                typed => return Ok(typed.map(|typed| typed.text.trim().to_owned())),
            }
        }
    }

    /// The arguments with which a call may run. A person who has typed `e` may paste them; lines
    /// that came together with the `e` do not count.
    async fn arguments(&mut self) -> Result<Option<Value>> {
        self.lines.drop_typed_ahead().await?;
        loop {
            let Some(line) = self.words("arguments, JSON or @file> ").await? else {
                return Ok(None);
            };
            match input::text_or_file(&line) {
                Ok(value) => return Ok(Some(value)),
                Err(failure) => self.output.failure(&failure),
            }
        }
    }

    /// What a form is filled in with; the inner none declines it.
    async fn fill(&mut self) -> Result<Option<Option<Value>>> {
        loop {
            let Some(line) = self.words("name=value .., JSON or @file> ").await? else {
                return Ok(None);
            };
            if line == "/decline" {
                return Ok(Some(None));
            }
            let words: Vec<String> = match line.starts_with(['{', '@']) {
                true => vec![line],
                false => line.split_whitespace().map(str::to_owned).collect(),
            };
            match input::words(&words) {
                Ok(value) => return Ok(Some(Some(value))),
                Err(failure) => self.output.failure(&failure),
            }
        }
    }

    /// Shows the page, and waits until the run continues by itself.
    async fn await_login(&mut self, message: &str, url: &str) -> Result<ThreadAnswer> {
        self.show(&format!("[login] {}\n  {}", printable(message), printable(url)))?;
        self.output.talk("waiting for the login; Ctrl-C gives it up");
        loop {
            let session = self.session().await?;
            let over = session.status.is_over();
            let run = session.run.clone();
            if let Some(answer) = gone_on(session) {
                if over && self.output.is_json() {
                    self.output.document(&json!({"event": "result", "data": answer}))?;
                } else if over {
                    let response = answer.response.as_deref().unwrap_or_default();
                    self.output.text(&printable(response))?;
                }
                return Ok(answer);
            }
            tokio::select! {
                () = tokio::time::sleep(LOGIN_LOOK) => {}
                Ok(()) = tokio::signal::ctrl_c(), if self.lines.is_person => {
                    self.cancel(run.as_deref()).await;
                }
            }
        }
    }

    async fn session(&self) -> Result<Session> {
        let request = Request::to(&["sessions", &self.thread]).with("space", Some("thread"));
        read(&self.client.get(request).await?)
    }
}

/// What a line is for.
enum Meant {
    Say(String),
    Leave,
    Nothing,
}

/// What a thread came to after a login; none while it still waits for that.
fn gone_on(session: Session) -> Option<ThreadAnswer> {
    let state = session.request_state?;
    let said = |response| ThreadAnswer { response, ..ThreadAnswer::new(ThreadStatus::Success) };
    match (session.status, state.pending_action) {
        (_, Some(PendingAction::OauthUrl { .. })) | (Status::Running, _) => None,
        (Status::Completed, _) => Some(said(state.final_response)),
        (_, Some(action)) => Some(threads::waiting(action)),
        (_, None) => {
            let why = session.last_error.map(|fault| fault.message);
            Some(said(why.or_else(|| Some(format!("it is {}", session.status.name())))))
        }
    }
}
