//! Tools and prompts that want something of the client first. In the stateless version the answer
//! is `input_required`, and the client calls again with the outcome and with a sealed state; in
//! the versions with a handshake the client is asked at once.

use super::elicit::{self, opens_pages, shows_forms};
use crate::answer::{Kind, Outcome};
use crate::client::Client;
use crate::exchange::Exchange;
use crate::messages::outbox::AskError;
use crate::seal::SealScope;
use engine::Engine;
use kernel::tool::call::{Abilities, InputRequest, InputRequired, InputResponses};
use kernel::tool::schema::sentence;
use kernel::values::canonical;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::jsonrpc::{RpcError, even_null};
use wire::mcp::{MISSING_CAPABILITY, PAGES_FIRST, TASKS};

/// How often one call asks its client again: for more, or because an answer did not fit.
pub(crate) const ROUNDS_MAX: u32 = 16;
/// How a client learns that a page was opened that it was given.
const PAGE_OPENED: &str = "notifications/elicitation/complete";

/// What a client adds to a request when it sends it again.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Retry {
    /// Its answers, by our keys. `null` is an answer, and a wrong one.
    #[serde(deserialize_with = "even_null")]
    pub(crate) input_responses: Option<Value>,
    /// The state that it got with the questions.
    pub(crate) request_state: Option<String>,
}

/// The outcome of wanting something.
pub(crate) enum InputOutcome {
    /// It is there: call again with it.
    Again(InputResponses),
    /// The client has to be asked first.
    Answer(Outcome),
}

/// What the client carries between two rounds.
#[derive(Debug, Serialize, Deserialize)]
struct RoundState {
    /// What it was asked for.
    wanted: BTreeMap<String, ExpectedAnswer>,
    /// The answers of earlier rounds, and the tool's own state.
    given: InputResponses,
}

/// What the answer to one question must be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum ExpectedAnswer {
    /// A form; without a schema its own server judges what is filled in.
    Form {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schema: Option<Arc<Value>>,
    },
    Page,
    Sample,
    Roots,
}

/// What a state is bound to: method, name and a digest of the arguments.
pub(crate) fn what(method: &str, name: &str, arguments: &Value) -> String {
    format!("{method} {name} {}", canonical::digest(arguments))
}

/// The answers to what a tool or prompt wanted before, out of a request that is sent again. Keys
/// that no one asked for are ignored.
pub(crate) fn given(
    exchange: &Exchange,
    retry: &Retry,
    bound: &SealScope,
) -> Result<InputResponses, RpcError> {
    gathered(exchange, retry, opened(exchange, retry, bound)?)
}

/// The state of a request that is sent again.
pub(crate) fn opened(
    exchange: &Exchange,
    retry: &Retry,
    bound: &SealScope,
) -> Result<Option<Value>, RpcError> {
    match &retry.request_state {
        Some(state) if exchange.client.version.is_modern() => {
            let now = exchange.mcp.server.engine.clock().now();
            exchange.mcp.seal.open(state, bound, now).map(Some)
        }
        _ => Ok(None),
    }
}

/// `given` with the state already opened.
pub(crate) fn gathered(
    exchange: &Exchange,
    retry: &Retry,
    state: Option<Value>,
) -> Result<InputResponses, RpcError> {
    if !exchange.client.version.is_modern() {
        return Ok(InputResponses::default());
    }
    let mut responses = responses(retry)?;
    let Some(state) = state else {
        // A client that answers without a state: what the tool does not want it does not look at.
        let inputs = responses.into_iter().collect();
        return Ok(InputResponses { inputs, ..InputResponses::default() });
    };
    let RoundState { wanted, mut given } = serde_json::from_value(state).map_err(|_| {
        RpcError::invalid_params("`requestState` is not one of this request; send it as it came")
    })?;
    for (key, expected) in wanted {
        if let Some(response) = responses.remove(&key) {
            expected.check(&exchange.mcp.server.engine, &key, &response)?;
            given.inputs.insert(key, response);
        }
    }
    Ok(given)
}

