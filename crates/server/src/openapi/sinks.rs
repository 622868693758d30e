//! The table of `/api/v1/sinks`.

use super::operation::{Answer, Body, Content, Operation, READ, WRITE, json_answer};
use super::schemas::of;
use wire::rest::{Delivery, Page, Sink};

/// Where events go.
pub(super) const SINKS: &[Operation] = &[
    Operation {
        method: "GET",
        path: "/api/v1/sinks",
        id: "listSinks",
        summary: "Where events go, by name, and how far each sink came",
        parameters: &["limit", "cursor"],
        body: Body::None,
        answers: &[json_answer(200, of::<Page<Sink>>, "a page of sinks")],
        refusals: &[&[400], READ],
    },
    Operation {
        method: "DELETE",
        path: "/api/v1/sinks/{name}",
        id: "forgetSink",
        summary: "Forgets a sink that is not configured any more; for administrators",
        parameters: &["sinkName"],
        body: Body::None,
        answers: &[Answer {
            status: 204,
            about: "its place and its log are gone",
            content: Content::None,
            headers: &[],
        }],
        refusals: &[&[400, 401, 404, 409], WRITE],
    },
    Operation {
        method: "GET",
        path: "/api/v1/sinks/{name}/deliveries",
        id: "listDeliveries",
        summary: "A sink's log of deliveries, newest first",
        parameters: &["sinkName", "deliveryStatus", "limit", "cursor"],
        body: Body::None,
        answers: &[json_answer(200, of::<Page<Delivery>>, "a page of deliveries")],
        refusals: &[&[400, 404], READ],
    },
    Operation {
        method: "POST",
        path: "/api/v1/sinks/{name}/deliveries/{event}/resend",
        id: "resendEvent",
        summary: "Sends an event of the log to its sink once more; for administrators",
        parameters: &["sinkName", "eventId"],
        body: Body::None,
        answers: &[json_answer(200, of::<Delivery>, "how it went, also if it failed again")],
        refusals: &[&[400, 401, 404, 409, 410], WRITE],
    },
    Operation {
        method: "POST",
        path: "/api/v1/sinks/{name}/resume",
        id: "resumeSink",
        summary: "Lets a sink go on whose receiver said that it is gone; for administrators",
        parameters: &["sinkName"],
        body: Body::None,
        answers: &[json_answer(200, of::<Sink>, "how it stands")],
        refusals: &[&[400, 401, 404, 409], WRITE],
    },
];
