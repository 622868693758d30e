//! Parses what a server requests of its caller: a form, a page, a model turn, roots. Both eras use
//! the same shapes, only at different times. What cannot be passed on is refused to the server, or
//! ends the call.

use super::super::requests::{ELICIT, ROOTS, SAMPLE};
use kernel::tool::call::{Abilities, InputRequest};
use kernel::values::members::take;
use reqwest::Url;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::jsonrpc::{INTERNAL_ERROR, METHOD_NOT_FOUND, RpcError};
use wire::mcp::{MISSING_CAPABILITY, PAGES_FIRST};

/// Parses a server's request for input, or refuses it.
pub(crate) fn read(method: &str, params: &Value) -> Result<InputRequest, RpcError> {
    match method {
        ELICIT => elicitation(params),
        ROOTS => Ok(InputRequest::Roots),
        SAMPLE => sampling(params),
        other => Err(RpcError::new(METHOD_NOT_FOUND, format!("there is no method `{other}` here"))),
    }
}

/// The answer to a server that asks for what the caller of this call, who can do this, does not
/// have: that of a client which did not declare it. One that has only the other kind of elicitation
/// knows the method, but not its mode.
pub(crate) fn nobody(want: &InputRequest, can: Abilities) -> RpcError {
    let message = format!("the caller of this tool has no {}", noun(want));
    let is_elicitation = matches!(want, InputRequest::Form { .. } | InputRequest::Url { .. });
    match is_elicitation && (can.form || can.page) {
        true => RpcError::invalid_params(message),
        false => RpcError::new(METHOD_NOT_FOUND, message),
    }
}

/// The answer to a server whose question the caller of its call answered with this error.
pub(crate) fn refusal(error: &Value) -> RpcError {
    let code = error["code"].as_i64().unwrap_or(INTERNAL_ERROR);
    let message = error["message"].as_str().unwrap_or("the caller refused to answer");
    RpcError { code, message: message.to_owned(), data: error.get("data").cloned() }
}

/// What someone has who can give it.
fn noun(want: &InputRequest) -> &'static str {
    match want {
        InputRequest::Form { .. } => "person who could fill in a form (elicitation)",
        InputRequest::Url { .. } => "person who could open a page (elicitation)",
        InputRequest::Sample { .. } => "model to lend (sampling)",
        InputRequest::Roots => "folders to list (roots)",
    }
}

fn sampling(params: &Value) -> Result<InputRequest, RpcError> {
    if !params.get("messages").is_some_and(Value::is_array) {
        return Err(RpcError::invalid_params("`messages` is missing, or no list"));
    }
    let mut request = params.clone();
    if let Some(request) = request.as_object_mut() {
        // It was said for this hop: a token for progress, a task of ours.
        take(request, "_meta");
    }
    Ok(InputRequest::Sample { request: Arc::new(request) })
}

fn elicitation(params: &Value) -> Result<InputRequest, RpcError> {
    let message = match params.get("message") {
        Some(Value::String(message)) => message.clone(),
        _ => return Err(RpcError::invalid_params("`message` is missing, or no text")),
    };
    match params.get("mode").map(|mode| (mode, mode.as_str())) {
        None | Some((_, Some("form"))) => {
            let schema = params.get("requestedSchema").unwrap_or(&Value::Null);
            form(schema).map_err(RpcError::invalid_params)?;
            Ok(InputRequest::Form { message, schema: Arc::new(schema.clone()) })
        }
        Some((_, Some("url"))) => {
            let url = params.get("url").and_then(Value::as_str).unwrap_or_default();
            let known = Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
            if !known {
                let message = "`url` is missing, or does not begin with `http://` or `https://`";
                return Err(RpcError::invalid_params(message));
            }
            Ok(InputRequest::Url { message, url: url.to_owned() })
        }
        Some((mode, _)) => {
            let message = format!("mode {mode} was not declared; `form` and `url` were");
            Err(RpcError::invalid_params(message))
        }
    }
}

