//! Failed trades: the deterministic path for known reasons, an agent for the others, and the
//! counts.

use super::stage::{Stage, StoryRequest, text_at};
use crate::exit::Result;
use serde_json::json;

/// The demo's pipeline for them.
const PIPELINE: &str = "trade-failures";
/// The reason whose handler is a plan.
const LOOKED_UP: &str = "Missing ISIN, CUSIP known";

pub(super) async fn tell(stage: &Stage) -> Result<()> {
    stage
        .say(
            "A pipeline takes cases over a route of its own. For each reason that it knows it has \
             a handler; an agent with a short list of tools takes all the others.",
        )
        .await?;
    let path = format!("/api/v1/pipelines/{PIPELINE}");
    let shown = ["/route", "/handlers", "/tools"];
    let pipeline = stage.ask(StoryRequest::get(&path).showing(&shown)).await?;
    let route = text_at(&pipeline, "/route")?;

    stage
        .say(
            "A known reason: its handler takes the case, and no model is asked. A handler of this \
             type only publishes an event; it looks nothing up.",
        )
        .await?;
    let known = json!({"tradeId": "T-100", "reason": "Missing ISIN"});
    stage.ask(StoryRequest::post(&route, known)).await?;

    stage
        .say(
            "A handler can also be a plan, and do whatever plans do. This one looks the ISIN up in \
             a table, by the security's CUSIP, and would ask a person if it found none.",
        )
        .await?;
    let cusip = json!({"tradeId": "T-110", "reason": LOOKED_UP, "altIds": {"cusip": "037833100"}});
    stage.ask(StoryRequest::post(&route, cusip)).await?;

    stage
        .say(
            "An unknown one: the agent decides. Its model is rule-based here; it could be any. \
             It may call only the tools above, and its call was on disk before it happened.",
        )
        .await?;
    let unknown = json!({"tradeId": "T-200", "reason": "LEI not found in registry"});
    stage.ask(StoryRequest::post(&route, unknown)).await?;

    stage
        .say(
            "A ticket is an event with all that a ticketing system needs: a webhook brings it \
             there. Another unknown reason:",
        )
        .await?;
    let other = json!({"tradeId": "T-300", "reason": "Amount mismatch"});
    stage.ask(StoryRequest::post(&route, other)).await?;

    stage.say("A case without its reason is refused before anything runs.").await?;
    stage.ask(StoryRequest::post(&route, json!({"tradeId": "T-400"})).refused()).await?;

    stage
        .say(
            "Every case was counted: how many took the deterministic path, and which reasons are \
             worth a handler.",
        )
        .await?;
    stage.ask(StoryRequest::get(&format!("{path}/stats"))).await?;
    Ok(())
}
