//! Checks every answer of a JSON-RPC endpoint, whatever it was sent.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;

/// Words that only a defect brings into an answer.
const LEAKS: [&str; 4] = ["panicked at", ".rs:", "called `Option", "called `Result"];

/// One message of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The answer to a request, with the number of its error if it is one.
    Response(Option<i64>),
    /// A request to the client, by its method.
    Request(String),
    /// A notification, by its method.
    Notification(String),
}

/// The ids of what was sent, as they stand in it: of one message or of each in a list; both of a
/// key that stands there twice. None of what is no JSON.
pub fn ids(body: &[u8]) -> Vec<String> {
    let of = |members: &Members<'_>| {
        let ids = members.0.iter().filter(|(key, _)| key == "id");
        ids.map(|(_, id)| id.get().to_owned()).collect::<Vec<_>>()
    };
    if let Ok(members) = serde_json::from_slice::<Members<'_>>(body) {
        return of(&members);
    }
    let list = serde_json::from_slice::<Vec<&RawValue>>(body).unwrap_or_default();
    let each = list.iter().filter_map(|item| serde_json::from_str::<Members<'_>>(item.get()).ok());
    each.flat_map(|members| of(&members)).collect()
}

/// How many messages were sent: as many as a list has items, else one.
pub fn messages(body: &[u8]) -> usize {
    serde_json::from_slice::<Vec<&RawValue>>(body).map_or(1, |items| items.len().max(1))
}

/// Looks at an answer that is JSON: one message, or a list of them for a list.
pub fn check_json(text: &str, asked: &[String]) -> Result<Vec<Said>, String> {
    if !text.trim_start().starts_with('[') {
        return check_message(text, asked).map(|said| vec![said]);
    }
    let list = serde_json::from_str::<Vec<&RawValue>>(text);
    let list = list.map_err(|error| format!("the answer is no JSON ({error}): {text}"))?;
    list.iter().map(|message| check_message(message.get(), asked)).collect()
}

/// Looks at one message.
pub fn check_message(text: &str, asked: &[String]) -> Result<Said, String> {
    let wrong = |why: &str| Err(format!("{why}: {text}"));
    if let Some(leak) = LEAKS.iter().find(|leak| text.contains(**leak)) {
        return wrong(&format!("the answer has `{leak}` in it"));
    }
    let message = match serde_json::from_str::<Members<'_>>(text) {
        Ok(message) => message,
        Err(error) => return wrong(&format!("the answer is no JSON object ({error})")),
    };
    let mut keys: Vec<&str> = message.0.iter().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    if keys.windows(2).any(|pair| pair[0] == pair[1]) {
        return wrong("the answer has a key twice");
    }
    if message.get("jsonrpc") != Some("\"2.0\"") {
        return wrong("`jsonrpc` is not `2.0`");
    }
    if let Some(method) = message.get("method") {
        let method = serde_json::from_str(method).map_err(|error| format!("{error}: {text}"))?;
        let is_request = message.get("id").is_some();
        return Ok(if is_request { Said::Request(method) } else { Said::Notification(method) });
    }
    let Some(id) = message.get("id") else { return wrong("the answer has no `id`") };
    if id != "null" && !asked.iter().any(|asked| asked == id) {
        return wrong(&format!("nobody asked with the id {id}"));
    }
    match (message.get("result"), message.get("error")) {
        (Some(_), None) if id == "null" => wrong("a result needs the request's id"),
        (Some(_), None) => Ok(Said::Response(None)),
        (None, Some(error)) => match error_code(error) {
            Some(code) => Ok(Said::Response(Some(code))),
            None => wrong("an error needs a whole number as `code` and words as `message`"),
        },
        _ => wrong("an answer has a `result` or an `error`"),
    }
}

/// The data of each whole event of a stream of server-sent events.
pub fn events(text: &str) -> Vec<String> {
    let Some((whole, _)) = text.rsplit_once("\n\n") else { return Vec::new() };
    let data = |block: &str| {
        let lines = block.lines().filter_map(|line| line.strip_prefix("data:"));
        lines.map(str::trim_start).collect::<Vec<_>>().join("\n")
    };
    whole.split("\n\n").map(data).filter(|data| !data.is_empty()).collect()
}

fn error_code(error: &str) -> Option<i64> {
    let error: Value = serde_json::from_str(error).ok()?;
    let has_words = error["message"].as_str().is_some_and(|message| !message.is_empty());
    error["code"].as_i64().filter(|_| has_words)
}

/// The members of an object as they stand there, with keys that stand there twice.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl Members<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.get())
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Reading).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_verbatim() {
        assert_eq!(ids(br#"{"id": 1e0 ,"a":{"id":2}}"#), ["1e0"]);
        assert_eq!(ids(br#"{"id":"\u0041","\u0069d":null}"#), [r#""\u0041""#, "null"]);
        assert_eq!(ids(br#"[{"id":1},7,{"a":1},{"id":"b"}]"#), ["1", "\"b\""]);
        assert!(ids(b"{\"id\":1} x").is_empty() && ids(b"\xff").is_empty());
        assert_eq!(
            (messages(b"[7,{}]"), messages(b"[]"), messages(b"{}"), messages(b"")),
            (2, 1, 1, 1)
        );
    }

    #[test]
    fn right_answers_pass() {
        let asked = ["1".to_owned()];
        let said = |text: &str| check_json(text, &asked).unwrap();
        let failed = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#;
        assert_eq!(said(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), [Said::Response(None)]);
        assert_eq!(said(failed), [Said::Response(Some(-32700))]);
        assert_eq!(said(&format!("[{failed}]")), [Said::Response(Some(-32700))]);
        let told = said(r#"{"jsonrpc":"2.0","method":"n","params":{}}"#);
        assert_eq!(told, [Said::Notification("n".to_owned())]);
        let asks = said(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#);
        assert_eq!(asks, [Said::Request("ping".to_owned())]);
    }

    #[test]
    fn wrong_answers_fail() {
        for text in [
            "",
            "nope",
            "7",
            r#"{"id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":2,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"at src/a.rs:7"}}"#,
        ] {
            assert!(check_json(text, &["1".to_owned()]).is_err(), "{text}");
        }
    }

    #[test]
    fn events_are_read_up_to_the_last_whole_one() {
        let text = ": hello\n\nid: 1\nretry: 5\ndata:\n\ndata: {\ndata: }\n\ndata: [\n";
        assert_eq!(events(text), ["{\n}"]);
    }
}
