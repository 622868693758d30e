//! What is computed over many records: how many there are, and sums, averages, least and greatest
//! values of a field, for all of them or for each value of other fields.

use super::Row;
use super::leaves::any_leaf;
use super::order::{Key, key};
use crate::checked::{FieldPath, Root};
use crate::numbers::Number;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What is computed, and for which groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Grouping {
    /// With their names in the result. Without any, all records are one group.
    pub by: Vec<(String, FieldPath)>,
    pub measures: Vec<Measure>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// In the result.
    pub name: String,
    pub function: Function,
    /// The field; without one, records are counted.
    pub path: Option<FieldPath>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// Of values that are not null.
    Count,
    Sum,
    /// Null without numbers.
    Avg,
    Min,
    Max,
}

/// One object for each group, in the order of the values that they are grouped by. In a list, the
/// least value is the one that counts for a group.
pub fn group<'r>(grouping: &Grouping, rows: impl IntoIterator<Item = Row<'r>>) -> Vec<Value> {
    let mut groups = Groups::new(grouping);
    rows.into_iter().for_each(|row| groups.add(row));
    groups.shown()
}

/// The same for rows that come one after the other, none of which stays.
pub struct Groups<'g> {
    grouping: &'g Grouping,
    groups: BTreeMap<Vec<Key>, Group>,
}

impl<'g> Groups<'g> {
    pub fn new(grouping: &'g Grouping) -> Self {
        let mut groups = BTreeMap::new();
        if grouping.by.is_empty() {
            groups.insert(Vec::new(), Group::new(grouping));
        }
        Self { grouping, groups }
    }

    pub fn add(&mut self, row: Row<'_>) {
        let grouping = self.grouping;
        let keys = grouping.by.iter().map(|(_, path)| key(path, row, false)).collect();
        let group = self.groups.entry(keys).or_insert_with(|| Group::new(grouping));
        group.add(grouping, row);
    }

    /// How many groups there are so far.
    pub fn count(&self) -> usize {
        self.groups.len()
    }

    pub fn shown(self) -> Vec<Value> {
        let grouping = self.grouping;
        self.groups.into_iter().map(|(keys, group)| group.shown(grouping, keys)).collect()
    }
}

struct Group {
    tallies: Vec<Tally>,
}

impl Group {
    fn new(grouping: &Grouping) -> Self {
        Self { tallies: grouping.measures.iter().map(|_| Tally::default()).collect() }
    }

    fn add(&mut self, grouping: &Grouping, row: Row<'_>) {
        for (tally, measure) in self.tallies.iter_mut().zip(&grouping.measures) {
            match &measure.path {
                Some(path) => tally.add_values(path, row),
                None => tally.count += 1,
            }
        }
    }

    fn shown(self, grouping: &Grouping, keys: Vec<Key>) -> Value {
        let mut shown = Map::new();
        for ((name, _), key) in grouping.by.iter().zip(keys) {
            shown.insert(name.clone(), json_of(key));
        }
        for (measure, tally) in grouping.measures.iter().zip(self.tallies) {
            shown.insert(measure.name.clone(), tally.result(measure.function));
        }
        Value::Object(shown)
    }
}

#[derive(Default)]
struct Tally {
    count: u64,
    numbers: u64,
    /// None beyond 128 bits, and with a decimal.
    whole: Option<i128>,
    decimal: f64,
    least: Option<Key>,
    greatest: Option<Key>,
}

impl Tally {
    fn add_values(&mut self, path: &FieldPath, row: Row<'_>) {
        let realm = Value::from(row.realm);
        let mut look = |leaf: Option<&Value>| {
            if let Some(value) = leaf.filter(|value| !value.is_null()) {
                self.add(value, path.is_time);
            }
            false
        };
        match path.root {
            Root::Record => any_leaf(row.record, &path.steps, &mut look),
            Root::Realm => look(Some(&realm)),
            Root::Hidden => false,
        };
    }

    fn add(&mut self, value: &Value, is_time: bool) {
        self.count += 1;
        let key = Key::of(value, is_time);
        if let Key::Number(number) = key {
            self.add_number(number);
        }
        if self.least.as_ref().is_none_or(|least| key < *least) {
            self.least = Some(key.clone());
        }
        if self.greatest.as_ref().is_none_or(|greatest| key > *greatest) {
            self.greatest = Some(key);
        }
    }

    fn add_number(&mut self, number: Number) {
        let before = if self.numbers == 0 { Some(0) } else { self.whole };
        self.numbers += 1;
        self.decimal += number.to_f64();
        self.whole = match number {
            Number::Whole(whole) => before.and_then(|sum: i128| sum.checked_add(whole)),
            Number::Decimal(_) => None,
        };
    }

    fn result(self, function: Function) -> Value {
        match function {
            Function::Count => Value::from(self.count),
            Function::Sum if self.numbers == 0 => Value::from(0),
            Function::Sum => {
                self.whole.map_or(Number::Decimal(self.decimal), Number::Whole).to_json()
            }
            Function::Avg if self.numbers == 0 => Value::Null,
            Function::Avg => {
                let sum = self.whole.map_or(self.decimal, |whole| Number::Whole(whole).to_f64());
                Number::Decimal(sum / self.numbers as f64).to_json()
            }
            Function::Min => self.least.map_or(Value::Null, json_of),
            Function::Max => self.greatest.map_or(Value::Null, json_of),
        }
    }
}

fn json_of(key: Key) -> Value {
    match key {
        Key::Absent => Value::Null,
        Key::Bool(value) => Value::Bool(value),
        Key::Number(number) => number.to_json(),
        Key::Time(time) => Value::String(time.to_string()),
        Key::Text(_, text) => Value::String(text),
        Key::Other(text) => serde_json::from_str(&text).unwrap_or(Value::Null),
    }
}
