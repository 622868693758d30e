//! Arguments of a call as a Cedar record, typed by the tool's input schema. Parts of a schema that
//! Cedar has no type for are left out of the type, so that no policy can read them. A value that
//! the type cannot represent exactly makes the whole record inexpressible: otherwise policies would
//! judge a rounded number while the exact one is sent.

use crate::dependencies::Members;
use cedar_policy::RestrictedExpression;
use serde_json::{Map, Number, Value, json};
use std::collections::BTreeMap;

/// How deep a schema is read. What is deeper is left out.
const DEPTH_MAX: usize = 12;
/// How many parts of a schema are read. References can make a small schema a large type.
const PARTS_MAX: usize = 2_000;
/// How many digits after the point Cedar's decimal has.
const DECIMALS_MAX: usize = 4;
/// Cedar's decimal is a whole number of ten-thousandths in 64 bits. Whole parts are below this.
const DECIMAL_END: i64 = 922_337_203_685_477;
/// Up to here every whole number is a float of its own.
const EXACT_END: f64 = 9_007_199_254_740_992.0;

/// A type of Cedar that a JSON Schema describes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    Long,
    Decimal,
    Text,
    Flag,
    Set(Box<Shape>),
    Record(Record),
}

/// The members of a record that have a type.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Record(pub(crate) BTreeMap<String, Member>);

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Member {
    pub(crate) shape: Shape,
    /// Whether the schema requires it, and not as null.
    pub(crate) required: bool,
}

/// Why arguments cannot be expressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inexpressible(pub(crate) String);

impl Record {
    /// The type of a tool's arguments.
    pub(crate) fn of(input_schema: &Value) -> Self {
        let mut reader = Reader { root: input_schema, parts: 0 };
        match reader.typed(input_schema, 0) {
            Some(Typed { shape: Shape::Record(record), .. }) => record,
            _ => Self::default(),
        }
    }

    /// Whether it has the member that these names lead to.
    pub(crate) fn has(&self, names: &[String]) -> bool {
        let Some((first, rest)) = names.split_first() else { return true };
        self.0.get(first).is_some_and(|member| match &member.shape {
            Shape::Record(record) => record.has(rest),
            _ => rest.is_empty(),
        })
    }

    /// Whether these names lead to a decimal.
    pub(crate) fn is_decimal(&self, names: &[String]) -> bool {
        let Some((first, rest)) = names.split_first() else { return false };
        self.0.get(first).is_some_and(|member| match &member.shape {
            Shape::Record(record) => record.is_decimal(rest),
            shape => rest.is_empty() && *shape == Shape::Decimal,
        })
    }

    /// The same as a type in a schema of Cedar.
    pub(crate) fn to_cedar(&self) -> Value {
        let member = |(name, member): (&String, &Member)| {
            let mut cedar = member.shape.to_cedar();
            if let Some(fields) = cedar.as_object_mut() {
                fields.insert("required".to_owned(), json!(member.required));
            }
            (name.clone(), cedar)
        };
        let attributes: Map<String, Value> = self.0.iter().map(member).collect();
        json!({"type": "Record", "attributes": attributes})
    }

    /// Arguments of this type, with these members of them. The others must be of their types, too:
    /// what a policy says does not depend on which arguments others read.
    pub(crate) fn express(
        &self,
        value: &Value,
        read: &Members,
    ) -> Result<RestrictedExpression, Inexpressible> {
        let fields = fields_of(value)?;
        let mut members = Vec::new();
        for (name, member) in &self.0 {
            let Some(field) = member.field(name, fields)? else { continue };
            if read.has(name) {
                let expressed = member.shape.express(field);
                members.push((name.clone(), expressed.map_err(|why| why.within(name))?));
            } else {
                member.shape.check(field).map_err(|why| why.within(name))?;
            }
        }
        RestrictedExpression::new_record(members).map_err(|error| Inexpressible(error.to_string()))
    }

