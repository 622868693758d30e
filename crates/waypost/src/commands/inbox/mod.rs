//! `waypost inbox`: lists open asks, shows and answers them.

mod replies;
mod walk;

use crate::asking::{self, Asker};
use crate::context::{Context, Listing};
use crate::exit::{Exit, Failure, Result};
use crate::outcome;
use crate::proposals;
use crate::remote::client::{Client, Request, read};
use crate::remote::id_lookup::{self, ASKS};
use crate::terminal::output::{Fields, printable};
use clap::{Args, Subcommand, ValueEnum};
use kernel::values::visible::{exposed, exposed_json};
use serde_json::{Value, json};
use wire::rest::{
    Ask, AskSession, AskStatus, AskedCall, Fault, FixAction, HeldAsk, Run, Status, TriedRule,
};

const EXAMPLES: &str = "\
Examples:
  waypost inbox                                                 # answer them one by one
  waypost inbox ls
  waypost inbox show ask_..
  waypost inbox answer ask_.. Ada                               # a question
  waypost inbox answer --last Ada                               # the one that was asked last
  waypost inbox show ask_14a64177                               # the beginning of an id is enough
  waypost inbox answer ask_.. call_1..=tomorrow call_2..=Ada    # several of an agent
  waypost inbox answer ask_.. name=Ada age=36                   # a form
  waypost inbox answer ask_.. --json-input @form.json           # a form from a file
  waypost inbox answer ask_.. --action retry                    # a failed step
  waypost inbox answer ask_.. --action edit --arguments '{\"a\": 1, \"b\": 2}'
  waypost inbox answer ask_.. --proposal                        # what a model proposes
  waypost inbox approve ask_..
  waypost inbox approve ask_.. --call call_1.. --feedback 'one is enough'
  waypost inbox approve ask_.. --edit call_1..='{\"a\": 1}'       # with other arguments
  waypost inbox reject ask_.. --feedback 'not before Monday'";

/// How many asks are listed unless said otherwise.
const LIST_ITEMS: usize = 50;

/// What `waypost inbox` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InboxArgs {
    // Without one, a person walks through the open asks and a program gets the list.
    #[command(subcommand)]
    command: Option<InboxCommand>,
}

#[derive(Debug, Subcommand)]
enum InboxCommand {
    /// List open asks, oldest first
    Ls {
        /// Only those of this session: ses_.. or the client's own key
        #[arg(long)]
        session: Option<String>,
        /// How many at most
        #[arg(long, default_value_t = LIST_ITEMS, value_parser = crate::commands::limit)]
        limit: usize,
        /// Those that rules hold, instead of those that are for people
        #[arg(long)]
        held: bool,
    },
    /// Show one ask with all that it asks
    Show(Which),
    /// Answer a question, a form or a failed step
    Answer(AnswerArgs),
    /// Let the calls of an ask run
    Approve(ApproveArgs),
    /// Do not let the calls of an ask run
    Reject(RejectArgs),
}

#[derive(Debug, Args)]
struct Which {
    /// The ask's id, or the beginning of it
    #[arg(required_unless_present = "last", conflicts_with = "last")]
    ask: Option<String>,
    /// The ask that was opened last
    #[arg(long)]
    last: bool,
}

