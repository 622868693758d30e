//! A second, much simpler reading of the plans: one step after the other, nothing fails, everyone
//! says yes. A run that no one steered otherwise must come to the same answer, whatever finished
//! first and however often the process died. Where branches answer at the same time, whichever
//! comes first ends the plan: there every order is tried, and the run's answer must be one of them.

use super::context_values::ContextValue;
use super::plans::{
    AgentStep, CallStep, Kind, LIST, Look, NOTHING, NUMBER, Node, Over, PADDING, Past, SHARED_KEY,
    SimPlan, branch_id, call_step,
};
use super::source::past_key;
use super::wants::all_given;
use crate::sim::rng::mix;
use kernel::values::canonical;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Numbers that tools give are below this; conditions compare with the middle.
const OUTPUT_END: u64 = 1_000;
/// How many orders are tried; a run that has more is not compared.
const ORDERS_MAX: usize = 64;

/// What a tool gives for these arguments.
pub fn output_of(arguments: &Value) -> Value {
    let mut digest = 17;
    let fields: BTreeMap<&String, &Value> = arguments.as_object().into_iter().flatten().collect();
    for (name, value) in fields {
        let text = canonical::sorted(value).to_string();
        for byte in name.bytes().chain(text.into_bytes()) {
            digest = mix(digest, u64::from(byte));
        }
    }
    let number = (digest >> 20) % OUTPUT_END;
    if arguments["large"] != json!(true) {
        return json!({NUMBER: number});
    }
    let list: Vec<Value> = (0..number % 3).map(|index| json!({"id": number + index})).collect();
    json!({NUMBER: number, LIST: list, "words": PADDING})
}

/// What everyone answers to a question of this step.
pub fn words_of(step: &str) -> Value {
    json!(format!("yes {step}"))
}

/// What everyone fills into a form of this step.
pub fn form_of(step: &str) -> Value {
    json!({"name": step, "words": PADDING})
}

/// What an agent says at the end of this step.
pub fn last_words_of(step: &str) -> String {
    format!("done {step}")
}

/// What an agent answers: what its model says at the end, or what its last command gives.
fn answer_of(step: &str, agent: &AgentStep) -> Value {
    match agent.commands {
        true => output_of(&json!({"step": call_step(step, agent.calls)})),
        false => json!(last_words_of(step)),
    }
}

/// The answers that a plan with this input may give, where a value of more bytes than these goes
/// to a blob; none if there are too many to tell.
pub fn answers(
    plans: &[SimPlan],
    plan: &SimPlan,
    input: &Value,
    inline_bytes_max: usize,
) -> Option<Vec<Value>> {
    let mut order = Order::default();
    let mut found = Vec::new();
    while found.len() < ORDERS_MAX {
        let around = Around { plans, inline_bytes_max };
        found.push(answer(&around, plan, input, &mut order).shown());
        if !order.advance() {
            return Some(found);
        }
    }
    None
}

/// Who came first, wherever several could: a script that is gone through once for each order.
#[derive(Default)]
struct Order {
    /// The choice at each place, and of how many.
    script: Vec<(usize, usize)>,
    at: usize,
}

impl Order {
    fn choose(&mut self, count: usize) -> usize {
        if self.at == self.script.len() {
            self.script.push((0, count));
        }
        let chosen = self.script.get(self.at).map_or(0, |(chosen, _)| *chosen);
        self.at += 1;
        chosen
    }

    /// On to the next order; false if that was the last.
    fn advance(&mut self) -> bool {
        self.at = 0;
        while let Some((chosen, count)) = self.script.pop() {
            if chosen + 1 < count {
                self.script.push((chosen + 1, count));
                return true;
            }
        }
        false
    }
}

struct Around<'p> {
    plans: &'p [SimPlan],
    inline_bytes_max: usize,
}

/// What a frame wrote and called.
#[derive(Default)]
struct Scope {
    context: BTreeMap<String, ContextValue>,
    /// Oldest first.
    entries: Vec<Entry>,
}

/// A call that succeeded.
struct Entry {
    step: String,
    output: ContextValue,
}

/// How a list or a step ends.
enum Flow {
    /// With its last output.
    On(ContextValue),
    /// The plan is over, with this answer.
    Answered(ContextValue),
}

fn answer(around: &Around<'_>, plan: &SimPlan, input: &Value, order: &mut Order) -> ContextValue {
    let mut walk = Walk { around, input, scopes: vec![Scope::default()], order };
    if let Flow::Answered(answer) = walk.list(&plan.nodes) {
        return answer;
    }
    let mut answer = Map::new();
    for path in &plan.shown {
        answer.insert(path.join("_"), walk.at(path).unwrap_or_else(|| json!(NOTHING)));
    }
    for (index, past) in plan.past.iter().enumerate() {
        answer.insert(past_key(index), walk.past(past));
    }
    walk.kept(Value::Object(answer))
}

