//! Which webhooks are due, which wait for another try, and which rest until something happens in
//! their sessions. Realms take turns, so that none waits for all that another one has. Pure: it
//! knows no store, no clock and no receiver.

use kernel::contracts::webhooks::{LiveWebhook, WebhookName};
use kernel::values::ids::{Millis, RealmId, SessionId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What follows a turn of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextAttempt {
    /// It has all there is.
    Rest,
    /// It is tried again, then.
    Again(Millis),
    /// There is no more for it.
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Rests,
    Due,
    Waits(Millis),
    /// It has its turn; `again` where something happened since that began.
    Flies {
        again: bool,
    },
}

#[derive(Debug)]
struct Entry {
    session: SessionId,
    state: State,
}

/// What a realm has on the agenda.
#[derive(Debug, Default)]
struct OfRealm {
    count: usize,
    /// Those that are due, in their order.
    due: VecDeque<WebhookName>,
    /// How many have their turn now.
    flying: usize,
    /// The number of its last turn.
    last_turn: u64,
}

/// All webhooks that there may be more for.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    entries: BTreeMap<WebhookName, Entry>,
    of_session: BTreeMap<SessionId, BTreeSet<WebhookName>>,
    /// The realms that have some.
    of_realm: BTreeMap<RealmId, OfRealm>,
    waiting: BTreeSet<(Millis, WebhookName)>,
    /// How many turns there were.
    turns: u64,
}

impl Agenda {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The realms that have some.
    pub(super) fn realms(&self) -> BTreeSet<RealmId> {
        self.of_realm.keys().cloned().collect()
    }

    /// One that is new, or was made again.
    pub(super) fn add(&mut self, live: LiveWebhook) {
        let LiveWebhook { name, session, next_at } = live;
        let state = next_at.map_or(State::Due, State::Waits);
        match self.entries.get(&name).map(|entry| entry.state) {
            Some(State::Flies { .. }) => self.enter(&name, State::Flies { again: true }),
            Some(State::Due) => {}
            Some(State::Rests | State::Waits(_)) => self.enter(&name, State::Due),
            None => {
                self.of_session.entry(session).or_default().insert(name.clone());
                self.of_realm.entry(name.realm.clone()).or_default().count += 1;
                self.entries.insert(name.clone(), Entry { session, state: State::Rests });
                self.enter(&name, state);
            }
        }
    }

    /// Something happened in a session.
    pub(super) fn changed(&mut self, session: SessionId) {
        let names = self.of_session.get(&session).cloned().unwrap_or_default();
        for name in names {
            match self.entries.get(&name).map(|entry| entry.state) {
                Some(State::Rests) => self.enter(&name, State::Due),
                Some(State::Flies { .. }) => self.enter(&name, State::Flies { again: true }),
                Some(State::Due | State::Waits(_)) | None => {}
            }
        }
    }

    /// Lets those go whose time has come.
    pub(super) fn wake(&mut self, now: Millis) {
        while let Some((then, name)) = self.waiting.first().cloned()
            && then <= now
        {
            self.enter(&name, State::Due);
        }
    }

    /// When the next of them may go.
    pub(super) fn next_wake(&self) -> Option<Millis> {
        self.waiting.first().map(|(then, _)| *then)
    }

    /// The clock was set back by so much: none waits longer for that.
    pub(super) fn set_back(&mut self, ms: i64) {
        for (then, name) in std::mem::take(&mut self.waiting) {
            self.enter(&name, State::Waits(Millis(then.0 - ms)));
        }
    }

    /// One that has its turn now: of the realm with the fewest turns under way, and of those the
    /// one whose last turn is the longest ago.
    pub(super) fn next(&mut self) -> Option<WebhookName> {
        let due = self.of_realm.values_mut().filter(|own| !own.due.is_empty());
        let own = due.min_by_key(|own| (own.flying, own.last_turn))?;
        let name = own.due.pop_front()?;
        self.turns += 1;
        own.last_turn = self.turns;
        self.enter(&name, State::Flies { again: false });
        Some(name)
    }

