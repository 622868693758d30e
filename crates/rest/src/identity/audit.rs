//! `/api/v1/audit`: what was decided in the caller's realm, or about the server as a whole, how far
//! the chain of it goes, and whether it is as it was written.

use axum::Json;
use edge::problem::{Failure, Result};
use edge::request::auth::Visitor;
use edge::request::cursors::Purpose;
use edge::request::params::{Params, no_such, page, short};
use edge::request::server_state::{Administrator, ServerState, for_whole_server};
use kernel::contracts::identity::audit::{AuditFilter, LocatedEntry};
use kernel::identity::audit::{ChainName, Entry, Ruling};
use kernel::identity::chain::{BadHead, Head};
use kernel::tool::call::Caller;
use kernel::values::ids::Millis;
use serde::Deserialize;
use wire::rest::{AuditCheck, AuditEntry, AuditHead, AuditObject, AuditVerdict, Page};

/// What stands before the name of a realm whose chain is meant.
const OF_REALM: &str = "realm:";

/// `?chain=&act=&subject=&since=&limit=&cursor=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EntriesQuery {
    chain: Option<String>,
    act: Option<String>,
    subject: Option<String>,
    since: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// `?chain=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ChainQuery {
    chain: Option<String>,
}

/// `?chain=&head=&uncheckedUntil=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CheckQuery {
    chain: Option<String>,
    head: Option<String>,
    #[serde(rename = "uncheckedUntil")]
    unchecked_until: Option<u64>,
}

/// `GET /audit`, newest first.
pub(crate) async fn list(
    Administrator { server, caller }: Administrator,
    visitor: Visitor,
    Params(query): Params<EntriesQuery>,
) -> Result<Json<Page<AuditEntry>>> {
    let chain = chain(&server, query.chain.as_deref(), &visitor, &caller)?;
    let since = query.since.as_deref().map(moment).transpose()?;
    let filter = AuditFilter { act: query.act, subject: query.subject, since };
    let of = Purpose::of(&caller, "/api/v1/audit").filtered(&(&chain, &filter));
    let page = page(query.limit, server.cursors.start(&of, query.cursor)?, server.limits());
    let found = server.engine.audits().entries(&caller, &chain, &filter, &page).await?;
    let items = found.items.into_iter().map(entry).collect();
    Ok(Json(Page { items, next_cursor: server.cursors.next(&of, found.next_cursor) }))
}

/// `GET /audit/head`.
pub(crate) async fn head(
    Administrator { server, caller }: Administrator,
    visitor: Visitor,
    Params(query): Params<ChainQuery>,
) -> Result<Json<AuditHead>> {
    let chain = chain(&server, query.chain.as_deref(), &visitor, &caller)?;
    let state = server.engine.audits().head(&caller, &chain).await?;
    Ok(Json(AuditHead {
        chain: chain.to_string(),
        head: state.head.to_string(),
        base: state.base.map(|base| base.head.to_string()),
    }))
}

/// `GET /audit/verify`: reads the whole chain.
pub(crate) async fn verify(
    Administrator { server, caller }: Administrator,
    visitor: Visitor,
    Params(query): Params<CheckQuery>,
) -> Result<Json<AuditCheck>> {
    let chain = chain(&server, query.chain.as_deref(), &visitor, &caller)?;
    let known = query.head.as_deref().map(kept_head).transpose()?;
    let known: Vec<Head> = known.into_iter().collect();
    let until = query.unchecked_until.unwrap_or_default();
    let seen = server.engine.audits().verify(&caller, &chain, &known, until).await?;
    Ok(Json(AuditCheck {
        chain: chain.to_string(),
        valid: seen.is_valid(),
        rows: seen.rows,
        unchecked: seen.unchecked,
        unexpected: seen.unexpected,
        flaws: seen.flaws,
        found: seen.found.iter().map(ToString::to_string).collect(),
    }))
}

/// The chain that is meant: the realm's, or for who administers all of it the server's, or that of
/// any realm: one that was removed is entered no more, and its audit stays.
fn chain(
    server: &ServerState,
    named: Option<&str>,
    visitor: &Visitor,
    caller: &Caller,
) -> Result<ChainName> {
    let realm = named.and_then(|named| named.strip_prefix(OF_REALM));
    let chain = match (named, realm) {
        (None | Some("realm"), _) => return Ok(ChainName::of(&caller.realm)),
        (Some("server"), _) => ChainName::server(),
        (Some(_), Some(realm)) => ChainName::of(&realm.into()),
        (Some(other), None) => return Err(no_such("chain", other, &["realm", "server"])),
    };
    for_whole_server(server, visitor, "the audit of the server, or of another realm,")?;
    Ok(chain)
}

fn moment(text: &str) -> Result<Millis> {
    let parsed: Result<jiff::Timestamp, _> = text.parse();
    parsed.map(|moment| Millis(moment.as_millisecond())).map_err(|_| {
        let message = format!("`since` is `{}`, and must be a time", short(text));
        Failure::bad_request("bad_query", message).hint("write it like `2026-11-15T04:09:04Z`")
    })
}

fn kept_head(text: &str) -> Result<Head> {
    text.parse().map_err(|bad: BadHead| {
        let message = format!("`head` is `{}`: {bad}", short(text));
        Failure::bad_request("bad_query", message)
            .hint("`GET /api/v1/audit/head` and `waypost audit export` give one")
    })
}

fn entry(found: LocatedEntry) -> AuditEntry {
    let LocatedEntry { seq, entry } = found;
    let Entry { at, subject, actor, act, object, arguments, verdict, why, .. } = entry;
    AuditEntry {
        row: seq,
        at: at.rfc3339(),
        subject: subject.to_string(),
        actor: actor.map(|actor| actor.to_string()),
        run_as: entry.run_as.map(|principal| principal.to_string()),
        act: act.into_owned(),
        object: AuditObject { kind: object.kind.into_owned(), id: object.id },
        arguments: arguments.map(|digest| digest.to_string()),
        verdict: match verdict {
            Ruling::Allow => AuditVerdict::Allow,
            Ruling::Ask => AuditVerdict::Ask,
            Ruling::Deny => AuditVerdict::Deny,
        },
        why,
        policies: entry.policies.iter().map(ToString::to_string).collect(),
        policy_version: entry.version.map(|version| version.to_string()),
        run: entry.run.map(|run| run.to_string()),
        ask: entry.ask.map(|ask| ask.to_string()),
        reply: entry.reply.map(|reply| reply.into_owned()),
        door: entry.door,
        trace: entry.trace.map(|trace| trace.to_string()),
        headers: entry.headers,
        detail: entry.detail,
    }
}
