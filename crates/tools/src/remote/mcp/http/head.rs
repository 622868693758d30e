//! Heads: how a request begins on a plain connection, and how an answer does.

use bytes::{Buf, Bytes, BytesMut};
use httparse::{Error, Header, ParserConfig, Status};
use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use std::io::Write;
use std::mem::MaybeUninit;
use wire::mcp::TRACEPARENT;

/// How large the head of an answer can be.
pub(super) const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How many headers it can have.
const HEADERS_MAX: usize = 128;
/// A body of up to so many bytes is written together with its head; a larger one is not copied.
const TOGETHER_BYTES_MAX: usize = 16 * 1024;

/// What all requests to one address say.
#[derive(Default)]
pub(super) struct Shared {
    /// Lines that stand in every head, ready to be written.
    lines: Vec<u8>,
    /// What a request may say otherwise.
    rest: Vec<(HeaderName, HeaderValue)>,
}

impl Shared {
    /// All of them say this.
    pub(super) fn new(headers: impl IntoIterator<Item = (HeaderName, HeaderValue)>) -> Self {
        let mut shared = Self::default();
        for (name, value) in headers {
            if may_be_own(&name) {
                shared.rest.push((name, value));
            } else {
                write_header(&mut shared.lines, &name, value.as_bytes());
            }
        }
        shared
    }
}

/// Whether a request may say this itself.
fn may_be_own(name: &HeaderName) -> bool {
    const OWN: [&str; 4] = ["accept", "content-type", "last-event-id", TRACEPARENT];
    OWN.contains(&name.as_str()) || name.as_str().starts_with("mcp-")
}

/// A request as it is to be written.
pub(super) struct Request<'a> {
    /// What it does.
    pub(super) method: &'a Method,
    /// What stands in its first line: the path and the query.
    pub(super) target: &'a str,
    /// What it says as all do, unless it says something else under the same name.
    pub(super) shared: &'a Shared,
    /// What it says itself.
    pub(super) own: &'a HeaderMap,
    /// Our token, if we have one.
    pub(super) bearer: Option<&'a HeaderValue>,
    /// What it sends.
    pub(super) body: &'a Bytes,
}

impl Request<'_> {
    /// Writes its head, and its body if that is small; else what is to be written after it.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Bytes {
        for part in [self.method.as_str(), " ", self.target, " HTTP/1.1\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        out.extend_from_slice(&self.shared.lines);
        for (name, value) in &self.shared.rest {
            if !self.own.contains_key(name) {
                write_header(out, name, value.as_bytes());
            }
        }
        for (name, value) in self.own {
            write_header(out, name, value.as_bytes());
        }
        if let Some(bearer) = self.bearer {
            write_header(out, &AUTHORIZATION, bearer.as_bytes());
        }
        if *self.method == Method::POST || !self.body.is_empty() {
            // What is written to memory is always written.
            let _ = write!(out, "{CONTENT_LENGTH}: {}\r\n", self.body.len());
        }
        out.extend_from_slice(b"\r\n");
        if self.body.len() > TOGETHER_BYTES_MAX {
            return self.body.clone();
        }
        out.extend_from_slice(self.body);
        Bytes::new()
    }
}

