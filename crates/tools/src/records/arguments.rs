//! Arguments that may be written in several ways, the same at every endpoint, and what they are
//! read as.

use super::refusal::{bad_argument, bad_field, bad_record, refused};
use kernel::tool::call::ToolError;
use kernel::values::fault::Fault;
use query::evaluate::group::Function;
use query::evaluate::order::{WrittenSort, read_sort};
use query::parser::parse_path;
use query::records::error::{FieldMistake, RecordError};
use query::records::names::read_id;
use query::tree::Path;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// How many fields one argument may name.
const FIELDS_MAX: usize = 16;

static FUNCTIONS: [(&str, Function); 5] = [
    ("count", Function::Count),
    ("sum", Function::Sum),
    ("avg", Function::Avg),
    ("min", Function::Min),
    ("max", Function::Max),
];

/// What `sort` may be.
#[derive(Deserialize)]
#[serde(untagged, expecting = "`sort` is a list of `{field, dir}` or a text like `-field,other`")]
pub(super) enum SortArg {
    Text(String),
    Fields(Vec<SortFieldArg>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SortFieldArg {
    field: String,
    #[serde(default)]
    dir: Direction,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Direction {
    #[default]
    Asc,
    Desc,
}

impl SortArg {
    pub(super) fn read(&self) -> Result<Vec<WrittenSort>, ToolError> {
        let sorts: Vec<WrittenSort> = match self {
            SortArg::Text(text) => read_sort(text).map_err(|fault| bad_field("sort", &fault))?,
            SortArg::Fields(fields) => {
                let read = |asked: &SortFieldArg| -> Result<WrittenSort, ToolError> {
                    let path = read_path("sort", &asked.field)?;
                    Ok(WrittenSort { path, descends: asked.dir == Direction::Desc })
                };
                fields.iter().map(read).collect::<Result<_, ToolError>>()?
            }
        };
        few_enough("sort", sorts)
    }
}

impl JsonSchema for SortArg {
    fn schema_name() -> Cow<'static, str> {
        "Sort".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["array", "string"],
            "items": {
                "type": "object",
                "properties": {
                    "field": {"type": "string"},
                    "dir": {"enum": ["ASC", "DESC"], "default": "ASC"}
                },
                "required": ["field"],
                "additionalProperties": false
            }
        })
    }
}

/// What `groupBy` may be.
#[derive(Deserialize)]
#[serde(untagged, expecting = "`groupBy` is a list of fields or a text like `field,other`")]
pub(super) enum GroupByArg {
    Text(String),
    Fields(Vec<String>),
}

impl GroupByArg {
    /// The fields as they are written, and their paths.
    pub(super) fn read(&self) -> Result<Vec<(String, Path)>, ToolError> {
        let names: Vec<&str> = match self {
            GroupByArg::Text(text) => parts(text).collect(),
            GroupByArg::Fields(fields) => fields.iter().map(|field| field.trim()).collect(),
        };
        let read = |name: &str| read_path("groupBy", name).map(|path| (name.to_owned(), path));
        few_enough("groupBy", names.into_iter().map(read).collect::<Result<_, ToolError>>()?)
    }
}

impl JsonSchema for GroupByArg {
    fn schema_name() -> Cow<'static, str> {
        "GroupBy".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["array", "string"], "items": {"type": "string"}})
    }
}

