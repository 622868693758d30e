//! Clients that wait for the run of their direct call. While a client is connected, its run reports
//! progress to it and asks it for input, as a call without a run would. Nothing of this is stored:
//! a run whose client is gone continues, and asks a person instead.

use crate::system::locks::lock;
use kernel::tool::call::{Abilities, CallReporter, InputResponses};
use kernel::values::ids::RunId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A connected client and its abilities.
#[derive(Debug, Clone, Default)]
pub struct Attendant {
    pub can: Abilities,
    pub teller: CallReporter,
    /// Input that it supplied with the call.
    pub given: InputResponses,
}

/// The clients that wait, by run.
#[derive(Debug, Default)]
pub(crate) struct Attendants {
    by_run: Mutex<HashMap<RunId, (u64, Attendant)>>,
    /// How many came so far.
    came: AtomicU64,
}

impl Attendants {
    /// One more client, until the attendance is dropped. The last one that came counts.
    pub(crate) fn attend(self: &Arc<Self>, run: RunId, attendant: Attendant) -> Attendance {
        let number = self.came.fetch_add(1, Ordering::Relaxed);
        lock(&self.by_run).insert(run, (number, attendant));
        Attendance { attending: self.clone(), run, number }
    }

    /// The client that waits for this run.
    pub(crate) fn of(&self, run: RunId) -> Option<Attendant> {
        lock(&self.by_run).get(&run).map(|(_, attendant)| attendant.clone())
    }
}

/// A client waits as long as this is there.
#[derive(Debug)]
pub struct Attendance {
    attending: Arc<Attendants>,
    run: RunId,
    number: u64,
}

impl Drop for Attendance {
    fn drop(&mut self) {
        let mut by_run = lock(&self.attending.by_run);
        // Another request of the client may have come for the same run.
        if by_run.get(&self.run).is_some_and(|(number, _)| *number == self.number) {
            by_run.remove(&self.run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_attendant_is_asked_and_none_after_it_left() {
        let attending = Arc::new(Attendants::default());
        let can = |can: Abilities| Attendant { can, ..Attendant::default() };
        let roots = Abilities { roots: true, ..Abilities::default() };
        let form = Abilities { form: true, ..Abilities::default() };
        assert!(attending.of(RunId(1)).is_none());
        let first = attending.attend(RunId(1), can(roots));
        let second = attending.attend(RunId(1), can(form));
        drop(first);
        assert_eq!(attending.of(RunId(1)).map(|attendant| attendant.can), Some(form));
        assert!(attending.of(RunId(2)).is_none());
        drop(second);
        assert!(attending.of(RunId(1)).is_none());
        assert!(lock(&attending.by_run).is_empty());
    }
}