struct Walk<'p> {
    around: &'p Around<'p>,
    input: &'p Value,
    /// From the plan's own scope to the innermost frame's.
    scopes: Vec<Scope>,
    order: &'p mut Order,
}

impl Walk<'_> {
    fn list(&mut self, nodes: &[Node]) -> Flow {
        let mut last = ContextValue::Value(Value::Null);
        let mut index = 0;
        while let Some(node) = nodes.get(index) {
            index += 1;
            match &node.kind {
                Kind::SkipIf => {
                    let shared = self.shared(Look::Inside);
                    index += usize::from(shared.as_u64().is_some_and(|shared| shared > 500));
                }
                Kind::SkipCase(number) => index += usize::from(self.fits(*number)),
                Kind::SkipUnless(number) => index += usize::from(!self.fits(*number)),
                Kind::Human { form, .. } => {
                    let given = if *form { form_of(&node.id) } else { words_of(&node.id) };
                    let given = self.kept(given);
                    self.write("human_input", given);
                }
                Kind::Final { shows_shared, item } => {
                    return Flow::Answered(self.early(&node.id, *shows_shared, item.as_ref()));
                }
                Kind::Publish => {}
                Kind::Call(_)
                | Kind::Parallel(_)
                | Kind::Loop { .. }
                | Kind::Sub { .. }
                | Kind::Agent(_) => match self.work(node) {
                    Flow::On(output) => last = output,
                    answered @ Flow::Answered(_) => return answered,
                },
            }
        }
        Flow::On(last)
    }

    fn work(&mut self, node: &Node) -> Flow {
        match &node.kind {
            Kind::Call(call) => Flow::On(self.call(&node.id, call)),
            Kind::Parallel(branches) => self.parallel(&node.id, branches),
            Kind::Loop { over, alias, concurrency, body, .. } => {
                let items = self.items(over);
                self.each(&node.id, alias, items, *concurrency, body)
            }
            Kind::Sub { plan, save } => {
                let input = json!({"n": self.input["n"], "items": self.input["items"]});
                let returned = match self.around.plans.get(*plan) {
                    Some(plan) => answer(self.around, plan, &input, self.order),
                    None => ContextValue::Value(Value::Null),
                };
                self.write(save, returned.clone());
                Flow::On(returned)
            }
            Kind::Agent(agent) => {
                let answer = self.kept(answer_of(&node.id, agent));
                self.write(&agent.save, answer.clone());
                Flow::On(answer)
            }
            Kind::SkipIf
            | Kind::SkipCase(_)
            | Kind::SkipUnless(_)
            | Kind::Human { .. }
            | Kind::Publish
            | Kind::Final { .. } => Flow::On(ContextValue::Value(Value::Null)),
        }
    }

    fn call(&mut self, id: &str, call: &CallStep) -> ContextValue {
        let mut arguments = json!({"step": id});
        if call.large {
            arguments["large"] = json!(true);
        }
        if call.wants > 0 {
            arguments["wants"] = json!(call.wants);
            arguments["given"] = all_given(&form_of(id), call.wants);
        }
        if let Some(look) = call.reads {
            arguments["prev"] = self.shared(look);
        }
        if let Some((alias, look)) = &call.item {
            let path = [vec![alias.clone()], look.path("id")].concat();
            arguments["item"] = self.at(&path).unwrap_or_else(|| json!(NOTHING));
        }
        if let Some(past) = &call.past {
            arguments["past"] = self.past(past);
        }
        let output = self.kept(output_of(&arguments));
        self.write(&call.save, output.clone());
        if let Some(scope) = self.scopes.last_mut() {
            scope.entries.push(Entry { step: id.to_owned(), output: output.clone() });
        }
        output
    }

    fn parallel(&mut self, id: &str, branches: &[Vec<Node>]) -> Flow {
        let mut left = Vec::new();
        let mut answers = Vec::new();
        for branch in branches {
            self.scopes.push(Scope::default());
            let flow = self.list(branch);
            let scope = self.scopes.pop().unwrap_or_default();
            match flow {
                Flow::On(_) => left.push(scope),
                Flow::Answered(answer) => answers.push(answer),
            }
        }
        if let Some(answer) = self.first_of(answers) {
            return Flow::Answered(answer);
        }
        // Whether all of it is one blob does not matter: plans point to single keys of a branch.
        let mut joined = BTreeMap::new();
        for (index, scope) in left.iter().enumerate() {
            joined.insert(branch_id(index), ContextValue::Object(scope.context.clone()));
        }
        left.into_iter().for_each(|scope| self.merge(scope));
        let joined = ContextValue::Object(joined);
        self.write(id, joined.clone());
        Flow::On(joined)
    }

    fn items(&self, over: &Over) -> Vec<Value> {
        let items = match over {
            Over::Input => Some(self.input["items"].clone()),
            Over::Context(path) => {
                path.split_first().and_then(|(key, rest)| self.look_up(key)?.opened_at(rest))
            }
        };
        items.and_then(|items| items.as_array().cloned()).unwrap_or_default()
    }

    fn each(
        &mut self,
        id: &str,
        alias: &str,
        items: Vec<Value>,
        concurrency: u32,
        body: &[Node],
    ) -> Flow {
        let mut results = Vec::new();
        let mut left = Vec::new();
        let mut answers = Vec::new();
        for item in items {
            let mut scope = Scope::default();
            scope.context.insert(alias.to_owned(), self.kept(item));
            self.scopes.push(scope);
            let flow = self.list(body);
            let mut scope = self.scopes.pop().unwrap_or_default();
            scope.context.remove(alias);
            match (flow, concurrency) {
                (Flow::Answered(answer), 1) => return Flow::Answered(answer),
                (Flow::Answered(answer), _) => answers.push(answer),
                (Flow::On(output), 1) => {
                    results.push(output);
                    self.merge(scope);
                }
                (Flow::On(output), _) => {
                    results.push(output);
                    left.push(scope);
                }
            }
        }
        if let Some(answer) = self.first_of(answers) {
            return Flow::Answered(answer);
        }
        left.into_iter().for_each(|scope| self.merge(scope));
        let joined = ContextValue::Array(results).joined(self.around.inline_bytes_max);
        self.write(id, joined.clone());
        Flow::On(joined)
    }

    /// Of those who answer beside each other, the one that comes first.
    fn first_of(&mut self, mut answers: Vec<ContextValue>) -> Option<ContextValue> {
        if answers.is_empty() {
            return None;
        }
        let chosen = self.order.choose(answers.len());
        Some(answers.swap_remove(chosen))
    }

    fn early(&self, id: &str, shows_shared: bool, item: Option<&String>) -> ContextValue {
        let mut answer = json!({"from": id, "newest": self.past(&Past::NewestStep)});
        if shows_shared {
            answer["shared"] = self.shared(Look::Whole);
            answer["number"] = self.shared(Look::Inside);
        }
        if let Some(alias) = item {
            let item = self.at(std::slice::from_ref(alias));
            answer["item"] = item.unwrap_or_else(|| json!(NOTHING));
        }
        self.kept(answer)
    }

    fn kept(&self, value: Value) -> ContextValue {
        ContextValue::kept(value, self.around.inline_bytes_max)
    }

    fn fits(&self, number: u64) -> bool {
        self.input["n"].as_u64() == Some(number)
    }

    fn write(&mut self, key: &str, value: ContextValue) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.context.insert(key.to_owned(), value);
        }
    }

    fn merge(&mut self, more: Scope) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.context.extend(more.context);
            scope.entries.extend(more.entries);
        }
    }

    fn look_up(&self, key: &str) -> Option<&ContextValue> {
        self.scopes.iter().rev().find_map(|scope| scope.context.get(key))
    }

    fn at(&self, path: &[String]) -> Option<Value> {
        let (first, rest) = path.split_first()?;
        self.look_up(first)?.at(rest)
    }

    fn shared(&self, look: Look) -> Value {
        let found = self.look_up(SHARED_KEY).and_then(|held| held.at(&look.path(NUMBER)));
        found.unwrap_or(json!(0))
    }

    /// What the innermost frame sees of the history, newest first.
    fn seen(&self) -> impl Iterator<Item = &Entry> {
        self.scopes.iter().rev().flat_map(|scope| scope.entries.iter().rev())
    }

    fn past(&self, past: &Past) -> Value {
        let found = match past {
            Past::Step(step, look) => {
                let latest = self.seen().find(|entry| entry.step == *step);
                latest.and_then(|entry| entry.output.at(&look.path(NUMBER)))
            }
            Past::Newest(look) => {
                self.seen().next().and_then(|entry| entry.output.at(&look.path(NUMBER)))
            }
            Past::NewestStep => self.seen().next().map(|entry| json!(entry.step)),
            // A query gives an array, whatever it finds.
            Past::All(step) => Some(
                self.seen()
                    .filter(|entry| entry.step == *step)
                    .map(|entry| entry.output.shown())
                    .collect(),
            ),
            Past::Steps => Some(self.seen().map(|entry| json!(entry.step)).collect()),
        };
        found.unwrap_or_else(|| json!(NOTHING))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_tried_once() {
        let mut order = Order::default();
        let mut tried = Vec::new();
        loop {
            let first = order.choose(2);
            tried.push((first, if first == 0 { order.choose(3) } else { 9 }));
            if !order.advance() {
                break;
            }
        }
        assert_eq!(tried, [(0, 0), (0, 1), (0, 2), (1, 9)]);
    }
}
