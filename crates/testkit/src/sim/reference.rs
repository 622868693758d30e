//! A second, much simpler reading of the plans: one step after the other, nothing fails, everyone
//! says yes. A run that nobody steered otherwise must come to the same answer, whatever finished
//! first and however often the process died.

use super::plans::{Kind, NOTHING, Node, SHARED_KEY, SimPlan, branch_id};
use super::rng::mix;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Numbers that tools give are below this; conditions compare with the middle.
const OUTPUT_END: u64 = 1_000;

type Scope = BTreeMap<String, Value>;

/// What a tool gives for these arguments.
pub fn output_of(arguments: &Value) -> Value {
    let mut digest = 17;
    let fields: BTreeMap<&String, &Value> = arguments.as_object().into_iter().flatten().collect();
    for (name, value) in fields {
        for byte in name.bytes().chain(value.to_string().into_bytes()) {
            digest = mix(digest, u64::from(byte));
        }
    }
    json!((digest >> 20) % OUTPUT_END)
}

/// What everyone answers to a question of this step.
pub fn words_of(step: &str) -> Value {
    json!(format!("yes {step}"))
}

/// What everyone fills into a form of this step.
pub fn form_of(step: &str) -> Value {
    json!({"name": step})
}

/// The answer of a plan with this input.
pub fn answer(plans: &[SimPlan], plan: &SimPlan, input: &Value) -> Value {
    let mut walk = Walk { plans, input, scopes: vec![Scope::new()] };
    walk.list(&plan.nodes);
    let mut answer = Map::new();
    for path in &plan.shown {
        answer.insert(path.join("_"), walk.at(path).unwrap_or_else(|| json!(NOTHING)));
    }
    Value::Object(answer)
}

struct Walk<'p> {
    plans: &'p [SimPlan],
    input: &'p Value,
    /// From the plan's own scope to the innermost frame's.
    scopes: Vec<Scope>,
}

impl Walk<'_> {
    /// Walks a list; gives the last output.
    fn list(&mut self, nodes: &[Node]) -> Value {
        let mut last = Value::Null;
        let mut index = 0;
        while let Some(node) = nodes.get(index) {
            index += 1;
            match &node.kind {
                Kind::SkipIf => {
                    let shared = self.look_up(SHARED_KEY).unwrap_or(json!(0));
                    index += usize::from(shared.as_u64().is_some_and(|shared| shared > 500));
                }
                Kind::SkipCase(number) => {
                    index += usize::from(self.input["n"].as_u64() == Some(*number));
                }
                Kind::Human { form, .. } => {
                    let given = if *form { form_of(&node.id) } else { words_of(&node.id) };
                    self.write("human_input", given);
                }
                _ => last = self.work(node),
            }
        }
        last
    }

    fn work(&mut self, node: &Node) -> Value {
        match &node.kind {
            Kind::Call { save, reads, item, .. } => {
                let mut arguments = json!({"step": node.id});
                if *reads {
                    arguments["prev"] = self.look_up(SHARED_KEY).unwrap_or(json!(0));
                }
                if let Some(alias) = item {
                    arguments["item"] = self.look_up(alias).unwrap_or(Value::Null);
                }
                let output = output_of(&arguments);
                self.write(save, output.clone());
                output
            }
            Kind::Parallel(branches) => {
                let left: Vec<Scope> = branches
                    .iter()
                    .map(|branch| {
                        self.scopes.push(Scope::new());
                        self.list(branch);
                        self.scopes.pop().unwrap_or_default()
                    })
                    .collect();
                let mut joined = Map::new();
                for (index, scope) in left.iter().enumerate() {
                    let fields: Map<String, Value> = scope.clone().into_iter().collect();
                    joined.insert(branch_id(index), Value::Object(fields));
                }
                left.into_iter().for_each(|scope| self.merge(scope));
                self.write(&node.id, Value::Object(joined.clone()));
                Value::Object(joined)
            }
            Kind::Loop { alias, concurrency, body, .. } => {
                self.each(&node.id, alias, *concurrency, body)
            }
            Kind::Sub { plan, save } => {
                let answer = match self.plans.get(*plan) {
                    Some(plan) => answer(self.plans, plan, self.input),
                    None => Value::Null,
                };
                self.write(save, answer.clone());
                answer
            }
            Kind::SkipIf | Kind::SkipCase(_) | Kind::Human { .. } => Value::Null,
        }
    }

    fn each(&mut self, id: &str, alias: &str, concurrency: u32, body: &[Node]) -> Value {
        let items = self.input["items"].as_array().cloned().unwrap_or_default();
        let mut results = Vec::new();
        let mut left = Vec::new();
        for item in items {
            self.scopes.push(Scope::from([(alias.to_owned(), item)]));
            results.push(self.list(body));
            let mut scope = self.scopes.pop().unwrap_or_default();
            scope.remove(alias);
            if concurrency == 1 {
                self.merge(scope);
            } else {
                left.push(scope);
            }
        }
        left.into_iter().for_each(|scope| self.merge(scope));
        self.write(id, json!(results));
        json!(results)
    }

    fn write(&mut self, key: &str, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(key.to_owned(), value);
        }
    }

    fn merge(&mut self, more: Scope) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.extend(more);
        }
    }

    fn look_up(&self, key: &str) -> Option<Value> {
        self.scopes.iter().rev().find_map(|scope| scope.get(key)).cloned()
    }

    fn at(&self, path: &[String]) -> Option<Value> {
        let (first, rest) = path.split_first()?;
        let mut value = self.look_up(first)?;
        for name in rest {
            value = value.get(name)?.clone();
        }
        Some(value)
    }
}
