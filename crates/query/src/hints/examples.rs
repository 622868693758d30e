//! Example queries, made of a record that the caller sees. Each is read, checked and evaluated
//! before it is shown: one that would be refused, or would not find that record, is left out.

use crate::check::{Scope, check};
use crate::evaluate::{Row, takes};
use crate::parser::parse;
use crate::records::reach::Visible;
use crate::types::{Field, Kind, RecordType, built_in_fields};
use serde_json::Value;

/// A longer text makes no good example.
const TEXT_CHARS_MAX: usize = 40;
/// How many characters of a text stand before a wildcard.
const PREFIX_CHARS: usize = 3;
/// Fields whose values are places, so that people say that something is in them.
const PLACES: [&str; 6] = ["city", "country", "county", "region", "state", "town"];
/// What people look for beside the declared fields, and a wildcard is shown with.
const NAME: &str = "displayName";

/// What of the language an example shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shows {
    Equal,
    List,
    Range,
    Expand,
    Wildcard,
}

#[derive(Debug, Clone)]
pub(super) struct Example {
    pub(super) intent: String,
    pub(super) query: String,
    /// The name of the type as it is found.
    pub(super) root_type: String,
    pub(super) description: &'static str,
    pub(super) shows: Shows,
}

/// Something that callers get wrong until they know it.
pub(super) struct Fact {
    pub(super) of: Shows,
    pub(super) title: &'static str,
    pub(super) body: &'static str,
}

pub(super) const FACTS: &[Fact] = &[
    Fact {
        of: Shows::Equal,
        title: "Text is compared without regard to case",
        body: "Write `~cs` behind the value where case counts.",
    },
    Fact {
        of: Shows::Range,
        title: "Numbers and dates have ranges",
        body: "Whole numbers begin with `#`, decimals with `##`, and dates are written as \
               `2024-01-31`.",
    },
    Fact {
        of: Shows::Expand,
        title: "References can be embedded",
        body: "`expand(field)` puts the record that is referred to in the place of the reference.",
    },
    Fact {
        of: Shows::Wildcard,
        title: "A star stands for any characters",
        body: "`*` may stand anywhere in a text, and `?` for exactly one character.",
    },
    Fact {
        of: Shows::List,
        title: "One of several values",
        body: "`field:^[a, b]` takes records with any of the values, and an empty list none.",
    },
];

/// The examples of a type, in the order of its fields.
pub(super) fn of_type(visible: &Visible, root: &RecordType, sample: &Value) -> Vec<Example> {
    let maker = ExampleMaker { visible, root, sample };
    let mut examples: Vec<Example> =
        root.fields.iter().filter_map(|field| maker.of_field(field)).collect();
    let name = built_in_fields().iter().find(|field| field.name == NAME);
    examples.extend(name.and_then(|field| maker.wildcard(field)));
    examples.extend(maker.list());
    examples
}

struct ExampleMaker<'m> {
    visible: &'m Visible,
    root: &'m RecordType,
    sample: &'m Value,
}

