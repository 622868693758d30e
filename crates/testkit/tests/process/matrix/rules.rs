//! What is answered to whom: one rule for all doors, by the act and by what a door is about.

use super::doors::{Door, Kind, Thing};
use kernel::values::caller::{Act, Scope};
use testkit::caller::Era;

/// What is wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Case {
    /// It has no credential.
    Nothing,
    /// What it has is no credential.
    Malformed,
    /// Its key was never made.
    Unknown,
    /// The text of its key has ended.
    Expired,
    /// Its key was revoked.
    Revoked,
    /// Its key is unknown, as those before it from the same address.
    TooMany,
    /// It asks for a realm that its key may not enter.
    Realm,
    /// The scopes of its key do not cover the act, whatever its roles are.
    Scope,
    /// The roles of its key do not permit the act.
    Denied,
    /// It is about what is another member's.
    Hidden,
    /// Its caller has used up what it may use.
    Over,
}

impl Case {
    pub(super) const ALL: [Case; 11] = [
        Case::Nothing,
        Case::Malformed,
        Case::Unknown,
        Case::Expired,
        Case::Revoked,
        Case::TooMany,
        Case::Realm,
        Case::Scope,
        Case::Denied,
        Case::Hidden,
        Case::Over,
    ];
}

/// What a request gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// This status, and this stable word or number.
    Told(&'static str),
    /// What it asks for, as far as its caller may see it.
    Served,
    /// There is no such case at this door.
    NoCase,
}

use Expected::{NoCase, Served, Told};

const UNAUTHORIZED: Expected = Told("401 unauthorized");
const FORBIDDEN: Expected = Told("403 forbidden");
const NOT_FOUND: Expected = Told("404 not_found");
/// A call is refused as such: that tools are called by A2A is no secret.
const CALL_FORBIDDEN: Expected = Told("403 call_forbidden");
/// What JSON-RPC says of a name that is not there.
const NO_SUCH_NAME: Expected = Told("200 -32602");

/// What this door answers in this case.
pub(super) fn expected(door: &Door, case: Case) -> Expected {
    if door.kind == Kind::Token {
        return token(case);
    }
    let expected = match case {
        Case::Nothing if door.thing == Thing::Open => Served,
        Case::Nothing | Case::Unknown | Case::Expired | Case::Revoked => UNAUTHORIZED,
        Case::Malformed => Told("400 bad_credential"),
        Case::TooMany => Told("429 too_many_failures"),
        Case::Realm => Told("403 realm_not_allowed"),
        Case::Scope => out_of_scope(door),
        Case::Denied => denied(door),
        Case::Hidden => hidden(door),
        Case::Over => over(door),
    };
    match door.kind {
        kind @ (Kind::A2aRpc(_) | Kind::A2aHttp | Kind::A2aGrpc(_)) => in_a2a(kind, expected),
        _ => expected,
    }
}

/// A key is exchanged there: what is wrong with it is told in the words of OAuth.
fn token(case: Case) -> Expected {
    match case {
        Case::Nothing | Case::Malformed | Case::Unknown | Case::Expired | Case::Revoked => {
            Told("401 invalid_client")
        }
        Case::TooMany => Told("429 too_many_failures"),
        Case::Scope => Told("400 invalid_scope"),
        Case::Realm | Case::Denied | Case::Hidden | Case::Over => NoCase,
    }
}

fn out_of_scope(door: &Door) -> Expected {
    // Every scope allows reading.
    let is_read = |act: &Act| act.scope() == Scope::Read;
    if door.act().is_none_or(|act| is_read(&act)) {
        return NoCase;
    }
    match (door.kind, door.thing) {
        (_, Thing::List) => Served,
        (Kind::Mcp(..), _) => FORBIDDEN,
        (Kind::A2aRpc(_), Thing::Tool) => CALL_FORBIDDEN,
        // JSON-RPC has a status of its own.
        (Kind::Rpc, _) => Told("200 forbidden"),
        // A thread of somebody else is not there.
        (_, Thing::Thread) => NOT_FOUND,
        _ => FORBIDDEN,
    }
}

fn denied(door: &Door) -> Expected {
    let Some(act) = door.act() else { return NoCase };
    match (door.kind, door.thing, act) {
        (_, Thing::List, _) => Served,
        // Whose it is decides: that is another case.
        (_, Thing::Owned, Act::Read) => NoCase,
        (Kind::A2aRpc(_), Thing::Tool, _) => Told("404 no_method"),
        (Kind::Rpc, ..) | (Kind::Mcp(..), Thing::Tool | Thing::Catalog, _) => NO_SUCH_NAME,
        (Kind::Mcp(..), ..) => Told("200 forbidden"),
        (_, Thing::Tool | Thing::Thread, _) => NOT_FOUND,
        // What may not be read is like what is not there; that there is a server is no secret.
        (_, Thing::Catalog | Thing::Definition | Thing::Neighbour, Act::Read) => NOT_FOUND,
        _ => FORBIDDEN,
    }
}

