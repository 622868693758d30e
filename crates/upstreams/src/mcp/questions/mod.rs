//! State between two invocations of one call whose tool requires input. Stateless servers carry
//! their own state and are simply called again. A handshake server asks during the call, so the
//! call is kept open until its answer comes; if it is gone by then, it is made again and the same
//! questions get the same answers.

mod input_requests;
mod pending;

use kernel::tool::call::{Abilities, InputRequest, InputRequired, InputResponses, ToolOutput};
use kernel::values::canonical;
use kernel::values::ids::ContentHash;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub(crate) use input_requests::{Requests, missing, nobody, pages, read, refusal};
pub(crate) use pending::{
    CallOwner, KEPT_MS, OpenCall, Pending, PendingWork, Question, RunningTask,
};

/// State that a call returns with its required input, and receives again with the answers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CarriedState {
    /// The server's own state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_state: Option<Value>,
    /// The server's keys that the caller was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) asked: Vec<String>,
    /// Its keys that no one was asked for: they are declined.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) declined: Vec<String>,
    /// The task that asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<String>,
    /// The keys of that task that have their answer already.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) answered: Vec<String>,
    /// Under which token the call or the task is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<String>,
    /// Whether the caller was asked to open pages before the call is made at all.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) pages: bool,
}

impl CarriedState {
    /// Parses returned state; empty if it is not ours.
    pub(crate) fn read(state: &Value) -> Self {
        serde_json::from_value(state.clone()).unwrap_or_default()
    }

    /// The output of a call that wants this first.
    pub(crate) fn wanting(&self, inputs: BTreeMap<String, InputRequest>) -> ToolOutput {
        ToolOutput::Wants(Box::new(InputRequired { inputs, state: json!(self) }))
    }

    /// The error with which the caller answered something that a stateless server asked, if it did.
    pub(crate) fn refused<'g>(&self, given: &'g InputResponses) -> Option<&'g Value> {
        self.asked.iter().find_map(|key| given.refused.get(key))
    }

    /// The answers to what a stateless server asked. A caller that answers without having been
    /// asked is passed on as it is.
    pub(crate) fn answers(&self, given: &InputResponses) -> Map<String, Value> {
        if given.state.is_null() {
            return given.inputs.clone().into_iter().collect();
        }
        let declined = self.declined.iter().map(|key| (key.clone(), input_requests::decline()));
        let answered = |key: &String| Some((key.clone(), given.inputs.get(key)?.clone()));
        let asked = self.asked.iter().filter(|_| !self.pages);
        declined.chain(asked.filter_map(answered)).collect()
    }
}

/// What follows a stateless server's `input_required`.
pub(crate) enum Round {
    /// The caller is asked.
    Wants(ToolOutput),
    /// No one need be asked: it is called again with these answers and this state.
    Again(Map<String, Value>, Option<Value>),
    /// It asks for what no one can give; this says what, and what the caller lacks for it.
    Impossible(String, Abilities),
}

impl Round {
    /// Reads an answer to a caller that can do this.
    pub(crate) fn read(result: &Value, can: Abilities) -> Self {
        let requests = Requests::read(result.get("inputRequests"), can);
        let Requests { wants, declined, impossible, lacks } = requests;
        let request_state = result.get("requestState").filter(|state| !state.is_null()).cloned();
        if !wants.is_empty() {
            let carried = CarriedState {
                request_state,
                asked: wants.keys().cloned().collect(),
                declined: declined.keys().cloned().collect(),
                ..CarriedState::default()
            };
            return Round::Wants(carried.wanting(wants));
        }
        match impossible.first() {
            Some((key, why)) if declined.is_empty() => {
                Round::Impossible(format!("it asks for `{key}`, but {why}"), lacks)
            }
            _ => Round::Again(declined, request_state),
        }
    }
}

/// Prefix of the keys of questions.
const QUESTION: &str = "question-";
/// A page whose name there is longer than this is one without a name.
const PAGE_NAME_BYTES_MAX: usize = 256;

/// The key of the n-th question that a server of the older versions asks in the middle of a call,
/// with these parameters. A question that is not the same has another key, so that no answer is
/// given to it that was meant for another: a page with another name there must be opened again.
pub(crate) fn key(number: u32, want: &InputRequest, params: &Value) -> String {
    let hash = ContentHash::of(canonical::sorted(&json!(want)).to_string().as_bytes());
    let short: String = hash.as_str().chars().take(8).collect();
    let name = params["elicitationId"].as_str().filter(|name| {
        let is_page = matches!(want, InputRequest::Url { .. });
        is_page && (1..=PAGE_NAME_BYTES_MAX).contains(&name.len())
    });
    match name {
        Some(name) => format!("{QUESTION}{number}-{short}-{name}"),
        None => format!("{QUESTION}{number}-{short}"),
    }
}