#[derive(Debug, Args)]
struct AnswerArgs {
    /// The ask's id, or the beginning of it; with --last the first word of the answer
    #[arg(required_unless_present = "last")]
    ask: Option<String>,
    /// The answer to a question as text, to several `CALL=TEXT ..`; to a form `key=value ..`, a
    /// JSON text or @file
    #[arg(conflicts_with_all = ["json_input", "action"])]
    text: Vec<String>,
    /// The ask that was opened last
    #[arg(long)]
    last: bool,
    /// The answer as JSON
    #[arg(long, value_name = "JSON|@FILE", conflicts_with = "action")]
    json_input: Option<String>,
    /// What to do about a failed step, or `decline`, or `done` for a URL that was opened
    #[arg(long, value_enum)]
    action: Option<Action>,
    /// For `--action edit`: the whole edited arguments
    #[arg(long, value_name = "JSON|@FILE", requires = "action")]
    arguments: Option<String>,
    /// For `--action skip` and `settle`: what stands for the step's output
    #[arg(long, value_name = "JSON|@FILE", requires = "action")]
    output: Option<String>,
    /// For `--action correct`: the plan that finds out what to do
    #[arg(long, requires = "action")]
    plan: Option<String>,
    /// For `--action done`: the code that the page of your login showed
    #[arg(long, requires = "action")]
    code: Option<String>,
    /// Take what the ask of a failed step proposes
    #[arg(long, conflicts_with_all = ["text", "json_input", "action"])]
    proposal: bool,
    /// How many seconds to wait for the run to end or pause again
    #[arg(long, value_name = "SECS", default_value_t = 30, value_parser = crate::commands::wait)]
    wait: u64,
}

#[derive(Debug, Args)]
struct ApproveArgs {
    #[command(flatten)]
    which: Which,
    /// Approve only this call; the other calls of the ask are rejected
    #[arg(long = "call", value_name = "CALL")]
    calls: Vec<String>,
    /// Approve this call with other arguments, the whole of them
    #[arg(long = "edit", value_name = "CALL=JSON|@FILE")]
    edits: Vec<String>,
    /// Why the other calls are rejected; sent back to who asked
    #[arg(long, value_name = "TEXT", default_value = "not approved")]
    feedback: String,
    /// How many seconds to wait for the run to end or pause again
    #[arg(long, value_name = "SECS", default_value_t = 30, value_parser = crate::commands::wait)]
    wait: u64,
}

#[derive(Debug, Args)]
struct RejectArgs {
    #[command(flatten)]
    which: Which,
    /// Reject only this call; the other calls of the ask are approved
    #[arg(long = "call", value_name = "CALL")]
    calls: Vec<String>,
    /// Why; sent back to who asked
    #[arg(long, value_name = "TEXT")]
    feedback: String,
    /// How many seconds to wait for the run to end or pause again
    #[arg(long, value_name = "SECS", default_value_t = 30, value_parser = crate::commands::wait)]
    wait: u64,
}

impl AnswerArgs {
    /// With `--last` no word names an ask: all of them are the answer.
    fn take_words(&mut self) -> Result<()> {
        let Some(word) = self.ask.take_if(|_| self.last) else { return Ok(()) };
        if self.json_input.is_some() || self.action.is_some() {
            return Err(Failure::usage(format!("`{word}` is one answer too many"))
                .hint("`--last` names the ask: leave the word or the option out"));
        }
        self.text.insert(0, word);
        Ok(())
    }
}

/// What can be said instead of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Action {
    /// A failed step: once more, as it was
    Retry,
    /// A failed step: once more, with --arguments
    Edit,
    /// A failed step: continue without it
    Skip,
    /// A failed step: end the run as failed
    Abort,
    /// A failed step: it did happen, --output is its result
    Settle,
    /// A failed step: run --plan, which finds out what to do
    Correct,
    /// A URL: it was opened and done
    Done,
    /// A question, a form or a URL: no
    Decline,
}

