//! What the tools on records work with.

use super::refusal::refused;
use kernel::contracts::{Clock, Entropy};
use kernel::tool::call::{Call, Caller, ToolError};
use kernel::values::canonical;
use kernel::values::ids::ContentHash;
use kernel::values::members::take;
use query::records::Records;
use query::records::faults::of_reach;
use query::records::names::fresh_id;
use query::records::reach::{Reach, ReachError, ReachRequest, RecordAccess, RecordAct, Visible};
use query::records::requests::Write;
use serde_json::Value;
use std::sync::Arc;

/// What the tools on records work with.
#[derive(Clone)]
pub struct RecordTools {
    /// Decides how far callers reach.
    pub access: Arc<dyn RecordAccess>,
    pub records: Arc<dyn Records>,
    pub clock: Arc<dyn Clock>,
    /// For the ids of new records.
    pub entropy: Arc<dyn Entropy>,
}

/// The type that a call names, and the realm, if it names one.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) root_type: &'a str,
    pub(super) realm: Option<&'a str>,
}

impl RecordTools {
    pub(super) fn reach(
        &self,
        caller: &Caller,
        target: Target<'_>,
        act: RecordAct,
    ) -> Result<Reach, ToolError> {
        let Target { root_type, realm } = target;
        let request = ReachRequest { caller, record_type: root_type, act, realm };
        self.access.reach(request).map_err(|error| refused(of_reach(&error)))
    }

    /// All types that the caller may read.
    pub(super) fn visible(
        &self,
        caller: &Caller,
        realm: Option<&str>,
    ) -> Result<Visible, ToolError> {
        let own = caller.realm.as_str();
        if let Some(named) = realm.filter(|named| *named != own) {
            let other = ReachError::OtherRealm { realm: own.to_owned(), named: named.to_owned() };
            return Err(refused(of_reach(&other)));
        }
        self.access.visible(caller).map_err(|error| refused(of_reach(&error)))
    }

    /// Who writes, and under which id the outcome is stored: that of the call, which stays the same
    /// when the call is repeated.
    pub(super) fn write(&self, reach: &Reach, call: &Call) -> Write {
        Write {
            author: reach.author.clone(),
            at: self.clock.now(),
            call: Some(call.id),
            asked: Some(asked(call)),
        }
    }

    pub(super) fn fresh_id(&self) -> String {
        fresh_id(self.clock.now(), (self.entropy.bits() >> 64) as u64)
    }
}

/// A hash of a call's arguments. Which version a record must have is a condition that an endpoint
/// can look up anew for a repeat, and is no part of it.
fn asked(call: &Call) -> ContentHash {
    let mut arguments = (*call.arguments).clone();
    for place in ["", "/entity"] {
        if let Some(members) = arguments.pointer_mut(place).and_then(Value::as_object_mut) {
            take(members, "version");
        }
    }
    ContentHash::of(canonical::text(&arguments).as_bytes())
}
