//! The connections that are open: how many there may be, and which of them has to go. One that
//! works for a request stays. One that waits for its client may do so for a limited time, and when
//! all places are taken, the connection that has waited longest makes room for a new one.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// How many connections are open at the same time, however many descriptors there are.
pub const CONNECTIONS_MAX: usize = 10_000;
/// There are at least so many, however few descriptors there are.
const CONNECTIONS_MIN: usize = 8;
/// How many descriptors are kept for the store, upstream servers and files.
const DESCRIPTORS_RESERVED: u64 = 256;

/// How long a new connection may take to send its first byte.
const FIRST_BYTE_WAIT_S: u64 = 10;
/// How long the rest of a request's head may take after its first byte.
const HEAD_WAIT_S: u64 = 30;
/// How long a connection stays open between two requests.
const IDLE_WAIT_S: u64 = 75;
/// How long a client may read nothing of an answer that is on its way.
const UNREAD_WAIT_S: u64 = 30;
/// How often it is logged that the system gives no more sockets.
const LOG_EVERY_S: u64 = 5;

/// How many connections fit where the process may have so many descriptors.
pub fn connections_within(descriptors: u64) -> usize {
    let free = descriptors - DESCRIPTORS_RESERVED.min(descriptors / 4);
    usize::try_from(free).unwrap_or(usize::MAX).clamp(CONNECTIONS_MIN, CONNECTIONS_MAX)
}

/// What a connection waits for its client to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientWait {
    /// To send anything at all.
    FirstByte,
    /// To send the rest of a request's head.
    Head,
    /// To send another request.
    Request,
    /// To read an answer.
    Reading,
}

impl ClientWait {
    fn seconds(self) -> u64 {
        match self {
            Self::FirstByte => FIRST_BYTE_WAIT_S,
            Self::Head => HEAD_WAIT_S,
            Self::Request => IDLE_WAIT_S,
            Self::Reading => UNREAD_WAIT_S,
        }
    }

    /// Whether nothing is lost if the connection is closed: no request is being answered.
    fn is_idle(self) -> bool {
        self != Self::Reading
    }
}

/// The other end of a connection; every request on it carries it in its extensions.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    pub address: SocketAddr,
}

impl Peer {
    /// What the system says of a connection. An IPv4 client is one also at a listener of IPv6.
    pub fn new(address: SocketAddr) -> Self {
        Self { address: SocketAddr::new(address.ip().to_canonical(), address.port()) }
    }
}

/// The connections of all listeners. What changes with every request has a lock of its connection's
/// own, so that connections do not wait for each other.
pub struct Connections {
    max: usize,
    /// Seconds since the start. They are counted and not read from a clock, which can be set back.
    second: AtomicU64,
    /// The last number that was given to a wait.
    waits: AtomicU64,
    open: Mutex<HashMap<u64, Arc<OpenConnection>>>,
    /// How many are open.
    count: AtomicUsize,
    /// When it was last logged that no connection can be accepted.
    logged_at_s: Mutex<Option<u64>>,
    /// Told when a place may have become free, or a connection can be closed.
    changed: Notify,
}

/// An open connection.
struct OpenConnection {
    wait: Mutex<Wait>,
    hang_up: Notify,
}

/// What a connection waits for, and since when.
struct Wait {
    /// What its request needs next; nothing while it is worked for.
    stage: Option<ClientWait>,
    /// How many requests it works for.
    works: u32,
    /// Several requests may be on their way: what is heard need not be a head.
    is_multiplexed: bool,
    /// The socket takes no more of what is to be sent.
    stalled: bool,
    /// How many answers its client has made no room for.
    unread: u32,
    /// The number of this wait: the lower, the longer.
    number: u64,
    /// The second from which on it has waited too long.
    due: u64,
    /// It is to be closed, unless a request comes first.
    leaving: bool,
}

impl Wait {
    fn awaited(&self) -> Option<ClientWait> {
        if self.stalled || self.unread > 0 { Some(ClientWait::Reading) } else { self.stage }
    }

    /// Whether it may be closed for another one.
    fn is_idle(&self) -> bool {
        !self.leaving && self.awaited().is_some_and(ClientWait::is_idle)
    }
}