/// The client's answers, by our keys; none if it sent none.
pub(crate) fn responses(retry: &Retry) -> Result<Map<String, Value>, RpcError> {
    let responses = match &retry.input_responses {
        None => return Ok(Map::new()),
        Some(Value::Object(responses)) => responses,
        Some(_) => {
            let message = "`inputResponses` must be an object: the answers by the keys asked for";
            return Err(RpcError::invalid_params(message));
        }
    };
    match responses.iter().find(|(_, response)| !response.is_object()) {
        Some((key, _)) => Err(unfit(key, "it must be an object")),
        None => Ok(responses.clone()),
    }
}

/// Gets what a prompt, or the tool of this name, wants of the client, as far as the client can do
/// it: nothing else is ever asked of it.
pub(crate) async fn want(
    exchange: &Exchange,
    tool: Option<&str>,
    wants: &InputRequired,
    so_far: InputResponses,
    bound: &SealScope,
) -> Result<InputOutcome, RpcError> {
    let mut given = so_far;
    // What is wanted again was not good enough.
    given.inputs.retain(|key, _| !wants.inputs.contains_key(key));
    given.refused.retain(|key, _| !wants.inputs.contains_key(key));
    given.state = wants.state.clone();
    let client = &exchange.client;
    let engine = &exchange.mcp.server.engine;
    let judge = judge(exchange, tool);
    let anew =
        tool.is_some_and(|tool| engine.tools().can_be_asked_anew(&exchange.caller, tool, wants));
    if let Some(error) = pages_first(client, wants, anew) {
        if let Some(tool) = tool {
            wants.inputs.keys().for_each(|id| tell_when_opened(exchange, tool, id, id));
        }
        return Err(error);
    }
    let possible = possible(client, wants)?;
    if client.version.is_modern() {
        let (requests, wanted) = asked_for(exchange, &possible, judge);
        let carried = json!(RoundState { wanted, given });
        return Ok(InputOutcome::Answer(asking(exchange, requests, &carried, bound)));
    }
    for (key, want) in possible {
        let (method, params) = request(exchange, want);
        if let (Some(tool), Some(id)) = (tool, params["elicitationId"].as_str()) {
            tell_when_opened(exchange, tool, key, id);
        }
        match exchange.outbox.ask(method, params).await {
            Ok(answer) => {
                ExpectedAnswer::of(want, judge).check(engine, key, &answer)?;
                given.inputs.insert(key.clone(), answer);
            }
            // What that means is for the server to say that asked.
            Err(AskError::Refused(error)) if judge == FormValidator::Upstream => {
                given.refused.insert(key.clone(), error.to_value());
            }
            Err(unheard) => return Err(unheard.into()),
        }
    }
    Ok(InputOutcome::Again(given))
}

/// What the client can give of what is wanted; an error where that is nothing.
pub(crate) fn possible<'w>(
    client: &Client,
    wants: &'w InputRequired,
) -> Result<AskableInputs<'w>, RpcError> {
    let possible: AskableInputs<'w> =
        wants.inputs.iter().filter(|(_, want)| can(client, want)).collect();
    if possible.is_empty() && !wants.inputs.is_empty() {
        return Err(cannot(wants.inputs.values()));
    }
    Ok(possible)
}

/// What a client can be asked for, by key.
pub(crate) type AskableInputs<'w> = BTreeMap<&'w String, &'w InputRequest>;

/// Who judges what is filled into a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormValidator {
    /// We, by its schema.
    Us,
    /// The server that asked for it.
    Upstream,
}

/// Who judges the answers to what a prompt, or the tool of this name, wants: the tool of another
/// MCP server is given them as they are.
pub(crate) fn judge(exchange: &Exchange, tool: Option<&str>) -> FormValidator {
    let engine = &exchange.mcp.server.engine;
    let spec = tool.and_then(|tool| engine.tools().get(&exchange.caller, tool));
    match spec.is_some_and(|spec| spec.listed.is_some()) {
        true => FormValidator::Upstream,
        false => FormValidator::Us,
    }
}

/// What a stateless client is asked for, and what its answers must be.
pub(crate) fn asked_for(
    exchange: &Exchange,
    possible: &AskableInputs<'_>,
    judge: FormValidator,
) -> (Map<String, Value>, BTreeMap<String, ExpectedAnswer>) {
    let mut requests = Map::new();
    let mut wanted = BTreeMap::new();
    for (key, want) in possible {
        let (method, params) = request(exchange, want);
        requests.insert((*key).clone(), json!({"method": method, "params": params}));
        wanted.insert((*key).clone(), ExpectedAnswer::of(want, judge));
    }
    (requests, wanted)
}

