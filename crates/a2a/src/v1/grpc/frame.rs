//! Messages in their frames, and how long a client waits. Nothing is compressed: clients learn
//! so from a header, and send messages as they are.

use crate::error::{Result, invalid};
use axum::body::Bytes;
use axum::http::HeaderMap;
use kernel::values::ids::Millis;
use wire::a2a::error::{A2aError, ErrorKind};

/// Before each message: whether it is compressed, and its length in four bytes.
const PREFIX_BYTES: usize = 5;
/// How long the client waits: up to eight digits and a unit.
const TIMEOUT: &str = "grpc-timeout";
const DIGITS_MAX: usize = 8;

/// The status of a call that took too long.
pub(super) const LATE: &str = "DEADLINE_EXCEEDED";
pub(super) const LATE_WHY: &str =
    "the time of `grpc-timeout` is over; a task that was started continues, get it by its id";

/// A message as it goes out.
pub(super) fn framed(message: &[u8]) -> Bytes {
    // A length that does not fit would be of an answer of four gigabytes.
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    Bytes::from([&[0][..], &length.to_be_bytes()[..], message].concat())
}

/// The one message of a request.
pub(super) fn unframed(body: &Bytes) -> Result<Bytes> {
    let wrong = |why: &str| Err(invalid("message", why));
    let Some((prefix, message)) = body.split_first_chunk::<PREFIX_BYTES>() else {
        return wrong("a call has one message, with its length in front of it");
    };
    let [flag, length @ ..] = *prefix;
    match flag {
        0 => {}
        1 => {
            let why = "compressed messages are not taken; send them as they are";
            return Err(A2aError::new(ErrorKind::MethodNotFound, why));
        }
        _ => return wrong("the first byte of a message says whether it is compressed: 0 or 1"),
    }
    match message.len() as u64 == u64::from(u32::from_be_bytes(length)) {
        true => Ok(body.slice(PREFIX_BYTES..)),
        false => wrong("the length in front of the message is not that of the message"),
    }
}

/// Until when the client waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deadline(Millis);

impl Deadline {
    /// The one that the headers name, if they do.
    pub(super) fn of(headers: &HeaderMap, now: Millis) -> Result<Option<Self>> {
        let Some(sent) = headers.get(TIMEOUT) else { return Ok(None) };
        let ms = sent.to_str().ok().and_then(timeout_ms);
        let ms = ms.ok_or_else(|| {
            invalid(TIMEOUT, "`grpc-timeout` is a number of up to eight digits and a unit")
        })?;
        Ok(Some(Self(now.plus_ms(ms))))
    }

    /// How much of it is left.
    pub(super) fn left_ms(self, now: Millis) -> u64 {
        self.0.0.saturating_sub(now.0).max(0).unsigned_abs()
    }
}

/// What is finer than a millisecond is rounded up.
fn timeout_ms(text: &str) -> Option<u64> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    if digits.is_empty() || digits.len() > DIGITS_MAX || !is_number {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => number * 3_600_000,
        "M" => number * 60_000,
        "S" => number * 1_000,
        "m" => number,
        "u" => number.div_ceil(1_000),
        "n" => number.div_ceil(1_000_000),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_same_out_of_its_frame() {
        for message in [&b""[..], b"a", &[7; 70_000]] {
            assert_eq!(unframed(&framed(message)).unwrap(), message);
        }
        for (bytes, kind) in [
            (&b""[..], ErrorKind::InvalidParams),
            (b"\x00\x00\x00\x00", ErrorKind::InvalidParams),
            (b"\x00\x00\x00\x00\x02a", ErrorKind::InvalidParams),
            (b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", ErrorKind::InvalidParams),
            (b"\x07\x00\x00\x00\x01a", ErrorKind::InvalidParams),
            (b"\x01\x00\x00\x00\x01a", ErrorKind::MethodNotFound),
        ] {
            assert_eq!(unframed(&Bytes::from_static(bytes)).unwrap_err().kind, kind, "{bytes:?}");
        }
    }

    #[test]
    fn timeouts_are_read_in_every_unit() {
        for (text, ms) in
            [("1H", 3_600_000), ("2M", 120_000), ("3S", 3_000), ("4m", 4), ("5u", 1), ("6n", 1)]
        {
            assert_eq!(timeout_ms(text), Some(ms), "{text}");
        }
        for text in ["", "S", "1", "1s", "123456789S", "-1S", "1.5S", "\u{e4}"] {
            assert_eq!(timeout_ms(text), None, "{text}");
        }
        assert_eq!(timeout_ms("99999999H"), Some(359_999_996_400_000));
        let deadline = Deadline(Millis(1_000));
        assert_eq!((deadline.left_ms(Millis(400)), deadline.left_ms(Millis(2_000))), (600, 0));
    }
}
