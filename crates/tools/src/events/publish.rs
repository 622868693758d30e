//! `events.publish`: tells others that something happened. The event goes out with the call's
//! result, once that is recorded, and not without it.

use crate::arguments::{kind, misfit};
use crate::published::{placed, publish};
use futures::future::BoxFuture;
use kernel::call::{Call, Caller, Pace, Reach, ToolError, ToolOutput, ToolSpec, Yields};
use kernel::contracts::Tool;
use serde_json::{Value, json};
use std::sync::Arc;

/// The tool.
pub(crate) struct Publish {
    spec: Arc<ToolSpec>,
}

impl Publish {
    /// The tool.
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: "events.publish".into(),
            title: "Publish an event".to_owned(),
            description: "Publishes an event: all arguments, and the ids of the run and the case."
                .to_owned(),
            input_schema: Arc::new(json!({
                "type": "object",
                "properties": {
                    "type": {"type": "string", "description": "The event type, e.g. TradeEscalated"}
                },
                "required": ["type"]
            })),
            output_schema: Some(Arc::new(json!({
                "type": "object",
                "properties": {
                    "status": {"const": "published"},
                    "event": {"type": "object"}
                },
                "required": ["status", "event"]
            }))),
            reach: Reach::Writes,
            idempotent: true,
            tags: vec!["events".to_owned()],
            pace: Pace::Quick,
            yields: Yields::Value,
            unrecorded: false,
            listed: None,
        };
        Self { spec: Arc::new(spec) }
    }
}

impl Tool for Publish {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(std::future::ready(published(call).map(ToolOutput::Value)))
    }
}

fn published(call: &Call) -> Result<Value, ToolError> {
    let Value::Object(arguments) = &*call.arguments else {
        let what = kind(&call.arguments);
        return Err(misfit(format!("an event is an object, not {what}")));
    };
    let named = arguments.get("type").and_then(Value::as_str);
    if named.is_none_or(|name| name.trim().is_empty()) {
        return Err(misfit("`type` must be a text that says what happened")
            .hint("name the event, such as `TradeEscalated`"));
    }
    let event = placed(arguments.clone(), call);
    publish(call, event.clone())?;
    Ok(json!({"status": "published", "event": event}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::{CASE, RUN, call_of, unrecorded};
    use kernel::call::HowFar;

    #[test]
    fn an_event_is_its_arguments_and_where_it_happened() {
        let given = json!({"type": "TradeEscalated", "tradeId": "T-200", "expected": [1, 2]});
        let call = call_of("events.publish", given);
        let output = published(&call).unwrap();
        let event = json!({"type": "TradeEscalated", "tradeId": "T-200", "expected": [1, 2],
            "correlationId": RUN, "caseId": CASE});
        assert_eq!(output, json!({"status": "published", "event": event}));
        assert_eq!(call.place.publisher.take(), [event]);
    }

    #[test]
    fn nobody_chooses_the_ids_of_another_case() {
        let given = json!({"type": "X", "correlationId": "mine", "caseId": "theirs"});
        let call = call_of("events.publish", given);
        published(&call).unwrap();
        let event = json!({"type": "X", "correlationId": RUN, "caseId": CASE});
        assert_eq!(call.place.publisher.take(), [event]);
    }

    #[test]
    fn what_has_no_type_is_not_published() {
        for given in [json!({}), json!({"type": ""}), json!({"type": " "}), json!({"type": 7})] {
            let call = call_of("events.publish", given.clone());
            let error = published(&call).unwrap_err();
            assert_eq!(error.how, HowFar::NotSent, "{given}");
            assert_eq!(error.fault.name, "InputValidationError", "{given}");
            assert_eq!(call.place.publisher.take(), Vec::<Value>::new(), "{given}");
        }
    }

    #[test]
    fn a_call_that_is_not_recorded_publishes_nothing() {
        let call = unrecorded(call_of("events.publish", json!({"type": "X"})));
        assert_eq!(published(&call).unwrap_err().fault.name, "NotRecorded");
    }
}
