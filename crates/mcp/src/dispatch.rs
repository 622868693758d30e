//! Who answers which method: one table for each era. What an era removed is not in its table.

use super::answer::AnswerResult;
use super::exchange::Exchange;
use super::lists;
use super::sessions::Session;
use crate::calls::call;
use crate::messages::requests::Requests;
use crate::methods::complete;
use crate::methods::handshake;
use crate::methods::listen;
use crate::methods::listen::LISTEN;
use crate::methods::prompts;
use crate::methods::resources;
use crate::methods::tasks;
use edge::request::params::short;
use futures::future::{BoxFuture, ready};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use wire::jsonrpc::{Id, METHOD_NOT_FOUND, RpcError};

/// The method that begins a session.
pub(crate) const INITIALIZE: &str = "initialize";
/// The method by which a client learns who we are.
pub(crate) const DISCOVER: &str = "server/discover";

/// Answers a request.
type Answering = BoxFuture<'static, AnswerResult>;

/// One line of a table.
pub(crate) struct MethodEntry<H> {
    pub(crate) method: &'static str,
    /// Who answers.
    pub(crate) handler: H,
}

impl<H> MethodEntry<H> {
    /// Whether something may be sent, or asked, before the answer.
    pub(crate) fn tells(&self) -> bool {
        matches!(self.method, "tools/call" | "prompts/get" | LISTEN)
    }
}

/// Answers a stateless request.
pub(crate) type Stateless = fn(Exchange) -> Answering;

const fn stateless(method: &'static str, handler: Stateless) -> MethodEntry<Stateless> {
    MethodEntry { method, handler }
}

/// The methods of the stateless version.
const MODERN: &[MethodEntry<Stateless>] = &[
    stateless("tools/call", |exchange| Box::pin(call::call(exchange))),
    stateless("tools/list", |exchange| Box::pin(lists::tools(exchange))),
    stateless(DISCOVER, |exchange| Box::pin(handshake::discover(exchange))),
    stateless("prompts/list", |exchange| Box::pin(prompts::list(exchange))),
    stateless("prompts/get", |exchange| Box::pin(prompts::get(exchange))),
    stateless("resources/list", |exchange| Box::pin(resources::list(exchange))),
    stateless("resources/templates/list", |exchange| Box::pin(resources::templates(exchange))),
    stateless("resources/read", |exchange| Box::pin(resources::read(exchange))),
    stateless("completion/complete", |exchange| Box::pin(complete::complete(exchange))),
    stateless(LISTEN, |exchange| Box::pin(listen::listen(exchange))),
    stateless("tasks/get", |exchange| Box::pin(tasks::get(exchange))),
    stateless("tasks/update", |exchange| Box::pin(tasks::update(exchange))),
    stateless("tasks/cancel", |exchange| Box::pin(tasks::cancel(exchange))),
];

/// Answers a request of a session.
pub(crate) type InSession = fn(Exchange, Arc<Session>) -> Answering;

const fn in_session(method: &'static str, handler: InSession) -> MethodEntry<InSession> {
    MethodEntry { method, handler }
}

/// The methods of the versions with a handshake, after it.
const LEGACY: &[MethodEntry<InSession>] = &[
    in_session("tools/call", |exchange, _| Box::pin(call::call(exchange))),
    in_session("tools/list", |exchange, _| Box::pin(lists::tools(exchange))),
    in_session("ping", |exchange, _| Box::pin(handshake::ping(exchange))),
    in_session("logging/setLevel", |exchange, session| {
        Box::pin(ready(handshake::set_level(&exchange, &session)))
    }),
    in_session("prompts/list", |exchange, _| Box::pin(prompts::list(exchange))),
    in_session("prompts/get", |exchange, _| Box::pin(prompts::get(exchange))),
    in_session("resources/list", |exchange, _| Box::pin(resources::list(exchange))),
    in_session("resources/templates/list", |exchange, _| Box::pin(resources::templates(exchange))),
    in_session("resources/read", |exchange, _| Box::pin(resources::read(exchange))),
    in_session("resources/subscribe", |exchange, session| {
        Box::pin(listen::subscribe(exchange, session))
    }),
    in_session("resources/unsubscribe", |exchange, session| {
        Box::pin(listen::unsubscribe(exchange, session))
    }),
    in_session("completion/complete", |exchange, _| Box::pin(complete::complete(exchange))),
];

