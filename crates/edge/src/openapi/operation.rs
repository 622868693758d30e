//! What the table says of one route, and how that reads in OpenAPI.

use super::schemas::{Shape, Shapes, of};
use serde_json::{Map, Value, json};
use wire::conversations::ThreadError;
use wire::plan_sessions::PlainError;
use wire::query_gateway::NamedError;
use wire::rest::{PROBLEM_TYPE, Problem};

/// One route: what it takes and what it answers.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// Its name in generated clients.
    pub id: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Names of `parameters`.
    pub parameters: &'static [&'static str],
    pub body: Body,
    pub answers: &'static [Answer],
    /// The statuses of its refusals, in groups.
    pub refusals: &'static [&'static [u16]],
}

/// What a route takes as its body.
#[derive(Debug, Clone, Copy)]
pub enum Body {
    None,
    /// JSON of this shape.
    Json(Shape),
    /// The same, or nothing.
    Maybe(Shape),
    /// A form with the members of this shape.
    Form(Shape),
}

/// A route's answer when all went well.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    status: u16,
    about: &'static str,
    content: Content,
    /// Names of `headers`.
    headers: &'static [&'static str],
}

/// What an answer carries.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    None,
    Json(Shape),
    /// JSON of any shape.
    AnyJson,
    /// JSON of this shape, or server-sent events where the client wants them.
    JsonOrEvents(Shape),
    /// Server-sent events.
    Events,
    /// Text of this type.
    Text(&'static str),
}

/// An answer without headers of its own.
pub const fn answer(status: u16, content: Content, about: &'static str) -> Answer {
    Answer { status, about, content, headers: &[] }
}

/// The same, of JSON.
pub const fn json_answer(status: u16, shape: Shape, about: &'static str) -> Answer {
    answer(status, Content::Json(shape), about)
}

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";
const EVENTS: &str = "text/event-stream";

/// What can go wrong at any endpoint before its handler is asked.
const FRAME: &[u16] = &[400, 401, 403, 429];
/// What can go wrong with a body.
pub const BODY: &[u16] = &[400, 408, 413, 422];
/// What can go wrong when the store is read.
pub const READ: &[u16] = &[429, 500, 503];
/// What can go wrong when something is written.
pub const WRITE: &[u16] = &[429, 500, 503, 507];

/// How an endpoint tells its errors: their shape and the content type.
#[derive(Debug, Clone, Copy)]
pub struct Refusals {
    prefix: &'static str,
    shape: Shape,
    content_type: &'static str,
}

/// RFC 9457.
pub const PROBLEM: Refusals =
    Refusals { prefix: "problem", shape: of::<Problem>, content_type: PROBLEM_TYPE };
/// The session endpoints' own object.
pub const PLAIN: Refusals =
    Refusals { prefix: "error", shape: of::<PlainError>, content_type: "application/json" };

/// The object whose `error` is the stable word.
pub const NAMED: Refusals =
    Refusals { prefix: "named", shape: of::<NamedError>, content_type: "application/json" };

/// The object of `/run` and `/resume`.
pub const THREAD: Refusals =
    Refusals { prefix: "thread", shape: of::<ThreadError>, content_type: "application/json" };

impl Refusals {
    /// The named answers of this shape, for all statuses there are.
    pub(super) fn responses(self, shapes: &mut Shapes) -> impl Iterator<Item = (String, Value)> {
        let schema = shapes.answered(self.shape);
        STATUSES.iter().map(move |(status, about)| {
            let mut response = json!({
                "description": about,
                "content": {(self.content_type): {"schema": schema}}
            });
            if let Some(header) = header_of(*status) {
                response["headers"] = references("headers", &[header]);
            }
            (self.name(*status), response)
        })
    }

    fn name(self, status: u16) -> String {
        if status == 0 {
            format!("{}Default", self.prefix)
        } else {
            format!("{}{status}", self.prefix)
        }
    }
}

