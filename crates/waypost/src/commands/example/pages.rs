//! Login pages of the calendar example. At a real provider they would be the provider's; here one
//! page asks for consent, and a link gives it.

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use demo::Login;
use serde::Deserialize;
use std::sync::Arc;

/// The paths of this login.
pub(super) fn routes(login: Arc<Login>) -> Router {
    Router::new()
        .route("/auth/connect/{elicitation_id}", get(connect))
        .route("/auth/consent", get(consent))
        .route("/auth/callback", get(callback))
        .with_state(login)
}

/// What a provider sends along.
#[derive(Debug, Deserialize)]
struct Sent {
    /// By what the login is known that this is about.
    state: String,
    /// Why the person did not want to.
    #[serde(default)]
    error: Option<String>,
}

/// Where a person comes in: leads on to the provider.
async fn connect(State(login): State<Arc<Login>>, Path(id): Path<String>) -> Response {
    if !login.is_asked_for(&id) {
        return unknown();
    }
    // Only what we made ourselves gets here: it needs no encoding.
    Redirect::to(&format!("/auth/consent?state={id}")).into_response()
}

/// What the provider asks.
async fn consent(State(login): State<Arc<Login>>, Query(sent): Query<Sent>) -> Response {
    if !login.is_asked_for(&sent.state) {
        return unknown();
    }
    let state = &sent.state;
    let question = format!(
        "<p>Waypost's calendar example wants to read and change your calendars.</p>\n\
         <p><a href=\"/auth/callback?state={state}&amp;code=demo\">Allow</a> or\n\
         <a href=\"/auth/callback?state={state}&amp;error=access_denied\">do not</a></p>"
    );
    page(StatusCode::OK, "Connect your calendar", &question)
}

/// Where the provider sends the person back to.
async fn callback(State(login): State<Arc<Login>>, Query(sent): Query<Sent>) -> Response {
    if sent.error.is_some() && login.is_asked_for(&sent.state) {
        let words = "<p>Nothing was connected. The same page can be opened again.</p>";
        return page(StatusCode::OK, "Not connected", words);
    }
    match login.done(&sent.state) {
        Ok(true) => {
            let words = "<p>Your calendar is connected. You can close this page.</p>";
            page(StatusCode::OK, "Connected", words)
        }
        Ok(false) => unknown(),
        Err(error) => {
            tracing::error!(%error, "a login could not be remembered");
            let words = "<p>It could not be remembered; try once more.</p>";
            page(StatusCode::INTERNAL_SERVER_ERROR, "Not connected", words)
        }
    }
}

fn unknown() -> Response {
    let words = "<p>No call asked for this login. Call a calendar tool: it says which page.</p>";
    page(StatusCode::NOT_FOUND, "No such login", words)
}

fn page(status: StatusCode, title: &str, words: &str) -> Response {
    let text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <body style=\"font-family: sans-serif; max-width: 32em; margin: 4em auto\">\n\
         <h1>{title}</h1>\n{words}\n</body>\n</html>\n"
    );
    (status, Html(text)).into_response()
}
