//! Converts an HTTP response into a tool output.

use super::send::Answer;
use super::spooled::is_text;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outbound::answer::{is_json, media_type, shown};
use outbound::redaction::Redactor;
use reqwest::Method;
use serde_json::{Value, json};

/// The body: JSON as it is, text as a string, anything else in base64 with its type, null for
/// nothing. A HEAD has no body: its answer is the status with the headers. None of it has a
/// credential of ours in it.
pub(super) fn value(answer: &Answer, method: &Method, hidden: &Redactor) -> Value {
    let mut value = read(answer, method, hidden);
    hidden.mask(&mut value);
    value
}

fn read(answer: &Answer, method: &Method, hidden: &Redactor) -> Value {
    if method == Method::HEAD {
        return json!({"status": answer.status.as_u16(), "headers": shown(&answer.headers)});
    }
    if answer.body.is_empty() {
        return Value::Null;
    }
    let media = media_type(&answer.headers);
    // Some servers begin a text with the mark of its encoding, which JSON does not know.
    let json = answer.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&answer.body);
    if is_json(&media)
        && let Ok(value) = serde_json::from_slice(json)
    {
        return value;
    }
    match std::str::from_utf8(&answer.body) {
        Ok(text) if is_text(&media) || is_json(&media) => Value::from(text),
        _ if media.starts_with("text/") => String::from_utf8_lossy(&answer.body).into(),
        // Masked before it is encoded: no one would find a credential after it.
        Ok(text) => {
            json!({"mediaType": media, "base64": STANDARD.encode(hidden.masked(text).as_bytes())})
        }
        Err(_) => json!({"mediaType": media, "base64": STANDARD.encode(&answer.body)}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::StatusCode;
    use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

    fn output(media: &str, body: &[u8]) -> Value {
        let mut headers = HeaderMap::new();
        if !media.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_str(media).unwrap());
        }
        let answer = Answer { status: StatusCode::OK, headers, body: body.to_vec(), stored: None };
        value(&answer, &Method::GET, &Redactor::default())
    }

    #[test]
    fn an_output_is_decoded_by_its_media_type() {
        let cases: [(&str, &[u8], Value); 12] = [
            ("application/json; charset=utf-8", b"{\"a\":1}", json!({"a": 1})),
            ("application/problem+json", b"[1]", json!([1])),
            ("application/json", b"\xef\xbb\xbf{}", json!({})),
            ("application/json", b"broken", json!("broken")),
            ("text/html", b"<p>", json!("<p>")),
            ("text/plain", b"\xe9", json!("\u{fffd}")),
            ("application/xml", b"<a/>", json!("<a/>")),
            ("application/openmetrics-text", b"a 1", json!("a 1")),
            ("", b"plain", json!("plain")),
            ("", b"\xff", json!({"mediaType": "", "base64": "/w=="})),
            ("image/png", b"hi", json!({"mediaType": "image/png", "base64": "aGk="})),
            ("image/png", b"", Value::Null),
        ];
        for (media, body, value) in cases {
            assert_eq!(output(media, body), value, "{media}");
        }
    }

    #[test]
    fn a_head_request_returns_headers() {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("a/b"))]);
        let answer = Answer { status: StatusCode::OK, headers, body: Vec::new(), stored: None };
        let shown = json!({"status": 200, "headers": {"content-type": "a/b"}});
        assert_eq!(value(&answer, &Method::HEAD, &Redactor::default()), shown);
    }

    #[test]
    fn outputs_contain_no_credentials() {
        let hidden = Redactor::default().credentials(["s3cr3t/key"]);
        let told = |media: &'static str, body: &str, method: Method| {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media))]);
            let answer = Answer {
                status: StatusCode::OK,
                headers,
                body: body.as_bytes().to_vec(),
                stored: None,
            };
            value(&answer, &method, &hidden)
        };
        for (media, body, expected) in [
            ("application/json", r#"{"s3cr3t\/key":["s3cr3t/key"]}"#, json!({"***": ["***"]})),
            ("application/json", "broken s3cr3t/key", json!("broken ***")),
            ("text/plain", "it is s3cr3t%2Fkey", json!("it is ***")),
            ("image/png", "s3cr3t/key", json!({"mediaType": "image/png", "base64": "Kioq"})),
        ] {
            assert_eq!(told(media, body, Method::GET), expected, "{body}");
        }
        let shown = json!({"status": 200, "headers": {"content-type": "a/***"}});
        assert_eq!(told("a/s3cr3t/key", "", Method::HEAD), shown);
    }
}
