//! Failed trades: the deterministic path for reasons that are known, an agent for the others, and
//! what was counted.

use super::stage::{Asked, Stage, text_at};
use crate::exit::Result;
use serde_json::json;

/// The demo's pipeline for them.
const PIPELINE: &str = "trade-failures";

pub(super) async fn tell(stage: &Stage) -> Result<()> {
    stage
        .say(
            "A pipeline takes cases over a route of its own. For each reason that it knows it has \
             a handler; an agent with a short list of tools takes all the others.",
        )
        .await?;
    let path = format!("/api/v1/pipelines/{PIPELINE}");
    let shown = ["/route", "/handlers", "/tools"];
    let pipeline = stage.ask(Asked::get(&path).showing(&shown)).await?;
    let route = text_at(&pipeline, "/route")?;

    stage.say("A known reason: the handler repairs the trade, and no model is asked.").await?;
    let known = json!({"tradeId": "T-100", "reason": "Missing ISIN"});
    stage.ask(Asked::post(&route, known)).await?;

    stage
        .say(
            "An unknown one: the agent decides. Its model is rule-based here; it could be any. \
             It may call only the tools above, and its call was on disk before it happened.",
        )
        .await?;
    let unknown = json!({"tradeId": "T-200", "reason": "LEI not found in registry"});
    stage.ask(Asked::post(&route, unknown)).await?;

    stage.say("Another unknown one.").await?;
    let other = json!({"tradeId": "T-300", "reason": "Amount mismatch"});
    stage.ask(Asked::post(&route, other)).await?;

    stage.say("A case without its reason is refused before anything runs.").await?;
    stage.ask(Asked::post(&route, json!({"tradeId": "T-400"})).refused()).await?;

    stage
        .say(
            "Every case was counted: how many took the deterministic path, and which reasons are \
             worth a handler.",
        )
        .await?;
    stage.ask(Asked::get(&format!("{path}/stats"))).await?;
    Ok(())
}
