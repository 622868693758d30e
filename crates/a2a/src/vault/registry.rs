//! The read routes of AgentVault's registry, for the cards of this server: its clients find a card
//! by its id there. It is open like the cards, and nothing can be written.

use super::super::incoming_request::IncomingRequest;
use super::card::{card, written};
use crate::state::Shared;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use kernel::values::percent::decoded;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use serde_json::{Value, json};
use wire::a2a::value::Timestamp;
use wire::a2a::vault::AgentCard;

/// Where the cards are.
const ADDRESS: &str = "/api/v1/agent-cards";
const LIMIT: usize = 100;
const LIMIT_MAX: usize = 250;
const SEARCH_CHARS_MAX: usize = 100;
/// The space of names that are addresses (RFC 9562, 6.6).
const NAMES: u128 = 0x6ba7_b811_9dad_11d1_80b4_00c0_4fd4_30c8;

/// Why a request gets no card.
#[derive(Debug, PartialEq)]
enum CardError {
    Unknown,
    Query(String),
}

/// All routes below the address.
pub(super) async fn serve(State(a2a): State<Shared>, request: Request) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = detail(StatusCode::METHOD_NOT_ALLOWED, "cards can only be read here");
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET"));
        return response;
    }
    let (arrived, _) = IncomingRequest::of(&a2a, request);
    let path = arrived.uri.path().strip_prefix(ADDRESS).unwrap_or_default();
    let path = decoded(path.trim_matches('/'));
    let cards = cards(&arrived);
    let found = match path.split_once('/') {
        Some(("id", id)) => one(&arrived, &cards, |card| card.human_readable_id == id),
        None if path.is_empty() => list(&arrived, &cards),
        None if path == "by-hri" => {
            let id = arrived.query().find(|(name, _)| name == "hri").map(|(_, id)| id);
            match id {
                Some(id) => one(&arrived, &cards, |card| card.human_readable_id == id),
                None => Err(CardError::Query("`hri` is required".to_owned())),
            }
        }
        None => one(&arrived, &cards, |card| uuid(&card.human_readable_id) == path),
        Some(_) => Err(CardError::Unknown),
    };
    match found {
        Ok(body) => {
            // Who has a credential may see more than others: nobody keeps that for them.
            let kept = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
            (kept, Json(body)).into_response()
        }
        Err(CardError::Unknown) => detail(StatusCode::NOT_FOUND, "Agent card not found"),
        Err(CardError::Query(why)) => detail(StatusCode::UNPROCESSABLE_ENTITY, &why),
    }
}

fn detail(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({"detail": why}))).into_response()
}

/// The cards of all realms that show one to who asks.
fn cards(arrived: &IncomingRequest) -> Vec<AgentCard> {
    let directory = arrived.a2a.server.identity.directory();
    let usual = &arrived.a2a.serving.realm;
    let others = directory.realms.0.keys().filter(|realm| *realm != usual);
    std::iter::once(usual).chain(others).filter_map(|realm| card(arrived, realm).ok()).collect()
}

fn one(
    arrived: &IncomingRequest,
    cards: &[AgentCard],
    is_meant: impl Fn(&AgentCard) -> bool,
) -> Result<Value, CardError> {
    let card = cards.iter().find(|card| is_meant(card)).ok_or(CardError::Unknown)?;
    let at = Timestamp(arrived.a2a.server.started.0);
    Ok(json!({
        "id": uuid(&card.human_readable_id),
        "developer_id": 0,
        "developer_is_verified": false,
        "card_data": written(&arrived.a2a, card),
        "name": card.name,
        "description": card.description,
        "is_active": true,
        "created_at": at,
        "updated_at": at,
    }))
}

fn list(arrived: &IncomingRequest, cards: &[AgentCard]) -> Result<Value, CardError> {
    let wanted = CardQuery::of(arrived.query())?;
    let current_page = wanted.page();
    let CardQuery { limit, offset, search, tags, is_none } = wanted;
    let has = |text: &str| text.to_lowercase().contains(&search);
    let fits = |card: &&AgentCard| {
        !is_none
            && (has(&card.name) || has(&card.description) || has(&card.human_readable_id))
            && tags.iter().all(|tag| card.tags.contains(tag))
    };
    let found: Vec<&AgentCard> = cards.iter().filter(fits).collect();
    let item = |card: &&AgentCard| {
        json!({"id": uuid(&card.human_readable_id), "name": card.name,
            "description": card.description})
    };
    let items: Vec<Value> = found.iter().skip(offset).take(limit).map(item).collect();
    Ok(json!({"items": items, "pagination": {
        "total_items": found.len(),
        "limit": limit,
        "offset": offset,
        "total_pages": found.len().div_ceil(limit),
        "current_page": current_page,
    }}))
}