    /// A turn ended.
    pub(super) fn landed(&mut self, name: &WebhookName, after: NextAttempt) {
        let Some(Entry { session, state }) = self.entries.get(name) else { return };
        let session = *session;
        let is_wanted = *state == State::Flies { again: true };
        match after {
            // It may have been made again: one that still has to wait says so at once.
            _ if is_wanted => self.enter(name, State::Due),
            NextAttempt::Rest => self.enter(name, State::Rests),
            NextAttempt::Again(then) => self.enter(name, State::Waits(then)),
            NextAttempt::Over => {
                self.enter(name, State::Rests);
                self.forget(name, session);
            }
        }
    }

    /// A realm is gone, and with it all that it had here; a turn that is under way changes nothing.
    pub(super) fn drop_realm(&mut self, realm: &RealmId) {
        let own = self.entries.iter().filter(|(name, _)| name.realm == *realm);
        let own: Vec<_> = own.map(|(name, entry)| (name.clone(), entry.session)).collect();
        for (name, session) in own {
            self.enter(&name, State::Rests);
            self.forget(&name, session);
        }
    }

    fn forget(&mut self, name: &WebhookName, session: SessionId) {
        self.entries.remove(name);
        if let Some(names) = self.of_session.get_mut(&session) {
            names.remove(name);
            if names.is_empty() {
                self.of_session.remove(&session);
            }
        }
        if let Some(own) = self.of_realm.get_mut(&name.realm) {
            own.count -= 1;
            if own.count == 0 {
                self.of_realm.remove(&name.realm);
            }
        }
    }

