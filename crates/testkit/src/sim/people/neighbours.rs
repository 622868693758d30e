//! What the clients of a realm know of another realm on the same machine.

use crate::sim::judge::oracle::Oracle;
use crate::sim::outside::policy::SimPolicy;
use crate::sim::realms::{ANN, BOB};
use crate::sim::rng::Rng;
use kernel::tool::call::Caller;
use kernel::values::ids::RealmId;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// In so many cases of a hundred someone meddles instead of working.
const MEDDLES: u64 = 30;
/// In so many cases of a hundred it is the one who vanishes that gives a command.
const BOBS: u64 = 40;

/// What a realm's clients know of the other realm, and may do to both.
pub struct Neighbour {
    /// The other realm.
    pub realm: RealmId,
    /// What the world outside learned of it.
    pub oracle: Arc<Mutex<Oracle>>,
    /// The policy of both.
    pub policy: Arc<SimPolicy>,
    /// Whims that are not the other clients'.
    pub rng: Arc<Mutex<Rng>>,
}

impl Neighbour {
    /// Whether the next one meddles.
    pub fn meddles(&self) -> bool {
        self.rng().chance(MEDDLES)
    }

    /// Who gives the next command in a realm.
    pub fn someone(&self, realm: &RealmId) -> Caller {
        let is_bob = self.rng().chance(BOBS);
        Caller::new(realm.clone(), if is_bob { BOB } else { ANN })
    }

    /// A number below this one.
    pub fn below(&self, end: u64) -> u64 {
        self.rng().below(end)
    }

    /// One of these, if there are any.
    pub fn pick<T: Copy>(&self, items: &[T]) -> Option<T> {
        self.rng().pick(items).copied()
    }

    fn rng(&self) -> MutexGuard<'_, Rng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
