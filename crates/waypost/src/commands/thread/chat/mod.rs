//! `waypost chat`: a conversation with an agent, as it goes. What it asks is answered on the spot;
//! Ctrl-C cancels what is under way and not the chat.

mod cards;
mod line_intent;
mod answers;
mod other_answers;
mod thread_state;
mod stuck;

use crate::asking::prompts::{Answer, Unanswered};
use crate::context::Context;
use crate::exit::{Exit, Result};
use crate::remote::client::{CUT, Client, Request, problem, read};
use crate::remote::sse::Stream;
use crate::remote::suggestions::{self, AGENTS};
use crate::terminal::editor::Words;
use crate::terminal::lines::Lines;
use crate::terminal::output::{Output, one_line, printable};
use crate::terminal::prose::Prose;
use crate::terminal::screen::Screen;
use crate::threads;
use clap::Args;
use line_intent::{AGENT, COMMANDS, LineIntent};
use outbound::sse::Event;
use serde_json::{Value, json};
use std::io::{IsTerminal, stdin};
use wire::conversations::{
    Approval, PendingAction, RunThread, ThreadAnswer, ThreadDelta, ThreadStatus, ToolCallInfo,
};

const EXAMPLES: &str = "\
Examples:
  waypost chat                                  # with the default agent, in a new thread
  waypost chat assistant --thread work          # continues a conversation
  echo 'what is on my calendar?' | waypost chat

While it works Ctrl-C cancels what it does, and not the chat. /quit leaves, /help says more.";

/// How often a request is sent at most: it may be what ends the server.
const SENDS_MAX: usize = 3;
/// So many open asks of a thread are read.
const ASKS_MAX: usize = 100;

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
    let is_known = args.thread.is_some();
    let thread = args.thread.unwrap_or_else(threads::new_id);
    let client = context.client().await?;
    client.ready().await?;
    if let Some(agent) = &args.agent {
        let asked = client.get(Request::to(&["agents", agent]));
        suggestions::or_suggest(&client, AGENTS, agent, asked).await?;
    }
    let names = if stdin().is_terminal() {
        suggestions::names_of(&client, AGENTS).await
    } else {
        Vec::new()
    };
    let mut chat = Chat {
        output: context.output,
        client,
        agent: args.agent,
        busy_hint: threads::busy_hint(context, &thread),
        thread,
        lines: Lines::of_conversation(Words { commands: COMMANDS, naming: AGENT, names }),
        spoken: String::new(),
        prose: Prose::new(Screen::of_stdout()),
        turn: 0,
        decided: Vec::new(),
        card: String::new(),
    };
    chat.output.talk(&format!("thread {}; /help says what else can be typed", chat.thread));
    if is_known && chat.lines.is_person {
        let came = chat.reopen().await;
        if let Some(exit) = chat.ends(came)? {
            return Ok(exit);
        }
    }
    chat.go().await
}

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
    /// The same, as it is shown.
    prose: Prose,
    /// Which turn that is.
    turn: u32,
    /// What was decided in a reply that the server refused.
    decided: Vec<Approval>,
    /// What was asked last.
    card: String,
}

impl Chat {
    async fn go(&mut self) -> Result<Exit> {
        loop {
            let Some(typed) = self.lines.ask("> ").await? else { return Ok(Exit::Ok) };
            let came = match self.meant(typed.text.trim())? {
                LineIntent::Nothing | LineIntent::Later => continue,
                LineIntent::Leave => return Ok(Exit::Ok),
                LineIntent::Card => self.reopen().await,
                LineIntent::Agent(name) => self.switch(&name).await.map_err(Unanswered::Failed),
                LineIntent::Say(line) => {
                    self.lines.remember(&line);
                    self.say(&line).await
                }
            };
            if let Some(exit) = self.ends(came)? {
                return Ok(exit);
            }
        }
    }

    /// From now on this agent is talked to, if there is one.
    async fn switch(&mut self, name: &str) -> Result<()> {
        let asked = self.client.get(Request::to(&["agents", name]));
        suggestions::or_suggest(&self.client, AGENTS, name, asked).await?;
        self.output.talk(&format!("(you talk to `{name}` from now on)"));
        self.agent = Some(name.to_owned());
        Ok(())
    }

    /// How the chat ends after this; none if it continues. A person reads a failure and continues,
    /// a program has to know.
    fn ends(&self, came: Answer<()>) -> Result<Option<Exit>> {
        match came {
            Ok(()) | Err(Unanswered::AlreadyDecided) => Ok(None),
            Err(Unanswered::Later) => {
                self.output.talk("(it waits for your answer: /card shows it again)");
                Ok(None)
            }
            Err(Unanswered::Leave) => Ok(Some(Exit::Paused)),
            Err(Unanswered::Failed(failure)) if self.lines.is_person => {
                self.output.failure(&failure);
                Ok(None)
            }
            Err(Unanswered::Failed(failure)) => Err(failure),
        }
    }

