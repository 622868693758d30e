//! What OAuth clients read about this server before they send anything: who gives tokens for `/mcp`
//! (RFC 9728), and how (RFC 8414). A server that asks for no credentials has none of it: a client
//! that found it would begin a login.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use edge::problem::{Failure, Result};
use edge::request::server_state::{ServerState, Shared};
use kernel::values::caller::Scope;
use wire::rest::{AuthorizationServerMetadata, ResourceMetadata};

/// What a client of `/mcp` asks for at first; more where an answer says that it is needed.
const FIRST_SCOPES: [Scope; 2] = [Scope::Read, Scope::Use];

/// `GET /.well-known/oauth-protected-resource`, with and without `/mcp` at its end: nothing else
/// here is a resource of its own.
pub(crate) async fn resource(State(server): State<Shared>) -> Result<Json<ResourceMetadata>> {
    let base = base(&server)?;
    // Where there are issuers, people log in there; we give tokens only for keys.
    let issuers = server.identity.issuers();
    let authorization_servers = if issuers.is_empty() { vec![base.to_owned()] } else { issuers };
    Ok(Json(ResourceMetadata {
        resource: format!("{base}/mcp"),
        authorization_servers,
        scopes_supported: FIRST_SCOPES.map(|scope| scope.name().to_owned()).to_vec(),
        bearer_methods_supported: vec!["header".to_owned()],
    }))
}

/// `GET /.well-known/oauth-authorization-server`.
pub(crate) async fn authorization_server(
    State(server): State<Shared>,
) -> Result<Json<AuthorizationServerMetadata>> {
    let base = base(&server)?;
    let methods = ["client_secret_post", "client_secret_basic"];
    Ok(Json(AuthorizationServerMetadata {
        issuer: base.to_owned(),
        token_endpoint: format!("{base}/oauth/token"),
        grant_types_supported: vec!["client_credentials".to_owned()],
        token_endpoint_auth_methods_supported: methods.map(str::to_owned).to_vec(),
        scopes_supported: Scope::ALL.iter().map(|scope| scope.name().to_owned()).collect(),
        response_types_supported: Vec::new(),
    }))
}

/// The address at which clients reach this server, where they need credentials.
fn base(server: &ServerState) -> Result<&str> {
    server.entrance.base().ok_or_else(|| {
        let message = "this server asks for no credentials, so there is nothing to log in at";
        Failure::new(StatusCode::NOT_FOUND, "not_found", message)
    })
}