/// What `aggregate` may be.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "`aggregate` is a list of `{function, field, as}` or a text like `count,sum(field)`"
)]
pub(super) enum AggregateArg {
    Text(String),
    Measures(Vec<MeasureArg>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MeasureArg {
    function: String,
    field: Option<String>,
    #[serde(rename = "as")]
    name: Option<String>,
}

/// One thing that is computed for each group.
#[derive(Debug)]
pub(super) struct WrittenMeasure {
    /// In the answer.
    pub(super) name: String,
    pub(super) function: Function,
    /// Without one, records are counted.
    pub(super) path: Option<Path>,
}

impl AggregateArg {
    pub(super) fn read(&self) -> Result<Vec<WrittenMeasure>, ToolError> {
        let measures: Vec<WrittenMeasure> = match self {
            AggregateArg::Text(text) => {
                parts(text).map(measure_of).collect::<Result<_, ToolError>>()?
            }
            AggregateArg::Measures(measures) => {
                let read = |asked: &MeasureArg| -> Result<WrittenMeasure, ToolError> {
                    let field = asked.field.as_deref();
                    let mut measure = measure(&asked.function, field.unwrap_or_default())?;
                    if let Some(name) = &asked.name {
                        measure.name.clone_from(name);
                    }
                    Ok(measure)
                };
                measures.iter().map(read).collect::<Result<_, ToolError>>()?
            }
        };
        few_enough("aggregate", measures)
    }
}

impl JsonSchema for AggregateArg {
    fn schema_name() -> Cow<'static, str> {
        "Aggregate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["array", "string"],
            "items": {
                "type": "object",
                "properties": {
                    "function": {"enum": ["count", "sum", "avg", "min", "max"]},
                    "field": {"type": "string"},
                    "as": {"type": "string"}
                },
                "required": ["function"],
                "additionalProperties": false
            }
        })
    }
}

/// `sum(total)`, or `count` alone.
fn measure_of(text: &str) -> Result<WrittenMeasure, ToolError> {
    let Some((function, rest)) = text.split_once('(') else {
        return measure(text, "");
    };
    match rest.trim_end().strip_suffix(')') {
        Some(field) => measure(function, field),
        None => {
            let message = format!("`{text}` has no `)`");
            Err(bad_argument("aggregate", &message, "write it like `sum(total)`"))
        }
    }
}

fn measure(function: &str, field: &str) -> Result<WrittenMeasure, ToolError> {
    let (function, field) = (function.trim(), field.trim());
    let Some((name, known)) = FUNCTIONS.iter().find(|(name, _)| *name == function) else {
        let message = format!("there is no function `{function}`");
        let hint = "the functions are count, sum, avg, min and max";
        return Err(bad_argument("aggregate", &message, hint));
    };
    if field.is_empty() {
        if *known != Function::Count {
            let message = format!("`{name}` needs a field");
            return Err(bad_argument("aggregate", &message, &format!("write `{name}(field)`")));
        }
        return Ok(WrittenMeasure { name: (*name).to_owned(), function: *known, path: None });
    }
    let path = Some(read_path("aggregate", field)?);
    Ok(WrittenMeasure { name: format!("{name}({field})"), function: *known, path })
}

/// A part of the rows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PageArg {
    /// As `limit` beside it
    limit: Option<u64>,
    /// As `skip` beside it
    skip: Option<u64>,
}

/// The limit that is asked for, and how many rows are skipped.
pub(super) fn read_page(
    page: Option<&PageArg>,
    limit: Option<u64>,
    skip: Option<u64>,
) -> Result<(Option<u64>, u64), ToolError> {
    let limit = once("limit", page.and_then(|page| page.limit), limit)?;
    let skip = once("skip", page.and_then(|page| page.skip), skip)?;
    Ok((limit, skip.unwrap_or_default()))
}

fn once(name: &str, inside: Option<u64>, beside: Option<u64>) -> Result<Option<u64>, ToolError> {
    if inside.is_some() && beside.is_some() {
        let message = format!("`{name}` is given twice, in `page` and beside it");
        return Err(refused(Fault::new("InvalidPage", message).hint("leave one of them out")));
    }
    Ok(inside.or(beside))
}

/// What `entity` may be.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct EntityArg(Value);

impl EntityArg {
    /// The entity as an object whose id, if it has one, is one.
    pub(super) fn read(&self) -> Result<Value, ToolError> {
        let entity = match &self.0 {
            Value::String(text) => serde_json::from_str::<Value>(text).map_err(|error| {
                invalid_entity(format!("is a text, but not the JSON of an object: {error}"))
            })?,
            other => other.clone(),
        };
        let Value::Object(members) = &entity else {
            return Err(invalid_entity("must be an object or its JSON text".to_owned()));
        };
        for id in ["id", "_id"].iter().filter_map(|name| members.get(*name)) {
            match id {
                Value::Null => {}
                Value::String(text) if read_id(text).is_some() => {}
                Value::String(text) => {
                    return Err(bad_record(&RecordError::InvalidId(text.clone())));
                }
                other => return Err(bad_record(&RecordError::InvalidId(other.to_string()))),
            }
        }
        Ok(entity)
    }
}

