//! A model of the seed. What it says follows from what it is asked alone, so that a turn that is
//! begun again says the same; now and then it is slow, or fails. It also judges what it reads:
//! every call has exactly one result, right after it.

use super::rng::Rng;
use crate::sim::judge::oracle::Oracle;
use crate::sim::machine::power::{Point, Power};
use crate::sim::outside::panicking::Panics;
use crate::sim::programs::healing::ADVISER;
use crate::sim::programs::plans::{TOOLS, call_step};
use crate::sim::programs::reference::last_words_of;
use crate::sim::programs::source::{DOER, TALKER};
use engine::{Model, Models};
use futures::future::BoxFuture;
use kernel::contracts::Clock;
use kernel::conversation::llm::{
    DeltaSink, Llm, LlmError, LlmErrorKind, Message, ModelCall, Prompt, Turn,
};
use kernel::values::names::for_models;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How many calls a turn makes at most.
const CALLS_AT_ONCE: u64 = 2;

/// What is around the models.
#[derive(Clone)]
pub struct Around {
    /// Where they say what is wrong with what they read.
    pub oracle: Arc<Mutex<Oracle>>,
    pub clock: Arc<dyn Clock>,
    pub power: Arc<Power>,
    /// Their whims.
    pub rng: Arc<Mutex<Rng>>,
    /// Nothing goes wrong any more.
    pub calm: Arc<AtomicBool>,
    pub panics: Arc<Panics>,
}

struct SimModel {
    manner: Manner,
    around: Around,
}

/// How a model speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// It calls tools.
    Calls,
    /// It writes commands.
    Commands,
    /// It says what to do about failed steps.
    Advises,
}

/// A model for each agent, under the agent's name, and one for failed steps.
pub fn all(around: &Around) -> Models {
    let model = |manner: Manner| {
        let around = around.clone();
        Model::new(Arc::new(SimModel { manner, around }))
    };
    Models::default()
        .with(TALKER, model(Manner::Calls))
        .with(DOER, model(Manner::Commands))
        .with(ADVISER, model(Manner::Advises))
}

impl SimModel {
    /// How it fails, if it does, and how long it takes.
    fn fate(&self) -> (Option<LlmErrorKind>, u64) {
        let mut rng = self.around.rng.lock().unwrap_or_else(PoisonError::into_inner);
        let fails = match rng.below(100) {
            0..8 => Some(LlmErrorKind::Unreachable),
            8..10 => Some(LlmErrorKind::BadRequest),
            _ => None,
        };
        let takes = if rng.chance(50) { 0 } else { 1 + rng.below(1_500) };
        if self.around.calm.load(Ordering::SeqCst) {
            return (None, takes.min(100));
        }
        (fails, takes)
    }

    /// Continues only while the power is on.
    async fn passes(&self, point: Point) {
        if !self.around.power.passes(point) {
            std::future::pending::<()>().await;
        }
    }

    async fn answer(&self, prompt: &Prompt) -> Result<Turn, LlmError> {
        self.passes(Point::BeforeSend).await;
        if let Some(wrong) = misread(&prompt.messages) {
            let mut oracle = self.around.oracle.lock().unwrap_or_else(PoisonError::into_inner);
            oracle.accuse(format!("a model reads {wrong}: {:?}", prompt.messages));
        }
        let (fails, takes) = self.fate();
        if takes > 0 {
            let clock = &self.around.clock;
            clock.sleep_until(clock.now().plus_ms(takes)).await;
        }
        self.passes(Point::BeforeAnswer).await;
        self.around.panics.in_driver("a model");
        match fails {
            Some(kind) => Err(LlmError::new(kind, "the model is not well")),
            None => Ok(match self.manner {
                Manner::Calls => said(&prompt.messages, false),
                Manner::Commands => said(&prompt.messages, true),
                Manner::Advises => advice(&prompt.messages),
            }),
        }
    }
}

impl Llm for SimModel {
    fn turn<'a>(
        &'a self,
        prompt: &'a Prompt,
        _sink: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<Turn, LlmError>> {
        Box::pin(self.answer(prompt))
    }
}

