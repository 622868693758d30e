//! `waypost resume`: answers what a thread waits for.

use crate::commands::wait;
use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{Client, Request, read};
use crate::terminal::input;
use crate::threads;
use clap::Args;
use serde_json::{Value, json};
use wire::conversations::{
    Approval, ClarificationResponse, ElicitationAction, ElicitationResponse, PendingAction,
    ResumeThread, ThreadAnswer,
};
use wire::rest::Session;

const EXAMPLES: &str = "\
Examples:
  waypost resume work                                      # shows what it waits for
  waypost resume work --answer 'a meeting tomorrow at 3pm' # the only question
  waypost resume work --approve call_..
  waypost resume work --approve call_1.. --reject call_2.. --feedback 'I have other plans'
  waypost resume work --edit call_..=@arguments.json       # approves it with other arguments
  waypost resume work --form ask_..='{\"name\": \"Ada\"}'";

/// What `waypost resume` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ResumeArgs {
    /// The thread
    thread: String,
    /// Let this call run
    #[arg(long, value_name = "CALL")]
    approve: Vec<String>,
    /// Let this call run with other arguments, the whole of them
    #[arg(long, value_name = "CALL=JSON|@FILE")]
    edit: Vec<String>,
    /// Do not let this call run
    #[arg(long, value_name = "CALL", requires = "feedback")]
    reject: Vec<String>,
    /// Why not: the agent reads it
    #[arg(long, value_name = "TEXT", requires = "reject")]
    feedback: Option<String>,
    /// The answer to a question; its call may be left out where it is the only one
    #[arg(long, value_name = "CALL=TEXT")]
    answer: Vec<String>,
    /// A form, filled in
    #[arg(long, value_name = "ASK=JSON|@FILE")]
    form: Vec<String>,
    /// A form or a login that you will not do
    #[arg(long, value_name = "ASK")]
    decline: Vec<String>,
    /// A login that is done, where Waypost does not notice by itself
    #[arg(long, value_name = "ASK")]
    done: Vec<String>,
    /// How many seconds to wait for the agent to end or ask again
    #[arg(long, value_name = "SECS", default_value_t = 60, value_parser = wait)]
    wait: u64,
}

/// Runs `waypost resume`.
pub(crate) async fn run(args: ResumeArgs, context: &Context) -> Result<Exit> {
    let client = context.client().await?;
    let body = body(&client, &args).await?;
    let says_something = body.approvals.is_some()
        || body.clarification_responses.is_some()
        || body.elicitation_responses.is_some();
    if !says_something {
        return show(context, &client, &args.thread).await;
    }
    let body = json!(body);
    context.leaves_running(&args.thread);
    let asked = client.thread("resume", args.wait, &body);
    let body = context.progress().during("waiting for the agent", asked).await?;
    let answer: ThreadAnswer = read(&body)?;
    threads::tell(context, &body, &args.thread, &answer)
}

/// What the options say, as the server takes it.
async fn body(client: &Client, args: &ResumeArgs) -> Result<ResumeThread> {
    let mut approvals: Vec<Approval> =
        args.approve.iter().map(|call| threads::approval(call)).collect();
    for edit in &args.edit {
        let (call, arguments) = named(edit, "--edit CALL=JSON")?;
        let arguments = Some(input::text_or_file(arguments)?);
        approvals.push(Approval { arguments, ..threads::approval(call) });
    }
    let rejected = |call: &String| {
        let feedback = args.feedback.clone();
        Approval { approved: false, feedback, ..threads::approval(call) }
    };
    approvals.extend(args.reject.iter().map(rejected));
    let answers = answers(client, args).await?;
    let elicited = elicited(args)?;
    Ok(ResumeThread {
        thread_id: args.thread.clone(),
        clarification_responses: (!answers.is_empty()).then_some(answers),
        approvals: (!approvals.is_empty()).then_some(approvals),
        elicitation_responses: (!elicited.is_empty()).then_some(elicited),
    })
}

fn elicited(args: &ResumeArgs) -> Result<Vec<ElicitationResponse>> {
    let response = |id: &str, action, content| ElicitationResponse {
        elicitation_id: id.to_owned(),
        action,
        content,
    };
    let mut elicited = Vec::new();
    for form in &args.form {
        let (ask, content) = named(form, "--form ASK=JSON")?;
        let content = Some(input::text_or_file(content)?);
        elicited.push(response(ask, ElicitationAction::Accept, content));
    }
    elicited.extend(args.done.iter().map(|ask| response(ask, ElicitationAction::Accept, None)));
    let declined = |ask: &String| response(ask, ElicitationAction::Decline, None);
    elicited.extend(args.decline.iter().map(declined));
    Ok(elicited)
}

async fn answers(client: &Client, args: &ResumeArgs) -> Result<Vec<ClarificationResponse>> {
    let mut answers = Vec::new();
    for answer in &args.answer {
        let (call_id, text) = match answer.split_once('=').filter(|(id, _)| is_id(id)) {
            Some((id, text)) => (id.to_owned(), text),
            None => (only_question(client, &args.thread).await?, answer.as_str()),
        };
        answers.push(ClarificationResponse { call_id, response: text.to_owned() });
    }
    Ok(answers)
}

/// A text may hold `=` as well, but never begins with an id.
fn is_id(text: &str) -> bool {
    text.starts_with("call_") || text.starts_with("ask_")
}

/// The one question that a thread asks.
async fn only_question(client: &Client, thread: &str) -> Result<String> {
    match pending(client, thread).await?.1 {
        Some(PendingAction::Clarification { clarifications }) if clarifications.len() == 1 => {
            Ok(clarifications[0].call_id.clone())
        }
        Some(PendingAction::Clarification { .. }) => Err(Failure::usage(format!(
            "thread `{thread}` asks several questions"
        ))
        .hint(format!("name each: --answer CALL=TEXT; `waypost resume {thread}` shows them"))),
        _ => Err(Failure::usage(format!("thread `{thread}` asks no question"))
            .hint(format!("`waypost resume {thread}` shows what it waits for"))),
    }
}

/// What a thread waits for, and the session as the server shows it.
async fn pending(client: &Client, thread: &str) -> Result<(Value, Option<PendingAction>)> {
    let request = Request::to(&["sessions", thread]).with("space", Some("thread"));
    let body = client.get(request).await.map_err(|failure| unknown(thread, failure))?;
    let session: Session = read(&body)?;
    let state = session.request_state;
    Ok((body, state.and_then(|state| state.pending_action)))
}

/// The server looks for a session there, but what was named is a thread.
fn unknown(thread: &str, failure: Failure) -> Failure {
    if failure.code != "not_found" {
        return failure;
    }
    let message = format!("there is no thread `{thread}`");
    Failure { message, ..failure }.hint("`waypost run --thread` begins one")
}

async fn show(context: &Context, client: &Client, thread: &str) -> Result<Exit> {
    let (body, action) = pending(client, thread).await?;
    let Some(action) = action else {
        let show = context.command(&format!("waypost session show {thread}"));
        return Err(Failure::usage(format!("thread `{thread}` waits for no one"))
            .hint(format!("`{show}` shows where it stands")));
    };
    let action_body = &body["requestState"]["pending_action"];
    threads::tell(context, action_body, thread, &threads::waiting(action))
}

/// `ID=VALUE`.
fn named<'a>(text: &'a str, usage: &str) -> Result<(&'a str, &'a str)> {
    let split = text.split_once('=').filter(|(id, _)| is_id(id));
    split.ok_or_else(|| {
        Failure::usage(format!("`{text}` names no call and no ask")).hint(format!("give `{usage}`"))
    })
}