/// The result that asks the client for these, and to come back with this state.
pub(crate) fn asking(
    exchange: &Exchange,
    requests: Map<String, Value>,
    state: &Value,
    bound: &SealScope,
) -> Outcome {
    let engine = &exchange.mcp.server.engine;
    let expires_at = engine.clock().now().plus_ms(engine.limits().mcp_state_ttl_ms);
    let state = exchange.mcp.seal.seal(bound, state, expires_at, engine.entropy().as_ref());
    let mut result = json!({});
    if !requests.is_empty() {
        result["inputRequests"] = Value::Object(requests);
    }
    result["requestState"] = json!(state);
    Outcome::of(Kind::InputRequired, &result)
}

/// The request by which a client is asked for this.
pub(crate) fn request(exchange: &Exchange, want: &InputRequest) -> (&'static str, Value) {
    let version = exchange.client.version;
    match want {
        InputRequest::Form { message, schema } => {
            (elicit::METHOD, elicit::form(message, (**schema).clone()))
        }
        InputRequest::Url { message, url } => {
            let id = format!("{:032x}", exchange.mcp.server.engine.entropy().bits());
            (elicit::METHOD, elicit::page(version, message, url, &id))
        }
        InputRequest::Sample { request } => ("sampling/createMessage", (**request).clone()),
        InputRequest::Roots => ("roots/list", json!({})),
    }
}

fn can(client: &Client, want: &InputRequest) -> bool {
    match want {
        InputRequest::Form { .. } => shows_forms(client),
        InputRequest::Url { .. } => opens_pages(client),
        InputRequest::Sample { .. } => client.can.sample,
        InputRequest::Roots => client.can.roots,
    }
}

/// What the client of a request can do for it. Without a stream, a client of the versions with a
/// handshake cannot be asked anything.
pub(crate) fn abilities(exchange: &Exchange) -> Abilities {
    let client = &exchange.client;
    let handshake = !client.version.is_modern();
    // With a handshake no client could declare the tasks of a stateless server: they are followed.
    let tasks = handshake || client.can.tasks;
    if handshake && !exchange.outbox.is_open() {
        return Abilities { handshake, tasks, ..Abilities::default() };
    }
    Abilities {
        form: shows_forms(client),
        page: opens_pages(client),
        sample: client.can.sample,
        roots: client.can.roots,
        later: false,
        handshake,
        tasks,
    }
}

/// Lets the client hear when a page is opened that this tool wants under this key, and that it is
/// given under this id, as far as the tool's own server tells. Only 2025-11-25 has a word for it.
pub(crate) fn tell_when_opened(exchange: &Exchange, tool: &str, key: &str, id: &str) {
    if exchange.client.version.is_modern() || !opens_pages(&exchange.client) {
        return;
    }
    let Some(later) = exchange.outbox.later() else { return };
    let params = json!({"elicitationId": id});
    let hearer = Box::new(move || later.tell(PAGE_OPENED, &params));
    let realm = &exchange.caller.realm;
    exchange.mcp.server.engine.tools().when_opened(realm, tool, key, hearer);
}

/// In the versions with a handshake: the answer to a call that needs nothing but pages, and for
/// which nothing is kept meanwhile. It is made again once they were opened; to ask for them in the
/// middle of it would hold it up for as long as a person needs. A tool with a state of its own has
/// the client asked all the same, if that opens pages; else it gets an error, where the call can be
/// made again.
fn pages_first(client: &Client, wants: &InputRequired, anew: bool) -> Option<RpcError> {
    if client.version.is_modern() || wants.inputs.is_empty() {
        return None;
    }
    if !wants.state.is_null() && (opens_pages(client) || !anew) {
        return None;
    }
    let page = |(id, want): (&String, &InputRequest)| match want {
        InputRequest::Url { message, url } => Some(elicit::page(client.version, message, url, id)),
        InputRequest::Form { .. } | InputRequest::Sample { .. } | InputRequest::Roots => None,
    };
    let pages: Vec<Value> = wants.inputs.iter().map(page).collect::<Option<_>>()?;
    let told: Vec<String> = pages
        .iter()
        .map(|page| {
            let text = |key: &str| page[key].as_str().unwrap_or_default();
            format!("{}: {}", text("message"), text("url"))
        })
        .collect();
    let message = format!("open this first, then call again: {}", told.join("; "));
    Some(RpcError::new(PAGES_FIRST, message).data(json!({"elicitations": pages})))
}

