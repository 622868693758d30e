//! State of a run, and the subject that it acts for.

use super::{Run, RunStatus};
use crate::values::caller::{Caller, LOCAL, Scopes};
use crate::values::ids::{FrameId, RealmId};
use crate::values::is_default;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// For whom a run acts, beyond who started it: the start keeps what held then. Local mode knows
/// nothing of it: such a run acts for who started it, with no ceiling.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Delegation {
    /// The subject, where that is not who started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Arc<str>>,
    /// The actor, if it is not the starter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Arc<str>>,
    /// The most that the credential allowed; none is no ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Scopes>,
    /// Makers of the key that it was started with, except the starter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub makers: Vec<Arc<str>>,
    /// Through how many agents it came.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hops: u32,
}

impl Run {
    /// The subject that it acts for.
    pub fn subject(&self) -> &Arc<str> {
        self.behalf.subject.as_ref().unwrap_or(&self.by)
    }

    /// The same where that is someone: in local mode it is no one.
    pub fn acts_for(&self) -> Option<&Arc<str>> {
        Some(self.subject()).filter(|subject| &***subject != LOCAL)
    }

    /// Whose it is: of who started it; no one's in local mode.
    pub fn owner(&self) -> Option<&Arc<str>> {
        (&*self.by != LOCAL).then_some(&self.by)
    }

    /// The caller of its calls.
    pub fn caller(&self, realm: &RealmId) -> Caller {
        let Delegation { actor, scopes, makers, .. } = &self.behalf;
        let caller = Caller::new(realm.clone(), self.subject().clone());
        let makers = makers.iter().cloned().collect();
        Caller { actor: actor.clone(), scopes: *scopes, makers, ..caller }
    }

    /// Everyone who had a hand in it: who started it, for whom and through whom, and who changed
    /// what it does.
    pub fn involved(&self) -> BTreeSet<&Arc<str>> {
        let named = [Some(&self.by), Some(self.subject()), self.behalf.actor.as_ref()];
        named.into_iter().flatten().chain(&self.hands).collect()
    }

    /// Everyone who made a key that one of these came with.
    pub fn makers(&self) -> BTreeSet<&Arc<str>> {
        self.behalf.makers.iter().chain(&self.lenders).collect()
    }

    /// The frame that asks whether the run may use more, while it stands still for that.
    pub fn held_frame(&self) -> Option<FrameId> {
        self.used.held
    }

    /// Whether it stands behind another run and does nothing until that one is over.
    pub fn is_queued(&self) -> bool {
        self.behind.is_some() && self.closing.is_none()
    }

    /// It got further: what went wrong before is no longer in its way.
    pub(crate) fn progressed(&mut self) {
        self.claims = 0;
        self.deaths = 0;
    }

