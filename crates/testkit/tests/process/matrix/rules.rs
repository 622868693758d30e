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
}

impl Case {
    pub(super) const ALL: [Case; 10] = [
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
/// What JSON-RPC says of a name that is not there.
const NO_SUCH_NAME: Expected = Told("200 -32602");

/// What this door answers in this case.
pub(super) fn expected(door: &Door, case: Case) -> Expected {
    if door.kind == Kind::Token {
        return token(case);
    }
    match case {
        Case::Nothing if door.thing == Thing::Open => Served,
        Case::Nothing | Case::Unknown | Case::Expired | Case::Revoked => UNAUTHORIZED,
        Case::Malformed => Told("400 bad_credential"),
        Case::TooMany => Told("429 too_many_failures"),
        Case::Realm => Told("403 realm_not_allowed"),
        Case::Scope => out_of_scope(door),
        Case::Denied => denied(door),
        Case::Hidden => hidden(door),
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
        Case::Realm | Case::Denied | Case::Hidden => NoCase,
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

/// Whether this status is what an administrator gets: all that is left is where things stand.
pub(super) fn is_served(door: &Door, status: u16) -> bool {
    match door.thing {
        Thing::Open => !matches!(status, 401 | 403),
        // There may be no such delivery.
        _ if door.route.ends_with("/resend") => !matches!(status, 401 | 403 | 405),
        _ => matches!(status, 200..=299 | 409 | 410 | 502),
    }
}
