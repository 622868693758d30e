//! What is read of a resource, in MCP's shape: a text, or bytes in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// A value as JSON text.
pub(super) fn of_value(uri: &str, value: &impl Serialize) -> Value {
    // These are plain data; writing them as JSON cannot fail.
    let text = serde_json::to_string(value).unwrap_or_default();
    json!({"uri": uri, "mimeType": "application/json", "text": text})
}

/// Bytes: as text where they are one.
pub(super) fn of_bytes(uri: &str, bytes: Vec<u8>) -> Value {
    match String::from_utf8(bytes) {
        Ok(text) if serde_json::from_str::<IgnoredAny>(&text).is_ok() => {
            json!({"uri": uri, "mimeType": "application/json", "text": text})
        }
        Ok(text) if text.chars().all(is_plain) => {
            json!({"uri": uri, "mimeType": "text/plain", "text": text})
        }
        Ok(text) => binary(uri, text.as_bytes()),
        Err(error) => binary(uri, error.as_bytes()),
    }
}

fn is_plain(character: char) -> bool {
    !character.is_control() || matches!(character, '\n' | '\r' | '\t')
}

fn binary(uri: &str, bytes: &[u8]) -> Value {
    json!({"uri": uri, "mimeType": "application/octet-stream", "blob": STANDARD.encode(bytes)})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_have_the_media_type_of_their_bytes() {
        let read = |bytes: &[u8]| of_bytes("u", bytes.to_vec());
        let json = json!({"uri": "u", "mimeType": "application/json", "text": "{\"a\":1}"});
        assert_eq!(read(b"{\"a\":1}"), json);
        let plain = json!({"uri": "u", "mimeType": "text/plain", "text": "a\n\u{e4}"});
        assert_eq!(read("a\n\u{e4}".as_bytes()), plain);
        let binary = json!({"uri": "u", "mimeType": "application/octet-stream", "blob": "/w=="});
        assert_eq!(read(&[0xff]), binary);
        assert_eq!(read(&[b'a', 0])["blob"], "YQA=");
        assert_eq!(of_value("u", &json!({"a": 1})), json);
    }
}