    /// Its status, by its counters.
    pub fn status(&self) -> RunStatus {
        if let Some(ending) = self.ending {
            return ending;
        }
        if self.closing.is_some() || self.in_flight > 0 {
            return RunStatus::Running;
        }
        if self.paused {
            return RunStatus::Paused;
        }
        // Its other frames wait with the one that asks.
        if self.held_frame().is_some() && self.open_fixes > 0 {
            return RunStatus::Stuck;
        }
        match (self.ready, self.open_fixes, self.open_asks) {
            (1.., _, _) => RunStatus::Running,
            (0, 1.., _) => RunStatus::Stuck,
            (0, 0, 1..) => RunStatus::Waiting,
            (0, 0, 0) => RunStatus::Running,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{self, Fact, OCCASION_CHARS_MAX, Occasion};
    use crate::journal::projection::session_row;
    use crate::session::Session;
    use crate::values::caller::Scope;
    use crate::values::ids::{Millis, RunId};

    /// A session and its run, of whose start nothing more is said.
    const PLAIN: &str = concat!(
        r#"[{"seq":1,"at":1,"v":1,"type":"session.created","data":{"#,
        r#""id":"ses_00000000000000000000000000000001","#,
        r#""key":{"realm":"r","space":"session","id":"s"}}},"#,
        r#"{"seq":2,"at":2,"v":1,"type":"run.started","data":{"#,
        r#""run":"run_00000000000000000000000000000007","plan":"p","closure":"c","#,
        r#""input":{"value":{},"from":"input"},"by":"ann","frame":1,"start":"one"}}]"#,
    );

    fn replayed(journal: &str) -> Session {
        let events = event::read(journal).unwrap();
        let Fact::SessionCreated { id, key, .. } = &events[0].fact else { panic!("{journal}") };
        let mut session = Session::new(*id, key.clone());
        events.iter().for_each(|event| drop(session.apply(event)));
        session
    }

    fn only_run(session: &Session) -> &Run {
        session.runs.values().next().unwrap()
    }

    #[test]
    fn a_run_acts_for_who_started_it_with_no_ceiling_where_its_start_says_nothing_else() {
        let session = replayed(PLAIN);
        let run = only_run(&session);
        assert_eq!(run.caller(&"r".into()), Caller::new("r", "ann"));
        assert_eq!(session_row(&session, Millis(2)).owner.as_deref(), Some("ann"));
        let events = event::read(PLAIN).unwrap();
        assert_eq!(serde_json::to_string(&events).unwrap(), PLAIN, "nothing is added");
    }

    #[test]
    fn a_run_keeps_the_caller_recorded_at_its_start() {
        let more = r#","subject":"robot","actor":"eve","scopes":["use"],"about":{"trigger":"mcp"}"#;
        let journal = PLAIN.replace(r#""start":"one""#, &format!(r#""start":"one"{more}"#));
        let session = replayed(&journal);
        let scopes = Some([Scope::Use].into_iter().collect());
        let expected = Caller { actor: Some("eve".into()), scopes, ..Caller::new("r", "robot") };
        assert_eq!(only_run(&session).caller(&"r".into()), expected);
        assert_eq!(only_run(&session).owner().map(|owner| &**owner), Some("ann"));
        assert_eq!(only_run(&session).acts_for().map(|subject| &**subject), Some("robot"));
        let events = event::read(&journal).unwrap();
        assert_eq!(serde_json::to_string(&events).unwrap(), journal);
        let text = session.to_snapshot().unwrap();
        assert_eq!(Session::from_snapshot(&text), Some(session));
    }

    #[test]
    fn a_run_records_the_makers_of_its_starters_key() {
        let more = r#","about":{"trigger":"rest","makers":["eve"]}"#;
        let journal = PLAIN.replace(r#""start":"one""#, &format!(r#""start":"one"{more}"#));
        let session = replayed(&journal);
        let run = only_run(&session);
        let names = |people: BTreeSet<&Arc<str>>| -> Vec<String> {
            people.into_iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            (names(run.involved()), names(run.makers())),
            (vec!["ann".to_owned()], vec!["eve".to_owned()],)
        );
        let caller = run.caller(&"r".into());
        assert_eq!(names(caller.makers.subjects().collect()), ["eve"]);
        let text = session.to_snapshot().unwrap();
        assert_eq!(Session::from_snapshot(&text), Some(session));
    }

    #[test]
    fn sessions_of_local_mode_have_no_owner() {
        let session = replayed(&PLAIN.replace(r#""by":"ann""#, r#""by":"local""#));
        assert_eq!((only_run(&session).owner(), &session.owner), (None, &None));
        assert_eq!(only_run(&session).acts_for(), None);
    }

    #[test]
    fn a_session_belongs_to_its_creator_whoever_starts_runs() {
        let made = PLAIN.replace(r#""id":"s"}}"#, r#""id":"s"},"owner":"eve"}"#);
        assert_eq!(replayed(&made).owner.as_deref(), Some("eve"));
        let owned = PLAIN.replace(r#""id":"s"}}"#, r#""id":"s","owner":"bob"}}"#);
        assert_eq!(replayed(&owned).owner.as_deref(), Some("bob"));
    }

    #[test]
    fn a_case_submitted_by_two_subjects_has_no_owner() {
        let case = PLAIN.replace(r#""space":"session""#, r#""space":"case:desk""#);
        let first = event::read(&case).unwrap().remove(1);
        let owners = |starters: [&str; 2]| {
            let mut session = replayed(&case);
            let mut owners = vec![session.owner.clone()];
            for (number, starter) in (8_u32..).zip(starters) {
                let mut next = first.clone();
                let Fact::RunStarted { run, by, frame, .. } = &mut next.fact else { panic!() };
                *run = RunId(u128::from(number));
                *by = starter.into();
                *frame = FrameId(number);
                drop(session.apply(&next));
                owners.push(session.owner.clone());
            }
            owners
        };
        let ann: Option<Arc<str>> = Some("ann".into());
        assert_eq!(owners(["ann", "ann"]), [ann.clone(), ann.clone(), ann.clone()]);
        assert_eq!(owners(["bob", "ann"]), [ann.clone(), None, None]);
        assert_eq!(owners([LOCAL, "bob"]), [ann, None, None]);
    }

    #[test]
    fn an_occasion_is_truncated_and_omitted_if_empty() {
        assert_eq!(Occasion::default().recorded(), None);
        let long = "ä".repeat(OCCASION_CHARS_MAX + 1);
        let recorded = Occasion::at("rest", long.clone()).recorded().unwrap();
        let endpoint = recorded.endpoint.as_deref().unwrap();
        assert_eq!(endpoint, &long[..2 * OCCASION_CHARS_MAX]);
        assert_eq!(recorded.trigger.as_deref(), Some("rest"));
    }
}
