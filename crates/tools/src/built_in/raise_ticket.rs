//! `case.raiseTicket`: asks people to look into a case. The ticket's id is made of the call's, so
//! that a call that is repeated after a crash raises no second one.

use crate::events::{made, placed, publish, uuid};
use crate::typed::TypedTool;
use kernel::definition::plan::mistake::meant;
use kernel::tool::arguments::misfit;
use kernel::tool::call::{Call, Caller, Reach, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The arguments that it takes.
const ARGUMENTS: [&str; 5] = ["summary", "detail", "key", "category", "tradeId"];

/// The tool.
pub(super) struct RaiseTicket;

/// The ticket. Clients know this tool by a schema that does not refuse other arguments, so they are
/// read here and refused by the call.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ticket {
    /// Brief summary of the issue
    summary: String,
    /// Detailed description of the failure
    detail: Option<String>,
    /// The id of what the ticket is about, such as an order
    key: Option<String>,
    /// Ticket category, e.g. ReferenceData
    category: Option<String>,
    /// The trade identifier, instead of `key`, where it is about a trade
    trade_id: Option<String>,
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

/// The ticket as it was raised.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Raised {
    status: Status,
    ticket_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trade_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    summary: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    Created,
}

impl TypedTool for RaiseTicket {
    type Args = Ticket;
    type Out = Raised;
    const NAME: &'static str = "case.raiseTicket";
    const TITLE: &'static str = "Raise a ticket";
    const DESCRIPTION: &'static str =
        "Creates a support ticket for something that a person has to look into.";
    const REACH: Reach = Reach::Writes;
    const IDEMPOTENT: bool = true;

    async fn call(
        &self,
        _caller: &Caller,
        ticket: Ticket,
        call: &Call,
    ) -> Result<Raised, ToolError> {
        let Ticket { summary, detail, key, category, trade_id, unknown } = ticket;
        if let Some(name) = unknown.keys().next() {
            let hint = meant(name, ARGUMENTS)
                .unwrap_or_else(|| format!("it takes `{}`", ARGUMENTS.join("`, `")));
            return Err(misfit(format!("unknown argument `{name}`")).hint(hint));
        }
        let ticket_id = format!("TICKET-{}", uuid(made(call.id.0)));
        // With all that a ticketing system behind a webhook needs to make a ticket of it.
        let mut event: Map<String, Value> = Map::from_iter([
            ("type".to_owned(), json!("TicketCreated")),
            ("ticketId".to_owned(), json!(ticket_id)),
            ("summary".to_owned(), json!(summary)),
        ]);
        let given =
            [("tradeId", &trade_id), ("key", &key), ("category", &category), ("detail", &detail)];
        for (name, text) in given {
            event.extend(text.as_ref().map(|text| (name.to_owned(), json!(text))));
        }
        publish(call, placed(event, call))?;
        Ok(Raised { status: Status::Created, ticket_id, key, trade_id, category, summary })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_calls::{CASE, RUN, answer, call_of, unrecorded};
    use kernel::tool::call::CallProgress;

    fn raised(call: &Call) -> Result<Value, ToolError> {
        answer(RaiseTicket, call)
    }

    fn given() -> Value {
        json!({"tradeId": "T-200", "category": "ReferenceData", "summary": "LEI", "detail": "why"})
    }

    #[test]
    fn a_ticket_is_returned_and_published() {
        let call = call_of("case.raiseTicket", given());
        let output = raised(&call).unwrap();
        let ticket = "TICKET-00000000-0000-8000-8000-000000000007";
        let expected = json!({"status": "created", "ticketId": ticket, "tradeId": "T-200",
            "category": "ReferenceData", "summary": "LEI"});
        assert_eq!(output, expected);
        let event = json!({"type": "TicketCreated", "ticketId": ticket, "tradeId": "T-200",
            "category": "ReferenceData", "summary": "LEI", "detail": "why",
            "correlationId": RUN, "caseId": CASE});
        assert_eq!(call.context.publisher.take(), [event]);
    }

    #[test]
    fn a_ticket_without_detail_has_none() {
        let mut given = given();
        given.as_object_mut().unwrap().remove("detail");
        let call = call_of("case.raiseTicket", given);
        raised(&call).unwrap();
        let published = call.context.publisher.take();
        assert_eq!((&published[0]["summary"], published[0].get("detail")), (&json!("LEI"), None));
    }

    #[test]
    fn a_ticket_is_about_anything_and_needs_a_summary_alone() {
        let ticket = "TICKET-00000000-0000-8000-8000-000000000007";
        let call = call_of("case.raiseTicket", json!({"summary": "it is late", "key": "A-8"}));
        let expected = json!({"status": "created", "ticketId": ticket, "key": "A-8",
            "summary": "it is late"});
        assert_eq!(raised(&call).unwrap(), expected);
        let event = json!({"type": "TicketCreated", "ticketId": ticket, "key": "A-8",
            "summary": "it is late", "correlationId": RUN, "caseId": CASE});
        assert_eq!(call.context.publisher.take(), [event]);
        raised(&call_of("case.raiseTicket", json!({"summary": "it is late"}))).unwrap();
    }

    #[test]
    fn a_repeated_call_raises_the_same_ticket() {
        let once = raised(&call_of("case.raiseTicket", given())).unwrap();
        assert_eq!(raised(&call_of("case.raiseTicket", given())).unwrap(), once);
    }

    #[test]
    fn invalid_arguments_raise_no_ticket() {
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
            (without("summary"), "the arguments do not fit: missing field `summary`"),
            (
                with("summary", json!(7)),
                "the arguments do not fit: invalid type: integer `7`, expected a string",
            ),
            (
                with("detail", json!([])),
                "the arguments do not fit: invalid type: sequence, expected a string",
            ),
            (with("summry", json!("x")), "unknown argument `summry`"),
            (json!([]), "the arguments do not fit: invalid type: sequence, expected struct Ticket"),
        ] {
            let call = call_of("case.raiseTicket", given);
            let error = raised(&call).unwrap_err();
            assert_eq!(error.how, CallProgress::NotSent, "{told}");
            assert_eq!(error.fault.message, told);
            assert_eq!(call.context.publisher.take(), Vec::<Value>::new(), "{told}");
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
}