/// What a list is asked for.
struct CardQuery {
    limit: usize,
    offset: usize,
    /// In lower case.
    search: String,
    tags: Vec<String>,
    /// It asks for what none of our cards is: one with trusted hardware, or of a developer.
    is_none: bool,
}

impl CardQuery {
    fn of(query: impl Iterator<Item = (String, String)>) -> Result<Self, CardError> {
        let mut search = String::new();
        let mut tags = Vec::new();
        let mut limit = LIMIT;
        let mut offset = 0;
        let mut is_none = false;
        for (name, value) in query {
            let number = || {
                let wrong = |_| CardError::Query(format!("`{name}` is a whole number"));
                value.parse::<usize>().map_err(wrong)
            };
            match name.as_str() {
                "limit" => limit = number()?,
                // Clients send one, the registry that they are made for reads the other.
                "skip" | "offset" => offset = number()?,
                "search" => search = value.to_lowercase(),
                "tags" => tags.push(value),
                "has_tee" | "owned_only" => is_none |= value == "true",
                "tee_type" => is_none |= !value.is_empty(),
                _ => {}
            }
        }
        if !(1..=LIMIT_MAX).contains(&limit) {
            return Err(CardError::Query(format!("`limit` is 1 to {LIMIT_MAX}, not {limit}")));
        }
        if search.chars().count() > SEARCH_CHARS_MAX {
            let why = format!("`search` has at most {SEARCH_CHARS_MAX} characters");
            return Err(CardError::Query(why));
        }
        Ok(Self { limit, offset, search, tags, is_none })
    }

    /// The number of the page, from 1 on. Any offset can be asked for.
    fn page(&self) -> usize {
        (self.offset / self.limit).saturating_add(1)
    }
}

/// The id of a card by the name on it: the same for ever (RFC 9562, version 5).
fn uuid(name: &str) -> String {
    let text = [NAMES.to_be_bytes().as_slice(), name.as_bytes()].concat();
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, &text);
    let bits =
        hash.as_ref().iter().take(16).fold(0_u128, |bits, byte| (bits << 8) | u128::from(*byte));
    let bits = (bits & !(0xf << 76)) | (5 << 76);
    let bits = (bits & !(0b11 << 62)) | (0b10 << 62);
    let text = format!("{bits:032x}");
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_made_of_the_name() {
        // The example of RFC 9562 has another space of names; this one is by `uuid.uuid5`.
        assert_eq!(uuid("www.example.com"), "b63cdfa4-3df9-568e-97ae-006c5b8fd652");
        assert_ne!(uuid("waypost/default"), uuid("waypost/other"));
    }

    #[test]
    fn a_list_is_asked_for_within_its_limits() {
        let asked = |text: &str| {
            let pairs: Vec<(String, String)> = text
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect();
            CardQuery::of(pairs.into_iter())
        };
        let wanted = asked("limit=250&offset=3&tags=a&tags=b&search=Hi&active_only=true").unwrap();
        assert_eq!((wanted.limit, wanted.offset, wanted.search.as_str()), (250, 3, "hi"));
        assert_eq!((wanted.tags.len(), wanted.is_none), (2, false));
        assert_eq!((wanted.page(), asked("limit=2&skip=7").unwrap().page()), (1, 4));
        assert_eq!(asked(&format!("limit=1&offset={}", usize::MAX)).unwrap().page(), usize::MAX);
        assert_eq!(asked("skip=7").unwrap().offset, 7);
        assert!(asked("has_tee=true").unwrap().is_none && asked("tee_type=x").unwrap().is_none);
        for wrong in ["limit=251", "limit=0", "limit=x", "skip=-1"] {
            assert!(matches!(asked(wrong), Err(CardError::Query(_))), "{wrong}");
        }
        let long = format!("search={}", "x".repeat(101));
        assert!(matches!(asked(&long), Err(CardError::Query(_))));
    }
}
