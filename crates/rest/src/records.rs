//! `/api/v1/records`: the types of records that a caller may read, and their records as resources.
//! Each request is a call of a tool of records. The `ETag` of a record is its version.

use super::condition::{Condition, tagged};
use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use edge::problem::{Failure, Result};
use edge::record_calls::{self, RecordCall, source, told};
use edge::record_hints;
use edge::request::body::{parse, read};
use edge::request::cursors::Purpose;
use edge::request::key::Key;
use edge::request::pages::{PageQuery, paged};
use edge::request::params::{Params, PathName, TwoPathNames};
use edge::request::server_state::{Shared, Who};
use edge::request::trace;
use edge::tool_answer::ToolAnswer;
use engine::IdempotencyKey;
use kernel::values::members::take;
use kernel::values::trace::TraceParent;
use query::records::error::RecordError;
use query::records::faults::of_record;
use query::records::names::read_id;
use query::records::reach::TypeRights;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use wire::rest::{Page, RecordPage, RecordType};

/// The routes, as the audit names them.
const OF_TYPE: &str = "/api/v1/records/{type}";
const ONE: &str = "/api/v1/records/{type}/{id}";

const ID: &str = "id";
const VERSION: &str = "version";

/// `?query=&limit=&skip=&cursor=&sort=&total=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ListQuery {
    query: Option<String>,
    limit: Option<u64>,
    skip: Option<u64>,
    cursor: Option<String>,
    sort: Option<String>,
    total: Option<bool>,
}

impl ListQuery {
    /// The arguments of `query_find`: what is not said is not there.
    fn arguments(self, record_type: &str) -> Value {
        let Self { query, limit, skip, cursor, sort, total } = self;
        let given = [
            ("query", query.map(Value::from)),
            ("limit", limit.map(Value::from)),
            ("skip", skip.map(Value::from)),
            ("cursor", cursor.map(Value::from)),
            ("sort", sort.map(Value::from)),
            ("total", total.map(Value::from)),
        ];
        let mut arguments = Map::new();
        arguments.insert("rootType".to_owned(), json!(record_type));
        for (name, value) in given {
            arguments.extend(value.map(|value| (name.to_owned(), value)));
        }
        Value::Object(arguments)
    }
}

/// Who sends a request about records, and what goes with it.
pub(crate) struct RecordRequest {
    who: Who,
    key: Key,
    trace: Option<TraceParent>,
    headers: HeaderMap,
}

impl FromRequestParts<Shared> for RecordRequest {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, server: &Shared) -> Result<Self> {
        let who = Who::from_request_parts(parts, server).await?;
        let key = Key::from_request_parts(parts, server).await?;
        let trace = trace::of(&parts.headers);
        Ok(Self { who, key, trace, headers: parts.headers.clone() })
    }
}

/// The same with a record, or a part of one, as its body.
pub(crate) struct EntityRequest {
    request: RecordRequest,
    entity: Map<String, Value>,
    once: Option<IdempotencyKey>,
}

impl FromRequest<Shared> for EntityRequest {
    type Rejection = Failure;

    async fn from_request(request: Request, server: &Shared) -> Result<Self> {
        let (mut parts, body) = request.into_parts();
        let request = RecordRequest::from_request_parts(&mut parts, server).await?;
        let sent = read(server, body).await?;
        let entity = parse(&sent, server.limits().body_depth_max)?;
        let once = request.key.clone().once(&sent);
        Ok(Self { request, entity, once })
    }
}

impl RecordRequest {
    async fn call(
        &self,
        tool: &'static str,
        arguments: Value,
        once: Option<IdempotencyKey>,
        route: &'static str,
    ) -> Result<ToolAnswer> {
        let Who { server, caller } = &self.who;
        let call =
            RecordCall { once, trace: self.trace, ..RecordCall::new(tool, arguments, route) };
        record_calls::call(server, caller, call).await
    }

    /// Looks one record up, whose id this is.
    async fn found(&self, record_type: &str, id: &str) -> Result<ToolAnswer> {
        let query = format!("{ID}:\"{id}\"");
        let arguments =
            json!({"rootType": record_type, "query": query, "limit": 1, "total": false});
        self.call("query_find", arguments, None, ONE).await
    }

