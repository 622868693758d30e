//! The card: who this server is for agents of others, and what they can ask of it. Strangers see
//! the skills that `[a2a] public` names; a caller with a credential sees those that it may use.

use super::error::{Result, no_realm, unsupported};
use super::incoming::{OUTPUT_MODES, input_modes};
use super::incoming_request::IncomingRequest;
use super::proxy;
use super::schemes::Security;
use super::skills::{self, Skill};
use crate::documents::CardInputs;
use crate::state::A2a;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, LAST_MODIFIED, VARY};
use axum::response::{IntoResponse, Response};
use edge::request::answer::documents::{Document, Documents};
use engine::ListVersion;
use kernel::tool::call::Caller;
use kernel::values::canonical;
use kernel::values::ids::{Millis, RealmId};
use project::a2a_serving::Binding;
use serde_json::{Map, Value, json};
use wire::a2a::card::{AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentSkill};
use wire::a2a::v03::for_both;
use wire::a2a::value::Struct;
use wire::a2a::{
    ASKS_EXTENSION, GRPC, HTTP_JSON, JSONRPC, KEY_SET, SKILLS_EXTENSION, VERSION, VERSION_UNNAMED,
};

/// For how long cards and keys may be kept by everybody, and only by who asked for them.
const PUBLIC: &str = "public, max-age=300";
const PRIVATE: &str = "private, max-age=300";
const DAY_S: i64 = 24 * 60 * 60;
/// The skill of a card that has none to show; cards must have one.
const EXTENDED: &str = "extended";

/// The card of a realm, for this caller or for strangers, signed.
pub(super) fn card(a2a: &A2a, base: &str, realm: &RealmId, caller: Option<&Caller>) -> AgentCard {
    let card = unsigned(a2a, base, realm, caller);
    let signatures = a2a.card_keys.sign(&card, &format!("{base}{KEY_SET}"));
    AgentCard { signatures, ..card }
}

fn unsigned(a2a: &A2a, base: &str, realm: &RealmId, caller: Option<&Caller>) -> AgentCard {
    let skills = match caller {
        Some(caller) => skills::visible(a2a, caller),
        None => skills::public(a2a, realm),
    };
    let Security { schemes, requirements } = Security::of(a2a, base, realm);
    AgentCard {
        name: a2a.serving.name.clone(),
        description: a2a.serving.description.clone(),
        supported_interfaces: interfaces(a2a, base, realm),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        capabilities: AgentCapabilities {
            streaming: Some(a2a.serving.streaming),
            push_notifications: Some(a2a.push.is_some()),
            extensions: extensions(&skills),
            extended_agent_card: Some(a2a.serving.extended_card),
        },
        security_schemes: schemes,
        security_requirements: requirements,
        default_input_modes: input_modes(a2a),
        default_output_modes: OUTPUT_MODES.map(str::to_owned).to_vec(),
        skills: shown(&skills),
        ..AgentCard::default()
    }
}

/// The card for a caller with a credential, where that is offered: JSON text as clients of 1.0
/// read it.
pub(super) fn extended(
    arrived: &IncomingRequest,
    realm: &RealmId,
    caller: &Caller,
) -> Result<String> {
    kept(arrived, realm, caller, &arrived.a2a.extended_cards, |card| json!(card))
}

/// The same as clients of both versions read it, which is what the card's address shows the caller.
pub(super) fn extended_for_both(
    arrived: &IncomingRequest,
    realm: &RealmId,
    caller: &Caller,
) -> Result<String> {
    kept(arrived, realm, caller, &arrived.a2a.cards, for_both)
}

fn kept(
    arrived: &IncomingRequest,
    realm: &RealmId,
    caller: &Caller,
    cards: &Documents<CardInputs>,
    written: fn(&AgentCard) -> Value,
) -> Result<String> {
    let a2a = &arrived.a2a;
    let base = arrived.base.as_str();
    if !a2a.serving.extended_card {
        return Err(unsupported("this server has no extended card; read its agent card"));
    }
    let document = cards.get(inputs(a2a, base, realm, Some(caller)), || -> Result<Document> {
        Ok(document_of(a2a, &card(a2a, base, realm, Some(caller)), written))
    })?;
    Ok(document.text())
}

