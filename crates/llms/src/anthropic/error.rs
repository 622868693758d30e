//! Classifies Anthropic's errors.

use crate::provider_error::{ProviderError, is_no_money, is_too_long, says, text, words_of};
use kernel::conversation::llm::LlmErrorKind;
use serde_json::Value;

/// A limit on money that is reported as a limit on rates.
const SPEND_LIMIT: &str = "enforced_spend_limit_reached";

/// Classifies an error body, of a response with a status or of a stream event without one.
pub(super) fn classify(status: Option<u16>, body: &Value) -> ProviderError {
    let words = words_of(body);
    let error = &body["error"];
    let code = text(&error["details"], "error_code");
    let mut classified = ProviderError::by_status(status, words);
    classified.kind = match text(error, "type") {
        _ if code == SPEND_LIMIT => LlmErrorKind::Quota,
        "invalid_request_error" => invalid(words),
        "request_too_large" => LlmErrorKind::TooLong,
        "authentication_error" | "permission_error" => LlmErrorKind::Unauthorized,
        "billing_error" => LlmErrorKind::Quota,
        "not_found_error" if says(words, &["model"]) => LlmErrorKind::NoSuchModel,
        "rate_limit_error" if is_no_money(words) => LlmErrorKind::Quota,
        "rate_limit_error" => LlmErrorKind::RateLimited,
        "timeout_error" => LlmErrorKind::Timeout,
        "overloaded_error" | "api_error" => LlmErrorKind::Overloaded,
        _ => classified.kind,
    };
    classified
}

/// One word for many things.
fn invalid(words: &str) -> LlmErrorKind {
    if is_too_long(words) {
        LlmErrorKind::TooLong
    } else if is_no_money(words) {
        LlmErrorKind::Quota
    } else if says(words, &["content filtering"]) {
        LlmErrorKind::Refused
    } else {
        LlmErrorKind::BadRequest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn provider_errors_are_classified() {
        let kind = |status: u16, kind: &str, words: &str| {
            let error = json!({"type": kind, "message": words});
            classify(Some(status), &json!({"type": "error", "error": error})).kind
        };
        let long = "prompt is too long: 215000 tokens > 200000 maximum";
        assert_eq!(kind(400, "invalid_request_error", long), LlmErrorKind::TooLong);
        let poor = "Your credit balance is too low to access the Anthropic API.";
        assert_eq!(kind(400, "invalid_request_error", poor), LlmErrorKind::Quota);
        let odd = "messages: at least one message is required";
        assert_eq!(kind(400, "invalid_request_error", odd), LlmErrorKind::BadRequest);
        let filtered = "Output blocked by content filtering policy";
        assert_eq!(kind(400, "invalid_request_error", filtered), LlmErrorKind::Refused);
        let key = "invalid x-api-key";
        assert_eq!(kind(401, "authentication_error", key), LlmErrorKind::Unauthorized);
        assert_eq!(kind(402, "billing_error", "Pay."), LlmErrorKind::Quota);
        assert_eq!(kind(404, "not_found_error", "model: x"), LlmErrorKind::NoSuchModel);
        assert_eq!(kind(413, "request_too_large", ""), LlmErrorKind::TooLong);
        assert_eq!(kind(429, "rate_limit_error", "Slow down"), LlmErrorKind::RateLimited);
        assert_eq!(kind(500, "api_error", ""), LlmErrorKind::Overloaded);
        assert_eq!(kind(504, "timeout_error", ""), LlmErrorKind::Timeout);
        assert_eq!(kind(529, "overloaded_error", "Overloaded"), LlmErrorKind::Overloaded);
        assert_eq!(classify(Some(529), &json!("<html>")).kind, LlmErrorKind::Overloaded);
    }

    #[test]
    fn a_spend_limit_is_not_a_rate_limit() {
        let details = json!({"error_code": SPEND_LIMIT});
        let error = json!({"type": "rate_limit_error", "message": "x", "details": details});
        assert_eq!(classify(Some(429), &json!({"error": error})).kind, LlmErrorKind::Quota);
    }

    #[test]
    fn an_error_event_has_no_http_status() {
        let error = json!({"type": "overloaded_error", "message": "Overloaded"});
        let told = classify(None, &json!({"type": "error", "error": error}));
        assert_eq!(told, ProviderError::new(LlmErrorKind::Overloaded, "Overloaded"));
    }
}