    /// The version that the headers want the record to have, if they want one.
    async fn expected(&self, record_type: &str, id: &str) -> Result<Option<u64>> {
        let stored = self.stored_version(record_type, id);
        Condition::of(&self.headers)?.expected("record", id, stored).await
    }

    async fn stored_version(&self, record_type: &str, id: &str) -> Result<Option<u64>> {
        match self.found(record_type, id).await? {
            ToolAnswer::Done { output, .. } => Ok(version_of(&output["rows"][0])),
            // A person is asked first, so that nothing is known of the record now.
            ToolAnswer::Pending(_) => Err(not_looked_up()),
        }
    }
}

/// `GET /records`: the types, by name.
pub(crate) async fn types(
    Who { server, caller }: Who,
    Params(query): Params<PageQuery>,
) -> Result<Json<Page<RecordType>>> {
    record_calls::require(&server, &caller, "query_rootTypes")?;
    let visible = record_hints::visible(source(&server)?, &caller).map_err(told)?;
    let shown = |(name, rights): (&String, &TypeRights)| {
        let found = visible.access.types.find(name).ok()?;
        Some(shown_type(found, *rights))
    };
    let types: Vec<RecordType> = visible.rights.iter().filter_map(shown).collect();
    let of = Purpose::of(&caller, "/api/v1/records");
    paged(&server, &of, types, query, |shown| shown.name.as_str(), |shown| shown)
}

fn shown_type(record_type: &query::types::RecordType, rights: TypeRights) -> RecordType {
    RecordType {
        name: record_type.full_name(),
        simple_name: record_type.name.clone(),
        collection: record_type.collection.clone(),
        save: rights.save,
        remove: rights.remove,
        built_in: rights.is_built_in,
    }
}

/// `GET /records/{type}`: a page of what a query takes.
pub(crate) async fn list(
    request: RecordRequest,
    PathName(record_type): PathName,
    Params(query): Params<ListQuery>,
) -> Result<Response> {
    let arguments = query.arguments(&record_type);
    let answer = request.call("query_find", arguments, None, OF_TYPE).await?;
    Ok(answer.respond(|output| Json(page(output)).into_response()))
}

fn page(output: Value) -> RecordPage {
    let Value::Object(mut found) = output else {
        return RecordPage {
            items: Vec::new(),
            next_cursor: None,
            total_count: None,
            limited: None,
        };
    };
    let items = match take(&mut found, "rows") {
        Some(Value::Array(rows)) => rows,
        Some(_) | None => Vec::new(),
    };
    let next_cursor = found.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
    let total_count = found.get("totalCount").and_then(Value::as_u64);
    let limited = take(&mut found, "limited").filter(|limited| !limited.is_null());
    RecordPage { items, next_cursor, total_count, limited }
}

/// `POST /records/{type}`: a record that is not there yet.
pub(crate) async fn insert(
    PathName(record_type): PathName,
    EntityRequest { request, entity, once }: EntityRequest,
) -> Result<Response> {
    let arguments = json!({"rootType": record_type, "entity": entity, "insert": true});
    let answer = request.call("query_save", arguments, once, OF_TYPE).await?;
    Ok(answer.respond(|output| saved(&record_type, output)))
}

/// `GET /records/{type}/{id}`.
pub(crate) async fn show(
    request: RecordRequest,
    TwoPathNames(record_type, id): TwoPathNames,
) -> Result<Response> {
    let id = known_id(&id)?;
    match request.found(&record_type, &id).await? {
        ToolAnswer::Done { mut output, .. } => {
            let row = output.pointer_mut("/rows/0").map(Value::take).ok_or_else(missing)?;
            let version = version_of(&row);
            Ok(tagged(Json(row).into_response(), version))
        }
        ToolAnswer::Pending(pending) => Ok(pending.into_response()),
    }
}

/// `PUT /records/{type}/{id}`: the whole record, whether it is there or not.
pub(crate) async fn put(
    TwoPathNames(record_type, id): TwoPathNames,
    request: EntityRequest,
) -> Result<Response> {
    changed(&record_type, &id, request, false).await
}

/// `PATCH /records/{type}/{id}`: a part of a record that is there, as RFC 7396 merges it.
pub(crate) async fn patch(
    TwoPathNames(record_type, id): TwoPathNames,
    request: EntityRequest,
) -> Result<Response> {
    changed(&record_type, &id, request, true).await
}

