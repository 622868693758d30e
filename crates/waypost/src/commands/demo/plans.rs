//! The story `waypost demo plans`, a plan that asks a person: it waits, refuses invalid answers,
//! and takes the first of two valid ones.

use super::stage::{Stage, StoryRequest, text_at};
use crate::exit::Result;
use serde_json::json;

const PLAN: &str = "interaction::greeting";

pub(super) async fn tell(stage: &Stage) -> Result<()> {
    let text = "A plan is data: steps, and what comes after each. This one asks for a name.";
    let path = format!("/api/v1/plans/{PLAN}");
    stage.tell(text, StoryRequest::get(&path).showing(&["/description", "/plan/steps"])).await?;

    let text =
        "A run of it reaches the question and waits: for days, if need be, restarts included.";
    let body = json!({"planId": PLAN, "session": "demo-plan"});
    let asked = StoryRequest::post("/api/v1/runs", body);
    let run = stage.tell(text, asked.showing(&["/run/id", "/run/status", "/run/step"])).await?;
    let ask = text_at(&run, "/run/asks/0/id")?;

    let text = "All questions to people are in one inbox, no matter who started the run.";
    let shown = ["/items/*/kind", "/items/*/title", "/items/0/schema"];
    stage.tell(text, StoryRequest::get("/api/v1/asks").showing(&shown)).await?;

    let text = "An answer that does not fit is refused, and the question stays open.";
    let path = format!("/api/v1/asks/{ask}");
    let wrong = StoryRequest::post(&path, json!({"action": "accept", "content": {"name": 7}}));
    stage.tell(text, wrong.refused().showing(&["/detail", "/errors", "/hint"])).await?;

    let text = "One that fits lets the run continue to its end.";
    let right = json!({"action": "accept", "content": {"name": "Ada"}});
    let right = StoryRequest::post(&path, right).showing(&["/run/status", "/run/answer"]);
    stage.tell(text, right).await?;

    let text = "Another person answers too. The first answer holds, and the second gets an error.";
    let late = StoryRequest::post(&path, json!({"action": "accept", "content": {"name": "Grace"}}));
    stage.tell(text, late.refused().showing(&["/detail", "/decision"])).await?;

    let text = "The session keeps what was said.";
    stage.tell(text, StoryRequest::get("/api/v1/sessions/demo-plan/context")).await?;
    Ok(())
}
