//! Classification of provider errors: kind, message, and wait. The parts that all providers share
//! are here; each provider's own are in its folder.

use kernel::conversation::llm::LlmErrorKind;
use kernel::values::ids::Millis;
use outbound::retry_after;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

/// No one is waited for longer than this.
const WAIT_MS_MAX: u64 = 24 * 3_600 * 1_000;
/// More precise than `Retry-After`; some providers send it.
const RETRY_AFTER_MS: &str = "retry-after-ms";

/// How providers say that a conversation is longer than the model reads. Few have a code for it.
const TOO_LONG: &[&str] = &[
    "context length",
    "context_length",
    "context window",
    "context size",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "input token count",
    "maximum number of tokens",
    "exceed context limit",
];

/// How they say that no money is left.
const NO_MONEY: &[&str] = &[
    "credit balance",
    "insufficient_quota",
    "insufficient balance",
    "exceeded your current quota",
    "usage limit",
    "spend limit",
    "spending limit",
    "prepayment credits",
    "enable billing",
    "billing hard limit",
];

/// An error of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProviderError {
    /// The kind of failure.
    pub(crate) kind: LlmErrorKind,
    /// Its own words; empty where it has none.
    pub(crate) words: String,
    /// How long it wants us to wait, where its body says so.
    pub(crate) wait_ms: Option<u64>,
}

impl ProviderError {
    pub(crate) fn new(kind: LlmErrorKind, words: impl Into<String>) -> Self {
        Self { kind, words: words.into(), wait_ms: None }
    }

    /// What a status and words say by themselves. There is no status in the middle of a stream: it
    /// was well until then.
    pub(crate) fn by_status(status: Option<u16>, words: impl Into<String>) -> Self {
        let words = words.into();
        let kind = match status {
            Some(401 | 403) => LlmErrorKind::Unauthorized,
            Some(402) => LlmErrorKind::Quota,
            Some(429) => LlmErrorKind::RateLimited,
            Some(404) if says(&words, &["model"]) => LlmErrorKind::NoSuchModel,
            Some(408 | 504) => LlmErrorKind::Timeout,
            Some(413) => LlmErrorKind::TooLong,
            _ if is_too_long(&words) => LlmErrorKind::TooLong,
            Some(500..) | None => LlmErrorKind::Overloaded,
            Some(_) => LlmErrorKind::BadRequest,
        };
        Self::new(kind, words)
    }
}

/// The hint for a kind of failure, if there is one.
pub(crate) fn hint(kind: LlmErrorKind) -> Option<&'static str> {
    match kind {
        LlmErrorKind::Unreachable => Some("check that it runs and that the base URL names it"),
        LlmErrorKind::Timeout => Some("try again, or raise the model's timeout"),
        LlmErrorKind::RateLimited | LlmErrorKind::Overloaded => Some("try again later"),
        LlmErrorKind::Unauthorized => Some("check the model's key, and what it may do"),
        LlmErrorKind::Quota => Some("check the account's credit and limits at the provider"),
        LlmErrorKind::NoSuchModel => Some("check the model's name, and that the account has it"),
        LlmErrorKind::TooLong => Some("begin a new thread, or take a model that reads more"),
        LlmErrorKind::Unreadable => Some("check that the base URL is of this kind of provider"),
        LlmErrorKind::Refused | LlmErrorKind::BadRequest => None,
    }
}

/// Whether words say that the conversation is too long.
pub(crate) fn is_too_long(words: &str) -> bool {
    says(words, TOO_LONG)
}

/// Whether words say that there is no money left.
pub(crate) fn is_no_money(words: &str) -> bool {
    says(words, NO_MONEY)
}

/// Whether words have one of these in them, which are in lower case.
pub(crate) fn says(words: &str, any: &[&str]) -> bool {
    let words = words.to_lowercase();
    any.iter().any(|part| words.contains(part))
}