/// Runs `waypost inbox`.
pub(crate) async fn run(args: InboxArgs, context: &Context) -> Result<Exit> {
    let client = context.client().await?;
    let Some(command) = args.command else {
        return match Asker::of(context) {
            Some(mut asker) => walk::run(context, &client, &mut asker).await,
            None => {
                let request = Request::to(&["asks"]).with("status", Some("open"));
                list(context, &client.list(request, LIST_ITEMS).await?)
            }
        };
    };
    match command {
        InboxCommand::Ls { session, limit, held } => {
            let request = Request::to(&["asks"]).with("status", Some("open"));
            let request = request.with("held", held.then_some(true));
            list(context, &client.list(request.with("session", session), limit).await?)
        }
        InboxCommand::Show(which) => show(context, &client, which.ask.as_deref()).await,
        InboxCommand::Answer(mut args) => {
            args.take_words()?;
            let ask = open_ask(&client, args.ask.as_deref()).await?;
            send(context, &client, &ask, &replies::answer(&ask, &args)?, args.wait).await
        }
        InboxCommand::Approve(args) => {
            let ask = open_ask(&client, args.which.ask.as_deref()).await?;
            send(context, &client, &ask, &replies::approval(&ask, &args)?, args.wait).await
        }
        InboxCommand::Reject(args) => {
            let ask = open_ask(&client, args.which.ask.as_deref()).await?;
            send(context, &client, &ask, &replies::rejection(&ask, &args)?, args.wait).await
        }
    }
}

fn list(context: &Context, body: &Value) -> Result<Exit> {
    let none = "no asks are open: no run waits for a person";
    let listing = Listing { noun: "open ask", heads: &outcome::ASK_HEADS, none };
    context.table(body, listing, outcome::ask_row)
}

async fn show(context: &Context, client: &Client, ask: Option<&str>) -> Result<Exit> {
    let ask = resolved(client, ask).await?;
    let body = client.get(Request::to(&["asks", &ask])).await?;
    let said = match context.output.is_json() {
        true => None,
        false => asking::last_request(client, &read(&body)?).await,
    };
    context.show(&body, |ask: Ask| {
        context.output.text(&fields(&ask, said.as_deref()).text())?;
        if ask.status == AskStatus::Open {
            context.output.talk("answer with");
            outcome::tell_answers(context, &ask);
        }
        Ok(())
    })
}

fn fields(ask: &Ask, said: Option<&str>) -> Fields {
    let mut fields = Fields::default();
    fields.add("ask", ask.id.as_str());
    fields.add("kind", ask.kind.name());
    fields.add("status", plain_name(&json!(ask.status)));
    let AskSession { id, key, .. } = &ask.session;
    fields.add("session", if id == key { id.clone() } else { format!("{id} ({key})") });
    fields.add("run", ask.run.as_str());
    fields.add("step", ask.step.as_str());
    fields.add("asked by", exposed(&outcome::asked_by(ask)));
    fields.add("said", exposed(said.unwrap_or_default()));
    fields.add("may answer", exposed(&outcome::may_answer(ask)));
    fields.add("created", ask.created_at.as_str());
    fields.add("expires", ask.expires_at.as_deref().unwrap_or("never"));
    fields.add("title", ask.title.as_str());
    // What failed is told below.
    fields.add("asks", if ask.fault.is_none() { ask.body.as_str() } else { "" });
    if let Some(fault) = &ask.fault {
        fields.add("error", exposed(&format!("{}: {}", fault.name, fault.message)));
        fields.add("outcome", ask.how.as_deref().unwrap_or_default());
    }
    let actions: Vec<String> =
        ask.actions.iter().map(|action| plain_name(&json!(action))).collect();
    fields.add("actions", actions.join(", "));
    fields.add("plans", exposed(&ask.plans.join(", ")));
    if let Some(HeldAsk { rule, does, try_no, of, until, .. }) = &ask.held {
        fields.add("held", format!("by rule `{rule}`: {does}, {try_no} of {of}, at {until}"));
    }
    for TriedRule { rule, does, times, found, .. } in &ask.tried {
        let found = found.as_ref().map_or_else(String::new, |found| {
            format!(", found {}", exposed_json(&found.to_string()))
        });
        fields.add("tried", format!("{times} x {does} by rule `{rule}`{found}"));
    }
    for (name, part) in ask.proposal.iter().flat_map(proposals::parts) {
        fields.add(name, part);
    }
    fields.add("url", exposed(ask.url.as_deref().unwrap_or_default()));
    for asked in &ask.questions {
        let about = match asked.context.as_str() {
            "" => String::new(),
            context => format!(" ({context})"),
        };
        fields.add("question", format!("{} {}{about}", asked.call_id, asked.question));
    }
    for call in &ask.calls {
        let AskedCall { call_id, tool, arguments, .. } = call;
        // What is approved is what is seen: not a character of it is hidden.
        let arguments = exposed_json(&arguments.to_string());
        fields.add("call", format!("{call_id} {} {arguments}", exposed(tool)));
        fields.add("does", exposed(&outcome::does(call).unwrap_or_default()));
        fields.add("because", exposed(&outcome::why_asked(call).unwrap_or_default()));
    }
    for (answer, then) in outcome::if_answered(ask) {
        fields.add(answer, exposed(&then));
    }
    fields.add("schema", ask.schema.as_ref().map(outcome::pretty).unwrap_or_default());
    if let Some(decision) = &ask.decision {
        let via = decision.via.as_ref().map_or_else(String::new, |via| format!(" via {via}"));
        fields.add("decided", format!("by {}{via} at {}", decision.by, decision.at));
        fields.add("decision", outcome::pretty(&decision.reply));
    }
    fields
}

