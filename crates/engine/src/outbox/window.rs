//! The events of a sink between the oldest that is not settled and the newest that is read, and
//! which of them can go next. Pure: it knows no sink, no store and no clock. What waits does so by
//! the time that has passed, so that a clock that is set holds up nothing.

use kernel::contracts::cloud::CloudEvent;
use kernel::values::ids::{Millis, SessionId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// A sequence that is delivered in order: one session's events, or all if the sink keeps the feed's
/// order.
pub(super) type Lane = Option<SessionId>;

/// The tries of an event so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attempts {
    pub(super) attempts: u32,
    pub(super) first_at: Millis,
    pub(super) last_at: Millis,
    /// How many of them speak against the event, not against the sink.
    pub(super) against: u32,
}

/// Events of one lane that go out together.
#[derive(Debug, PartialEq)]
pub(super) struct Batch {
    pub(super) lane: Lane,
    /// At least one.
    pub(super) events: Vec<CloudEvent>,
    /// Of the first of them; one that was tried before goes alone.
    pub(super) tried: Option<Attempts>,
}

#[derive(Debug)]
pub(super) struct Window {
    is_one_lane: bool,
    lanes: BTreeMap<Lane, Queue>,
    /// Lanes that can send now, each once, in order of waiting.
    ready: VecDeque<Lane>,
    /// Lanes that wait until their first event is tried again.
    waiting: BTreeSet<(Duration, Lane)>,
    /// The rows with an unsettled event.
    rows: BTreeMap<u64, Row>,
    /// How many unsettled events they have.
    unsettled: usize,
    /// How large they are.
    bytes: usize,
    /// How many events were taken so far.
    taken: usize,
    /// The row up to which the feed is read.
    read_to: u64,
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<CloudEvent>,
    /// Of the first of them.
    tried: Option<Attempts>,
}

#[derive(Debug)]
struct Row {
    unsettled: usize,
    bytes: usize,
    /// How many events were taken before it.
    before: usize,
}

impl Window {
    /// An empty one after this row of the feed.
    pub(super) fn new(position: u64, is_one_lane: bool) -> Self {
        Self {
            is_one_lane,
            lanes: BTreeMap::new(),
            ready: VecDeque::new(),
            waiting: BTreeSet::new(),
            rows: BTreeMap::new(),
            unsettled: 0,
            bytes: 0,
            taken: 0,
            read_to: position,
        }
    }

    /// Takes what the next row tells, which is so large.
    pub(super) fn take(&mut self, cursor: u64, events: Vec<CloudEvent>, bytes: usize) {
        self.pass(cursor);
        if events.is_empty() {
            return;
        }
        let unsettled = events.len();
        self.rows.insert(cursor, Row { unsettled, bytes, before: self.taken });
        self.unsettled += unsettled;
        self.taken += unsettled;
        self.bytes += bytes;
        for event in events {
            let lane = if self.is_one_lane { None } else { Some(event.session) };
            // A lane that is there is under way, waits, or is ready already.
            let is_new = !self.lanes.contains_key(&lane);
            self.lanes.entry(lane).or_default().events.push_back(event);
            if is_new {
                self.ready.push_back(lane);
            }
        }
    }

    /// Up to this row there is nothing more.
    pub(super) fn pass(&mut self, cursor: u64) {
        self.read_to = self.read_to.max(cursor);
    }

    /// The row up to which everything is settled.
    pub(super) fn position(&self) -> u64 {
        self.rows.first_key_value().map_or(self.read_to, |(cursor, _)| cursor.saturating_sub(1))
    }

    /// How many unsettled events are in it.
    pub(super) fn unsettled(&self) -> usize {
        self.unsettled
    }

    /// The size of the rows that they are of.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many events were taken from the oldest unsettled one on, settled or not. The row of that
    /// event counts whole.
    pub(super) fn ahead(&self) -> usize {
        self.rows.first_key_value().map_or(0, |(_, row)| self.taken - row.before)
    }

    /// The next batch that can be sent, at most so many events.
    pub(super) fn next(&mut self, max: usize) -> Option<Batch> {
        let lane = self.ready.pop_front()?;
        let queue = self.lanes.get_mut(&lane)?;
        let tried = queue.tried.take();
        let count = if tried.is_some() { 1 } else { max.clamp(1, queue.events.len().max(1)) };
        let events = queue.events.drain(..count.min(queue.events.len())).collect();
        Some(Batch { lane, events, tried })
    }

