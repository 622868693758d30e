//! Fair queue for processor time. A runtime polls tasks in the order in which they were woken, so
//! whoever has the most sessions that move would get the most time. Here only a few drivers are
//! handed to the runtime at a time. The next one is of another realm, and within its realm of
//! another caller.

use super::Holder;
use crate::refusal::{Quota, Refusal, RefusalCode, Result};
use crate::system::locks::lock;
use kernel::identity::fair_queue::FairQueue;
use kernel::identity::reads_for::reading_for;
use kernel::tool::call::Caller;
use kernel::values::ids::{RealmId, SessionKey};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

/// How many futures of one caller may wait for a poll, for each worker, before it starts no more.
const WAITING_PER_WORKER_MAX: usize = 128;

/// The queue. None of it exists in local mode, where nothing is shared.
pub(crate) struct Processor {
    /// How many futures the runtime has at a time.
    slots: usize,
    queue: Mutex<Queue>,
}

/// Futures that were woken and have no slot. While one waits, all slots are taken.
#[derive(Default)]
struct Queue {
    taken: usize,
    waiting: FairQueue<RealmId, Holder, Arc<QueuedFuture>>,
}

/// One future in turn, and its waker. Its place is looked at and changed under the queue's lock
/// only, which is taken first.
struct QueuedFuture {
    processor: Arc<Processor>,
    by: Holder,
    slot: Mutex<QueueState>,
}

struct QueueState {
    state: State,
    /// Wakes the task that polls the future.
    task: Option<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not woken.
    Idle,
    /// Woken, without a slot.
    Waiting,
    /// It has a slot, and its task was woken.
    Granted,
    Polled,
    WokenWhilePolled,
    Ended,
}

impl Processor {
    /// A queue in front of so many threads that poll.
    pub(crate) fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self { slots: workers.max(1), queue: Mutex::default() })
    }

    /// Refuses a caller of whose futures so many wait that it should start no more.
    pub(crate) fn check(&self, caller: &Caller) -> Result<()> {
        let by = Holder::caller(caller);
        let max = WAITING_PER_WORKER_MAX * self.slots;
        if lock(&self.queue).waiting.of_caller(&by.realm, &by) < max {
            return Ok(());
        }
        let message = format!("this caller may have {max} sessions that wait for processor time");
        let max = u64::try_from(max).unwrap_or(u64::MAX);
        let quota = Quota { of: "waiting-runs", max, window_s: None };
        Err(Refusal::new(RefusalCode::RunsActiveMax(Box::new(quota)), message)
            .hint("send it again in a moment"))
    }
}

/// The holder of a session driver's polls: who moved it, or else its owner.
pub(crate) fn driving(key: &SessionKey, mover: Option<&Caller>) -> Holder {
    match mover {
        Some(caller) => Holder::caller(caller),
        None => Holder { subject: key.owner.clone(), ..Holder::realm(&key.realm) },
    }
}

/// Runs a future whose polls go in turn, and what it reads with them; at once where there is no
/// queue. The future must be a task of its own: one that is woken and then not polled would keep
/// its slot.
pub(crate) async fn in_turn<F: Future>(
    processor: Option<&Arc<Processor>>,
    by: Holder,
    future: F,
) -> F::Output {
    let asker = by.asker().filter(|_| processor.is_some());
    let turn = processor.map(|processor| {
        let slot = QueueState { state: State::Idle, task: None };
        let processor = processor.clone();
        Entry(Arc::new(QueuedFuture { processor, by, slot: Mutex::new(slot) }))
    });
    let waker = turn.as_ref().map(|turn| Waker::from(turn.0.clone()));
    let mut future = pin!(reading_for(asker, future));
    poll_fn(|context| match (&turn, &waker) {
        (Some(turn), Some(waker)) => turn.poll(context, waker, future.as_mut()),
        _ => future.as_mut().poll(context),
    })
    .await
}

/// A future's entry: whatever ends the future gives back its slot.
struct Entry(Arc<QueuedFuture>);

impl Entry {
    fn poll<F: Future>(
        &self,
        context: &Context<'_>,
        waker: &Waker,
        future: Pin<&mut F>,
    ) -> Poll<F::Output> {
        if !self.0.begin(context.waker()) {
            return Poll::Pending;
        }
        let _slot = Slot(&self.0);
        future.poll(&mut Context::from_waker(waker))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.0.change(|queue, turn| {
            let mut slot = lock(&turn.slot);
            let before = std::mem::replace(&mut slot.state, State::Ended);
            // The task owns its future, which owns this.
            slot.task = None;
            drop(slot);
            if before == State::Granted { queue.free_slot() } else { None }
        });
    }
}

