//! A plan that asks a person: it waits, refuses invalid answers, and takes the first of two valid
//! ones.

use super::stage::{Stage, StoryRequest, text_at};
use crate::exit::Result;
use serde_json::json;

const PLAN: &str = "interaction::greeting";

pub(super) async fn tell(stage: &Stage) -> Result<()> {
    stage
        .say("A plan is data: steps, and what comes after each. This one asks for a name.")
        .await?;
    let path = format!("/api/v1/plans/{PLAN}");
    stage.ask(StoryRequest::get(&path).showing(&["/description", "/plan/steps"])).await?;

    stage
        .say("A run of it reaches the question and waits: for days, if need be, restarts included.")
        .await?;
    let body = json!({"planId": PLAN, "session": "demo-plan"});
    let asked = StoryRequest::post("/api/v1/runs", body);
    let run = stage.ask(asked.showing(&["/run/id", "/run/status", "/run/step"])).await?;
    let ask = text_at(&run, "/run/asks/0/id")?;

    stage.say("All questions to people are in one inbox, no matter who started the run.").await?;
    let shown = ["/items/*/kind", "/items/*/title", "/items/0/schema"];
    stage.ask(StoryRequest::get("/api/v1/asks").showing(&shown)).await?;

    stage.say("An answer that does not fit is refused, and the question stays open.").await?;
    let path = format!("/api/v1/asks/{ask}");
    let wrong = StoryRequest::post(&path, json!({"action": "accept", "content": {"name": 7}}));
    stage.ask(wrong.refused().showing(&["/detail", "/errors", "/hint"])).await?;

    stage.say("One that fits lets the run continue to its end.").await?;
    let right = json!({"action": "accept", "content": {"name": "Ada"}});
    let right = StoryRequest::post(&path, right).showing(&["/run/status", "/run/answer"]);
    stage.ask(right).await?;

    stage
        .say("Another person answers too. The first answer holds, and the second gets an error.")
        .await?;
    let late = StoryRequest::post(&path, json!({"action": "accept", "content": {"name": "Grace"}}));
    stage.ask(late.refused().showing(&["/detail", "/decision"])).await?;

    stage.say("The session keeps what was said.").await?;
    stage.ask(StoryRequest::get("/api/v1/sessions/demo-plan/context")).await?;
    Ok(())
}
