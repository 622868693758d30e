//! `case.raiseTicket`: asks people to look into a case. The ticket's id is made of the call's, so
//! that a call that is repeated after a crash raises no second one.

use crate::arguments::{kind, misfit};
use crate::published::{made, placed, publish, uuid};
use futures::future::BoxFuture;
use kernel::call::{Call, Caller, Pace, Reach, ToolError, ToolOutput, ToolSpec, Yields};
use kernel::contracts::Tool;
use kernel::plan::mistake::meant;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The arguments that it takes; those that must be there first.
const ARGUMENTS: [&str; 4] = ["tradeId", "category", "summary", "detail"];
/// How many of them must be there.
const REQUIRED: usize = 3;

/// The tool.
pub(crate) struct RaiseTicket {
    spec: Arc<ToolSpec>,
}

impl RaiseTicket {
    /// The tool.
    pub(crate) fn new() -> Self {
        let text = json!({"type": "string"});
        let spec = ToolSpec {
            name: "case.raiseTicket".into(),
            title: "Raise a ticket".to_owned(),
            description: "Creates a support ticket for a trade failure requiring manual \
                          investigation."
                .to_owned(),
            input_schema: Arc::new(json!({
                "type": "object",
                "properties": {
                    "tradeId": {"type": "string", "description": "The trade identifier"},
                    "category": {
                        "type": "string",
                        "description": "Ticket category, e.g. ReferenceData"
                    },
                    "summary": {"type": "string", "description": "Brief summary of the issue"},
                    "detail": {
                        "type": "string",
                        "description": "Detailed description of the failure"
                    }
                },
                "required": ["tradeId", "category", "summary"]
            })),
            output_schema: Some(Arc::new(json!({
                "type": "object",
                "properties": {
                    "status": {"const": "created"},
                    "ticketId": text,
                    "tradeId": text,
                    "category": text,
                    "summary": text
                },
                "required": ["status", "ticketId", "tradeId", "category", "summary"]
            }))),
            reach: Reach::Writes,
            idempotent: true,
            tags: vec!["case".to_owned()],
            pace: Pace::Quick,
            yields: Yields::Value,
            unrecorded: false,
            listed: None,
        };
        Self { spec: Arc::new(spec) }
    }
}

impl Tool for RaiseTicket {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(std::future::ready(raised(call).map(ToolOutput::Value)))
    }
}

fn raised(call: &Call) -> Result<Value, ToolError> {
    let [trade_id, category, summary] = required(&call.arguments)?;
    let ticket_id = format!("TICKET-{}", uuid(made(call.id.0)));
    let event: Map<String, Value> = Map::from_iter([
        ("type".to_owned(), json!("TicketCreated")),
        ("ticketId".to_owned(), json!(ticket_id)),
        ("tradeId".to_owned(), json!(trade_id)),
        ("category".to_owned(), json!(category)),
    ]);
    publish(call, placed(event, call))?;
    Ok(json!({
        "status": "created",
        "ticketId": ticket_id,
        "tradeId": trade_id,
        "category": category,
        "summary": summary,
    }))
}

