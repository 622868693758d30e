//! The story `waypost demo heal`, failed steps: one is cured by a retry, one by a correction plan,
//! a payment has an unknown outcome, and for a shipment a model proposes arguments that a person
//! accepts.

use super::stage::{Stage, StoryRequest, text_at};
use crate::exit::Result;
use engine::PlanFile;
use serde_json::{Value, json};

/// The plans of this story, by their ids.
const PLANS: [(&str, &str); 6] = [
    ("shop/quote", QUOTE),
    ("shop/convert", CONVERT),
    ("shop/pay", PAY),
    ("shop/ship", SHIP),
    ("fixes/refresh_rates", REFRESH),
    ("fixes/was_it_paid", WAS_IT_PAID),
];

const QUOTE: &str = r#"description: Asks for a price
steps:
  - id: quote
    type: tool_call
    toolId: "shop::quote"
    arguments: {item: tea}
    saveAs: quote
    nextStepId: end
  - {id: end, type: final_response, message: {jsonPath: $.context.quote}}
"#;

const CONVERT: &str = r#"description: Converts a price
steps:
  - id: convert
    type: tool_call
    toolId: "shop::convert"
    arguments: {to: EUR}
    saveAs: price
    on_error:
      - {when: {error: StaleRates}, plan: fixes/refresh_rates}
      - ask
    nextStepId: end
  - {id: end, type: final_response, message: {jsonPath: $.context.price}}
"#;

const REFRESH: &str = r#"description: Gets the rates of today, and has the step tried again
steps:
  - {id: refresh, type: tool_call, toolId: "shop::refresh_rates", arguments: {}, nextStepId: end}
  - {id: end, type: final_response, message: {action: retry, why: the rates are of today now}}
"#;

const PAY: &str = r#"description: Pays for an order, once
steps:
  - id: pay
    type: tool_call
    toolId: "shop::pay"
    arguments: {order: "17"}
    saveAs: payment
    on_error:
      - {when: {how: unknown}, plan: fixes/was_it_paid}
      - ask
    nextStepId: end
  - {id: end, type: final_response, message: {jsonPath: $.context.payment}}
"#;

const WAS_IT_PAID: &str = r#"description: Looks whether a payment happened
steps:
  - id: look
    type: tool_call
    toolId: "shop::find_payment"
    arguments: {order: {jsonPath: $.promptInput.arguments.order}}
    saveAs: seen
    nextStepId: paid
  - id: paid
    type: conditional_branch
    condition: {left: {jsonPath: $.context.seen.paid}, operator: equals, right: true}
    onTrue: {nextStepId: settle}
    onFalse: {nextStepId: again}
  - id: settle
    type: final_response
    message: {action: settle, output: {jsonPath: $.context.seen}, why: the shop has the payment}
  - {id: again, type: final_response, message: {action: retry, why: the shop has no payment}}
"#;

const SHIP: &str = r#"description: Ships an order
steps:
  - id: ship
    type: tool_call
    toolId: "shop::ship"
    arguments: {order: "17", country: Germny}
    saveAs: shipment
    on_error:
      - {when: {error: UnknownCountry}, propose: {model: default}}
      - ask
    nextStepId: end
  - {id: end, type: final_response, message: {jsonPath: $.context.shipment}}
"#;

/// The plans of this story.
pub(super) fn plans() -> Vec<PlanFile> {
    let file = |(id, text): (&str, &str)| PlanFile {
        file: format!("plans/{id}.yaml"),
        text: text.to_owned(),
        default_id: id.into(),
    };
    PLANS.into_iter().map(file).collect()
}

pub(super) async fn tell(stage: &Stage) -> Result<()> {
    stage
        .say(
            "A tool is in trouble for a moment. The call only reads, so the built-in rule tries it \
             again, and no one is asked.",
        )
        .await?;
    let quoted = run(stage, "shop/quote").await?;
    stage.say("What was done about it is on record.").await?;
    acts(stage, &quoted).await?;

    stage
        .say(
            "Reference data is of yesterday. A rule of the plan names another plan that mends it \
             and answers as a person would: try again.",
        )
        .await?;
    let converted = run(stage, "shop/convert").await?;
    acts(stage, &converted).await?;

    stage
        .say(
            "The answer to a payment is lost: no one knows whether it happened. No rule may repeat \
             it. A plan looks into the shop, finds the payment, and settles the step with it.",
        )
        .await?;
    let paid = run(stage, "shop/pay").await?;
    acts(stage, &paid).await?;

    let text = "An order cannot be shipped: its country is misspelt. A model proposes other \
                arguments. Since shipping changes something, a person sees what would change.";
    let body = json!({"planId": "shop/ship"});
    let shown = ["/run/status", "/run/asks/0/fault", "/run/asks/0/proposal"];
    let stuck = stage.tell(text, StoryRequest::post("/api/v1/runs", body).showing(&shown)).await?;
    let ask = text_at(&stuck, "/run/asks/0/id")?;
    let text = "The person takes it.";
    let path = format!("/api/v1/asks/{ask}");
    let taken = StoryRequest::post(&path, json!({"action": "edit", "proposal": true}));
    stage.tell(text, taken.showing(&["/run/status", "/run/answer"])).await?;
    Ok(())
}

/// Runs a plan to its end.
async fn run(stage: &Stage, plan: &str) -> Result<Value> {
    let asked = StoryRequest::post("/api/v1/runs", json!({"planId": plan}));
    stage.ask(asked.showing(&["/run/status", "/run/answer"])).await
}

/// What rules did in a run.
async fn acts(stage: &Stage, answer: &Value) -> Result<()> {
    let run = text_at(answer, "/run/id")?;
    let path = format!("/api/v1/asks?status=any&run={run}");
    let shown = ["/items/*/title", "/items/*/held/rule", "/items/*/decision/reply"];
    stage.ask(StoryRequest::get(&path).showing(&shown)).await?;
    Ok(())
}
