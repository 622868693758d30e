//! `events.publish`: tells others that something happened. The event goes out with the call's
//! result, once that is recorded, and not without it.

use crate::events::{placed, publish};
use crate::typed::TypedTool;
use kernel::tool::arguments::misfit;
use kernel::tool::call::{Call, Caller, Reach, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The tool.
pub(super) struct Publish;

/// The event: every argument is a part of it.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Event {
    /// The event type, e.g. TradeEscalated
    #[serde(rename = "type")]
    kind: String,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// The event as it was published.
#[derive(Serialize, JsonSchema)]
pub(super) struct Published {
    status: Status,
    event: Map<String, Value>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    Published,
}

impl TypedTool for Publish {
    type Args = Event;
    type Out = Published;
    const NAME: &'static str = "events.publish";
    const TITLE: &'static str = "Publish an event";
    const DESCRIPTION: &'static str =
        "Publishes an event: all arguments, and the ids of the run and the case.";
    const REACH: Reach = Reach::Writes;
    const IDEMPOTENT: bool = true;

    async fn call(
        &self,
        _caller: &Caller,
        event: Event,
        call: &Call,
    ) -> Result<Published, ToolError> {
        let Event { kind, mut more } = event;
        if kind.trim().is_empty() {
            return Err(misfit("`type` must be a text that says what happened")
                .hint("name the event, such as `TradeEscalated`"));
        }
        more.insert("type".to_owned(), Value::String(kind));
        let event = placed(more, call);
        publish(call, event.clone())?;
        Ok(Published { status: Status::Published, event })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_calls::{CASE, RUN, answer, call_of, unrecorded};
    use kernel::tool::call::CallProgress;
    use serde_json::json;

    fn published(call: &Call) -> Result<Value, ToolError> {
        answer(Publish, call)
    }

    #[test]
    fn an_event_is_its_arguments_and_where_it_happened() {
        let given = json!({"type": "TradeEscalated", "tradeId": "T-200", "expected": [1, 2]});
        let call = call_of("events.publish", given);
        let output = published(&call).unwrap();
        let event = json!({"type": "TradeEscalated", "tradeId": "T-200", "expected": [1, 2],
            "correlationId": RUN, "caseId": CASE});
        assert_eq!(output, json!({"status": "published", "event": event}));
        assert_eq!(call.context.publisher.take(), [event]);
    }

    #[test]
    fn ids_of_a_published_event_cannot_be_chosen() {
        let given = json!({"type": "X", "correlationId": "mine", "caseId": "theirs"});
        let call = call_of("events.publish", given);
        published(&call).unwrap();
        let event = json!({"type": "X", "correlationId": RUN, "caseId": CASE});
        assert_eq!(call.context.publisher.take(), [event]);
    }

    #[test]
    fn an_event_without_a_type_is_not_published() {
        for given in [json!({}), json!({"type": ""}), json!({"type": " "}), json!({"type": 7})] {
            let call = call_of("events.publish", given.clone());
            let error = published(&call).unwrap_err();
            assert_eq!(error.how, CallProgress::NotSent, "{given}");
            assert_eq!(error.fault.name, "InputValidationError", "{given}");
            assert_eq!(call.context.publisher.take(), Vec::<Value>::new(), "{given}");
        }
    }

    #[test]
    fn a_call_that_is_not_recorded_publishes_nothing() {
        let call = unrecorded(call_of("events.publish", json!({"type": "X"})));
        assert_eq!(published(&call).unwrap_err().fault.name, "NotRecorded");
    }
}
