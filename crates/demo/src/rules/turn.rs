//! One turn: what is known goes into a scope, the first rule that holds replies.
//!
//! An expression that cannot be worked out, such as one over a result of another shape, counts as
//! nothing and is logged: the rules after it, and the fallback in the end, still answer.

use super::conversation::{Call, Run, Status, runs};
use super::dates::{Here, show};
use super::definition::{
    CallRule, Choice, CommandRule, Conditions, Definition, Is, Let, Reply, ResultTest, Rule, Tree,
    TurnKind,
};
use super::functions;
use super::patterns::captures;
use super::scope::{Expr, Scope, from_json, to_json};
use kernel::conversation::llm::{LlmError, LlmErrorKind, ModelCall, Prompt, ToolChoice, Turn};
use kernel::values::canonical;
use kernel::values::names::shortened;
use minijinja::Value;
use serde_json::{Map, Value as Json, json};
use std::borrow::Cow;
use std::sync::Arc;

/// How many calls one turn makes at most.
const CALLS_MAX: usize = 64;
/// The longest text that is read as tasks. Reading takes time that grows with the square of the
/// length, and nothing else runs on its thread meanwhile.
const TEXT_BYTES_MAX: usize = 4 * 1024;
/// The longest text that is read as an event.
const EVENT_BYTES_MAX: usize = 256 * 1024;

pub(super) fn answer(definition: &Definition, prompt: &Prompt) -> Result<Turn, LlmError> {
    let here = Here::new(prompt.now.0, &prompt.zone).ok_or_else(|| {
        let message = format!("rules: there is no time zone `{}`", prompt.zone);
        LlmError::new(LlmErrorKind::BadRequest, message).hint("write an IANA name: `Europe/Berlin`")
    })?;
    let stage = Stage::new(definition, prompt, here);
    if !stage.has_event && stage.run.text.len() > TEXT_BYTES_MAX {
        tracing::warn!(bytes = stage.run.text.len(), "a request is too long for the rules");
        return Ok(stage.fall_back());
    }
    let reply = definition.rules.iter().find_map(|rule| stage.reply(rule));
    Ok(reply.unwrap_or_else(|| stage.fall_back()))
}

/// All that is known in a turn.
struct Stage<'a> {
    definition: &'a Definition,
    prompt: &'a Prompt,
    run: Run,
    /// What is asked is an event, and no request in words.
    has_event: bool,
    /// The calls since the last turn that acted, that turn's own included.
    recent: Vec<Call>,
    /// The calls of that turn.
    fresh: Vec<Call>,
    scope: Scope,
}

impl<'a> Stage<'a> {
    fn new(definition: &'a Definition, prompt: &'a Prompt, here: Here) -> Self {
        let mut runs = runs(&prompt.messages);
        let run = runs.pop().unwrap_or_default();
        let is_act = |call: &&Call| !names(prompt, &definition.reads, &call.tool);
        let acted = run.calls.iter().filter(is_act).map(|call| call.turn).max().unwrap_or(0);
        let since = |call: &&Call| call.turn >= acted;
        let recent: Vec<Call> = run.calls.iter().filter(since).cloned().collect();
        let is_fresh = |call: &&Call| acted > 0 && call.turn == acted;
        let fresh: Vec<Call> = run.calls.iter().filter(is_fresh).cloned().collect();
        let mut scope = Scope::default();
        scope.set_json("turn", &json!(run.turns));
        scope.set_json("text", &json!(run.text));
        let event = event(&run.text);
        let has_event = event.is_some();
        if let Some(event) = event {
            scope.set_json("event", &event);
        }
        let past: Vec<Call> = runs.into_iter().flat_map(|run| run.calls).collect();
        let mut stage = Self { definition, prompt, run, has_event, recent, fresh, scope };
        stage.set_the_scene(here);
        stage.set_calls(&past, acted);
        stage.set_tasks();
        let mut scope = std::mem::take(&mut stage.scope);
        stage.work_out(&definition.lets, &mut scope);
        stage.scope = scope;
        stage
    }

