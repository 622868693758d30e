//! What a write did, as it is stored under its call id and told again.

use super::error::RecordError;
use super::requests::{Access, OUTCOME_KEPT_MS, Saved, Write};
use crate::evaluate::Row;
use kernel::values::ids::Millis;
use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// With the record as it was written, whole.
    Saved {
        record_type: String,
        is_new: bool,
        record: Value,
    },
    Deleted {
        record_type: String,
        count: u64,
    },
}

/// An outcome as it is stored under its call id.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptOutcome {
    outcome: Outcome,
    /// What the call asked for.
    asked: Option<String>,
}

impl KeptOutcome {
    pub fn new(outcome: &Outcome, write: &Write) -> Self {
        let asked = write.asked.as_ref().map(ToString::to_string);
        Self { outcome: outcome.clone(), asked }
    }

    pub fn to_json(&self) -> Value {
        let mut stored = self.outcome.to_json();
        if let Some(asked) = &self.asked {
            stored["asked"] = json!(asked);
        }
        stored
    }

    pub fn from_json(stored: &Value) -> Option<Self> {
        let asked = stored.get("asked").and_then(Value::as_str).map(str::to_owned);
        Some(Self { outcome: Outcome::from_json(stored)?, asked })
    }

    /// What the same call is told again, if it asks for the same.
    pub fn again(self, write: &Write) -> Result<Outcome, RecordError> {
        let asked = write.asked.as_ref().map(ToString::to_string);
        if self.asked == asked { Ok(self.outcome) } else { Err(RecordError::CallReused) }
    }
}

impl Outcome {
    fn to_json(&self) -> Value {
        match self {
            Outcome::Saved { record_type, is_new, record } => {
                json!({"type": record_type, "isNew": is_new, "record": record})
            }
            Outcome::Deleted { record_type, count } => {
                json!({"type": record_type, "deleted": count})
            }
        }
    }

    fn from_json(stored: &Value) -> Option<Self> {
        let record_type = stored.get("type")?.as_str()?.to_owned();
        if let Some(count) = stored.get("deleted") {
            return Some(Outcome::Deleted { record_type, count: count.as_u64()? });
        }
        let is_new = stored.get("isNew")?.as_bool()?;
        Some(Outcome::Saved { record_type, is_new, record: stored.get("record")?.clone() })
    }

    /// The answer to a save of this type, as its caller may see it now.
    pub fn saved(self, access: &Access, asked: &str) -> Result<Saved, RecordError> {
        let Outcome::Saved { record_type, is_new, mut record } = self else {
            return Err(RecordError::CallReused);
        };
        if record_type != asked {
            return Err(RecordError::CallReused);
        }
        let of_type = access.record_type(&record_type)?;
        let row = Row { realm: access.realm.as_str(), record: &record };
        if !access.scope.admits(of_type, row) {
            return Err(RecordError::NotFound);
        }
        let id = record.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let version = version_of(&record);
        access.scope.mask(of_type, &mut record);
        Ok(Saved { id, version, is_new, record })
    }

    /// How many records of this type a call deleted.
    pub fn deleted(self, asked: &str) -> Result<u64, RecordError> {
        match self {
            Outcome::Deleted { record_type, count } if record_type == asked => Ok(count),
            Outcome::Deleted { .. } | Outcome::Saved { .. } => Err(RecordError::CallReused),
        }
    }
}

/// Whether the outcome of a write is still told.
pub fn is_kept(written_at: Millis, now: Millis) -> bool {
    now < written_at.plus_ms(OUTCOME_KEPT_MS)
}

/// The version of a record that is stored.
pub fn version_of(record: &Value) -> u64 {
    record.get("version").and_then(Value::as_u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_read_as_it_was_stored() {
        let record_type = "shop.Order".to_owned();
        let record = json!({"id": "1"});
        let saved = Outcome::Saved { record_type: record_type.clone(), is_new: true, record };
        let deleted = Outcome::Deleted { record_type, count: 7 };
        for outcome in [saved, deleted] {
            assert_eq!(Outcome::from_json(&outcome.to_json()), Some(outcome));
        }
        assert_eq!(Outcome::from_json(&json!({"type": "x"})), None);
    }

    #[test]
    fn an_outcome_is_told_for_30_days() {
        let day = 24 * 60 * 60 * 1_000;
        assert!(is_kept(Millis(5), Millis(5 + 30 * day - 1)));
        assert!(!is_kept(Millis(5), Millis(5 + 30 * day)));
    }
}
