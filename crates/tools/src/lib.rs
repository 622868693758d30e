//! The tools that Waypost brings itself. A new one is a `TypedTool` in a file of its own in
//! `built_in`, or in `records` if it works on typed records, and one line in the list there; every
//! endpoint, the model's prompt and the docs read the catalog that this feeds.

mod events;
mod typed;
#[cfg(test)]
mod test_calls;
mod built_in;
mod records;

pub use built_in::{BuiltInSettings, FOR_RUNS, builtin, switched_off};
pub use outbound::addresses::HttpSettings;
pub use records::{RecordTools, record_tools};

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::tool::call::Reach;
    use serde_json::{Value, json};

    /// With all tools.
    fn whole() -> BuiltInSettings {
        BuiltInSettings { demo: true, http: HttpSettings::new(&["a.test"]).unwrap() }
    }

    #[test]
    fn the_catalog_is_what_the_docs_promise() {
        let tools = builtin(whole());
        let listed: Vec<(&str, Reach, bool)> = tools
            .iter()
            .map(|tool| {
                let spec = tool.spec();
                (spec.name.as_str(), spec.reach, spec.idempotent)
            })
            .collect();
        assert_eq!(
            listed,
            [
                ("math::add", Reach::Reads, true),
                ("validate::is_positive", Reach::Reads, true),
                ("test::always_fail", Reach::Reads, true),
                ("events.publish", Reach::Writes, true),
                ("case.raiseTicket", Reach::Writes, true),
                ("http::request", Reach::Writes, false),
            ]
        );
    }

    #[test]
    fn each_tool_is_there_or_has_a_switch() {
        let names = |settings: &BuiltInSettings| -> Vec<String> {
            builtin(settings.clone()).iter().map(|tool| tool.spec().name.to_string()).collect()
        };
        let off = |settings: &BuiltInSettings| -> Vec<String> {
            switched_off(settings).keys().map(ToString::to_string).collect()
        };
        assert_eq!(off(&whole()), Vec::<String>::new());
        let usual = BuiltInSettings::default();
        assert_eq!(names(&usual), ["events.publish", "case.raiseTicket"]);
        let missing = ["http::request", "math::add", "test::always_fail", "validate::is_positive"];
        assert_eq!(off(&usual), missing);
        let demo = BuiltInSettings { demo: true, ..usual };
        assert_eq!(off(&demo), ["http::request"]);
        assert!(switched_off(&demo)["http::request"].contains("`[tools.http]`"));
        let http = BuiltInSettings { demo: false, ..whole() };
        assert_eq!(names(&http), ["events.publish", "case.raiseTicket", "http::request"]);
        assert_eq!(off(&http).len(), 3);
        assert!(switched_off(&http)["math::add"].contains("`demo = true` under `[tools]`"));
    }

    /// Clients, plans and the hash that a started call pins know the tools by these.
    #[test]
    fn every_schema_is_listed_as_written_here() {
        for tool in builtin(whole()) {
            let spec = tool.spec();
            let (input, output) = schemas(spec.name.as_str());
            assert_eq!(*spec.input_schema, input, "{}", spec.name);
            assert_eq!(spec.output_schema.as_deref(), output.as_ref(), "{}", spec.name);
        }
    }

    /// The schemas of a tool's arguments and of its output.
    fn schemas(name: &str) -> (Value, Option<Value>) {
        match name {
            "math::add" => (
                json!({"type": "object",
                    "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                    "required": ["a", "b"], "additionalProperties": false}),
                Some(json!({"type": "number"})),
            ),
            "validate::is_positive" => (
                json!({"type": "object", "properties": {"num": {"type": "number"}},
                    "required": ["num"], "additionalProperties": false}),
                Some(json!({"type": "boolean"})),
            ),
            "test::always_fail" => (json!({"type": "object"}), None),
            "events.publish" => (
                json!({"type": "object",
                    "properties": {"type": {"type": "string",
                        "description": "The event type, e.g. TradeEscalated"}},
                    "required": ["type"]}),
                Some(json!({"type": "object",
                    "properties": {"status": {"const": "published"}, "event": {"type": "object"}},
                    "required": ["status", "event"]})),
            ),
            "case.raiseTicket" => ticket_schemas(),
            "http::request" => request_schemas(),
            other => panic!("no schema of `{other}` is written here"),
        }
    }

    fn ticket_schemas() -> (Value, Option<Value>) {
        let described = |text: &str| json!({"type": "string", "description": text});
        let text = json!({"type": "string"});
        let input = json!({"type": "object",
            "properties": {
                "summary": described("Brief summary of the issue"),
                "detail": described("Detailed description of the failure"),
                "key": described("The id of what the ticket is about, such as an order"),
                "category": described("Ticket category, e.g. ReferenceData"),
                "tradeId":
                    described("The trade identifier, instead of `key`, where it is about a trade")},
            "required": ["summary"]});
        let output = json!({"type": "object",
            "properties": {"status": {"const": "created"}, "ticketId": text, "key": text,
                "tradeId": text, "category": text, "summary": text},
            "required": ["status", "ticketId", "summary"]});
        (input, Some(output))
    }

    fn request_schemas() -> (Value, Option<Value>) {
        let headers = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
        let input = json!({"type": "object",
            "properties": {
                "method": {"enum": methods, "default": "GET"},
                "url": {"type": "string"},
                "headers": headers,
                "body": {"description": "A string is sent as it is, anything else as JSON."}},
            "required": ["url"], "additionalProperties": false});
        let output = json!({"type": "object",
            "properties": {
                "status": {"type": "integer"},
                "headers": headers,
                "body": {"description": "JSON where the answer says so, else text, else null."}},
            "required": ["status", "headers", "body"]});
        (input, Some(output))
    }
}