async fn changed(
    record_type: &str,
    id: &str,
    EntityRequest { request, mut entity, once }: EntityRequest,
    merge: bool,
) -> Result<Response> {
    let id = known_id(id)?;
    named_by_path(&mut entity, &id)?;
    let expected = request.expected(record_type, &id).await?;
    expecting(&mut entity, expected)?;
    let mut arguments = json!({"rootType": record_type, "entity": entity});
    if merge {
        arguments["merge"] = json!(true);
    }
    let answer = request.call("query_save", arguments, once, ONE).await;
    let answer = answer.map_err(|failure| conditional(failure, expected))?;
    Ok(answer.respond(|output| saved(record_type, output)))
}

/// `DELETE /records/{type}/{id}`.
pub(crate) async fn remove(
    request: RecordRequest,
    TwoPathNames(record_type, id): TwoPathNames,
) -> Result<Response> {
    let id = known_id(&id)?;
    let condition = Condition::of(&request.headers)?;
    // The deletion itself finds out whether it is there: a repeat under its key is answered so.
    let must_exist = matches!(condition, Condition::Any);
    let expected = match condition {
        Condition::Any => None,
        other => other.expected("record", &id, request.stored_version(&record_type, &id)).await?,
    };
    let mut arguments = json!({"rootType": record_type, "id": id});
    if let Some(version) = expected {
        arguments[VERSION] = json!(version);
    }
    let once = request.key.clone().once(b"");
    let answer = request.call("query_delete", arguments, once, ONE).await;
    let answer = answer.map_err(|failure| match failure.code() {
        "NotFound" if must_exist => failure.status_code(StatusCode::PRECONDITION_FAILED),
        _ => conditional(failure, expected),
    })?;
    Ok(answer.respond(|_| StatusCode::NO_CONTENT.into_response()))
}

/// What a save answers: the record with its version, and where a new one is.
fn saved(record_type: &str, mut output: Value) -> Response {
    let version = output[VERSION].as_u64();
    let is_new = output["isNew"] == true;
    let id = output[ID].as_str().unwrap_or_default().to_owned();
    let record = output.get_mut("entity").map(Value::take).unwrap_or_default();
    let response = match is_new {
        true => {
            let location = HeaderValue::try_from(format!("/api/v1/records/{record_type}/{id}"));
            // The name of a type and an id are plain ASCII; nothing in them can be refused.
            let location = location.unwrap_or(HeaderValue::from_static("/api/v1/records"));
            (StatusCode::CREATED, [(LOCATION, location)], Json(record)).into_response()
        }
        false => Json(record).into_response(),
    };
    tagged(response, version)
}

/// A record is saved under the id in its path; one without an id gets it from there.
fn named_by_path(entity: &mut Map<String, Value>, id: &str) -> Result<()> {
    let given = take(entity, "_id").or_else(|| take(entity, ID)).filter(|id| !id.is_null());
    let is_other =
        given.is_some_and(|given| given.as_str().and_then(read_id).as_deref() != Some(id));
    if is_other {
        return Err(Failure::wrong_value("/id", "`id` is not the id in the path")
            .hint("leave it out, or use the same"));
    }
    entity.insert(ID.to_owned(), json!(id));
    Ok(())
}

/// Says in a record which version it must have, where the headers do.
fn expecting(entity: &mut Map<String, Value>, expected: Option<u64>) -> Result<()> {
    let Some(expected) = expected else { return Ok(()) };
    let given = entity.get(VERSION).filter(|given| !given.is_null());
    if given.is_some_and(|given| given.as_u64() != Some(expected)) {
        let message = "`version` in the body is not the version that the headers name";
        return Err(Failure::bad_request("two_versions", message)
            .hint("leave `version` out, or send no `If-Match`"));
    }
    entity.insert(VERSION.to_owned(), json!(expected));
    Ok(())
}

/// A version that the headers name is a condition of the request, and none of the record.
fn conditional(failure: Failure, expected: Option<u64>) -> Failure {
    match failure.code() {
        "VersionConflict" if expected.is_some() => {
            failure.status_code(StatusCode::PRECONDITION_FAILED)
        }
        _ => failure,
    }
}

fn version_of(record: &Value) -> Option<u64> {
    record[VERSION].as_u64()
}

fn known_id(id: &str) -> Result<String> {
    read_id(id).ok_or_else(|| told(of_record(&RecordError::InvalidId(id.to_owned()))))
}