    /// Whether arguments are of this type: what `express` says, and nothing is made.
    fn check(&self, value: &Value) -> Result<(), Inexpressible> {
        let fields = fields_of(value)?;
        self.0.iter().try_for_each(|(name, member)| match member.field(name, fields)? {
            Some(field) => member.shape.check(field).map_err(|why| why.within(name)),
            None => Ok(()),
        })
    }
}

impl Member {
    /// Its value, where there is one.
    fn field<'v>(
        &self,
        name: &str,
        fields: &'v Map<String, Value>,
    ) -> Result<Option<&'v Value>, Inexpressible> {
        match fields.get(name).filter(|field| !field.is_null()) {
            None if self.required => Err(Inexpressible(format!("`{name}` is missing"))),
            field => Ok(field),
        }
    }
}

impl Shape {
    fn to_cedar(&self) -> Value {
        match self {
            Self::Long => json!({"type": "Long"}),
            Self::Decimal => json!({"type": "Extension", "name": "decimal"}),
            Self::Text => json!({"type": "String"}),
            Self::Flag => json!({"type": "Boolean"}),
            Self::Set(element) => json!({"type": "Set", "element": element.to_cedar()}),
            Self::Record(record) => record.to_cedar(),
        }
    }

    fn express(&self, value: &Value) -> Result<RestrictedExpression, Inexpressible> {
        match (self, value) {
            (Self::Long, Value::Number(number)) => {
                let whole = whole(number).ok_or_else(|| not_exact("a whole number of 64 bits"));
                Ok(RestrictedExpression::new_long(whole?))
            }
            (Self::Decimal, Value::Number(number)) => {
                let text = decimal(number).ok_or_else(|| not_exact("a decimal that Cedar has"));
                Ok(RestrictedExpression::new_decimal(text?))
            }
            (Self::Text, Value::String(text)) => Ok(RestrictedExpression::new_string(text.clone())),
            (Self::Flag, Value::Bool(flag)) => Ok(RestrictedExpression::new_bool(*flag)),
            (Self::Set(element), Value::Array(items)) => {
                let items: Result<Vec<_>, _> =
                    items.iter().map(|item| element.express(item)).collect();
                Ok(RestrictedExpression::new_set(items?))
            }
            (Self::Record(record), value) => record.express(value, &Members::All),
            (Self::Long | Self::Decimal, value) => Err(unlike("a number", value)),
            (Self::Text, value) => Err(unlike("a text", value)),
            (Self::Flag, value) => Err(unlike("true or false", value)),
            (Self::Set(_), value) => Err(unlike("a list", value)),
        }
    }
}

impl Shape {
    /// Whether it holds this value: what `express` says, and nothing is made.
    fn check(&self, value: &Value) -> Result<(), Inexpressible> {
        match (self, value) {
            (Self::Text, Value::String(_)) | (Self::Flag, Value::Bool(_)) => Ok(()),
            (Self::Long, Value::Number(number)) if whole(number).is_some() => Ok(()),
            (Self::Decimal, Value::Number(number)) if decimal(number).is_some() => Ok(()),
            (Self::Set(element), Value::Array(items)) => {
                items.iter().try_for_each(|item| element.check(item))
            }
            (Self::Record(record), value) => record.check(value),
            // It does not hold it, and this says why.
            (_, value) => self.express(value).map(|_| ()),
        }
    }
}

impl Inexpressible {
    fn within(self, name: &str) -> Self {
        Self(format!("in `{name}`: {}", self.0))
    }
}

fn fields_of(value: &Value) -> Result<&Map<String, Value>, Inexpressible> {
    value.as_object().ok_or_else(|| unlike("an object", value))
}

/// The number itself is not repeated: reasons are kept where arguments are not.
fn not_exact(expected: &str) -> Inexpressible {
    Inexpressible(format!("the number is not {expected}"))
}

fn unlike(expected: &str, value: &Value) -> Inexpressible {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    Inexpressible(format!("expected {expected}, found {kind}"))
}