/// Whether a schema is that of a form: an object of plain fields.
fn form(schema: &Value) -> Result<(), String> {
    if schema.get("type").is_none_or(|kind| kind != "object") {
        return Err("`requestedSchema` must be the schema of an object".to_owned());
    }
    let no_fields = Map::new();
    let fields = match schema.get("properties") {
        None => &no_fields,
        Some(Value::Object(fields)) => fields,
        Some(_) => return Err("`properties` of `requestedSchema` must be an object".to_owned()),
    };
    match fields.iter().find(|(_, field)| !is_plain(field) && !is_choices(field)) {
        Some((name, _)) => Err(format!(
            "field `{name}` of `requestedSchema` is no text, number, boolean or list of choices"
        )),
        None => Ok(()),
    }
}

/// A text, a number, a boolean, or one of such.
fn is_plain(field: &Value) -> bool {
    let of = |key: &str| field.get(key).and_then(Value::as_array);
    match field.get("type") {
        Some(Value::String(kind)) => {
            matches!(kind.as_str(), "string" | "number" | "integer" | "boolean" | "null")
        }
        Some(_) => false,
        // An optional field, as some servers write it.
        None => match of("anyOf").or(of("oneOf")) {
            Some(members) => members.iter().all(is_plain),
            None => of("enum").is_some() || field.get("const").is_some(),
        },
    }
}

/// Some of several texts.
fn is_choices(field: &Value) -> bool {
    let choices = |items: &Value| {
        ["enum", "anyOf", "oneOf"].iter().any(|key| items.get(key).is_some_and(Value::is_array))
    };
    field.get("type").is_some_and(|kind| kind == "array") && field.get("items").is_some_and(choices)
}

/// Input that a stateless answer requires, by the server's keys.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Requests {
    /// Passed on to the caller.
    pub(crate) wants: BTreeMap<String, InputRequest>,
    /// Declined without asking, with the answer.
    pub(crate) declined: Map<String, Value>,
    /// Can be neither passed on nor declined, with the reason.
    pub(crate) impossible: Vec<(String, String)>,
    /// Abilities that the caller lacks, if that is the reason.
    pub(crate) lacks: Abilities,
}

impl Requests {
    /// `inputRequests` of an answer to a caller that can do this. What was not declared is not
    /// declined in a person's name: no one was asked.
    pub(crate) fn read(requests: Option<&Value>, can: Abilities) -> Self {
        let mut read = Self::default();
        let Some(Value::Object(requests)) = requests else { return read };
        for (key, request) in requests {
            let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
            let params = request.get("params").unwrap_or(&Value::Null);
            match self::read(method, params) {
                Ok(want) if !can.can(&want) => {
                    let why = format!("the caller has no {}", noun(&want));
                    read.impossible.push((key.clone(), why));
                    read.lacks = read.lacks.and(&want);
                }
                Ok(want) => drop(read.wants.insert(key.clone(), want)),
                // A person can decline, so we can, too.
                Err(error) if method == ELICIT => {
                    tracing::debug!(key, "an upstream's question is declined: {}", error.message);
                    read.declined.insert(key.clone(), decline());
                }
                Err(error) => read.impossible.push((key.clone(), error.message)),
            }
        }
        read
    }

    /// The same without these keys.
    pub(crate) fn without(mut self, keys: &[String]) -> Self {
        let is_new = |key: &String| !keys.contains(key);
        self.wants.retain(|key, _| is_new(key));
        self.declined.retain(|key, _| is_new(key));
        self.impossible.retain(|(key, _)| is_new(key));
        self
    }
}

/// The answer of a person who does not want to say it.
pub(crate) fn decline() -> Value {
    json!({"action": "decline"})
}

