//! The story `waypost demo calendar`, a calendar assistant: every change is shown first and waits
//! for approval.

use super::stage::{Stage, StoryRequest, text_at};
use crate::exit::Result;
use serde_json::json;

const THREAD: &str = "demo-calendar";

pub(super) async fn tell(stage: &Stage) -> Result<()> {
    let said = |text: &str| json!({"thread_id": THREAD, "user_request": text});
    let short = ["/status", "/response"];
    let text = "An agent has a model, tools and limits. This one only reads: no one is asked.";
    let look = said("what is on my calendar tomorrow?");
    stage.tell(text, StoryRequest::post("/run", look).showing(&short)).await?;

    let text = "Now it is to change something. It shows exactly what it would send, and waits.";
    let create = said("create a meeting called Standup tomorrow at 9am");
    let asked = StoryRequest::post("/run", create).showing(&["/status", "/pending_action"]);
    let asked = stage.tell(text, asked).await?;
    let call = text_at(&asked, "/pending_action/tool_calls/0/call_id")?;
    let start = text_at(&asked, "/pending_action/tool_calls/0/arguments/start")?;

    let text = "A person says yes. The call is made once, whatever happens to the process.";
    let yes = json!({"thread_id": THREAD, "approvals": [{"call_id": call, "approved": true}]});
    stage.tell(text, StoryRequest::post("/resume", yes).showing(&short)).await?;

    let text = "The conversation continues, and the meeting is there.";
    // The date, because after midnight `tomorrow` would be another day.
    let day = start.split('T').next().unwrap_or_default();
    let look = said(&format!("what is on my calendar on {day}?"));
    stage.tell(text, StoryRequest::post("/run", look).showing(&short)).await?;
    Ok(())
}