/// A whole number, also where it is written with a point.
fn whole(number: &Number) -> Option<i64> {
    let written_with_point = || {
        let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
        // The text has no exponent, whatever the number is.
        if float.abs() < EXACT_END { format!("{float}").parse().ok() } else { None }
    };
    if number.is_f64() { written_with_point() } else { number.as_i64() }
}

/// The text of a decimal, if Cedar's can hold it exactly.
fn decimal(number: &Number) -> Option<String> {
    if let Some(whole) = number.as_i64() {
        return (-DECIMAL_END < whole && whole < DECIMAL_END).then(|| format!("{whole}.0"));
    }
    let float = number.as_f64().filter(|_| number.is_f64())?;
    // The shortest digits that are this number and no other, without an exponent.
    let text = format!("{float}");
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, "0"));
    let fits = whole.parse().is_ok_and(|whole: i64| -DECIMAL_END < whole && whole < DECIMAL_END);
    (fits && decimals.len() <= DECIMALS_MAX).then(|| format!("{whole}.{decimals}"))
}

/// A part of a schema that has a type.
#[derive(Clone, PartialEq)]
struct Typed {
    shape: Shape,
    nullable: bool,
}

impl Typed {
    fn new(shape: Shape) -> Self {
        Self { shape, nullable: false }
    }
}

/// Reads a JSON Schema.
struct Reader<'s> {
    root: &'s Value,
    parts: usize,
}

impl<'s> Reader<'s> {
    fn typed(&mut self, schema: &'s Value, depth: usize) -> Option<Typed> {
        self.parts += 1;
        if depth > DEPTH_MAX || self.parts > PARTS_MAX {
            return None;
        }
        let fields = schema.as_object()?;
        if let Some(reference) = fields.get("$ref") {
            let pointer = reference.as_str()?.strip_prefix('#')?;
            return self.typed(self.root.pointer(pointer)?, depth + 1);
        }
        let nullable = says_nullable(fields);
        let found = match alternatives(fields) {
            Some(choices) => self.one_of(choices, depth)?,
            None => Typed::new(self.plain(fields, depth)?),
        };
        Some(Typed { nullable: nullable || found.nullable, ..found })
    }

    /// Alternatives that have one type, null aside.
    fn one_of(&mut self, choices: &'s [Value], depth: usize) -> Option<Typed> {
        let others = choices.iter().filter(|choice| !is_null(choice));
        let mut found: Option<Typed> = None;
        let mut count = 0;
        for choice in others {
            let typed = self.typed(choice, depth + 1)?;
            count += 1;
            match &mut found {
                Some(before) if before.shape != typed.shape => return None,
                Some(before) => before.nullable |= typed.nullable,
                None => found = Some(typed),
            }
        }
        let nullable = count < choices.len();
        found.map(|typed| Typed { nullable: nullable || typed.nullable, ..typed })
    }

    fn plain(&mut self, fields: &'s Map<String, Value>, depth: usize) -> Option<Shape> {
        match type_of(fields)? {
            "integer" => Some(Shape::Long),
            "number" => Some(Shape::Decimal),
            "string" => Some(Shape::Text),
            "boolean" => Some(Shape::Flag),
            "array" if fields.contains_key("prefixItems") => None,
            "array" => {
                let element = self.typed(fields.get("items")?, depth + 1)?;
                // A list with nulls in it has no type.
                (!element.nullable).then(|| Shape::Set(Box::new(element.shape)))
            }
            "object" => Some(Shape::Record(self.record(fields, depth))),
            _ => None,
        }
    }

    fn record(&mut self, fields: &'s Map<String, Value>, depth: usize) -> Record {
        let required = fields.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            required.is_some_and(|names| names.iter().any(|known| known.as_str() == Some(name)))
        };
        let mut record = Record::default();
        let properties = fields.get("properties").and_then(Value::as_object);
        // By name: what is cut off a schema that is too large does not depend on its order.
        let properties: BTreeMap<&String, &Value> = properties.into_iter().flatten().collect();
        for (name, schema) in properties {
            if let Some(Typed { shape, nullable }) = self.typed(schema, depth + 1) {
                let required = is_required(name) && !nullable;
                record.0.insert(name.clone(), Member { shape, required });
            }
        }
        record
    }
}

