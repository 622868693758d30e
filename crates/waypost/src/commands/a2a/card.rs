//! `waypost a2a card`: shows the card of an agent.

use super::reference::{Reference, failed, parts};
use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::terminal::output::{Fields, one_line};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::Args;
use serde_json::Value;
use wire::a2a::card::{AgentCard, AgentCardSignature};

const EXAMPLES: &str = "\
Examples:
  waypost a2a card https://agent.example.com
  waypost a2a card card.json
  waypost a2a card org/trips --registry https://registry.example.com
  waypost --json a2a card http://127.0.0.1:8420 | jq .skills[].id";

/// What `waypost a2a card` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CardArgs {
    #[command(flatten)]
    agent: Reference,
}

/// Shows it.
pub(super) async fn run(args: &CardArgs, context: &Context) -> Result<Exit> {
    let config = args.agent.config(context)?;
    let parts = parts();
    let reading = async { upstreams::read_card(&config, &parts).await.map_err(failed) };
    let document = context.progress().during("reading the card", reading).await?;
    let card: Result<AgentCard> = serde_json::from_value(document.clone()).map_err(|error| {
        let what = format!("`{}` is no agent card: {error}", args.agent.agent);
        Failure::new(Exit::Upstream, "not_a_card", what).hint("`--json` shows what it is")
    });
    let card = match card {
        Err(_) if context.output.is_json() => AgentCard::default(),
        read => read?,
    };
    context.output.data(&document, &card_text(&document, &card))
}

fn card_text(document: &Value, card: &AgentCard) -> String {
    let mut fields = Fields::default();
    fields.add("name", card.name.as_str());
    fields.add("description", card.description.as_str());
    fields.add("version", card.version.as_str());
    fields.add("speaks", spoken(document, card).join("\n"));
    let capabilities = &card.capabilities;
    let can = [
        ("streaming", capabilities.streaming),
        ("push notifications", capabilities.push_notifications),
        ("extended card", capabilities.extended_agent_card),
    ];
    let can: Vec<&str> =
        can.into_iter().filter(|(_, has)| *has == Some(true)).map(|(name, _)| name).collect();
    fields.add("can", can.join(", "));
    let schemes: Vec<&str> = card.security_schemes.keys().map(String::as_str).collect();
    fields.add("credentials", schemes.join(", "));
    let keys: Vec<String> = card.signatures.iter().map(signer).collect();
    fields.add("signed by", keys.join(", "));
    let skill = |skill: &wire::a2a::card::AgentSkill| {
        format!("{}: {}", skill.id, one_line(&skill.description))
    };
    let skills: Vec<String> = card.skills.iter().map(skill).collect();
    fields.add("skills", skills.join("\n"));
    fields.text()
}

/// How and where it is spoken to. A card of an older version names one address.
fn spoken(document: &Value, card: &AgentCard) -> Vec<String> {
    let interfaces = card.supported_interfaces.iter();
    let mut spoken: Vec<String> = interfaces
        .map(|one| format!("{} {} at {}", one.protocol_binding, one.protocol_version, one.url))
        .collect();
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    if let (true, Some(url)) = (spoken.is_empty(), text("url")) {
        let transport = text("preferredTransport").unwrap_or("JSONRPC");
        let version = text("protocolVersion").unwrap_or("of an older version");
        spoken.push(format!("{transport} {version} at {url}"));
    }
    spoken
}

/// The key that a signature names.
fn signer(signature: &AgentCardSignature) -> String {
    let header = URL_SAFE_NO_PAD.decode(&signature.protected).ok();
    let header: Option<Value> = header.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let id = header.as_ref().and_then(|header| header["kid"].as_str());
    id.unwrap_or("a key without a name").to_owned()
}
