//! What changes of the policy where two realms share a machine: the rules of each realm, and which
//! subjects are known. Every change is a new version. What was said in which version is kept
//! outside, so that journals can be held against it.

use crate::sim::rng::mix;
use kernel::event::{CallRequest, Event, Fact};
use kernel::tool::call::{Caller, Judgement, Verdict};
use kernel::values::ids::{CallId, Millis, RealmId};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// For how long the rules before a change are heeded where that fault is planted.
const LAG_MS: u64 = 4_000;

/// The rules of all realms in one version.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    version: usize,
    /// How often those of each realm changed.
    changed: BTreeMap<RealmId, u64>,
    /// Who is not known any more.
    gone: BTreeSet<(RealmId, Arc<str>)>,
}

impl Rules {
    /// The version, as decisions name it.
    pub fn version(&self) -> Arc<str> {
        format!("v{}", self.version).into()
    }

    /// Out of which the rules of a realm are made.
    pub fn salt(&self, salt: u64, realm: &RealmId) -> u64 {
        let of_realm = realm.as_str().bytes().map(u64::from);
        let changed = self.changed.get(realm).copied().unwrap_or_default();
        of_realm.chain([changed]).fold(salt, mix)
    }

    /// Whether this caller is not known any more.
    pub fn lack(&self, caller: &Caller) -> bool {
        !self.gone.is_empty() && self.gone.contains(&(caller.realm.clone(), caller.subject.clone()))
    }
}

/// The changes of one machine.
#[derive(Debug)]
pub struct Changes {
    /// Whether a change is heeded late: a fault on purpose.
    lags: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    now: Arc<Rules>,
    before: Arc<Rules>,
    /// Since when each version holds.
    since: Vec<Millis>,
    /// What was said of calls.
    said: BTreeSet<String>,
}

impl Changes {
    /// Nothing has changed yet.
    pub fn new(lags: bool) -> Self {
        let rules = Arc::new(Rules::default());
        let now = rules.clone();
        let before = rules;
        let state = State { now, before, since: vec![Millis(i64::MIN)], said: BTreeSet::new() };
        Self { lags, state: Mutex::new(state) }
    }

    /// The rules as they are.
    pub fn rules(&self) -> Arc<Rules> {
        self.state().now.clone()
    }

    /// The rules by which is decided at this moment.
    pub fn heeded(&self, now: Millis) -> Arc<Rules> {
        let state = self.state();
        let is_new = |since: &Millis| now < since.plus_ms(LAG_MS);
        match self.lags && state.since.len() > 1 && state.since.last().is_some_and(is_new) {
            true => state.before.clone(),
            false => state.now.clone(),
        }
    }

    /// Other rules for a realm from now on.
    pub fn change(&self, realm: &RealmId, now: Millis) {
        self.renew(now, |rules| *rules.changed.entry(realm.clone()).or_default() += 1);
    }

    /// A subject is not known from now on, or is known again.
    pub fn turn(&self, subject: &Caller, now: Millis) {
        let named = (subject.realm.clone(), subject.subject.clone());
        self.renew(now, |rules| {
            if !rules.gone.remove(&named) {
                rules.gone.insert(named);
            }
        });
    }

    /// Everybody is known from now on.
    pub fn restore(&self, now: Millis) {
        self.renew(now, |rules| rules.gone.clear());
    }

    /// How often something changed.
    pub fn count(&self) -> u64 {
        self.state().now.version as u64
    }

    fn renew(&self, now: Millis, change: impl FnOnce(&mut Rules)) {
        let mut state = self.state();
        let mut rules = Rules::clone(&state.now);
        change(&mut rules);
        rules.version += 1;
        state.since.push(now);
        state.before = std::mem::replace(&mut state.now, Arc::new(rules));
    }

    /// This was said of a call.
    pub fn said(&self, rules: &Rules, realm: &RealmId, of: PolicyQuestion<'_>, verdict: &Verdict) {
        let line = line(&rules.version(), realm, of, verdict);
        self.state().said.insert(line);
    }

