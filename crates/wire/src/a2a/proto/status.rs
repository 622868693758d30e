//! The status of a gRPC call: a number, a message, and details for programs. It goes in headers,
//! which clients accept only up to a size.

use super::read::{BadProto, to_json};
use super::schema::{BAD_REQUEST, ERROR_INFO, STATUS, Shape};
use super::write::write;
use crate::a2a::error::{A2aError, BAD_REQUEST as BAD_REQUEST_TYPE, ERROR_INFO as ERROR_INFO_TYPE};
use crate::a2a::value::{Bytes, decoded};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::{Value, json};

/// The number of the status.
pub const HEADER_STATUS: &str = "grpc-status";
/// The message.
pub const HEADER_MESSAGE: &str = "grpc-message";
/// `google.rpc.Status` in base64.
pub const HEADER_DETAILS: &str = "grpc-status-details-bin";

/// How many bytes of a message go out.
const MESSAGE_BYTES_MAX: usize = 1_000;
/// How many bytes details may have; larger ones keep only the name of the error.
const DETAILS_BYTES_MAX: usize = 4_000;
/// How deep a status nests at most.
const DEPTH_MAX: usize = 8;

/// Names of statuses, each at its number.
const NAMES: [&str; 17] = [
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
    "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",
    "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
];

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Status {
    /// Its number; 0 is success.
    pub code: usize,
    /// Who failed and why.
    pub message: String,
    /// Objects with their `@type`.
    pub details: Vec<Value>,
}

impl Status {
    pub fn named(name: &str, message: impl Into<String>) -> Self {
        let code = NAMES.iter().position(|known| *known == name).unwrap_or(2);
        Self { code, message: message.into(), details: Vec::new() }
    }

    pub fn of(error: &A2aError) -> Self {
        let message = error.message.clone();
        Self { details: error.details.clone(), ..Self::named(error.kind.status(), message) }
    }

    /// The error that it says, unless it is success.
    pub fn error(&self) -> A2aError {
        let message = match self.message.as_str() {
            "" => format!("the call ended with {}, and no reason is given", self.name()),
            message => message.to_owned(),
        };
        A2aError::of_grpc(self.name(), message, self.details.clone())
    }

    pub fn name(&self) -> &'static str {
        NAMES.get(self.code).copied().unwrap_or("UNKNOWN")
    }

    /// The headers that say it.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![(HEADER_STATUS, self.code.to_string())];
        let message = &self.message[..self.message.floor_char_boundary(MESSAGE_BYTES_MAX)];
        if !message.is_empty() {
            headers.push((HEADER_MESSAGE, escaped(message)));
        }
        if !self.details.is_empty() {
            let details = self.details_of(message);
            headers.push((HEADER_DETAILS, STANDARD_NO_PAD.encode(details)));
        }
        headers
    }

    fn details_of(&self, message: &str) -> Vec<u8> {
        let whole = self.written(message, |_| true);
        match whole.len() > DETAILS_BYTES_MAX {
            true => self.written(message, |kind| kind == ERROR_INFO_TYPE),
            false => whole,
        }
    }

    fn written(&self, message: &str, is_kept: impl Fn(&str) -> bool) -> Vec<u8> {
        let details = self.details.iter().filter_map(|detail| {
            let kind = detail["@type"].as_str().filter(|kind| is_kept(kind))?;
            let value = Bytes(write(shape_of(kind)?, detail));
            Some(json!({"typeUrl": kind, "value": value}))
        });
        let details: Vec<Value> = details.collect();
        write(&STATUS, &json!({"code": self.code, "message": message, "details": details}))
    }

    /// The status that headers say.
    pub fn of_headers<'h>(header: impl Fn(&str) -> Option<&'h str>) -> Result<Self, BadProto> {
        // Only digits: a sign would be read as part of a number, and `+0` as success.
        let is_number = |code: &&str| code.bytes().all(|byte| byte.is_ascii_digit());
        let code = header(HEADER_STATUS).filter(is_number).and_then(|code| code.parse().ok());
        let code = code.unwrap_or(2);
        let message = header(HEADER_MESSAGE).map(unescaped).unwrap_or_default();
        let details = header(HEADER_DETAILS).and_then(decoded).unwrap_or_default();
        let members = to_json(&STATUS, &details, DEPTH_MAX)?;
        let empty = Vec::new();
        let told = members.get("details").and_then(Value::as_array).unwrap_or(&empty);
        let details = told.iter().filter_map(|any| {
            let kind = any["typeUrl"].as_str()?;
            let bytes = any["value"].as_str().and_then(decoded).unwrap_or_default();
            let mut detail = to_json(shape_of(kind)?, &bytes, DEPTH_MAX).ok()?;
            detail.insert("@type".to_owned(), json!(kind));
            Some(Value::Object(detail))
        });
        Ok(Self { code, message, details: details.collect() })
    }
}

