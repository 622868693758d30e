//! Tools that need input first: what they request in which round, whether they got it, and a reply
//! that grants all of it.

use kernel::tool::call::{InputRequest, InputRequired, InputResponses};
use kernel::values::ids::CallId;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How often a call with these arguments wants something.
pub fn rounds_of(arguments: &Value) -> u64 {
    arguments["wants"].as_u64().unwrap_or_default()
}

/// What a call wants in a round, from 1: a form, and from the second on a page too.
pub fn wants_in(call: CallId, round: u64) -> InputRequired {
    let schema = Arc::new(json!({"type": "object", "required": ["name"]}));
    let form = InputRequest::Form { message: format!("who, in round {round}?"), schema };
    let mut inputs = BTreeMap::from([(format!("form{round}"), form)]);
    if round > 1 {
        let message = "look here".to_owned();
        let url = "https://sim.example/".to_owned();
        inputs.insert(format!("page{round}"), InputRequest::Url { message, url });
    }
    InputRequired { inputs, state: state_of(call, round) }
}

/// What it hands out: neither another call nor another round may bring it back.
fn state_of(call: CallId, round: u64) -> Value {
    json!({"call": call, "round": round})
}

/// In which round a call was given this, 0 before the first; none if it is not what it wanted.
pub fn round_of(call: CallId, given: &InputResponses) -> Option<u64> {
    if *given == InputResponses::default() {
        return Some(0);
    }
    let round = given.state["round"].as_u64()?;
    let keys = (1..=round).flat_map(|round| wants_in(call, round).inputs.into_keys());
    let wanted: BTreeSet<String> = keys.collect();
    let fits = given.state == state_of(call, round) && given.inputs.keys().eq(wanted.iter());
    fits.then_some(round)
}

/// Whether someone said no to something, or no one said anything.
pub fn was_refused(given: &InputResponses) -> bool {
    given.inputs.values().any(|answer| answer["action"] != "accept")
}

/// All that a call is given in the end by those who fill this into every form.
pub fn all_given(form: &Value, rounds: u64) -> Value {
    let answer = |want: &InputRequest| match want {
        InputRequest::Form { .. } => json!({"action": "accept", "content": form}),
        InputRequest::Url { .. } | InputRequest::Sample { .. } | InputRequest::Roots => {
            json!({"action": "accept"})
        }
    };
    let mut inputs = BTreeMap::new();
    for round in 1..=rounds {
        let wants = wants_in(CallId(0), round);
        inputs.extend(wants.inputs.iter().map(|(key, want)| (key.clone(), answer(want))));
    }
    json!(inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inputs_of_a_call_follow_from_keys_and_state() {
        let call = CallId(7);
        assert_eq!(round_of(call, &InputResponses::default()), Some(0));
        let inputs: BTreeMap<String, Value> =
            serde_json::from_value(all_given(&json!({"name": "ann"}), 2)).unwrap();
        assert_eq!(inputs.keys().collect::<Vec<_>>(), ["form1", "form2", "page2"]);
        let mut given =
            InputResponses { inputs, state: wants_in(call, 2).state, ..InputResponses::default() };
        assert_eq!((round_of(call, &given), was_refused(&given)), (Some(2), false));
        assert_eq!(round_of(CallId(8), &given), None);
        given.inputs.insert("form2".to_owned(), json!({"action": "decline"}));
        assert!(was_refused(&given));
        given.inputs.remove("form1");
        assert_eq!(round_of(call, &given), None);
    }
}
