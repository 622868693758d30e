//! The story `waypost demo records`: typed records on one server. A question in words becomes a
//! query, a wrong query is shown with its place, two callers see different rows and fields of the
//! same records, and a deletion of many is stopped by a person.

use super::stage::{Sender, Stage, StoryRequest, text_at};
use crate::exit::Result;
use serde_json::{Value, json};

const COUNT: &str = "/api/query/count";
const FIND: &str = "/api/query/find";
const ASKS: &str = "/api/v1/asks";
/// What of an answer of the agent is shown.
const SAID: &[&str] = &["/status", "/response"];
/// What a person enters who knows other languages of queries.
const WRONG: &str = "status:open AND total:>##500";

pub(super) async fn tell(stage: &Stage) -> Result<()> {
    stage
        .say(
            "A shop has 500 records: orders, customers, products and locations. Each type is a \
             file of the project. Ann sells, and Lea leads; both get a key.",
        )
        .await?;
    let ann = stage.key_of("ann").await?;
    let ann = Sender { variable: "ANN", key: &ann };
    let lea = stage.key_of("lea").await?;
    let lea = Sender { variable: "LEA", key: &lea };
    asked_in_words(stage, ann).await?;
    mistaken(stage, ann).await?;
    seen_by_both(stage, ann, lea).await?;
    stopped(stage, ann, lea).await
}

/// Ann asks an agent, and then the same without one.
async fn asked_in_words(stage: &Stage, ann: Sender<'_>) -> Result<()> {
    let text = "Ann asks the analyst, an agent, in words. It makes a query of them, asks it for \
                Ann, and says both.";
    let question = said("ann-counts", "how many orders are open?");
    stage.tell(text, StoryRequest::post("/run", question).by(ann).showing(SAID)).await?;

    let text = "A program sends the query itself and gets the same number.";
    let open = json!({"rootType": "Order", "query": "status:open"});
    stage.tell(text, StoryRequest::post(COUNT, open).by(ann)).await?;
    Ok(())
}

/// A query that is not one.
async fn mistaken(stage: &Stage, ann: Sender<'_>) -> Result<()> {
    let text = "A query that is not understood to its end is refused. It is never taken for a \
                smaller one that finds, or deletes, other records.";
    let wrong = StoryRequest::post(COUNT, json!({"rootType": "Order", "query": WRONG}));
    let shown = ["/error", "/message", "/hint", "/line", "/column"];
    let fault = stage.tell(text, wrong.by(ann).refused().showing(&shown)).await?;
    stage.point(WRONG, &fault).await
}

/// The same question of both, and what does not exist for one of them.
async fn seen_by_both(stage: &Stage, ann: Sender<'_>, lea: Sender<'_>) -> Result<()> {
    let large =
        json!({"rootType": "Order", "query": "total:>##1500", "limit": 2, "sort": "-total"});
    let shown =
        ["/totalCount", "/rows/*/refName", "/rows/*/salesRep", "/rows/*/total", "/rows/*/margin"];
    let text = "Ann looks for large orders. A policy leaves her those that she sold herself ..";
    let asked = StoryRequest::post(FIND, large.clone()).by(ann);
    stage.tell(text, asked.showing(&shown)).await?;
    let text = ".. and Lea, who asks the same, has those of everybody, with what they earn.";
    stage.tell(text, StoryRequest::post(FIND, large).by(lea).showing(&shown)).await?;

    let text = "For Ann there is no such field, so it cannot be found out by asking for it.";
    let margins = json!({"rootType": "Order", "query": "margin:>##1000"});
    let refused = StoryRequest::post(COUNT, margins).by(ann).refused();
    stage.tell(text, refused.showing(&["/error", "/message"])).await?;
    Ok(())
}

/// Ann wants many records deleted, and Lea says no.
async fn stopped(stage: &Stage, ann: Sender<'_>, lea: Sender<'_>) -> Result<()> {
    let text = "Ann wants something deleted. A lead has to approve each deletion of many records, \
                so the analyst waits.";
    let wanted = said("ann-deletes", "delete all cancelled orders");
    stage.tell(text, StoryRequest::post("/run", wanted).by(ann).showing(&["/status"])).await?;

    let text = "Lea sees who asks for what ..";
    let shown = ["/items/*/title", "/items/*/mayAnswer", "/items/*/calls/*/arguments"];
    let asks = stage.tell(text, StoryRequest::get(ASKS).by(lea).showing(&shown)).await?;

    let path = format!("{ASKS}/{}", text_at(&asks, "/items/0/id")?);
    let call = text_at(&asks, "/items/0/calls/0/callId")?;
    let decision = json!({"callId": call, "approve": false, "feedback": "the audit needs them"});
    let no = StoryRequest::post(&path, json!({"decisions": [decision]})).by(lea);
    stage.tell(".. and says no.", no.showing(&["/run/status", "/run/answer"])).await?;

    let text = "All of them are there.";
    let cancelled = json!({"rootType": "Order", "query": "status:cancelled"});
    stage.tell(text, StoryRequest::post(COUNT, cancelled).by(ann)).await?;
    Ok(())
}

fn said(thread: &str, text: &str) -> Value {
    json!({"thread_id": thread, "user_request": text})
}
