//! Values of fields as they are stored: of the kind that is declared, within bounds. A text that
//! reads as the kind counts as it; null is the same as a field that is left out.

use super::error::FieldMistake;
use crate::checked::folded;
use crate::dates::{read_date, read_moment, start_of};
use crate::numbers::Number;
use crate::types::{Bounds, Field, Kind};
use kernel::definition::plan::mistake::meant;
use kernel::values::members::take;
use serde_json::{Map, Value};

/// Doubles hold whole numbers up to here exactly.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Reads records, and notes what is wrong with them.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) mistakes: Vec<FieldMistake>,
}

impl Reader {
    pub(super) fn wrong(&mut self, field: &str, message: impl Into<String>) {
        self.mistakes.push(FieldMistake { field: field.to_owned(), message: message.into() });
    }

    /// The declared members of an object, with defaults, in the order of the fields. Those that
    /// are not declared stay in `given`.
    pub(super) fn declared(
        &mut self,
        fields: &[Field],
        given: &mut Map<String, Value>,
        place: &str,
    ) -> Map<String, Value> {
        let mut members = Map::new();
        for field in fields {
            let path = joined(place, &field.name);
            let value = take(given, &field.name).filter(|value| !value.is_null());
            match value.or_else(|| field.default.clone()) {
                Some(value) => {
                    if let Some(value) = self.field(field, value, &path) {
                        members.insert(field.name.clone(), value);
                    }
                }
                None if field.required => self.wrong(&path, "is required"),
                None => {}
            }
        }
        members
    }

    /// Says of each of these members that there is no such field.
    pub(super) fn unknown<'n>(
        &mut self,
        given: impl Iterator<Item = &'n String>,
        known: &[&str],
        place: &str,
    ) {
        for name in given {
            let hint = meant(name, known.iter().copied());
            let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            self.wrong(&joined(place, name), format!("is no field of this type{hint}"));
        }
    }

    fn field(&mut self, field: &Field, value: Value, path: &str) -> Option<Value> {
        let value = self.of_kind(&field.kind, value, path)?;
        let value = self.chosen(field, value, path)?;
        if let Some(message) = out_of_bounds(&value, field.bounds) {
            self.wrong(path, message);
        }
        if let (Some(pattern), Value::String(text)) = (&field.pattern, &value)
            && !pattern.is_match(text)
        {
            self.wrong(path, format!("must match the pattern `{}`", pattern.as_str()));
        }
        Some(value)
    }

    fn of_kind(&mut self, kind: &Kind, value: Value, path: &str) -> Option<Value> {
        let read = match (kind, value) {
            (Kind::Object(fields), Value::Object(mut given)) => {
                let members = self.declared(fields, &mut given, path);
                given.retain(|_, value| !value.is_null());
                // Without hints: what is hidden in here is reported in the same way.
                self.unknown(given.keys(), &[], path);
                Some(Value::Object(members))
            }
            (Kind::Array(inner), Value::Array(elements)) => {
                let mut read = Vec::with_capacity(elements.len());
                for (index, element) in elements.into_iter().enumerate() {
                    read.extend(self.of_kind(inner, element, &format!("{path}[{index}]")));
                }
                return Some(Value::Array(read));
            }
            (Kind::String, Value::String(text)) => Some(Value::String(text)),
            (Kind::Integer, value) => integer(&value),
            (Kind::Number, value) => number(&value),
            (Kind::Boolean, value) => boolean(&value),
            (Kind::Date, Value::String(text)) => {
                read_date(text.trim()).map(|date| Value::String(date.to_string()))
            }
            (Kind::DateTime, Value::String(text)) => moment(text.trim()),
            (Kind::Json, value) => Some(value),
            // What it refers to is looked up once all fields are read.
            (Kind::Reference(_), value @ (Value::String(_) | Value::Object(_))) => Some(value),
            _ => None,
        };
        if read.is_none() {
            self.wrong(path, format!("must be {}", expected(kind)));
        }
        read
    }

    /// Of choices that are texts, case does not matter; as it is declared it is stored.
    fn chosen(&mut self, field: &Field, value: Value, path: &str) -> Option<Value> {
        if field.choices.is_empty() {
            return Some(value);
        }
        if let Value::Array(elements) = value {
            let chosen = |element| self.choice(field, element, path);
            return elements.into_iter().map(chosen).collect::<Option<Vec<_>>>().map(Value::Array);
        }
        self.choice(field, value, path)
    }

    fn choice(&mut self, field: &Field, value: Value, path: &str) -> Option<Value> {
        let is_chosen = |choice: &&Value| same(choice, &value);
        let is_alike = |choice: &&Value| match (choice.as_str(), value.as_str()) {
            (Some(choice), Some(value)) => folded(choice) == folded(value),
            _ => false,
        };
        let choices = || field.choices.iter();
        let found = choices().find(is_chosen).or_else(|| choices().find(is_alike)).cloned();
        if found.is_none() {
            let choices: Vec<String> = choices().map(Value::to_string).collect();
            self.wrong(path, format!("must be one of {}", choices.join(", ")));
        }
        found
    }
}

fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Number::of(left) == Number::of(right),
        _ => left == right,
    }
}

pub(super) fn joined(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

fn number_in(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(Number::of(number)),
        Value::String(text) => Number::read(text.trim()),
        _ => None,
    }
}

fn integer(value: &Value) -> Option<Value> {
    let whole = match number_in(value)? {
        Number::Whole(whole) => i64::try_from(whole).ok()?,
        Number::Decimal(decimal) if decimal.fract() == 0.0 && decimal.abs() < EXACT_MAX => {
            decimal as i64
        }
        Number::Decimal(_) => return None,
    };
    Some(Value::from(whole))
}

fn number(value: &Value) -> Option<Value> {
    match number_in(value)? {
        Number::Whole(whole) => Some(match i64::try_from(whole) {
            Ok(whole) => Value::from(whole),
            Err(_) => Value::from(whole as f64),
        }),
        Number::Decimal(decimal) => Some(Value::from(decimal)),
    }
}

fn boolean(value: &Value) -> Option<Value> {
    let read = match value {
        Value::Bool(value) => *value,
        Value::String(text) if text.trim().eq_ignore_ascii_case("true") => true,
        Value::String(text) if text.trim().eq_ignore_ascii_case("false") => false,
        _ => return None,
    };
    Some(Value::Bool(read))
}

/// In UTC. A date is its midnight.
fn moment(text: &str) -> Option<Value> {
    let moment = read_moment(text).or_else(|| read_date(text).map(start_of))?;
    Some(Value::String(moment.to_string()))
}

fn expected(kind: &Kind) -> String {
    match kind {
        Kind::String => "a text".to_owned(),
        Kind::Integer => "a whole number of 64 bits".to_owned(),
        Kind::Number => "a number".to_owned(),
        Kind::Boolean => "true or false".to_owned(),
        Kind::Date => "a date such as 2024-01-31".to_owned(),
        Kind::DateTime => "a date-time such as 2024-01-31T09:00:00Z".to_owned(),
        Kind::Object(_) => "an object".to_owned(),
        Kind::Array(_) => "an array".to_owned(),
        Kind::Json => "JSON".to_owned(),
        Kind::Reference(to) => format!("the id or refName of a {to}"),
    }
}

