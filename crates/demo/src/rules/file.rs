//! Reads a rules file, section by section.

use super::definition::{
    AnswerRule, CallRule, Choice, CommandRule, Conditions, Definition, Fallback, Is, Kind, Let,
    Reply, ResultTest, Rule, TaskRules, Tree, TurnKind,
};
use super::reading::{Names, Reader, quoted};
use super::scope::Texts;
use kernel::definition::plan::mistake::{Mistake, Position, meant};
use kernel::definition::plan::source::{Node, Subject};
use kernel::limits::Limits;
use regex::Regex;
use serde_json::{Map, Value};
use std::sync::Arc;

const SECTIONS: &[&str] = &[
    "version", "about", "reads", "words", "patterns", "tasks", "answers", "calls", "let", "rules",
    "fallback",
];
/// What every expression of a turn may look at.
const TURN_NAMES: &[&str] =
    &["text", "event", "now", "now_minute", "today", "zone", "tools", "form", "turn"];
const CALL_NAMES: &[&str] = &[
    "tool", "args", "status", "ok", "failed", "rejected", "answered", "feedback", "answer",
    "outcome", "result", "calls", "past",
];
const TALK_NAMES: &[&str] = &["calls", "past", "fresh", "looked"];
const TASK_NAMES: &[&str] = &["kind", "type", "part", "head", "inherited", "before", "m"];

/// What a command may say beside what it does.
const BESIDE: &[&str] = &["reasoning", "expected"];

/// Where a request may be cut: commas and the like, ends of sentences and lines, "and".
const JOINTS: &str = concat!(
    r"\s*[,;]\s*(?:(?:and|then|also)\s+)*",
    r"|[.?!]\s+|\s*\n\s*",
    r"|\s+(?:and|then|plus)\s+(?:(?:then|also)\s+)*",
);
/// What is never cut.
const QUOTES: &str = "[\"“][^\"“”]*[\"”]";

/// How mistakes of the text are reported.
const RULES: Subject = Subject {
    noun: "rules file",
    if_empty: "it has `version`, `rules` and `fallback`",
    if_large: "make two files of it, each for a model of its own",
    if_deep: "rules are not that deep",
};

/// Reads a file. All mistakes are reported at once, in the order of the text.
pub(super) fn read(text: &str, file: &str) -> Result<Definition, Vec<Mistake>> {
    let root = Node::parse_as(&RULES, text, &Limits::default()).map_err(|mistakes| {
        let filed = |mistake: Mistake| Mistake { file: Some(file.to_owned()), ..mistake };
        mistakes.into_iter().map(filed).collect::<Vec<_>>()
    })?;
    let mut reader = Reader::new(file.to_owned());
    let definition = definition(&mut reader, &root);
    match definition {
        Some(mut definition) if reader.mistakes.is_empty() => {
            definition.texts = reader.texts;
            definition.patterns = Arc::new(reader.patterns);
            Ok(definition)
        }
        _ => {
            reader.mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
            Err(reader.mistakes)
        }
    }
}

fn definition(reader: &mut Reader, root: &Node) -> Option<Definition> {
    if !reader.map(root, "a rules file", SECTIONS) {
        return None;
    }
    if let Some(version) = reader.need(root, "version")
        && version.to_value() != 1
    {
        let mistake = Mistake::error("this version of rules is not known");
        reader.note(version, mistake.hint("write `version: 1`"));
    }
    words_and_patterns(reader, root);
    let reads = root.get("reads").map(|node| reader.names(node)).unwrap_or_default();
    let turn = Names::new(TURN_NAMES);
    let call_lets = call_lets(reader, root, &turn);
    let talk = turn.with(TALK_NAMES);
    let tasks = task_rules(reader, root, &talk);
    let with_tasks = talk.with(&["asked"]);
    let kinds = tasks.as_ref().map_or(&[][..], |tasks| tasks.kinds.as_slice());
    let answers = answer_rules(reader, root, &with_tasks, kinds);
    let (lets, names) = reader.own_lets(root, &with_tasks.with(&["open"]));
    let rules = match reader.need(root, "rules") {
        Some(node) => rules(reader, node, &names),
        None => Vec::new(),
    };
    let fallback = fallback(reader, root, &names);
    Some(Definition {
        texts: Texts::default(),
        patterns: Arc::default(),
        reads,
        tasks: tasks?,
        answers,
        call_lets,
        lets,
        rules,
        fallback: fallback?,
    })
}