    fn set_the_scene(&mut self, here: Here) {
        let now = show::iso(here.now());
        let tools: Vec<&str> = self.prompt.tools.iter().map(|tool| tool.name.as_str()).collect();
        let form = self.prompt.answer.as_ref().map(|form| &*form.schema);
        self.scope.set_json("today", &json!(now[..10]));
        self.scope.set_json("now_minute", &json!(format!("{}:00", &now[..16])));
        self.scope.set_json("now", &json!(now));
        self.scope.set_json("zone", &json!(self.prompt.zone));
        self.scope.set_json("tools", &json!(tools));
        self.scope.set_json("form", form.unwrap_or(&Json::Null));
        functions::add(&mut self.scope, &Arc::new(here), &self.definition.patterns);
    }

    fn set_calls(&mut self, past: &[Call], acted: usize) {
        let mut inner = self.scope.clone();
        inner.set("past", list(past.iter().map(|call| from_json(&as_json(call)))));
        inner.set("calls", list(self.run.calls.iter().map(|call| from_json(&as_json(call)))));
        let past: Vec<Value> = past.iter().map(|call| self.worked_out(call, &inner)).collect();
        let calls: Vec<Value> =
            self.run.calls.iter().map(|call| self.worked_out(call, &inner)).collect();
        let of_turns = |is_wanted: &dyn Fn(usize) -> bool| {
            let own = self.run.calls.iter().zip(&calls);
            list(own.filter(|(call, _)| is_wanted(call.turn)).map(|(_, value)| value.clone()))
        };
        let fresh = of_turns(&|turn| acted > 0 && turn == acted);
        let looked = of_turns(&|turn| turn > acted);
        self.scope.set("past", list(past.into_iter()));
        self.scope.set("calls", list(calls.into_iter()));
        self.scope.set("fresh", fresh);
        self.scope.set("looked", looked);
    }

    /// A call with what the file wants to know of every call.
    fn worked_out(&self, call: &Call, scope: &Scope) -> Value {
        let Json::Object(mut fields) = as_json(call) else { return Value::UNDEFINED };
        let mut scope = scope.clone();
        for (name, value) in fields.iter().filter(|(name, _)| *name != "turn") {
            scope.set_json(name, value);
        }
        for own in &self.definition.call_lets {
            let value = self.value(&own.value, &scope, &own.name);
            fields.insert(own.name.clone(), to_json(&value));
            scope.set(&own.name, value);
        }
        from_json(&Json::Object(fields))
    }

    fn set_tasks(&mut self) {
        let asked = self.tasks(&self.run.text, None);
        self.scope.set("asked", asked.clone());
        let open = if self.fresh.is_empty() { asked } else { self.answered() };
        self.scope.set("open", open);
    }

    /// The tasks in the answers that the last turn got.
    fn answered(&self) -> Value {
        let mut open = Vec::new();
        for call in &self.fresh {
            let Status::Answered(answer) = &call.status else { continue };
            let question =
                call.arguments.get("question").and_then(Json::as_str).unwrap_or_default();
            let mut scope = self.scope.clone();
            scope.set_json("answer", &json!(answer));
            scope.set_json("question", &json!(question));
            let rules = &self.definition.answers;
            let rule = rules.iter().find(|rule| rule.question.is_match(question));
            let text = rule.map(|rule| self.definition.texts.fill(&rule.read, &scope));
            let text = match text {
                Some(Ok(text)) => text,
                Some(Err(why)) => {
                    tracing::warn!(question, why, "an answer was not read as its rule says");
                    answer.clone()
                }
                None => answer.clone(),
            };
            let tasks = self.tasks(&text, rule.and_then(|rule| rule.kind));
            open.extend(tasks.try_iter().into_iter().flatten());
        }
        list(open.into_iter())
    }