/// How its server names the page that was wanted under this key.
pub(crate) fn page_name(key: &str) -> &str {
    let asked = key.strip_prefix(QUESTION).and_then(|rest| {
        let (_number, rest) = rest.split_once('-')?;
        let (_hash, name) = rest.split_once('-')?;
        Some(name)
    });
    // Pages that must be opened before the call have the server's own name for their key.
    asked.unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carried_state_round_trips() {
        let carried = CarriedState {
            request_state: Some(json!("s")),
            asked: vec!["a".to_owned()],
            ..CarriedState::default()
        };
        assert_eq!(json!(carried), json!({"requestState": "s", "asked": ["a"]}));
        assert_eq!(CarriedState::read(&json!(carried)), carried);
        for foreign in [Value::Null, json!("x"), json!({"asked": 1})] {
            assert_eq!(CarriedState::read(&foreign), CarriedState::default());
        }
    }

    #[test]
    fn only_open_questions_can_be_answered() {
        let inputs: BTreeMap<String, Value> =
            ["a", "b"].map(|key| (key.to_owned(), json!({"of": key}))).into();
        let given = |state: Value| InputResponses {
            inputs: inputs.clone(),
            state,
            ..InputResponses::default()
        };
        let carried = CarriedState {
            asked: vec!["b".to_owned(), "c".to_owned()],
            declined: vec!["d".to_owned()],
            ..CarriedState::default()
        };
        let answers = carried.answers(&given(json!(carried)));
        assert_eq!(json!(answers), json!({"b": {"of": "b"}, "d": {"action": "decline"}}));
        let all = CarriedState::default().answers(&given(Value::Null));
        assert_eq!(all.len(), 2);
        let pages =
            CarriedState { pages: true, asked: vec!["a".to_owned()], ..CarriedState::default() };
        assert!(pages.answers(&given(json!(pages))).is_empty());
    }

    #[test]
    fn a_round_asks_continues_or_fails() {
        let can = Abilities { roots: true, ..Abilities::PERSON };
        let read = |requests: Value| {
            Round::read(&json!({"inputRequests": requests, "requestState": "s"}), can)
        };
        let roots = json!({"method": "roots/list"});
        let bad = json!({"method": "elicitation/create", "params": {}});
        let turn = json!({"method": "sampling/createMessage", "params": {"messages": []}});
        let Round::Wants(ToolOutput::Wants(wants)) = read(json!({"r": roots, "b": bad, "t": turn}))
        else {
            panic!("somebody must be asked");
        };
        assert_eq!(wants.inputs.keys().collect::<Vec<_>>(), ["r"]);
        let state = json!({"requestState": "s", "asked": ["r"], "declined": ["b"]});
        assert_eq!(wants.state, state);
        let again = read(json!({"b": bad, "t": turn}));
        assert!(matches!(again, Round::Again(answers, Some(_)) if answers.contains_key("b")));
        let impossible = read(json!({"t": turn}));
        assert!(matches!(impossible, Round::Impossible(_, lacks) if lacks.sample));
        // A server may only want to be called again.
        assert!(matches!(read(json!({})), Round::Again(answers, Some(_)) if answers.is_empty()));
    }

    #[test]
    fn the_same_question_has_the_same_key() {
        let page = |url: &str| InputRequest::Url { message: "m".to_owned(), url: url.to_owned() };
        let key = |number: u32, want: &InputRequest| key(number, want, &json!({"message": "m"}));
        assert_eq!(key(1, &page("a")), key(1, &page("a")));
        assert_ne!(key(1, &page("a")), key(2, &page("a")));
        assert_ne!(key(1, &page("a")), key(1, &page("b")));
    }

    #[test]
    fn an_input_key_contains_the_servers_page_id() {
        let page = InputRequest::Url { message: "m".to_owned(), url: "https://a.test/".to_owned() };
        let named = |want: &InputRequest, id: Value| key(1, want, &json!({"elicitationId": id}));
        for id in ["e1", "a-b-c", "question-1-x-y", "\u{e4} "] {
            assert_eq!(page_name(&named(&page, json!(id))), id);
        }
        assert_ne!(named(&page, json!("e1")), named(&page, json!("e2")));
        let long = "e".repeat(PAGE_NAME_BYTES_MAX + 1);
        for nameless in [json!(""), json!(7), Value::Null, json!(long)] {
            let key = named(&page, nameless);
            assert_eq!(page_name(&key), key, "there is nothing to tell it by");
        }
        assert_eq!(
            named(&InputRequest::Roots, json!("e1")),
            named(&InputRequest::Roots, Value::Null)
        );
        assert_eq!((page_name("e1"), page_name("page-1")), ("e1", "page-1"));
    }
}
