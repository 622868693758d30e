//! The story `waypost demo realms`: two teams on one server. Callers are known, policies decide,
//! and decisions are kept in a hash chain. One call is refused, another needs the approval of a
//! second person.

use super::stage::{Sender, Stage, StoryRequest, text_at};
use crate::exit::Result;
use serde_json::{Value, json};

/// `math::add`, which stands for a tool that books a sum.
const CALL: &str = "/api/v1/tools/math%3A%3Aadd/call";
/// The team whose audit is shown.
const TEAM: &[(&str, &str)] = &[("X-Realm", "sales")];

pub(super) async fn tell(stage: &Stage) -> Result<()> {
    stage
        .say(
            "Two teams share this server: Ann and Bob sell, Cleo answers customers. Each team is \
             a realm. Everybody has a key; Ann gets hers.",
        )
        .await?;
    let ann = stage.key_of("ann").await?;
    let ann = Sender { variable: "ANN", key: &ann };
    let text = "The server knows who calls, in which team, and as what.";
    let shown = ["/subject", "/realm", "/roles"];
    stage.tell(text, StoryRequest::get("/api/v1/whoami").by(ann).showing(&shown)).await?;
    let ask = booked(stage, ann).await?;
    answered(stage, ann, &ask).await?;
    audited(stage).await
}

/// Ann books: a little, too much, and so much that a lead is asked. Gives the ask.
async fn booked(stage: &Stage, ann: Sender<'_>) -> Result<Value> {
    let text = "She books a small sum. Her role permits it, and no policy has anything against it.";
    stage.tell(text, StoryRequest::post(CALL, sum(20)).by(ann)).await?;

    let text = "A policy forbids more than 5,000, to everybody.";
    let refused = StoryRequest::post(CALL, sum(6_000)).by(ann).refused();
    stage.tell(text, refused.showing(&["/status", "/code", "/detail"])).await?;

    let text = "Another one wants a lead to approve more than 500. The call waits, as a run.";
    let asked = StoryRequest::post(CALL, sum(600)).by(ann);
    let shown = ["/run/status", "/ask/title", "/ask/body", "/ask/mayAnswer", "/ask/other"];
    let answer = stage.tell(text, asked.showing(&shown)).await?;
    Ok(answer["ask"].clone())
}

/// Who may not approve it, and who does.
async fn answered(stage: &Stage, ann: Sender<'_>, ask: &Value) -> Result<()> {
    let path = format!("/api/v1/asks/{}", text_at(ask, "/id")?);
    let call = text_at(ask, "/calls/0/callId")?;
    let yes = json!({"decisions": [{"callId": call, "approve": true}]});
    let text = "Ann cannot approve it herself: the policy wants another person.";
    let refused = StoryRequest::post(&path, yes.clone()).by(ann).refused();
    stage.tell(text, refused.showing(&["/status", "/detail", "/hint"])).await?;

    stage.say("For Cleo, who is of the other team, it does not exist.").await?;
    let cleo = stage.key_of("cleo").await?;
    let cleo = Sender { variable: "CLEO", key: &cleo };
    stage.ask(StoryRequest::get(&path).by(cleo).refused().showing(&["/status", "/detail"])).await?;

    stage.say("Bob leads the team. He approves it, and the run ends.").await?;
    let bob = stage.key_of("bob").await?;
    let bob = Sender { variable: "BOB", key: &bob };
    let approved = StoryRequest::post(&path, yes).by(bob);
    stage.ask(approved.showing(&["/run/status", "/run/answer"])).await?;
    Ok(())
}

/// What was kept of it.
async fn audited(stage: &Stage) -> Result<()> {
    let text = "All of it is in the audit of the team: who called, and which policy decided ..";
    let shown = ["/items/*/subject", "/items/*/verdict", "/items/*/policies"];
    let calls = StoryRequest::get("/api/v1/audit?act=call").with(TEAM).by(stage.admin());
    stage.tell(text, calls.showing(&shown)).await?;

    let text = ".. and who answered, or tried to.";
    let shown = ["/items/*/subject", "/items/*/verdict", "/items/*/reply"];
    let answers = StoryRequest::get("/api/v1/audit?act=answer").with(TEAM).by(stage.admin());
    stage.tell(text, answers.showing(&shown)).await?;

    let text = "Its rows are a chain: one that is changed, removed or added later is found.";
    let check = StoryRequest::get("/api/v1/audit/verify").with(TEAM).by(stage.admin());
    stage.tell(text, check.showing(&["/valid", "/rows", "/flaws"])).await?;
    Ok(())
}

fn sum(amount: u32) -> Value {
    json!({"arguments": {"a": amount, "b": 1}})
}