impl OpenConnection {
    fn wait(&self) -> MutexGuard<'_, Wait> {
        locked(&self.wait)
    }

    fn is_leaving(&self) -> bool {
        self.wait().leaving
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connections {
    /// Places for so many.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            second: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            open: Mutex::default(),
            count: AtomicUsize::new(0),
            logged_at_s: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// A place for one more. Where all are taken, the connection that has been idle longest is
    /// closed; where none is idle, this waits.
    pub async fn enter(self: &Arc<Self>) -> ConnectionGuard {
        let mut asked = None;
        loop {
            // Made before the look, so that no change after it is missed.
            let changed = self.changed.notified();
            if let Some(line) = self.try_enter(&mut asked) {
                return line;
            }
            changed.await;
        }
    }

    /// A place, if there is one; else a connection is asked to leave, unless the one that was asked
    /// before still has to.
    fn try_enter(
        self: &Arc<Self>,
        asked: &mut Option<Arc<OpenConnection>>,
    ) -> Option<ConnectionGuard> {
        let mut all = locked(&self.open);
        if all.len() < self.max {
            let open = Arc::new(self.begin());
            let number = open.wait().number;
            all.insert(number, open.clone());
            self.count.store(all.len(), Ordering::SeqCst);
            return Some(ConnectionGuard { connections: self.clone(), number, open });
        }
        if !asked.as_ref().is_some_and(|open| open.is_leaving()) {
            *asked = close_longest_idle(&all);
        }
        None
    }

    /// A connection whose client has sent nothing yet.
    fn begin(&self) -> OpenConnection {
        let wait = Wait {
            stage: None,
            works: 0,
            is_multiplexed: false,
            stalled: false,
            unread: 0,
            number: 0,
            due: 0,
            leaving: false,
        };
        let open = OpenConnection { wait: Mutex::new(wait), hang_up: Notify::new() };
        self.change(&open, |wait| wait.stage = Some(ClientWait::FirstByte));
        open
    }

    /// Closes the connection that has been idle longest, because the system has no more
    /// descriptors.
    pub fn make_room(&self) {
        close_longest_idle(&locked(&self.open));
    }

    /// A second has passed: closes what has waited too long.
    pub fn tick(&self) {
        let second = self.second.fetch_add(1, Ordering::Relaxed) + 1;
        for open in locked(&self.open).values() {
            let mut wait = open.wait();
            if wait.awaited().is_some() && wait.due <= second && !wait.leaving {
                wait.leaving = true;
                open.hang_up.notify_one();
            }
        }
    }

    /// Whether it is time to log once more that no connection can be accepted.
    pub fn may_log(&self) -> bool {
        let second = self.second.load(Ordering::Relaxed);
        let mut logged_at_s = locked(&self.logged_at_s);
        let may = logged_at_s.is_none_or(|last| second >= last + LOG_EVERY_S);
        if may {
            *logged_at_s = Some(second);
        }
        may
    }

    /// Changes a connection. Its wait begins again only if it waits for something else.
    fn change(&self, open: &OpenConnection, change: impl FnOnce(&mut Wait)) {
        let mut wait = open.wait();
        let before = wait.awaited();
        change(&mut wait);
        let now = wait.awaited();
        if now == before {
            return;
        }
        match now {
            Some(awaited) => {
                wait.number = self.waits.fetch_add(1, Ordering::Relaxed) + 1;
                wait.due = self.second.load(Ordering::Relaxed) + awaited.seconds();
            }
            // A request came just before it was closed, or its client reads again.
            None => wait.leaving = false,
        }
        drop(wait);
        if self.count.load(Ordering::SeqCst) >= self.max {
            self.changed.notify_waiters();
        }
    }
}

/// The connection that is to be closed, if there is an idle one.
fn close_longest_idle(all: &HashMap<u64, Arc<OpenConnection>>) -> Option<Arc<OpenConnection>> {
    let idle = |open: &&Arc<OpenConnection>| {
        let wait = open.wait();
        wait.is_idle().then_some(wait.number)
    };
    let (_, open) =
        all.values().filter_map(|open| Some((idle(&open)?, open))).min_by_key(|(wait, _)| *wait)?;
    open.wait().leaving = true;
    open.hang_up.notify_one();
    Some(open.clone())
}

/// A connection's place. It is free again when this is dropped.
pub struct ConnectionGuard {
    connections: Arc<Connections>,
    /// By which it is found among the open ones.
    number: u64,
    open: Arc<OpenConnection>,
}

impl ConnectionGuard {
    fn change(&self, change: impl FnOnce(&mut Wait)) {
        self.connections.change(&self.open, change);
    }

    /// The client sent something.
    pub fn heard(&self) {
        self.change(|wait| {
            let is_head = match wait.stage {
                Some(ClientWait::FirstByte) => true,
                Some(ClientWait::Request) => !wait.is_multiplexed,
                Some(ClientWait::Head | ClientWait::Reading) | None => false,
            };
            if is_head {
                wait.stage = Some(ClientWait::Head);
            }
        });
    }

    /// Whether the socket takes no more of what is to be sent.
    pub fn stalled(&self, stalled: bool) {
        self.change(|wait| wait.stalled = stalled);
    }

    /// A request is here; it is worked for until the guard is dropped.
    pub fn work(self: &Arc<Self>) -> Work {
        self.change(|wait| {
            wait.stage = None;
            wait.works += 1;
        });
        Work { line: self.clone(), is_unread: false }
    }

    /// The same for one of several requests that may be on their way.
    pub fn stream(self: &Arc<Self>) -> Work {
        self.open.wait().is_multiplexed = true;
        self.work()
    }

    /// The client made room for an answer, or wants no more of it. As long as it reads any of them,
    /// the others have their time again.
    fn read_again(&self) {
        let due = self.connections.second.load(Ordering::Relaxed) + UNREAD_WAIT_S;
        self.change(|wait| {
            wait.unread = wait.unread.saturating_sub(1);
            wait.due = due;
        });
    }

    /// Waits until the connection is to be closed.
    pub async fn hung_up(&self) {
        loop {
            self.open.hang_up.notified().await;
            if self.open.is_leaving() {
                return;
            }
        }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let mut all = locked(&self.connections.open);
        all.remove(&self.number);
        self.connections.count.store(all.len(), Ordering::SeqCst);
        drop(all);
        // The one who asked it to leave asks another one, if its place is taken already.
        self.open.wait().leaving = false;
        self.connections.changed.notify_waiters();
    }
}

/// A request that is worked for: its connection is not idle.
pub struct Work {
    line: Arc<ConnectionGuard>,
    /// A piece of its answer waits for room at the client.
    is_unread: bool,
}

impl Work {
    /// A piece of its answer is to be sent.
    pub fn offered(&mut self) {
        if !std::mem::replace(&mut self.is_unread, true) {
            self.line.change(|wait| wait.unread += 1);
        }
    }

    /// The client has room for more.
    pub fn taken(&mut self) {
        if std::mem::take(&mut self.is_unread) {
            self.line.read_again();
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.taken();
        self.line.change(|wait| {
            wait.works = wait.works.saturating_sub(1);
            if wait.works == 0 {
                wait.stage = Some(ClientWait::Request);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn opened(connections: &Arc<Connections>) -> Arc<ConnectionGuard> {
        Arc::new(connections.enter().now_or_never().expect("a place"))
    }

    fn is_hung_up(line: &ConnectionGuard) -> bool {
        line.hung_up().now_or_never().is_some()
    }

    fn pass(connections: &Connections, seconds: u64) {
        for _ in 0..seconds {
            connections.tick();
        }
    }

    #[test]
    fn some_descriptors_are_kept_for_the_store() {
        let all = [0, 8, 100, 1_024, 4_096, 10_256, 1_048_576, u64::MAX];
        let fit = all.map(connections_within);
        assert_eq!(fit, [8, 8, 75, 768, 3_840, 10_000, 10_000, 10_000]);
    }

    #[test]
    fn the_connection_that_is_idle_longest_makes_room() {
        let connections = Connections::new(3);
        let lines = [(); 3].map(|()| opened(&connections));
        // The first one is answered, so the second has been silent for longest.
        drop(lines[0].work());
        let mut entering = Box::pin(connections.enter());
        assert!(entering.as_mut().now_or_never().is_none());
        assert_eq!(lines.each_ref().map(|line| is_hung_up(line)), [false, true, false]);
        let [first, second, third] = lines;
        drop(second);
        assert!(entering.now_or_never().is_some(), "its place is free");
        drop((first, third));
    }

    #[test]
    fn a_connection_that_works_is_not_closed_and_a_new_one_waits() {
        let connections = Connections::new(1);
        let line = opened(&connections);
        let work = line.work();
        let mut entering = Box::pin(connections.enter());
        assert!(entering.as_mut().now_or_never().is_none());
        pass(&connections, 1_000);
        assert!(!is_hung_up(&line));
        drop(work);
        assert!(entering.as_mut().now_or_never().is_none());
        assert!(is_hung_up(&line));
    }

    #[test]
    fn a_request_that_comes_just_before_the_end_is_answered() {
        let connections = Connections::new(2);
        let asked = opened(&connections);
        let other = opened(&connections);
        let mut entering = Box::pin(connections.enter());
        assert!(entering.as_mut().now_or_never().is_none());
        let work = asked.work();
        assert!(!is_hung_up(&asked));
        assert!(entering.as_mut().now_or_never().is_none());
        assert!(is_hung_up(&other), "the next one goes instead");
        drop(work);
    }

    #[test]
    fn each_wait_for_a_client_has_its_own_time() {
        let connections = Connections::new(8);
        let [silent, head, idle, unread, working] = [(); 5].map(|()| opened(&connections));
        head.heard();
        drop(idle.work());
        let answering = unread.work();
        unread.stalled(true);
        let work = working.work();
        let all = [&silent, &head, &idle, &unread, &working];
        let mut seen = Vec::new();
        for second in 1..=IDLE_WAIT_S {
            connections.tick();
            // More of a head brings no more time.
            head.heard();
            let hung = all.iter().enumerate().filter(|(_, line)| is_hung_up(line));
            seen.extend(hung.map(|(index, _)| (second, index)));
        }
        assert_eq!(seen, [(10, 0), (30, 1), (30, 3), (75, 2)]);
        drop((answering, work));
    }

    #[test]
    fn a_connection_with_several_requests_is_idle_after_the_last() {
        let connections = Connections::new(1);
        let line = opened(&connections);
        let first = line.stream();
        let second = line.stream();
        drop(first);
        pass(&connections, 1_000);
        assert!(!is_hung_up(&line), "the second one is still worked for");
        drop(second);
        // Pings and the like are no head of a request, and bring no more time either.
        pass(&connections, IDLE_WAIT_S - 1);
        line.heard();
        assert!(!is_hung_up(&line));
        connections.tick();
        assert!(is_hung_up(&line));
    }

    #[test]
    fn a_client_that_reads_none_of_its_answers_is_closed() {
        let connections = Connections::new(1);
        let line = opened(&connections);
        let mut first = line.stream();
        let mut second = line.stream();
        first.offered();
        second.offered();
        for _ in 0..10 {
            // One that is read gives the other one its time again.
            pass(&connections, UNREAD_WAIT_S - 1);
            second.taken();
            second.offered();
        }
        assert!(!is_hung_up(&line));
        pass(&connections, UNREAD_WAIT_S);
        assert!(is_hung_up(&line));
        drop((first, second));
    }

    #[test]
    fn a_client_that_reads_again_keeps_its_connection() {
        let connections = Connections::new(1);
        let line = opened(&connections);
        let work = line.work();
        line.stalled(true);
        pass(&connections, UNREAD_WAIT_S - 1);
        line.stalled(false);
        line.stalled(true);
        pass(&connections, UNREAD_WAIT_S - 1);
        assert!(!is_hung_up(&line));
        connections.tick();
        assert!(is_hung_up(&line));
        drop(work);
    }

    #[test]
    fn an_ipv4_client_has_one_address() {
        let peer = |text: &str| Peer::new(text.parse().unwrap()).address.to_string();
        assert_eq!(peer("[::ffff:10.0.0.7]:5"), "10.0.0.7:5");
        assert_eq!([peer("10.0.0.7:5"), peer("[fd00::1]:5")], ["10.0.0.7:5", "[fd00::1]:5"]);
    }

    #[test]
    fn a_system_without_sockets_is_logged_now_and_then() {
        let connections = Connections::new(1);
        assert_eq!([connections.may_log(), connections.may_log()], [true, false]);
        pass(&connections, LOG_EVERY_S);
        assert_eq!([connections.may_log(), connections.may_log()], [true, false]);
    }
}
