//! Negotiates era and version with a server. The stateless era is tried first, because that costs
//! one request; a server that does not understand it gets the handshake of the older versions.

use crate::mcp::line::{PeerError, PeerErrorKind, Result};
use crate::mcp::params::Params;
use crate::mcp::requests::{AskError, Request, Requests, took_too_long};
use futures::future::{Either, select};
use kernel::tool::call::{Abilities, CallProgress};
use serde_json::{Value, json};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use wire::jsonrpc::{self, RpcError};
use wire::mcp::{
    LEGACY, META_CAPABILITIES, META_CLIENT, META_SERVER, META_VERSION, MODERN, TASKS,
    UNSUPPORTED_VERSION,
};

/// The oldest version whose messages are a subset of what we speak.
const OLDEST: &str = "2024-11-05";

/// How a server and its clients get to know each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// Every request says who sends it: 2026-07-28.
    Modern,
    /// By a handshake: up to 2025-11-25.
    Legacy,
}

/// In which era a server is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EraChoice {
    /// In its own, which is found out; the one that it was of last time is tried first.
    Any(Option<Era>),
    /// In this one and no other.
    Only(Era),
}

/// Result of the negotiation with a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServerHello {
    /// How it said so.
    pub(crate) era: Era,
    /// The version that both of us speak.
    pub(crate) version: Arc<str>,
    pub(crate) capabilities: Value,
    /// Its `serverInfo`; null if it sent none.
    pub(crate) server: Value,
}

/// Gets to know a server. Of which era it was last time saves the wrong question first.
pub(crate) async fn greet(requests: &Requests, meet: EraChoice) -> Result<ServerHello> {
    let limits = &requests.parts.limits;
    let whole_ms = limits.upstream_connect_timeout_ms;
    let is_process = requests.line.is_process();
    let first_ms = match is_process {
        true => limits.upstream_start_timeout_ms.max(whole_ms),
        false => whole_ms,
    };
    // A server of the older kind may say nothing at all to a question before the handshake.
    let probe_ms = if meet == EraChoice::Any(None) { whole_ms / 2 } else { whole_ms };
    let greeted = match meet {
        EraChoice::Only(Era::Legacy) => initialize(requests, first_ms).await,
        EraChoice::Only(Era::Modern) => discover(requests, first_ms).await,
        EraChoice::Any(Some(Era::Legacy)) => match initialize(requests, first_ms).await {
            Err(error) if not_understood(&error) => {
                discover(requests, whole_ms).await.map_err(|_| error)
            }
            settled => settled,
        },
        EraChoice::Any(Some(Era::Modern) | None) if is_process => {
            Box::pin(greet_process(requests, probe_ms, first_ms)).await
        }
        EraChoice::Any(Some(Era::Modern) | None) => match discover(requests, probe_ms).await {
            Err(probed) if not_understood(&probed) || is_timeout(&probed) => {
                shake_hands(requests, &probed, initialize(requests, whole_ms)).await
            }
            settled => settled,
        },
    };
    let greeted = greeted.map_err(|error| with_limit(refused(error), is_process))?;
    requests.line.agreed(&greeted.version);
    if greeted.era == Era::Legacy {
        let ready = jsonrpc::notification("notifications/initialized", &json!({}));
        let told = requests.parts.within(whole_ms, requests.line.send(ready)).await;
        told.unwrap_or_else(|| Err(not_taken(whole_ms)))?;
    }
    Ok(greeted)
}

/// Gets to know a process. It reads nothing while it starts, and may have to be downloaded first:
/// until it has answered once, no question is withdrawn. One that was slow finds both in its pipe,
/// and may refuse the handshake because it has answered the other question.
async fn greet_process(
    requests: &Requests,
    probe_ms: u64,
    start_ms: u64,
) -> Result<ServerHello, AskError> {
    let mut discovering = pin!(discover(requests, start_ms));
    match requests.parts.within(probe_ms, &mut discovering).await {
        Some(Err(probed)) if not_understood(&probed) => {
            return shake_hands(requests, &probed, initialize(requests, start_ms)).await;
        }
        Some(settled) => return settled,
        // It is still starting, or it says nothing before the handshake.
        None => {}
    }
    let initializing = pin!(initialize(requests, start_ms));
    match select(discovering, initializing).await {
        Either::Left((Err(probed), initializing)) if not_understood(&probed) => {
            shake_hands(requests, &probed, initializing).await
        }
        Either::Left((settled, _)) => settled,
        Either::Right((Err(error), discovering)) if not_understood(&error) => {
            let whole_ms = requests.parts.limits.upstream_connect_timeout_ms;
            match requests.parts.within(whole_ms, discovering).await {
                Some(Ok(greeted)) => Ok(greeted),
                Some(Err(_)) | None => Err(error),
            }
        }
        Either::Right((settled, _)) => settled,
    }
}

