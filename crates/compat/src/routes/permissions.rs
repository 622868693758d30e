//! Routes of `/system/permissions`, which tell what a subject may do. Handlers are in
//! `permissions`, bodies in `wire::permissions`.

use crate::permissions;
use axum::routing::post;
use edge::acts::Right;
use edge::openapi::{BODY, Body, READ, json_answer, of};
use edge::request::server_state::Shared;
use edge::routes::Route;
use wire::permissions::{PermissionCheck, PermissionLandscape, PermissionQuery};

const ABOUT_ONESELF: Right =
    Right::Open("it is about the caller itself; only administrators of the realm ask about others");

/// What a subject may do.
pub(super) const PERMISSIONS: &[Route<Shared>] = &[
    Route::post("/system/permissions/check", || post(permissions::check), ABOUT_ONESELF)
        .says("checkPermission", "Whether a subject may do one thing; nothing is done")
        .body(Body::Json(of::<PermissionQuery>))
        .answers(&[json_answer(200, of::<PermissionCheck>, "what is decided, and by what")])
        .refusals(&[BODY, READ]),
    Route::post("/system/permissions/evaluate", || post(permissions::evaluate), ABOUT_ONESELF)
        .says("evaluatePermissions", "What a subject may do, by type of resource and act")
        .body(Body::Maybe(of::<PermissionQuery>))
        .answers(&[json_answer(200, of::<PermissionLandscape>, "what is decided of each act")])
        .refusals(&[BODY, READ]),
    Route::post("/system/permissions/fd/evaluate", || post(permissions::evaluate), ABOUT_ONESELF)
        .says("evaluateFunctionalPermissions", "The same, where some clients look for it")
        .body(Body::Maybe(of::<PermissionQuery>))
        .answers(&[json_answer(200, of::<PermissionLandscape>, "what is decided of each act")])
        .refusals(&[BODY, READ]),
];