/// A word out of its JSON form, without the quotes.
fn plain_name(word: &Value) -> String {
    word.as_str().unwrap_or_default().to_owned()
}

/// The id of the ask that begins like this; without one, of the newest that is open.
async fn resolved(client: &Client, ask: Option<&str>) -> Result<String> {
    match ask {
        Some(id) => id_lookup::resolve(client, ASKS, id).await,
        None => id_lookup::newest(client, ASKS).await,
    }
}

/// The ask as it is now: its kind says what a reply must look like.
async fn open_ask(client: &Client, ask: Option<&str>) -> Result<Ask> {
    let ask = resolved(client, ask).await?;
    read(&client.get(Request::to(&["asks", &ask])).await?)
}

async fn send(
    context: &Context,
    client: &Client,
    ask: &Ask,
    reply: &Value,
    wait: u64,
) -> Result<Exit> {
    let body = asking::send(context, client, ask, reply, wait).await?;
    let run = asking::run_of(&body)?;
    if !is_no(&run, reply) {
        return outcome::tell(context, &body, &run);
    }
    // It did what was asked: that the run fails by it is no failure of this command.
    let why = run.last_error.as_ref().map_or_else(String::new, |fault| {
        format!(": {}: {}", fault.name, printable(&fault.message))
    });
    context.output.done(&body, &format!("the answer is recorded, and {} failed{why}", run.id))
}

/// Whether this run failed because the reply said no.
fn is_no(run: &Run, reply: &Value) -> bool {
    let refused = |fault: &Fault| ["Rejected", "Declined"].contains(&fault.name.as_str());
    let is_abort = reply["action"] == json!(FixAction::Abort);
    run.status == Status::Failed && (is_abort || run.last_error.as_ref().is_some_and(refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_fails_by_rejection_is_no_failure_of_the_command() {
        let run = |status: &str, name: &str| -> Run {
            read(&json!({
                "id": "run_1", "session": "ses_1", "plan": "p", "status": status, "asks": [],
                "startedAt": "2026-11-16T12:00:00Z", "cost": {},
                "lastError": {"name": name, "message": "no"},
            }))
            .unwrap()
        };
        let reject = json!({"decisions": []});
        assert!(is_no(&run("failed", "Rejected"), &reject));
        assert!(is_no(&run("failed", "Declined"), &json!({"action": "decline"})));
        assert!(is_no(&run("failed", "AnyFault"), &json!({"action": "abort"})));
        assert!(!is_no(&run("failed", "AnyFault"), &json!({"action": "retry"})));
        assert!(!is_no(&run("stuck", "Rejected"), &reject));
    }
}
