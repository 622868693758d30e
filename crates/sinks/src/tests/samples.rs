//! What tests of sinks need: events, a clock that stands still, and threads.
#![allow(clippy::disallowed_methods, reason = "the threads here are the test's `Spawn`")]

use futures::future::BoxFuture;
use kernel::contracts::cloud::CloudEvent;
use kernel::contracts::{Clock, Spawn};
use kernel::values::ids::{Millis, SessionId};
use serde_json::json;

/// The `seq`-th event of a session.
pub(crate) fn event(seq: u64) -> CloudEvent {
    CloudEvent {
        id: format!("{}.{seq}", SessionId(1)),
        kind: "TradeRepaired".to_owned(),
        source: "events.out".to_owned(),
        subject: "T-100".to_owned(),
        at: Millis(1_700_000_000_000),
        realm: "default".into(),
        session: SessionId(1),
        seq,
        cursor: seq,
        data: json!({"type": "TradeRepaired", "line": "one\ntwo"}),
    }
}

/// A clock that stands still.
pub(crate) struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Millis {
        Millis(1_614_265_330_999)
    }

    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }

    fn sleep_until(&self, _then: Millis) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// Real threads.
pub(crate) struct Threads;

impl Spawn for Threads {
    fn task(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        self.thread(name, future);
    }

    fn thread(&self, _name: &'static str, future: BoxFuture<'static, ()>) {
        std::thread::spawn(move || futures::executor::block_on(future));
    }
}