fn hidden(door: &Door) -> Expected {
    match (door.kind, door.thing) {
        (Kind::Mcp(_, "initialize"), _) => NoCase,
        // The session of MCP is another member's.
        (Kind::Mcp(Era::Legacy, _), _) => Told("404 -32600"),
        (_, Thing::List) => Served,
        (Kind::Mcp(..), Thing::Owned) => NO_SUCH_NAME,
        (_, Thing::Owned | Thing::Thread) => NOT_FOUND,
        _ => NoCase,
    }
}

/// The doors that begin something that is stored.
const BEGINNINGS: [&str; 6] = [
    "/api/v1/runs",
    "/api/v1/pipelines/{name}/cases",
    "/desk/cases",
    "/run",
    "/sessions",
    "/sessions/{id}/execute-plan",
];

/// What a door answers to a caller that has used up what it may use; where a door takes nothing of
/// that, there is no such case.
fn over(door: &Door) -> Expected {
    let told = match (door.kind, door.route) {
        (Kind::Token | Kind::OwnPort, _) => return NoCase,
        (Kind::A2aRpc("SendMessage" | "SendStreamingMessage" | "tasks/send"), _)
        | (Kind::A2aRpc("message/send" | "message/stream"), _)
        | (Kind::A2aGrpc("SendMessage" | "SendStreamingMessage"), _) => "429 stored_bytes_max",
        (Kind::A2aHttp, route) if is_message(route) => "429 stored_bytes_max",
        (Kind::A2aRpc("SubscribeToTask" | "tasks/sendSubscribe" | "tasks/resubscribe"), _)
        | (Kind::A2aGrpc("SubscribeToTask"), _)
        | (Kind::Rest, "/api/v1/events" | "/api/v1/sessions/{id}/events") => "429 too_many_streams",
        (Kind::A2aHttp, route) if route.ends_with(":subscribe") => "429 too_many_streams",
        (Kind::Mcp(_, "subscriptions/listen"), _) => "429 -32603",
        // MCP tells it in an answer of its own, and `/rpc` as a result of the tool.
        (Kind::Mcp(_, "tools/call"), _) => "200 rate_limited",
        (Kind::Rpc, _) => "200",
        (Kind::Rest, "/api/v1/tools/{name}/call") => "429 rate_limited",
        (Kind::Rest, route) if door.method == "POST" && BEGINNINGS.contains(&route) => {
            "429 stored_bytes_max"
        }
        _ => return NoCase,
    };
    Told(told)
}

/// Whether a message is sent there, in any version.
fn is_message(route: &str) -> bool {
    route.ends_with("/message:send") || route.ends_with("/message:stream")
}

/// What the rule says, in the words of this binding. A skill that a caller may not use is not
/// there: its message is wrong.
fn in_a2a(kind: Kind, expected: Expected) -> Expected {
    let Told(told) = expected else { return expected };
    let (in_rpc, in_http, in_grpc) = match told {
        "400 bad_credential" => ("400 -32602", "400 INVALID_ARGUMENT", "200 INVALID_ARGUMENT"),
        "401 unauthorized" => ("401 -32000", "401 UNAUTHENTICATED", "200 UNAUTHENTICATED"),
        "403 realm_not_allowed" => ("403 -32000", "403 PERMISSION_DENIED", "200 PERMISSION_DENIED"),
        "403 forbidden" => ("200 -32602", "400 INVALID_ARGUMENT", "200 INVALID_ARGUMENT"),
        "403 call_forbidden" => ("403 -32000", "403 PERMISSION_DENIED", "200 PERMISSION_DENIED"),
        "404 no_method" => ("200 -32601", "404 NOT_FOUND", "200 UNIMPLEMENTED"),
        "404 not_found" => ("200 -32001", "404 NOT_FOUND", "200 NOT_FOUND"),
        "429 too_many_failures" => {
            ("429 -32000", "429 RESOURCE_EXHAUSTED", "200 RESOURCE_EXHAUSTED")
        }
        // What an operation refuses has the status 200 in JSON-RPC.
        "429 stored_bytes_max" | "429 too_many_streams" => {
            ("200 -32000", "429 RESOURCE_EXHAUSTED", "200 RESOURCE_EXHAUSTED")
        }
        other => panic!("A2A has no words for `{other}`"),
    };
    Told(match kind {
        Kind::A2aHttp => in_http,
        // There every call has the status 200 of HTTP.
        Kind::A2aGrpc(_) => in_grpc,
        _ => in_rpc,
    })
}

/// Whether this status is what an administrator gets: all that is left is where things stand.
pub(super) fn is_served(door: &Door, status: u16) -> bool {
    match door.thing {
        Thing::Open => !matches!(status, 401 | 403),
        // There may be no such delivery.
        _ if door.route.ends_with("/resend") => !matches!(status, 401 | 403 | 405),
        _ => matches!(status, 200..=299 | 409 | 410 | 502),
    }
}
