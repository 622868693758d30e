//! Routes of `/api/v1/upstreams`, `/oauth` and `/api/v1/providers`.

use crate::{logins, providers, upstreams};
use axum::routing::{delete, get, post, put};
use edge::acts::{
    ActTarget,
    Right::{self, Endpoint, Engine, Open},
};
use edge::openapi::{Answer, BODY, Body, Content, READ, WRITE, answer, json_answer, of};
use edge::request::server_state::Shared;
use edge::routes::Route;
use kernel::values::caller::Act;
use wire::rest::{LoginProof, Page, Provider, ProviderSummary, Upstream, UpstreamLogin};

const READ_UPSTREAM: Right = Endpoint(Act::Read, ActTarget::Upstream);
const OPERATE: Right = Endpoint(Act::Operate, ActTarget::Upstream);
const LOG_IN: Right = Endpoint(Act::LogIn, ActTarget::Upstream);
const READ_PROVIDER: Right = Endpoint(Act::Read, ActTarget::Provider);
const DEFINE: Right = Endpoint(Act::Define, ActTarget::Provider);

/// A page for people.
const fn html_answer(status: u16, about: &'static str) -> Answer {
    answer(status, Content::Text("text/html"), about)
}

/// The servers behind this one.
pub(super) const UPSTREAMS: &[Route<Shared>] = &[
    Route::get("/api/v1/upstreams", || get(upstreams::list), Engine(Act::Read))
        .says("listUpstreams", "The servers whose tools are ours too, by name, and how they are")
        .parameters(&["limit", "cursor"])
        .answers(&[json_answer(200, of::<Page<Upstream>>, "a page of upstreams")])
        .refusals(&[&[400]]),
    Route::get("/api/v1/upstreams/{name}", || get(upstreams::show), READ_UPSTREAM)
        .says("showUpstream", "One upstream")
        .parameters(&["upstreamName"])
        .answers(&[json_answer(200, of::<Upstream>, "the upstream")])
        .refusals(&[&[400, 404]]),
    Route::post("/api/v1/upstreams/{name}/check", || post(upstreams::check), OPERATE)
        .says(
            "checkUpstream",
            "Connects to an upstream now and lists what it has; for administrators",
        )
        .parameters(&["upstreamName"])
        .answers(&[json_answer(200, of::<Upstream>, "how it is now, also if it cannot be reached")])
        .refusals(&[&[400, 401, 404, 409]]),
    Route::post("/api/v1/upstreams/{name}/login", || post(logins::begin), LOG_IN)
        .says(
            "beginLogin",
            "Begins a login at an upstream, on a page for a person; for administrators",
        )
        .parameters(&["upstreamName"])
        .answers(&[json_answer(200, of::<UpstreamLogin>, "the page where a user logs in")])
        .refusals(&[&[400, 401, 404, 409, 429, 502]]),
    Route::delete("/api/v1/upstreams/{name}/login", || delete(logins::end), LOG_IN)
        .says("endLogin", "Forgets what a login at an upstream brought; for administrators")
        .parameters(&["upstreamName"])
        .answers(&[answer(204, Content::None, "it is forgotten")])
        .refusals(&[&[400, 401, 404, 409, 502]]),
    Route::post("/api/v1/upstreams/{name}/my-login", || post(logins::begin_own), READ_UPSTREAM)
        .says("beginOwnLogin", "Begins a login of the caller's own at an upstream, on a page")
        .parameters(&["upstreamName"])
        .answers(&[json_answer(200, of::<UpstreamLogin>, "the page where the caller logs in")])
        .refusals(&[&[400, 404, 409, 429, 502]]),
    Route::put("/api/v1/upstreams/{name}/my-login", || put(logins::prove_own), READ_UPSTREAM)
        .says(
            "proveOwnLogin",
            "Sends the code of a login that the caller began: it is the caller's",
        )
        .parameters(&["upstreamName"])
        .body(Body::Json(of::<LoginProof>))
        .answers(&[answer(204, Content::None, "the caller is logged in")])
        .refusals(&[&[404, 409, 429], BODY]),
    Route::delete("/api/v1/upstreams/{name}/my-login", || delete(logins::end_own), READ_UPSTREAM)
        .says("endOwnLogin", "Forgets the caller's own login at an upstream")
        .parameters(&["upstreamName"])
        .answers(&[answer(204, Content::None, "it is forgotten")])
        .refusals(&[&[400, 404, 409, 502]]),
    Route::get(
        "/oauth/callback",
        || get(logins::callback),
        Open("a browser returns from a login with a proof of it"),
    )
    .says("finishLogin", "Where a person comes back from a login, with their browser")
    .parameters(&["loginState", "loginCode", "loginIssuer", "loginError", "loginErrorDescription"])
    .answers(&[
        html_answer(200, "the user is logged in"),
        html_answer(400, "the login could not be finished; the page says why"),
        html_answer(429, "too many at once").headers(&["Retry-After"]),
    ]),
    Route::get(
        "/oauth/client.json",
        || get(logins::client),
        Open("authorization servers read it; it has no secret"),
    )
    .says("clientDocument", "Who we are, for servers that people log in at")
    .answers(&[answer(200, Content::AnyJson, "an OAuth client ID metadata document")])
    .refusals(&[&[404]]),
    Route::get("/api/v1/providers", || get(providers::list), Engine(Act::Read))
        .says("listProviders", "Providers that are stored or configured, by name")
        .parameters(&["limit", "cursor"])
        .answers(&[json_answer(200, of::<Page<ProviderSummary>>, "a page of providers")])
        .refusals(&[&[400]]),
    Route::get("/api/v1/providers/{refName}", || get(providers::show), READ_PROVIDER)
        .says("showProvider", "One stored provider")
        .parameters(&["refName"])
        .answers(&[json_answer(200, of::<Provider>, "the provider").headers(&["ETag"])])
        .refusals(&[&[400, 404], READ]),
    Route::put("/api/v1/providers/{refName}", || put(providers::store), DEFINE)
        .says(
            "storeProvider",
            "Stores a provider, or its next version, and starts it; for administrators",
        )
        .parameters(&["refName", "ifMatch", "ifNoneMatch"])
        .body(Body::Json(of::<Provider>))
        .answers(&[
            json_answer(200, of::<Provider>, "the next version is stored").headers(&["ETag"]),
            json_answer(201, of::<Provider>, "the provider is stored for the first time")
                .headers(&["ETag"]),
        ])
        .refusals(&[&[401, 409, 412], BODY, WRITE]),
    Route::delete("/api/v1/providers/{refName}", || delete(providers::remove), DEFINE)
        .says("removeProvider", "Removes a stored provider and stops it; for administrators")
        .parameters(&["refName"])
        .answers(&[answer(204, Content::None, "it is gone")])
        .refusals(&[&[400, 401, 404], WRITE]),
];
