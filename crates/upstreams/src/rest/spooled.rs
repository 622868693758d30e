//! Which response bodies are streamed into a blob instead of being held in memory.

use outbound::answer::{is_json, media_type};
use outbound::redaction::Redactor;
use outbound::spool::{BodyEncoder, SpooledText};
use reqwest::header::HeaderMap;
use serde_json::Value;

/// How an output is written while its body comes; none where all of it must be known first:
/// JSON is parsed, what may be text must be seen to be one, and credentials are searched for.
pub(super) fn spooled(headers: &HeaderMap, hidden: &Redactor) -> Option<SpooledText> {
    let media = media_type(headers);
    let spooled = |before: &str, inside: BodyEncoder, after: String| {
        Some(SpooledText { before: before.to_owned(), inside, after })
    };
    if !hidden.is_empty() || is_json(&media) {
        None
    } else if media.starts_with("text/") {
        spooled("\"", BodyEncoder::Text(Vec::new()), "\"".to_owned())
    } else if is_text(&media) {
        None
    } else {
        let after = format!("\",\"mediaType\":{}}}", Value::from(media));
        spooled("{\"base64\":\"", BodyEncoder::Base64(Vec::new()), after)
    }
}

/// Whether a media type is one of texts; one that is not said may be.
pub(super) fn is_text(media: &str) -> bool {
    let ends = ["text", "xml", "yaml", "javascript", "ndjson", "x-www-form-urlencoded", "graphql"];
    media.is_empty() || media.starts_with("text/") || ends.iter().any(|end| media.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{CONTENT_TYPE, HeaderValue};

    #[test]
    fn only_opaque_bodies_are_streamed_into_blobs() {
        let written = |media: &'static str, hidden: &Redactor| {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media))]);
            spooled(&headers, hidden).map(|text| format!("{}..{}", text.before, text.after))
        };
        let nothing = Redactor::default();
        assert_eq!(written("text/csv", &nothing).as_deref(), Some("\"..\""));
        let bytes = "{\"base64\":\"..\",\"mediaType\":\"image/png\"}";
        assert_eq!(written("image/png", &nothing).as_deref(), Some(bytes));
        for media in ["application/json", "application/xml", ""] {
            assert_eq!(written(media, &nothing), None, "{media}");
        }
        let hidden = Redactor::default().credentials(["s3cr3t/key"]);
        assert_eq!(written("text/csv", &hidden), None);
    }
}