impl JsonSchema for EntityArg {
    fn schema_name() -> Cow<'static, str> {
        "Entity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["object", "string"]})
    }
}

fn invalid_entity(why: String) -> ToolError {
    let mistake = FieldMistake { field: String::new(), message: format!("`entity` {why}") };
    bad_record(&RecordError::InvalidEntity(vec![mistake]))
}

/// The id that is named as `id` or as `_id`.
pub(super) fn read_named_id(id: Option<&str>, other: Option<&str>) -> Result<String, ToolError> {
    let bad = |text: &str| bad_record(&RecordError::InvalidId(text.to_owned()));
    let mut found: Option<String> = None;
    for text in id.into_iter().chain(other) {
        let read = read_id(text).ok_or_else(|| bad(text))?;
        if found.as_ref().is_some_and(|found| *found != read) {
            let message = "`id` and `_id` name two records";
            return Err(refused(Fault::new("InvalidId", message).hint("leave one of them out")));
        }
        found = Some(read);
    }
    found.ok_or_else(|| {
        let fault = Fault::new("InvalidId", "`id` is required");
        refused(fault.hint("name the record by `id`: 24 hexadecimal digits or a UUID"))
    })
}

fn read_path(argument: &str, text: &str) -> Result<Path, ToolError> {
    parse_path(text).map_err(|mut fault| {
        fault.message = format!("field `{text}`: {}", fault.message);
        bad_field(argument, &fault)
    })
}

fn few_enough<T>(argument: &str, named: Vec<T>) -> Result<Vec<T>, ToolError> {
    if named.len() > FIELDS_MAX {
        let message = format!("names more than {FIELDS_MAX} fields");
        return Err(bad_argument(argument, &message, "name fewer fields"));
    }
    Ok(named)
}