/// The alternatives of a schema, where it is nothing but a choice between them.
fn alternatives(fields: &Map<String, Value>) -> Option<&[Value]> {
    let choices = ["anyOf", "oneOf"].iter().find_map(|word| fields.get(*word)?.as_array());
    let all = fields.get("allOf").and_then(Value::as_array).filter(|all| all.len() == 1);
    // An object with alternatives beside its own properties is read by its properties.
    choices.or(all).map(Vec::as_slice).filter(|_| !fields.contains_key("properties"))
}

fn is_null(schema: &Value) -> bool {
    schema["type"] == "null" || schema.get("const").is_some_and(Value::is_null)
}

fn says_nullable(fields: &Map<String, Value>) -> bool {
    let types = fields.get("type").and_then(Value::as_array);
    let values = fields.get("enum").and_then(Value::as_array);
    types.is_some_and(|types| types.iter().any(|one| one == "null"))
        || values.is_some_and(|values| values.iter().any(Value::is_null))
        || fields.get("nullable") == Some(&Value::Bool(true))
}

/// The one type of a schema, null aside.
fn type_of(fields: &Map<String, Value>) -> Option<&str> {
    match fields.get("type") {
        Some(Value::String(one)) => Some(one),
        Some(Value::Array(several)) => {
            let names: Vec<&str> = several.iter().filter_map(Value::as_str).collect();
            let others: Vec<&str> = names.iter().copied().filter(|name| *name != "null").collect();
            match others.as_slice() {
                [one] => Some(*one),
                ["integer", "number"] | ["number", "integer"] => Some("number"),
                _ => None,
            }
        }
        _ if fields.contains_key("properties") => Some("object"),
        _ => type_of_values(fields),
    }
}