/// The handshake of a server that did not understand the stateless version, or did not answer. One
/// that says now that it speaks that version is asked once more.
async fn shake_hands(
    requests: &Requests,
    probed: &AskError,
    initializing: impl Future<Output = Result<ServerHello, AskError>>,
) -> Result<ServerHello, AskError> {
    let whole_ms = requests.parts.limits.upstream_connect_timeout_ms;
    let answered = requests.parts.within(whole_ms, initializing).await;
    let late = || Err(AskError::Peer(took_too_long("initialize", whole_ms)));
    let greeted = match answered.unwrap_or_else(late) {
        Err(AskError::Rpc(error)) if error.code == UNSUPPORTED_VERSION => {
            discover(requests, whole_ms).await.map_err(|_| AskError::Rpc(error))
        }
        settled => settled,
    };
    greeted.map_err(|error| in_vain(probed, error))
}

/// A server that was too slow, with the limit that it exceeded.
fn with_limit(error: PeerError, is_process: bool) -> PeerError {
    if error.kind != PeerErrorKind::Timeout || error.hint.is_some() {
        return error;
    }
    match is_process {
        true => error.hint(
            "what it wrote to its standard error is in our log, at level debug; if it only needs \
             longer to start, raise `upstream_start_timeout_ms` in `[limits]`",
        ),
        false => {
            error.hint("if it is only slow, raise `upstream_connect_timeout_ms` in `[limits]`")
        }
    }
}

/// Parameters that say who asks and what can be asked of it, as every request of the stateless
/// version does.
pub(crate) fn introduced(params: impl Into<Params>, can: Abilities) -> Params {
    params.into().sent_by(sender(can))
}

/// Members of `_meta` that say who we are, written once for all callers who can the same.
fn sender(can: Abilities) -> &'static str {
    static WRITTEN: [OnceLock<String>; 32] = [const { OnceLock::new() }; 32];
    let abilities = [can.form, can.page, can.sample, can.roots, can.tasks];
    let which = abilities.into_iter().fold(0, |which, can| 2 * which + usize::from(can));
    WRITTEN[which].get_or_init(|| {
        let meta = json!({
            META_VERSION: MODERN,
            META_CLIENT: client(),
            META_CAPABILITIES: modern_capabilities(can),
        });
        let text = meta.to_string();
        let inside = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        inside.unwrap_or_default().to_owned()
    })
}

async fn discover(requests: &Requests, timeout_ms: u64) -> Result<ServerHello, AskError> {
    let params = introduced(Value::Null, Abilities::PERSON);
    let ask = || Request::new("server/discover", params.clone(), timeout_ms);
    let discovered = match requests.ask(ask()).await {
        // It names our version among those that it speaks: worth a second try.
        Err(AskError::Rpc(error)) if refuses_what_it_speaks(&error) => requests.ask(ask()).await?,
        answered => answered?,
    };
    if !lists_modern(&discovered["supportedVersions"]) {
        return Err(AskError::Peer(not_mcp("`server/discover` was not answered with versions")));
    }
    let said = [&discovered["_meta"][META_SERVER], &discovered["serverInfo"]];
    let server = said.into_iter().find(|server| server.is_object()).cloned();
    Ok(ServerHello {
        era: Era::Modern,
        version: MODERN.into(),
        capabilities: discovered["capabilities"].clone(),
        server: server.unwrap_or_default(),
    })
}

async fn initialize(requests: &Requests, timeout_ms: u64) -> Result<ServerHello, AskError> {
    let params = json!({
        "protocolVersion": LEGACY[0],
        // Said once for all callers: what one of them lacks is refused when it is asked for.
        "capabilities": {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}},
        "clientInfo": client(),
    });
    let greeting = requests.ask(Request::new("initialize", params, timeout_ms)).await?;
    let Some(version) = greeting["protocolVersion"].as_str() else {
        return Err(AskError::Peer(not_mcp("`initialize` was not answered with a version")));
    };
    if version != OLDEST && !LEGACY.contains(&version) {
        let shown: String = version.chars().take(40).collect();
        return Err(AskError::Peer(not_mcp(format!(
            "the server speaks version `{shown}` of MCP, which we do not"
        ))));
    }
    Ok(ServerHello {
        era: Era::Legacy,
        version: version.into(),
        capabilities: greeting["capabilities"].clone(),
        server: greeting["serverInfo"].clone(),
    })
}

