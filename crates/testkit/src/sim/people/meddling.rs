//! What the clients of a realm do where another shares the machine: they change the policy, let a
//! subject vanish, and try the ids of the other realm. What one realm is shown holds nothing of the
//! other.

use crate::sim::coverage::Seen;
use crate::sim::people::clients::{Clients, locked};
use crate::sim::people::neighbours::Neighbour;
use crate::sim::realms::BOB;
use engine::{Refusal, RefusalKind};
use kernel::ask::Reply;
use kernel::contracts::SessionRef;
use kernel::tool::call::Caller;
use kernel::values::ids::SessionKey;
use std::fmt;

/// How many events of a session are looked at.
const EVENTS: usize = 10;

impl Clients {
    /// Changes the policy of its realm, or who is known there, or tries ids of the other realm.
    pub(in crate::sim) async fn meddle(&self, neighbour: &Neighbour) {
        match neighbour.below(100) {
            0..35 => neighbour.policy.change(&self.realm),
            35..65 => neighbour.policy.turn(&Caller::new(self.realm.clone(), BOB)),
            _ => self.intrude(neighbour).await,
        }
    }

    /// Ids of the other realm are like made-up ones, whatever is done with them.
    async fn intrude(&self, neighbour: &Neighbour) {
        let (runs, sessions, asks) = locked(&neighbour.oracle).known();
        let by = self.caller();
        if let Some(run) = neighbour.pick(&runs) {
            let runs = || self.engine.runs();
            self.must_not_be("run", runs().report(&by, run).await);
            self.must_not_be("run", runs().cancel(&by, run).await);
            self.must_not_be("run", runs().continue_run(&by, run).await);
        }
        if let Some(session) = neighbour.pick(&sessions) {
            let sessions = || self.engine.sessions();
            let named = SessionRef::Id(session);
            self.must_not_be("session", sessions().inspect(&by, &named).await);
            self.must_not_be("session", sessions().events(&by, &named, 0, EVENTS).await);
            self.must_not_be("session", sessions().fork(&by, &named, None).await);
        }
        if let Some(ask) = neighbour.pick(&asks) {
            let reply = Reply::Authorize { done: true };
            self.must_not_be("ask", self.engine.asks().reply(&by, ask, reply, None, 0).await);
        }
    }

    fn must_not_be<T>(&self, what: &str, answer: Result<T, Refusal>) {
        let realm = &self.realm;
        match answer {
            Ok(_) => {
                locked(&self.oracle).accuse(format!("a {what} of another realm is in `{realm}`"));
            }
            Err(refusal) => match refusal.kind() {
                RefusalKind::NotFound => {
                    locked(&self.oracle).count(Seen::OtherRealmTried, 1);
                    self.check_own(&refusal);
                }
                RefusalKind::Unavailable | RefusalKind::TooMany | RefusalKind::Failed => {
                    self.refused(&refusal);
                }
                _ => {
                    let code = refusal.code.name();
                    let message = &refusal.message;
                    let wrong = format!("a {what} of another realm is {code}: {message}");
                    locked(&self.oracle).accuse(wrong);
                }
            },
        }
    }

    /// What is shown here holds nothing of the other realm.
    pub(in crate::sim) fn check_own(&self, shown: &impl fmt::Debug) {
        let Some(neighbour) = &self.neighbour else { return };
        let text = format!("{shown:?}");
        if text.contains(neighbour.realm.as_str()) {
            let realm = &self.realm;
            let wrong = format!("`{realm}` is shown something of `{}`: {text}", neighbour.realm);
            locked(&self.oracle).accuse(wrong);
        }
    }

    /// A row of a list is of this realm.
    pub(in crate::sim) fn check_row(&self, key: &SessionKey) {
        if key.realm != self.realm {
            let realm = &self.realm;
            let id = &key.id;
            let wrong = format!("a list of `{realm}` has session {id} of `{}`", key.realm);
            locked(&self.oracle).accuse(wrong);
        }
    }
}