/// The text of a member; empty where there is none.
pub(crate) fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The words of an error body, however it is built: `{"error": {"message"}}`, `{"error": ".."}`,
/// `{"message"}`, `{"detail"}`, or a text.
pub(crate) fn words_of(body: &Value) -> &str {
    let error = &body["error"];
    let candidates =
        [text(error, "message"), text(body, "error"), text(body, "message"), text(body, "detail")];
    let found = candidates.into_iter().find(|words| !words.is_empty());
    found.or(body.as_str()).unwrap_or_default()
}

/// How long an answer wants us to wait.
pub(crate) fn wait_ms(headers: &HeaderMap, now: Millis) -> Option<u64> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(ms) = header(RETRY_AFTER_MS).and_then(|ms| millis(ms, 1.0)) {
        return Some(ms);
    }
    if let Some(ms) = header(RETRY_AFTER.as_str()).and_then(|after| millis(after, 1_000.0)) {
        return Some(ms);
    }
    retry_after::wait_ms(headers, now).map(|ms| ms.min(WAIT_MS_MAX))
}

/// So many milliseconds; some providers write seconds with a fraction.
pub(crate) fn millis(text: &str, unit_ms: f64) -> Option<u64> {
    let number: f64 = text.trim().parse().ok()?;
    // A cast to an integer saturates; what is no number was handled above.
    number.is_finite().then(|| ((number * unit_ms).max(0.0) as u64).min(WAIT_MS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.insert(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_retry_wait_is_seconds_milliseconds_or_a_date() {
        let wait = |lines: &[(&'static str, &'static str)]| {
            wait_ms(&headers(lines), Millis(1_447_600_000_000))
        };
        assert_eq!(wait(&[]), None);
        assert_eq!(wait(&[("retry-after", "7")]), Some(7_000));
        assert_eq!(wait(&[("retry-after", "0.25")]), Some(250));
        assert_eq!(wait(&[("retry-after", "-3")]), Some(0));
        assert_eq!(wait(&[("retry-after", "1e300")]), Some(WAIT_MS_MAX));
        assert_eq!(wait(&[("retry-after", "NaN")]), None);
        assert_eq!(wait(&[("retry-after", "soon")]), None);
        assert_eq!(wait(&[("retry-after", "7"), ("retry-after-ms", "12.5")]), Some(12));
        let date = "Sun, 15 Nov 2015 15:06:50 GMT";
        let sent = "Sun, 15 Nov 2015 15:06:35 GMT";
        assert_eq!(wait(&[("retry-after", date), ("date", sent)]), Some(15_000));
        assert_eq!(wait(&[("retry-after", sent), ("date", date)]), Some(0));
        assert_eq!(wait(&[("retry-after", date)]), Some(10_000));
    }

    #[test]
    fn http_statuses_are_classified() {
        let kind = |status: Option<u16>, words: &str| ProviderError::by_status(status, words).kind;
        assert_eq!(kind(Some(401), ""), LlmErrorKind::Unauthorized);
        assert_eq!(kind(Some(402), ""), LlmErrorKind::Quota);
        assert_eq!(kind(Some(404), "no model `x`"), LlmErrorKind::NoSuchModel);
        assert_eq!(kind(Some(404), "nothing here"), LlmErrorKind::BadRequest);
        assert_eq!(kind(Some(413), ""), LlmErrorKind::TooLong);
        assert_eq!(kind(Some(400), "over the Context Window"), LlmErrorKind::TooLong);
        assert_eq!(kind(Some(400), "odd"), LlmErrorKind::BadRequest);
        assert_eq!(kind(Some(429), "context length"), LlmErrorKind::RateLimited);
        assert_eq!(kind(Some(504), ""), LlmErrorKind::Timeout);
        assert_eq!(kind(Some(529), ""), LlmErrorKind::Overloaded);
        assert_eq!(kind(None, ""), LlmErrorKind::Overloaded);
    }

    #[test]
    fn error_messages_are_found_in_every_body_format() {
        for body in [
            json!({"error": {"message": "no"}}),
            json!({"error": "no"}),
            json!({"object": "error", "message": "no"}),
            json!({"detail": "no"}),
            json!("no"),
        ] {
            assert_eq!(words_of(&body), "no", "{body}");
        }
        assert_eq!(words_of(&json!({"detail": [1]})), "");
    }
}