    /// What is wrong with the judgements in a whole journal: each is of a version that held at that
    /// time, and what that version said.
    pub fn misjudged(&self, realm: &RealmId, events: &[Event]) -> Vec<String> {
        let state = self.state();
        let mut requests: BTreeMap<CallId, &CallRequest> = BTreeMap::new();
        let mut wrong = Vec::new();
        for event in events {
            match &event.fact {
                // What stands before this happened elsewhere, and is judged there.
                Fact::SessionForked { .. } => wrong.clear(),
                Fact::CallRequested(request) => {
                    requests.insert(request.call, request);
                }
                Fact::CallJudged {
                    call,
                    judgement: Judgement::Admitted { verdict, policy, .. },
                } => {
                    let Some(request) = requests.get(call) else { continue };
                    let of = PolicyQuestion {
                        tool: request.tool.as_str(),
                        arguments: &request.arguments,
                    };
                    let found = state.misjudged(policy.as_deref(), event.at, |version| {
                        line(version, realm, of, verdict)
                    });
                    wrong.extend(found.map(|wrong| format!("{call}: {wrong}")));
                }
                _ => {}
            }
        }
        wrong
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn misjudged(
        &self,
        policy: Option<&str>,
        at: Millis,
        line: impl FnOnce(&str) -> String,
    ) -> Option<String> {
        let number = policy.and_then(|version| version.strip_prefix('v')?.parse::<usize>().ok());
        let (Some(version), Some(number)) = (policy, number) else {
            return Some(format!("it is judged by no version of the policy: {policy:?}"));
        };
        if let Some(next) = self.since.get(number + 1)
            && *next < at
        {
            return Some(format!("it is judged by {version} at {at:?}, which held until {next:?}"));
        }
        let line = line(version);
        (!self.said.contains(&line)).then(|| format!("nobody said `{line}`"))
    }
}

/// A call that is asked about.
#[derive(Clone, Copy)]
pub struct PolicyQuestion<'a> {
    pub tool: &'a str,
    pub arguments: &'a Value,
}

impl PolicyQuestion<'_> {
    /// The step that its arguments name.
    pub fn step(&self) -> &str {
        self.arguments["step"].as_str().unwrap_or_default()
    }
}

/// What is kept of one word.
fn line(version: &str, realm: &RealmId, of: PolicyQuestion<'_>, verdict: &Verdict) -> String {
    let word = match verdict {
        Verdict::Allow => "allow",
        Verdict::Ask(_) => "ask",
        Verdict::Deny(_) => "deny",
    };
    format!("{version}: {word} {} at {} in {realm}", of.tool, of.step())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::tool::call::{Pins, Reach};
    use kernel::values::ids::ContentHash;
    use serde_json::json;

    fn judged(at: i64, version: Option<&str>, verdict: Verdict) -> Vec<Event> {
        let request = json!({"call": CallId(1), "frame": 1, "step": "s", "try": 1, "tool": "t",
            "arguments": {"step": "s"}, "saveAs": "s", "next": null});
        let requested = Fact::CallRequested(serde_json::from_value(request).unwrap());
        let spec = ContentHash::of(b"t");
        let pins = Pins { spec, reach: Reach::Reads, idempotent: true };
        let policy = version.map(Arc::from);
        let policies = Vec::new();
        let judgement = Judgement::Admitted { verdict, pins, policy, policies, answerers: None };
        let facts = [requested, Fact::CallJudged { call: CallId(1), judgement }];
        let event = |(seq, fact)| Event { seq, at: Millis(at), v: kernel::event::VERSION, fact };
        (1..).zip(facts).map(event).collect()
    }

    #[test]
    fn a_verdict_must_match_a_version_in_force() {
        let changes = Changes::new(false);
        let realm = RealmId::from("acme");
        let arguments = json!({"step": "s"});
        let of = PolicyQuestion { tool: "t", arguments: &arguments };
        changes.said(&changes.rules(), &realm, of, &Verdict::Allow);
        let wrong = |events: Vec<Event>| changes.misjudged(&realm, &events).len();
        assert_eq!(wrong(judged(5, Some("v0"), Verdict::Allow)), 0);
        assert_eq!(wrong(judged(5, Some("v0"), Verdict::Ask("why".to_owned()))), 1);
        assert_eq!(wrong(judged(5, None, Verdict::Allow)), 1);
        changes.change(&realm, Millis(10));
        assert_eq!(wrong(judged(10, Some("v0"), Verdict::Allow)), 0, "it changed in that moment");
        assert_eq!(wrong(judged(11, Some("v0"), Verdict::Allow)), 1);
        assert_eq!(wrong(judged(11, Some("v1"), Verdict::Allow)), 1, "nobody said so");
    }

    #[test]
    fn a_subject_can_vanish_and_return_and_lagging_rules_are_old() {
        let bob = Caller::new("acme", "bob");
        let at = Millis(10);
        let changes = Changes::new(false);
        let lagging = Changes::new(true);
        for changes in [&changes, &lagging] {
            changes.turn(&bob, at);
            assert!(changes.rules().lack(&bob));
        }
        assert!(changes.heeded(at).lack(&bob) && !lagging.heeded(at).lack(&bob));
        assert!(lagging.heeded(at.plus_ms(LAG_MS)).lack(&bob));
        assert!(!changes.rules().lack(&Caller::new("globex", "bob")));
        changes.turn(&bob, at);
        assert!(!changes.rules().lack(&bob));
        assert_eq!(changes.count(), 2);
    }
}
