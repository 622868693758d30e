//! Active calls of servers that send messages of a call outside of its response: over a pipe all
//! messages share one channel, and a handshake server may use the general stream. A message that
//! can belong to one call only is given to that call.

use super::line::{Incoming, PeerErrorKind, Replies, Result};
use crate::lock;
use futures::future::BoxFuture;
use kernel::contracts::{Clock, Spawn};
use kernel::tool::call::CallProgress;
use kernel::values::ids::Millis;
use serde_json::Value;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use tokio::sync::mpsc;

/// How many messages wait for the reader of a call's replies; the line before it has its own queue.
const REPLIES_MAX: usize = 16;

/// For how long a server may still ask for a call that was left: it was notified, and may not have
/// read it yet. What it asks meanwhile may belong to that call. Not much longer: no other call that
/// shares the connection can be asked anything outside of its answer until then.
pub(super) const LEFT_MS: u64 = 3_000;

/// A call that is being sent.
pub(crate) type CallFuture = BoxFuture<'static, Result<Replies>>;

/// The calls of one server that are under way.
pub(crate) struct Calls {
    open: Mutex<OpenCalls>,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct OpenCalls {
    made: u64,
    calls: BTreeMap<u64, Call>,
    /// When a call was last left without its answer.
    left_at: Option<Millis>,
}

impl OpenCalls {
    /// Whether a call was left for which the server may still ask: lately, or right now, and its
    /// task has yet to notice. A clock that was set back does not prolong it, and that is
    /// remembered.
    fn is_in_doubt(&mut self, now: Millis) -> bool {
        self.left_at = self.left_at.map(|at| at.min(now));
        let is_being_left = self.calls.values().any(|call| call.replies.is_closed());
        is_being_left || self.left_at.is_some_and(|at| now < at.plus_ms(LEFT_MS))
    }

    /// The only call that someone reads. One that was given up counts no more, although its task
    /// has yet to notice.
    fn only(&self) -> Option<&Call> {
        let mut read = self.calls.values().filter(|call| !call.replies.is_closed());
        let first = read.next();
        first.filter(|_| read.next().is_none())
    }
}

struct Call {
    tool: Option<Arc<str>>,
    /// The token under which progress of this call is reported.
    token: Option<Value>,
    replies: mpsc::Sender<Incoming>,
}

impl Calls {
    /// None yet.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { open: Mutex::default(), clock }
    }

    /// The replies of a call that is being opened, and with them whatever else turns out to belong
    /// to it.
    pub(crate) fn join(
        self: &Arc<Self>,
        tool: Option<Arc<str>>,
        token: Option<Value>,
        opening: CallFuture,
        spawn: &dyn Spawn,
    ) -> Replies {
        let (replies, joined) = mpsc::channel(REPLIES_MAX);
        let number = {
            let mut open = lock(&self.open);
            open.made += 1;
            let number = open.made;
            open.calls.insert(number, Call { tool, token, replies: replies.clone() });
            number
        };
        let entry = Entry { calls: self.clone(), number, is_answered: false };
        spawn.task("upstream call", Box::pin(pass_on(opening, replies, entry)));
        joined.into()
    }

    /// Gives a message to the call that it names by its token; back where there is none.
    pub(crate) fn give_by_token(&self, incoming: Incoming) -> Result<(), Incoming> {
        let token = match &incoming {
            Incoming::Notification { params, .. } => params["progressToken"].clone(),
            _ => Value::Null,
        };
        let open = lock(&self.open);
        let named = |call: &&Call| !token.is_null() && call.token.as_ref() == Some(&token);
        give(open.calls.values().find(named), incoming)
    }

    /// Gives a message to the only call; back where there is none, or several.
    pub(crate) fn give_to_the_only(&self, incoming: Incoming) -> Result<(), Incoming> {
        give(lock(&self.open).only(), incoming)
    }

    /// Gives a question to the call that must have asked it: the only one, and no other was left
    /// lately. Back where that is not certain.
    pub(crate) fn give_question(&self, incoming: Incoming) -> Result<(), Incoming> {
        let now = self.clock.now();
        // One lock for both: else a call could be left in between.
        let mut open = lock(&self.open);
        if open.is_in_doubt(now) { Err(incoming) } else { give(open.only(), incoming) }
    }

    /// Whether a call was left lately for which the server may still ask.
    pub(crate) fn is_in_doubt(&self) -> bool {
        let now = self.clock.now();
        lock(&self.open).is_in_doubt(now)
    }

    /// The tools that are being called.
    pub(crate) fn tools(&self) -> Vec<Arc<str>> {
        lock(&self.open).calls.values().filter_map(|call| call.tool.clone()).collect()
    }
}

fn give(call: Option<&Call>, incoming: Incoming) -> Result<(), Incoming> {
    match call {
        Some(call) => call.replies.try_send(incoming).map_err(|refused| refused.into_inner()),
        None => Err(incoming),
    }
}

/// A call's place among those under way, for as long as it lasts.
struct Entry {
    calls: Arc<Calls>,
    number: u64,
    /// Whether the server is done with it.
    is_answered: bool,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let now = self.calls.clock.now();
        let mut open = lock(&self.calls.open);
        open.calls.remove(&self.number);
        if !self.is_answered {
            open.left_at = Some(now);
        }
    }
}

/// Whether a server has no more to say or to ask of a call that ended so.
fn is_over(last: &Incoming) -> bool {
    match last {
        Incoming::Result(_) | Incoming::Error(_) => true,
        Incoming::Broken(error) => {
            let was_read = matches!(error.kind, PeerErrorKind::TooLarge | PeerErrorKind::NotMcp);
            was_read || error.how == CallProgress::NotSent
        }
        Incoming::Notification { .. } | Incoming::Request { .. } => false,
    }
}