/// What it says about a failed step: other arguments, or a plan that reads or writes and has the
/// step tried again or changed. Now and then it says nothing that can be used.
fn advice(messages: &[Message]) -> Turn {
    let texts = messages.iter().map(|message| match message {
        Message::System { text } | Message::User { text } => text.as_str(),
        Message::Assistant { .. } | Message::Result { .. } => "",
    });
    let number: u32 = texts.clone().flat_map(str::bytes).map(u32::from).sum();
    let drafts = texts.clone().any(|text| text.starts_with("You write a plan"));
    let arguments = json!({"step": "advised"});
    if number.is_multiple_of(7) {
        return Turn { text: "{\"planId\": 7".to_owned(), ..Turn::default() };
    }
    if !drafts {
        let text = json!({"arguments": arguments, "why": "as advised"}).to_string();
        return Turn { text, ..Turn::default() };
    }
    let tool = if number.is_multiple_of(2) { "sim::read" } else { "sim::write" };
    let reply = match number % 3 {
        0 => json!({"action": "edit", "arguments": arguments}),
        _ => json!({"action": "retry", "why": "as advised"}),
    };
    let plan = json!({"planId": "advice/one", "steps": [
        {"id": "advised", "type": "tool_call", "toolId": tool, "arguments": arguments,
         "nextStepId": "say"},
        {"id": "say", "type": "final_response", "message": reply}]});
    Turn { text: plan.to_string(), ..Turn::default() }
}

/// What it says after these messages: the next calls, or its last words. One that speaks in
/// commands continues until its last one is not refused any more. A conversation of a context has
/// the requests of earlier steps and runs in it: what was called for them does not count for the
/// newest one.
fn said(messages: &[Message], commands: bool) -> Turn {
    let newest = messages.iter().enumerate().rev().find_map(|(at, message)| match message {
        Message::User { text } => Some((at, serde_json::from_str::<Value>(text).ok()?)),
        Message::System { .. } | Message::Assistant { .. } | Message::Result { .. } => None,
    });
    let (at, asked) = newest.unwrap_or_default();
    let step = asked["step"].as_str().unwrap_or_default();
    let wanted = asked["calls"].as_u64().unwrap_or_default();
    let made = made(&messages[at..]).len() as u64;
    let arguments = |number: u64| json!({"step": call_step(step, number)});
    if commands {
        let number = made + 1;
        let tool = tool_of(step, number);
        let args = arguments(number);
        let stop = number >= wanted;
        let command = json!({"intent": "CALL_TOOL", "tool": tool, "args": args, "stop": stop});
        return Turn { text: command.to_string(), ..Turn::default() };
    }
    if made >= wanted {
        return Turn { text: last_words_of(step), ..Turn::default() };
    }
    let call = |number: u64| ModelCall {
        id: "same".to_owned(),
        tool: for_models(tool_of(step, number)),
        arguments: Arc::new(arguments(number)),
    };
    let last = wanted.min(made + CALLS_AT_ONCE);
    Turn { calls: (made + 1..=last).map(call).collect(), ..Turn::default() }
}

/// The calls that were made, by what they name as their step: one may be shown more than once.
fn made(messages: &[Message]) -> BTreeSet<&str> {
    let calls = messages.iter().flat_map(|message| match message {
        Message::Assistant { calls, .. } => calls.as_slice(),
        Message::System { .. } | Message::User { .. } | Message::Result { .. } => &[],
    });
    calls.filter_map(|call| call.arguments["step"].as_str()).collect()
}

/// The tool of a call.
fn tool_of(step: &str, number: u64) -> &'static str {
    let digest: u64 = step.bytes().map(u64::from).sum();
    TOOLS[((digest + number) % TOOLS.len() as u64) as usize]
}

