//! For whom something is read at this moment. A store is asked by realm: who asks within it decides
//! nothing about the answer, only about whose turn it is. So it is no argument of every contract,
//! but stands beside the future that is polled. What nobody asked for, such as a task of the server
//! itself, is read for no one.

use crate::values::caller::Caller;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;

thread_local! {
    /// For whom this thread polls.
    static CURRENT: Cell<Option<ReadsFor>> = const { Cell::new(None) };
}

/// For whom something is read: a caller within its realm.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReadsFor {
    subject: Arc<str>,
    /// The actor, if it is not the subject.
    actor: Option<Arc<str>>,
}

impl ReadsFor {
    /// This subject, or who calls for it.
    pub fn new(subject: Arc<str>, actor: Option<Arc<str>>) -> Self {
        Self { subject, actor }
    }

    pub fn of(caller: &Caller) -> Self {
        Self::new(caller.subject.clone(), caller.actor.clone())
    }

    /// For whom this thread polls at this moment.
    pub fn current() -> Option<Self> {
        let asker = replaced(None);
        let copy = asker.clone();
        drop(replaced(asker));
        copy
    }

    /// Reads are for this caller until the guard is dropped.
    pub fn enter(&self) -> ReadsForGuard {
        ReadsForGuard { before: replaced(Some(self.clone())), _thread: PhantomData }
    }
}

/// A future whose reads are for this caller; where there is none, for whom it is polled anyway.
pub async fn reading_for<F: Future>(asker: Option<ReadsFor>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let _entered = asker.as_ref().map(ReadsFor::enter);
        future.as_mut().poll(context)
    })
    .await
}

/// The end of what is read for someone. It stays on its thread.
#[derive(Debug)]
pub struct ReadsForGuard {
    before: Option<ReadsFor>,
    _thread: PhantomData<*const ()>,
}

impl Drop for ReadsForGuard {
    fn drop(&mut self) {
        drop(replaced(self.before.take()));
    }
}

/// Nothing is left to change on a thread that ends.
fn replaced(next: Option<ReadsFor>) -> Option<ReadsFor> {
    CURRENT.try_with(|current| current.replace(next)).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn reads_for_is_set_only_while_its_future_is_polled() {
        let ann = ReadsFor::of(&Caller::new("red", "ann"));
        let bob = ReadsFor::new("bob".into(), None);
        let current = || async { ReadsFor::current() };
        let nested = async {
            let inner = reading_for(Some(bob.clone()), current()).await;
            (inner, reading_for(None, current()).await)
        };
        let seen = reading_for(Some(ann.clone()), nested).now_or_never();
        assert_eq!(seen, Some((Some(bob), Some(ann))));
        assert_eq!(ReadsFor::current(), None);
    }

    #[test]
    fn a_panicking_future_resets_reads_for() {
        let ann = ReadsFor::of(&Caller::new("red", "ann"));
        let died = std::panic::catch_unwind(|| {
            let _entered = ann.enter();
            assert_eq!(ReadsFor::current(), None, "on purpose");
        });
        assert!(died.is_err());
        assert_eq!(ReadsFor::current(), None);
    }
}
