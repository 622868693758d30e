//! `/openapi.json`: the routes as OpenAPI 3.1. The table of routes says what each of them takes and
//! answers; here is how that is written. Schemas follow from the types of `wire`; parameters are
//! written once and referred to by name.

mod schemas;
mod parameters;
mod operation;
mod pipelines;
mod spec;

pub use operation::{
    Answer, BODY, Body, Content, NAMED, Operation, PLAIN, PROBLEM, READ, Refusals, THREAD, WRITE,
    answer, json_answer,
};
pub use parameters::all as parameters;
pub use pipelines::{hash_of, with_pipelines};
pub use schemas::{EXAMPLES, case_answer, of, pending_case};
pub use spec::{RouteSpec, document};
