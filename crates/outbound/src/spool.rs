//! Streams a body into a blob as the JSON text of its output: byte for byte the same as if it were
//! held in memory.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::stream::{self, StreamExt};
use kernel::tool::call::{Pieces, ToolError};
use reqwest::Response;
use std::mem;

/// Replaces bytes that are not UTF-8.
const REPLACEMENT: &str = "\u{fffd}";
/// Bytes that are written as base64 by themselves, without an end.
const GROUP_BYTES: usize = 3;

/// The JSON text of an output around a body.
pub struct SpooledText {
    /// JSON before the body, up to the quote.
    pub before: String,
    /// How the body is written.
    pub inside: BodyEncoder,
    /// JSON after the body, from the quote on.
    pub after: String,
}

/// How a body is written inside a JSON string. Each keeps the last bytes that it cannot write yet.
pub enum BodyEncoder {
    /// As text; what is no UTF-8 is replaced.
    Text(Vec<u8>),
    Base64(Vec<u8>),
}

impl BodyEncoder {
    /// The part that can be written now.
    fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        match self {
            BodyEncoder::Text(carried) => {
                let mut joined = mem::take(carried);
                joined.extend_from_slice(bytes);
                let (written, unfinished) = text(&joined);
                *carried = unfinished.to_vec();
                written
            }
            BodyEncoder::Base64(carried) => {
                carried.extend_from_slice(bytes);
                let whole = carried.len() - carried.len() % GROUP_BYTES;
                let rest = carried.split_off(whole);
                STANDARD.encode(mem::replace(carried, rest)).into_bytes()
            }
        }
    }

    /// The last of it.
    fn end(self) -> Vec<u8> {
        match self {
            BodyEncoder::Text(carried) if carried.is_empty() => Vec::new(),
            BodyEncoder::Text(_) => REPLACEMENT.as_bytes().to_vec(),
            BodyEncoder::Base64(carried) => STANDARD.encode(carried).into_bytes(),
        }
    }
}

/// Text inside a JSON string, and the bytes at its end that may become a character.
fn text(bytes: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut written = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        let error = match std::str::from_utf8(rest) {
            Ok(valid) => {
                escape(valid, &mut written);
                return (written, &[]);
            }
            Err(error) => error,
        };
        let (valid, broken) = rest.split_at(error.valid_up_to());
        escape(std::str::from_utf8(valid).unwrap_or_default(), &mut written);
        let Some(length) = error.error_len() else { return (written, broken) };
        written.extend_from_slice(REPLACEMENT.as_bytes());
        rest = &broken[length..];
    }
}

fn escape(text: &str, into: &mut Vec<u8>) {
    // A text as JSON: this cannot fail.
    let quoted = serde_json::to_string(text).unwrap_or_default();
    let end = quoted.len().saturating_sub(1);
    into.extend_from_slice(quoted.get(1..end).unwrap_or_default().as_bytes());
}

/// The pieces of the text: what was read of the body, and then what is still to come.
pub fn pieces(
    text: SpooledText,
    begun: &[u8],
    response: Response,
    lost: impl Fn(reqwest::Error) -> ToolError + Copy + Send + 'static,
) -> Pieces<'static> {
    let SpooledText { before, mut inside, after } = text;
    let mut first = before.into_bytes();
    first.extend(inside.push(begun));
    let rest = stream::try_unfold(Some((response, inside, after)), move |state| async move {
        let Some((mut response, mut inside, after)) = state else { return Ok(None) };
        match response.chunk().await {
            Ok(Some(chunk)) => Ok(Some((inside.push(&chunk), Some((response, inside, after))))),
            Ok(None) => {
                let mut last = inside.end();
                last.extend_from_slice(after.as_bytes());
                Ok(Some((last, None)))
            }
            Err(error) => Err(lost(error)),
        }
    });
    stream::iter([Ok(first)]).chain(rest).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body, cut into pieces of so many bytes.
    fn written(mut inside: BodyEncoder, body: &[u8], piece_bytes: usize) -> String {
        let mut all = Vec::new();
        for piece in body.chunks(piece_bytes) {
            all.extend(inside.push(piece));
        }
        all.extend(inside.end());
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn spooled_text_is_the_same_at_any_chunking() {
        let body = b"a \"quoted\" \\ line\n\xc3\xa4 \xf0\x9f\x98\x80 \xff\xfe \xe2\x82 \xf0\x9f";
        let whole = serde_json::to_string(&String::from_utf8_lossy(body)).unwrap();
        for piece_bytes in 1..=body.len() {
            let text = written(BodyEncoder::Text(Vec::new()), body, piece_bytes);
            assert_eq!(format!("\"{text}\""), whole, "{piece_bytes} bytes at once");
        }
    }

    #[test]
    fn spooled_bytes_are_the_same_at_any_chunking() {
        for length in 0..9_u8 {
            let body: Vec<u8> = (0..length).collect();
            for piece_bytes in 1..=9 {
                let text = written(BodyEncoder::Base64(Vec::new()), &body, piece_bytes);
                assert_eq!(text, STANDARD.encode(&body), "{piece_bytes} bytes at once");
            }
        }
    }
}
