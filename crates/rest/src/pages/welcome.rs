//! What is at `/`: what is here and where to go, as a page for a browser, and as text for everyone
//! else.

use crate::pages::page;
use axum::extract::Request;
use axum::http::header::ACCEPT;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};

/// Who is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    Caller,
    /// Someone without a credential, where callers need one.
    Stranger,
}

/// Whether it is asked for.
pub fn is_wanted(request: &Request) -> bool {
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    is_read && request.uri().path() == "/"
}

/// Whether a browser asks.
pub fn is_browser(request: &Request) -> bool {
    let accepted = request.headers().get_all(ACCEPT).into_iter();
    let mut accepted = accepted.filter_map(|value| value.to_str().ok());
    accepted.any(|kinds| kinds.contains("text/html"))
}

/// The page, or the same as text.
pub fn show(is_browser: bool, reader: Reader) -> Response {
    let version = env!("CARGO_PKG_VERSION");
    let mut paragraphs = vec![
        format!(
            "This is a Waypost server, version {version}. It runs plans and agents, and asks \
             people before it does something that matters."
        ),
        "At a terminal: `waypost inbox` answers what people are asked, `waypost chat` talks to an \
         agent, `waypost session ls` lists what runs."
            .to_owned(),
        "For programs: `/openapi.json` describes every endpoint, `/api/v1` is the one to use for \
         new code, `/mcp` is for MCP clients."
            .to_owned(),
        "For operators: `/readyz` says whether it can take work, `/metrics` has its figures."
            .to_owned(),
    ];
    if reader == Reader::Stranger {
        paragraphs.push(
            "Everything else here needs a credential: `Authorization: Bearer <key>` or \
             `X-Api-Key: <key>`. `waypost key add` makes a key."
                .to_owned(),
        );
    }
    if is_browser {
        return page(StatusCode::OK, "It runs", &paragraphs);
    }
    // A text has the type `text/plain`.
    format!("{}\n", paragraphs.join("\n")).into_response()
}
