//! Refusals of the engine as errors of A2A. What is not the caller's is not found.

use edge::problem::used_up;
use engine::refusal::{Refusal, RefusalKind};
use serde_json::{Map, Value};
use wire::a2a::error::{A2aError, ErrorKind};

/// What an operation gives, or why not.
pub(super) type Result<T, E = A2aError> = std::result::Result<T, E>;

/// The parameters are not right, at this member.
pub(super) fn invalid(field: &str, why: impl Into<String>) -> A2aError {
    let why = why.into();
    A2aError::new(ErrorKind::InvalidParams, why.clone()).violation(field, &why)
}

/// A required member.
pub(super) fn required<'a>(field: &str, value: &'a str) -> Result<&'a str> {
    match value.is_empty() {
        true => Err(invalid(field, format!("`{field}` is required"))),
        false => Ok(value),
    }
}

/// There is no such task, or it is not the caller's: nobody can tell which.
pub(super) fn no_task(id: &str) -> A2aError {
    let shown: String = id.chars().take(100).collect();
    let metadata = Map::from_iter([("taskId".to_owned(), Value::String(shown.clone()))]);
    A2aError::new(ErrorKind::TaskNotFound, format!("there is no task `{shown}`")).metadata(metadata)
}

/// There is no card there.
pub(super) fn no_realm() -> A2aError {
    A2aError::new(ErrorKind::MethodNotFound, "there is no agent card here")
}

/// That cannot be done, or not now.
pub(super) fn unsupported(why: impl Into<String>) -> A2aError {
    A2aError::new(ErrorKind::UnsupportedOperation, why)
}

/// A refusal of the engine; `field` is the member of the request that it is about.
pub(super) fn refused(refusal: Refusal, field: &str) -> A2aError {
    let hint = refusal.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    let message = format!("{}{hint}", refusal.message);
    let kind = match refusal.kind() {
        RefusalKind::Forbidden => ErrorKind::PermissionDenied,
        RefusalKind::TooMany => ErrorKind::ResourceExhausted,
        RefusalKind::Conflict => ErrorKind::UnsupportedOperation,
        RefusalKind::Failed
        | RefusalKind::NoRoom
        | RefusalKind::Unavailable
        | RefusalKind::Upstream => ErrorKind::Internal,
        RefusalKind::BadRequest
        | RefusalKind::WrongShape
        | RefusalKind::NotFound
        | RefusalKind::Gone
        | RefusalKind::TooLarge => ErrorKind::InvalidParams,
    };
    let headers = used_up(refusal.code.quota(), refusal.code.retry_ms());
    let error = A2aError { headers, ..A2aError::new(kind, message) };
    if kind != ErrorKind::InvalidParams {
        return error;
    }
    if refusal.errors.is_empty() {
        return error.violation(field, &refusal.message);
    }
    refusal.errors.iter().fold(error, |error, misfit| {
        error.violation(&format!("{field}{}", misfit.pointer), &misfit.message)
    })
}

/// The same about a task: one that is not there is like one of another caller.
pub(super) fn refused_task(refusal: Refusal, id: &str) -> A2aError {
    match refusal.kind() {
        RefusalKind::NotFound => no_task(id),
        _ => refused(refusal, "id"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::refusal::{Quota, RefusalCode};
    use kernel::tool::schema::Misfit;

    #[test]
    fn a_refusal_is_told_by_its_kind_with_the_values_that_it_is_about() {
        let misfit = Misfit { pointer: "/n".to_owned(), message: "is no number".to_owned() };
        let input = Refusal::new(RefusalCode::InputMisfit(None), "no").errors(vec![misfit]);
        let error = refused(input, "message.parts");
        assert_eq!(error.kind, ErrorKind::InvalidParams);
        assert_eq!(error.details[0]["fieldViolations"][0]["field"], "message.parts/n");
        for (code, kind) in [
            (RefusalCode::ContextRunsMax, ErrorKind::ResourceExhausted),
            (RefusalCode::RunOver, ErrorKind::UnsupportedOperation),
            (RefusalCode::PolicyDenied, ErrorKind::PermissionDenied),
            (RefusalCode::StoreFailed, ErrorKind::Internal),
        ] {
            assert_eq!(refused(Refusal::new(code, "no"), "x").kind, kind);
        }
        let quota = Quota { of: "runs", max: 1, window_s: None };
        let full = refused(Refusal::new(RefusalCode::RunsActiveMax(Box::new(quota)), "no"), "x");
        let names: Vec<&str> = full.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["ratelimit-policy", "ratelimit", "retry-after"]);
        let gone = refused_task(Refusal::new(RefusalCode::NotFound, "no"), "t");
        assert_eq!(gone.kind, ErrorKind::TaskNotFound);
        assert_eq!(gone.details[0]["metadata"]["taskId"], "t");
    }
}
