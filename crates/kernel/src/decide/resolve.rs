//! Evaluates the expressions of a plan in the scope of a frame.

use crate::definition::plan::{Expr, PointerExpr, Text};
use crate::expression::budget::Budget;
use crate::expression::pointer::{Blob, Fetch, Recent, Selected, Stop, View};
use crate::expression::template::{Needs, Template};
use crate::limits::Limits;
use crate::session::{Frame, FrameKind, Session};
use crate::values::datum::{BlobRef, Datum, DatumValue, Origin, Source};
use crate::values::fault::Fault;
use crate::values::history::Entry;
use crate::values::ids::{ContentHash, FrameId, StepId};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// How many fetched values of each kind are kept.
const FETCHED_MAX: usize = 64;
/// How many blobs one expression may open. All of them must be at hand together, so these are fewer
/// than are kept.
const OPENED_MAX: usize = 16;
/// How many names are told where another one was looked for.
const NAMES_TOLD_MAX: usize = 20;
/// In how many places of the context, and how many characters of each.
const PLACES_TOLD_MAX: usize = 4;
const NAME_CHARS_MAX: usize = 60;

/// What was fetched for decisions. Blobs never change; what a frame sees of the history changes
/// only with its own steps, so a history is good until the frame enters the next one.
#[derive(Debug, Default)]
pub struct FetchCache {
    pub blobs: HashMap<ContentHash, Arc<Value>>,
    /// What a frame at its n-th step sees of the history, newest first; of one step if named.
    pub histories: HashMap<(FrameId, u32, Option<StepId>), Arc<Value>>,
}

impl FetchCache {
    /// Forgets what was fetched when it is much; it can be fetched again.
    pub fn make_room(&mut self) {
        if self.blobs.len() >= FETCHED_MAX {
            self.blobs.clear();
        }
        if self.histories.len() >= FETCHED_MAX {
            self.histories.clear();
        }
    }
}

/// A frame's view of its session.
pub struct FrameView<'s> {
    session: &'s Session,
    frame: &'s Frame,
    fetched: &'s FetchCache,
    budget: Budget,
}

impl<'s> FrameView<'s> {
    /// The view of this frame. All that is resolved with it shares one budget.
    pub fn new(
        session: &'s Session,
        frame: &'s Frame,
        fetched: &'s FetchCache,
        limits: &Limits,
    ) -> Self {
        Self { session, frame, fetched, budget: Budget::new(limits.pointer_nodes_max) }
    }