impl ExampleMaker<'_> {
    fn of_field(&self, field: &Field) -> Option<Example> {
        let value = self.sample.get(&field.name)?;
        match (&field.kind, value) {
            (Kind::String, Value::String(text)) => self.equal(field, text),
            (Kind::Integer | Kind::Number, Value::Number(number)) => {
                let mark = if number.is_f64() { "##" } else { "#" };
                let query = format!("{}:>={mark}{number}", field.name);
                self.range(field, query, &format!("of at least {number}"))
            }
            (Kind::Date, Value::String(day)) => {
                let query = format!("{}:>={day}", field.name);
                self.range(field, query, &format!("from {day} on"))
            }
            (Kind::DateTime, Value::String(moment)) => {
                let day = moment.get(..10)?;
                self.range(field, format!("{}:>={day}", field.name), &format!("from {day} on"))
            }
            (Kind::Boolean, Value::Bool(flag)) => {
                let intent = format!("{} whose {} is {flag}", self.plural(), words(&field.name));
                let about = "The field has exactly this value.";
                self.example(intent, format!("{}:{flag}", field.name), about, Shows::Equal)
            }
            (Kind::Reference(to), Value::Object(_)) => self.expand(field, to),
            _ => None,
        }
    }

    fn equal(&self, field: &Field, text: &str) -> Option<Example> {
        let intent = if PLACES.contains(&field.name.as_str()) {
            format!("{} in {text}", self.plural())
        } else {
            format!("{} with {} {text}", self.plural(), words(&field.name))
        };
        let about = "The text is equal, without regard to case.";
        let of = |written: String| {
            let query = format!("{}:{written}", field.name);
            self.example(intent.clone(), query, about, Shows::Equal)
        };
        if text.chars().count() > TEXT_CHARS_MAX {
            return None;
        }
        // A text that means something else without quotes is put into them.
        let bare = is_bare(text).then(|| of(text.to_owned())).flatten();
        bare.or_else(|| of(quoted(text)))
    }

    fn range(&self, field: &Field, query: String, what: &str) -> Option<Example> {
        let intent = format!("{} with {} {what}", self.plural(), words(&field.name));
        self.example(intent, query, "The value is not less than this one.", Shows::Range)
    }

    fn expand(&self, field: &Field, to: &str) -> Option<Example> {
        let to = self.visible.access.types.find(to).ok()?;
        // A type that the caller may not read is not named.
        self.visible.rights.get(&to.full_name())?;
        let intent = format!("{} with their {}", self.plural(), words(&field.name));
        let query = format!("expand({})", field.name);
        let about = "The record that the field refers to is embedded in its place.";
        self.example(intent, query, about, Shows::Expand)
    }

    fn wildcard(&self, field: &Field) -> Option<Example> {
        let text = self.sample.get(&field.name)?.as_str()?;
        let begin: String = text.chars().take(PREFIX_CHARS).collect();
        if !is_bare(&begin) {
            return None;
        }
        let intent = format!("{} whose name begins with {begin}", self.plural());
        let query = format!("{}:{begin}*", field.name);
        self.example(intent, query, "The text begins with these letters.", Shows::Wildcard)
    }

    /// The first text of the record in a list of one.
    fn list(&self) -> Option<Example> {
        let mut texts = self.root.fields.iter().filter_map(|field| {
            let text = self.sample.get(&field.name)?.as_str()?;
            let is_text = field.kind == Kind::String && text.chars().count() <= TEXT_CHARS_MAX;
            is_text.then_some((field, text))
        });
        let (field, text) = texts.next()?;
        let intent = format!("{} whose {} is one of several", self.plural(), words(&field.name));
        let query = format!("{}:^[{}]", field.name, quoted(text));
        self.example(intent, query, "The value is one of the list.", Shows::List)
    }

    /// The example, if it finds the sample.
    fn example(
        &self,
        intent: String,
        query: String,
        description: &'static str,
        shows: Shows,
    ) -> Option<Example> {
        let access = &self.visible.access;
        let scope = Scope {
            types: &access.types,
            root: self.root,
            variables: &self.visible.variables,
            hidden: access.scope.hidden(),
        };
        let checked = check(&parse(&query).ok()?, scope).ok()?;
        let row = Row { realm: access.realm.as_str(), record: self.sample };
        let root_type = self.root_type();
        takes(&checked, row).then_some(Example { intent, query, root_type, description, shows })
    }

    /// The name of the type alone, where it is found by that.
    fn root_type(&self) -> String {
        match self.visible.access.types.find(&self.root.name) {
            Ok(found) if found.full_name() == self.root.full_name() => self.root.name.clone(),
            Ok(_) | Err(_) => self.root.full_name(),
        }
    }

    fn plural(&self) -> String {
        let name = words_of_type(&self.root.name);
        let before_y = name.strip_suffix('y').filter(|stem| !stem.ends_with(is_vowel));
        match before_y {
            Some(stem) => format!("{stem}ies"),
            None if name.ends_with(['s', 'x']) => format!("{name}es"),
            None => format!("{name}s"),
        }
    }
}

fn is_vowel(character: char) -> bool {
    matches!(character, 'a' | 'e' | 'i' | 'o' | 'u')
}

/// A name such as `unitPrice` in words.
fn words(name: &str) -> String {
    spaced(name).to_lowercase()
}

/// The same of a type: its first word keeps its capital letter.
fn words_of_type(name: &str) -> String {
    let spaced = spaced(name);
    match spaced.split_once(' ') {
        Some((first, rest)) => format!("{first} {}", rest.to_lowercase()),
        None => spaced,
    }
}

fn spaced(name: &str) -> String {
    let mut spaced = String::with_capacity(name.len() + 4);
    let mut was_small = false;
    for character in name.chars() {
        if was_small && character.is_uppercase() {
            spaced.push(' ');
        }
        was_small = character.is_lowercase();
        spaced.push(character);
    }
    spaced
}

/// Whether a text can stand in a query without quotes.
fn is_bare(text: &str) -> bool {
    let is_plain = |character: char| character.is_alphanumeric() || character == ' ';
    text.starts_with(char::is_alphabetic) && text == text.trim() && text.chars().all(is_plain)
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
