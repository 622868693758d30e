//! The story `waypost demo trade`, failed trades: the deterministic path for known reasons, an
//! agent for the others, and the counts.

use super::stage::{Stage, StoryRequest, text_at};
use crate::exit::Result;
use serde_json::json;

/// The demo's pipeline for them.
const PIPELINE: &str = "trade-failures";
/// The reason whose handler is a plan.
const LOOKED_UP: &str = "Missing ISIN, CUSIP known";

pub(super) async fn tell(stage: &Stage) -> Result<()> {
    let text = "A pipeline takes cases over a route of its own. For each reason that it knows it \
                has a handler; an agent with a short list of tools takes all the others.";
    let path = format!("/api/v1/pipelines/{PIPELINE}");
    let shown = ["/route", "/handlers", "/tools"];
    let pipeline = stage.tell(text, StoryRequest::get(&path).showing(&shown)).await?;
    let route = text_at(&pipeline, "/route")?;

    let text = "A known reason: its handler takes the case, and no model is asked. A handler of \
                this type only publishes an event; it looks nothing up.";
    let known = json!({"tradeId": "T-100", "reason": "Missing ISIN"});
    stage.tell(text, StoryRequest::post(&route, known)).await?;

    let text = "A handler can also be a plan, and do whatever plans do. This one looks the ISIN up \
                in a table, by the security's CUSIP, and would ask a person if it found none.";
    let cusip = json!({"tradeId": "T-110", "reason": LOOKED_UP, "altIds": {"cusip": "037833100"}});
    stage.tell(text, StoryRequest::post(&route, cusip)).await?;

    let text = "An unknown one: the agent decides. Its model is rule-based here; it could be any. \
                It may call only the tools above, and its call was on disk before it happened.";
    let unknown = json!({"tradeId": "T-200", "reason": "LEI not found in registry"});
    stage.tell(text, StoryRequest::post(&route, unknown)).await?;

    let text = "A ticket is an event with all that a ticketing system needs: a webhook brings it \
                there. Another unknown reason:";
    let other = json!({"tradeId": "T-300", "reason": "Amount mismatch"});
    stage.tell(text, StoryRequest::post(&route, other)).await?;

    let text = "A case without its reason is refused before anything runs.";
    stage.tell(text, StoryRequest::post(&route, json!({"tradeId": "T-400"})).refused()).await?;

    let text = "Every case was counted: how many took the deterministic path, and which reasons \
                are worth a handler.";
    stage.tell(text, StoryRequest::get(&format!("{path}/stats"))).await?;
    Ok(())
}
