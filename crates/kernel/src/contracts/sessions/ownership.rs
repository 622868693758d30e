//! Which sessions must be driven, and which process owns each.

use crate::contracts::Read;
use crate::journal::projection::ParkedSession;
use crate::values::ids::{Fence, Millis, SessionKey};

/// Who drives what. An append says whether its session is owned afterwards: it is while something
/// of it moves, and its owner alone continues with it. A session at rest belongs to no one.
pub trait Ownership: Send + Sync {
    /// Up to so many sessions that should be driven now: those whose owner is gone first, then
    /// those of no one whose time has come, then those that this process owns and may have in hand
    /// already. No one else drives them from then on.
    fn claim(&self, now: Millis, limit: usize) -> Read<'_, Vec<SessionKey>>;

    /// Leaves a session alone until then, although it should be driven, and notes why; its next
    /// append ends that. Its fence moves on; durable on return.
    fn park<'a>(&'a self, key: &'a SessionKey, parked: ParkedSession) -> Read<'a, ()>;

    /// Lets a session that waits for a time be driven at this one instead, unless something was
    /// appended to it after this fence. It is no change of the session; durable on return.
    fn postpone<'a>(&'a self, key: &'a SessionKey, fence: Fence, at: Millis) -> Read<'a, ()>;

    /// The nearest time after this one at which a session should be driven.
    fn next_wake(&self, after: Millis) -> Read<'_, Option<Millis>>;
}
