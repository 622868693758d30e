//! Texts with `{{ }}`, `if` and `for`: a small part of minijinja, over the same root as pointers.
//! An undefined name is a fault.
//!
//! Texts come from anybody who can send a plan, so none may cost more than a bounded amount of
//! stack, memory and time. Four things see to that, in this order:
//!
//! 1. `scan.rs` bounds a text's length and how deep its tree can be, before the recursive parser
//!    and compiler of minijinja see it. It refuses whatever calculates or keeps a value: nothing
//!    grows from one step to the next.
//! 2. `program.rs` refuses functions and all filters and tests but a few, and puts a payment before
//!    every instruction whose work depends on its operands.
//! 3. `prices.rs` gives every filter whose work depends on its arguments a price that is at least
//!    that work, and writes output through a formatter that counts.
//! 4. `meter.rs` holds what is left for one render.
//!
//! What is left costs constant work for each instruction, and `FUEL` bounds the instructions.
//! `parse`, `names` and `fill` cannot differ: each goes through `scan::check`, and then through
//! `names_in` or `rendered`.

mod meter;
mod prices;
mod program;
mod scan;
mod simple;
#[cfg(test)]
mod tests;

use minijinja::machinery::{eval, make_string_output};
use minijinja::value::Serde;
use serde_json::{Map, Value};
use simple::Simple;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

const NAME: &str = "text";
/// Mistake of a forbidden operator.
const NO_OPERATOR: &str = "a text shows, compares, chooses and repeats: it cannot calculate, join \
                           texts with `~`, cut with `:` or write maps; let a tool do that";

/// A text, checked when the plan is loaded.
pub struct Template {
    source: String,
    state: State,
}

enum State {
    /// A text without `{{`, which is most of them.
    Plain,
    Checked(CheckedText),
    /// It was accepted once and is refused now, for this reason.
    Refused(String),
}

struct CheckedText {
    needs: Needs,
    /// The same text where it needs no program. All others are compiled when they are filled: a
    /// program borrows its text.
    simple: Option<Simple>,
}

/// The names that a template reads, so that only these must be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    pub context_keys: BTreeSet<String>,
    pub whole_context: bool,
    /// The run's input.
    pub input: bool,
    pub history: bool,
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.source).finish()
    }
}

impl Template {
    /// Reads a text. The error says what is wrong and where.
    pub fn parse(source: &str) -> Result<Self, String> {
        let state = if scan::has_syntax(source) {
            scan::check(source)?;
            let needs = Needs::read(names_in(source, true)?.into_iter())?;
            State::Checked(CheckedText { simple: Simple::read(source), needs })
        } else {
            State::Plain
        };
        Ok(Self { source: source.to_owned(), state })
    }

    /// A text of a stored plan that was accepted once and is refused now: to fill it is a fault, so
    /// that its run ends in a way that a person can see.
    pub fn refused(source: &str, why: String) -> Self {
        Self { source: source.to_owned(), state: State::Refused(why) }
    }

    /// The text as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The names that it reads; `None` for a plain text.
    pub fn needs(&self) -> Option<&Needs> {
        match &self.state {
            State::Checked(checked) => Some(&checked.needs),
            State::Plain | State::Refused(_) => None,
        }
    }

    /// The text with every `{{ }}` filled from `root`.
    pub fn render(&self, root: Map<String, Value>) -> Result<String, String> {
        match &self.state {
            State::Plain => Ok(self.source.clone()),
            State::Checked(CheckedText { simple, .. }) => {
                let simply = simple.as_ref().and_then(|simple| simple.render(&root));
                simply.map_or_else(|| rendered(&self.source, root), Ok)
            }
            State::Refused(why) => Err(why.clone()),
        }
    }
}

/// The names that a text uses, without what stands after a dot.
pub fn names(source: &str) -> Result<BTreeSet<String>, String> {
    scan::check(source)?;
    names_in(source, false)
}

/// Fills a text that may use the names of `root` and no others.
pub fn fill(source: &str, root: Map<String, Value>) -> Result<String, String> {
    scan::check(source)?;
    rendered(source, root)
}

/// The same for a text that another program fills as well: other names stay as they are.
pub fn fill_known(source: &str, mut root: Map<String, Value>) -> Result<String, String> {
    for name in names(source)? {
        let written = format!("{{{{{name}}}}}");
        root.entry(name).or_insert(Value::from(written));
    }
    fill(source, root)
}

/// The names in a checked text that is within all limits; with their fields, if these are wanted.
fn names_in(text: &str, fields: bool) -> Result<BTreeSet<String>, String> {
    guarded(|| {
        program::compiled(text)?;
        let template = prices::environment()
            .template_from_named_str(NAME, text)
            .map_err(|error| first_line(&error))?;
        Ok(template.undeclared_variables(fields).into_iter().collect())
    })
}

fn rendered(text: &str, root: Map<String, Value>) -> Result<String, String> {
    let root = minijinja::Value::from(Serde(Value::Object(root)));
    guarded(|| {
        let program = program::compiled(text)?;
        let mut filled = String::new();
        eval(
            prices::environment(),
            &program,
            root,
            &BTreeMap::new(),
            &mut make_string_output(&mut filled),
            minijinja::AutoEscape::None,
        )
        .map(drop)
        .map_err(|error| first_line(&error))?;
        Ok(filled)
    })
}

/// A panic of the engine is a mistake in the text like others.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err("the engine of templates failed at this text; write it in another way".to_owned())
    })
}

impl Needs {
    fn read(names: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut needs = Needs::default();
        for name in names {
            let mut parts = name.split('.');
            match (parts.next(), parts.next()) {
                (Some("context"), Some(key)) => {
                    needs.context_keys.insert(key.to_owned());
                }
                (Some("context"), None) => needs.whole_context = true,
                (Some("promptInput"), _) => needs.input = true,
                (Some("history"), _) => needs.history = true,
                (Some(other), _) => {
                    return Err(format!(
                        "`{other}` is not known here; use context, history or promptInput"
                    ));
                }
                (None, _) => {}
            }
        }
        Ok(needs)
    }
}

fn first_line(error: &minijinja::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// Says that there is nothing of this name, and what there is.
fn unknown(what: &str, name: &str, all: &[&str]) -> String {
    let all: Vec<String> = all.iter().map(|known| format!("`{known}`")).collect();
    format!("there is no {what} `{name:.60}`; use one of {}", all.join(", "))
}