    /// The tasks of a text; none where it is too long to be read, or an event is asked about.
    fn tasks(&self, text: &str, given: Option<usize>) -> Value {
        if self.has_event || text.len() > TEXT_BYTES_MAX {
            return list(std::iter::empty());
        }
        let rules = &self.definition.tasks;
        let mut before = Value::from(());
        let mut tasks = Vec::new();
        for part in rules.parts(text, given) {
            let kind = part.kind.and_then(|kind| rules.kinds.get(kind));
            let mut fields = Map::new();
            let name = kind.map_or("other", |kind| kind.name.as_str());
            fields.insert("kind".to_owned(), json!(name));
            fields.insert("type".to_owned(), json!(kind.and_then(|kind| kind.tool_type.as_ref())));
            fields.insert("part".to_owned(), json!(part.text));
            fields.insert("head".to_owned(), json!(part.head));
            fields.insert("inherited".to_owned(), json!(part.inherited));
            fields.insert("m".to_owned(), Json::Object(part.groups));
            let mut scope = self.scope.clone();
            for (name, value) in &fields {
                scope.set_json(name, value);
            }
            scope.set("before", before);
            for own in kind.map_or(&[][..], |kind| kind.lets.as_slice()) {
                let value = self.value(&own.value, &scope, &own.name);
                fields.insert(own.name.clone(), to_json(&value));
                scope.set(&own.name, value);
            }
            before = from_json(&Json::Object(fields));
            tasks.push(before.clone());
        }
        list(tasks.into_iter())
    }

    fn work_out(&self, lets: &[Let], scope: &mut Scope) {
        for own in lets {
            let value = self.value(&own.value, scope, &own.name);
            scope.set(&own.name, value);
        }
    }

    fn value(&self, expr: &Expr, scope: &Scope, name: &str) -> Value {
        self.definition.texts.value(expr, scope).unwrap_or_else(|why| {
            tracing::warn!(name, why, "an expression of the rules has no value");
            Value::UNDEFINED
        })
    }

    fn holds(&self, test: &Expr, scope: &Scope) -> bool {
        self.value(test, scope, "if").is_true()
    }

    /// What the rule replies; nothing if it does not hold, or has nothing to say.
    fn reply(&self, rule: &Rule) -> Option<Turn> {
        let mut scope = self.scope.clone();
        if !self.fits(&rule.conditions, &mut scope) {
            return None;
        }
        self.work_out(&rule.lets, &mut scope);
        if rule.conditions.test.as_ref().is_some_and(|test| !self.holds(test, &scope)) {
            return None;
        }
        let turn = match &rule.reply {
            Reply::Say(text) => match self.definition.texts.fill(text, &scope) {
                Ok(text) => text_turn(text.trim()),
                Err(why) => {
                    tracing::warn!(rule = rule.name, line = rule.line, why, "a rule cannot speak");
                    None
                }
            },
            Reply::Answer(tree) => text_turn(&self.grown(tree, &scope).to_string()),
            Reply::Calls(rules) => self.calls(rules, &scope),
            Reply::Command(rule) => self.command(rule, &scope),
        }?;
        tracing::debug!(rule = rule.name, line = rule.line, "a rule replies");
        Some(turn)
    }

    /// Whether everything but the expression holds. Named groups of what fits are `m`.
    fn fits(&self, conditions: &Conditions, scope: &mut Scope) -> bool {
        let kind = if self.prompt.answer.is_some() { TurnKind::Router } else { TurnKind::Executor };
        let has_tool = |name: &String| is_shown(self.prompt, &seen_as(self.prompt, name));
        let last = self.run.calls.last();
        let after = |call: &Call| names(self.prompt, &conditions.after, &call.tool);
        let answered = |call: &Call| matches!(call.status, Status::Answered(_));
        let is_clarified = self.fresh.iter().any(answered);
        let has_failed = last.is_some_and(|call| call.status == Status::Failed);
        conditions.turn.is_none_or(|turn| turn == kind)
            && conditions.tools.iter().all(has_tool)
            && (conditions.after.is_empty() || last.is_some_and(after))
            && conditions.failed.is_none_or(|failed| failed == has_failed)
            && conditions.clarified.is_none_or(|clarified| clarified == is_clarified)
            && conditions
                .result
                .iter()
                .all(|test| last.is_some_and(|call| test.holds(&call.result)))
            && !conditions.not_said.iter().any(|regex| regex.is_match(&self.run.text))
            && self.fits_words(conditions, scope)
    }