fn words_and_patterns(reader: &mut Reader, root: &Node) {
    if let Some(words) = root.get("words") {
        for (name, place, node) in reader.entries(words, "`words`") {
            refuse_duplicate(reader, name, place);
            let texts: Vec<&str> =
                reader.some_texts(node).into_iter().map(|(_, text)| text).collect();
            reader.patterns.add_words(name, &texts);
        }
    }
    if let Some(patterns) = root.get("patterns") {
        for (name, place, node) in reader.entries(patterns, "`patterns`") {
            refuse_duplicate(reader, name, place);
            if let Some(text) = reader.text(node) {
                let added = reader.patterns.add(name, text);
                reader.compiled(node, added);
            }
        }
    }
}

fn refuse_duplicate(reader: &mut Reader, name: &str, place: Position) {
    if reader.patterns.knows(name) {
        let mistake = Mistake::error(format!("`{name}` names words or a pattern already"));
        reader.note_at(place, mistake.hint("choose another name"));
    }
}

fn call_lets(reader: &mut Reader, root: &Node, turn: &Names) -> Vec<Let> {
    let Some(calls) = root.get("calls") else { return Vec::new() };
    reader.map(calls, "`calls`", &["let"]);
    reader.own_lets(calls, &turn.with(CALL_NAMES)).0
}

fn task_rules(reader: &mut Reader, root: &Node, names: &Names) -> Option<TaskRules> {
    let joints = constant(reader, root, JOINTS);
    let quotes = constant(reader, root, QUOTES);
    let Some(tasks) = root.get("tasks") else {
        let joints = joints?;
        let quotes = quotes?;
        let strip = None;
        let begins = None;
        let list = None;
        return Some(TaskRules { strip, begins, list, kinds: Vec::new(), joints, quotes });
    };
    reader.map(tasks, "`tasks`", &["strip", "begins", "list", "kinds"]);
    let strip = tasks.get("strip").and_then(|node| reader.pattern(node));
    let begins = tasks.get("begins").and_then(|node| reader.beginning(node));
    let list = tasks.get("list").and_then(|node| reader.pattern(node));
    let nodes = reader.need(tasks, "kinds").map_or(&[][..], |node| reader.list(node));
    let kinds = nodes.iter().filter_map(|node| kind(reader, node, names)).collect();
    Some(TaskRules { strip, begins, list, kinds, joints: joints?, quotes: quotes? })
}

fn constant(reader: &mut Reader, root: &Node, source: &str) -> Option<Regex> {
    let compiled = reader.patterns.compile(source);
    reader.compiled(root, compiled)
}

fn kind(reader: &mut Reader, node: &Node, names: &Names) -> Option<Kind> {
    let known = ["kind", "type", "inherits", "match", "bare", "let"];
    if !reader.map(node, "a kind of task", &known) {
        return None;
    }
    let name = reader.need(node, "kind").and_then(|node| reader.text(node));
    let patterns = reader.need(node, "match").map(|node| reader.some_patterns(node));
    let tool_type = node.get("type").and_then(|node| reader.text(node)).map(str::to_owned);
    let inherits = node.get("inherits").and_then(|node| reader.flag(node)).unwrap_or(false);
    let bare = node.get("bare").and_then(|node| reader.pattern(node));
    let (lets, _) = reader.own_lets(node, &names.with(TASK_NAMES));
    Some(Kind { name: name?.to_owned(), tool_type, inherits, patterns: patterns?, bare, lets })
}

fn answer_rules(
    reader: &mut Reader,
    root: &Node,
    names: &Names,
    kinds: &[Kind],
) -> Vec<AnswerRule> {
    let nodes = root.get("answers").map_or(&[][..], |node| reader.list(node));
    let names = names.with(&["answer", "question"]);
    let mut rules = Vec::new();
    for node in nodes {
        if !reader.map(node, "an answer", &["question", "kind", "read"]) {
            continue;
        }
        let question = reader.need(node, "question").and_then(|node| reader.pattern(node));
        let read = reader.need(node, "read").and_then(|node| reader.template(node, &names));
        let kind = node.get("kind").and_then(|node| kind_named(reader, node, kinds));
        if let (Some(question), Some(read)) = (question, read) {
            rules.push(AnswerRule { question, kind, read });
        }
    }
    rules
}