/// Whether another way to get to know the server may do better.
fn not_understood(error: &AskError) -> bool {
    match error {
        AskError::Rpc(_) => true,
        AskError::Peer(error) => match error.kind {
            // Too many requests, or a server in front of it that has no one to ask.
            PeerErrorKind::Refused(status) => !matches!(status, 429 | 502..=504),
            PeerErrorKind::NotMcp | PeerErrorKind::Gone => true,
            PeerErrorKind::Unreachable
            | PeerErrorKind::Garbled
            | PeerErrorKind::Timeout
            | PeerErrorKind::TooLarge
            | PeerErrorKind::Unauthorized
            | PeerErrorKind::Forbidden
            | PeerErrorKind::Login
            | PeerErrorKind::Scope
            | PeerErrorKind::Closed => false,
        },
    }
}

fn is_timeout(error: &AskError) -> bool {
    matches!(error, AskError::Peer(error) if error.kind == PeerErrorKind::Timeout)
}

fn refuses_what_it_speaks(error: &RpcError) -> bool {
    let supported = error.data.as_ref().map(|data| &data["supported"]);
    error.code == UNSUPPORTED_VERSION && supported.is_some_and(lists_modern)
}

fn lists_modern(versions: &Value) -> bool {
    let versions = versions.as_array();
    versions.is_some_and(|versions| versions.iter().any(|version| version == MODERN))
}

/// Neither way led to the server: the handshake's failure, with what was said before it.
fn in_vain(probed: &AskError, error: AskError) -> AskError {
    let mut error = refused(error);
    if !is_timeout(probed) {
        error.message = format!("{}; before that, `server/discover`: {probed}", error.message);
    }
    if let (PeerErrorKind::Refused(_), None) = (error.kind, &error.hint) {
        let hint = "is this the address of an MCP endpoint (streamable HTTP), such as `/mcp`?";
        error.hint = Some(hint.to_owned());
    }
    AskError::Peer(error)
}

/// A server that refuses every way to get to know it cannot be used, whatever its error says.
fn refused(error: AskError) -> PeerError {
    match error {
        AskError::Peer(error) => error,
        AskError::Rpc(_) => not_mcp(format!("the server refused to be connected to: {error}")),
    }
}

fn not_mcp(message: impl Into<String>) -> PeerError {
    PeerError::new(CallProgress::NotSent, PeerErrorKind::NotMcp, message)
}

fn not_taken(ms: u64) -> PeerError {
    let message = format!("`notifications/initialized` was not taken within {ms} ms");
    PeerError::new(CallProgress::Unknown, PeerErrorKind::Timeout, message)
}

fn client() -> Value {
    json!({"name": "waypost", "title": "Waypost", "version": env!("CARGO_PKG_VERSION")})
}

