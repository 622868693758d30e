//! The fields of a type, as they are written.

use super::{identifier_hint, is_identifier};
use kernel::definition::plan::mistake::{Mistake, meant};
use kernel::definition::plan::read::{Reader, Spot, quoted};
use kernel::definition::plan::source::{NodeKind, child_pointer};
use query::types::{Bounds, Field, Kind, Pattern, RecordType, built_in_fields};
use serde_json::Value;

/// How many fields a type can have, with those inside of fields.
const FIELDS_MAX: usize = 200;
/// How deep objects and arrays can stand in each other.
const DEPTH_MAX: usize = 8;
/// How many values a field can choose from.
const CHOICES_MAX: usize = 1_000;
/// The greatest whole number up to which a bound has no gaps.
const WHOLE_MAX: i64 = 1 << 53;

/// What queries read in a record beside its fields.
const REALM: &str = "realm";

/// The word for a kind in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    String,
    Integer,
    Number,
    Boolean,
    Date,
    DateTime,
    Object,
    Array,
    Json,
    Reference,
}

/// Each word, and the keys that not every field has.
pub(super) const WORDS: &[(&str, Word, &[&str])] = &[
    (
        "string",
        Word::String,
        &["default", "enum", "minLength", "maxLength", "pattern", "indexed", "unique"],
    ),
    ("integer", Word::Integer, NUMERIC),
    ("number", Word::Number, NUMERIC),
    ("boolean", Word::Boolean, SIMPLE),
    ("date", Word::Date, SIMPLE),
    ("datetime", Word::DateTime, SIMPLE),
    ("object", Word::Object, &["fields", "default"]),
    ("array", Word::Array, &["items", "default", "minItems", "maxItems"]),
    ("json", Word::Json, &["default"]),
    ("reference", Word::Reference, &["to", "indexed", "unique"]),
];

const NUMERIC: &[&str] = &["default", "enum", "minimum", "maximum", "indexed", "unique"];
const SIMPLE: &[&str] = &["default", "indexed", "unique"];

/// What every field has.
pub(super) const OF_FIELDS: &[&str] = &[TYPE, "required"];
/// What an element of an array has of all these, where its kind has it: it has no bounds.
pub(super) const OF_ELEMENTS: &[&str] = &[TYPE, "fields", "items", "to"];
const TYPE: &str = "type";

/// How a reference names a type.
pub(super) struct TypeName {
    name: String,
    full: String,
}

impl TypeName {
    pub(super) fn of(record_type: &RecordType) -> Self {
        Self { name: record_type.name.clone(), full: record_type.full_name() }
    }
}

/// What has a kind.
#[derive(Clone, Copy)]
enum Part {
    Field,
    Element,
}

/// Where a field or an element stands.
#[derive(Clone, Copy)]
struct Nest {
    /// In how many objects and arrays.
    depth: usize,
    in_array: bool,
}

impl Nest {
    const ROOT: Self = Self { depth: 0, in_array: false };
}

/// Reads the parts of a type. A function that gives nothing for a value that is there has noted a
/// mistake.
pub(super) struct Form<'a> {
    pub(super) reader: Reader<'a>,
    names: &'a [TypeName],
    /// How many fields were read.
    count: usize,
}

impl<'a> Form<'a> {
    pub(super) fn new(reader: Reader<'a>, names: &'a [TypeName]) -> Self {
        Self { reader, names, count: 0 }
    }

    /// The whole type, of which only the names are known.
    pub(super) fn record_type(&mut self, spot: &Spot<'_>, named: &RecordType) -> RecordType {
        let mut record_type = named.clone();
        if let Some(field) = self.reader.need(spot, "fields") {
            record_type.fields = self.fields(&field, Nest::ROOT).unwrap_or_default();
        }
        record_type.additional_fields = self.flag(spot, "additionalFields");
        // Where fields are wrong, an index of them would seem so, too.
        if !self.reader.mistakes.iter().any(Mistake::is_error) {
            record_type.unique = self.lists(spot, "unique", &record_type);
            record_type.indexes = self.lists(spot, "indexes", &record_type);
            self.check_count(spot, &record_type);
        }
        record_type
    }

    fn flag(&mut self, spot: &Spot<'_>, key: &str) -> bool {
        spot.field(key).and_then(|field| self.reader.flag(&field)).unwrap_or(false)
    }

    fn fields(&mut self, spot: &Spot<'_>, nest: Nest) -> Option<Vec<Field>> {
        let NodeKind::Map(entries) = &spot.node.kind else {
            self.reader.wrong(spot, "a map of fields");
            return None;
        };
        let mut fields: Vec<Field> = Vec::new();
        for (key, node) in entries {
            self.count += 1;
            if self.count > FIELDS_MAX {
                // Said once, whatever follows.
                if self.count == FIELDS_MAX + 1 {
                    let mistake =
                        Mistake::error(format!("the type has more than {FIELDS_MAX} fields"));
                    let hint = "put some of them into another type, or into a field of type `json`";
                    self.reader.note_key(spot, key, mistake.hint(hint));
                }
                break;
            }
            if let Some(mistake) = misnamed(&key.text, nest, &fields) {
                self.reader.note_key(spot, key, mistake);
                continue;
            }
            let pointer = child_pointer(&spot.pointer, &key.text);
            fields.extend(self.field(&Spot { node, pointer }, &key.text, nest));
        }
        Some(fields)
    }

