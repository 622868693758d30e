//! Shared readers for the values of a plan: names, texts, pointers, conditions. Every mistake is
//! collected; none stops the reading.

use super::mistake::{Mistake, meant};
use super::source::{Key, Node, NodeKind, child_pointer};
use super::{Example, Expr, PointerExpr, Text};
use crate::expression::condition::{Condition, Operator};
use crate::expression::pointer::{Pointer, Target};
use crate::expression::template::Template;
use crate::limits::Limits;
use crate::values::ids::PlanId;
use serde_json::Value;
use std::sync::Arc;

/// The keys of an example, for a hint.
const EXAMPLE_KEYS: &str = "an example has name, input, replies, stubs and expect: {status, \
    answer?, error?}; a stub is {result} or {fault}";

/// Where a plan comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// Its file, as mistakes show it.
    pub file: Option<String>,
    /// Its id if it names none.
    pub default_id: Option<PlanId>,
}

impl Origin {
    /// The origin of a plan file; its id defaults to `<domain>/<file stem without .plan>`.
    pub fn of_file(file: &str) -> Self {
        let mut parts = file.rsplit('/');
        let name = parts.next().unwrap_or_default();
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let stem = stem.strip_suffix(".plan").unwrap_or(stem);
        let domain = parts.next().filter(|folder| !["", ".", "..", "plans"].contains(folder));
        let id = domain.map_or_else(|| stem.to_owned(), |domain| format!("{domain}/{stem}"));
        Self {
            file: Some(file.to_owned()),
            default_id: (!stem.is_empty()).then(|| PlanId::from(id)),
        }
    }

    /// The mistake at the place that a JSON Pointer names in this plan.
    pub(crate) fn place(&self, node: &Node, pointer: &str, mistake: Mistake) -> Mistake {
        self.filed(mistake.at(node.position(pointer), pointer))
    }

    /// The mistake with this plan's file.
    pub fn filed(&self, mut mistake: Mistake) -> Mistake {
        mistake.file.clone_from(&self.file);
        mistake
    }

    /// All of them with this plan's file.
    pub fn all_filed(&self, mistakes: Vec<Mistake>) -> Vec<Mistake> {
        mistakes.into_iter().map(|mistake| self.filed(mistake)).collect()
    }
}

/// A node and the JSON Pointer to it.
#[derive(Debug)]
pub struct Spot<'n> {
    pub node: &'n Node,
    pub pointer: String,
}

impl<'n> Spot<'n> {
    pub fn root(node: &'n Node) -> Self {
        Self { node, pointer: String::new() }
    }

    pub fn is_map(&self) -> bool {
        matches!(self.node.kind, NodeKind::Map(_))
    }

    /// A field that is there, null or not.
    pub fn value(&self, key: &str) -> Option<Spot<'n>> {
        let node = self.node.get(key)?;
        Some(Spot { node, pointer: child_pointer(&self.pointer, key) })
    }

    /// A field that is there and not null.
    pub fn field(&self, key: &str) -> Option<Spot<'n>> {
        self.value(key).filter(|field| field.node.kind != NodeKind::Null)
    }
}

/// Reads values and collects what is wrong with them. A function that gives nothing for a value
/// that is there has noted a mistake.
pub struct Reader<'a> {
    pub(crate) origin: &'a Origin,
    pub(crate) limits: &'a Limits,
    pub mistakes: Vec<Mistake>,
    /// Whether a run pinned the plan: a pointer that cannot be read is then a fault of that run.
    pub(crate) pinned: bool,
    /// Whether we made the plan, or may have: it can have keys that nobody else writes.
    pub(crate) made: bool,
}

/// How many unknown keys of one map are reported: each takes a search for the one that was meant.
pub(crate) const UNKNOWN_KEYS_MAX: usize = 100;

impl<'a> Reader<'a> {
    pub fn new(origin: &'a Origin, limits: &'a Limits) -> Self {
        Self { origin, limits, mistakes: Vec::new(), pinned: false, made: false }
    }

