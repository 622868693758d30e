//! Building blocks of settings types: values with their positions, tables by name, and values that
//! are checked while they are read.

use super::reader::{HINT, IF_TABLE, KEPT, LOCATED};
use super::text::{Named, Text};
use crate::layer::Location;
use kernel::definition::plan::mistake::{Mistake, meant};
use kernel::identity::grants::RealmPattern;
use kernel::limits::{Limits, OutOfRange};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer, forward_to_deserialize_any};
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use tools::HttpSettings;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located<T> {
    pub place: Location,
    /// The keys of a table; of anything else there are none.
    pub keys: Vec<Text>,
    pub value: T,
}

/// The parts of [`LOCATED`], in the order of the reader.
struct LocatedParts<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for LocatedParts<T> {
    type Value = Located<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value with its place")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Located<T>, A::Error> {
        let missing = || A::Error::custom("a value has no place");
        let file: &str = parts.next_element()?.ok_or_else(missing)?;
        let line = parts.next_element()?.ok_or_else(missing)?;
        let column = parts.next_element()?.ok_or_else(missing)?;
        let keys = parts.next_element()?.ok_or_else(missing)?;
        let value = parts.next_element()?.ok_or_else(missing)?;
        Ok(Located { place: Location { file: file.into(), line, column }, keys, value })
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Located<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_tuple_struct(LOCATED, 5, LocatedParts(PhantomData))
    }
}

impl<T: Serialize> Serialize for Located<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Located { place, value: text, .. } = Located::deserialize(deserializer)?;
        Ok(Self { text, place })
    }
}

/// Reads a table that may have only these keys of its type.
pub struct KnownKeys<D> {
    pub known: &'static [&'static str],
    pub deserializer: D,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for KnownKeys<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.deserializer.deserialize_struct(name, self.known, visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.deserializer.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// A value that stands alone: a mistake in it does not keep what is around it from being read.
#[derive(Debug, Default)]
pub struct Kept<T>(pub T);

/// A table; nothing where anything else stands.
#[derive(Debug)]
pub struct IfTable<T>(pub Option<T>);

impl<T> Default for IfTable<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// The only part of [`KEPT`] and [`IF_TABLE`]. A mistake in it is noted by the reader.
struct OnlyPart<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OnlyPart<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Option<T>, A::Error> {
        Ok(parts.next_element().unwrap_or_default())
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Kept<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let part = OnlyPart::<T>(PhantomData);
        let read = deserializer.deserialize_tuple_struct(KEPT, 1, part)?;
        Ok(Self(read.unwrap_or_default()))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for IfTable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_tuple_struct(IF_TABLE, 1, OnlyPart(PhantomData)).map(Self)
    }
}

/// Keys and values in the order of their file.
struct Pairs<K, V>(PhantomData<(K, V)>);

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for Pairs<K, V> {
    type Value = Vec<(K, V)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Vec<(K, V)>, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = entries.next_entry()? {
            pairs.push(pair);
        }
        Ok(pairs)
    }
}

/// A table of texts.
pub fn named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Named, D::Error> {
    deserializer.deserialize_map(Pairs::<String, Text>(PhantomData))
}

/// Tables by name, each with its mistakes to itself.
#[derive(Debug)]
pub struct Each<T>(pub Vec<(Text, Located<T>)>);

impl<T> Default for Each<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Each<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pairs = Pairs::<Text, Kept<Option<Located<T>>>>(PhantomData);
        let pairs = deserializer.deserialize_map(pairs)?.into_iter();
        Ok(Self(pairs.filter_map(|(name, Kept(table))| Some((name, table?))).collect()))
    }
}

impl<T> Each<T> {
    /// What is made of each table, and the mistakes in those that are not whole.
    pub fn build<B>(
        self,
        mistakes: &mut Vec<Mistake>,
        build: impl Fn(&Text, Located<T>) -> Result<B, Mistake>,
    ) -> Vec<B> {
        let mut built = Vec::new();
        for (name, table) in self.0 {
            match build(&name, table) {
                Ok(one) => built.push(one),
                Err(mistake) => mistakes.push(name.mistake_below(mistake)),
            }
        }
        built
    }
}

