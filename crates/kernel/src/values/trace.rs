//! Where something stands in a distributed trace: the W3C trace context that comes in with a
//! request and goes out with whatever is done for it. Ids of our own spans are made from the ids of
//! what they are about, so that a process that takes a run over continues with the same trace.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// A span of a trace, as the next one names its parent: `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    pub trace: u128,
    pub span: u64,
    /// Whether the one who began the trace records it.
    pub sampled: bool,
}

/// A text that is no `traceparent`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a traceparent")]
pub struct BadTraceParent;

impl TraceParent {
    /// The same trace, seen from another span.
    #[must_use]
    pub fn at(self, span: u64) -> Self {
        Self { span, ..self }
    }
}

/// The id of the span that is about these parts; never zero, which the format forbids.
pub fn span_id(parts: &[&[u8]]) -> u64 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut first = [0; 8];
    first.copy_from_slice(&hash.finalize()[..8]);
    u64::from_be_bytes(first).max(1)
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

impl FromStr for TraceParent {
    type Err = BadTraceParent;

    /// Version 00, and what later versions have in common with it.
    fn from_str(text: &str) -> Result<Self, BadTraceParent> {
        let bytes = text.as_bytes();
        let plain = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
        let head = bytes.get(..55).filter(|head| head.iter().all(plain)).ok_or(BadTraceParent)?;
        let dashes = [2, 35, 52].iter().all(|at| head[*at] == b'-');
        let version = &text[..2];
        let longer = match bytes.get(55) {
            None => true,
            Some(next) => version != "00" && *next == b'-',
        };
        if !dashes || !longer || version == "ff" {
            return Err(BadTraceParent);
        }
        let trace = u128::from_str_radix(&text[3..35], 16).map_err(|_| BadTraceParent)?;
        let span = u64::from_str_radix(&text[36..52], 16).map_err(|_| BadTraceParent)?;
        let flags = u8::from_str_radix(&text[53..55], 16).map_err(|_| BadTraceParent)?;
        if trace == 0 || span == 0 {
            return Err(BadTraceParent);
        }
        Ok(Self { trace, span, sampled: flags & 1 == 1 })
    }
}

impl Serialize for TraceParent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceParent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_traceparent_round_trips() {
        let parent: TraceParent = TEXT.parse().unwrap();
        assert!(parent.sampled);
        assert_eq!(parent.to_string(), TEXT);
        let later = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more";
        assert!(!later.parse::<TraceParent>().unwrap().sampled);
    }

    #[test]
    fn an_invalid_traceparent_is_none() {
        for text in [
            "",
            "00",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0af7651916cd43dd8448eb211c80319c+b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319é-b7ad6b7169203331-01",
        ] {
            assert!(text.parse::<TraceParent>().is_err(), "{text}");
        }
    }

    #[test]
    fn span_ids_are_deterministic() {
        assert_eq!(span_id(&[b"run", b"1"]), span_id(&[b"run", b"1"]));
        assert_ne!(span_id(&[b"run", b"1"]), span_id(&[b"run1", b""]));
    }
}