/// Capabilities that we declare: those of our caller, and tasks, which we follow ourselves.
fn modern_capabilities(can: Abilities) -> Value {
    let mut declared = json!({});
    if can.form {
        declared["elicitation"]["form"] = json!({});
    }
    if can.page {
        declared["elicitation"]["url"] = json!({});
    }
    if can.sample {
        declared["sampling"] = json!({});
    }
    if can.roots {
        declared["roots"] = json!({});
    }
    if can.tasks {
        declared["extensions"][TASKS] = json!({});
    }
    declared
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::line::{Incoming, Outgoing};
    use crate::mcp::scripted::{Scripted, Server, discovered, greeting};
    use crate::stage::Stage;
    use futures::future::join;
    use tokio::sync::mpsc;

    fn greeted(
        known: Option<Era>,
        script: impl FnMut(&Outgoing) -> Scripted + Send + 'static,
    ) -> (Server, Result<ServerHello>) {
        met(EraChoice::Any(known), script)
    }

    fn met(
        meet: EraChoice,
        script: impl FnMut(&Outgoing) -> Scripted + Send + 'static,
    ) -> (Server, Result<ServerHello>) {
        let stage = Stage::new();
        let server = Server::new(script);
        let (aside, _unheard) = mpsc::channel(1);
        let requests = Requests::new(server.line(), stage.parts(), aside);
        let greeted = stage.run(greet(&requests, meet));
        (server, greeted)
    }

    fn old(version: &'static str) -> impl FnMut(&Outgoing) -> Scripted {
        move |request: &Outgoing| match request.method.as_str() {
            "initialize" => Scripted::result(greeting(version, json!({"tools": {}}))),
            _ => Scripted::error(-32601),
        }
    }

    #[test]
    fn a_stateless_server_is_asked_for_discovery() {
        let (server, greeted) =
            greeted(None, |_| Scripted::result(discovered(json!({"tools": {}}))));
        let greeted = greeted.unwrap();
        assert_eq!((greeted.era, &*greeted.version), (Era::Modern, MODERN));
        assert_eq!(greeted.server, json!({"name": "new", "version": "2"}));
        assert_eq!(greeted.capabilities, json!({"tools": {}}));
        assert_eq!(server.agreed(), [MODERN]);
        assert!(server.sent().is_empty());
        let asked = server.asked().remove(0);
        let meta = &asked.params.to_value()["_meta"];
        assert_eq!(meta[META_VERSION], MODERN);
        assert_eq!(meta[META_CLIENT]["name"], "waypost");
        assert_eq!(
            meta[META_CAPABILITIES],
            json!({"elicitation": {"form": {}, "url": {}}, "extensions": {TASKS: {}}})
        );
    }

    #[test]
    fn an_older_server_gets_its_handshake_after_any_refusal() {
        let say_no: [fn() -> Scripted; 6] = [
            || Scripted::error(-32601),
            || Scripted::error(-32022),
            || Scripted::fails(PeerErrorKind::Refused(400)),
            || Scripted::fails(PeerErrorKind::NotMcp),
            || Scripted::Silence,
            || Scripted::result(json!({})),
        ];
        for no in say_no {
            let (server, greeted) = greeted(None, move |request| match request.method.as_str() {
                "initialize" => Scripted::result(greeting("2025-06-18", json!({}))),
                _ => no(),
            });
            let greeted = greeted.unwrap();
            assert_eq!((greeted.era, &*greeted.version), (Era::Legacy, "2025-06-18"));
            assert_eq!(server.agreed(), ["2025-06-18"]);
            assert_eq!(server.sent()[0]["method"], "notifications/initialized");
            let initialize = server.asked().remove(1).params.to_value();
            assert_eq!(initialize["protocolVersion"], "2025-11-25");
            let declared = &initialize["capabilities"];
            assert!(declared["sampling"].is_object() && declared["roots"].is_object());
            assert_eq!(initialize.get("_meta"), None);
        }
    }

    /// Meets a process that is silent at first, and does then what is said here.
    fn started(then: impl AsyncFnOnce(&Stage, &Server)) -> (Stage, Server, Result<ServerHello>) {
        let stage = Stage::new();
        let server = Server::new(|_| Scripted::Silence).of_process();
        let (aside, _unheard) = mpsc::channel(1);
        let requests = Requests::new(server.line(), stage.parts(), aside);
        let meeting = greet(&requests, EraChoice::Any(None));
        let (greeted, ()) = stage.run(join(meeting, then(&stage, &server)));
        (stage, server, greeted)
    }

    #[test]
    fn a_slow_process_is_negotiated_in_its_own_version() {
        let late = || {
            let message = "this connection is serving the 2026-07-28 protocol";
            Incoming::Error(RpcError::new(UNSUPPORTED_VERSION, message))
        };
        let (_, server, greeted) = started(async |stage, server| {
            stage.pass(60_000).await;
            server.tell("initialize", &late());
            stage.pass(1_000).await;
            server.tell("server/discover", &Incoming::Result(discovered(json!({}))));
        });
        assert_eq!(greeted.unwrap().era, Era::Modern);
        assert_eq!(server.methods(), ["server/discover", "initialize"]);
        assert_eq!((server.agreed(), server.closed()), (vec![MODERN.to_owned()], 0));
        let (_, server, greeted) = started(async |stage, server| {
            stage.pass(60_000).await;
            server.tell("server/discover", &Incoming::Error(RpcError::new(-32601, "no")));
            server.tell("initialize", &Incoming::Result(greeting("2025-11-25", json!({}))));
        });
        assert_eq!(greeted.unwrap().era, Era::Legacy);
        assert_eq!(server.methods(), ["server/discover", "initialize"]);
    }

    #[test]
    fn a_silent_process_has_its_own_start_timeout() {
        let (stage, _, greeted) = started(async |_, _| {});
        let error = greeted.unwrap_err();
        assert_eq!((error.kind, stage.now_ms()), (PeerErrorKind::Timeout, 120_000));
        let hint = error.hint.unwrap();
        assert!(hint.contains("`upstream_start_timeout_ms`"), "{hint}");
    }

    #[test]
    fn a_handshake_refused_for_its_version_tries_the_stateless_era() {
        let mut discoveries = 0;
        let (server, greeted) = greeted(None, move |request| match request.method.as_str() {
            "initialize" => Scripted::error(UNSUPPORTED_VERSION),
            _ => {
                discoveries += 1;
                match discoveries {
                    1 => Scripted::Silence,
                    _ => Scripted::result(discovered(json!({}))),
                }
            }
        });
        assert_eq!(greeted.unwrap().era, Era::Modern);
        assert_eq!(server.methods(), ["server/discover", "initialize", "server/discover"]);
    }

    #[test]
    fn only_known_handshake_versions_are_accepted() {
        for version in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
            assert_eq!(*greeted(None, old(version)).1.unwrap().version, *version);
        }
        let error = greeted(None, old("1999-01-01")).1.unwrap_err();
        assert_eq!(error.kind, PeerErrorKind::NotMcp);
        assert!(error.message.contains("`1999-01-01`"), "{}", error.message);
    }

    #[test]
    fn a_known_era_skips_negotiation() {
        let (server, greeted) = greeted(Some(Era::Legacy), old("2025-11-25"));
        assert_eq!(greeted.unwrap().era, Era::Legacy);
        assert_eq!(server.methods(), ["initialize"]);
        let (server, greeted) =
            self::greeted(Some(Era::Legacy), |request| match request.method.as_str() {
                "server/discover" => Scripted::result(discovered(json!({}))),
                _ => Scripted::error(-32601),
            });
        assert_eq!(greeted.unwrap().era, Era::Modern, "it is not of that era any more");
        assert_eq!(server.methods(), ["initialize", "server/discover"]);
    }

    #[test]
    fn a_configured_era_is_the_only_one_tried() {
        for (era, method) in [(Era::Legacy, "initialize"), (Era::Modern, "server/discover")] {
            let both = |request: &Outgoing| match request.method.as_str() {
                "initialize" => Scripted::result(greeting("2025-11-25", json!({}))),
                _ => Scripted::result(discovered(json!({}))),
            };
            let (server, greeted) = met(EraChoice::Only(era), both);
            assert_eq!(greeted.unwrap().era, era);
            assert_eq!(server.methods(), [method]);
            let (server, greeted) = met(EraChoice::Only(era), |_| Scripted::error(-32601));
            assert_eq!(greeted.unwrap_err().kind, PeerErrorKind::NotMcp);
            assert_eq!(server.methods(), [method]);
        }
    }

    #[test]
    fn a_version_offered_in_a_refusal_is_tried() {
        let mut times = 0;
        let (server, greeted) = greeted(None, move |_| {
            times += 1;
            match times {
                1 => {
                    let error = RpcError::new(UNSUPPORTED_VERSION, "no");
                    let error = error.data(json!({"supported": [MODERN]}));
                    Scripted::Replies(vec![Incoming::Error(error)])
                }
                _ => Scripted::result(discovered(json!({}))),
            }
        });
        assert_eq!(greeted.unwrap().era, Era::Modern);
        assert_eq!(server.methods(), ["server/discover", "server/discover"]);
    }

    #[test]
    fn an_unreachable_server_is_not_tried_in_the_other_era() {
        for kind in [
            PeerErrorKind::Unreachable,
            PeerErrorKind::Unauthorized,
            PeerErrorKind::Forbidden,
            PeerErrorKind::Login,
            PeerErrorKind::Closed,
            PeerErrorKind::Refused(503),
        ] {
            let (server, greeted) = greeted(None, move |_| Scripted::fails(kind));
            assert_eq!(greeted.unwrap_err().kind, kind);
            assert_eq!(server.methods(), ["server/discover"]);
        }
    }

    #[test]
    fn only_abilities_of_the_caller_are_declared() {
        let declared =
            |can| introduced(Value::Null, can).to_value()["_meta"][META_CAPABILITIES].clone();
        assert_eq!(declared(Abilities::default()), json!({}));
        let tasks = Abilities { tasks: true, ..Abilities::default() };
        assert_eq!(declared(tasks), json!({"extensions": {TASKS: {}}}));
        let program = Abilities { sample: true, roots: true, ..Abilities::default() };
        assert_eq!(declared(program), json!({"sampling": {}, "roots": {}}));
        let page = Abilities { page: true, ..Abilities::default() };
        assert_eq!(declared(page)["elicitation"], json!({"url": {}}));
    }

    #[test]
    fn meta_of_a_request_is_preserved() {
        let params = json!({"name": "a", "_meta": {"progressToken": 7}});
        let said = introduced(params, Abilities::PERSON).to_value();
        assert_eq!(said["name"], "a");
        assert_eq!(said["_meta"]["progressToken"], 7);
        assert_eq!(said["_meta"][META_VERSION], MODERN);
    }
}