/// A card as it is kept.
fn document_of(a2a: &A2a, card: &AgentCard, written: fn(&AgentCard) -> Value) -> Document {
    // A signature differs each time it is made: its key counts, not its bytes.
    let told = json!([card.signed_content(), a2a.card_keys.ids()]);
    Document::new(&written(card), canonical::digest(&told).as_str())
}

/// Skills as a card shows them: it has at least one.
pub(super) fn shown(skills: &[Skill]) -> Vec<AgentSkill> {
    if !skills.is_empty() {
        return skills.iter().map(Skill::shown).collect();
    }
    vec![AgentSkill {
        id: EXTENDED.to_owned(),
        name: "Skills for callers with credentials".to_owned(),
        description: "The extended card shows the skills that a caller may use. This entry cannot \
                      be called."
            .to_owned(),
        tags: vec![EXTENDED.to_owned()],
        ..AgentSkill::default()
    }]
}

/// A realm that is not the usual one is a tenant. JSON-RPC has it in the address as well, HTTP
/// clients write it behind the address themselves, and those of gRPC in each message. In 0.3 there
/// are no tenants: the address names the realm.
fn interfaces(a2a: &A2a, base: &str, realm: &RealmId) -> Vec<AgentInterface> {
    let is_usual = *realm == a2a.serving.realm;
    let address = format!("{base}/a2a/v1");
    let tenant = if is_usual { String::new() } else { realm.to_string() };
    let rpc = if is_usual { address.clone() } else { format!("{address}/{realm}") };
    let interface = |url: String, binding: &str| AgentInterface {
        url,
        protocol_binding: binding.to_owned(),
        tenant: tenant.clone(),
        protocol_version: VERSION.to_owned(),
    };
    let old = |binding: &str| AgentInterface {
        url: rpc.clone(),
        protocol_binding: binding.to_owned(),
        tenant: String::new(),
        protocol_version: VERSION_UNNAMED.to_owned(),
    };
    let bindings = &a2a.serving.bindings;
    let current = bindings.iter().map(|binding| match binding {
        Binding::JsonRpc => interface(rpc.clone(), JSONRPC),
        Binding::Rest => interface(address.clone(), HTTP_JSON),
        Binding::Grpc => interface(grpc_address(base), GRPC),
    });
    let olds = bindings.iter().filter_map(|binding| match binding {
        Binding::JsonRpc => Some(old(JSONRPC)),
        Binding::Rest => Some(old(HTTP_JSON)),
        Binding::Grpc => None,
    });
    current.chain(olds).collect()
}

/// Where gRPC is spoken: at the root of the port. Clients take an address without TLS as host and
/// port, and one with TLS as a URL.
fn grpc_address(base: &str) -> String {
    let Some(host) = base.strip_prefix("http://") else { return base.to_owned() };
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port { host.to_owned() } else { format!("{host}:80") }
}

fn extensions(skills: &[Skill]) -> Vec<AgentExtension> {
    let schemas: Map<String, Value> =
        skills.iter().map(|skill| (skill.id().to_owned(), skill.schemas())).collect();
    let params =
        (!schemas.is_empty()).then(|| Struct::from_iter([("skills".to_owned(), json!(schemas))]));
    let extension = |uri: &str, description: &str, params| AgentExtension {
        uri: uri.to_owned(),
        description: description.to_owned(),
        required: false,
        params,
    };
    vec![
        extension(
            SKILLS_EXTENSION,
            "Schemas of skills as JSON text; a message names its skill in its metadata",
            params,
        ),
        extension(ASKS_EXTENSION, "What a task asks, and answers to it, as `data` parts", None),
    ]
}

