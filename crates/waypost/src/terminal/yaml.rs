//! Writes agents and plans as YAML: important keys first, long texts as blocks.

use crate::exit::{Exit, Failure, Result};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use std::fmt::Display;

/// The keys that a reader looks for first, in this order; the others follow by name.
const FIRST: &[&str] = &[
    "refName", "name", "description", "llmConfigRef", "routerLlmConfigRef", "router",
    "promptSteps", "context", "enabledTools", "tool_types", "approve", "limits", "zone",
];

/// An agent as YAML, ended by a line break.
pub(crate) fn agent(source: &Value) -> Result<String> {
    serde_saphyr::to_string(&Ordered(source)).map_err(|error| unwritable("agent", &error))
}

/// A plan as YAML in the order in which its author wrote it, its id first.
pub(crate) fn plan(source: &Value) -> Result<String> {
    serde_saphyr::to_string(&Named(source)).map_err(|error| unwritable("plan", &error))
}

fn unwritable(what: &str, error: &impl Display) -> Failure {
    let what = format!("the {what} cannot be written as YAML: {error}");
    Failure::new(Exit::Failed, "yaml", what).hint("`--json` shows it as it is")
}

/// The key that the server adds to a plan that its file names.
const PLAN_ID: &str = "planId";

/// A plan whose id comes first; anything else as it is.
struct Named<'a>(&'a Value);

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(fields) = self.0 else { return self.0.serialize(serializer) };
        let mut map = serializer.serialize_map(Some(fields.len()))?;
        let id = fields.get_key_value(PLAN_ID);
        let others = fields.iter().filter(|(key, _)| *key != PLAN_ID);
        for (key, value) in id.into_iter().chain(others) {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// A map whose keys stand in our order; anything else as it is.
struct Ordered<'a>(&'a Value);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(fields) = self.0 else { return self.0.serialize(serializer) };
        let mut map = serializer.serialize_map(Some(fields.len()))?;
        for key in FIRST {
            if let Some(value) = fields.get(*key) {
                map.serialize_entry(key, value)?;
            }
        }
        let is_other = |key: &&String| !FIRST.contains(&key.as_str());
        let mut others: Vec<&String> = fields.keys().filter(is_other).collect();
        others.sort();
        for key in others {
            map.serialize_entry(key, &fields[key.as_str()])?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::definition::agent_reader::read_text;
    use kernel::limits::Limits;
    use serde_json::json;

    #[test]
    fn written_yaml_reads_back_equal() {
        let source = json!({
            "zone": "UTC", "refName": "a", "llmConfigRef": "m", "name": "yes", "x-owner": "0x1",
            "promptSteps": [{"order": 1, "content": "It is {{ now }}.\nBe brief: no lists.\n"}],
            "limits": {"money": 0.25, "time": "5m"}, "approve": ["*"], "tool_types": {},
        });
        let text = agent(&source).unwrap();
        assert!(text.starts_with("refName: a\n"), "{text}");
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with([' ', '-'])).collect();
        assert!(lines.last().unwrap().starts_with("x-owner: "), "{text}");
        let (again, _) = read_text(&text, "a.yaml", &Limits::default()).unwrap();
        assert_eq!(*again.source, source, "{text}");
    }

    #[test]
    fn a_plan_keeps_the_key_order_of_its_author() {
        let source = json!({
            "description": "Ends", "startStepId": "end",
            "steps": [{"id": "end", "type": "final_response", "message": "Done.\nBye."}],
            "planId": "a/b",
        });
        let text = plan(&source).unwrap();
        let keys = text.lines().filter(|line| !line.starts_with([' ', '-']));
        let keys: Vec<&str> = keys.filter_map(|line| line.split(':').next()).collect();
        assert_eq!(keys, ["planId", "description", "startStepId", "steps"], "{text}");
        let places = ["id: end", "type: final_response", "message:"].map(|part| text.find(part));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");
    }
}