/// A line of a head. No value has a line's end in it: its type sees to that.
fn write_header(out: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    for part in [name.as_str().as_bytes(), b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// The head of an answer.
pub(super) struct Head {
    /// Its status.
    pub(super) status: StatusCode,
    /// Its headers, in their order.
    pub(super) headers: HeaderMap,
    /// Whether it is of HTTP/1.0, which knows neither chunks nor connections that stay.
    pub(super) is_old: bool,
}

impl Head {
    /// Takes a head off what was read; none while it is not whole, else why it is none.
    pub(super) fn take(unread: &mut BytesMut) -> Result<Option<Self>, String> {
        let mut slots: [MaybeUninit<Header<'_>>; HEADERS_MAX] =
            [MaybeUninit::uninit(); HEADERS_MAX];
        let mut parsed = httparse::Response::new(&mut []);
        let bytes = &unread[..];
        let parsing = ParserConfig::default().parse_response_with_uninit_headers(
            &mut parsed,
            bytes,
            &mut slots,
        );
        let end = match parsing {
            Ok(Status::Complete(end)) if end <= HEAD_BYTES_MAX => end,
            Ok(Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
            Ok(_) => return Err(format!("its head is larger than {} KiB", HEAD_BYTES_MAX / 1024)),
            Err(Error::TooManyHeaders) => {
                return Err(format!("its head has more than {HEADERS_MAX} headers"));
            }
            Err(error) => return Err(format!("its head is not HTTP: {error}")),
        };
        let head = Self::of(&parsed, &bytes[..end])?;
        unread.advance(end);
        Ok(Some(head))
    }

    fn of(parsed: &httparse::Response<'_, '_>, bytes: &[u8]) -> Result<Self, String> {
        let status = parsed.code.and_then(|code| StatusCode::from_u16(code).ok());
        let status = status.ok_or("its status is none of HTTP")?;
        // One copy for all values: whoever keeps one keeps no more than a head.
        let copy = Bytes::copy_from_slice(bytes);
        let mut headers = HeaderMap::with_capacity(parsed.headers.len());
        for header in parsed.headers.iter() {
            let name = HeaderName::from_bytes(header.name.as_bytes());
            let name = name.map_err(|_| "its head has a name that no header has")?;
            let value = if header.value.is_empty() {
                Ok(HeaderValue::from_static(""))
            } else {
                let start = header.value.as_ptr().addr() - bytes.as_ptr().addr();
                HeaderValue::from_maybe_shared(copy.slice(start..start + header.value.len()))
            };
            let value = value.map_err(|_| "its head has a value that no header has")?;
            headers.append(name, value);
        }
        Ok(Self { status, headers, is_old: parsed.version == Some(0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> Result<Option<Head>, String> {
        Head::take(&mut BytesMut::from(text))
    }

    fn written(request: &Request<'_>) -> (String, Bytes) {
        let mut out = Vec::new();
        let rest = request.write(&mut out);
        (String::from_utf8(out).unwrap(), rest)
    }

    #[test]
    fn a_request_is_one_text() {
        let shared = [("host", "a.test"), ("accept", "*/*"), ("x-key", "a"), ("x-key", "b")]
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let mut own = HeaderMap::new();
        own.insert("accept", HeaderValue::from_static("text/event-stream"));
        let bearer = HeaderValue::from_static("Bearer t");
        let head = "/mcp?x=1 HTTP/1.1\r\nhost: a.test\r\nx-key: a\r\nx-key: b\r\n\
                    accept: text/event-stream\r\nauthorization: Bearer t\r\n";
        let shared = Shared::new(shared);
        let (none, small) = (Bytes::new(), Bytes::from_static(b"hello"));
        for (method, body, expected) in [
            (Method::POST, &small, format!("POST {head}content-length: 5\r\n\r\nhello")),
            (Method::POST, &none, format!("POST {head}content-length: 0\r\n\r\n")),
            (Method::GET, &none, format!("GET {head}\r\n")),
            (Method::DELETE, &none, format!("DELETE {head}\r\n")),
        ] {
            let request = Request {
                method: &method,
                target: "/mcp?x=1",
                shared: &shared,
                own: &own,
                bearer: Some(&bearer),
                body,
            };
            assert_eq!(written(&request), (expected, Bytes::new()));
        }
    }

    #[test]
    fn a_large_body_is_not_copied() {
        for (bytes, apart) in [(TOGETHER_BYTES_MAX, false), (TOGETHER_BYTES_MAX + 1, true)] {
            let body = Bytes::from(vec![b'x'; bytes]);
            let (method, own) = (Method::POST, HeaderMap::new());
            let request = Request {
                method: &method,
                target: "/",
                shared: &Shared::default(),
                own: &own,
                bearer: None,
                body: &body,
            };
            let (text, rest) = written(&request);
            let head = format!("POST / HTTP/1.1\r\ncontent-length: {bytes}\r\n\r\n");
            assert!(text.starts_with(&head), "{bytes}");
            assert_eq!(text.len() > head.len(), !apart, "{bytes}");
            assert_eq!(rest.as_ptr() == body.as_ptr(), apart, "{bytes}");
        }
    }

    #[test]
    fn a_head_is_read() {
        let text = "HTTP/1.1 202 Fine\r\nX-A: 1\r\nx-b:\r\nx-a: 2 \r\n\r\nrest";
        let mut unread = BytesMut::from(text);
        let head = Head::take(&mut unread).unwrap().unwrap();
        assert_eq!(&unread[..], b"rest");
        assert_eq!((head.status, head.is_old), (StatusCode::ACCEPTED, false));
        let values: Vec<_> = head.headers.get_all("x-a").iter().collect();
        assert_eq!(values, ["1", "2"]);
        assert_eq!(head.headers["x-b"], "");
        assert!(taken("HTTP/1.0 200 OK\r\n\r\n").unwrap().unwrap().is_old);
        // Neither a phrase nor a carriage return is asked for.
        assert_eq!(taken("HTTP/1.1 200\na: b\n\n").unwrap().unwrap().headers["a"], "b");
    }

    #[test]
    fn half_a_head_is_none() {
        let text = "HTTP/1.1 200 OK\r\na: b\r\n\r\n";
        for end in 0..text.len() {
            assert!(taken(&text[..end]).unwrap().is_none(), "{end}");
        }
    }

    #[test]
    fn what_is_no_head_is_refused() {
        for (text, why) in [
            ("SSH-2.0-OpenSSH_9.6\r\n\r\n", "not HTTP"),
            ("HTTP/2.0 200 OK\r\n\r\n", "not HTTP"),
            ("HTTP/1.1 2x0 OK\r\n\r\n", "not HTTP"),
            ("HTTP/1.1 099 OK\r\n\r\n", "status"),
            ("HTTP/1.1 200 OK\r\na b: c\r\n\r\n", "not HTTP"),
            ("HTTP/1.1 200 OK\r\na : c\r\n\r\n", "not HTTP"),
            ("HTTP/1.1 200 OK\r\na: c\r\n folded\r\n\r\n", "not HTTP"),
            ("HTTP/1.1 200 OK\r\na: c\0\r\n\r\n", "not HTTP"),
            ("HTTP/1.1 200 OK\r\na: c\rd\r\n\r\n", "not HTTP"),
        ] {
            let told = taken(text).err().unwrap_or_else(|| panic!("{text:?} was taken"));
            assert!(told.contains(why), "{text:?}: {told}");
        }
    }

    #[test]
    fn a_head_has_its_limits() {
        let first = "HTTP/1.1 200 OK\r\n";
        let many = |count: usize| format!("{first}{}\r\n", "a: b\r\n".repeat(count));
        assert_eq!(taken(&many(HEADERS_MAX)).unwrap().unwrap().headers.len(), HEADERS_MAX);
        let told = taken(&many(HEADERS_MAX + 1)).err().unwrap();
        assert_eq!(told, "its head has more than 128 headers");

        let empty = first.len() + "a: \r\n\r\n".len();
        let long = |bytes: usize| format!("{first}a: {}\r\n\r\n", "x".repeat(bytes - empty));
        assert!(taken(&long(HEAD_BYTES_MAX)).unwrap().is_some());
        let larger = long(HEAD_BYTES_MAX + 1);
        for text in [&larger[..], &larger[..HEAD_BYTES_MAX]] {
            assert_eq!(taken(text).err().unwrap(), "its head is larger than 64 KiB");
        }
    }
}