/// Missing abilities by a stateless server's error (`data.requiredCapabilities`), as far as this
/// caller really lacks them.
pub(crate) fn missing(error: &RpcError, can: Abilities) -> Abilities {
    let data = error.data.as_ref().filter(|_| error.code == MISSING_CAPABILITY);
    let Some(needed) = data.map(|data| &data["requiredCapabilities"]) else {
        return Abilities::default();
    };
    let elicitation = &needed["elicitation"];
    let page = elicitation["url"].is_object();
    // An empty object means forms, as before there were pages.
    let form = elicitation["form"].is_object() || (elicitation.is_object() && !page);
    Abilities {
        form: form && !can.form,
        page: page && !can.page,
        sample: needed["sampling"].is_object() && !can.sample,
        roots: needed["roots"].is_object() && !can.roots,
        ..Abilities::default()
    }
}

/// The pages that must be opened before a call can be made: `data.elicitations` of its error.
pub(crate) fn pages(error: &RpcError) -> BTreeMap<String, InputRequest> {
    let listed = error.data.as_ref().filter(|_| error.code == PAGES_FIRST);
    let listed = listed.and_then(|data| data.get("elicitations")).and_then(Value::as_array);
    // Its own id is the best key: the one who shows the page can name it.
    let key = |number: usize, params: &Value| {
        let id = params["elicitationId"].as_str().filter(|id| !id.is_empty());
        id.map_or_else(|| format!("page-{}", number + 1), str::to_owned)
    };
    let page = |(number, params): (usize, &Value)| match elicitation(params) {
        Ok(want @ InputRequest::Url { .. }) => Some((key(number, params), want)),
        _ => None,
    };
    listed.into_iter().flatten().enumerate().filter_map(page).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(params: Value) -> Result<InputRequest, i64> {
        read(ELICIT, &params).map_err(|error| error.code)
    }

    fn with(schema: Value) -> Result<InputRequest, i64> {
        asked(json!({"message": "m", "requestedSchema": schema}))
    }

    #[test]
    fn forms_and_pages_are_passed_on() {
        let schema = json!({"type": "object", "properties": {
            "name": {"type": "string", "minLength": 1},
            "age": {"type": "integer"}, "sure": {"type": "boolean", "default": true},
            "one": {"type": "string", "oneOf": [{"const": "a", "title": "A"}]},
            "some": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "titled": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        }, "required": ["name"]});
        let form = InputRequest::Form { message: "m".to_owned(), schema: Arc::new(schema.clone()) };
        assert_eq!(with(schema.clone()), Ok(form.clone()));
        let named = json!({"mode": "form", "message": "m", "requestedSchema": schema});
        assert_eq!(asked(named), Ok(form));
        let page = json!({"mode": "url", "message": "m", "url": "https://a.test/x",
            "elicitationId": "1"});
        let want =
            InputRequest::Url { message: "m".to_owned(), url: "https://a.test/x".to_owned() };
        assert_eq!(asked(page), Ok(want));
        assert_eq!(read(ROOTS, &Value::Null), Ok(InputRequest::Roots));
        let turn = json!({"messages": [], "maxTokens": 9, "_meta": {"progressToken": 1}});
        let request = Arc::new(json!({"messages": [], "maxTokens": 9}));
        assert_eq!(read(SAMPLE, &turn), Ok(InputRequest::Sample { request }));
    }

    #[test]
    fn other_elicitation_modes_are_refused() {
        for schema in [
            Value::Null,
            json!({}),
            json!({"type": "string"}),
            json!({"type": "object", "properties": []}),
            json!({"type": "object", "properties": {"a": {"type": "object"}}}),
            json!({"type": "object", "properties": {"a": {"type": "array"}}}),
            json!({"type": "object", "properties": {"a": {"type": ["string", "object"]}}}),
            json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "object"}]}}}),
            json!({"type": "object", "properties": {"a": {}}}),
        ] {
            assert_eq!(with(schema.clone()), Err(-32602), "{schema}");
        }
        for url in ["javascript:alert(1)", "file:///etc/passwd", "", "a.test/x"] {
            let asked = asked(json!({"mode": "url", "message": "m", "url": url}));
            assert_eq!(asked, Err(-32602), "{url}");
        }
        assert_eq!(asked(json!({"mode": "voice", "message": "m"})), Err(-32602));
        assert_eq!(asked(json!({"requestedSchema": {"type": "object"}})), Err(-32602));
        for (method, code) in [(SAMPLE, -32602), ("tools/list", -32601)] {
            assert_eq!(read(method, &json!({})).map_err(|error| error.code), Err(code));
        }
        assert_eq!(nobody(&InputRequest::Roots, Abilities::PERSON).code, -32601);
        let page = InputRequest::Url { message: String::new(), url: String::new() };
        assert_eq!(nobody(&page, Abilities::default()).code, -32601);
        let form = Abilities { form: true, ..Abilities::default() };
        assert_eq!(nobody(&page, form).code, -32602);
    }

    #[test]
    fn several_questions_are_routed_separately() {
        let can = Abilities { roots: true, ..Abilities::PERSON };
        let asked = json!({
            "roots": {"method": "roots/list"},
            "bad": {"method": "elicitation/create", "params": {"message": "m"}},
            "turn": {"method": "sampling/createMessage", "params": {"messages": []}},
        });
        let requests = Requests::read(Some(&asked), can);
        assert_eq!(requests.wants, BTreeMap::from([("roots".to_owned(), InputRequest::Roots)]));
        assert_eq!(requests.declined.get("bad"), Some(&json!({"action": "decline"})));
        assert_eq!(requests.impossible.len(), 1);
        assert_eq!(requests.impossible[0].0, "turn");
        assert_eq!(requests.lacks, Abilities { sample: true, ..Abilities::default() });
        assert_eq!(Requests::read(None, can), Requests::default());
        let form = json!({"who": {"method": "elicitation/create",
            "params": {"message": "m", "requestedSchema": {"type": "object"}}}});
        let requests = Requests::read(Some(&form), Abilities::default());
        assert!(requests.declined.is_empty(), "nobody was asked who could decline");
        assert!(requests.lacks.form && requests.impossible.len() == 1);
    }

    #[test]
    fn missing_abilities_are_read_from_the_error() {
        let missing = |code, needed: Value, can| {
            let data = json!({"requiredCapabilities": needed});
            super::missing(&RpcError::new(code, "no").data(data), can)
        };
        let needed = json!({"sampling": {}, "elicitation": {}});
        let all = Abilities { form: true, sample: true, ..Abilities::default() };
        assert_eq!(missing(MISSING_CAPABILITY, needed.clone(), Abilities::default()), all);
        let sample = Abilities { sample: true, ..Abilities::default() };
        assert_eq!(missing(MISSING_CAPABILITY, needed.clone(), Abilities::PERSON), sample);
        assert!(missing(-32602, needed, Abilities::default()).is_none());
        let unknown = json!({"extensions": {"a.test/x": {}}});
        assert!(missing(MISSING_CAPABILITY, unknown, Abilities::default()).is_none());
    }

    #[test]
    fn login_pages_are_read_from_the_error() {
        let page = |url: &str| json!({"mode": "url", "message": "m", "url": url});
        let data = json!({"elicitations": [page("https://a.test/"), page("x"), page("http://b/")]});
        let error = RpcError::new(PAGES_FIRST, "open these").data(data.clone());
        let pages = pages(&error);
        assert_eq!(pages.keys().collect::<Vec<_>>(), ["page-1", "page-3"]);
        let mut named = page("https://a.test/");
        named["elicitationId"] = json!("e1");
        let error = RpcError::new(PAGES_FIRST, "no").data(json!({"elicitations": [named]}));
        assert_eq!(super::pages(&error).keys().collect::<Vec<_>>(), ["e1"]);
        assert!(super::pages(&RpcError::new(-32000, "no").data(data)).is_empty());
    }
}