    /// The frame that holds this one's plan.
    fn plan_frame(&self) -> &'s Frame {
        self.session.scope(self.frame).last().unwrap_or(self.frame)
    }

    /// The value of an expression; `None` when it is absent. Sources are noted by JSON Pointer.
    pub fn value(&self, expr: &Expr, notes: &mut Notes) -> Result<Option<Value>, Stop> {
        self.built(expr, Blob::Named, notes)
    }

    /// The same for readers that know nothing of blobs: what points to a whole one yields what is
    /// in it, unless there are very many pointers.
    pub fn opened_value(&self, expr: &Expr) -> Result<Option<Value>, Stop> {
        let whole = if pointers(expr) <= OPENED_MAX { Blob::Opened } else { Blob::Named };
        self.built(expr, whole, &mut Notes::default())
    }

    fn built(&self, expr: &Expr, whole: Blob, notes: &mut Notes) -> Result<Option<Value>, Stop> {
        match expr {
            Expr::Literal(value) => Ok(Some((**value).clone())),
            Expr::Pointer(pointing) => self.pointed(pointing, whole, notes),
            Expr::Object(fields) => {
                let mut object = Map::new();
                for (key, field) in fields {
                    let value = notes.inside(key, |notes| self.built(field, whole, notes))?;
                    // What is absent is left out of its object.
                    if let Some(value) = value {
                        object.insert(key.clone(), value);
                    }
                }
                Ok(Some(Value::Object(object)))
            }
            Expr::Array(items) => {
                let mut array = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    let value =
                        notes.inside(&index.to_string(), |notes| self.built(item, whole, notes))?;
                    array.extend(value);
                }
                Ok(Some(Value::Array(array)))
            }
        }
    }

    fn pointed(
        &self,
        pointing: &PointerExpr,
        whole: Blob,
        notes: &mut Notes,
    ) -> Result<Option<Value>, Stop> {
        let selected = match whole {
            Blob::Named => pointing.pointer.resolve(self)?,
            Blob::Opened => pointing.pointer.resolve_opened(self)?,
        };
        match selected {
            Some(Selected { value, from }) => {
                notes.note(Source { from, path: pointing.pointer.text.clone() });
                Ok(Some(value))
            }
            None => Ok(pointing.default.as_ref().map(|value| (**value).clone())),
        }
    }

    /// The value of an expression that is required.
    pub fn required(&self, expr: &Expr, what: &str) -> Result<Value, Stop> {
        self.value(expr, &mut Notes::default())?.ok_or_else(|| self.nothing_selected(expr, what))
    }

    /// The same, with a whole blob opened.
    pub fn required_opened(&self, expr: &Expr, what: &str) -> Result<Value, Stop> {
        let Expr::Pointer(pointing) = expr else { return self.required(expr, what) };
        let value = self.pointed(pointing, Blob::Opened, &mut Notes::default())?;
        value.ok_or_else(|| self.nothing_selected(expr, what))
    }

    /// A message.
    pub fn text(&self, text: &Text) -> Result<Value, Stop> {
        match text {
            Text::Expr(expr) => self.required(expr, "message"),
            Text::Template(template) => self.rendered(template).map(Value::String),
        }
    }

    fn rendered(&self, template: &Template) -> Result<String, Stop> {
        let root = match template.needs() {
            Some(needs) => self.root(needs)?,
            None => Map::new(),
        };
        template.render(root).map_err(|why| {
            let message = format!("text `{}` cannot be filled: {why}", template.source());
            let keys = template.needs().map(|needs| &needs.context_keys).into_iter().flatten();
            let known = self.known_keys(keys.map(String::as_str));
            let hint =
                format!("{known}use `default` or `is defined` for values that may be missing");
            Stop::Fault(Fault::new("TemplateError", message).hint(hint))
        })
    }

    fn nothing_selected(&self, expr: &Expr, what: &str) -> Stop {
        let pointer = match expr {
            Expr::Pointer(pointing) => pointing.pointer.text.as_str(),
            _ => "it",
        };
        let key = pointer.strip_prefix("$.context.");
        let key = key.and_then(|rest| rest.split(['.', '[']).next());
        let message = format!("`{what}` has no value: `{pointer}` selects nothing");
        let known = self.known_keys(key.into_iter());
        let hint = format!("{known}give it a `default`, or look at the session's context");
        Stop::Fault(Fault::new("PointerError", message).hint(hint))
    }

    /// A hint with the existing names: the fields of the values under these context keys, or the
    /// keys of the context if it has no such key.
    fn known_keys<'k>(&self, keys: impl Iterator<Item = &'k str>) -> String {
        let mut told = String::new();
        for key in keys.take(PLACES_TOLD_MAX) {
            let (place, value) = match self.context(key) {
                Some(datum) => (format!("context.{key}"), self.opened(&datum).ok()),
                None => ("context".to_owned(), Some(self.whole_context().to_value())),
            };
            let Some(Value::Object(fields)) = value.filter(|value| *value != json!({})) else {
                continue;
            };
            let short = |name: &String| name.chars().take(NAME_CHARS_MAX).collect::<String>();
            let names = fields.keys().take(NAMES_TOLD_MAX);
            let names: Vec<String> = names.map(|name| format!("`{}`", short(name))).collect();
            told.push_str(&format!("`{place}` has {}; ", names.join(", ")));
        }
        told
    }

    /// What a template looks at, and nothing else.
    fn root(&self, needs: &Needs) -> Result<Map<String, Value>, Stop> {
        let mut context = Map::new();
        if needs.whole_context {
            if let Value::Object(all) = self.whole_context().to_value() {
                context = all;
            }
        } else {
            for key in &needs.context_keys {
                if let Some(datum) = self.context(key) {
                    context.insert(key.clone(), self.opened(&datum)?);
                }
            }
        }
        let mut root = Map::new();
        root.insert("context".to_owned(), Value::Object(context));
        if needs.input {
            root.insert("promptInput".to_owned(), self.opened(&self.input())?);
        }
        if needs.history {
            let history = self.history(None).ok_or(Fetch::History(None))?;
            root.insert("history".to_owned(), (*history).clone());
        }
        Ok(root)
    }

    /// A value with its blob opened, because a template may look inside.
    fn opened(&self, datum: &Datum) -> Result<Value, Stop> {
        match &datum.held {
            DatumValue::Blob(blob) => {
                let value = self.blob(blob).ok_or_else(|| Fetch::Blob(blob.hash.clone()))?;
                Ok((*value).clone())
            }
            _ => Ok(datum.to_value()),
        }
    }
}

