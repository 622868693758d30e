//! `waypost a2a check`: holds the card of an agent, and a conversation with it over each of its
//! interfaces of 1.0, against the specification, and names what is wrong with its section.

mod finding;
mod card_rules;
mod task_rules;
mod talk;

use super::line::{Line, binding_of};
use super::reference::{NOT_ALLOWED_HINT, Reference, failed, parts};
use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::terminal::input;
use crate::terminal::output::counted;
use crate::terminal::table::{Cell, Table};
use clap::Args;
use finding::{Finding, Level, Report, Verdict};
use serde_json::{Value, json};
use talk::Talk;
use upstreams::A2aConfig;
use wire::a2a::SKILLS_EXTENSION;
use wire::a2a::card::AgentCard;

const EXAMPLES: &str = "\
Examples:
  waypost a2a check http://127.0.0.1:8420
  waypost a2a check https://agent.example.com --card-only    # sends it nothing
  waypost a2a check http://127.0.0.1:8420 --skill math::conditional_add --data '{\"a\":1,\"b\":2}'
  waypost --json a2a check card.json | jq '.findings[] | select(.result == \"wrong\")'";

/// The rule that is open where an interface is not talked to.
const SAME: &str = "all interfaces do the same";

/// What `waypost a2a check` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    agent: Reference,
    /// Look at the card only, and send nothing
    #[arg(long)]
    card_only: bool,
    /// The text that the agent is sent
    #[arg(long, default_value = "hello")]
    text: String,
    /// The skill that is meant, by its id
    #[arg(long)]
    skill: Option<String>,
    /// A JSON value to send instead of the text, or @file
    #[arg(long, value_name = "JSON")]
    data: Option<String>,
    /// Show the rules that hold, too
    #[arg(long)]
    all: bool,
}

/// Checks it, and ends with 1 where a rule that must hold does not.
pub(super) async fn run(args: &CheckArgs, context: &Context) -> Result<Exit> {
    let config = args.agent.config(context)?;
    let checking = checked(args, context, &config);
    let report = context.progress().during("checking", checking).await?;
    let wrong = report.findings.iter().filter(|finding| finding.is_wrong()).count();
    let findings: Vec<Value> = report.findings.iter().map(Finding::to_json).collect();
    let document = json!({"agent": args.agent.agent, "wrong": wrong, "findings": findings});
    context.output.either(&document, || print_report(args, context, &report))?;
    Ok(if wrong == 0 { Exit::Ok } else { Exit::Failed })
}

async fn checked(args: &CheckArgs, context: &Context, config: &A2aConfig) -> Result<Report> {
    let document = upstreams::read_card(config, &parts()).await.map_err(failed)?;
    let mut report = Report::default();
    card_rules::check(&document, &mut report);
    // What cannot be read as a card was reported with its section.
    let card: AgentCard = serde_json::from_value(document).unwrap_or_default();
    if args.card_only {
        return Ok(report);
    }
    let message = message(args)?;
    let mut is_talked_to = false;
    let mut refused = None;
    for interface in &card.supported_interfaces {
        report.interface = format!("{} {}", interface.protocol_binding, interface.protocol_version);
        let Some(binding) = binding_of(interface) else {
            report.unknown("5.1", SAME, "it is not spoken here");
            continue;
        };
        let url = match upstreams::permitted_address(config, &interface.address()) {
            Ok(url) => url,
            Err(why) => {
                report.unknown("5.1", SAME, &why);
                refused.get_or_insert(why);
                continue;
            }
        };
        let headers = args.agent.filled_headers(context)?;
        let line = Line::open(binding, url, &interface.tenant, headers)?;
        let talk = Talk { line: &line, capabilities: &card.capabilities, message: &message };
        talk.run(&mut report).await?;
        is_talked_to = true;
    }
    if let (false, Some(why)) = (is_talked_to, refused) {
        let what = format!("agent `{}`: {why}", args.agent.agent);
        let refused = Failure::new(Exit::Upstream, "AddressNotAllowed", what);
        return Err(refused.hint(NOT_ALLOWED_HINT));
    }
    if !is_talked_to {
        report.interface = String::new();
        let why = "no interface of 1.0 over JSON-RPC, HTTP with JSON or gRPC";
        report.unknown("3.1", "the operations are as specified", why);
    }
    Ok(report)
}

/// What the agent is sent, without an id.
fn message(args: &CheckArgs) -> Result<Value> {
    let part = match &args.data {
        Some(data) => json!({"data": input::text_or_file(data)?}),
        None => json!({"text": args.text}),
    };
    let mut message = json!({"role": "ROLE_USER", "parts": [part]});
    if let Some(skill) = &args.skill {
        message["metadata"] = json!({SKILLS_EXTENSION: {"skill": skill}, "skillId": skill});
    }
    Ok(message)
}

fn print_report(args: &CheckArgs, context: &Context, report: &Report) -> Result<()> {
    let is_shown = |finding: &&Finding| args.all || finding.verdict != Verdict::Holds;
    let found: Vec<&Finding> = report.findings.iter().filter(is_shown).collect();
    let row = |finding: &&Finding| {
        let level = match finding.level {
            Level::Must => "must",
            Level::Should => "should",
        };
        vec![
            Cell::word(finding.word()),
            Cell::word(finding.section),
            Cell::word(level),
            Cell::from(finding.interface.clone()),
            Cell::from(finding.rule.to_owned()),
            Cell::from(finding.seen().to_owned()),
        ]
    };
    let heads = ["result", "section", "level", "interface", "rule", "found"];
    if !found.is_empty() {
        context.rows(&Table::new(&heads, found.iter().map(row)), found.len())?;
    }
    let held = report.findings.iter().filter(|finding| finding.verdict == Verdict::Holds).count();
    let all = counted(report.findings.len(), "rule");
    context.output.talk(&format!("{held} of {all} hold; sections are those of A2A 1.0"));
    Ok(())
}
