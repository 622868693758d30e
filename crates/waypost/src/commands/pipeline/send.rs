//! `waypost pipeline send`: one case through the server. The exit code says the outcome, as
//! that of `waypost run` does.

use crate::context::Context;
use crate::exit::{Exit, Result};
use crate::outcome;
use crate::remote::client::Request;
use crate::remote::suggestions::{self, PIPELINES};
use crate::terminal::input;
use clap::Args;
use serde_json::Value;
use wire::rest::Ask;

/// What `waypost pipeline send` takes.
#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// The pipeline's name
    name: String,
    /// The case: `key=value ..`, a JSON text, @file, or - for standard input
    #[arg(required = true)]
    case: Vec<String>,
}

/// A pipeline says itself how long its requests take; this limits how long a client waits.
const ANSWER_SECONDS: u64 = super::super::WAIT_SECONDS_MAX;

pub(super) async fn run(context: &Context, args: SendArgs) -> Result<Exit> {
    let case = read(&args.case)?;
    let client = context.client().await?;
    let request = Request::to(&["pipelines", &args.name, "cases"]).taking(ANSWER_SECONDS);
    context.leaves_work("the case");
    let sent = context.progress().during("waiting for the case", client.post(request, &case));
    let answer = suggestions::or_suggest(&client, PIPELINES, &args.name, sent).await?;
    context.output.either(&answer, || tell(context, &answer))?;
    Ok(exit_of(&answer))
}

/// A case as the command line gives it.
pub(super) fn read(words: &[String]) -> Result<Value> {
    match words {
        [word] if word == "-" => input::text_or_file("@-"),
        words => input::words(words),
    }
}

fn tell(context: &Context, answer: &Value) -> Result<()> {
    let output = context.output;
    output.text(&outcome::pretty(answer))?;
    let ask: Option<Ask> = serde_json::from_value(answer["ask"].clone()).ok();
    if let Some(ask) = ask {
        output.talk("the case waits for a person; answer with");
        outcome::tell_answers(context, &ask);
    }
    Ok(())
}

/// `ok`, `pending` and `error`, as the answer says it.
fn exit_of(answer: &Value) -> Exit {
    match answer["status"].as_str() {
        Some("ok") => Exit::Ok,
        Some("pending") => Exit::Paused,
        _ => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_exit_code_says_how_a_case_ended() {
        let exit = |status: &str| exit_of(&json!({"status": status, "path": "agent"}));
        assert_eq!(exit("ok"), Exit::Ok);
        assert_eq!(exit("pending"), Exit::Paused);
        assert_eq!(exit("error"), Exit::Failed);
        assert_eq!(exit_of(&json!([])), Exit::Failed);
    }
}
