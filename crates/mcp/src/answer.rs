//! The answer to a request: members of a result, and how they are written for the client's
//! version. The stateless version wants to read in each result of what kind it is and who we are.

use super::client::Version;
use axum::body::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;
use wire::jsonrpc::{Id, RpcError};
use wire::mcp::META_SERVER;

/// The answer to a request.
pub(crate) type AnswerResult = Result<Outcome, RpcError>;

/// A result, not yet written for a version.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    kind: Kind,
    /// The members of the result object as JSON text, without the braces: `"content":[]`.
    members: String,
    /// A large part of that text that is kept elsewhere, and what stands after it: it is sent as it
    /// lies there.
    shared: Option<(Bytes, String)>,
    /// The members of its `_meta`, if it has any.
    meta: Map<String, Value>,
}

/// Of what kind a result is, in the stateless version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It is over.
    Complete,
    /// It is called again with what is asked for.
    InputRequired,
    /// It continues as a task.
    Task,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Complete => "complete",
            Kind::InputRequired => "input_required",
            Kind::Task => "task",
        }
    }
}

impl Outcome {
    /// A complete result of these members, which must be an object.
    pub(crate) fn complete(result: &impl Serialize) -> Self {
        Self::of(Kind::Complete, result)
    }

    /// A result of this kind and these members, which must be an object.
    pub(crate) fn of(kind: Kind, result: &impl Serialize) -> Self {
        // These are plain data; writing them as JSON cannot fail.
        let mut text = serde_json::to_string(result).unwrap_or_default();
        // Without the braces, in the same place.
        match (text.pop(), text.starts_with('{')) {
            (Some('}'), true) => drop(text.drain(..1)),
            _ => text.clear(),
        }
        Self::written(kind, text)
    }

    /// A result whose members are written already, without the braces.
    pub(crate) fn written(kind: Kind, members: String) -> Self {
        Self { kind, members, shared: None, meta: Map::new() }
    }

    /// The same with a large text after the written members, and what follows it.
    #[must_use]
    pub(crate) fn shared(mut self, text: Bytes, after: String) -> Self {
        self.shared = Some((text, after));
        self
    }

    /// A result without members.
    pub(crate) fn empty() -> Self {
        Self::written(Kind::Complete, String::new())
    }

    /// The same with members in its `_meta`, which must not be among the written ones.
    #[must_use]
    pub(crate) fn with_meta(mut self, meta: Map<String, Value>) -> Self {
        self.meta = meta;
        self
    }

    /// The same with more members in its `_meta`.
    #[must_use]
    pub(crate) fn and_meta(mut self, more: Map<String, Value>) -> Self {
        self.meta.extend(more);
        self
    }

    /// The result object for a version.
    pub(crate) fn write(&self, version: Version) -> String {
        let mut text = String::with_capacity(self.members.len() + 160);
        self.begin(&mut text, version);
        if let Some((shared, after)) = &self.shared {
            // It was written as a text.
            text.push_str(&String::from_utf8_lossy(shared));
            text.push_str(after);
        }
        self.end(&mut text, version);
        text
    }

    /// The response to a request in pieces: what is kept elsewhere is not copied.
    pub(crate) fn pieces(&self, id: &Id, version: Version) -> [Bytes; 3] {
        let id = id.as_json();
        let mut head = String::with_capacity(self.members.len() + id.len() + 200);
        head.push_str("{\"jsonrpc\":\"2.0\",\"id\":");
        head.push_str(id);
        head.push_str(",\"result\":");
        self.begin(&mut head, version);
        let Some((shared, after)) = &self.shared else {
            self.end(&mut head, version);
            head.push('}');
            return [head.into(), Bytes::new(), Bytes::new()];
        };
        let mut tail = after.clone();
        self.end(&mut tail, version);
        tail.push('}');
        [head.into(), shared.clone(), tail.into()]
    }

    fn begin(&self, text: &mut String, version: Version) {
        text.push('{');
        if version.is_modern() {
            text.push_str("\"resultType\":\"");
            text.push_str(self.kind.name());
            text.push('"');
        }
        add(text, &self.members);
    }

    fn end(&self, text: &mut String, version: Version) {
        if version.is_modern() {
            if self.meta.is_empty() {
                add(text, &MODERN_META);
            } else {
                let mut meta = self.meta.clone();
                meta.entry(META_SERVER).or_insert_with(server_info);
                add(text, &format!("\"_meta\":{}", Value::Object(meta)));
            }
        } else if !self.meta.is_empty() {
            add(text, &format!("\"_meta\":{}", Value::Object(self.meta.clone())));
        }
        text.push('}');
    }
}

fn add(text: &mut String, members: &str) {
    if members.is_empty() {
        return;
    }
    if !text.is_empty() && !text.ends_with('{') {
        text.push(',');
    }
    text.push_str(members);
}

/// `_meta` of a result that has none of its own.
static MODERN_META: LazyLock<String> =
    LazyLock::new(|| format!("\"_meta\":{{\"{META_SERVER}\":{}}}", server_info()));

/// Who we are.
pub(crate) fn server_info() -> Value {
    json!({"name": "waypost", "title": "Waypost", "version": env!("CARGO_PKG_VERSION")})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(outcome: &Outcome, version: Version) -> Value {
        serde_json::from_str(&outcome.write(version)).unwrap()
    }

    #[test]
    fn the_stateless_version_reads_the_kind_and_who_we_are() {
        let outcome = Outcome::complete(&json!({"tools": []}));
        assert_eq!(read(&outcome, Version::June2025), json!({"tools": []}));
        let modern = read(&outcome, Version::July2026);
        assert_eq!(modern["resultType"], "complete");
        assert_eq!(modern["tools"], json!([]));
        assert_eq!(modern["_meta"][META_SERVER]["name"], "waypost");
    }

    #[test]
    fn an_empty_outcome_is_a_result() {
        assert_eq!(read(&Outcome::empty(), Version::June2025), json!({}));
        assert_eq!(read(&Outcome::empty(), Version::July2026)["resultType"], "complete");
    }

    #[test]
    fn pieces_make_the_same_response() {
        let plain = Outcome::complete(&json!({"a": 1}));
        let list = Outcome::written(Kind::Complete, "\"tools\":[".to_owned())
            .shared(Bytes::from_static(b"1,2"), "],\"ttlMs\":3".to_owned());
        for (outcome, version) in [&plain, &list].into_iter().flat_map(|outcome| {
            [Version::July2026, Version::June2025].map(|version| (outcome, version))
        }) {
            let id = Id::number(7);
            let pieces = outcome.pieces(&id, version).concat();
            let whole = wire::jsonrpc::result(&id, &outcome.write(version));
            assert_eq!(String::from_utf8(pieces).unwrap(), whole);
        }
        assert_eq!(read(&list, Version::June2025), json!({"tools": [1, 2], "ttlMs": 3}));
    }

    #[test]
    fn own_meta_stands_beside_ours() {
        let meta = json!({"a": 1}).as_object().cloned().unwrap();
        let outcome = Outcome::of(Kind::Task, &json!({"taskId": "t"})).with_meta(meta);
        let modern = read(&outcome, Version::July2026);
        assert_eq!(modern["_meta"]["a"], 1);
        assert_eq!(modern["_meta"][META_SERVER]["name"], "waypost");
        assert_eq!(read(&outcome, Version::June2025)["_meta"], json!({"a": 1}));
    }
}