/// The one type of the values that a schema lists.
fn type_of_values(fields: &Map<String, Value>) -> Option<&'static str> {
    let listed = fields.get("enum").and_then(Value::as_array).map(Vec::as_slice);
    let values = listed.or_else(|| fields.get("const").map(std::slice::from_ref))?;
    let mut kinds = values.iter().filter(|value| !value.is_null()).map(|value| match value {
        Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        _ => "other",
    });
    let first = kinds.next()?;
    kinds.all(|kind| kind == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cedar(schema: Value) -> Value {
        Record::of(&schema).to_cedar()["attributes"].clone()
    }

    #[test]
    fn a_schema_becomes_a_cedar_type_without_unsupported_parts() {
        let found = cedar(json!({
            "type": "object",
            "required": ["amount", "note", "to"],
            "properties": {
                "amount": {"type": "integer"},
                "rate": {"type": ["number", "null"]},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "mode": {"enum": ["fast", "slow"]},
                "sure": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "to": {"$ref": "#/$defs/person"},
                "any": {},
                "either": {"type": ["string", "integer"]},
                "mixed": {"type": "array", "items": {"type": ["string", "null"]}},
                "pair": {"type": "array", "prefixItems": [{"type": "string"}]},
            },
            "$defs": {"person": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "boss": {"$ref": "#/$defs/person"}},
            }},
        }));
        let names: Vec<&str> = found.as_object().unwrap().keys().map(String::as_str).collect();
        let mut names = names;
        names.sort_unstable();
        assert_eq!(names, ["amount", "mode", "note", "rate", "sure", "tags", "to"]);
        assert_eq!(found["amount"], json!({"type": "Long", "required": true}));
        assert_eq!(
            found["rate"],
            json!({"type": "Extension", "name": "decimal", "required": false})
        );
        assert_eq!(found["note"], json!({"type": "String", "required": false}));
        assert_eq!(
            found["tags"],
            json!({"type": "Set", "element": {"type": "String"}, "required": false})
        );
        assert_eq!(found["to"]["attributes"]["name"], json!({"type": "String", "required": true}));
        assert_eq!(found["to"]["required"], json!(true));
    }

    #[test]
    fn a_recursive_schema_is_truncated() {
        let wide: Map<String, Value> =
            (0..20).map(|index| (format!("m{index}"), json!({"$ref": "#"}))).collect();
        let record = Record::of(&json!({"type": "object", "properties": wide}));
        assert!(record.0.len() <= 20);
        assert_eq!(Record::of(&json!({"$ref": "#"})), Record::default());
        assert_eq!(Record::of(&json!(true)), Record::default());
    }

    fn expressed(shape: &Value, value: Value) -> Result<(), String> {
        let schema = json!({"type": "object", "properties": {"x": shape}, "required": ["x"]});
        let record = Record::of(&schema);
        let arguments = json!({"x": value});
        let told = |read: &Members| record.express(&arguments, read).map(|_| ());
        let said = told(&Members::All);
        // What is not read must be of its type as well, and is refused in the same words.
        assert_eq!(told(&Members::default()), said, "{arguments}");
        assert_eq!(record.check(&arguments), said, "{arguments}");
        said.map_err(|why| why.0)
    }

    #[test]
    fn numbers_are_expressed_exactly_or_not_at_all() {
        let integer = json!({"type": "integer"});
        let number = json!({"type": "number"});
        for good in [json!(0), json!(i64::MIN), json!(i64::MAX), json!(5.0), json!(-3.0)] {
            assert_eq!(expressed(&integer, good), Ok(()));
        }
        for bad in [json!(u64::MAX), json!(1e19), json!(0.5), json!(1e16)] {
            assert!(expressed(&integer, bad).is_err());
        }
        for good in [json!(0), json!(1.5), json!(-0.0001), json!(922_337_203_685_476_i64)] {
            assert_eq!(expressed(&number, good), Ok(()));
        }
        for bad in [
            json!(1.00001),
            json!(1e-7),
            json!(1e15),
            json!(i64::MAX),
            json!(u64::MAX),
            json!(922_337_203_685_477_i64),
        ] {
            assert!(expressed(&number, bad).is_err());
        }
    }

    #[test]
    fn a_list_of_several_types_and_a_missing_member_are_inexpressible() {
        let list = json!({"type": "array", "items": {"type": "string"}});
        assert_eq!(expressed(&list, json!(["a", "b"])), Ok(()));
        assert_eq!(
            expressed(&list, json!(["a", 1])),
            Err("in `x`: expected a text, found a number".to_owned())
        );
        assert_eq!(expressed(&list, json!(null)), Err("`x` is missing".to_owned()));
        assert!(expressed(&json!({"type": "string"}), json!(1)).is_err());
        let nested = json!({"type": "object", "required": ["y"],
            "properties": {"y": list, "z": {"type": "boolean"}}});
        assert_eq!(expressed(&nested, json!({"y": ["a"], "z": null, "more": 1e300})), Ok(()));
        assert_eq!(
            expressed(&nested, json!({"y": [], "z": 1})),
            Err("in `x`: in `z`: expected true or false, found a number".to_owned())
        );
        assert_eq!(expressed(&nested, json!({})), Err("in `x`: `y` is missing".to_owned()));
        assert_eq!(
            expressed(&nested, json!([])),
            Err("in `x`: expected an object, found a list".to_owned())
        );
    }

    #[test]
    fn decimals_have_a_point_and_at_most_four_digits_after_it() {
        let text = |value: Value| match value {
            Value::Number(number) => decimal(&number),
            _ => None,
        };
        assert_eq!(text(json!(3)), Some("3.0".to_owned()));
        assert_eq!(text(json!(-2.5)), Some("-2.5".to_owned()));
        assert_eq!(text(json!(1e3)), Some("1000.0".to_owned()));
        assert_eq!(text(json!(0.12345)), None);
    }
}