/// The card at its address: open to strangers, and kept by clients for a while.
pub(super) fn public(arrived: &IncomingRequest, realm: &RealmId) -> Result<Response> {
    let a2a = &arrived.a2a;
    // Who may not enter the realm is a stranger there.
    let client = arrived.caller.as_ref().and_then(|_| arrived.client(realm).ok());
    let caller = client.as_ref().map(|client| &*client.caller);
    let is_usual = *realm == a2a.serving.realm;
    let inputs = inputs(a2a, &arrived.base, realm, caller);
    let document = a2a.cards.get(inputs, || {
        if caller.is_none() && !is_usual && skills::public(a2a, realm).is_empty() {
            // As if there were no such realm.
            return Err(no_realm());
        }
        Ok(document_of(a2a, &card(a2a, &arrived.base, realm, caller), for_both))
    })?;
    // Who has a credential may see more than others: nobody keeps that for them.
    let is_private = a2a.server.entrance.base().is_some() && caller.is_some();
    let mut response = sent(&document, arrived, is_private);
    let modified = HeaderValue::try_from(http_date(a2a.server.started)).ok();
    response.headers_mut().extend(modified.map(|at| (LAST_MODIFIED, at)));
    Ok(response)
}

/// A card for who sends this request.
pub(super) fn sent(document: &Document, arrived: &IncomingRequest, is_private: bool) -> Response {
    let kept = if is_private { PRIVATE } else { PUBLIC };
    let mut response = document.answer(&arrived.headers);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(kept));
    headers.insert(VARY, HeaderValue::from_static("Authorization, X-Api-Key, Host"));
    response
}

/// What a card follows from now; none where it must be made each time. Read before the card is
/// made: a change in between is found at the next request.
pub(super) fn inputs(
    a2a: &A2a,
    base: &str,
    realm: &RealmId,
    caller: Option<&Caller>,
) -> Option<CardInputs> {
    let ListVersion { catalog, policy } = a2a.server.engine.tools().list_version()?;
    Some(CardInputs {
        base: base.to_owned(),
        realm: realm.clone(),
        caller: caller.cloned(),
        catalog,
        definitions: a2a.server.engine.catalog().changes(realm),
        policy,
        directory: a2a.server.identity.number(),
        has_proxy: proxy::is_offered(a2a, realm, caller),
    })
}

/// The keys that sign cards: open to everyone, like the cards.
pub(super) fn key_set(a2a: &A2a) -> Response {
    ([(CACHE_CONTROL, PUBLIC)], axum::Json(a2a.card_keys.key_set())).into_response()
}

/// A moment as HTTP writes it (RFC 9110, 5.6.7).
fn http_date(at: Millis) -> String {
    let seconds = at.0.div_euclid(1_000);
    let day = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let months =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let weekday = day[seconds.div_euclid(DAY_S).rem_euclid(7).unsigned_abs() as usize];
    // `2026-01-02T03:04:05.678Z`
    let text = wire::a2a::value::Timestamp(at.0).to_string();
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let month =
        part(5, 7).parse::<usize>().ok().and_then(|month| months.get(month.checked_sub(1)?));
    let month = month.copied().unwrap_or("Jan");
    format!("{weekday}, {} {month} {} {} GMT", part(8, 10), part(0, 4), part(11, 19))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_grpc_is_what_its_clients_take() {
        for (base, address) in [
            ("http://127.0.0.1:8420", "127.0.0.1:8420"),
            ("http://a.test", "a.test:80"),
            ("http://[::1]:8420", "[::1]:8420"),
            ("http://[::1]", "[::1]:80"),
            ("https://a.test:8443", "https://a.test:8443"),
        ] {
            assert_eq!(grpc_address(base), address);
        }
    }

    #[test]
    fn moments_are_written_as_http_wants_them() {
        assert_eq!(http_date(Millis(0)), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http_date(Millis(784_111_777_000)), "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
