//! Classifies Gemini's errors: a status word, and details of many types.

use crate::provider_error::{ProviderError, is_no_money, is_too_long, says, text, words_of};
use kernel::conversation::llm::LlmErrorKind;
use serde_json::Value;

const BAD_KEY: &str = "API_KEY_INVALID";

/// Classifies an error body, of a response with a status or of a stream event without one.
pub(super) fn classify(status: Option<u16>, body: &Value) -> ProviderError {
    // A stream that was not asked for as events is an array.
    let body = body.get(0).unwrap_or(body);
    let error = &body["error"];
    let words = words_of(body);
    let mut classified = ProviderError::by_status(status, words);
    classified.kind = match text(error, "status") {
        _ if details(error).any(|detail| detail["reason"] == BAD_KEY) => LlmErrorKind::Unauthorized,
        "INVALID_ARGUMENT" | "FAILED_PRECONDITION" => invalid(words),
        "UNAUTHENTICATED" | "PERMISSION_DENIED" => LlmErrorKind::Unauthorized,
        "NOT_FOUND" => LlmErrorKind::NoSuchModel,
        "RESOURCE_EXHAUSTED" if is_spent(error, words) => LlmErrorKind::Quota,
        "RESOURCE_EXHAUSTED" => LlmErrorKind::RateLimited,
        "DEADLINE_EXCEEDED" => LlmErrorKind::Timeout,
        "INTERNAL" | "UNAVAILABLE" | "ABORTED" | "UNKNOWN" => LlmErrorKind::Overloaded,
        _ => classified.kind,
    };
    classified.wait_ms = details(error).find_map(|detail| wait_ms(text(detail, "retryDelay")));
    classified
}

fn details(error: &Value) -> impl Iterator<Item = &Value> {
    error["details"].as_array().into_iter().flatten()
}

fn invalid(words: &str) -> LlmErrorKind {
    if is_too_long(words) {
        LlmErrorKind::TooLong
    } else if says(words, &["api key"]) || says(words, &["location is not supported"]) {
        LlmErrorKind::Unauthorized
    } else if is_no_money(words) {
        LlmErrorKind::Quota
    } else {
        LlmErrorKind::BadRequest
    }
}

/// Every quota is a limit on rates to Gemini; one for a day, or of nothing, does not pass in a
/// moment. The words alone say `quota` and `billing` always.
fn is_spent(error: &Value, words: &str) -> bool {
    let violations = details(error).filter_map(|detail| detail["violations"].as_array()).flatten();
    let mut quotas = violations.map(|violation| text(violation, "quotaId"));
    quotas.any(|quota| quota.contains("PerDay"))
        || says(words, &["limit: 0", "prepayment credits", "spending cap"])
}

/// `34.5s`, as protocol buffers write a duration.
fn wait_ms(duration: &str) -> Option<u64> {
    crate::provider_error::millis(duration.strip_suffix('s')?, 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(status: u16, name: &str, words: &str, details: Value) -> ProviderError {
        let error = json!({"code": status, "message": words, "status": name, "details": details});
        classify(Some(status), &json!({"error": error}))
    }

    #[test]
    fn provider_errors_are_classified() {
        let kind = |status: u16, name: &str, words: &str| told(status, name, words, json!([])).kind;
        let long = "The input token count (1200000) exceeds the maximum number of tokens allowed";
        assert_eq!(kind(400, "INVALID_ARGUMENT", long), LlmErrorKind::TooLong);
        assert_eq!(kind(400, "INVALID_ARGUMENT", "Unknown name"), LlmErrorKind::BadRequest);
        let place = "User location is not supported for the API use.";
        assert_eq!(kind(400, "FAILED_PRECONDITION", place), LlmErrorKind::Unauthorized);
        let key = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": BAD_KEY}]);
        let bad_key = told(400, "INVALID_ARGUMENT", "API key not valid.", key);
        assert_eq!(bad_key.kind, LlmErrorKind::Unauthorized);
        assert_eq!(kind(403, "PERMISSION_DENIED", ""), LlmErrorKind::Unauthorized);
        let model = "models/gemini-9 is not found for API version v1beta";
        assert_eq!(kind(404, "NOT_FOUND", model), LlmErrorKind::NoSuchModel);
        assert_eq!(kind(500, "INTERNAL", ""), LlmErrorKind::Overloaded);
        assert_eq!(kind(503, "UNAVAILABLE", "overloaded"), LlmErrorKind::Overloaded);
        assert_eq!(kind(504, "DEADLINE_EXCEEDED", ""), LlmErrorKind::Timeout);
    }

    #[test]
    fn a_rate_limit_is_distinguished_from_a_quota_and_has_a_wait() {
        let words = "You exceeded your current quota, please check your plan and billing details.";
        let details = |quota: &str| {
            json!([
                {"@type": "x/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]},
                {"@type": "x/google.rpc.RetryInfo", "retryDelay": "34.5s"},
            ])
        };
        let minute = details("GenerateRequestsPerMinutePerProjectPerModel");
        let rate = told(429, "RESOURCE_EXHAUSTED", words, minute);
        assert_eq!((rate.kind, rate.wait_ms), (LlmErrorKind::RateLimited, Some(34_500)));
        let day = details("GenerateRequestsPerDayPerProjectPerModel");
        let spent = told(429, "RESOURCE_EXHAUSTED", words, day);
        assert_eq!(spent.kind, LlmErrorKind::Quota);
    }

    #[test]
    fn an_error_may_come_in_an_array_or_in_a_stream() {
        let error = json!({"error": {"code": 503, "message": "x", "status": "UNAVAILABLE"}});
        assert_eq!(classify(Some(503), &json!([error])).kind, LlmErrorKind::Overloaded);
        assert_eq!(classify(None, &error), ProviderError::new(LlmErrorKind::Overloaded, "x"));
    }
}