    /// An event is delivered, or has failed.
    pub(super) fn settle(&mut self, event: &CloudEvent) {
        let Some(row) = self.rows.get_mut(&event.cursor) else { return };
        self.unsettled -= 1;
        row.unsettled -= 1;
        if row.unsettled == 0 {
            self.bytes -= row.bytes;
            self.rows.remove(&event.cursor);
        }
    }

    /// The event is settled without another try, if a lane waits to try it again.
    pub(super) fn settle_waiting(&mut self, id: &str) -> bool {
        let is_first = |lane: &Lane| {
            let first = self.lanes.get(lane).and_then(|queue| queue.events.front());
            first.is_some_and(|event| event.id == id)
        };
        let Some(waits) = self.waiting.iter().find(|(_, lane)| is_first(lane)).copied() else {
            return false;
        };
        self.waiting.remove(&waits);
        let queue = self.lanes.get_mut(&waits.1);
        let first = queue.and_then(|queue| {
            queue.tried = None;
            queue.events.pop_front()
        });
        first.iter().for_each(|event| self.settle(event));
        self.free(waits.1, Vec::new());
        true
    }

    /// The lane is free again. What was not settled goes back to its front.
    pub(super) fn free(&mut self, lane: Lane, back: Vec<CloudEvent>) {
        let Some(queue) = self.lanes.get_mut(&lane) else { return };
        back.into_iter().rev().for_each(|event| queue.events.push_front(event));
        if queue.events.is_empty() {
            self.lanes.remove(&lane);
        } else {
            self.ready.push_back(lane);
        }
    }

    /// The lane waits until then, to try its first event again.
    pub(super) fn wait(
        &mut self,
        lane: Lane,
        back: Vec<CloudEvent>,
        tried: Attempts,
        then: Duration,
    ) {
        let Some(queue) = self.lanes.get_mut(&lane) else { return };
        back.into_iter().rev().for_each(|event| queue.events.push_front(event));
        queue.tried = Some(tried);
        self.waiting.insert((then, lane));
    }

    /// Lets those go whose time has come.
    pub(super) fn wake(&mut self, now: Duration) {
        while let Some((then, _)) = self.waiting.first()
            && *then <= now
        {
            self.ready.extend(self.waiting.pop_first().map(|(_, lane)| lane));
        }
    }