/// The client lacks what these need.
fn cannot<'a>(wants: impl Iterator<Item = &'a InputRequest>) -> RpcError {
    lacking(wants.fold(Abilities::default(), Abilities::and))
}

/// The client lacks these.
pub(crate) fn lacking(lacks: Abilities) -> RpcError {
    let mut needed = json!({});
    if lacks.form {
        needed["elicitation"]["form"] = json!({});
    }
    if lacks.page {
        needed["elicitation"]["url"] = json!({});
    }
    if lacks.sample {
        needed["sampling"] = json!({});
    }
    if lacks.roots {
        needed["roots"] = json!({});
    }
    if lacks.later {
        needed["extensions"][TASKS] = json!({});
    }
    missing_capability(&needed)
}

/// The client lacks these capabilities, written as a client declares them.
pub(crate) fn missing_capability(needed: &Value) -> RpcError {
    let message =
        format!("the request needs capabilities that the client did not declare: {needed}");
    RpcError::new(MISSING_CAPABILITY, message).data(json!({"requiredCapabilities": needed}))
}

fn unfit(key: &str, wrong: &str) -> RpcError {
    RpcError::invalid_params(format!("the answer to `{key}` does not fit: {wrong}"))
}

impl ExpectedAnswer {
    /// What the answer to this must be.
    pub(crate) fn of(want: &InputRequest, judge: FormValidator) -> Self {
        match want {
            InputRequest::Form { schema, .. } => ExpectedAnswer::Form {
                schema: (judge == FormValidator::Us).then(|| schema.clone()),
            },
            InputRequest::Url { .. } => ExpectedAnswer::Page,
            InputRequest::Sample { .. } => ExpectedAnswer::Sample,
            InputRequest::Roots => ExpectedAnswer::Roots,
        }
    }

    /// Refuses an invalid answer under this key.
    pub(crate) fn check(&self, engine: &Engine, key: &str, answer: &Value) -> Result<(), RpcError> {
        self.fits(engine, answer).map_err(|wrong| unfit(key, &wrong))
    }