fn kind_named(reader: &mut Reader, node: &Node, kinds: &[Kind]) -> Option<usize> {
    let name = reader.text(node)?;
    let found = kinds.iter().position(|kind| kind.name == name);
    if found.is_none() {
        let all = || kinds.iter().map(|kind| kind.name.as_str());
        let hint = meant(name, all()).unwrap_or_else(|| format!("the kinds are {}", quoted(all())));
        reader.note(node, Mistake::error(format!("there is no kind `{name}`")).hint(hint));
    }
    found
}

fn rules(reader: &mut Reader, node: &Node, names: &Names) -> Vec<Rule> {
    let nodes = reader.list(node);
    nodes.iter().filter_map(|node| rule(reader, node, names)).collect()
}

fn rule(reader: &mut Reader, node: &Node, names: &Names) -> Option<Rule> {
    let known = ["rule", "when", "let", "say", "answer", "calls", "command"];
    if !reader.map(node, "a rule", &known) {
        return None;
    }
    let name = reader.need(node, "rule").and_then(|node| reader.text(node));
    let (lets, names) = reader.own_lets(node, &names.with(&["m"]));
    let conditions = match node.get("when") {
        Some(when) => conditions(reader, when, &names),
        None => Conditions::default(),
    };
    let reply = reply(reader, node, &names);
    let name = name?.to_owned();
    let line = node.line;
    Some(Rule { name, line, conditions, lets, reply: reply? })
}

fn conditions(reader: &mut Reader, node: &Node, names: &Names) -> Conditions {
    let known = [
        "turn", "said", "not_said", "tools", "after", "failed", "rejected", "clarified", "result",
        "if",
    ];
    if !reader.map(node, "`when`", &known) {
        return Conditions::default();
    }
    Conditions {
        turn: node.get("turn").and_then(|node| turn_kind(reader, node)),
        said: node.get("said").map(|node| reader.some_patterns(node)).unwrap_or_default(),
        not_said: node.get("not_said").map(|node| reader.some_patterns(node)).unwrap_or_default(),
        tools: node.get("tools").map(|node| reader.names(node)).unwrap_or_default(),
        after: node.get("after").map(|node| reader.names(node)).unwrap_or_default(),
        failed: node.get("failed").and_then(|node| reader.flag(node)),
        rejected: node.get("rejected").and_then(|node| reader.pattern(node)),
        clarified: node.get("clarified").and_then(|node| reader.flag(node)),
        result: node.get("result").map(|node| result_tests(reader, node)).unwrap_or_default(),
        test: node.get("if").and_then(|node| reader.expression(node, names)),
    }
}

fn turn_kind(reader: &mut Reader, node: &Node) -> Option<TurnKind> {
    match reader.text(node)? {
        "router" => Some(TurnKind::Router),
        "executor" => Some(TurnKind::Executor),
        other => {
            let mistake = Mistake::error(format!("`turn` cannot be `{other}`"));
            reader.note(node, mistake.hint("write `router` or `executor`"));
            None
        }
    }
}

/// One test, or a list of them.
fn result_tests(reader: &mut Reader, node: &Node) -> Vec<ResultTest> {
    node.items_or_self().iter().filter_map(|node| result_test(reader, node)).collect()
}

fn result_test(reader: &mut Reader, node: &Node) -> Option<ResultTest> {
    if !reader.map(node, "`result`", &["at", "exists", "empty", "equals", "matches"]) {
        return None;
    }
    let at = reader.need(node, "at").and_then(|node| reader.text(node))?;
    if !(at.is_empty() || at.starts_with('/')) {
        let mistake = Mistake::error(format!("`{at}` is no JSON Pointer"));
        reader.note(node, mistake.hint(format!("write `/{at}`")));
        return None;
    }
    let is = if let Some(equals) = node.get("equals") {
        Is::Equals(equals.to_value())
    } else if let Some(matches) = node.get("matches") {
        Is::Matches(reader.pattern(matches)?)
    } else if let Some(empty) = node.get("empty") {
        Is::Empty(reader.flag(empty)?)
    } else if let Some(exists) = node.get("exists") {
        Is::Exists(reader.flag(exists)?)
    } else {
        Is::Exists(true)
    };
    Some(ResultTest { at: at.to_owned(), is })
}