fn missing() -> Failure {
    told(of_record(&RecordError::NotFound))
}

fn not_looked_up() -> Failure {
    let message = "the version of the record cannot be looked up, because that must be approved";
    Failure::new(StatusCode::CONFLICT, "version_unknown", message)
        .hint("send the record's own `ETag` instead of `*`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::header::ETAG;

    const RECORD: &str = "65a000000000000000000001";

    fn entity(value: Value) -> Map<String, Value> {
        let Value::Object(entity) = value else { panic!("an object") };
        entity
    }

    fn header(response: &Response, name: axum::http::HeaderName) -> Option<&str> {
        response.headers().get(name).map(|value| value.to_str().unwrap())
    }

    #[test]
    fn only_what_a_query_says_is_an_argument() {
        let query = ListQuery {
            query: Some("city:Oslo".to_owned()),
            limit: Some(5),
            total: Some(false),
            ..ListQuery::default()
        };
        let expected = json!({"rootType": "Order", "query": "city:Oslo", "limit": 5,
            "total": false});
        assert_eq!(query.arguments("Order"), expected);
        assert_eq!(ListQuery::default().arguments("Order"), json!({"rootType": "Order"}));
    }

    #[test]
    fn a_page_has_the_rows_and_where_the_next_one_begins() {
        let output = json!({"rows": [{"id": RECORD}], "totalCount": 7, "nextCursor": "c",
            "limited": null, "offset": 0});
        let expected = json!({"items": [{"id": RECORD}], "totalCount": 7, "nextCursor": "c"});
        assert_eq!(json!(page(output)), expected);
        let last = json!(page(json!({"rows": [], "totalCount": null})));
        assert_eq!(last, json!({"items": [], "nextCursor": null}));
    }

    #[test]
    fn a_record_that_is_saved_has_its_version_and_a_new_one_its_place() {
        let output = |is_new: bool| {
            json!({"id": RECORD, "rootType": "shop.Order", "entity": {"id": RECORD},
                "version": 3, "isNew": is_new})
        };
        let made = saved("Order", output(true));
        assert_eq!(made.status(), StatusCode::CREATED);
        assert_eq!(header(&made, ETAG), Some("\"3\""));
        let place = format!("/api/v1/records/Order/{RECORD}");
        assert_eq!(header(&made, LOCATION), Some(place.as_str()));
        let changed = saved("Order", output(false));
        assert_eq!((changed.status(), header(&changed, LOCATION)), (StatusCode::OK, None));
    }

    #[test]
    fn a_record_is_named_by_its_path() {
        for (given, is_taken) in [
            (json!({"a": 1}), true),
            (json!({"id": RECORD.to_uppercase()}), true),
            (json!({"_id": RECORD}), true),
            (json!({"id": "65a000000000000000000002"}), false),
            (json!({"id": 7}), false),
        ] {
            let mut entity = entity(given);
            let named = named_by_path(&mut entity, RECORD);
            assert_eq!(named.is_ok(), is_taken, "{entity:?}");
            if is_taken {
                assert_eq!((&entity["id"], entity.get("_id")), (&json!(RECORD), None));
            }
        }
    }

    #[test]
    fn a_version_in_the_headers_is_a_condition() {
        let mut same = entity(json!({"version": 3}));
        assert!(expecting(&mut same, Some(3)).is_ok());
        let mut none = entity(json!({}));
        assert!(expecting(&mut none, Some(0)).is_ok());
        assert_eq!(none["version"], 0);
        let refused = expecting(&mut entity(json!({"version": 2})), Some(3));
        assert_eq!(refused.unwrap_err().code(), "two_versions");
        let conflict = || {
            let error = RecordError::VersionConflict { expected: 3, found: 4 };
            told(of_record(&error))
        };
        assert_eq!(conditional(conflict(), Some(3)).status(), StatusCode::PRECONDITION_FAILED);
        assert_eq!(conditional(conflict(), None).status(), StatusCode::CONFLICT);
        assert_eq!(conditional(missing(), Some(3)).status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn a_name_that_is_no_id_is_refused() {
        assert_eq!(known_id(&RECORD.to_uppercase()).unwrap(), RECORD);
        let refused = known_id("depot").unwrap_err();
        assert_eq!((refused.status().as_u16(), refused.code()), (400, "InvalidId"));
    }
}
