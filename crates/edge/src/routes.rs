//! By which an endpoint hands in its routes: a table of them, each with its handler, its act and its
//! description. The router, the list of acts and `/openapi.json` follow from the tables.

use crate::acts::Right;
use crate::openapi::{Answer, Body, Operation, Refusals, RouteSpec};
use axum::Router;
use axum::routing::MethodRouter;

type Handler<S> = fn() -> MethodRouter<S>;

/// One route of an endpoint with this state.
pub struct Route<S> {
    pub method: &'static str,
    pub path: &'static str,
    pub handler: Handler<S>,
    /// Who asks policy about it.
    pub right: Right,
    /// What it takes and what it answers.
    pub operation: Operation,
}

impl<S> Route<S> {
    pub const fn get(path: &'static str, handler: Handler<S>, right: Right) -> Self {
        Self { method: "GET", path, handler, right, operation: Operation::NONE }
    }

    pub const fn post(path: &'static str, handler: Handler<S>, right: Right) -> Self {
        Self { method: "POST", ..Self::get(path, handler, right) }
    }

    pub const fn put(path: &'static str, handler: Handler<S>, right: Right) -> Self {
        Self { method: "PUT", ..Self::get(path, handler, right) }
    }

    pub const fn patch(path: &'static str, handler: Handler<S>, right: Right) -> Self {
        Self { method: "PATCH", ..Self::get(path, handler, right) }
    }

    pub const fn delete(path: &'static str, handler: Handler<S>, right: Right) -> Self {
        Self { method: "DELETE", ..Self::get(path, handler, right) }
    }

    /// Its name in generated clients, and what it does, in one line.
    pub const fn says(self, id: &'static str, summary: &'static str) -> Self {
        Self { operation: Operation { id, summary, ..self.operation }, ..self }
    }

    /// The parameters that it takes, by the names of `openapi/parameters.rs`.
    pub const fn parameters(self, parameters: &'static [&'static str]) -> Self {
        Self { operation: Operation { parameters, ..self.operation }, ..self }
    }

    /// The body that it takes; none if nothing is said.
    pub const fn body(self, body: Body) -> Self {
        Self { operation: Operation { body, ..self.operation }, ..self }
    }

    /// What it answers when all goes well.
    pub const fn answers(self, answers: &'static [Answer]) -> Self {
        Self { operation: Operation { answers, ..self.operation }, ..self }
    }

    /// The statuses of its refusals, in groups.
    pub const fn refusals(self, refusals: &'static [&'static [u16]]) -> Self {
        Self { operation: Operation { refusals, ..self.operation }, ..self }
    }
}

/// Routes that tell their errors in one way.
pub struct Group<S: 'static> {
    pub routes: &'static [Route<S>],
    pub errors: Refusals,
}

/// These routes, with errors of this form.
pub const fn group<S>(routes: &'static [Route<S>], errors: Refusals) -> Group<S> {
    Group { routes, errors }
}

/// What the routes of a table are, without their handlers.
pub fn specs<S>(table: &'static [Group<S>]) -> impl Iterator<Item = RouteSpec> {
    table.iter().flat_map(|group| {
        group.routes.iter().map(|route| RouteSpec {
            method: route.method,
            path: route.path,
            right: route.right,
            operation: route.operation,
            errors: group.errors,
        })
    })
}

/// Routes that are open with a slash at the end as well, as their clients write them.
const WITH_SLASH: &str = "/api/agent/";

/// The router of a table, whose handlers are put behind `guard`.
pub fn router<S: Clone + Send + Sync + 'static>(
    table: &'static [Group<S>],
    guard: impl Fn(Right, MethodRouter<S>) -> MethodRouter<S>,
) -> Router<S> {
    let mut router = Router::new();
    for route in table.iter().flat_map(|group| group.routes) {
        let handler = || guard(route.right, (route.handler)());
        router = router.route(route.path, handler());
        if route.path.starts_with(WITH_SLASH) {
            router = router.route(&format!("{}/", route.path), handler());
        }
    }
    router
}
