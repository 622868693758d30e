//! The page at `/` for a person who opens the server's address in a browser: what is here and where
//! to go. Programs get the same answer there as at any unknown path.

use crate::http::pages::page;
use axum::extract::Request;
use axum::http::header::ACCEPT;
use axum::http::{Method, StatusCode};
use axum::response::Response;

/// Whether a browser asks for the page.
pub(crate) fn is_wanted(request: &Request) -> bool {
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    let accepted = request.headers().get_all(ACCEPT).into_iter();
    let mut accepted = accepted.filter_map(|value| value.to_str().ok());
    is_read && request.uri().path() == "/" && accepted.any(|kinds| kinds.contains("text/html"))
}

/// The page.
pub(crate) fn show() -> Response {
    let version = env!("CARGO_PKG_VERSION");
    let paragraphs = [
        format!(
            "This is a Waypost server, version {version}. It runs plans and agents, and asks \
                 people before it matters."
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
    page(StatusCode::OK, "It runs", &paragraphs)
}