/// All refusals there are; 0 is any other.
const STATUSES: &[(u16, &str)] = &[
    (0, "any other refusal"),
    (400, "cannot be parsed, or contradicts itself"),
    (401, "not with these credentials"),
    (403, "not for this host or origin, or policy says no"),
    (404, "there is none, or it is another realm's"),
    (408, "the body did not come in time"),
    (409, "contradicts the present state; the body says which state, and who won"),
    (410, "it is gone for good"),
    (412, "another version is stored"),
    (413, "too large"),
    (422, "parses, but has the wrong shape"),
    (429, "too many at once"),
    (500, "the server failed"),
    (502, "a tool failed"),
    (503, "not now"),
    (504, "it takes longer than a request may; what began continues"),
    (507, "no room on the disk"),
];

fn header_of(status: u16) -> Option<&'static str> {
    match status {
        401 => Some("WWW-Authenticate"),
        429 | 503 => Some("Retry-After"),
        _ => None,
    }
}

impl Operation {
    /// Nothing is said yet.
    pub const NONE: Self = Self {
        id: "",
        summary: "",
        parameters: &[],
        body: Body::None,
        answers: &[],
        refusals: &[],
    };

    /// The operation as OpenAPI writes it.
    pub(super) fn shown(&self, refusals: Refusals, shapes: &mut Shapes) -> Value {
        let parameters: Vec<Value> =
            self.parameters.iter().map(|name| reference("parameters", name)).collect();
        let mut shown = json!({
            "operationId": self.id,
            "summary": self.summary,
            "parameters": parameters,
            "responses": self.responses(refusals, shapes),
        });
        let body = match self.body {
            Body::None => None,
            Body::Json(shape) => Some((JSON, shape, true)),
            Body::Maybe(shape) => Some((JSON, shape, false)),
            Body::Form(shape) => Some((FORM, shape, true)),
        };
        if let Some((content_type, shape, required)) = body {
            shown["requestBody"] = json!({
                "required": required,
                "content": {(content_type): {"schema": shapes.taken(shape)}}
            });
        }
        shown
    }

    fn responses(&self, refusals: Refusals, shapes: &mut Shapes) -> Map<String, Value> {
        let named = |status: u16| reference("responses", &refusals.name(status));
        let mut responses = Map::new();
        for answer in self.answers {
            responses.insert(answer.status.to_string(), answer.shown(shapes));
        }
        for status in self.refusals.iter().copied().chain([FRAME]).flatten() {
            // Where a route answers with a body of its own, that is what it answers.
            responses.entry(status.to_string()).or_insert_with(|| named(*status));
        }
        responses.insert("default".to_owned(), named(0));
        responses
    }
}

impl Answer {
    /// The same answer with these headers.
    pub const fn headers(self, headers: &'static [&'static str]) -> Self {
        Self { headers, ..self }
    }

    fn shown(&self, shapes: &mut Shapes) -> Value {
        let mut shown = json!({"description": self.about});
        let text = || json!({"type": "string"});
        let content = match self.content {
            Content::None => Vec::new(),
            Content::Json(shape) => vec![(JSON, shapes.answered(shape))],
            Content::AnyJson => vec![(JSON, json!({}))],
            Content::JsonOrEvents(shape) => vec![(JSON, shapes.answered(shape)), (EVENTS, text())],
            Content::Events => vec![(EVENTS, text())],
            Content::Text(content_type) => vec![(content_type, text())],
        };
        for (content_type, schema) in content {
            shown["content"][content_type] = json!({"schema": schema});
        }
        if !self.headers.is_empty() {
            shown["headers"] = references("headers", self.headers);
        }
        shown
    }
}

fn reference(group: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{group}/{name}")})
}

fn references(group: &str, names: &[&str]) -> Value {
    names.iter().map(|name| ((*name).to_owned(), reference(group, name))).collect()
}