fn pointers(expr: &Expr) -> usize {
    match expr {
        Expr::Literal(_) => 0,
        Expr::Pointer(_) => 1,
        Expr::Object(fields) => fields.iter().map(|(_, field)| pointers(field)).sum(),
        Expr::Array(items) => items.iter().map(pointers).sum(),
    }
}

impl View for FrameView<'_> {
    fn context(&self, key: &str) -> Option<Arc<Datum>> {
        let written =
            self.session.scope(self.frame).find_map(|frame| frame.context.get(key).cloned());
        written.or_else(|| match self.plan_frame().kind {
            FrameKind::Root => self.session.runs.get(&self.frame.run)?.base.get(key).cloned(),
            _ => None,
        })
    }

    fn whole_context(&self) -> Datum {
        let mut all: BTreeMap<String, Arc<Datum>> = BTreeMap::new();
        let mut add = |context: &crate::session::Context| {
            for (key, datum) in context {
                all.entry(key.to_string()).or_insert_with(|| datum.clone());
            }
        };
        self.session.scope(self.frame).for_each(|frame| add(&frame.context));
        if let (FrameKind::Root, Some(run)) =
            (&self.plan_frame().kind, self.session.runs.get(&self.frame.run))
        {
            add(&run.base);
        }
        Datum::joined(DatumValue::Object(all))
    }

    fn input(&self) -> Arc<Datum> {
        match &self.plan_frame().kind {
            FrameKind::SubPlan { input, .. } => input.clone(),
            _ => self.session.runs.get(&self.frame.run).map_or_else(
                || Arc::new(Datum::inline(Value::Null, Origin::Input)),
                |run| run.input.clone(),
            ),
        }
    }

    fn recent(&self, index: usize) -> Recent {
        let mut left = index;
        for frame in self.session.scope(self.frame) {
            if let Some(entry) = frame.recent.iter().rev().nth(left) {
                return Recent::Entry(entry.clone());
            }
            if frame.older {
                return Recent::Stored;
            }
            left -= frame.recent.len();
        }
        Recent::Absent
    }

    fn latest(&self, step: &StepId) -> Option<Arc<Entry>> {
        self.session.scope(self.frame).find_map(|frame| frame.latest.get(step).cloned())
    }

    fn blob(&self, blob: &BlobRef) -> Option<Arc<Value>> {
        self.fetched.blobs.get(&blob.hash).cloned()
    }

    fn history(&self, step: Option<&StepId>) -> Option<Arc<Value>> {
        let place = (self.frame.id, self.frame.ordinal, step.cloned());
        self.fetched.histories.get(&place).cloned()
    }

    fn budget(&self) -> &Budget {
        &self.budget
    }
}

/// What each argument was built from, noted while it is resolved.
#[derive(Debug, Default)]
pub struct Notes {
    at: Vec<String>,
    /// The sources by JSON Pointer.
    pub sources: BTreeMap<String, Vec<Source>>,
}

impl Notes {
    fn inside<T>(&mut self, key: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        self.at.push(key.replace('~', "~0").replace('/', "~1"));
        let result = work(self);
        self.at.pop();
        result
    }

    fn note(&mut self, source: Source) {
        let pointer = self.at.iter().map(|key| format!("/{key}")).collect();
        self.sources.entry(pointer).or_default().push(source);
    }
}