/// Who answers in the stateless version.
pub(crate) fn modern(method: &str) -> Result<&'static MethodEntry<Stateless>, RpcError> {
    MODERN.iter().find(|line| line.method == method).ok_or_else(|| unknown(method))
}

/// Who answers in a session.
pub(crate) fn legacy(method: &str) -> Result<&'static MethodEntry<InSession>, RpcError> {
    LEGACY.iter().find(|line| line.method == method).ok_or_else(|| unknown(method))
}

/// Whether only the stateless version has this method, so that nothing else need say so.
pub(crate) fn is_modern_only(method: &str) -> bool {
    matches!(method, DISCOVER | LISTEN)
}

/// A notification of a client: the only one to act on is that it cancels a request.
pub(crate) fn notified(method: &str, params: Option<&RawValue>, requests: &Requests) {
    #[derive(Deserialize)]
    struct Cancelled<'a> {
        #[serde(borrow, rename = "requestId")]
        id: &'a RawValue,
    }
    if method != "notifications/cancelled" {
        return;
    }
    let cancelled = params.and_then(|params| serde_json::from_str(params.get()).ok());
    if let Some(id) = cancelled.and_then(|cancelled: Cancelled<'_>| Id::read(cancelled.id)) {
        requests.cancel(&id);
    }
}

fn unknown(method: &str) -> RpcError {
    let message = format!("there is no method `{}` in this version", short(method));
    RpcError::new(METHOD_NOT_FOUND, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::requests::Cancelled;
    use futures::FutureExt;
    use futures::future::pending;

    #[test]
    fn each_era_has_its_own_methods() {
        for removed in [
            INITIALIZE, "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe",
            "tasks/list", "tasks/result", "unknown/method",
        ] {
            assert_eq!(modern(removed).err().map(|error| error.code), Some(-32601), "{removed}");
        }
        for new in [DISCOVER, LISTEN, "tasks/get", "notifications/initialized"] {
            assert_eq!(legacy(new).err().map(|error| error.code), Some(-32601), "{new}");
        }
        assert!(modern("tools/call").is_ok_and(|line| line.tells()));
        assert!(legacy("tools/call").is_ok_and(|line| line.tells()));
        assert!(legacy("ping").is_ok_and(|line| !line.tells()));
    }

    #[test]
    fn every_method_says_which_act_it_is_and_nothing_else_does() {
        let modern = MODERN.iter().map(|line| line.method);
        let legacy = LEGACY.iter().map(|line| line.method);
        let mut served: Vec<&str> = modern.chain(legacy).chain([INITIALIZE]).collect();
        served.sort_unstable();
        served.dedup();
        let mut named: Vec<&str> = crate::acts::METHODS.iter().map(|(method, _)| *method).collect();
        named.sort_unstable();
        assert_eq!(served, named);
    }

    #[test]
    fn no_method_is_listed_twice() {
        let mut methods: Vec<&str> = MODERN.iter().map(|line| line.method).collect();
        methods.sort_unstable();
        let count = methods.len();
        methods.dedup();
        assert_eq!(methods.len(), count);
    }

    #[test]
    fn a_client_cancels_by_the_id_of_its_request() {
        let raw = |text: &str| serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
        let requests = Requests::new(8);
        let id = Id::read(&raw("\"a\"")).unwrap();
        let mut slow = requests.begin(&id, Cancelled::default(), pending().boxed()).unwrap();
        for (method, params) in [
            ("notifications/cancelled", "{\"requestId\": \"b\"}"),
            ("notifications/cancelled", "{}"),
            ("notifications/cancelled", "[1]"),
            ("notifications/initialized", "{\"requestId\": \"a\"}"),
        ] {
            notified(method, Some(&raw(params)), &requests);
            assert!((&mut slow).now_or_never().is_none(), "{method} {params}");
        }
        notified("notifications/cancelled", Some(&raw("{\"requestId\": \"a\"}")), &requests);
        assert!(slow.now_or_never().is_some());
    }
}
