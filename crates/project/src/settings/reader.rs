//! Reads the tree of a settings' file into types: a deserializer whose errors are mistakes with a
//! place. Every unknown key is reported, and beside them the first mistake of each table.

use super::text::{Text, bare_or_quoted};
use super::tree::{SettingsTree, Shape};
use crate::layer::Location;
use kernel::definition::plan::mistake::{Mistake, meant};
use serde::de::value::{BorrowedStrDeserializer, SeqDeserializer, U32Deserializer};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;

/// A type of this name is read with its place: file, line, column, the keys of a table, value.
pub(super) const LOCATED: &str = "$located";
/// A type of this name is read as its only part, whose mistake does not end what is around it.
pub(super) const KEPT: &str = "$kept";
/// A type of this name is the same, and nothing where there is no table.
pub(super) const IF_TABLE: &str = "$if_table";

/// What stands in the text of an error between what is wrong and what to do about it.
pub(super) const HINT: &str = "; hint: ";

/// Whose file it is.
#[derive(Debug, Clone, Copy)]
pub enum Owner {
    /// Ours: every key in it must be known.
    Ours,
    /// A client's: other programs have keys in it too, and one that is nearly known is a slip of
    /// the pen. Those listed here have an effect that we do not follow, each with what to do.
    Client(&'static [(&'static str, &'static str)]),
}

/// Reads a value that stands below these keys; the default where it is wrong.
pub fn read<'de, T: Deserialize<'de> + Default>(
    value: &'de SettingsTree,
    path: &[&'de str],
    owner: Owner,
    mistakes: &mut Vec<Mistake>,
) -> T {
    let path = RefCell::new(path.to_vec());
    let reading = Reading { owner, path, mistakes: RefCell::default() };
    let read = At { reading: &reading, value }.read(PhantomData::<T>);
    mistakes.extend(reading.mistakes.into_inner());
    read.unwrap_or_default()
}

/// What is known while a tree is read.
struct Reading<'de> {
    owner: Owner,
    /// The keys that lead to where we are.
    path: RefCell<Vec<&'de str>>,
    mistakes: RefCell<Vec<Mistake>>,
}

impl Reading<'_> {
    /// Records a fault with the position of its value, once.
    fn recorded(&self, fault: Fault, value: &SettingsTree) -> Fault {
        let key =
            || self.path.borrow().last().map_or("the file".to_owned(), |key| format!("`{key}`"));
        let mistake = match fault {
            Fault::Recorded => return Fault::Recorded,
            Fault::Type(wanted) => {
                Mistake::error(format!("{} must be {wanted}, and is {}", key(), value.what()))
            }
            Fault::OfKey { message, hint } => {
                Mistake { hint, ..Mistake::error(format!("{} {message}", key())) }
            }
            Fault::Whole { message, hint } => Mistake { hint, ..Mistake::error(message) },
        };
        self.mistakes.borrow_mut().push(value.place.mistake(mistake));
        Fault::Recorded
    }

    /// Notes a key that the table does not have.
    fn unknown(&self, key: &Text, known: &[&str]) {
        let name = &key.text;
        let table = self.table();
        let what = match table.as_str() {
            "" => format!("unknown key `{name}`"),
            table => format!("unknown key `{name}` in `{table}`"),
        };
        let mistake = match (meant(name, known.iter().copied()), self.owner) {
            (Some(near), _) => Mistake::error(what).hint(near),
            (None, Owner::Ours) => {
                Mistake::error(what).hint(format!("known here: {}", known.join(", ")))
            }
            (None, Owner::Client(not_followed)) => {
                let listed = not_followed.iter().find(|(listed, _)| listed == name);
                let Some((_, hint)) = listed else { return };
                let what = format!("`{name}` of `{table}` is not followed here");
                Mistake::warning(what).hint(*hint)
            }
        };
        self.mistakes.borrow_mut().push(key.mistake(mistake));
    }

    /// The table that is read, as its file writes it; nothing for all of the file.
    fn table(&self) -> String {
        let path = self.path.borrow();
        match self.owner {
            Owner::Ours if path.is_empty() => String::new(),
            Owner::Ours => {
                let keys: Vec<String> = path.iter().map(|key| bare_or_quoted(key)).collect();
                format!("[{}]", keys.join("."))
            }
            Owner::Client(_) => path.join("."),
        }
    }
}

/// Why a value could not be read.
#[derive(Debug, thiserror::Error)]
enum Fault {
    /// It is among the mistakes already.
    #[error("a mistake")]
    Recorded,
    /// It is something else than this.
    #[error("must be {0}")]
    Type(String),
    /// What is wrong with the value of a key; the message begins with the key's name.
    #[error("{message}")]
    OfKey { message: String, hint: Option<String> },
    /// What is wrong.
    #[error("{message}")]
    Whole { message: String, hint: Option<String> },
}

impl Error for Fault {
    fn custom<T: fmt::Display>(told: T) -> Self {
        let told = told.to_string();
        match told.split_once(HINT) {
            Some((what, hint)) => {
                Fault::Whole { message: what.to_owned(), hint: Some(hint.to_owned()) }
            }
            None => Fault::Whole { message: told, hint: None },
        }
    }

    /// Without the value: it may be a secret.
    fn invalid_type(_: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Fault::Type(in_words(&wanted.to_string()))
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let wanted = in_words(&wanted.to_string());
        match found {
            Unexpected::Unsigned(number) => {
                let message = format!("must be {wanted}, and is {number}");
                Fault::OfKey { message, hint: None }
            }
            _ => Fault::Type(wanted),
        }
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        let all: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
        let hint = meant(word, known.iter().copied())
            .unwrap_or_else(|| format!("it is {}", all.join(" or ")));
        Fault::OfKey { message: format!("cannot be `{word}`"), hint: Some(hint) }
    }

