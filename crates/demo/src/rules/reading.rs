//! Reads the values of a rules file: texts, expressions, patterns. Every mistake is recorded with
//! its position; none ends the reading.

use super::definition::{Let, Tree};
use super::functions;
use super::patterns::Patterns;
use super::scope::{Expr, Text, Texts};
use kernel::definition::plan::mistake::{Mistake, Position, meant};
use kernel::definition::plan::source::{Node, NodeKind};
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeSet;

/// The names that an expression may look at where it stands.
#[derive(Debug, Clone, Default)]
pub(super) struct Names(BTreeSet<String>);

/// What templates have by themselves.
const BUILT_IN: &[&str] = &["range", "dict", "namespace", "loop"];

impl Names {
    /// These names, and what is known everywhere.
    pub(super) fn new(names: &[&str]) -> Self {
        Self::default().with(names).with(functions::NAMES).with(BUILT_IN)
    }

    /// The same with more names.
    pub(super) fn with(&self, names: &[&str]) -> Self {
        let mut all = self.0.clone();
        all.extend(names.iter().map(|name| (*name).to_owned()));
        Self(all)
    }
}

/// Reads values and keeps what is wrong with them. A function that gives nothing for a value that
/// is there has noted a mistake.
pub(super) struct Reader {
    file: String,
    pub(super) texts: Texts,
    pub(super) patterns: Patterns,
    pub(super) mistakes: Vec<Mistake>,
}

impl Reader {
    pub(super) fn new(file: String) -> Self {
        Self { file, texts: Texts::default(), patterns: Patterns::default(), mistakes: Vec::new() }
    }

    pub(super) fn note(&mut self, node: &Node, mistake: Mistake) {
        self.note_at(node.begin(), mistake);
    }

    pub(super) fn note_at(&mut self, place: Position, mistake: Mistake) {
        let mut mistake = mistake.at(place, "");
        mistake.file = Some(self.file.clone());
        self.mistakes.push(mistake);
    }

    fn wrong(&mut self, node: &Node, wanted: &str) {
        let mistake = Mistake::error(format!("expected {wanted}, found {}", node.what()));
        self.note(node, mistake.hint(format!("write {wanted} here")));
    }

    /// Whether it is a map; keys that it should not have are noted.
    pub(super) fn map(&mut self, node: &Node, what: &str, known: &[&str]) -> bool {
        let NodeKind::Map(entries) = &node.kind else {
            self.wrong(node, &format!("a map for {what}"));
            return false;
        };
        for (key, _) in entries {
            let name = key.text.as_str();
            if !known.contains(&name) {
                let all = || format!("the keys are {}", quoted(known.iter().copied()));
                let hint = meant(name, known.iter().copied()).unwrap_or_else(all);
                let mistake = Mistake::error(format!("unknown key `{name}` in {what}"));
                self.note_at(key.begin(), mistake.hint(hint));
            }
        }
        true
    }

