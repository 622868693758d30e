//! The table of `/api/v1/upstreams` and `/api/v1/providers`.

use super::operation::{Answer, BODY, Body, Content, Operation, READ, WRITE, json_answer};
use super::schemas::of;
use wire::rest::{Page, Provider, Upstream, UpstreamLogin};

/// A page for people.
const fn html_answer(status: u16, about: &'static str, headers: &'static [&'static str]) -> Answer {
    Answer { status, about, content: Content::Text("text/html"), headers }
}

/// The servers behind this one.
pub(super) const UPSTREAMS: &[Operation] = &[
    Operation {
        method: "GET",
        path: "/api/v1/upstreams",
        id: "listUpstreams",
        summary: "The servers whose tools are ours too, by name, and how they are",
        parameters: &["limit", "cursor"],
        body: Body::None,
        answers: &[json_answer(200, of::<Page<Upstream>>, "a page of upstreams")],
        refusals: &[&[400]],
    },
    Operation {
        method: "GET",
        path: "/api/v1/upstreams/{name}",
        id: "showUpstream",
        summary: "One upstream",
        parameters: &["upstreamName"],
        body: Body::None,
        answers: &[json_answer(200, of::<Upstream>, "the upstream")],
        refusals: &[&[400, 404]],
    },
    Operation {
        method: "POST",
        path: "/api/v1/upstreams/{name}/check",
        id: "checkUpstream",
        summary: "Connects to an upstream now and lists what it has; for administrators",
        parameters: &["upstreamName"],
        body: Body::None,
        answers: &[json_answer(200, of::<Upstream>, "how it is now, also if it cannot be reached")],
        refusals: &[&[400, 401, 404, 409]],
    },
    Operation {
        method: "POST",
        path: "/api/v1/upstreams/{name}/login",
        id: "beginLogin",
        summary: "Begins a login at an upstream, on a page for a person; for administrators",
        parameters: &["upstreamName"],
        body: Body::None,
        answers: &[json_answer(200, of::<UpstreamLogin>, "the page where somebody logs in")],
        refusals: &[&[400, 401, 404, 409, 429, 502]],
    },
    Operation {
        method: "DELETE",
        path: "/api/v1/upstreams/{name}/login",
        id: "endLogin",
        summary: "Forgets what a login at an upstream brought; for administrators",
        parameters: &["upstreamName"],
        body: Body::None,
        answers: &[Answer {
            status: 204,
            about: "it is forgotten",
            content: Content::None,
            headers: &[],
        }],
        refusals: &[&[400, 401, 404, 409, 502]],
    },
    Operation {
        method: "GET",
        path: "/oauth/callback",
        id: "finishLogin",
        summary: "Where a person comes back from a login, with their browser",
        parameters: &[
            "loginState",
            "loginCode",
            "loginIssuer",
            "loginError",
            "loginErrorDescription",
        ],
        body: Body::None,
        answers: &[
            html_answer(200, "a user is logged in", &[]),
            html_answer(400, "the login could not be finished; the page says why", &[]),
            html_answer(429, "too many at once", &["Retry-After"]),
        ],
        refusals: &[],
    },
    Operation {
        method: "GET",
        path: "/oauth/client.json",
        id: "clientDocument",
        summary: "Who we are, for servers that people log in at",
        parameters: &[],
        body: Body::None,
        answers: &[Answer {
            status: 200,
            about: "an OAuth client ID metadata document",
            content: Content::AnyJson,
            headers: &[],
        }],
        refusals: &[&[404]],
    },
    Operation {
        method: "GET",
        path: "/api/v1/providers/{refName}",
        id: "showProvider",
        summary: "One stored provider",
        parameters: &["refName"],
        body: Body::None,
        answers: &[Answer {
            status: 200,
            about: "the provider",
            content: Content::Json(of::<Provider>),
            headers: &["ETag"],
        }],
        refusals: &[&[400, 404], READ],
    },
    Operation {
        method: "PUT",
        path: "/api/v1/providers/{refName}",
        id: "storeProvider",
        summary: "Stores a provider, or its next version, and starts it; for administrators",
        parameters: &["refName", "ifMatch", "ifNoneMatch"],
        body: Body::Json(of::<Provider>),
        answers: &[
            Answer {
                status: 200,
                about: "the next version is stored",
                content: Content::Json(of::<Provider>),
                headers: &["ETag"],
            },
            Answer {
                status: 201,
                about: "the provider is stored for the first time",
                content: Content::Json(of::<Provider>),
                headers: &["ETag"],
            },
        ],
        refusals: &[&[401, 409, 412], BODY, WRITE],
    },
    Operation {
        method: "DELETE",
        path: "/api/v1/providers/{refName}",
        id: "removeProvider",
        summary: "Removes a stored provider and stops it; for administrators",
        parameters: &["refName"],
        body: Body::None,
        answers: &[Answer {
            status: 204,
            about: "it is gone",
            content: Content::None,
            headers: &[],
        }],
        refusals: &[&[400, 401, 404], WRITE],
    },
];
