//! One line of the table: a route with its handler, its act and its description.

use crate::acts::Right;
use crate::openapi::{Answer, Body, Operation};
use crate::request::doors::Shared;
use axum::routing::MethodRouter;

type Handler = fn() -> MethodRouter<Shared>;

/// One route.
#[derive(Clone, Copy)]
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) handler: Handler,
    /// Who asks policy about it.
    pub(super) right: Right,
    /// What it takes and what it answers.
    pub(super) operation: Operation,
}

impl Route {
    pub(super) const fn get(path: &'static str, handler: Handler, right: Right) -> Self {
        Self { method: "GET", path, handler, right, operation: Operation::NONE }
    }

    pub(super) const fn post(path: &'static str, handler: Handler, right: Right) -> Self {
        Self { method: "POST", ..Self::get(path, handler, right) }
    }

    pub(super) const fn put(path: &'static str, handler: Handler, right: Right) -> Self {
        Self { method: "PUT", ..Self::get(path, handler, right) }
    }

    pub(super) const fn delete(path: &'static str, handler: Handler, right: Right) -> Self {
        Self { method: "DELETE", ..Self::get(path, handler, right) }
    }

    /// Its name in generated clients, and what it does, in one line.
    pub(super) const fn says(self, id: &'static str, summary: &'static str) -> Self {
        Self { operation: Operation { id, summary, ..self.operation }, ..self }
    }

    /// The parameters that it takes, by the names of `openapi/parameters.rs`.
    pub(super) const fn parameters(self, parameters: &'static [&'static str]) -> Self {
        Self { operation: Operation { parameters, ..self.operation }, ..self }
    }

    /// The body that it takes; none if nothing is said.
    pub(super) const fn body(self, body: Body) -> Self {
        Self { operation: Operation { body, ..self.operation }, ..self }
    }

    /// What it answers when all goes well.
    pub(super) const fn answers(self, answers: &'static [Answer]) -> Self {
        Self { operation: Operation { answers, ..self.operation }, ..self }
    }

    /// The statuses of its refusals, in groups.
    pub(super) const fn refusals(self, refusals: &'static [&'static [u16]]) -> Self {
        Self { operation: Operation { refusals, ..self.operation }, ..self }
    }
}
