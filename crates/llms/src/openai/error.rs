//! Classifies errors of OpenAI and compatible servers: by code where there is one, by message
//! otherwise.

use crate::provider_error::{ProviderError, is_no_money, says, text, words_of};
use kernel::conversation::llm::LlmErrorKind;
use serde_json::Value;

/// Classifies an error body, of a response with a status or of a stream event without one.
pub(super) fn classify(status: Option<u16>, body: &Value) -> ProviderError {
    let words = words_of(body);
    let error = if body["error"].is_object() { &body["error"] } else { body };
    // Some have it as a code, some as a type; vLLM writes the status into the code.
    let known = [text(error, "code"), text(error, "type")].into_iter().find_map(kind_of);
    let mut classified = ProviderError::by_status(status, words);
    classified.kind = match known {
        Some(kind) => kind,
        None if status == Some(429) && is_no_money(words) => LlmErrorKind::Quota,
        None if is_missing_model(status, words) => LlmErrorKind::NoSuchModel,
        None => classified.kind,
    };
    classified
}

fn kind_of(code: &str) -> Option<LlmErrorKind> {
    match code {
        "context_length_exceeded" | "exceed_context_size_error" | "string_above_max_length" => {
            Some(LlmErrorKind::TooLong)
        }
        "insufficient_quota" | "billing_hard_limit_reached" | "billing_not_active" => {
            Some(LlmErrorKind::Quota)
        }
        "rate_limit_exceeded" | "rate_limit_error" | "tokens" | "requests" => {
            Some(LlmErrorKind::RateLimited)
        }
        "invalid_api_key" | "authentication_error" | "permission_error" => {
            Some(LlmErrorKind::Unauthorized)
        }
        "model_not_found" | "model_not_available" => Some(LlmErrorKind::NoSuchModel),
        "content_policy_violation" | "content_filter" => Some(LlmErrorKind::Refused),
        "server_error" | "overloaded_error" | "unavailable_error" => Some(LlmErrorKind::Overloaded),
        _ => None,
    }
}

/// Ollama and vLLM say it in words: `model "x" not found, try pulling it first`.
fn is_missing_model(status: Option<u16>, words: &str) -> bool {
    let missing = ["not found", "does not exist", "no such model"];
    matches!(status, Some(400 | 404)) && says(words, &["model"]) && says(words, &missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kind(status: u16, body: Value) -> LlmErrorKind {
        classify(Some(status), &body).kind
    }

    fn coded(status: u16, code: &str, words: &str) -> LlmErrorKind {
        let error = json!({"message": words, "type": "invalid_request_error", "code": code});
        kind(status, json!({"error": error}))
    }

    fn typed(status: u16, kind_of_error: &str, words: &str) -> LlmErrorKind {
        let error = json!({"message": words, "type": kind_of_error, "code": status});
        kind(status, json!({"error": error}))
    }

    #[test]
    fn error_codes_are_classified() {
        assert_eq!(coded(401, "invalid_api_key", "Incorrect"), LlmErrorKind::Unauthorized);
        assert_eq!(coded(429, "rate_limit_exceeded", "Slow down"), LlmErrorKind::RateLimited);
        assert_eq!(coded(429, "insufficient_quota", "Pay"), LlmErrorKind::Quota);
        assert_eq!(coded(404, "model_not_found", "No `gpt-9`"), LlmErrorKind::NoSuchModel);
        assert_eq!(coded(400, "context_length_exceeded", "Long"), LlmErrorKind::TooLong);
        assert_eq!(coded(400, "content_filter", "Filtered"), LlmErrorKind::Refused);
        assert_eq!(coded(400, "unknown_parameter", "What?"), LlmErrorKind::BadRequest);
    }

    #[test]
    fn errors_of_compatible_servers_are_classified() {
        let ollama = "model \"llama9\" not found, try pulling it first";
        assert_eq!(typed(404, "not_found_error", ollama), LlmErrorKind::NoSuchModel);
        let llama = "the request exceeds the available size";
        assert_eq!(typed(400, "exceed_context_size_error", llama), LlmErrorKind::TooLong);
        assert_eq!(typed(503, "unavailable_error", "Loading model"), LlmErrorKind::Overloaded);
        let long = "This model's maximum context length is 4096 tokens. You requested 5000";
        let vllm = json!({"object": "error", "message": long, "type": "BadRequestError"});
        assert_eq!(kind(400, vllm), LlmErrorKind::TooLong);
        let poor = "You exceeded your current quota, please check your plan";
        assert_eq!(kind(429, json!({"error": {"message": poor}})), LlmErrorKind::Quota);
        assert_eq!(kind(500, json!("<html>")), LlmErrorKind::Overloaded);
        assert_eq!(kind(404, json!("404 page not found")), LlmErrorKind::BadRequest);
    }

    #[test]
    fn an_error_event_has_no_http_status() {
        let error = json!({"message": "The server had an error", "type": "server_error"});
        let classified = ProviderError::new(LlmErrorKind::Overloaded, "The server had an error");
        assert_eq!(classify(None, &json!({"error": error})), classified);
    }
}