    /// A field that is required.
    pub(super) fn need<'n>(&mut self, node: &'n Node, key: &str) -> Option<&'n Node> {
        let field = node.get(key);
        if field.is_none() && matches!(node.kind, NodeKind::Map(_)) {
            let mistake = Mistake::error(format!("`{key}` is missing"));
            self.note(node, mistake.hint(format!("add `{key}: ..` here")));
        }
        field
    }

    pub(super) fn text<'n>(&mut self, node: &'n Node) -> Option<&'n str> {
        if node.text().is_none() {
            self.wrong(node, "a text");
        }
        node.text()
    }

    pub(super) fn flag(&mut self, node: &Node) -> Option<bool> {
        if let NodeKind::Bool(flag) = node.kind {
            return Some(flag);
        }
        self.wrong(node, "true or false");
        None
    }

    /// The items of a list; none where it is no list.
    pub(super) fn list<'n>(&mut self, node: &'n Node) -> &'n [Node] {
        if let NodeKind::List(items) = &node.kind {
            return items;
        }
        self.wrong(node, "a list");
        &[]
    }

    /// A text, or a list of texts.
    pub(super) fn some_texts<'n>(&mut self, node: &'n Node) -> Vec<(&'n Node, &'n str)> {
        let items = node.items_or_self();
        items.iter().filter_map(|item| self.text(item).map(|text| (item, text))).collect()
    }

    /// A list of names.
    pub(super) fn names(&mut self, node: &Node) -> Vec<String> {
        self.some_texts(node).into_iter().map(|(_, text)| text.to_owned()).collect()
    }

    /// The entries of a map, with where each key stands; none where it is no map.
    pub(super) fn entries<'n>(
        &mut self,
        node: &'n Node,
        what: &str,
    ) -> Vec<(&'n str, Position, &'n Node)> {
        let NodeKind::Map(entries) = &node.kind else {
            self.wrong(node, &format!("a map for {what}"));
            return Vec::new();
        };
        let entry = entries.iter();
        entry.map(|(key, node)| (key.text.as_str(), key.begin(), node)).collect()
    }

    pub(super) fn pattern(&mut self, node: &Node) -> Option<Regex> {
        let text = self.text(node)?;
        self.compiled(node, self.patterns.compile(text))
    }

    pub(super) fn beginning(&mut self, node: &Node) -> Option<Regex> {
        let text = self.text(node)?;
        self.compiled(node, self.patterns.compile_beginning(text))
    }

    /// A pattern, or a list of patterns.
    pub(super) fn some_patterns(&mut self, node: &Node) -> Vec<Regex> {
        let texts = self.some_texts(node);
        texts.into_iter().filter_map(|(item, _)| self.pattern(item)).collect()
    }

    pub(super) fn compiled<T>(&mut self, node: &Node, compiled: Result<T, String>) -> Option<T> {
        match compiled {
            Ok(compiled) => Some(compiled),
            Err(why) => {
                let mistake = Mistake::error(format!("the pattern cannot be read: {why}"));
                let hint = "it is a regular expression of Rust's `regex`; `{name}` stands for \
                            words or a pattern above";
                self.note(node, mistake.hint(hint));
                None
            }
        }
    }

    pub(super) fn expression(&mut self, node: &Node, names: &Names) -> Option<Expr> {
        let source = match &node.kind {
            NodeKind::Text(text) => text.clone(),
            NodeKind::Bool(_) | NodeKind::Number(_) => node.to_value().to_string(),
            NodeKind::Null | NodeKind::List(_) | NodeKind::Map(_) => {
                self.wrong(node, "an expression");
                return None;
            }
        };
        let read = self.texts.expression(&source);
        self.checked(node, &source, read, names)
    }

    /// A text in which `{{ }}` is filled in.
    pub(super) fn template(&mut self, node: &Node, names: &Names) -> Option<Text> {
        let source = self.text(node)?;
        let read = self.texts.text(source);
        self.checked(node, source, read, names)
    }

    /// A value in which `{{ }}` is filled in, however deep.
    pub(super) fn tree(&mut self, node: &Node, names: &Names) -> Option<Tree> {
        match &node.kind {
            NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number(_) => {
                Some(Tree::Literal(node.to_value()))
            }
            NodeKind::Text(text) => {
                if let Some(source) = expression_alone(text) {
                    let read = self.texts.expression(source);
                    return self.checked(node, source, read, names).map(Tree::Value);
                }
                if text.contains("{{") || text.contains("{%") {
                    return self.template(node, names).map(Tree::Text);
                }
                Some(Tree::Literal(Value::String(text.clone())))
            }
            NodeKind::List(items) => {
                let items: Vec<_> = items.iter().map(|item| self.tree(item, names)).collect();
                items.into_iter().collect::<Option<Vec<_>>>().map(Tree::List)
            }
            NodeKind::Map(entries) => {
                let mut fields = Vec::with_capacity(entries.len());
                for (key, field) in entries {
                    let field = self.tree(field, names);
                    fields.push(field.map(|field| (key.text.clone(), field)));
                }
                fields.into_iter().collect::<Option<Vec<_>>>().map(Tree::Map)
            }
        }
    }

    /// Names and their expressions, in order; each sees those above it. Gives the names as well.
    pub(super) fn lets(&mut self, node: &Node, names: &Names) -> (Vec<Let>, Names) {
        let mut known = names.clone();
        let mut lets = Vec::new();
        for (name, place, node) in self.entries(node, "`let`") {
            let is_name = !name.is_empty()
                && !name.starts_with(|first: char| first.is_ascii_digit())
                && !name.starts_with("__")
                && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
            if !is_name {
                let mistake = Mistake::error(format!("`{name}` cannot be a name"));
                self.note_at(place, mistake.hint("use letters, digits and `_`"));
            }
            if let Some(value) = self.expression(node, &known) {
                lets.push(Let { name: name.to_owned(), value });
            }
            known = known.with(&[name]);
        }
        (lets, known)
    }

    /// `let` of a map, if there is one.
    pub(super) fn own_lets(&mut self, node: &Node, names: &Names) -> (Vec<Let>, Names) {
        match node.get("let") {
            Some(lets) => self.lets(lets, names),
            None => (Vec::new(), names.clone()),
        }
    }

    /// Notes names and patterns that are not known.
    fn checked<T>(
        &mut self,
        node: &Node,
        source: &str,
        read: Result<(T, Vec<String>), String>,
        known: &Names,
    ) -> Option<T> {
        let (read, names) = match read {
            Ok(read) => read,
            Err(why) => {
                let mistake = Mistake::error(format!("this cannot be read: {why}"));
                let hint = "expressions are those of Jinja; docs/reference/rules-model.md has all \
                            names";
                self.note(node, mistake.hint(hint));
                return None;
            }
        };
        let before = self.mistakes.len();
        for name in names.iter().filter(|name| !known.0.contains(*name)) {
            let all = known.0.iter().map(String::as_str);
            let hint = meant(name, all.clone())
                .unwrap_or_else(|| format!("the names here are {}", quoted(all)));
            let mistake = Mistake::error(format!("`{name}` is not known here"));
            self.note(node, mistake.hint(hint));
        }
        for name in matched(source) {
            if self.patterns.get(name).is_none() {
                let hint = meant(name, self.patterns.names()).unwrap_or_else(|| {
                    format!("the patterns are {}", quoted(self.patterns.names()))
                });
                let mistake = Mistake::error(format!("there is no pattern `{name}`"));
                self.note(node, mistake.hint(hint));
            }
        }
        (self.mistakes.len() == before).then_some(read)
    }
}

/// The expression of a text that is nothing but one `{{ }}`.
fn expression_alone(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    (!inner.contains("{{") && !inner.contains("}}")).then_some(inner)
}

/// The patterns that an expression names in `match('name', ..)`.
fn matched(source: &str) -> impl Iterator<Item = &str> {
    source.split("match(").skip(1).filter_map(|after| {
        let after = after.trim_start();
        let quote = after.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
        after[1..].split(quote).next()
    })
}

/// The names, each in backticks.
pub(super) fn quoted<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
