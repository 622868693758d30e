//! The table of `/api/v1/upstreams` and `/api/v1/providers`.

use super::operation::{Answer, BODY, Body, Content, Operation, READ, WRITE, json_answer};

/// The servers behind this one.
pub(super) const UPSTREAMS: &[Operation] = &[
    Operation {
        method: "GET",
        path: "/api/v1/upstreams",
        id: "listUpstreams",
        summary: "The servers whose tools are ours too, by name, and how they are",
        parameters: &["limit", "cursor"],
        body: Body::None,
        answers: &[json_answer(200, "UpstreamPage", "a page of upstreams")],
        refusals: &[&[400]],
    },
    Operation {
        method: "GET",
        path: "/api/v1/upstreams/{name}",
        id: "showUpstream",
        summary: "One upstream",
        parameters: &["upstreamName"],
        body: Body::None,
        answers: &[json_answer(200, "Upstream", "the upstream")],
        refusals: &[&[400, 404]],
    },
    Operation {
        method: "POST",
        path: "/api/v1/upstreams/{name}/check",
        id: "checkUpstream",
        summary: "Connects to an upstream now and lists what it has; for administrators",
        parameters: &["upstreamName"],
        body: Body::None,
        answers: &[json_answer(200, "Upstream", "how it is now, also if it cannot be reached")],
        refusals: &[&[400, 401, 404, 409]],
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
            content: Content::Json("Provider"),
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
        body: Body::Json("Provider"),
        answers: &[
            Answer {
                status: 200,
                about: "the next version is stored",
                content: Content::Json("Provider"),
                headers: &["ETag"],
            },
            Answer {
                status: 201,
                about: "the provider is stored for the first time",
                content: Content::Json("Provider"),
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