/// The bounds of an array count its elements, and those of a text its characters.
fn out_of_bounds(value: &Value, bounds: Bounds) -> Option<String> {
    let (size, what) = match value {
        Value::Number(number) => (Number::of(number).to_f64(), ""),
        Value::String(text) => (text.chars().count() as f64, " characters"),
        Value::Array(elements) => (elements.len() as f64, " elements"),
        Value::Null | Value::Bool(_) | Value::Object(_) => return None,
    };
    let less = bounds.min.filter(|min| size < *min);
    let more = bounds.max.filter(|max| size > *max);
    match (less, more) {
        (Some(min), _) => Some(format!("must be at least {min}{what}")),
        (None, Some(max)) => Some(format!("must be at most {max}{what}")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Pattern;
    use serde_json::json;

    fn read(fields: &[Field], given: Value) -> (Value, Vec<String>) {
        let mut given = given.as_object().cloned().unwrap();
        let mut reader = Reader::default();
        let read = reader.declared(fields, &mut given, "");
        let shown = |mistake: &FieldMistake| format!("{}: {}", mistake.field, mistake.message);
        (Value::Object(read), reader.mistakes.iter().map(shown).collect())
    }

    #[test]
    fn a_text_that_reads_as_the_kind_counts_as_it() {
        let fields = [
            Field::new("n", Kind::Integer),
            Field::new("d", Kind::Number),
            Field::new("b", Kind::Boolean),
            Field::new("t", Kind::DateTime),
            Field::new("day", Kind::Date),
        ];
        let given = json!({
            "n": "42", "d": "19.90", "b": "TRUE", "t": "2024-01-31T10:00:00+01:00",
            "day": " 2024-01-31 ",
        });
        let expected = json!({
            "n": 42, "d": 19.9, "b": true, "t": "2024-01-31T09:00:00Z", "day": "2024-01-31",
        });
        assert_eq!(read(&fields, given), (expected, Vec::new()));
        let (read_as, _) = read(&fields, json!({"n": 5.0, "t": "2024-01-31"}));
        assert_eq!(read_as, json!({"n": 5, "t": "2024-01-31T00:00:00Z"}));
        let wrong = json!({
            "n": 5.5, "d": "1e5", "b": 1, "t": "yesterday", "day": "2024-01-31T00:00:00Z",
        });
        let (read_as, mistakes) = read(&fields, wrong);
        assert_eq!(read_as, json!({}));
        assert_eq!(mistakes.len(), 5, "{mistakes:?}");
        let (_, mistakes) = read(&fields, json!({"n": u64::MAX}));
        assert_eq!(mistakes, ["n: must be a whole number of 64 bits"]);
    }

    #[test]
    fn a_text_matches_its_pattern() {
        let mut code = Field::new("code", Kind::String);
        code.pattern = Some(Pattern::new("^[A-Z]-\\d+$").unwrap());
        assert_eq!(read(&[code.clone()], json!({"code": "A-12"})).1, Vec::<String>::new());
        let (_, mistakes) = read(&[code], json!({"code": "A-12 or so"}));
        assert_eq!(mistakes, ["code: must match the pattern `^[A-Z]-\\d+$`"]);
    }

    #[test]
    fn a_number_is_no_text() {
        let (_, mistakes) = read(&[Field::new("code", Kind::String)], json!({"code": 42}));
        assert_eq!(mistakes, ["code: must be a text"]);
    }

    #[test]
    fn null_is_left_out_and_a_default_takes_its_place() {
        let mut status = Field::new("status", Kind::String);
        status.default = Some(json!("open"));
        let mut code = Field::new("code", Kind::String);
        code.required = true;
        let fields = [status, code, Field::new("note", Kind::String)];
        let given = json!({"status": null, "code": null, "note": null});
        let missing = vec!["code: is required".to_owned()];
        assert_eq!(read(&fields, given), (json!({"status": "open"}), missing));
    }

    #[test]
    fn choices_and_bounds_hold_also_inside() {
        let mut status = Field::new("status", Kind::String);
        status.choices = vec![json!("Open"), json!("Shut")];
        let mut tags = Field::new("tags", Kind::array(Kind::String));
        tags.choices = vec![json!("a"), json!("b")];
        tags.bounds.max = Some(2.0);
        let mut count = Field::new("count", Kind::Integer);
        count.bounds.min = Some(1.0);
        let lines = Field::new("lines", Kind::array(Kind::Object(vec![count])));
        let fields = [status, tags, lines];
        let (read_as, mistakes) = read(&fields, json!({"status": "OPEN", "tags": ["B"]}));
        assert_eq!((read_as, mistakes), (json!({"status": "Open", "tags": ["b"]}), Vec::new()));
        let wrong = json!({
            "status": "ajar", "tags": ["a", "a", "a"], "lines": [{"count": 0, "cuont": 1}],
        });
        let (_, mistakes) = read(&fields, wrong);
        let expected = [
            "status: must be one of \"Open\", \"Shut\"",
            "tags: must be at most 2 elements",
            "lines[0].count: must be at least 1",
            "lines[0].cuont: is no field of this type",
        ];
        assert_eq!(mistakes, expected);
    }
}