/// The parts of a text between commas.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sort(argument: Value) -> Result<Vec<String>, ToolError> {
        let sorts = serde_json::from_value::<SortArg>(argument).unwrap().read()?;
        let shown =
            |sort: &WrittenSort| format!("{}{}", if sort.descends { "-" } else { "+" }, sort.path);
        Ok(sorts.iter().map(shown).collect())
    }

    fn measures(argument: Value) -> Result<Vec<(String, String)>, ToolError> {
        let measures = serde_json::from_value::<AggregateArg>(argument).unwrap().read()?;
        let shown = |measure: WrittenMeasure| {
            let path = measure.path.map(|path| path.to_string()).unwrap_or_default();
            (measure.name, format!("{:?} {path}", measure.function))
        };
        Ok(measures.into_iter().map(shown).collect())
    }

    fn groups(argument: Value) -> Result<Vec<String>, ToolError> {
        let fields = serde_json::from_value::<GroupByArg>(argument).unwrap().read()?;
        Ok(fields.into_iter().map(|(name, _)| name).collect())
    }

    #[test]
    fn a_sort_is_a_list_or_a_text() {
        let list = json!([{"field": "total", "dir": "DESC"}, {"field": "address.city"}]);
        let expected = vec!["-total".to_owned(), "+address.city".to_owned()];
        assert_eq!(sort(list), Ok(expected.clone()));
        assert_eq!(sort(json!("-total, address.city")), Ok(expected));
        assert_eq!(sort(json!("")), Ok(Vec::new()));
        let misfit = |argument: Value| {
            serde_json::from_value::<SortArg>(argument).err().map(|error| error.to_string())
        };
        let told = "`sort` is a list of `{field, dir}` or a text like `-field,other`";
        assert_eq!(misfit(json!([{"field": "a", "dir": "UP"}])).as_deref(), Some(told));
        assert_eq!(misfit(json!([{"name": "a"}])).as_deref(), Some(told));
    }

    #[test]
    fn fields_of_other_arguments_are_refused_with_the_argument() {
        for error in [
            sort(json!("a b")).unwrap_err(),
            sort(json!([{"field": "a:1"}])).unwrap_err(),
            sort(json!([{"field": ""}])).unwrap_err(),
            sort(json!("a,".repeat(17))).unwrap_err(),
        ] {
            assert_eq!(error.fault.name, "InvalidQuery", "{error:?}");
            assert_eq!(json!(error.fault.detail), json!({"argument": "sort"}), "{error:?}");
        }
        let error = groups(json!(["a:1"])).unwrap_err();
        assert_eq!(json!(error.fault.detail), json!({"argument": "groupBy"}));
    }

    #[test]
    fn groups_are_a_list_or_a_text() {
        let expected = Ok(vec!["city".to_owned(), "address.zip".to_owned()]);
        assert_eq!(groups(json!(["city", " address.zip "])), expected);
        assert_eq!(groups(json!("city, address.zip")), expected);
    }

    #[test]
    fn measures_are_a_list_or_a_text() {
        let of = |measures: &[(&str, &str)]| -> Vec<(String, String)> {
            let owned = |(name, shown): &(&str, &str)| ((*name).to_owned(), (*shown).to_owned());
            measures.iter().map(owned).collect()
        };
        let expected = of(&[("count", "Count "), ("sum(total)", "Sum total")]);
        assert_eq!(measures(json!("count, sum(total)")), Ok(expected.clone()));
        let list = json!([{"function": "count"}, {"function": "sum", "field": "total"}]);
        assert_eq!(measures(list), Ok(expected));
        let named = json!([{"function": "max", "field": "total", "as": "most"}]);
        assert_eq!(measures(named), Ok(of(&[("most", "Max total")])));
        for (text, told) in [
            ("median(total)", "`aggregate`: there is no function `median`"),
            ("sum", "`aggregate`: `sum` needs a field"),
            ("sum()", "`aggregate`: `sum` needs a field"),
            ("sum(total", "`aggregate`: `sum(total` has no `)`"),
        ] {
            assert_eq!(measures(json!(text)).unwrap_err().fault.message, told);
        }
    }

    #[test]
    fn a_page_is_an_object_or_flat() {
        let page = |text: &str| serde_json::from_str::<PageArg>(text).unwrap();
        let both = page(r#"{"limit": 5, "skip": 2}"#);
        assert_eq!(read_page(Some(&both), None, None), Ok((Some(5), 2)));
        assert_eq!(read_page(None, Some(5), Some(2)), Ok((Some(5), 2)));
        let one = page(r#"{"limit": 5}"#);
        assert_eq!(read_page(Some(&one), None, Some(2)), Ok((Some(5), 2)));
        let error = read_page(Some(&one), Some(5), None).unwrap_err();
        assert_eq!(error.fault.name, "InvalidPage");
    }

    #[test]
    fn an_entity_is_an_object_or_its_text() {
        let entity = |value: Value| EntityArg(value).read();
        let object = json!({"_id": "65A000000000000000000001", "id": null, "city": "Oslo"});
        assert_eq!(entity(object.clone()), Ok(object.clone()));
        assert_eq!(entity(Value::String(object.to_string())), Ok(object));
        for wrong in [json!("{"), json!("[]"), json!([]), json!(7)] {
            assert_eq!(entity(wrong).unwrap_err().fault.name, "InvalidEntity");
        }
        for wrong in [json!({"id": "x"}), json!({"_id": 7})] {
            assert_eq!(entity(wrong).unwrap_err().fault.name, "InvalidId");
        }
    }

    #[test]
    fn an_id_is_named_once() {
        let id = "65A000000000000000000001";
        let read = Ok(id.to_lowercase());
        assert_eq!(read_named_id(Some(id), None), read);
        assert_eq!(read_named_id(None, Some(id)), read);
        assert_eq!(read_named_id(Some(id), Some(&id.to_lowercase())), read);
        let other = "65a000000000000000000002";
        for (id, other) in [(None, None), (Some("x"), None), (Some(id), Some(other))] {
            assert_eq!(read_named_id(id, other).unwrap_err().fault.name, "InvalidId");
        }
    }
}