/// A number from 0 on, with or without a fraction, as a text.
#[derive(Debug)]
pub struct Number(pub String);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Digits;

        impl Visitor<'_> for Digits {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number from 0 on")
            }

            fn visit_u64<E>(self, number: u64) -> Result<Number, E> {
                Ok(Number(number.to_string()))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Number, E> {
                Ok(Number(number.to_string()))
            }
        }

        deserializer.deserialize_f64(Digits)
    }
}

/// A text that this check turns into what it stands for.
pub fn checked<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    check: impl Fn(&str) -> Result<T, Mistake>,
) -> Result<T, D::Error> {
    Checked(&check).deserialize(deserializer)
}

/// A list of such texts.
pub fn checked_list<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    check: impl Fn(&str) -> Result<T, Mistake>,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(Checked(&check))
}

/// What a word stands for; of any other it is said that it is none, and which was meant.
pub fn meaning<T: Copy>(
    word: &str,
    known: &[(&str, T)],
    is_none: &str,
    hint: &str,
) -> Result<T, Mistake> {
    let found = known.iter().find(|(name, _)| *name == word);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let near = meant(word, known.iter().map(|(name, _)| *name));
        Mistake::error(format!("`{word}` {is_none}")).hint(near.unwrap_or_else(|| hint.to_owned()))
    })
}

/// Hosts that may be talked to, each on every port or on one.
pub fn hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HttpSettings, D::Error> {
    let allow = checked_list(deserializer, |text| {
        let read = HttpSettings::new(&[text]).map(|_| text.to_owned());
        read.map_err(|bad| Mistake::error(bad.to_string()))
    })?;
    HttpSettings::new(&allow).map_err(D::Error::custom)
}

/// Realms, by names and beginnings of names. None at all are a mistake.
pub fn realm_patterns<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<RealmPattern>>, D::Error> {
    let realms = checked_list(deserializer, |text| {
        let hint = "write the name of a realm, or its beginning and `*`: `acme`, `acme-*`";
        RealmPattern::parse(text).map_err(|bad| Mistake::error(bad.to_string()).hint(hint))
    })?;
    if realms.is_empty() {
        let what = "`realms` is empty, so it would be there for no one";
        return Err(refused(Mistake::error(what).hint("leave it out: it is there for `default`")));
    }
    Ok(Some(realms))
}

struct Checked<'c, T>(&'c dyn Fn(&str) -> Result<T, Mistake>);

impl<'de, T> DeserializeSeed<'de> for Checked<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        (self.0)(&text).map_err(refused)
    }
}

impl<'de, T> Visitor<'de> for Checked<'_, T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of texts")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut texts: A) -> Result<Vec<T>, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = texts.next_element_seed(Checked(self.0))? {
            all.push(one);
        }
        Ok(all)
    }
}

/// A whole number that this limit could have; `key` is what it is called here.
pub fn limited<'de, D: Deserializer<'de>>(
    deserializer: D,
    key: &'static str,
    limit: &'static str,
) -> Result<Option<u64>, D::Error> {
    let number = NonZeroU64::deserialize(deserializer)?.get();
    let Some(bad) = Limits::check_one(limit, number) else { return Ok(Some(number)) };
    let bad = OutOfRange { name: key, ..bad };
    Err(refused(Mistake::error(bad.to_string()).hint(bad.hint())))
}

/// The mistake as an error, which the reader takes apart again and gives its place.
pub fn refused<E: Error>(mistake: Mistake) -> E {
    match mistake.hint {
        Some(hint) => E::custom(format_args!("{}{HINT}{hint}", mistake.message)),
        None => E::custom(mistake.message),
    }
}