    /// Says something, and answers what is asked until it is done.
    async fn say(&mut self, text: &str) -> Answer<()> {
        let body = RunThread {
            thread_id: self.thread.clone(),
            user_request: text.to_owned(),
            agent: self.agent.clone(),
        };
        let answer = self.follow("run", &json!(body)).await;
        self.finish(answer).await
    }

    /// Answers what is asked until it is done.
    async fn finish(&mut self, mut outcome: Result<ThreadAnswer>) -> Answer<()> {
        loop {
            if stuck::is_stuck(&outcome)
                && let Some((ask, proposal)) = self.proposed().await?
            {
                outcome = match self.take(&ask, &proposal).await {
                    Err(Unanswered::AlreadyDecided) => self.outcome(thread_state::standing).await,
                    taken => Ok(taken?),
                };
                continue;
            }
            let Some(action) = outcome?.pending_action else { return Ok(()) };
            if let PendingAction::OauthUrl { url, message, .. } = &action {
                outcome = self.await_login(message, url).await;
                continue;
            }
            outcome = match self.answered(&action).await {
                Ok(body) => self.resume(action, &json!(body)).await,
                Err(Unanswered::AlreadyDecided) => {
                    self.decided.clear();
                    self.outcome(thread_state::standing).await
                }
                Err(Unanswered::Failed(failure)) => return Err(failure.into()),
                Err(unanswered) => {
                    self.decided.clear();
                    return Err(unanswered);
                }
            };
        }
    }

    /// Sends what a person answered. What the server refuses is asked for again; where someone else
    /// decided first, that is shown, and the outcome.
    async fn resume(&mut self, action: PendingAction, body: &Value) -> Result<ThreadAnswer> {
        let failure = match self.follow("resume", body).await {
            Err(failure) if self.lines.is_person => failure,
            answer => {
                self.decided.clear();
                return answer;
            }
        };
        match failure.exit {
            Exit::Usage => {
                self.output.failure(&failure);
                Ok(threads::waiting(action))
            }
            Exit::Failed if failure.code == "ask_decided" => {
                self.decided.clear();
                self.output.failure(&failure);
                self.outcome(thread_state::standing).await
            }
            _ => {
                self.decided.clear();
                Err(failure)
            }
        }
    }

    /// Follows a request to its answer, and prints what is heard on the way.
    async fn follow(&mut self, endpoint: &str, body: &Value) -> Result<ThreadAnswer> {
        self.spoken = String::new();
        self.turn = 0;
        // What a stream that broke off left is no part of what comes now.
        let _ = self.prose.end();
        let begun = self.begin(endpoint, body).await;
        let mut stream = begun.map_err(|failure| threads::refused(&self.busy_hint, failure))?;
        let mut cancelled = false;
        loop {
            let event = tokio::select! {
                event = stream.next() => match event {
                    Err(why) if self.lines.is_person && why.exit == Exit::Unreachable => {
                        self.end_line()?;
                        return self.after_cut(stream.run.as_deref(), why).await;
                    }
                    event => event?,
                },
                Ok(()) = tokio::signal::ctrl_c(), if self.lines.is_person && !cancelled => {
                    cancelled = true;
                    self.cancel(stream.run.as_deref()).await;
                    continue;
                }
            };
            if event.kind() == "result" {
                return self.result(&event);
            }
            self.take_event(&event)?;
        }
    }

    /// Sends a request. Where the server goes away before it answers, no one knows whether it was
    /// recorded: it is sent again once the server is back, under a key that lets it count once.
    async fn begin(&self, endpoint: &str, body: &Value) -> Result<Stream> {
        let key = threads::new_key();
        for _ in 1..SENDS_MAX {
            match Stream::begin(&self.client, endpoint, &key, body).await {
                Err(why) if self.lines.is_person && why.code == CUT => {
                    self.await_server(why).await?;
                }
                begun => return begun,
            }
        }
        Stream::begin(&self.client, endpoint, &key, body).await
    }

    async fn cancel(&self, run: Option<&str>) {
        let Some(run) = run else { return };
        let asked = self.client.post(Request::to(&["runs", run, "cancel"]), &json!({})).await;
        self.output.or_tell(asked);
    }

    fn take_event(&mut self, event: &Event) -> Result<()> {
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
                let piece = self.prose.push(&printable(&delta.text));
                self.output.piece(&piece)?;
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
                    // Another agent of the same run may speak meanwhile.
                    self.end_line()?;
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
        let rest = self.prose.end();
        self.output.piece(&format!("{rest}\n"))
    }

    /// Prints an answer as a whole.
    fn answer(&mut self, response: &str) -> Result<()> {
        let text = self.prose.push(&printable(response));
        let rest = self.prose.end();
        self.output.piece(&format!("{text}{rest}\n"))
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
            self.answer(response)?;
        }
        Ok(answer)
    }
}
