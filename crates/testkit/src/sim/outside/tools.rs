//! The other side: tools with a will of their own, and the ledger of what they really did. The
//! ledger is outside the engine and survives every crash of it.

use super::changes::PolicyQuestion;
use super::panicking::Panics;
use super::policy::SimPolicy;
use crate::sim::machine::power::{Point, Power};
use crate::sim::programs::plans::TOOLS;
use crate::sim::programs::reference::output_of;
use crate::sim::programs::wants::{round_of, rounds_of, wants_in, was_refused};
use crate::sim::rng::Rng;
use futures::future::BoxFuture;
use kernel::contracts::{Clock, Tool};
use kernel::tool::call::{Call, Caller, Reach, ToolError, ToolOutput, ToolSpec, Verdict};
use kernel::values::ids::{CallId, RealmId};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What happened on the other side.
#[derive(Debug, Default)]
pub struct Ledger {
    /// How often each call that may not be repeated took effect, and by which tool.
    effects: Mutex<BTreeMap<CallId, Effect>>,
    /// Calls that arrived while policy denied them, in which realm, and of which tool.
    trespasses: Mutex<Vec<(RealmId, CallId, &'static str)>>,
    /// Calls that came back with something else than they had wanted, in which realm, and of which
    /// tool.
    misgiven: Mutex<Vec<(RealmId, CallId, &'static str)>>,
    /// Nothing goes wrong any more.
    calm: AtomicBool,
}

/// The outcome of a call that may not be repeated.
#[derive(Debug, Clone)]
struct Effect {
    realm: RealmId,
    tool: &'static str,
    times: u32,
}

impl Ledger {
    /// How often each call of this realm that may not be repeated took effect, and by which tool.
    pub fn effects(&self, realm: &RealmId) -> BTreeMap<CallId, (&'static str, u32)> {
        let effects = self.effects.lock().unwrap_or_else(PoisonError::into_inner);
        let of_realm = effects.iter().filter(|(_, effect)| effect.realm == *realm);
        of_realm.map(|(call, effect)| (*call, (effect.tool, effect.times))).collect()
    }

    /// Calls of this realm that arrived while policy denied them, and of which tool.
    pub fn trespasses(&self, realm: &RealmId) -> Vec<(CallId, &'static str)> {
        of_realm(&self.trespasses, realm)
    }

    /// Calls of this realm that came back with something else than they had wanted, and of which
    /// tool.
    pub fn misgiven(&self, realm: &RealmId) -> Vec<(CallId, &'static str)> {
        of_realm(&self.misgiven, realm)
    }

    /// From now on every call works.
    pub fn calm_down(&self) {
        self.calm.store(true, Ordering::SeqCst);
    }

    fn is_calm(&self) -> bool {
        self.calm.load(Ordering::SeqCst)
    }

    fn apply(&self, realm: &RealmId, call: CallId, tool: &'static str) {
        let mut effects = self.effects.lock().unwrap_or_else(PoisonError::into_inner);
        let none = Effect { realm: realm.clone(), tool, times: 0 };
        effects.entry(call).or_insert(none).times += 1;
    }

    fn trespass(&self, realm: &RealmId, call: CallId, tool: &'static str) {
        let mut trespasses = self.trespasses.lock().unwrap_or_else(PoisonError::into_inner);
        trespasses.push((realm.clone(), call, tool));
    }

    fn misgive(&self, realm: &RealmId, call: CallId, tool: &'static str) {
        let mut misgiven = self.misgiven.lock().unwrap_or_else(PoisonError::into_inner);
        misgiven.push((realm.clone(), call, tool));
    }
}

fn of_realm(
    calls: &Mutex<Vec<(RealmId, CallId, &'static str)>>,
    realm: &RealmId,
) -> Vec<(CallId, &'static str)> {
    let calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
    let of_realm = calls.iter().filter(|(of, _, _)| of == realm);
    of_realm.map(|(_, call, tool)| (*call, *tool)).collect()
}

/// What becomes of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Works,
    NotSent,
    Fails,
    /// The connection breaks before it arrives.
    LostOnTheWay,
    /// It arrives and takes effect; the answer is lost.
    AnswerLost,
}

pub struct SimTool {
    name: &'static str,
    spec: Arc<ToolSpec>,
    around: Around,
}

/// What is around the tools.
#[derive(Clone)]
pub struct Around {
    /// Where they write down what they did.
    pub ledger: Arc<Ledger>,
    /// Who says what may be sent to them.
    pub policy: Arc<SimPolicy>,
    pub clock: Arc<dyn Clock>,
    pub power: Arc<Power>,
    /// Their whims.
    pub rng: Arc<Mutex<Rng>>,
    pub panics: Arc<Panics>,
}

pub fn all(around: &Around) -> Vec<Arc<dyn Tool>> {
    let tool = |name: &'static str| -> Arc<dyn Tool> {
        Arc::new(SimTool { name, spec: Arc::new(spec(name)), around: around.clone() })
    };
    TOOLS.into_iter().map(tool).collect()
}

/// Whether a call of this tool may be repeated without asking anyone.
pub fn is_repeatable(tool: &str) -> bool {
    matches!(tool, "sim::read" | "sim::keyed")
}

fn spec(name: &'static str) -> ToolSpec {
    let reach = match name {
        "sim::read" => Reach::Reads,
        "sim::code" => Reach::Runs,
        _ => Reach::Writes,
    };
    ToolSpec {
        input_schema: Arc::new(json!({"type": "object", "required": ["step"]})),
        reach,
        idempotent: name == "sim::keyed",
        ..crate::specs::tool(name)
    }
}

/// What becomes of a call, and how long that takes.
struct Course {
    fate: Fate,
    /// Until it has its effect.
    before_ms: u64,
    /// From then on.
    after_ms: u64,
}

impl SimTool {
    fn course(&self) -> Course {
        let mut rng = self.around.rng.lock().unwrap_or_else(PoisonError::into_inner);
        let fate = match rng.below(100) {
            0..4 => Fate::NotSent,
            4..10 => Fate::Fails,
            10..13 => Fate::LostOnTheWay,
            13..17 => Fate::AnswerLost,
            _ => Fate::Works,
        };
        // Most are quick; a few take longer than a call may.
        let before_ms = latency(&mut rng);
        let after_ms = latency(&mut rng);
        if self.around.ledger.is_calm() {
            return Course { fate: Fate::Works, before_ms: 0, after_ms: after_ms.min(100) };
        }
        Course { fate, before_ms, after_ms }
    }