/// What is wrong with a conversation: each call has one result, before anything else is said.
fn misread(messages: &[Message]) -> Option<String> {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for message in messages {
        match message {
            Message::Result { id, .. } => {
                if !open.remove(id.as_str()) {
                    return Some(format!("a result of {id}, which is not open"));
                }
            }
            Message::System { .. } | Message::User { .. } | Message::Assistant { .. } => {
                if let Some(id) = open.first() {
                    return Some(format!("something else before the result of {id}"));
                }
            }
        }
        if let Message::Assistant { calls, .. } = message {
            open.extend(calls.iter().map(|call| call.id.as_str()));
            if open.len() != calls.len() {
                return Some("two calls of one id".to_owned());
            }
        }
    }
    open.first().map(|id| format!("no result of {id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(calls: u64) -> Message {
        Message::User { text: json!({"step": "s", "calls": calls}).to_string() }
    }

    fn called(ids: &[&str], first: u64) -> Message {
        let call = |(number, id): (u64, &&str)| ModelCall {
            id: (*id).to_owned(),
            tool: "t".to_owned(),
            arguments: Arc::new(json!({"step": call_step("s", number)})),
        };
        let calls = (first..).zip(ids).map(call).collect();
        Message::Assistant { text: String::new(), calls, native: None }
    }

    fn result(id: &str) -> Message {
        let id = id.to_owned();
        let tool = "t".to_owned();
        let text = "1".to_owned();
        Message::Result { id, tool, text, failed: false }
    }

    #[test]
    fn the_model_continues_from_the_conversation() {
        let first = said(&[asked(3)], false);
        assert_eq!((first.calls.len(), first.text.as_str()), (2, ""));
        let so_far = [asked(3), called(&["a", "b"], 1), result("a"), result("b")];
        let next = said(&so_far, false);
        assert_eq!(*next.calls[0].arguments, json!({"step": "sc3"}));
        assert_eq!(said(&so_far[..1], false), first, "it says the same again");
        let last = [&so_far[..], &[called(&["c"], 3), result("c")]].concat();
        assert_eq!(said(&last, false).text, "done s");
        let command: Value = serde_json::from_str(&said(&so_far, true).text).unwrap();
        assert_eq!((&command["args"]["step"], &command["stop"]), (&json!("sc3"), &json!(true)));
    }

    #[test]
    fn calls_of_earlier_requests_do_not_count() {
        let before = [asked(2), called(&["a", "b"], 1), result("a"), result("b")];
        let asked_again = [&before[..], &[asked(2)]].concat();
        for commands in [false, true] {
            assert_eq!(said(&asked_again, commands), said(&[asked(2)], commands));
        }
        let so_far = [&asked_again[..], &[called(&["c"], 1), result("c")]].concat();
        let command: Value = serde_json::from_str(&said(&so_far, true).text).unwrap();
        assert_eq!((&command["args"]["step"], &command["stop"]), (&json!("sc2"), &json!(true)));
    }

    #[test]
    fn advice_is_a_function_of_the_prompt() {
        // Each has another sum of its bytes.
        let asked = |system: &str, number: u8| {
            let user = Message::User { text: char::from(b'!' + number).to_string() };
            [Message::System { text: system.to_owned() }, user]
        };
        let plans: BTreeSet<String> =
            (0..42).map(|number| advice(&asked("You write a plan", number)).text).collect();
        assert_eq!(plans.len(), 5, "two tools, two replies, and nothing: {plans:?}");
        let arguments = |text: &str| text.contains("\"arguments\"");
        assert!((0..42).any(|number| arguments(&advice(&asked("A call", number)).text)));
    }

    #[test]
    fn every_call_has_one_result_right_after_it() {
        let right = [asked(2), called(&["a", "b"], 1), result("b"), result("a"), asked(1)];
        assert_eq!(misread(&right), None);
        assert!(misread(&right[..3]).is_some(), "one has none");
        assert!(misread(&[called(&["a"], 1), asked(1), result("a")]).is_some(), "it is late");
        assert!(misread(&[called(&["a"], 1), result("a"), result("a")]).is_some(), "it has two");
        assert!(misread(&[called(&["a", "a"], 1), result("a")]).is_some(), "which is which?");
    }
}