    pub fn note(&mut self, spot: &Spot<'_>, mistake: Mistake) {
        let mistake = mistake.at(spot.node.begin(), spot.pointer.as_str());
        self.mistakes.push(self.origin.filed(mistake));
    }

    /// Notes that a value is of the wrong kind.
    pub fn wrong(&mut self, spot: &Spot<'_>, wanted: &str) {
        let mistake = Mistake::error(format!("expected {wanted}, found {}", spot.node.what()));
        self.note(spot, mistake.hint(format!("write {wanted} here")));
    }

    /// Whether it is a map; keys that it should not have are noted.
    pub fn object(&mut self, spot: &Spot<'_>, what: &str, known: &[&str]) -> bool {
        let NodeKind::Map(entries) = &spot.node.kind else {
            self.wrong(spot, &format!("a map for {what}"));
            return false;
        };
        let is_extension = |name: &str| spot.pointer.is_empty() && name.starts_with("x-");
        let is_unknown = |name: &str| !is_extension(name) && !known.contains(&name);
        let unknown = entries.iter().filter(|(key, _)| is_unknown(&key.text));
        for (key, _) in unknown.take(UNKNOWN_KEYS_MAX) {
            let name = key.text.as_str();
            let hint = meant(name, known.iter().copied())
                .unwrap_or_else(|| format!("the keys are {}", quoted(known)));
            let mistake = Mistake::error(format!("unknown key `{name}` in {what}")).hint(hint);
            self.note_key(spot, key, mistake);
        }
        true
    }