    fn missing_field(key: &'static str) -> Self {
        Fault::OfKey { message: format!("has no `{key}`"), hint: None }
    }
}

/// What a type wants, in the words of settings.
fn in_words(wanted: &str) -> String {
    let words = match wanted {
        "a string" => "a text",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        "u16" => "a whole number from 0 to 65535",
        "u32" | "u64" | "usize" => "a whole number",
        nonzero if nonzero.starts_with("a nonzero ") => "a whole number from 1 on",
        other => other,
    };
    words.to_owned()
}

/// A value that is to be read.
#[derive(Clone, Copy)]
struct At<'r, 'de> {
    reading: &'r Reading<'de>,
    value: &'de SettingsTree,
}

impl<'r, 'de> At<'r, 'de> {
    /// The value, or its mistake among the others.
    fn read<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Fault> {
        seed.deserialize(self).map_err(|fault| self.reading.recorded(fault, self.value))
    }

    fn entries(self, entries: Vec<&'de (Text, SettingsTree)>) -> Entries<'r, 'de> {
        Entries { reading: self.reading, left: entries.into_iter(), value: None }
    }
}

impl<'de> Deserializer<'de> for At<'_, 'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.value.value {
            Shape::Text(text) => visitor.visit_borrowed_str(text),
            Shape::Whole(number) => visitor.visit_u64(*number),
            Shape::Fraction(number) => visitor.visit_f64(number.parse().unwrap_or(f64::NAN)),
            Shape::Flag(flag) => visitor.visit_bool(*flag),
            Shape::List(items) => {
                let parts = items.iter().map(|value| Part::Value(At { value, ..self }));
                visitor.visit_seq(Parts(parts.collect::<Vec<_>>().into_iter()))
            }
            Shape::Table(table) => visitor.visit_map(self.entries(table.0.iter().collect())),
            Shape::Other(what) => Err(Fault::invalid_type(Unexpected::Other(what), &visitor)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let Shape::Table(table) = &self.value.value else {
            return Err(Fault::Type("a table".to_owned()));
        };
        let is_known = |entry: &&(Text, SettingsTree)| known.contains(&entry.0.text.as_str());
        let (entries, others): (Vec<_>, Vec<_>) = table.0.iter().partition(is_known);
        for (key, _) in others {
            self.reading.unknown(key, known);
        }
        visitor.visit_map(self.entries(entries))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let value = &self.value.value;
        let parts = match name {
            LOCATED => {
                let keys: &[(Text, SettingsTree)] = match value {
                    Shape::Table(table) => &table.0,
                    _ => &[],
                };
                located(&self.value.place, keys, Part::Value(self))
            }
            IF_TABLE if !matches!(value, Shape::Table(_)) => Vec::new(),
            IF_TABLE | KEPT => vec![Part::Value(self)],
            _ => return self.deserialize_any(visitor),
        };
        visitor.visit_seq(Parts(parts.into_iter()))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.value.value {
            Shape::Text(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
            _ => Err(Fault::Type("a text".to_owned())),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple map identifier
    }
}

/// The entries of a table.
struct Entries<'r, 'de> {
    reading: &'r Reading<'de>,
    left: std::vec::IntoIter<&'de (Text, SettingsTree)>,
    value: Option<(&'de str, &'de SettingsTree)>,
}

impl<'de> MapAccess<'de> for Entries<'_, 'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some((key, value)) = self.left.next() else { return Ok(None) };
        self.value = Some((key.text.as_str(), value));
        seed.deserialize(Key(key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let Some((key, value)) = self.value.take() else {
            return Err(Fault::custom("a value was read before its key"));
        };
        self.reading.path.borrow_mut().push(key);
        let read = At { reading: self.reading, value }.read(seed);
        self.reading.path.borrow_mut().pop();
        read
    }
}

/// A key that is to be read.
#[derive(Clone, Copy)]
struct Key<'de>(&'de Text);

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_borrowed_str(&self.0.text)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let parts = located(&self.0.place, &[], Part::Text(&self.0.text));
        visitor.visit_seq(Parts(parts.into_iter()))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple map struct enum identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Fault> for Key<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// What is handed over one after another.
struct Parts<'r, 'de>(std::vec::IntoIter<Part<'r, 'de>>);

enum Part<'r, 'de> {
    Text(&'de str),
    Number(u32),
    Keys(&'de [(Text, SettingsTree)]),
    Value(At<'r, 'de>),
}

/// The parts of [`LOCATED`].
fn located<'r, 'de>(
    place: &'de Location,
    keys: &'de [(Text, SettingsTree)],
    value: Part<'r, 'de>,
) -> Vec<Part<'r, 'de>> {
    let line = Part::Number(place.line);
    let column = Part::Number(place.column);
    vec![Part::Text(&place.file), line, column, Part::Keys(keys), value]
}

impl<'de> SeqAccess<'de> for Parts<'_, 'de> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some(part) = self.0.next() else { return Ok(None) };
        let read = match part {
            Part::Text(text) => seed.deserialize(BorrowedStrDeserializer::<Fault>::new(text)),
            Part::Number(number) => {
                let number: U32Deserializer<Fault> = number.into_deserializer();
                seed.deserialize(number)
            }
            Part::Keys(entries) => {
                let keys = entries.iter().map(|(key, _)| Key(key));
                seed.deserialize(SeqDeserializer::<_, Fault>::new(keys))
            }
            Part::Value(at) => at.read(seed),
        };
        read.map(Some)
    }
}