    fn field(&mut self, spot: &Spot<'_>, name: &str, nest: Nest) -> Option<Field> {
        let word = self.word(spot, Part::Field)?;
        let kind = self.kind(word, spot, nest)?;
        let bounds = self.bounds(spot, &kind);
        let pattern = self.pattern(spot);
        let required = self.flag(spot, "required");
        let indexed = self.mark(spot, "indexed", nest);
        let unique = self.mark(spot, "unique", nest);
        if let Some(field) = spot.field("indexed").filter(|_| indexed && unique) {
            let mistake = Mistake::warning("`indexed` has no effect: a unique field has an index");
            self.reader.note(&field, mistake.hint("leave it out"));
        }
        let plain = Field::new(name, kind);
        let mut field = Field { bounds, pattern, required, indexed, unique, ..plain };
        field.choices = self.choices(spot, &field);
        field.default = self.default(spot, &field);
        Some(field)
    }

    /// The word for the kind of a field, or of the elements of an array. Keys that do not go with
    /// it are noted.
    fn word(&mut self, spot: &Spot<'_>, part: Part) -> Option<Word> {
        if !spot.is_map() {
            self.reader.wrong(spot, "a map such as `{type: string}`");
            return None;
        }
        let field = self.reader.need(spot, TYPE)?;
        let text = self.reader.text(&field)?;
        let Some((name, word, own)) = WORDS.iter().find(|(known, _, _)| *known == text) else {
            let names: Vec<&str> = WORDS.iter().map(|(name, _, _)| *name).collect();
            let hint = meant(text, names.iter().copied())
                .unwrap_or_else(|| format!("the types are {}", quoted(&names)));
            self.reader.note(&field, Mistake::error(format!("unknown type `{text}`")).hint(hint));
            return None;
        };
        let before = self.reader.mistakes.len();
        match part {
            Part::Field => {
                let keys = [OF_FIELDS, *own].concat();
                self.reader.object(spot, &format!("a field of type `{name}`"), &keys);
            }
            Part::Element => {
                let own = own.iter().copied().filter(|key| OF_ELEMENTS.contains(key));
                let keys: Vec<&str> = std::iter::once(TYPE).chain(own).collect();
                self.reader.object(spot, &format!("an element of type `{name}`"), &keys);
            }
        }
        (self.reader.mistakes.len() == before).then_some(*word)
    }

    fn kind(&mut self, word: Word, spot: &Spot<'_>, nest: Nest) -> Option<Kind> {
        match word {
            Word::String => Some(Kind::String),
            Word::Integer => Some(Kind::Integer),
            Word::Number => Some(Kind::Number),
            Word::Boolean => Some(Kind::Boolean),
            Word::Date => Some(Kind::Date),
            Word::DateTime => Some(Kind::DateTime),
            Word::Json => Some(Kind::Json),
            Word::Object => {
                let nest = self.deeper(spot, nest)?;
                let fields = self.reader.need(spot, "fields")?;
                self.fields(&fields, nest).map(Kind::Object)
            }
            Word::Array => {
                let nest = Nest { in_array: true, ..self.deeper(spot, nest)? };
                let items = self.reader.need(spot, "items")?;
                let word = self.word(&items, Part::Element)?;
                self.kind(word, &items, nest).map(Kind::array)
            }
            Word::Reference => self.target(spot).map(Kind::Reference),
        }
    }

    fn deeper(&mut self, spot: &Spot<'_>, nest: Nest) -> Option<Nest> {
        if nest.depth >= DEPTH_MAX {
            let what = format!("objects and arrays stand more than {DEPTH_MAX} deep in each other");
            let hint = "refer to a type of its own, or write `type: json`";
            self.reader.note(spot, Mistake::error(what).hint(hint));
            return None;
        }
        Some(Nest { depth: nest.depth + 1, ..nest })
    }

    /// The full name of the type that is referred to.
    fn target(&mut self, spot: &Spot<'_>) -> Option<String> {
        let field = self.reader.need(spot, "to")?;
        let text = self.reader.text(&field)?;
        let is_meant = |known: &&TypeName| known.name == text || known.full == text;
        if let Some(known) = self.names.iter().find(is_meant) {
            return Some(known.full.clone());
        }
        let hint = meant(text, self.names.iter().map(|known| known.name.as_str()))
            .unwrap_or_else(|| "declare it in a file of its own in `entities/`".to_owned());
        self.reader.note(&field, Mistake::error(format!("there is no type `{text}`")).hint(hint));
        None
    }

    fn bounds(&mut self, spot: &Spot<'_>, kind: &Kind) -> Bounds {
        let Some((least, most)) = bound_keys(kind) else { return Bounds::default() };
        let bounds =
            Bounds { min: self.bound(spot, least, kind), max: self.bound(spot, most, kind) };
        if let Bounds { min: Some(min), max: Some(max) } = bounds
            && min > max
            && let Some(field) = spot.field(most)
        {
            let mistake = Mistake::error(format!("`{most}` is less than `{least}`"));
            self.reader.note(&field, mistake.hint("no value would fit both"));
        }
        bounds
    }