    /// A field that is required.
    pub fn need<'n>(&mut self, spot: &Spot<'n>, key: &str) -> Option<Spot<'n>> {
        let field = spot.value(key);
        if field.is_none() {
            let mistake = Mistake::error(format!("`{key}` is missing"));
            self.note(spot, mistake.hint(format!("add `{key}: ..` here")));
        }
        field
    }

    pub(crate) fn need_name<'n>(&mut self, spot: &Spot<'n>, key: &str) -> Option<&'n str> {
        self.need(spot, key).and_then(|field| self.name(&field))
    }

    pub(crate) fn maybe_name<'n>(&mut self, spot: &Spot<'n>, key: &str) -> Option<&'n str> {
        spot.field(key).and_then(|field| self.name(&field))
    }

    pub fn text<'n>(&mut self, spot: &Spot<'n>) -> Option<&'n str> {
        let text = spot.node.text();
        if text.is_none() {
            let mistake = Mistake::error(format!("expected a text, found {}", spot.node.what()));
            let scalar = matches!(spot.node.kind, NodeKind::Number(_) | NodeKind::Bool(_));
            self.note(
                spot,
                mistake.hint(if scalar { "put it in quotes" } else { "write a text here" }),
            );
        }
        text
    }

    /// A text that can name something.
    pub(crate) fn name<'n>(&mut self, spot: &Spot<'n>) -> Option<&'n str> {
        let text = self.text(spot)?;
        let most = self.limits.client_id_chars_max;
        if text.is_empty() || text.chars().any(char::is_control) || text.chars().count() > most {
            let mistake = Mistake::error("this text cannot be a name")
                .hint(format!("a name has 1 to {most} characters on one line"));
            self.note(spot, mistake);
            return None;
        }
        Some(text)
    }

    pub fn flag(&mut self, spot: &Spot<'_>) -> Option<bool> {
        if let NodeKind::Bool(flag) = spot.node.kind {
            return Some(flag);
        }
        self.wrong(spot, "true or false");
        None
    }

    pub fn list<'n>(&mut self, spot: &Spot<'n>) -> Option<Vec<Spot<'n>>> {
        let NodeKind::List(items) = &spot.node.kind else {
            self.wrong(spot, "a list");
            return None;
        };
        let spots = items.iter().enumerate().map(|(index, node)| Spot {
            node,
            pointer: child_pointer(&spot.pointer, &index.to_string()),
        });
        Some(spots.collect())
    }

    /// A list with at least one item.
    pub fn filled<'n>(&mut self, spot: &Spot<'n>) -> Option<Vec<Spot<'n>>> {
        let items = self.list(spot)?;
        if items.is_empty() {
            self.note(
                spot,
                Mistake::error("this list is empty").hint("it needs at least one item"),
            );
            return None;
        }
        Some(items)
    }

    /// A JSON Schema by its looks: a map, or true or false. Whether it compiles is checked later.
    pub(crate) fn schema(&mut self, spot: &Spot<'_>) -> Option<Arc<Value>> {
        if matches!(spot.node.kind, NodeKind::Map(_) | NodeKind::Bool(_)) {
            return Some(Arc::new(spot.node.to_value()));
        }
        self.wrong(spot, "a JSON Schema");
        None
    }

    /// A literal, a pointer, or a tree of both.
    pub(crate) fn expr(&mut self, spot: &Spot<'_>) -> Option<Expr> {
        if !holds_pointer(spot.node) {
            return Some(Expr::Literal(Arc::new(spot.node.to_value())));
        }
        if spot.value(POINTER_KEY).is_some() {
            return self.pointing(spot);
        }
        if let NodeKind::Map(entries) = &spot.node.kind {
            let mut fields = Vec::with_capacity(entries.len());
            for (key, node) in entries {
                let field = Spot { node, pointer: child_pointer(&spot.pointer, &key.text) };
                fields.push(self.expr(&field).map(|expr| (key.text.clone(), expr)));
            }
            return fields.into_iter().collect::<Option<Vec<_>>>().map(Expr::Object);
        }
        let items = self.list(spot)?;
        let items: Vec<Option<Expr>> = items.iter().map(|item| self.expr(item)).collect();
        items.into_iter().collect::<Option<Vec<_>>>().map(Expr::Array)
    }

    fn pointing(&mut self, spot: &Spot<'_>) -> Option<Expr> {
        self.object(spot, "a pointer", &[POINTER_KEY, "default", "all"]);
        let all = spot.field("all").and_then(|field| self.flag(&field)).unwrap_or(false);
        let default = spot.value("default");
        if let Some(field) = default.as_ref().filter(|field| holds_pointer(field.node)) {
            let mistake = Mistake::error("the default of a pointer must be a literal");
            self.note(field, mistake.hint("a pointer has no place in it"));
        }
        let field = spot.value(POINTER_KEY)?;
        let text = self.text(&field)?;
        let pointer = match Pointer::parse(text, all) {
            Ok(pointer) => pointer,
            Err(bad) if self.pinned => Pointer::unreadable(bad),
            Err(bad) => {
                let hint = "pointers are JSONPath from `$.context`, `$.history` or `$.promptInput`";
                self.note(&field, Mistake::error(bad.to_string()).hint(hint));
                return None;
            }
        };
        if all && !matches!(pointer.target, Target::History(Some(_))) {
            let mistake = Mistake::warning("`all` has no effect on this pointer");
            self.note(spot, mistake.hint("it is for `$.history[?(@.planStepId=='x')]`"));
        }
        let default = default.map(|field| Arc::new(field.node.to_value()));
        Some(Expr::Pointer(Box::new(PointerExpr { pointer, default })))
    }

    /// What is published: a map whose `type` says what happened, or a pointer to one.
    pub(crate) fn event(&mut self, spot: &Spot<'_>) -> Option<Expr> {
        let expr = self.expr(spot)?;
        let says_what = match &expr {
            Expr::Pointer(_) => true,
            Expr::Literal(value) if value.is_object() => value.get("type").is_some_and(is_word),
            Expr::Object(fields) => {
                let kind = fields.iter().find(|(name, _)| name == "type");
                match kind.map(|(_, kind)| kind) {
                    Some(Expr::Pointer(_)) => true,
                    Some(Expr::Literal(kind)) => is_word(kind),
                    Some(Expr::Object(_) | Expr::Array(_)) | None => false,
                }
            }
            Expr::Literal(_) | Expr::Array(_) => {
                self.wrong(spot, "a map with `type`, or a pointer to one");
                return None;
            }
        };
        if !says_what {
            let mistake = Mistake::error("`type` of the event is missing, or no text");
            self.note(spot, mistake.hint("say what happened: `type: TradeRepaired`"));
        }
        says_what.then_some(expr)
    }

    /// A text with `{{ }}`, a pointer, or a tree of literals and pointers.
    pub(crate) fn message(&mut self, spot: &Spot<'_>) -> Option<Text> {
        let Some(text) = spot.node.text() else {
            return self.expr(spot).map(Text::Expr);
        };
        if text.starts_with("$.") {
            let mistake = Mistake::warning(format!("`{text}` is shown as it stands"));
            self.note(spot, mistake.hint(format!("write `{{jsonPath: \"{text}\"}}` to point")));
        }
        match Template::parse(text) {
            Ok(template) => Some(Text::Template(Box::new(template))),
            Err(why) if self.pinned => Some(Text::Template(Box::new(Template::refused(text, why)))),
            Err(why) => {
                let mistake = Mistake::error(format!("the text cannot be filled: {why}"));
                self.note(spot, mistake.hint("`{{ context.key }}` is replaced, all else stays"));
                None
            }
        }
    }

    pub(crate) fn condition(&mut self, spot: &Spot<'_>) -> Option<Condition<Expr>> {
        if !self.object(spot, "a condition", &["left", "operator", "right"]) {
            return None;
        }
        let left = self.need(spot, "left").and_then(|field| self.expr(&field));
        let operator = self.need(spot, "operator").and_then(|field| self.operator(&field))?;
        if !operator.has_right() {
            if let Some(field) = spot.field("right") {
                self.note(&field, Mistake::warning("this operator has no right side"));
            }
            return Some(Condition { left: left?, operator, right: None });
        }
        let right = self.need(spot, "right").and_then(|field| self.expr(&field));
        Some(Condition { left: left?, operator, right: Some(right?) })
    }

    fn operator(&mut self, spot: &Spot<'_>) -> Option<Operator> {
        let name = self.text(spot)?;
        let found = Operator::from_name(name);
        if found.is_none() {
            let names: Vec<&str> = Operator::ALL.iter().map(|known| known.name()).collect();
            let hint = meant(name, names.iter().copied())
                .unwrap_or_else(|| format!("the operators are {}", quoted(&names)));
            self.note(spot, Mistake::error(format!("unknown operator `{name}`")).hint(hint));
        }
        found
    }

    pub(crate) fn example(&mut self, spot: &Spot<'_>) -> Option<Example> {
        let before = self.mistakes.len();
        let keys = ["name", "input", "error", "replies", "model", "stubs", "expect"];
        self.object(spot, "an example", &keys);
        if let Some(expect) = spot.value("expect") {
            self.object(&expect, "`expect`", &["status", "answer", "error"]);
        }
        match serde_json::from_value(spot.node.to_value()) {
            Ok(example) => Some(example),
            Err(error) => {
                // The keys may have said it already, and better.
                if self.mistakes.len() == before {
                    let mistake = Mistake::error(format!("the example cannot be read: {error}"));
                    self.note(spot, mistake.hint(EXAMPLE_KEYS));
                }
                None
            }
        }
    }

    pub(crate) fn collection(&mut self, spot: &Spot<'_>) -> Option<Expr> {
        if let Some(text) = spot.node.text() {
            let pointer = if text.starts_with('$') { text } else { "$.promptInput.items" };
            let mistake = Mistake::error("expected a pointer or a list, found a text");
            self.note(spot, mistake.hint(format!("write `{{jsonPath: \"{pointer}\"}}`")));
            return None;
        }
        let expr = self.expr(spot)?;
        let can_be_list = match &expr {
            Expr::Literal(value) => value.is_array(),
            Expr::Pointer(_) | Expr::Array(_) => true,
            Expr::Object(_) => false,
        };
        if !can_be_list {
            self.wrong(spot, "a pointer or a list");
            return None;
        }
        Some(expr)
    }

    pub(crate) fn concurrency(&mut self, spot: &Spot<'_>) -> Option<u32> {
        let Some(field) = spot.field("concurrency") else { return Some(1) };
        let most = self.limits.loop_concurrency_max;
        let number = field.node.whole().and_then(|number| u32::try_from(number).ok());
        if let Some(number) = number.filter(|number| (1..=most).contains(number)) {
            return Some(number);
        }
        let message = "`concurrency` must be a whole number from 1 to `loop_concurrency_max`";
        let mistake = Mistake::error(format!("{message} = {most}"));
        self.note(&field, mistake.hint("leave it out for one item at a time"));
        None
    }

    /// How long an ask stays open, `expiresIn: 30m`.
    pub(crate) fn expires(&mut self, spot: &Spot<'_>) -> Option<u64> {
        let field = spot.field("expiresIn")?;
        let text = self.text(&field)?;
        let ms = duration_ms(text);
        if ms.is_none() {
            let mistake = Mistake::error(format!("`expiresIn` cannot be `{text}`"));
            let hint = "write a whole number from 1 and `s`, `m`, `h` or `d`, such as `30m`";
            self.note(&field, mistake.hint(hint));
        }
        ms
    }

    /// A word out of a few, under any of these keys, which are the same; none where it is left out
    /// or wrong.
    pub(crate) fn one_of<T: Copy>(
        &mut self,
        spot: &Spot<'_>,
        keys: &[&str],
        known: &[(&str, T)],
    ) -> Option<T> {
        let mut fields = keys.iter().filter_map(|key| spot.field(key));
        let field = fields.next()?;
        if fields.next().is_some() {
            let mistake = Mistake::error(format!("{} are the same key", listed(keys, "and")));
            self.note(spot, mistake.hint("keep one of the two"));
        }
        let word = self.text(&field)?;
        let found = known.iter().find(|(name, _)| *name == word);
        if found.is_none() {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            let key = keys.first().copied().unwrap_or_default();
            let mistake = Mistake::error(format!("`{key}` cannot be `{word}`"));
            self.note(&field, mistake.hint(format!("write {}", listed(&names, "or"))));
        }
        found.map(|(_, value)| *value)
    }

    /// What a person is asked: a text, or a pointer to one.
    pub(crate) fn question(&mut self, spot: &Spot<'_>) -> Option<Text> {
        let message = self.message(spot)?;
        if matches!(message, Text::Template(_) | Text::Expr(Expr::Pointer(_))) {
            return Some(message);
        }
        self.wrong(spot, "a text or a pointer");
        None
    }

    pub fn note_key(&mut self, spot: &Spot<'_>, key: &Key, mistake: Mistake) {
        let pointer = child_pointer(&spot.pointer, &key.text);
        self.mistakes.push(self.origin.filed(mistake.at(key.begin(), pointer)));
    }
}

/// The key that makes a map a pointer.
const POINTER_KEY: &str = "jsonPath";

/// Names in backticks, for a hint.
pub fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// Names in backticks, the last two joined by a word.
pub(crate) fn listed(names: &[&str], word: &str) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} {word} `{last}`", quoted(first)),
        names => quoted(names),
    }
}

fn is_word(value: &Value) -> bool {
    value.as_str().is_some_and(|word| !word.is_empty())
}

fn holds_pointer(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number(_) | NodeKind::Text(_) => false,
        NodeKind::List(items) => items.iter().any(holds_pointer),
        NodeKind::Map(entries) => {
            entries.iter().any(|(key, field)| key.text == POINTER_KEY || holds_pointer(field))
        }
    }
}

/// The longest time that can be written: 100 years.
pub const DURATION_MS_MAX: u64 = 100 * 365 * 86_400_000;

/// `90s`, `30m`, `2h` or `7d` in milliseconds, or `1500ms`, as programs write it.
pub fn duration_ms(text: &str) -> Option<u64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = &text[..text.len() - unit.len()];
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let ms = number.parse::<u64>().ok()?.checked_mul(unit_ms)?;
    (1..=DURATION_MS_MAX).contains(&ms).then_some(ms)
}
