//! `/api/v1/whoami`, `/api/v1/keys`, `/api/v1/principals`, `/api/v1/realms`, `/api/v1/policies`,
//! `/oauth/token` and what OAuth clients read first.

use super::ADMINISTER;
use crate::identity::{audit, keys, metadata, policies, principals, realms, token, whoami};
use axum::routing::{delete, get, post, put};
use edge::acts::Right::{Engine, Open};
use edge::openapi::{Answer, BODY, Body, Content, READ, WRITE, answer, json_answer, of};
use edge::request::server_state::Shared;
use edge::routes::Route;
use kernel::values::caller::Act;
use wire::rest::{
    ApiKey, AuditCheck, AuditEntry, AuditHead, AuthorizationServerMetadata, IssuedKey, KeyBody,
    Page, Policies, Principal, PrincipalBody, Realm, RealmBody, ResourceMetadata, RotateBody,
    TokenAnswer, TokenError, TokenForm, WhoAmI,
};

/// Who calls, and the keys with which others may.
pub(super) const KEYS: &[Route<Shared>] = &[
    Route::get("/api/v1/whoami", || get(whoami::show), Open("it is about oneself"))
        .says("whoAmI", "Who sends this request, as the server sees it")
        .answers(&[json_answer(200, of::<WhoAmI>, "subject, realm, roles and scopes")]),
    Route::get("/api/v1/keys", || get(keys::list), ADMINISTER)
        .says("listKeys", "The API keys, by id, without their texts; for administrators")
        .parameters(&["limit", "cursor"])
        .answers(&[json_answer(200, of::<Page<ApiKey>>, "a page of keys")])
        .refusals(&[&[400, 401], READ]),
    Route::post(
        "/api/v1/keys",
        || post(keys::create),
        ADMINISTER,
    )
    .says("createKey", "Creates an API key, whose text no later answer has; for administrators")
    .body(Body::Json(of::<KeyBody>))
    .answers(&[json_answer(201, of::<IssuedKey>, "the key with its text").headers(&["Location"])])
    .refusals(&[&[401, 409], BODY, WRITE]),
    Route::get(
        "/api/v1/keys/{id}",
        || get(keys::show),
        ADMINISTER,
    )
    .says("showKey", "One API key, without its text; for administrators")
    .parameters(&["keyId"])
    .answers(&[json_answer(200, of::<ApiKey>, "the key")])
    .refusals(&[&[400, 401, 404], READ]),
    Route::post(
        "/api/v1/keys/{id}/rotate",
        || post(keys::rotate),
        ADMINISTER,
    )
    .says(
        "rotateKey",
        "Gives an API key another text; the one before stays valid for a while; for administrators",
    )
    .parameters(&["keyId"])
    .body(Body::Maybe(of::<RotateBody>))
    .answers(&[json_answer(200, of::<IssuedKey>, "the key with its new text")])
    .refusals(&[&[401, 404, 409], BODY, WRITE]),
    Route::delete(
        "/api/v1/keys/{id}",
        || delete(keys::revoke),
        ADMINISTER,
    )
    .says("revokeKey", "Revokes an API key and its tokens, for good; for administrators")
    .parameters(&["keyId"])
    .answers(&[answer(204, Content::None, "it is revoked")])
    .refusals(&[&[400, 401, 404], WRITE]),
];

/// One principal with its version.
const fn principal(status: u16, about: &'static str) -> Answer {
    json_answer(status, of::<Principal>, about).headers(&["ETag"])
}

/// People and programs that are known by name.
pub(super) const PRINCIPALS: &[Route<Shared>] = &[
    Route::get("/api/v1/principals", || get(principals::list), ADMINISTER)
        .says("listPrincipals", "The principals, by id; for administrators")
        .parameters(&["limit", "cursor"])
        .answers(&[json_answer(200, of::<Page<Principal>>, "a page of principals")])
        .refusals(&[&[400, 401], READ]),
    Route::get("/api/v1/principals/{id}", || get(principals::show), ADMINISTER)
        .says("showPrincipal", "One principal; for administrators")
        .parameters(&["principalId"])
        .answers(&[principal(200, "the principal; one of a file has no `ETag`")])
        .refusals(&[&[400, 401, 404], READ]),
    Route::put("/api/v1/principals/{id}", || put(principals::store), ADMINISTER)
        .says("storePrincipal", "Stores a principal, or its next version; for administrators")
        .parameters(&["principalId", "ifMatch", "ifNoneMatch"])
        .body(Body::Json(of::<PrincipalBody>))
        .answers(&[
            principal(200, "the next version is stored"),
            principal(201, "the principal is stored for the first time"),
        ])
        .refusals(&[&[401, 409, 412], BODY, WRITE]),
    Route::post("/api/v1/principals/{id}/disable", || post(principals::disable), ADMINISTER)
        .says(
            "disablePrincipal",
            "Ends all that a principal may do, until it is enabled; for administrators",
        )
        .parameters(&["principalId"])
        .answers(&[principal(200, "the principal, which is disabled")])
        .refusals(&[&[400, 401, 404], WRITE]),
    Route::post("/api/v1/principals/{id}/enable", || post(principals::enable), ADMINISTER)
        .says(
            "enablePrincipal",
            "Lets a principal do again what its roles permit; for administrators",
        )
        .parameters(&["principalId"])
        .answers(&[principal(200, "the principal, which is not disabled")])
        .refusals(&[&[400, 401, 404], WRITE]),
];