    fn fits_words(&self, conditions: &Conditions, scope: &mut Scope) -> bool {
        let mut groups = Map::new();
        if let Some(regex) = &conditions.rejected {
            let fits = self.fresh.iter().find_map(|call| match &call.status {
                Status::Rejected(feedback) => captures(regex, feedback),
                Status::Open | Status::Ok | Status::Failed | Status::Answered(_) => None,
            });
            match fits {
                Some(found) => groups.extend(found),
                None => return false,
            }
        }
        if !conditions.said.is_empty() {
            let fits = conditions.said.iter().find_map(|regex| captures(regex, &self.run.text));
            match fits {
                Some(found) => groups.extend(found),
                None => return false,
            }
        }
        scope.set_json("m", &Json::Object(groups));
        true
    }

    fn calls(&self, rules: &[CallRule], scope: &Scope) -> Option<Turn> {
        if self.prompt.choice == ToolChoice::None {
            return None;
        }
        let mut made: Vec<(String, Json)> = Vec::new();
        for rule in rules {
            for item in self.items(rule, scope) {
                let mut scope = scope.clone();
                if let (Some((_, name)), Some(item)) = (&rule.for_each, item) {
                    scope.set(name, item);
                }
                self.work_out(&rule.lets, &mut scope);
                let choice = rule.choices.iter().find(|choice| {
                    choice.test.as_ref().is_none_or(|test| self.holds(test, &scope))
                });
                let call = choice.and_then(|choice| self.call(choice, &scope));
                let new = call.filter(|call| !made.contains(call));
                made.extend(new);
            }
        }
        made.truncate(CALLS_MAX);
        if made.is_empty() {
            return None;
        }
        let number = self.run.turns + 1;
        let call = |(index, (tool, arguments)): (usize, (String, Json))| ModelCall {
            id: format!("call_{number}_{}", index + 1),
            tool,
            arguments: Arc::new(arguments),
        };
        let calls = made.into_iter().enumerate().map(call).collect();
        Some(Turn { calls, ..Turn::default() })
    }

    /// A command, where no form is asked for. Whether its tool can be called is for its reader
    /// to say, and its `stop` ends what would go in circles.
    fn command(&self, rule: &CommandRule, scope: &Scope) -> Option<Turn> {
        if self.prompt.answer.is_some() {
            return None;
        }
        let mut command = Map::new();
        command.insert("intent".to_owned(), json!("CALL_TOOL"));
        command.insert("tool".to_owned(), self.grown(&rule.tool, scope));
        command.insert("args".to_owned(), self.grown(&rule.arguments, scope));
        command.insert("stop".to_owned(), json!(rule.stop));
        for (key, tree) in &rule.beside {
            command.insert((*key).to_owned(), self.grown(tree, scope));
        }
        text_turn(&Json::Object(command).to_string())
    }

    /// What a call is made for: the items of a list, or once for nothing.
    fn items(&self, rule: &CallRule, scope: &Scope) -> Vec<Option<Value>> {
        let Some((list, _)) = &rule.for_each else { return vec![None] };
        let list = self.value(list, scope, "for_each");
        list.try_iter().into_iter().flatten().take(CALLS_MAX).map(Some).collect()
    }

    /// The call, if the tool can be called and was not called like this already: the outcome of
    /// that is known, and asking again would never end. What was done in this run is not done
    /// twice.
    fn call(&self, choice: &Choice, scope: &Scope) -> Option<(String, Json)> {
        let tool = self.grown(&choice.tool, scope);
        let tool = tool.as_str()?;
        let arguments = self.grown(&choice.arguments, scope);
        let seen = seen_as(self.prompt, tool);
        let is_there = is_shown(self.prompt, &seen);
        let is_read = names(self.prompt, &self.definition.reads, tool);
        let is_same =
            |call: &&Call| seen_as(self.prompt, &call.tool) == seen && *call.arguments == arguments;
        let is_done = |call: &Call| !is_read && call.status == Status::Ok;
        let again = self.recent.iter().any(|call| is_same(&call))
            || self.run.calls.iter().filter(is_same).any(is_done);
        (is_there && !again).then(|| (tool.to_owned(), arguments))
    }

