//! `waypost run`: says something to an agent and prints the outcome.

use crate::asking::{Asker, following};
use crate::commands::wait;
use crate::context::Context;
use crate::exit::{Exit, Result};
use crate::remote::client::{Client, Request, read};
use crate::threads;
use clap::Args;
use serde_json::{Value, json};
use wire::conversations::{PendingAction, ResumeThread, RunThread, ThreadAnswer};
use wire::rest::{RunAnswer, Session};

const EXAMPLES: &str = "\
Examples:
  waypost run show me what is on my calendar         # quotes are needed for ? and the like
  waypost run assistant 'create a meeting called Standup tomorrow at 9am' --thread work
  waypost run 'and move it to 10am' --thread work    # continues the conversation
  waypost run 'add 2 and 3' --approve-all            # its calls need no answer
  waypost --json run 'schedule something'            # exit code 3: a person is asked";

/// What `waypost run` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// What you want; before it the agent, where it is not the default one
    #[arg(value_name = "AGENT|TEXT", num_args = 1.., required = true)]
    words: Vec<String>,
    /// The thread to continue; a new one if absent
    #[arg(long, value_name = "ID")]
    thread: Option<String>,
    /// Let all calls run that need an approval; questions and forms are still asked
    #[arg(long)]
    approve_all: bool,
    /// How many seconds to wait for the agent to end or ask
    #[arg(long, value_name = "SECS", default_value_t = 60, value_parser = wait)]
    wait: u64,
}

/// Runs `waypost run`.
pub(crate) async fn run(args: RunArgs, context: &Context) -> Result<Exit> {
    let client = context.client().await?;
    let (agent, user_request) = agent_and_text(&client, &args.words).await;
    let thread = args.thread.unwrap_or_else(threads::new_id);
    let body = RunThread { thread_id: thread.clone(), user_request, agent };
    let body = json!(body);
    context.leaves_running(&thread);
    let asked = client.thread("run", args.wait, &body);
    let asked = context.progress().during("waiting for the agent", asked).await;
    let busy_hint = threads::busy_hint(context, &thread);
    let mut body = asked.map_err(|failure| threads::refused(&busy_hint, failure))?;
    if args.approve_all {
        body = approved(context, &client, &thread, args.wait, body).await?;
    }
    let answer: ThreadAnswer = read(&body)?;
    let asker = answer.pending_action.as_ref().and_then(|_| Asker::of(context));
    match asker {
        Some(asker) => ask(context, &client, asker, &thread).await,
        None => threads::tell(context, &body, &thread, &answer),
    }
}

/// Approves what the thread asks about calls, until it ends or asks something else.
async fn approved(
    context: &Context,
    client: &Client,
    thread: &str,
    wait: u64,
    mut body: Value,
) -> Result<Value> {
    loop {
        let answer: ThreadAnswer = read(&body)?;
        let Some(PendingAction::Confirmation { tool_calls }) = answer.pending_action else {
            return Ok(body);
        };
        let approvals = tool_calls.iter().map(|call| threads::approval(&call.call_id)).collect();
        let thread_id = thread.to_owned();
        let reply =
            ResumeThread { thread_id, approvals: Some(approvals), ..ResumeThread::default() };
        let reply = json!(reply);
        let asked = client.thread("resume", wait, &reply);
        body = context.progress().during("waiting for the agent", asked).await?;
    }
}

/// Asks the person at the terminal what the thread asks, until its run ends.
async fn ask(context: &Context, client: &Client, asker: Asker, thread: &str) -> Result<Exit> {
    let request = Request::to(&["sessions", thread]).with("space", Some("thread"));
    let session: Session = read(&client.get(request).await?)?;
    let run = session.run.unwrap_or_default();
    let answer: RunAnswer = read(&client.get(Request::to(&["runs", &run])).await?)?;
    following::answered(context, client, asker, answer.run).await
}

/// Of several words the first is an agent if the server knows one of that name. Before a request
/// in quotes it is meant as one in any case: a name that is misspelt is refused and not said to
/// another agent, as in `run asistant 'what is new?'`.
async fn agent_and_text(client: &Client, words: &[String]) -> (Option<String>, String) {
    match words {
        [agent, text] if text.contains(char::is_whitespace) => (Some(agent.clone()), text.clone()),
        [first, rest @ ..] if !rest.is_empty() => {
            // If the server cannot be asked, the request that follows fails and says why.
            let is_agent = client.get(Request::to(&["agents", first])).await.is_ok();
            if is_agent { (Some(first.clone()), rest.join(" ")) } else { (None, words.join(" ")) }
        }
        words => (None, words.join(" ")),
    }
}