/// Whose data there is.
pub(super) const REALMS: &[Route<Shared>] = &[
    Route::get("/api/v1/realms", || get(realms::list), ADMINISTER)
        .says("listRealms", "The realms, by name, with what is set for each; for administrators")
        .parameters(&["limit", "cursor"])
        .answers(&[json_answer(200, of::<Page<Realm>>, "a page of realms")])
        .refusals(&[&[400, 401], READ]),
    Route::post("/api/v1/realms", || post(realms::create), ADMINISTER)
        .says("createRealm", "Makes a realm; for administrators of the whole server")
        .body(Body::Json(of::<RealmBody>))
        .answers(&[json_answer(201, of::<Realm>, "the realm").headers(&["Location"])])
        .refusals(&[&[401, 409], BODY, WRITE]),
    Route::get("/api/v1/realms/{name}", || get(realms::show), ADMINISTER)
        .says("showRealm", "One realm, with what is set for it; for administrators")
        .parameters(&["realmName"])
        .answers(&[json_answer(200, of::<Realm>, "the realm")])
        .refusals(&[&[400, 401, 404], READ]),
    Route::delete("/api/v1/realms/{name}", || delete(realms::remove), ADMINISTER)
        .says(
            "removeRealm",
            "Removes a realm with all that it owns, its audit excepted; for administrators of the \
         whole server",
        )
        .parameters(&["realmName"])
        .answers(&[json_answer(200, of::<Realm>, "the realm, which nothing enters any more")])
        .refusals(&[&[400, 401, 404, 409], WRITE]),
];

/// Who may do what, as policies say.
pub(super) const POLICIES: &[Route<Shared>] =
    &[Route::get("/api/v1/policies", || get(policies::list), ADMINISTER)
        .says("listPolicies", "The policies of files, by id; for administrators of `*`")
        .parameters(&["limit", "cursor"])
        .answers(&[json_answer(200, of::<Policies>, "a page of policies, and their version")])
        .refusals(&[&[400, 401], READ])];

/// What was decided.
pub(super) const AUDIT: &[Route<Shared>] = &[
    Route::get("/api/v1/audit", || get(audit::list), Engine(Act::Administer))
        .says("listAudit", "What was decided, newest first; for administrators")
        .parameters(&["auditChain", "ofAct", "ofSubject", "since", "limit", "cursor"])
        .answers(&[json_answer(200, of::<Page<AuditEntry>>, "a page of entries")])
        .refusals(&[&[400, 401], READ]),
    Route::get("/api/v1/audit/head", || get(audit::head), Engine(Act::Administer))
        .says("showAuditHead", "How far the audit goes; for administrators")
        .parameters(&["auditChain"])
        .answers(&[json_answer(200, of::<AuditHead>, "the last row")])
        .refusals(&[&[400, 401], READ]),
    Route::get("/api/v1/audit/verify", || get(audit::verify), Engine(Act::Administer))
        .says("verifyAudit", "Whether the audit is as it was written; for administrators")
        .parameters(&["auditChain", "auditHead", "uncheckedUntil"])
        .answers(&[json_answer(200, of::<AuditCheck>, "what was found")])
        .refusals(&[&[400, 401], READ]),
];

/// For OAuth clients.
pub(super) const OAUTH: &[Route<Shared>] = &[
    Route::post(
        "/oauth/token",
        || post(token::issue),
        Open("the client proves itself with an API key"),
    )
    .says("issueToken", "Exchanges an API key for a token that is valid for 15 minutes")
    .body(Body::Form(of::<TokenForm>))
    .answers(&[
        json_answer(200, of::<TokenAnswer>, "the token"),
        json_answer(400, of::<TokenError>, "the form or a part of it is not valid"),
        json_answer(401, of::<TokenError>, "the client or its secret is not valid")
            .headers(&["WWW-Authenticate"]),
        json_answer(413, of::<TokenError>, "the form is too large"),
    ])
    .refusals(&[&[408], READ]),
    Route::get(
        "/.well-known/oauth-protected-resource",
        || get(metadata::resource),
        Open("clients read it before they have a credential"),
    )
    .says("resourceMetadata", "Where clients of `/mcp` get a token; not in local mode")
    .answers(&[json_answer(200, of::<ResourceMetadata>, "metadata by RFC 9728")])
    .refusals(&[&[404]]),
    Route::get(
        "/.well-known/oauth-protected-resource/mcp",
        || get(metadata::resource),
        Open("clients read it before they have a credential"),
    )
    .says("mcpMetadata", "The same, where clients look for it by the path of `/mcp`")
    .answers(&[json_answer(200, of::<ResourceMetadata>, "metadata by RFC 9728")])
    .refusals(&[&[404]]),
    Route::get(
        "/.well-known/oauth-authorization-server",
        || get(metadata::authorization_server),
        Open("clients read it before they have a credential"),
    )
    .says("authorizationServerMetadata", "How clients get a token here; not in local mode")
    .answers(&[json_answer(200, of::<AuthorizationServerMetadata>, "metadata by RFC 8414")])
    .refusals(&[&[404]]),
];