    fn enter(&mut self, name: &WebhookName, state: State) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        let Some(own) = self.of_realm.get_mut(&name.realm) else { return };
        match entry.state {
            State::Waits(then) => {
                self.waiting.remove(&(then, name.clone()));
            }
            State::Flies { .. } => own.flying -= 1,
            State::Rests | State::Due => {}
        }
        entry.state = state;
        match state {
            State::Due => own.due.push_back(name.clone()),
            State::Waits(then) => {
                self.waiting.insert((then, name.clone()));
            }
            State::Flies { .. } => own.flying += 1,
            State::Rests => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::values::ids::RunId;

    fn live(id: &str, next_at: Option<i64>) -> LiveWebhook {
        LiveWebhook { next_at: next_at.map(Millis), ..of_realm("r", id) }
    }

    fn of_realm(realm: &str, id: &str) -> LiveWebhook {
        let name = WebhookName { realm: realm.into(), run: RunId(1), id: id.into() };
        LiveWebhook { name, session: SessionId(7), next_at: None }
    }

    fn next(agenda: &mut Agenda) -> Option<String> {
        agenda.next().map(|name| name.id.to_string())
    }

    #[test]
    fn a_webhook_has_one_turn_at_a_time_and_another_if_something_happened_meanwhile() {
        let mut agenda = Agenda::default();
        let one = live("one", None);
        agenda.add(one.clone());
        assert_eq!(next(&mut agenda).as_deref(), Some("one"));
        agenda.changed(SessionId(7));
        agenda.changed(SessionId(8));
        assert_eq!(next(&mut agenda), None, "it has its turn");
        agenda.landed(&one.name, NextAttempt::Rest);
        assert_eq!(next(&mut agenda).as_deref(), Some("one"));
        agenda.landed(&one.name, NextAttempt::Rest);
        assert_eq!(next(&mut agenda), None);
        agenda.changed(SessionId(7));
        agenda.changed(SessionId(7));
        assert_eq!(next(&mut agenda).as_deref(), Some("one"));
        agenda.landed(&one.name, NextAttempt::Over);
        assert!(agenda.is_empty() && agenda.of_session.is_empty() && next(&mut agenda).is_none());
        assert!(agenda.realms().is_empty());
    }

    #[test]
    fn one_that_failed_waits_whatever_happens_and_others_do_not() {
        let mut agenda = Agenda::default();
        let one = live("one", None);
        let two = live("two", Some(50));
        agenda.add(one.clone());
        agenda.add(two.clone());
        assert_eq!((next(&mut agenda).as_deref(), next(&mut agenda)), (Some("one"), None));
        agenda.landed(&one.name, NextAttempt::Again(Millis(20)));
        agenda.changed(SessionId(7));
        agenda.wake(Millis(19));
        assert_eq!((next(&mut agenda), agenda.next_wake()), (None, Some(Millis(20))));
        agenda.set_back(15);
        assert_eq!(agenda.next_wake(), Some(Millis(5)));
        agenda.wake(Millis(5));
        assert_eq!(next(&mut agenda).as_deref(), Some("one"));
        // One that is made again waits no longer.
        agenda.add(live("two", None));
        assert_eq!((next(&mut agenda).as_deref(), agenda.next_wake()), (Some("two"), None));
        agenda.add(two.clone());
        agenda.landed(&two.name, NextAttempt::Over);
        assert_eq!(next(&mut agenda).as_deref(), Some("two"), "it came back meanwhile");
        assert_eq!(agenda.realms().len(), 1);
    }

    #[test]
    fn a_realm_with_many_webhooks_holds_up_no_other() {
        let mut agenda = Agenda::default();
        for id in ["one", "two", "three"] {
            agenda.add(of_realm("loud", id));
        }
        let four = of_realm("quiet", "four");
        agenda.add(four.clone());
        let mut turns = || [next(&mut agenda), next(&mut agenda), next(&mut agenda)];
        assert_eq!(turns().map(Option::unwrap), ["one", "four", "two"]);
        // It has no turn under way, the other realm has two.
        agenda.landed(&four.name, NextAttempt::Rest);
        agenda.changed(SessionId(7));
        assert_eq!(next(&mut agenda).as_deref(), Some("four"));
        for id in ["one", "two"] {
            agenda.landed(&of_realm("loud", id).name, NextAttempt::Over);
        }
        agenda.landed(&four.name, NextAttempt::Over);
        assert_eq!((agenda.realms().len(), next(&mut agenda).as_deref()), (1, Some("three")));
    }

    #[test]
    fn realms_take_turns_where_there_is_room_for_one() {
        let mut agenda = Agenda::default();
        for (realm, id) in [("a", "one"), ("a", "two"), ("b", "three"), ("b", "four")] {
            agenda.add(of_realm(realm, id));
        }
        let mut turns = Vec::new();
        while let Some(name) = agenda.next() {
            agenda.landed(&name, NextAttempt::Rest);
            turns.push(name.id.to_string());
        }
        assert_eq!(turns, ["one", "three", "two", "four"]);
    }

    #[test]
    fn of_a_realm_that_is_gone_nothing_stays() {
        let mut agenda = Agenda::default();
        let flies = of_realm("gone", "flies");
        let waits = live("waits", Some(50));
        let kept = of_realm("kept", "one");
        let waits = LiveWebhook {
            name: WebhookName { realm: "gone".into(), ..waits.name },
            session: SessionId(8),
            ..waits
        };
        agenda.add(flies.clone());
        assert_eq!(next(&mut agenda).as_deref(), Some("flies"));
        for one in [waits, of_realm("gone", "due"), kept] {
            agenda.add(one);
        }
        agenda.drop_realm(&"gone".into());
        assert_eq!((agenda.len(), agenda.realms().len(), agenda.next_wake()), (1, 1, None));
        assert_eq!(agenda.of_session.len(), 1);
        agenda.landed(&flies.name, NextAttempt::Again(Millis(9)));
        agenda.changed(SessionId(8));
        agenda.wake(Millis(99));
        assert_eq!(next(&mut agenda).as_deref(), Some("one"));
        assert_eq!((next(&mut agenda), agenda.len()), (None, 1));
    }
}
