//! Renders a plan as a Mermaid diagram.

use super::flow::{StepExit, edges};
use super::{Expr, ListPlace, Plan, Step, StepKind, Text};
use crate::expression::condition::Condition;
use crate::values::ids::StepId;
use std::collections::{BTreeMap, BTreeSet};

/// How many characters of a text a picture shows.
const LABEL_CHARS_MAX: usize = 60;

/// The plan as a Mermaid flowchart. The same plan always gives the same text.
pub fn mermaid(plan: &Plan) -> String {
    let mut drawing = Drawing { plan, names: names(plan), text: String::from("flowchart TD\n") };
    let first = drawing.name(&plan.start).to_owned();
    drawing.line(1, &format!("begin((\"start\")) --> {first}"));
    drawing.steps(&plan.steps, 1);
    drawing.arrows(&plan.steps);
    drawing.text
}

struct Drawing<'p> {
    plan: &'p Plan,
    /// Mermaid's own ids: letters, digits and `_`.
    names: BTreeMap<&'p StepId, String>,
    text: String,
}

impl Drawing<'_> {
    fn steps(&mut self, steps: &[Step], depth: usize) {
        for step in steps {
            match &step.kind {
                StepKind::Parallel { branches, .. } => {
                    let name = self.name(&step.id).to_owned();
                    self.open(&name, &label(&step.id), depth);
                    for (index, branch) in branches.iter().enumerate() {
                        let name = format!("b_{}_{index}", self.name(&step.id));
                        self.open(&name, &escaped(&branch.id), depth + 1);
                        self.steps(&branch.steps, depth + 2);
                        self.line(depth + 1, "end");
                    }
                    self.line(depth, "end");
                }
                StepKind::Loop(looping) => {
                    let items = looping.collection.short();
                    let title = escaped(&format!("for each {} of {items}", looping.alias));
                    let title = format!("{}<br/>{title}", label(&step.id));
                    let name = self.name(&step.id).to_owned();
                    self.open(&name, &title, depth);
                    self.steps(&looping.body, depth + 1);
                    self.line(depth, "end");
                }
                _ => self.node(step, depth),
            }
        }
    }

    fn node(&mut self, step: &Step, depth: usize) {
        let (open, more, close) = match &step.kind {
            StepKind::ToolCall(call) if call.approve => {
                ("[", format!("{} after approval", call.tool), "]")
            }
            StepKind::ToolCall(call) => ("[", call.tool.to_string(), "]"),
            StepKind::Match { value, .. } => ("{", value.short(), "}"),
            StepKind::Conditional { condition, .. } => ("{", question(condition), "}"),
            StepKind::Human { message, .. } => ("[/", words(message), "\\]"),
            StepKind::Plan { plan, .. } => ("[[", plan.to_string(), "]]"),
            StepKind::Agent { agent, .. } => ("{{", agent.to_string(), "}}"),
            StepKind::Publish { event, .. } => (">", format!("publishes {}", kind(event)), "]"),
            StepKind::Final { message } => ("([", words(message), "])"),
            // Drawn as subgraphs.
            StepKind::Parallel { .. } | StepKind::Loop(_) => return,
        };
        let name = self.name(&step.id);
        let line = format!("{name}{open}\"{}<br/>{}\"{close}", label(&step.id), escaped(&more));
        self.line(depth, &line);
    }

    fn arrows(&mut self, steps: &[Step]) {
        for step in steps {
            let top = self.plan.index.get(&step.id).map(|place| &place.list);
            let is_top = top == Some(&ListPlace::Top);
            for edge in edges(self.plan, step) {
                let target = match &edge.next {
                    Some(next) => self.name(next).to_owned(),
                    None if is_top => "finish((\"end\"))".to_owned(),
                    // The end of an inner list is the end of its subgraph.
                    None => continue,
                };
                let arrow = match edge.exit {
                    StepExit::Completed => "-->",
                    StepExit::Refused => "-.->",
                };
                let label = edge.label.map(|label| format!("|\"{}\"|", escaped(&label)));
                let label = label.unwrap_or_default();
                let line = format!("{} {arrow}{label} {target}", self.name(&step.id));
                self.line(1, &line);
            }
            step.bodies().into_iter().for_each(|body| self.arrows(body));
        }
    }

    fn open(&mut self, name: &str, title: &str, depth: usize) {
        self.line(depth, &format!("subgraph {name}[\"{title}\"]"));
    }

    fn line(&mut self, depth: usize, line: &str) {
        self.text.push_str(&"    ".repeat(depth));
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn name(&self, id: &StepId) -> &str {
        self.names.get(id).map_or("unknown", String::as_str)
    }
}

/// A name for every step; two ids that differ only in their signs get different names.
fn names(plan: &Plan) -> BTreeMap<&StepId, String> {
    let mut taken = BTreeSet::new();
    let mut names = BTreeMap::new();
    for id in plan.index.keys() {
        let plain = |char: char| if char.is_ascii_alphanumeric() { char } else { '_' };
        // The prefix keeps Mermaid's own words, such as `end`, out of the way.
        let mut name: String = "s_".chars().chain(id.as_str().chars().map(plain)).collect();
        while !taken.insert(name.clone()) {
            name.push('_');
        }
        names.insert(id, name);
    }
    names
}

fn label(id: &StepId) -> String {
    escaped(id.as_str())
}

fn question(condition: &Condition<Expr>) -> String {
    let left = condition.left.short();
    let operator = condition.operator.name();
    match &condition.right {
        Some(right) => format!("{left} {operator} {}", right.short()),
        None => format!("{left} {operator}"),
    }
}

fn words(message: &Text) -> String {
    match message {
        Text::Template(template) => template.source().to_owned(),
        Text::Expr(expr) => expr.short(),
    }
}

/// What an event is called, as far as the plan says it.
fn kind(event: &Expr) -> String {
    match event {
        Expr::Literal(event) => event["type"].as_str().unwrap_or_default().to_owned(),
        Expr::Object(fields) => {
            let found = fields.iter().find(|(name, _)| name == "type");
            found.map(|(_, kind)| kind.short()).unwrap_or_default()
        }
        Expr::Pointer(_) | Expr::Array(_) => event.short(),
    }
}

/// A text as it may stand between quotes in Mermaid.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for (count, char) in text.chars().enumerate() {
        if count == LABEL_CHARS_MAX {
            escaped.push('…');
            break;
        }
        match char {
            '"' => escaped.push_str("#quot;"),
            '#' => escaped.push_str("#35;"),
            '<' => escaped.push_str("#lt;"),
            '>' => escaped.push_str("#gt;"),
            '&' => escaped.push_str("#amp;"),
            '`' => escaped.push_str("#96;"),
            '|' => escaped.push_str("#124;"),
            char if char.is_control() => escaped.push(' '),
            char => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