/// What must be there. The schema says so too, but not that there is nothing else: it is the one
/// that clients know this tool by.
fn required(arguments: &Value) -> Result<[&str; REQUIRED], ToolError> {
    let Value::Object(given) = arguments else {
        return Err(misfit(format!("the arguments are an object, not {}", kind(arguments))));
    };
    if let Some(stranger) = given.keys().find(|key| !ARGUMENTS.contains(&key.as_str())) {
        let hint = meant(stranger, ARGUMENTS)
            .unwrap_or_else(|| format!("it takes `{}`", ARGUMENTS.join("`, `")));
        return Err(misfit(format!("unknown argument `{stranger}`")).hint(hint));
    }
    if let Some(detail) = given.get("detail").filter(|detail| !detail.is_string()) {
        return Err(misfit(format!("`detail` must be a string, not {}", kind(detail))));
    }
    let mut texts = [""; REQUIRED];
    for (text, name) in texts.iter_mut().zip(ARGUMENTS) {
        *text = match given.get(name) {
            Some(Value::String(given)) => given.as_str(),
            Some(other) => {
                return Err(misfit(format!("`{name}` must be a string, not {}", kind(other))));
            }
            None => return Err(misfit(format!("`{name}` is missing"))),
        };
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::{CASE, RUN, call_of, unrecorded};
    use kernel::call::HowFar;

    fn given() -> Value {
        json!({"tradeId": "T-200", "category": "ReferenceData", "summary": "LEI", "detail": "why"})
    }

    #[test]
    fn a_ticket_is_told_and_published() {
        let call = call_of("case.raiseTicket", given());
        let output = raised(&call).unwrap();
        let ticket = "TICKET-00000000-0000-8000-8000-000000000007";
        let expected = json!({"status": "created", "ticketId": ticket, "tradeId": "T-200",
            "category": "ReferenceData", "summary": "LEI"});
        assert_eq!(output, expected);
        let event = json!({"type": "TicketCreated", "ticketId": ticket, "tradeId": "T-200",
            "category": "ReferenceData", "correlationId": RUN, "caseId": CASE});
        assert_eq!(call.place.publisher.take(), [event]);
    }

    #[test]
    fn a_repeated_call_raises_the_same_ticket() {
        let once = raised(&call_of("case.raiseTicket", given())).unwrap();
        assert_eq!(raised(&call_of("case.raiseTicket", given())).unwrap(), once);
    }

    #[test]
    fn what_does_not_fit_raises_nothing() {
        let without = |name: &str| {
            let mut given = given();
            given.as_object_mut().unwrap().remove(name);
            given
        };
        let with = |name: &str, value: Value| {
            let mut given = given();
            given[name] = value;
            given
        };
        for (given, told) in [
            (without("tradeId"), "`tradeId` is missing"),
            (without("category"), "`category` is missing"),
            (without("summary"), "`summary` is missing"),
            (with("summary", json!(7)), "`summary` must be a string, not a number"),
            (with("detail", json!([])), "`detail` must be a string, not an array"),
            (with("summry", json!("x")), "unknown argument `summry`"),
            (json!([]), "the arguments are an object, not an array"),
        ] {
            let call = call_of("case.raiseTicket", given);
            let error = raised(&call).unwrap_err();
            assert_eq!(error.how, HowFar::NotSent, "{told}");
            assert_eq!(error.fault.message, told);
            assert_eq!(call.place.publisher.take(), Vec::<Value>::new(), "{told}");
        }
        let misspelt = raised(&call_of("case.raiseTicket", with("summry", json!("x"))));
        let hint = misspelt.unwrap_err().fault.hint;
        assert_eq!(hint.as_deref(), Some("did you mean `summary`?"));
    }

    #[test]
    fn a_call_that_is_not_recorded_raises_nothing() {
        let call = unrecorded(call_of("case.raiseTicket", given()));
        assert_eq!(raised(&call).unwrap_err().fault.name, "NotRecorded");
    }

    #[test]
    fn clients_know_it_by_this_schema() {
        let spec = RaiseTicket::new().spec;
        assert_eq!(spec.name.as_str(), "case.raiseTicket");
        let seed = r#"{
          "type": "object",
          "properties": {
            "tradeId":  { "type": "string", "description": "The trade identifier" },
            "category": { "type": "string", "description": "Ticket category, e.g. ReferenceData" },
            "summary":  { "type": "string", "description": "Brief summary of the issue" },
            "detail":   { "type": "string", "description": "Detailed description of the failure" }
          },
          "required": ["tradeId", "category", "summary"]
        }"#;
        assert_eq!(*spec.input_schema, serde_json::from_str::<Value>(seed).unwrap());
        assert_eq!(
            spec.description,
            "Creates a support ticket for a trade failure requiring manual investigation."
        );
    }
}