    /// A tree with everything filled in.
    fn grown(&self, tree: &Tree, scope: &Scope) -> Json {
        match tree {
            Tree::Literal(value) => value.clone(),
            Tree::Value(expr) => to_json(&self.value(expr, scope, "{{ }}")),
            Tree::Text(text) => match self.definition.texts.fill(text, scope) {
                Ok(text) => Json::String(text),
                Err(why) => {
                    tracing::warn!(why, "a text of the rules cannot be filled");
                    Json::Null
                }
            },
            Tree::List(items) => items.iter().map(|item| self.grown(item, scope)).collect(),
            Tree::Map(fields) => {
                let grown = fields.iter().map(|(name, field)| (name, self.grown(field, scope)));
                let there = grown.filter(|(_, field)| !field.is_null());
                Json::Object(there.map(|(name, field)| (name.clone(), field)).collect())
            }
        }
    }

    /// What is replied where no rule holds.
    fn fall_back(&self) -> Turn {
        let fallback = &self.definition.fallback;
        let say = self.definition.texts.fill(&fallback.say, &self.scope).unwrap_or_default();
        let say = say.trim();
        let text = match (&self.prompt.answer, &fallback.answer) {
            (Some(_), Some(answer)) => self.grown(answer, &self.scope).to_string(),
            // A router that says nothing of a request refuses it.
            (Some(_), None) => {
                json!({"decision": "refuse", "note": say, "allowed_tool_types": []}).to_string()
            }
            (None, _) => say.to_owned(),
        };
        Turn { text, ..Turn::default() }
    }
}

impl ResultTest {
    fn holds(&self, result: &Json) -> bool {
        let value = result.pointer(&self.at);
        match &self.is {
            Is::Exists(wanted) => value.is_some() == *wanted,
            Is::Empty(wanted) => value.is_none_or(is_empty) == *wanted,
            Is::Equals(wanted) => value == Some(wanted),
            Is::Matches(regex) => value.is_some_and(|value| match value {
                Json::String(text) => regex.is_match(text),
                Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => {
                    regex.is_match(&canonical::sorted(value).to_string())
                }
            }),
        }
    }
}

/// The event that a text is: one JSON object.
fn event(text: &str) -> Option<Json> {
    let is_object = text.len() <= EVENT_BYTES_MAX && text.trim_start().starts_with('{');
    is_object.then(|| serde_json::from_str(text).ok()).flatten()
}

fn names(prompt: &Prompt, list: &[String], tool: &str) -> bool {
    let tool = seen_as(prompt, tool);
    list.iter().any(|name| seen_as(prompt, name) == tool)
}

/// The name under which the prompt has a tool. A file or a conversation may have it escaped, from
/// when two short names were alike.
fn seen_as<'n>(prompt: &Prompt, name: &'n str) -> Cow<'n, str> {
    if is_shown(prompt, name) {
        return Cow::Borrowed(name);
    }
    let short = shortened(name);
    if is_shown(prompt, &short) { Cow::Owned(short) } else { Cow::Borrowed(name) }
}

fn is_shown(prompt: &Prompt, name: &str) -> bool {
    prompt.tools.iter().any(|card| card.name == name)
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Bool(_) | Json::Number(_) => false,
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.is_empty(),
        Json::Object(fields) => fields.is_empty(),
    }
}

fn text_turn(text: &str) -> Option<Turn> {
    (!text.is_empty()).then(|| Turn { text: text.to_owned(), ..Turn::default() })
}

fn list(values: impl Iterator<Item = Value>) -> Value {
    Value::from(values.collect::<Vec<Value>>())
}

fn as_json(call: &Call) -> Json {
    let (status, feedback, answer) = match &call.status {
        Status::Open => ("open", "", ""),
        Status::Ok => ("ok", "", ""),
        Status::Failed => ("failed", "", ""),
        Status::Rejected(feedback) => ("rejected", feedback.as_str(), ""),
        Status::Answered(answer) => ("answered", "", answer.as_str()),
    };
    json!({
        "tool": call.tool,
        "args": &*call.arguments,
        "turn": call.turn,
        "status": status,
        "ok": status == "ok",
        "failed": status == "failed",
        "rejected": status == "rejected",
        "answered": status == "answered",
        "feedback": feedback,
        "answer": answer,
        "outcome": call.outcome,
        "result": call.result,
    })
}