    /// Continues only while the power is on.
    async fn passes(&self, point: Point) {
        if !self.around.power.passes(point) {
            std::future::pending::<()>().await;
        }
    }

    async fn wait(&self, ms: u64) {
        if ms > 0 {
            let clock = &self.around.clock;
            clock.sleep_until(clock.now().plus_ms(ms)).await;
        }
    }

    async fn perform(&self, caller: &Caller, call: &Call) -> Result<ToolOutput, ToolError> {
        self.passes(Point::BeforeSend).await;
        // The gate asked in this very moment: time stands still between its question and this one.
        let asked = PolicyQuestion { tool: self.name, arguments: &call.arguments };
        if matches!(self.around.policy.says(caller, asked), Verdict::Deny(_)) {
            self.around.ledger.trespass(&caller.realm, call.id, self.name);
        }
        let round = round_of(call.id, &call.given);
        if round.is_none() {
            self.around.ledger.misgive(&caller.realm, call.id, self.name);
        }
        let Course { fate, before_ms, after_ms } = self.course();
        self.wait(before_ms).await;
        self.passes(Point::BeforeEffect).await;
        self.around.panics.in_tool(self.name);
        match fate {
            Fate::NotSent => return Err(ToolError::not_sent("Offline", "no connection")),
            Fate::Fails => return Err(ToolError::failed("Refused", "the other side said no")),
            Fate::LostOnTheWay => return Err(ToolError::unknown("Reset", "the line broke")),
            Fate::AnswerLost | Fate::Works => {}
        }
        if was_refused(&call.given) {
            return Err(ToolError::failed("Declined", "it cannot be done without an answer"));
        }
        let next = round.unwrap_or_default() + 1;
        if next <= rounds_of(&call.arguments) {
            self.wait(after_ms).await;
            self.passes(Point::BeforeAnswer).await;
            return match fate {
                Fate::AnswerLost => Err(ToolError::unknown("Reset", "the line broke")),
                _ => Ok(ToolOutput::Wants(Box::new(wants_in(call.id, next)))),
            };
        }
        if !is_repeatable(self.name) {
            self.around.ledger.apply(&caller.realm, call.id, self.name);
        }
        self.passes(Point::AfterEffect).await;
        self.around.panics.in_tool(self.name);
        self.wait(after_ms).await;
        self.passes(Point::BeforeAnswer).await;
        match fate {
            Fate::AnswerLost => Err(ToolError::unknown("Reset", "the line broke")),
            _ => Ok(ToolOutput::Value(output_of(&told(call)))),
        }
    }
}

/// All that a call received: its arguments, and what it was given.
fn told(call: &Call) -> Value {
    let mut told = (*call.arguments).clone();
    if rounds_of(&told) > 0 {
        told["given"] = json!(call.given.inputs);
    }
    told
}

fn latency(rng: &mut Rng) -> u64 {
    match rng.below(100) {
        0..60 => 0,
        60..97 => 1 + rng.below(800),
        _ => 7_000,
    }
}

impl Tool for SimTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.perform(caller, call))
    }
}