/// The slot of a future that is being polled. A panic gives it back too.
struct Slot<'a>(&'a Arc<QueuedFuture>);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.change(|queue, turn| {
            let mut slot = lock(&turn.slot);
            let is_woken = slot.state == State::WokenWhilePolled;
            slot.state = if is_woken { State::Waiting } else { State::Idle };
            drop(slot);
            if is_woken {
                queue.push(turn.clone());
            }
            queue.free_slot()
        });
    }
}

impl QueuedFuture {
    /// Changes the queue, and then wakes the task that got a slot by it.
    fn change(self: &Arc<Self>, change: impl FnOnce(&mut Queue, &Arc<Self>) -> Option<Waker>) {
        let woken = change(&mut lock(&self.processor.queue), self);
        if let Some(task) = woken {
            task.wake();
        }
    }

    /// Whether the future is polled now. If not, its task is woken when it has a slot.
    fn begin(self: &Arc<Self>, task: &Waker) -> bool {
        let mut queue = lock(&self.processor.queue);
        let mut slot = lock(&self.slot);
        match &mut slot.task {
            Some(known) => known.clone_from(task),
            none => *none = Some(task.clone()),
        }
        match slot.state {
            State::Granted => slot.state = State::Polled,
            State::Idle if queue.taken < self.processor.slots => {
                queue.taken += 1;
                slot.state = State::Polled;
            }
            State::Idle => {
                slot.state = State::Waiting;
                drop(slot);
                queue.push(self.clone());
                return false;
            }
            State::Waiting | State::Polled | State::WokenWhilePolled | State::Ended => {
                return false;
            }
        }
        true
    }
}

impl Wake for QueuedFuture {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.change(|queue, turn| {
            let mut slot = lock(&turn.slot);
            match slot.state {
                State::Idle if queue.taken < turn.processor.slots => {
                    queue.taken += 1;
                    slot.state = State::Granted;
                    return slot.task.clone();
                }
                State::Idle => {
                    slot.state = State::Waiting;
                    drop(slot);
                    queue.push(turn.clone());
                }
                State::Polled => slot.state = State::WokenWhilePolled,
                State::Waiting | State::Granted | State::WokenWhilePolled | State::Ended => {}
            }
            None
        });
    }
}

impl Queue {
    fn push(&mut self, turn: Arc<QueuedFuture>) {
        let by = turn.by.clone();
        self.waiting.push(&by.realm, &by, turn);
    }

