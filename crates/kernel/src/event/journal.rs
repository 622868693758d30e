//! Events of a journal and their parsing. Upgrades of events that released programs wrote belong
//! here.

use super::Fact;
use crate::values::ids::Millis;
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, IntoDeserializer, MapAccess, Visitor,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// The version that this release writes, for every type.
pub const VERSION: u16 = 1;

/// One fact of one session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// Its place in the session's journal, from 1.
    pub seq: u64,
    /// When it was recorded.
    pub at: Millis,
    /// The version of its type.
    pub v: u16,
    /// What happened.
    #[serde(flatten)]
    pub fact: Fact,
}

/// Read member by member: `flatten` would keep all of the fact in memory before it is read.
impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EventVisitor)
    }
}

struct EventVisitor;

impl<'de> Visitor<'de> for EventVisitor {
    type Value = Event;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Event, A::Error> {
        let mut header = EventHeader::default();
        let members = FactMembers { map, header: &mut header };
        let fact = Fact::deserialize(MapAccessDeserializer::new(members))?;
        let missing = A::Error::missing_field;
        Ok(Event {
            seq: header.seq.ok_or_else(|| missing("seq"))?,
            at: header.at.ok_or_else(|| missing("at"))?,
            v: header.v.ok_or_else(|| missing("v"))?,
            fact,
        })
    }
}

/// What an event says beside its fact.
#[derive(Default)]
struct EventHeader {
    seq: Option<u64>,
    at: Option<Millis>,
    v: Option<u16>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Member {
    Seq,
    At,
    V,
    Type,
    Data,
    #[serde(other)]
    Unknown,
}

/// The members of an event that are its fact's. The others are taken on the way.
struct FactMembers<'p, A> {
    map: A,
    header: &'p mut EventHeader,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for FactMembers<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let name = loop {
            match self.map.next_key()? {
                None => return Ok(None),
                Some(Member::Seq) => once(&mut self.header.seq, "seq", &mut self.map)?,
                Some(Member::At) => once(&mut self.header.at, "at", &mut self.map)?,
                Some(Member::V) => once(&mut self.header.v, "v", &mut self.map)?,
                Some(Member::Type) => break "type",
                Some(Member::Data) => break "data",
                Some(Member::Unknown) => {
                    self.map.next_value::<IgnoredAny>()?;
                }
            }
        };
        seed.deserialize(name.into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Reads a member that may be there once.
fn once<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    member: &mut Option<T>,
    name: &'static str,
    map: &mut A,
) -> Result<(), A::Error> {
    match member.replace(map.next_value()?) {
        None => Ok(()),
        Some(_) => Err(A::Error::duplicate_field(name)),
    }
}

/// A journal row that this release cannot read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} of type `{kind}` v{version} cannot be read by this release: {why}")]
pub struct Unreadable {
    /// Its sequence, 0 if even that is unknown.
    pub seq: u64,
    pub kind: String,
    pub version: u64,
    pub why: String,
}

/// Reads one journal row: all events of one append.
pub fn read(row: &str) -> Result<Vec<Event>, Unreadable> {
    let events: Vec<Event> = match serde_json::from_str(row) {
        Ok(events) => events,
        Err(error) => return Err(explain(row, &error)),
    };
    match events.iter().find(|event| event.v != VERSION) {
        None => Ok(events),
        Some(event) => Err(Unreadable {
            seq: event.seq,
            kind: "known".to_owned(),
            version: u64::from(event.v),
            why: format!("this release reads v{VERSION}"),
        }),
    }
}

/// Reads one event out of a journal row; none where this release cannot read it.
pub fn read_one(event: &str) -> Option<Event> {
    let event: Option<Event> = serde_json::from_str(event).ok();
    event.filter(|event| event.v == VERSION)
}

/// Finds the first event of the row that cannot be read.
fn explain(row: &str, error: &serde_json::Error) -> Unreadable {
    let values: Vec<Value> = serde_json::from_str(row).unwrap_or_default();
    let faulty = values.iter().find_map(|value| {
        let why = Event::deserialize(value).err()?.to_string();
        Some(Unreadable {
            seq: value["seq"].as_u64().unwrap_or_default(),
            kind: value["type"].as_str().unwrap_or("?").to_owned(),
            version: value["v"].as_u64().unwrap_or_default(),
            why,
        })
    });
    faulty.unwrap_or_else(|| Unreadable {
        seq: 0,
        kind: "?".to_owned(),
        version: 0,
        why: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> Event {
        let fact = Fact::TimerFired { timer: "t".to_owned() };
        Event { seq: 7, at: Millis(1), v: VERSION, fact }
    }

    #[test]
    fn an_event_is_read_in_any_member_order() {
        let written = serde_json::to_string(&event()).unwrap();
        assert_eq!(written, r#"{"seq":7,"at":1,"v":1,"type":"timer.fired","data":{"timer":"t"}}"#);
        for text in [
            written.as_str(),
            r#"{"type":"timer.fired","data":{"timer":"t"},"v":1,"at":1,"seq":7}"#,
            r#"{"data":{"timer":"t"},"seq":7,"type":"timer.fired","more":[1],"at":1,"v":1}"#,
        ] {
            assert_eq!(read_one(text), Some(event()), "{text}");
            assert_eq!(read(&format!("[{text}]")), Ok(vec![event()]), "{text}");
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(Event::deserialize(&value).unwrap(), event(), "{text}");
        }
    }

    #[test]
    fn an_incomplete_event_is_unreadable() {
        for text in [
            r#"{"at":1,"v":1,"type":"timer.fired","data":{"timer":"t"}}"#,
            r#"{"seq":7,"at":1,"v":1,"data":{"timer":"t"}}"#,
            r#"{"seq":7,"at":1,"v":1,"type":"timer.fired"}"#,
            r#"{"seq":7,"seq":7,"at":1,"v":1,"type":"timer.fired","data":{"timer":"t"}}"#,
            r#"{"seq":7,"at":1,"v":1,"type":"Tomorrow","data":{}}"#,
            r#"{"seq":7,"at":1,"v":2,"type":"timer.fired","data":{"timer":"t"}}"#,
            "[7]",
        ] {
            assert_eq!(read_one(text), None, "{text}");
        }
    }
}
