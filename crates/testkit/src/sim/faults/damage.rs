//! What cannot be read for a while: the journal of one session, or the plan that some runs began
//! with. Nothing is really damaged, so that everything can be read again later, and judged.

use kernel::definition::plan::ClosureText;
use kernel::journal::projection::SessionRow;
use kernel::values::ids::{PlanId, SessionKey};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the store says of a journal that it does not show.
pub const HIDDEN: &str = "the journal cannot be read for now, as the simulation wants";
/// What the reason names where a plan is not shown.
const HIDDEN_PLAN: &str = "pinned plan";

/// What cannot be read.
#[derive(Debug, Clone, PartialEq)]
pub enum Harm {
    Journal(SessionKey),
    /// The closures of runs of this plan.
    Plan(PlanId),
}

impl Harm {
    fn concerns(&self, row: &SessionRow) -> bool {
        match self {
            Harm::Journal(key) => *key == row.key,
            Harm::Plan(plan) => row.plan.as_ref() == Some(plan),
        }
    }
}

/// The harm of one machine.
#[derive(Debug, Default)]
pub struct Damage {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    now: Option<Harm>,
    /// All that there ever was.
    ever: Vec<Harm>,
    /// The sessions that someone tried to load since.
    refused: BTreeSet<SessionKey>,
    /// How many sessions were seen parked.
    parked: u64,
}

impl Damage {
    /// From now on this cannot be read.
    pub fn harm(&self, harm: Harm) {
        let mut state = self.state();
        state.ever.push(harm.clone());
        state.now = Some(harm);
        state.refused.clear();
    }

    /// From now on everything can be read.
    pub fn heal(&self) {
        self.state().now = None;
    }

    /// Whether there is anything that cannot be read.
    pub fn is_there(&self) -> bool {
        self.state().now.is_some()
    }

    pub fn ever_was(&self) -> bool {
        !self.state().ever.is_empty()
    }

    /// Whether this session cannot be driven now.
    pub fn hides(&self, row: &SessionRow) -> bool {
        self.state().now.as_ref().is_some_and(|harm| harm.concerns(row))
    }

    /// Whether this session may be parked because of what there was.
    pub fn excuses(&self, row: &SessionRow) -> bool {
        self.state().ever.iter().any(|harm| harm.concerns(row))
    }

    /// Someone loads a session; whether its journal is hidden.
    pub fn refuses(&self, key: &SessionKey) -> bool {
        let mut state = self.state();
        let hidden = state.now == Some(Harm::Journal(key.clone()));
        if hidden {
            state.refused.insert(key.clone());
        }
        hidden
    }

    /// A closure as the store shows it, if it does.
    pub fn shown(&self, text: String) -> Option<String> {
        let Some(Harm::Plan(plan)) = self.state().now.clone() else { return Some(text) };
        let main = serde_json::from_str::<ClosureText>(&text).map(|closure| closure.main);
        (!main.is_ok_and(|main| main == plan)).then_some(text)
    }

    /// What is wrong with how a hidden session is listed, some time after it was met.
    pub fn misparked(&self, row: &SessionRow) -> Option<String> {
        let mut state = self.state();
        let key = &row.key;
        match &row.parked {
            None => state
                .refused
                .contains(key)
                .then(|| format!("session {} cannot be read and is not parked", key.id)),
            Some(parked) => {
                state.parked += 1;
                let told = parked.reason == HIDDEN || parked.reason.contains(HIDDEN_PLAN);
                let reason = &parked.reason;
                (!told).then(|| format!("session {} is parked because of `{reason}`", key.id))
            }
        }
    }

    /// How many sessions were seen parked.
    pub fn parked(&self) -> u64 {
        self.state().parked
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::values::ids::Space;
    use serde_json::json;

    #[test]
    fn damage_is_refused_until_it_heals() {
        let damage = Damage::default();
        let key = |id: &str| SessionKey::new("default", Space::session(), id);
        damage.harm(Harm::Journal(key("a")));
        assert!(damage.refuses(&key("a")) && !damage.refuses(&key("b")));
        damage.harm(Harm::Plan(PlanId::from("p")));
        let text = |main: &str| json!({"main": main, "plans": []}).to_string();
        assert_eq!((damage.shown(text("p")), damage.shown(text("q"))), (None, Some(text("q"))));
        damage.heal();
        assert!(!damage.is_there() && damage.ever_was());
        assert_eq!(damage.shown(text("p")), Some(text("p")));
    }
}