    /// When the next of them may go.
    pub(super) fn next_wake(&self) -> Option<Duration> {
        self.waiting.first().map(|(then, _)| *then)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn event(session: u128, seq: u64, cursor: u64) -> CloudEvent {
        CloudEvent {
            id: format!("{session}.{seq}"),
            kind: "a".to_owned(),
            source: "s".to_owned(),
            subject: "k".to_owned(),
            at: Millis(0),
            realm: "r".into(),
            session: SessionId(session),
            seq,
            cursor,
            data: Value::Null,
        }
    }

    /// Rows 1 to 4: sessions 1, 2, 1 twice, 2.
    fn window(is_one_lane: bool) -> Window {
        let mut window = Window::new(0, is_one_lane);
        window.take(1, vec![event(1, 1, 1)], 10);
        window.take(2, vec![event(2, 1, 2)], 10);
        window.take(3, vec![event(1, 2, 3), event(1, 3, 3)], 10);
        window.take(4, vec![event(2, 2, 4)], 10);
        window
    }

    /// Tried once.
    const ONCE: Attempts =
        Attempts { attempts: 1, first_at: Millis(5), last_at: Millis(5), against: 0 };

    const AT_NINE: Duration = Duration::from_millis(9);
    const AT_TEN: Duration = Duration::from_millis(10);

    fn ids(batch: &Batch) -> Vec<&str> {
        batch.events.iter().map(|event| event.id.as_str()).collect()
    }

    fn done(window: &mut Window, batch: Batch) {
        batch.events.iter().for_each(|event| window.settle(event));
        window.free(batch.lane, Vec::new());
    }

    #[test]
    fn events_are_sent_in_order_per_session_and_sessions_in_parallel() {
        let mut window = window(false);
        let one = window.next(1).unwrap();
        let two = window.next(1).unwrap();
        assert_eq!((ids(&one), ids(&two)), (vec!["1.1"], vec!["2.1"]));
        assert_eq!(window.next(1), None, "both lanes are under way");
        done(&mut window, two);
        assert_eq!(window.position(), 0, "the first row is not settled");
        let two = window.next(9).unwrap();
        assert_eq!(ids(&two), ["2.2"]);
        done(&mut window, one);
        assert_eq!((window.position(), window.unsettled(), window.ahead()), (2, 3, 3));
        assert_eq!(window.bytes(), 20);
        let one = window.next(9).unwrap();
        assert_eq!(ids(&one), ["1.2", "1.3"]);
        done(&mut window, two);
        assert_eq!(window.position(), 2);
        done(&mut window, one);
        assert_eq!((window.position(), window.unsettled(), window.next(1)), (4, 0, None));
        assert_eq!((window.bytes(), window.ahead()), (0, 0));
        assert!(window.lanes.is_empty());
    }

    #[test]
    fn one_lane_keeps_the_order_of_the_feed() {
        let mut window = window(true);
        let batch = window.next(3).unwrap();
        assert_eq!(ids(&batch), ["1.1", "2.1", "1.2"]);
        assert_eq!(window.next(3), None);
        done(&mut window, batch);
        assert_eq!(window.position(), 2, "half of the third row is left");
        assert_eq!(ids(&window.next(3).unwrap()), ["1.3", "2.2"]);
    }

    #[test]
    fn retried_events_are_sent_first_and_alone() {
        let mut window = window(true);
        let batch = window.next(3).unwrap();
        window.wait(batch.lane, batch.events, ONCE, AT_TEN);
        window.wake(AT_NINE);
        assert_eq!((window.next(3), window.next_wake()), (None, Some(AT_TEN)));
        // What comes meanwhile stands behind it.
        window.take(5, vec![event(3, 1, 5)], 10);
        assert_eq!(window.next(3), None);
        window.wake(AT_TEN);
        let again = window.next(3).unwrap();
        assert_eq!((ids(&again), again.tried), (vec!["1.1"], Some(ONCE)));
        done(&mut window, again);
        let rest = window.next(9).unwrap();
        assert_eq!((ids(&rest), rest.tried), (vec!["2.1", "1.2", "1.3", "2.2", "3.1"], None));
    }

    #[test]
    fn a_waiting_session_does_not_block_others_and_fills_the_window() {
        let mut window = window(false);
        let one = window.next(1).unwrap();
        window.wait(one.lane, one.events, ONCE, AT_TEN);
        let two = window.next(9).unwrap();
        assert_eq!(ids(&two), ["2.1", "2.2"]);
        done(&mut window, two);
        assert_eq!((window.next(9), window.position()), (None, 0));
        assert_eq!((window.unsettled(), window.bytes()), (3, 20), "only what is there takes room");
        assert_eq!(window.ahead(), 5, "what is settled behind an unsettled event counts");
    }

    #[test]
    fn a_waiting_event_can_be_settled_and_its_lane_continues() {
        let mut window = window(false);
        let one = window.next(1).unwrap();
        assert!(!window.settle_waiting("1.1"), "it is under way");
        window.wait(one.lane, one.events, ONCE, AT_TEN);
        assert!(!window.settle_waiting("1.2"), "it is not the first");
        assert!(window.settle_waiting("1.1"));
        assert_eq!((window.position(), window.next_wake()), (1, None));
        let two = window.next(1).unwrap();
        let one = window.next(9).unwrap();
        assert_eq!((ids(&two), ids(&one), one.tried), (vec!["2.1"], vec!["1.2", "1.3"], None));
    }

    #[test]
    fn rows_without_events_advance_the_position() {
        let mut window = Window::new(7, false);
        assert_eq!(window.position(), 7);
        window.take(9, Vec::new(), 10);
        window.pass(12);
        assert_eq!((window.position(), window.unsettled(), window.bytes()), (12, 0, 0));
        window.take(13, vec![event(1, 1, 13)], 10);
        window.take(14, Vec::new(), 10);
        assert_eq!(window.position(), 12);
    }
}
