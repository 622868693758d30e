//! Requests that are under way, so that each can be cancelled and no one has too many.

use crate::answer::AnswerResult;
use crate::lock;
use edge::request::params::short;
use futures::future::{AbortHandle, Abortable, Aborted, BoxFuture};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use wire::jsonrpc::{INTERNAL_ERROR, INVALID_REQUEST, Id, RpcError};
use wire::mcp::CANCELLED;

/// How many requests of one client are under way at the same time, in each direction.
pub(crate) const REQUESTS_MAX: usize = 64;

/// Whether its client cancelled a request by name: one whose client is only gone was not.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cancelled(Arc<AtomicBool>);

impl Cancelled {
    /// Whether it did.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The requests of one client.
pub(crate) struct Requests {
    max: usize,
    under_way: UnderWay,
}

/// By id: how each is ended, and where it is noted that its client wanted that.
type UnderWay = Arc<Mutex<HashMap<Id, (AbortHandle, Cancelled)>>>;

impl Requests {
    /// Room for so many at the same time.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, under_way: Arc::default() }
    }

    /// The same request, under way until its future is over or gone, and cancelled by its id.
    pub(crate) fn begin(
        &self,
        id: &Id,
        cancelled: Cancelled,
        answering: BoxFuture<'static, AnswerResult>,
    ) -> Result<BoxFuture<'static, AnswerResult>, RpcError> {
        let (handle, registration) = AbortHandle::new_pair();
        let mut under_way = lock(&self.under_way);
        let count = under_way.len();
        match under_way.entry(id.clone()) {
            Entry::Occupied(_) => {
                let id = short(id.as_json());
                let message = format!("a request with the id {id} is under way; use another id");
                return Err(RpcError::new(INVALID_REQUEST, message));
            }
            Entry::Vacant(_) if count >= self.max => {
                let message = format!(
                    "{count} requests are under way, and no more are allowed; wait for one"
                );
                return Err(RpcError::new(INTERNAL_ERROR, message));
            }
            Entry::Vacant(place) => {
                place.insert((handle, cancelled));
            }
        }
        drop(under_way);
        let mark = RequestGuard { id: id.clone(), under_way: self.under_way.clone() };
        Ok(Box::pin(async move {
            let _mark = mark;
            match Abortable::new(answering, registration).await {
                Ok(answered) => answered,
                Err(Aborted) => Err(RpcError::new(CANCELLED, "the request was cancelled")),
            }
        }))
    }

    /// Cancels a request; one that is over already is left alone.
    pub(crate) fn cancel(&self, id: &Id) {
        if let Some((handle, cancelled)) = lock(&self.under_way).get(id) {
            cancelled.0.store(true, Ordering::Release);
            handle.abort();
        }
    }

    /// Ends all of them: their client is gone.
    pub(crate) fn end_all(&self) {
        lock(&self.under_way).values().for_each(|(handle, _)| handle.abort());
    }

    /// Whether none is under way.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.under_way).is_empty()
    }
}

/// Whether a request was cancelled: then no one waits for its answer.
pub(crate) fn is_cancelled(answered: &AnswerResult) -> bool {
    answered.as_ref().is_err_and(|error| error.code == CANCELLED)
}

/// A request's entry among those that are under way.
struct RequestGuard {
    id: Id,
    under_way: UnderWay,
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        lock(&self.under_way).remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Outcome;
    use futures::FutureExt;
    use futures::future::{pending, ready};

    fn quick() -> BoxFuture<'static, AnswerResult> {
        ready(Ok(Outcome::empty())).boxed()
    }

    #[test]
    fn a_request_can_be_cancelled_while_it_is_under_way() {
        let requests = Requests::new(2);
        let one = Id::number(1);
        let cancelled = Cancelled::default();
        let mut slow = requests.begin(&one, cancelled.clone(), pending().boxed()).unwrap();
        assert!((&mut slow).now_or_never().is_none());
        requests.cancel(&Id::number(2));
        assert!((&mut slow).now_or_never().is_none() && !cancelled.is_set());
        requests.cancel(&one);
        let answered = slow.now_or_never().unwrap();
        assert!(is_cancelled(&answered) && cancelled.is_set());
        assert!(requests.is_empty());
        let begin = |id: &Id| requests.begin(id, Cancelled::default(), quick());
        let done = begin(&one).unwrap().now_or_never().unwrap();
        assert!(!is_cancelled(&done) && requests.is_empty());
    }

    #[test]
    fn open_requests_are_bounded_and_have_distinct_ids() {
        let requests = Requests::new(2);
        let begin =
            |number: u64| requests.begin(&Id::number(number), Cancelled::default(), quick());
        let first = begin(1).unwrap();
        let same = begin(1).err().unwrap();
        assert_eq!(same.code, INVALID_REQUEST);
        let _second = begin(2).unwrap();
        let third = begin(3).err().unwrap();
        assert_eq!(third.code, INTERNAL_ERROR);
        drop(first);
        assert!(begin(3).is_ok());
        requests.end_all();
    }
}
