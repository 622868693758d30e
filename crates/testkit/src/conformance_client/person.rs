//! The person at the client: opens the page of a login and comes back from it, fills in forms.

use crate::http::{Answer, Client};
use axum::extract::Query;
use axum::http::Uri;
use kernel::ask::form_defaults::with_defaults;
use kernel::tool::call::InputRequest;
use serde_json::{Map, Value, json};
use std::net::{SocketAddr, ToSocketAddrs};
use upstreams::LoginCallback;

/// Where logins come back to. No one listens there: the redirect is read, not followed.
pub(super) const CALLBACK: &str = "http://127.0.0.1:8420/oauth/callback";

/// Opens the page of a login, and comes back with what the authorization server says. The suite's
/// servers ask no one: they redirect at once.
pub(super) fn log_in(page: &str) -> Result<LoginCallback, String> {
    let answer = open(page)?;
    let place = answer.header("location").unwrap_or_default();
    if !(300..400).contains(&answer.status) || !place.starts_with(CALLBACK) {
        let Answer { status, body, .. } = &answer;
        return Err(format!(
            "the login page answered {status} and leads to `{place}`, not back to us: {body}"
        ));
    }
    returned(place)
}

/// What a redirect back to us says.
fn returned(place: &str) -> Result<LoginCallback, String> {
    let uri: Uri = place.parse().map_err(|error| format!("`{place}` is no URL: {error}"))?;
    let said: Query<Vec<(String, String)>> = Query::try_from_uri(&uri)
        .map_err(|error| format!("the query of `{place}` cannot be read: {error}"))?;
    let mut returned = LoginCallback::default();
    for (name, value) in said.0 {
        match name.as_str() {
            "state" => returned.state = value,
            "code" => returned.code = Some(value),
            "iss" => returned.iss = Some(value),
            "error" => returned.error = Some(value),
            "error_description" => returned.error_description = Some(value),
            _ => {}
        }
    }
    Ok(returned)
}

/// Gets a page; redirects are not followed.
fn open(page: &str) -> Result<Answer, String> {
    let uri: Uri = page.parse().map_err(|error| format!("`{page}` is no URL: {error}"))?;
    let (Some("http"), Some(host)) = (uri.scheme_str(), uri.host()) else {
        return Err(format!("the login page `{page}` is none of the suite's"));
    };
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let addresses: Vec<SocketAddr> = (host, uri.port_u16().unwrap_or(80))
        .to_socket_addrs()
        .map_err(|error| format!("`{host}` has no address: {error}"))?
        .collect();
    let mut last = format!("`{host}` has no address");
    // A name may stand for addresses of both kinds, of which the server listens at one.
    for address in addresses {
        match Client::new(address).get(path) {
            Ok(answer) => return Ok(answer),
            Err(error) => last = format!("cannot open `{page}`: {error}"),
        }
    }
    Err(last)
}

/// What a person answers to what a server wants: yes to everything. Fields that have a value
/// already are left alone, and keep it, as the product has it for who answers an ask.
pub(super) fn answer(want: &InputRequest) -> Value {
    match want {
        InputRequest::Form { schema, .. } => {
            let content = with_defaults(Value::Object(fields(schema)), want);
            json!({"action": "accept", "content": content})
        }
        InputRequest::Url { .. } => json!({"action": "accept"}),
        InputRequest::Sample { .. } => json!({
            "role": "assistant", "model": "none", "content": {"type": "text", "text": "yes"},
        }),
        InputRequest::Roots => json!({"roots": []}),
    }
}

/// The fields of a form that must be filled in.
fn fields(schema: &Value) -> Map<String, Value> {
    let fields = schema.get("properties").and_then(Value::as_object);
    let empty = fields.into_iter().flatten().filter(|(_, field)| field.get("default").is_none());
    empty.map(|(name, field)| (name.clone(), filled_in(field))).collect()
}

fn filled_in(field: &Value) -> Value {
    if let Some(first) = field["enum"].get(0) {
        return first.clone();
    }
    match field["type"].as_str() {
        Some("boolean") => json!(true),
        Some("integer" | "number") => json!(1),
        Some("array") => json!([]),
        _ => json!("text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_login_callback_is_read_from_the_redirect() {
        let place = format!(
            "{CALLBACK}?code=test-auth-code&state=a%2Bb&iss=http%3A%2F%2Flocalhost%3A1&more=x"
        );
        let expected = LoginCallback {
            state: "a+b".to_owned(),
            code: Some("test-auth-code".to_owned()),
            iss: Some("http://localhost:1".to_owned()),
            ..LoginCallback::default()
        };
        assert_eq!(returned(&place), Ok(expected));
        let denied = returned(&format!("{CALLBACK}?state=a&error=access_denied")).unwrap();
        assert_eq!((denied.code, denied.error.as_deref()), (None, Some("access_denied")));
    }

    #[test]
    fn only_empty_fields_are_filled_in() {
        let schema = json!({"type": "object", "properties": {
            "name": {"type": "string", "default": "Ann"},
            "sure": {"type": "boolean"}, "age": {"type": "integer"},
            "one": {"type": "string", "enum": ["a", "b"]},
        }});
        let form = InputRequest::Form { message: "m".to_owned(), schema: Arc::new(schema) };
        let content = json!({"name": "Ann", "sure": true, "age": 1, "one": "a"});
        assert_eq!(answer(&form), json!({"action": "accept", "content": content}));
        assert_eq!(answer(&InputRequest::Roots), json!({"roots": []}));
    }
}