/// Passes replies on until the answer, or until no one reads them any more: then the request is
/// dropped, and so cancelled.
async fn pass_on(opening: CallFuture, to: mpsc::Sender<Incoming>, mut entry: Entry) {
    let passing = async {
        let mut from = match opening.await {
            Ok(from) => from,
            Err(error) => return Some(Incoming::Broken(error)),
        };
        loop {
            match from.recv().await? {
                last @ (Incoming::Result(_) | Incoming::Error(_) | Incoming::Broken(_)) => {
                    return Some(last);
                }
                told => to.send(told).await.ok()?,
            }
        }
    };
    let last = tokio::select! {
        biased;
        () = to.closed() => None,
        last = passing => last,
    };
    entry.is_answered = last.as_ref().is_some_and(is_over);
    // Before it is known that the call is over, so that the next one is alone.
    drop(entry);
    if let Some(last) = last {
        // The one who waited for it may have gone.
        let _ = to.send(last).await;
    }
}

/// Messages that a server sends outside of any request.
pub(crate) struct ServerMessages {
    line: Option<mpsc::Receiver<Incoming>>,
    /// Messages that came with an answer but belong to no request.
    aside: mpsc::Receiver<Incoming>,
}

impl ServerMessages {
    /// News from both.
    pub(crate) fn new(
        line: Option<mpsc::Receiver<Incoming>>,
        aside: mpsc::Receiver<Incoming>,
    ) -> Self {
        Self { line, aside }
    }

    /// The next piece of news; none, once, when the line has no more.
    pub(crate) async fn next(&mut self) -> Option<Incoming> {
        poll_fn(|context| {
            if let Poll::Ready(Some(incoming)) = self.aside.poll_recv(context) {
                return Poll::Ready(Some(incoming));
            }
            let Some(line) = &mut self.line else { return Poll::Pending };
            let heard = line.poll_recv(context);
            if let Poll::Ready(None) = heard {
                self.line = None;
            }
            heard
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Stage;
    use futures::FutureExt;
    use std::future::pending;
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::time::Duration;
    use wire::jsonrpc::Id;

    /// A clock that is set.
    #[derive(Default)]
    struct Set(AtomicI64);

    impl Clock for Set {
        fn now(&self) -> Millis {
            Millis(self.0.load(Ordering::SeqCst))
        }

        fn elapsed(&self) -> Duration {
            Duration::ZERO
        }

        fn sleep_until(&self, _: Millis) -> BoxFuture<'static, ()> {
            Box::pin(pending())
        }
    }

    fn question() -> Incoming {
        let method = "elicitation/create".to_owned();
        Incoming::Request { id: Id::number(1), method, params: Value::Null }
    }

    /// Keeps tasks and runs none of them, like an executor that has no time yet.
    #[derive(Default)]
    struct Late(Mutex<Vec<BoxFuture<'static, ()>>>);

    impl Spawn for Late {
        fn task(&self, _: &'static str, future: BoxFuture<'static, ()>) {
            self.0.lock().unwrap().push(future);
        }

        fn thread(&self, name: &'static str, future: BoxFuture<'static, ()>) {
            self.task(name, future);
        }
    }

    #[test]
    fn an_abandoned_call_does_not_make_questions_ambiguous() {
        let calls = Arc::new(Calls::new(Arc::new(Stage::new())));
        let late = Late::default();
        let begun = || calls.join(None, None, Box::pin(pending()), &late);
        let told = || Incoming::Notification { method: "told".to_owned(), params: Value::Null };
        let given_up = begun();
        let _read = begun();
        assert_eq!(calls.give_to_the_only(told()), Err(told()), "it could be of either");
        drop(given_up);
        assert_eq!(calls.give_to_the_only(told()), Ok(()));
    }

    #[test]
    fn a_question_of_an_abandoned_call_reaches_no_other_call() {
        let clock = Arc::new(Set::default());
        let calls = Arc::new(Calls::new(clock.clone()));
        let late = Late::default();
        let begun = || calls.join(None, None, Box::pin(pending()), &late);
        let left = begun();
        let mut other = begun();
        // Its task has not noticed yet, and the other one is alone.
        drop(left);
        assert_eq!(calls.give_question(question()), Err(question()), "it may be of either");
        drop(late.0.lock().unwrap().remove(0));
        assert_eq!(calls.give_question(question()), Err(question()), "it may be on its way");
        clock.0.store(LEFT_MS.cast_signed(), Ordering::SeqCst);
        assert_eq!(calls.give_question(question()), Ok(()));
        assert_eq!(other.recv().now_or_never(), Some(Some(question())));
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_prolong_ambiguity() {
        let clock = Arc::new(Set::default());
        let calls = Arc::new(Calls::new(clock.clone()));
        let late = Late::default();
        let at = |ms: i64| {
            clock.0.store(ms, Ordering::SeqCst);
            calls.is_in_doubt()
        };
        assert!(!at(9_000_000));
        drop(calls.join(None, None, Box::pin(pending()), &late));
        drop(late.0.lock().unwrap().remove(0));
        assert!(at(9_000_001) && at(1_000), "a call was left");
        assert!(at(1_000 + LEFT_MS.cast_signed() - 1));
        assert!(!at(1_000 + LEFT_MS.cast_signed()), "no longer than the server may take");
    }
}