    fn fits(&self, engine: &Engine, answer: &Value) -> Result<(), String> {
        match self {
            ExpectedAnswer::Form { schema: Some(schema) } if answer["action"] == "accept" => {
                let empty = json!({});
                let content = answer.get("content").unwrap_or(&empty);
                let checked = engine.tools().check_value(schema, content);
                checked.map_err(|misfits| sentence(&misfits))
            }
            ExpectedAnswer::Form { .. } | ExpectedAnswer::Page => match answer["action"].as_str() {
                Some("accept" | "decline" | "cancel") => Ok(()),
                _ => Err("`action` must be `accept`, `decline` or `cancel`".to_owned()),
            },
            ExpectedAnswer::Sample if answer.get("content").is_none() => {
                Err("`content` is missing: a turn of the model is expected".to_owned())
            }
            ExpectedAnswer::Roots if !answer["roots"].is_array() => {
                Err("`roots` must be a list".to_owned())
            }
            ExpectedAnswer::Sample | ExpectedAnswer::Roots => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{ClientCapabilities, Version};
    use wire::jsonrpc::INVALID_PARAMS;

    fn retry(text: &str) -> Retry {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn answers_are_objects_by_key() {
        assert!(responses(&retry("{}")).unwrap().is_empty());
        let good = retry(r#"{"inputResponses": {"a": {"action": "cancel"}}, "requestState": "x"}"#);
        assert_eq!(responses(&good).unwrap().len(), 1);
        assert_eq!(good.request_state.as_deref(), Some("x"));
        for wrong in ["null", "1", "[]", r#"{"a": 12345}"#, r#"{"a": null}"#] {
            let error = responses(&retry(&format!("{{\"inputResponses\": {wrong}}}"))).unwrap_err();
            assert_eq!(error.code, INVALID_PARAMS, "{wrong}");
        }
    }

    #[test]
    fn a_retry_is_read_beside_other_members() {
        #[derive(Deserialize)]
        struct Params {
            name: String,
            #[serde(flatten)]
            retry: Retry,
        }
        let params: Params =
            serde_json::from_str(r#"{"name": "n", "inputResponses": null, "_meta": {}}"#).unwrap();
        assert_eq!((params.name.as_str(), params.retry.input_responses), ("n", Some(Value::Null)));
        let params: Params = serde_json::from_str(r#"{"name": "n"}"#).unwrap();
        assert_eq!(params.retry.input_responses, None);
    }

    #[test]
    fn missing_capabilities_are_named_as_clients_declare_them() {
        let schema = Arc::new(json!({}));
        let wants = [
            InputRequest::Form { message: String::new(), schema },
            InputRequest::Url { message: String::new(), url: String::new() },
            InputRequest::Sample { request: Arc::new(json!({})) },
        ];
        let error = cannot(wants.iter());
        assert_eq!(error.code, MISSING_CAPABILITY);
        let needed = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}});
        assert_eq!(error.data, Some(json!({"requiredCapabilities": needed})));
    }

    #[test]
    fn a_client_is_asked_only_within_its_capabilities() {
        let client = |version, can| Client { version, can, log: None, progress: None };
        let samples = client(
            Version::July2026,
            ClientCapabilities { sample: true, ..ClientCapabilities::default() },
        );
        assert!(can(&samples, &InputRequest::Sample { request: Arc::new(json!({})) }));
        assert!(!can(&samples, &InputRequest::Roots));
        let form = InputRequest::Form { message: String::new(), schema: Arc::new(json!({})) };
        let old = client(
            Version::March2025,
            ClientCapabilities { form: true, ..ClientCapabilities::default() },
        );
        assert!(!can(&old, &form), "2025-03-26 has no forms");
        assert!(can(&Client { version: Version::June2025, ..old }, &form));
    }

    #[test]
    fn a_call_that_needs_pages_only_is_refused_with_them_in_the_older_versions() {
        let client = |version| Client {
            version,
            can: ClientCapabilities::default(),
            log: None,
            progress: None,
        };
        let page =
            InputRequest::Url { message: "log in".to_owned(), url: "http://a.test/1".to_owned() };
        let mut wants =
            InputRequired { inputs: [("e1".to_owned(), page)].into(), state: Value::Null };
        let error = pages_first(&client(Version::November2025), &wants, false).unwrap();
        assert_eq!(error.code, PAGES_FIRST);
        let elicitation = json!({"mode": "url", "message": "log in", "url": "http://a.test/1",
            "elicitationId": "e1"});
        assert_eq!(error.data, Some(json!({"elicitations": [elicitation]})));
        assert!(error.message.contains("http://a.test/1"), "{}", error.message);
        assert_eq!(pages_first(&client(Version::July2026), &wants, true), None, "it is asked for");
        wants.state = json!(1);
        let older = client(Version::November2025);
        assert_eq!(pages_first(&older, &wants, false), None, "something waits for the answer");
        assert!(pages_first(&older, &wants, true).is_some(), "it cannot be asked, but told");
        let mut opens = older.clone();
        opens.can.page = true;
        assert_eq!(pages_first(&opens, &wants, true), None, "it is asked, and the call goes on");
        wants.state = Value::Null;
        wants.inputs.insert("r".to_owned(), InputRequest::Roots);
        assert_eq!(pages_first(&older, &wants, true), None, "a client answers that itself");
    }

    #[test]
    fn a_state_is_bound_to_method_name_and_arguments() {
        let one = what("tools/call", "a", &json!({"x": 1, "y": 2}));
        assert_eq!(one, what("tools/call", "a", &json!({"y": 2, "x": 1})));
        assert_ne!(one, what("tools/call", "a", &json!({"x": 1})));
        assert_ne!(one, what("prompts/get", "a", &json!({"x": 1, "y": 2})));
    }
}