fn reply(reader: &mut Reader, node: &Node, names: &Names) -> Option<Reply> {
    let ways = ["say", "answer", "calls", "command"].map(|way| node.get(way));
    match ways {
        [Some(say), None, None, None] => reader.template(say, names).map(Reply::Say),
        [None, Some(answer), None, None] => reader.tree(answer, names).map(Reply::Answer),
        [None, None, None, Some(command)] => {
            command_rule(reader, command, names).map(Reply::Command)
        }
        [None, None, Some(calls), None] => {
            let nodes = reader.list(calls);
            let calls: Vec<_> = nodes.iter().map(|node| call_rule(reader, node, names)).collect();
            calls.into_iter().collect::<Option<Vec<_>>>().map(Reply::Calls)
        }
        _ => {
            let mistake = Mistake::error("a rule replies in one way");
            let hint = "give it one of `say`, `answer`, `calls` and `command`";
            reader.note(node, mistake.hint(hint));
            None
        }
    }
}

fn command_rule(reader: &mut Reader, node: &Node, names: &Names) -> Option<CommandRule> {
    let known = ["tool", "args", "stop", "reasoning", "expected"];
    if !reader.map(node, "a command", &known) {
        return None;
    }
    let tool = reader.need(node, "tool").and_then(|node| reader.tree(node, names));
    let arguments = arguments(reader, node, names);
    let stop = node.get("stop").map(|node| reader.flag(node));
    let mut beside = Vec::new();
    for key in BESIDE {
        let value = node.get(key).map(|node| reader.tree(node, names));
        if let Some(value) = value {
            beside.push((*key, value?));
        }
    }
    let stop = match stop {
        Some(stop) => stop?,
        None => true,
    };
    Some(CommandRule { tool: tool?, arguments: arguments?, stop, beside })
}

/// `args`, which may be left out.
fn arguments(reader: &mut Reader, node: &Node, names: &Names) -> Option<Tree> {
    match node.get("args") {
        Some(arguments) => reader.tree(arguments, names),
        None => Some(Tree::Literal(Value::Object(Map::new()))),
    }
}

fn call_rule(reader: &mut Reader, node: &Node, names: &Names) -> Option<CallRule> {
    let known = ["for_each", "as", "let", "choose", "if", "tool", "args"];
    if !reader.map(node, "a call", &known) {
        return None;
    }
    let item = node.get("as").and_then(|node| reader.text(node)).unwrap_or("item");
    let list = node.get("for_each").map(|node| reader.expression(node, names));
    let names = if list.is_some() { names.with(&[item]) } else { names.clone() };
    let for_each = match list {
        Some(list) => Some((list?, item.to_owned())),
        None => None,
    };
    let (lets, names) = reader.own_lets(node, &names);
    let choices = match node.get("choose") {
        Some(choose) => {
            let nodes = reader.list(choose);
            let choices: Vec<_> = nodes
                .iter()
                .map(|node| {
                    reader.map(node, "a choice", &["if", "tool", "args"]);
                    choice(reader, node, &names)
                })
                .collect();
            choices.into_iter().collect::<Option<Vec<_>>>()?
        }
        None => vec![choice(reader, node, &names)?],
    };
    Some(CallRule { for_each, lets, choices })
}

fn choice(reader: &mut Reader, node: &Node, names: &Names) -> Option<Choice> {
    let test = node.get("if").map(|node| reader.expression(node, names));
    let tool = reader.need(node, "tool").and_then(|node| reader.tree(node, names));
    let arguments = arguments(reader, node, names);
    let test = match test {
        Some(test) => Some(test?),
        None => None,
    };
    Some(Choice { test, tool: tool?, arguments: arguments? })
}

fn fallback(reader: &mut Reader, root: &Node, names: &Names) -> Option<Fallback> {
    let Some(node) = root.get("fallback") else {
        let mistake = Mistake::error("`fallback` is missing: what is said where no rule holds");
        reader.note(root, mistake.hint("add `fallback: {say: I cannot help with that.}`"));
        return None;
    };
    if !reader.map(node, "`fallback`", &["say", "answer"]) {
        return None;
    }
    let say = reader.need(node, "say").and_then(|node| reader.template(node, names));
    let answer = node.get("answer").and_then(|node| reader.tree(node, names));
    Some(Fallback { say: say?, answer })
}