    /// Gives a slot that is free again to the next future; the waker of its task.
    fn free_slot(&mut self) -> Option<Waker> {
        while let Some(next) = self.waiting.pop() {
            let mut slot = lock(&next.slot);
            if slot.state == State::Waiting {
                slot.state = State::Granted;
                return slot.task.clone();
            }
        }
        self.taken -= 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::clock::{SystemClock, TokioSpawn, timeout, yield_now};
    use crate::system::panics::caught;
    use futures::StreamExt;
    use futures::stream::FuturesUnordered;
    use kernel::contracts::Spawn;
    use kernel::identity::reads_for::ReadsFor;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::mpsc;

    fn holder(realm: &str, subject: &str) -> Holder {
        Holder::caller(&Caller::new(realm, subject))
    }

    /// A future that is polled so often, and notes its name each time.
    async fn noted(name: &'static str, polls: usize, log: Arc<Mutex<Vec<&'static str>>>) {
        for _ in 0..polls {
            lock(&log).push(name);
            yield_now().await;
        }
    }

    async fn dies() {
        panic!("on purpose");
    }

    /// The polls of many futures of two callers of one realm, and of one future of another realm.
    #[tokio::test]
    async fn polls_go_round_by_realm_and_then_by_caller() {
        let processor = Processor::new(1);
        let log = Arc::<Mutex<Vec<_>>>::default();
        let callers = [("red", "ann"); 20].into_iter().chain([("red", "bob"), ("blue", "eve")]);
        // Each is polled only when it is woken, as a task is.
        let futures: FuturesUnordered<_> = callers
            .map(|(realm, subject)| {
                let noted = noted(subject, 10, log.clone());
                in_turn(Some(&processor), holder(realm, subject), noted)
            })
            .collect();
        futures.collect::<Vec<()>>().await;
        let log = lock(&log);
        let last = |name| log.iter().rposition(|noted| *noted == name).unwrap();
        // Two callers of one realm have as many polls as the one of the other.
        assert!(last("eve") < 2 * 10 + 22, "{log:?}");
        assert!(last("bob") < 4 * 10 + 22, "{log:?}");
        assert_eq!(log.len(), 220, "and none is lost");
    }

    #[tokio::test]
    async fn a_future_that_ends_panics_or_is_dropped_gives_back_its_slot() {
        let processor = Processor::new(1);
        let by = || holder("red", "ann");
        in_turn(Some(&processor), by(), async {}).await;
        let panics = in_turn(Some(&processor), by(), dies());
        assert!(caught(pin!(panics)).await.is_err());
        let mut granted = Box::pin(in_turn(Some(&processor), by(), yield_now()));
        let mut waiting = Box::pin(in_turn(Some(&processor), by(), yield_now()));
        let mut context = Context::from_waker(Waker::noop());
        assert!(granted.as_mut().poll(&mut context).is_pending(), "woken, it has the slot again");
        assert!(waiting.as_mut().poll(&mut context).is_pending(), "waits for it");
        assert_eq!(lock(&processor.queue).taken, 1);
        drop(granted);
        assert!(waiting.as_mut().poll(&mut context).is_pending(), "polled once, and woken");
        assert!(waiting.as_mut().poll(&mut context).is_ready());
        drop(waiting);
        let queue = lock(&processor.queue);
        assert_eq!((queue.taken, queue.waiting.is_empty()), (0, true));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_wake_is_lost_between_threads() {
        const TASKS: usize = 64;
        const ROUNDS: usize = 500;
        let processor = Processor::new(2);
        let done = Arc::new(AtomicUsize::new(0));
        let spawn = TokioSpawn::new(tokio::runtime::Handle::current());
        let (ends, mut ended) = mpsc::channel::<()>(1);
        for number in 0..TASKS {
            let processor = processor.clone();
            let done = done.clone();
            let ends = ends.clone();
            let realm = ["red", "blue", "green"][number % 3];
            let (sender, mut receiver) = mpsc::channel(1);
            // Wakes the other one from another thread, at any moment of its polls.
            let waking = async move {
                for _ in 0..ROUNDS {
                    sender.send(()).await.unwrap();
                }
            };
            spawn.task("waking", Box::pin(waking));
            let working = async move {
                let work = async {
                    while receiver.recv().await.is_some() {
                        done.fetch_add(1, Ordering::Relaxed);
                        yield_now().await;
                    }
                };
                in_turn(Some(&processor), holder(realm, "ann"), work).await;
                drop(ends);
            };
            spawn.task("working", Box::pin(working));
        }
        drop(ends);
        let all = timeout(&SystemClock, 120_000, ended.recv()).await;
        assert_eq!(all, Some(None), "all futures end within two minutes");
        assert_eq!(done.load(Ordering::Relaxed), TASKS * ROUNDS);
        assert_eq!(lock(&processor.queue).taken, 0);
    }

    #[tokio::test]
    async fn a_scheduled_future_reads_for_its_caller() {
        let processor = Processor::new(1);
        let by = holder("red", "ann");
        let seen = in_turn(Some(&processor), by, async { ReadsFor::current() }).await;
        assert_eq!(seen, Some(ReadsFor::of(&Caller::new("red", "ann"))));
        assert_eq!(ReadsFor::current(), None);
    }

    #[test]
    fn a_caller_whose_futures_all_wait_starts_no_more() {
        let processor = Processor::new(1);
        let mut context = Context::from_waker(Waker::noop());
        let by = || holder("red", "ann");
        let mut futures: Vec<_> = (0..=WAITING_PER_WORKER_MAX)
            .map(|_| Box::pin(in_turn(Some(&processor), by(), yield_now())))
            .collect();
        let ann = Caller::new("red", "ann");
        for future in &mut futures {
            processor.check(&ann).unwrap();
            assert!(future.as_mut().poll(&mut context).is_pending());
        }
        let refusal = processor.check(&ann).unwrap_err();
        let max = WAITING_PER_WORKER_MAX as u64;
        let quota = Quota { of: "waiting-runs", max, window_s: None };
        assert_eq!((refusal.code.name(), refusal.code.quota()), ("runs_active_max", Some(quota)));
        assert!(refusal.message.contains("128 sessions that wait"), "{}", refusal.message);
        processor.check(&Caller::new("red", "bob")).unwrap();
        processor.check(&Caller::new("blue", "ann")).unwrap();
    }
}