fn shape_of(kind: &str) -> Option<&'static Shape> {
    match kind {
        ERROR_INFO_TYPE => Some(&ERROR_INFO),
        BAD_REQUEST_TYPE => Some(&BAD_REQUEST),
        _ => None,
    }
}

/// A message as its header has it: what is not printable ASCII is a percent sign and two digits.
fn escaped(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    for byte in message.bytes() {
        match byte {
            b'%' => text.push_str("%25"),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let digits = more.get(..2).filter(|_| *first == b'%');
        // A sign would be read as part of a number.
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::a2a::error::ErrorKind;
    use serde_json::Map;

    fn read(headers: &[(&'static str, String)]) -> Status {
        let header = |name: &str| {
            let found = headers.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.as_str())
        };
        Status::of_headers(header).unwrap()
    }

    #[test]
    fn an_error_is_read_as_it_was_written() {
        for kind in ErrorKind::all() {
            let metadata = Map::from_iter([("taskId".to_owned(), json!("t"))]);
            let error = A2aError::new(kind, "no: 100 % \u{e4}\n").metadata(metadata);
            let error = error.violation("message.parts", "it is empty");
            let status = Status::of(&error);
            assert_eq!(status.name(), kind.status());
            let headers = status.headers();
            assert!(headers.iter().all(|(_, value)| value.bytes().all(|b| (32..127).contains(&b))));
            assert_eq!(read(&headers), status);
            let told = status.error();
            assert_eq!((told.message, told.details), (error.message, error.details));
            if kind.reason().is_some() {
                assert_eq!(told.kind, kind);
            }
        }
        let fine = Status::default();
        assert_eq!(fine.headers(), [(HEADER_STATUS, "0".to_owned())]);
        assert_eq!(read(&fine.headers()), fine);
    }

    #[test]
    fn a_status_without_details_says_which_error_it_is() {
        for (name, kind) in [
            ("UNAUTHENTICATED", ErrorKind::Unauthenticated),
            ("PERMISSION_DENIED", ErrorKind::PermissionDenied),
            ("NOT_FOUND", ErrorKind::TaskNotFound),
            ("UNIMPLEMENTED", ErrorKind::MethodNotFound),
            ("RESOURCE_EXHAUSTED", ErrorKind::ResourceExhausted),
            ("FAILED_PRECONDITION", ErrorKind::UnsupportedOperation),
            ("INVALID_ARGUMENT", ErrorKind::InvalidParams),
            ("DATA_LOSS", ErrorKind::Internal),
        ] {
            let error = Status::named(name, "").error();
            assert_eq!(error.kind, kind, "{name}");
            assert!(error.message.contains(name), "{}", error.message);
        }
    }

    #[test]
    fn a_message_that_is_escaped_badly_is_read_as_it_is() {
        for (told, message) in
            [("%", "%"), ("a%4", "a%4"), ("%+41", "%+41"), ("%zz%41", "%zzA"), ("%ff", "\u{fffd}")]
        {
            let headers = [(HEADER_STATUS, "13".to_owned()), (HEADER_MESSAGE, told.to_owned())];
            assert_eq!(read(&headers).message, message);
        }
    }

    #[test]
    fn a_status_number_is_digits_only() {
        let codes = [("0", 0), ("00", 0), ("16", 16), ("99", 99)];
        let others = ["+0", "-0", " 0", "", "0x0", "99999999999999999999"].map(|told| (told, 2));
        for (told, code) in codes.into_iter().chain(others) {
            assert_eq!(read(&[(HEADER_STATUS, told.to_owned())]).code, code, "`{told}`");
        }
    }

    #[test]
    fn the_headers_of_a_status_are_bounded() {
        let error = A2aError::new(ErrorKind::ContentTypeNotSupported, "x".repeat(5_000));
        let error = (0..1_000).fold(error, |error, n| error.violation(&format!("f{n}"), "no"));
        let headers = Status::of(&error).headers();
        let size: usize = headers.iter().map(|(_, value)| value.len()).sum();
        assert!(size < 8_000, "{size}");
        let status = read(&headers);
        assert_eq!(status.details.len(), 1, "the name stays");
        assert_eq!(status.details[0]["reason"], "CONTENT_TYPE_NOT_SUPPORTED");
    }
}