    fn bound(&mut self, spot: &Spot<'_>, key: &str, kind: &Kind) -> Option<f64> {
        let field = spot.field(key)?;
        let NodeKind::Number(number) = &field.node.kind else {
            self.reader.wrong(&field, "a number");
            return None;
        };
        let whole = number.as_i64().filter(|whole| (-WHOLE_MAX..=WHOLE_MAX).contains(whole));
        let (bound, wanted) = match kind {
            Kind::Number => (number.as_f64(), "a number".to_owned()),
            Kind::Integer => (
                whole.map(|whole| whole as f64),
                format!("a whole number from -{WHOLE_MAX} to {WHOLE_MAX}"),
            ),
            _ => (
                whole.filter(|whole| *whole >= 0).map(|whole| whole as f64),
                "a whole number from 0 on".to_owned(),
            ),
        };
        if bound.is_none() {
            let mistake = Mistake::error(format!("`{key}` must be {wanted}"));
            self.reader.note(&field, mistake.hint("leave it out where there is no bound"));
        }
        bound
    }

    fn pattern(&mut self, spot: &Spot<'_>) -> Option<Pattern> {
        let field = spot.field("pattern")?;
        let text = self.reader.text(&field)?;
        match Pattern::new(text) {
            Ok(pattern) => Some(pattern),
            Err(why) => {
                let mistake = Mistake::error(format!("this pattern cannot be used: {why}"));
                let hint = "it takes the syntax of Rust's regex crate, which runs in linear time";
                self.reader.note(&field, mistake.hint(hint));
                None
            }
        }
    }

    /// Whether a field is indexed or unique. An element of an array cannot be: a record has many.
    fn mark(&mut self, spot: &Spot<'_>, key: &str, nest: Nest) -> bool {
        let is_marked = self.flag(spot, key);
        if let Some(field) = spot.field(key).filter(|_| is_marked && nest.in_array) {
            let mistake = Mistake::error(format!("what is in an array cannot be `{key}`"));
            self.reader.note(&field, mistake.hint("leave it out"));
        }
        is_marked
    }

    fn choices(&mut self, spot: &Spot<'_>, field: &Field) -> Vec<Value> {
        let mut choices: Vec<Value> = Vec::new();
        let Some(list) = spot.field("enum") else { return choices };
        let items = self.reader.filled(&list).unwrap_or_default();
        if items.len() > CHOICES_MAX {
            let mistake = Mistake::error(format!("`enum` has more than {CHOICES_MAX} values"));
            let hint = "make a type of its own of them, and refer to it";
            self.reader.note(&list, mistake.hint(hint));
            return choices;
        }
        for item in &items {
            if !self.fits(item, field) {
                continue;
            }
            let value = item.node.to_value();
            if choices.contains(&value) {
                let mistake = Mistake::error(format!("{value} is in `enum` twice"));
                self.reader.note(item, mistake.hint("keep one of the two"));
            } else {
                choices.push(value);
            }
        }
        choices
    }

    fn default(&mut self, spot: &Spot<'_>, field: &Field) -> Option<Value> {
        let default = spot.field("default")?;
        self.fits(&default, field).then(|| default.node.to_value())
    }
}

/// The keys of the bounds that values of a kind can have.
pub(super) fn bound_keys(kind: &Kind) -> Option<(&'static str, &'static str)> {
    match kind {
        Kind::String => Some(("minLength", "maxLength")),
        Kind::Integer | Kind::Number => Some(("minimum", "maximum")),
        Kind::Array(_) => Some(("minItems", "maxItems")),
        Kind::Boolean
        | Kind::Date
        | Kind::DateTime
        | Kind::Object(_)
        | Kind::Json
        | Kind::Reference(_) => None,
    }
}

/// Why a field beside these cannot have this name.
fn misnamed(name: &str, nest: Nest, others: &[Field]) -> Option<Mistake> {
    if !is_identifier(name) {
        let mistake = Mistake::error(format!("`{name}` cannot be the name of a field"));
        return Some(mistake.hint(identifier_hint()));
    }
    let taken = |known: &&str| known.eq_ignore_ascii_case(name);
    let built_in = || built_in_fields().iter().map(|field| field.name.as_str());
    let what = if nest.depth > 0 {
        None
    } else if let Some(known) = built_in().find(taken) {
        Some(format!("`{name}` cannot be declared: every record has `{known}`"))
    } else if name.eq_ignore_ascii_case(REALM) {
        Some(format!("`{name}` cannot be declared: queries read the record's realm by it"))
    } else {
        None
    };
    let twin = others.iter().map(|field| field.name.as_str()).find(taken);
    let what = what.or_else(|| {
        twin.map(|twin| format!("the fields `{twin}` and `{name}` differ in case only"))
    })?;
    Some(Mistake::error(what).hint("choose another name"))
}
