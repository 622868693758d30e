//! MCP messages: the era of a request (with or without a handshake), and the form of an answer in
//! each era.

use serde_json::{Map, Value, json};

/// The version without a handshake.
const MODERN: &str = "2026-07-28";
/// The versions with one, newest first.
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";
const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// How long a list may be kept, in the era that says so.
const TTL_MS: u64 = 60_000;

/// No such method.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are not right.
pub(super) const INVALID_PARAMS: i64 = -32602;
/// The version is none of ours.
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

/// How a request says who sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// After a handshake.
    Legacy,
    /// In the request itself.
    Modern,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(super) struct Request {
    /// Its id, as it came.
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Value,
    pub(super) era: Era,
    /// The header `traceparent` that came with it.
    pub(super) traceparent: Option<String>,
}

impl Request {
    /// The request in a message, if it is one.
    pub(super) fn read(message: &Value) -> Option<Self> {
        let id = message.get("id")?.clone();
        let method = message.get("method")?.as_str()?.to_owned();
        let params = message.get("params").cloned().unwrap_or_default();
        let era = if params["_meta"][META_VERSION].is_string() { Era::Modern } else { Era::Legacy };
        Some(Self { id, method, params, era, traceparent: None })
    }

    /// The answer with this result, as the era writes it.
    pub(super) fn result(&self, result: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.id, "result": self.dressed(result)})
    }

    /// An answer with this error.
    pub(super) fn error(&self, code: i64, message: &str) -> Value {
        json!({"jsonrpc": "2.0", "id": self.id, "error": {"code": code, "message": message}})
    }

    /// The answer to a request of the other era, by a server that never heard of it.
    pub(super) fn unheard_of(&self) -> Value {
        match self.era {
            Era::Modern => self.error(-32000, "Bad Request: Unsupported protocol version"),
            Era::Legacy => {
                let data = json!({"supported": [MODERN], "requested": "2025-11-25"});
                let error = json!({"code": UNSUPPORTED_VERSION, "message": "Unsupported protocol \
                                   version", "data": data});
                json!({"jsonrpc": "2.0", "id": self.id, "error": error})
            }
        }
    }

    fn dressed(&self, mut result: Value) -> Value {
        if self.era == Era::Legacy {
            return result;
        }
        if let Value::Object(members) = &mut result {
            members.entry("resultType").or_insert_with(|| json!("complete"));
            members.insert("_meta".to_owned(), json!({META_SERVER: server_info()}));
            if self.method.ends_with("/list") || self.method == "server/discover" {
                members.insert("ttlMs".to_owned(), json!(TTL_MS));
                members.insert("cacheScope".to_owned(), json!("public"));
            }
        }
        result
    }

    /// What `initialize` answers: the version that was asked for, if it has a handshake.
    pub(super) fn greeting(&self) -> Value {
        let asked = self.params["protocolVersion"].as_str();
        let version = asked.filter(|asked| LEGACY.contains(asked)).unwrap_or(LEGACY[0]);
        self.result(json!({
            "protocolVersion": version,
            "capabilities": capabilities(),
            "serverInfo": server_info(),
        }))
    }

    /// What `server/discover` answers.
    pub(super) fn discovery(&self) -> Value {
        self.result(json!({"supportedVersions": [MODERN], "capabilities": capabilities()}))
    }

    /// A notification that belongs to this request: its progress.
    pub(super) fn progress(&self, progress: u64, total: u64) -> Value {
        let token = match &self.params["_meta"]["progressToken"] {
            Value::Null => self.id.clone(),
            token => token.clone(),
        };
        notification(
            "notifications/progress",
            json!({"progressToken": token, "progress": progress, "total": total}),
        )
    }

    /// That the list has changed, as a subscriber of this request hears it.
    pub(super) fn list_changed(&self) -> Value {
        let mut params = Map::new();
        if self.era == Era::Modern {
            params.insert("_meta".to_owned(), json!({META_SUBSCRIPTION: self.id}));
        }
        notification("notifications/tools/list_changed", Value::Object(params))
    }

    /// The first thing that a subscriber hears.
    pub(super) fn acknowledged(&self) -> Value {
        let params = json!({
            "_meta": {META_SUBSCRIPTION: self.id},
            "notifications": self.params["notifications"],
        });
        notification("notifications/subscriptions/acknowledged", params)
    }
}

pub(super) fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// Blocks of content: one text.
pub(super) fn text(text: impl Into<String>) -> Value {
    json!({"content": [{"type": "text", "text": text.into()}]})
}

fn capabilities() -> Value {
    json!({"tools": {"listChanged": true}})
}

fn server_info() -> Value {
    json!({"name": "upstream", "version": "1"})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_era_follows_from_the_request() {
        let modern = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list",
            "params": {"_meta": {META_VERSION: MODERN}}});
        let modern = Request::read(&modern).unwrap();
        assert_eq!(modern.era, Era::Modern);
        let answer = modern.result(json!({"tools": []}));
        assert_eq!(answer["result"]["resultType"], "complete");
        assert_eq!(answer["result"]["ttlMs"], TTL_MS);
        let legacy = Request::read(&json!({"id": "a", "method": "ping"})).unwrap();
        assert_eq!(legacy.result(json!({})), json!({"jsonrpc": "2.0", "id": "a", "result": {}}));
        assert!(Request::read(&json!({"method": "notifications/initialized"})).is_none());
    }
}
