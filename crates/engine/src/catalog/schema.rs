//! JSON Schema by the `jsonschema` crate: draft 7 and 2020-12, nothing fetched from the network.
//!
//! Schemas come from callers and from other servers, so each is measured
//! (`kernel::tool::schema::weigh`) before a validator is made of it, and each value before it is
//! held against one. What is let through takes a bounded number of steps, and the limits are set so
//! that neither takes more than a fraction of a second, whatever the schema and the value. What is
//! not done at once is done off the workers that serve requests. Nothing is built, checked or
//! dropped while the lock is held.

use crate::system::heavy::Heavy;
use crate::system::locks::lock;
use jsonschema::{Draft, PatternOptions, Validator};
use kernel::tool::schema::{BACKTRACKS_MAX, Misfit, Schemas, Weight, weigh};
use kernel::values::canonical;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// How many steps the check of one value against its schema may take.
const STEPS_MAX: u64 = 5_000_000;
/// How many misfits of one value are reported.
const MISFITS_MAX: usize = 8;
/// How many compiled schemas are kept.
const COMPILED_MAX: usize = 4_096;
/// How many parts they have together: a part of a compiled schema takes up to 2 KB.
const PARTS_MAX: usize = 100_000;
/// After so many more parts, schemas that no one else holds any more are dropped: each plan that a
/// request brings along has schemas of its own, and they would otherwise stay until there is no
/// room.
const SWEPT_PARTS: usize = 10_000;
/// How much of a faulty value a message repeats.
const MESSAGE_CHARS_MAX: usize = 300;
/// Up to so many steps all mismatches are searched for: to describe one takes much longer than to
/// find out that there is one.
const EXPLAINED_STEPS_MAX: u64 = 50_000;
/// Up to so many parts a schema is built on the worker that needs it: most have far fewer.
const LIGHT_PARTS_MAX: usize = 200;
/// Up to so many steps a value is checked there: most take far fewer.
const LIGHT_STEPS_MAX: u64 = 20_000;

/// Compiles and keeps schemas.
#[derive(Default)]
pub struct JsonSchemas {
    cache: Mutex<SchemaCache>,
}

/// Compiled schemas by the addresses of the shared values, which the entries keep alive: schemas of
/// tools and plans live long, and hashing a schema for each call would cost more than checking.
#[derive(Default)]
struct SchemaCache {
    entries: HashMap<usize, Entry>,
    parts: usize,
    /// How many parts were left after the last sweep.
    swept: usize,
    /// How many were ever kept.
    count: u64,
}

struct Entry {
    schema: Arc<Value>,
    compiled: Arc<CompiledSchema>,
    /// The how manieth it was.
    number: u64,
}

/// A schema's validator, and what it costs to use it.
struct CompiledSchema {
    validator: Validator,
    weight: Weight,
}

impl SchemaCache {
    fn get(&self, schema: &Arc<Value>) -> Option<Arc<CompiledSchema>> {
        let entry = self.entries.get(&address(schema))?;
        Arc::ptr_eq(&entry.schema, schema).then(|| entry.compiled.clone())
    }

    /// Keeps one, and gives back those that had to go for it: first what no one else holds any
    /// more, then the oldest.
    fn put(&mut self, schema: &Arc<Value>, compiled: Arc<CompiledSchema>) -> Vec<Entry> {
        let parts = compiled.weight.parts();
        let mut gone = Vec::new();
        if !self.has_room(parts) || self.parts + parts > self.swept + SWEPT_PARTS {
            let unused = self.entries.iter().filter(|(_, it)| Arc::strong_count(&it.schema) == 1);
            let unused: Vec<usize> = unused.map(|(address, _)| *address).collect();
            gone.extend(unused.into_iter().filter_map(|address| self.remove(address)));
            self.swept = self.parts;
        }
        while !self.has_room(parts) {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.number);
            let Some(address) = oldest.map(|(address, _)| *address) else { break };
            gone.extend(self.remove(address));
        }
        // Two may have built the same one at once: the last one stays.
        gone.extend(self.remove(address(schema)));
        self.count += 1;
        self.parts += parts;
        let entry = Entry { schema: schema.clone(), compiled, number: self.count };
        self.entries.insert(address(schema), entry);
        gone
    }

    fn has_room(&self, parts: usize) -> bool {
        self.entries.len() < COMPILED_MAX && self.parts + parts <= PARTS_MAX
    }

    fn remove(&mut self, address: usize) -> Option<Entry> {
        let entry = self.entries.remove(&address)?;
        self.parts -= entry.compiled.weight.parts();
        Some(entry)
    }
}

fn address(schema: &Arc<Value>) -> usize {
    Arc::as_ptr(schema) as usize
}

impl JsonSchemas {
    fn compiled(&self, schema: &Arc<Value>) -> Result<Arc<CompiledSchema>, Misfit> {
        let known = lock(&self.cache).get(schema);
        if let Some(compiled) = known {
            return Ok(compiled);
        }
        let weight = weigh(schema)?;
        let is_light = weight.parts() <= LIGHT_PARTS_MAX && !weight.backtracks();
        let built = || build(schema, &weight);
        let validator = if is_light { built()? } else { Heavy::shared().run(built)? };
        let compiled = Arc::new(CompiledSchema { validator, weight });
        let gone = lock(&self.cache).put(schema, compiled.clone());
        // What had to go can be large: it goes after the lock.
        drop(gone);
        Ok(compiled)
    }
}

fn build(schema: &Value, weight: &Weight) -> Result<Validator, Misfit> {
    let draft = match schema.get("$schema").and_then(Value::as_str) {
        None => Draft::Draft202012,
        Some(uri) if uri.contains("draft-07") => Draft::Draft7,
        Some(uri) if uri.contains("2020-12") => Draft::Draft202012,
        Some(uri) => {
            let message = format!("`$schema` is `{uri}`; draft-07 and 2020-12 are known");
            return Err(Misfit { pointer: "/$schema".to_owned(), message });
        }
    };
    let options = jsonschema::options().offline().with_draft(draft);
    let options = if weight.backtracks() {
        let engine = PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS_MAX);
        options.with_pattern_options(engine)
    } else {
        options.with_pattern_options(PatternOptions::regex())
    };
    // Mismatches are reported in the order of the schema's keywords, however it is written.
    options.build(&canonical::sorted(schema)).map_err(|error| misfit(&error))
}

impl Schemas for JsonSchemas {
    fn compile(&self, schema: &Arc<Value>) -> Result<usize, Misfit> {
        self.compiled(schema).map(|compiled| compiled.weight.parts())
    }

    fn check(&self, schema: &Arc<Value>, value: &Value) -> Result<(), Vec<Misfit>> {
        let compiled = self.compiled(schema).map_err(|misfit| vec![misfit])?;
        if compiled.weight.is_within(value, LIGHT_STEPS_MAX) {
            return compiled.hold(value);
        }
        Heavy::shared().run(|| compiled.check(value))
    }

    fn steps(&self, schema: &Arc<Value>, value: &Value) -> u64 {
        let steps =
            |it: Arc<CompiledSchema>| it.weight.steps(value, STEPS_MAX).unwrap_or(STEPS_MAX);
        self.compiled(schema).map_or(0, steps)
    }
}

impl CompiledSchema {
    /// Holds a value against the schema if that can be done in time.
    fn check(&self, value: &Value) -> Result<(), Vec<Misfit>> {
        if self.weight.is_within(value, STEPS_MAX) {
            return self.hold(value);
        }
        let why = format!(
            "the schema is too complex for a value of this size and depth: the check takes more \
             steps than {STEPS_MAX}"
        );
        Err(vec![Misfit { pointer: String::new(), message: why }])
    }

    fn hold(&self, value: &Value) -> Result<(), Vec<Misfit>> {
        let Self { validator, weight } = self;
        if validator.is_valid(value) {
            return Ok(());
        }
        if weight.is_within(value, EXPLAINED_STEPS_MAX) {
            let misfits = validator.iter_errors(value).take(MISFITS_MAX);
            return Err(misfits.map(|error| misfit(&error)).collect());
        }
        // The first misfit costs no more than the check did, unless it is made of others.
        let first = if weight.has_alternatives() { None } else { validator.validate(value).err() };
        let first = first.map(|error| misfit(&error)).unwrap_or_else(|| Misfit {
            pointer: String::new(),
            message: "it does not fit, and is too large to say where".to_owned(),
        });
        Err(vec![first])
    }
}

fn misfit(error: &jsonschema::ValidationError<'_>) -> Misfit {
    Misfit { pointer: error.instance_path().to_string(), message: shortened(&error.to_string()) }
}

fn shortened(message: &str) -> String {
    if message.chars().count() <= MESSAGE_CHARS_MAX {
        return message.to_owned();
    }
    let start: String = message.chars().take(MESSAGE_CHARS_MAX).collect();
    format!("{start}...")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_schema_drafts_are_supported_and_nothing_is_fetched() {
        let schemas = JsonSchemas::default();
        let seven = Arc::new(json!({"$schema": "http://json-schema.org/draft-07/schema#",
            "items": [{"type": "string"}]}));
        assert!(schemas.check(&seven, &json!([1])).is_err());
        let newest = Arc::new(json!({"prefixItems": [{"type": "string"}]}));
        assert!(schemas.check(&newest, &json!([1])).is_err());
        for remote in ["http://127.0.0.1:9/schema.json", "file:///schema.json", "other.json"] {
            let nested = json!({"properties": {"a": {"items": {"$ref": remote}}}});
            assert!(schemas.compile(&Arc::new(nested)).is_err(), "{remote}");
        }
        let inside = json!({"$id": "http://a.test/s", "$defs": {"a": {}}, "$ref": "#/$defs/a"});
        assert!(schemas.compile(&Arc::new(inside)).is_ok());
        let other = Arc::new(json!({"$schema": "http://json-schema.org/draft-04/schema#"}));
        assert!(schemas.compile(&other).is_err());
        assert!(schemas.compile(&Arc::new(json!({"type": 12}))).is_err());
    }

    #[test]
    fn misfits_point_at_the_fault() {
        let schema = Arc::new(json!({"properties": {"n": {"type": "integer"}}}));
        let misfits = JsonSchemas::default().check(&schema, &json!({"n": "x"})).unwrap_err();
        assert_eq!(misfits[0].pointer, "/n");
    }

    #[test]
    fn misfits_come_in_one_order_however_the_schema_is_written() {
        let told = |schema: &str| {
            let schema: Arc<Value> = Arc::new(serde_json::from_str(schema).unwrap());
            JsonSchemas::default().check(&schema, &json!({"a": 1, "b": 1})).unwrap_err()
        };
        let text = r#"{"type": "string"}"#;
        let one =
            told(&format!(r#"{{"required": ["c"], "properties": {{"b": {text}, "a": {text}}}}}"#));
        let other =
            told(&format!(r#"{{"properties": {{"a": {text}, "b": {text}}}, "required": ["c"]}}"#));
        assert_eq!((one.len(), &one), (3, &other));
    }

    /// 40 levels of two ways each, all for the same value.
    fn tower() -> Value {
        let mut levels = json!({"l40": {"type": "string"}});
        for level in 0..40 {
            let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
            levels[format!("l{level}")] = json!({"anyOf": [next, next]});
        }
        json!({"$ref": "#/$defs/l0", "$defs": levels})
    }

    #[test]
    fn a_recursive_schema_is_refused() {
        let schemas = JsonSchemas::default();
        let tower = Arc::new(tower());
        let told = schemas.compile(&tower).unwrap_err().message;
        assert!(told.starts_with("the schema is too complex: "), "{told}");
        let misfits = schemas.check(&tower, &json!(7)).unwrap_err();
        assert_eq!(misfits, [Misfit { pointer: String::new(), message: told }]);
        // The ways double with every level of the value.
        let trees = Arc::new(json!({"anyOf": [
            {"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]}));
        let nested = |depth| (0..depth).fold(json!(1), |inner, _| json!({"a": inner}));
        assert_eq!(schemas.check(&trees, &nested(10)), Ok(()));
        let told = schemas.check(&trees, &nested(60)).unwrap_err();
        assert!(told[0].message.contains("more steps than 5000000"), "{told:?}");
    }

    #[test]
    fn pattern_matching_is_bounded_in_time() {
        let schemas = JsonSchemas::default();
        let almost = format!("{}!", "a".repeat(5_000));
        let linear = Arc::new(json!({"pattern": "^(a+)+$"}));
        assert_eq!(schemas.check(&linear, &json!("aaa")), Ok(()));
        let misfits = schemas.check(&linear, &json!(almost)).unwrap_err();
        assert_eq!((misfits.len(), misfits[0].pointer.as_str()), (1, ""));
        // What looks around can only be tried, and is given up on.
        let trying = Arc::new(json!({"pattern": "^(?=a)((a+)+)\\2$"}));
        assert_eq!(schemas.check(&trying, &json!("aaaa")), Ok(()));
        assert!(schemas.check(&trying, &json!(almost)).is_err());
        let names = Arc::new(json!({"items": {"pattern": "^(?!x-)[a-z-]+$"}}));
        assert_eq!(schemas.check(&names, &json!(["a-b", "c"])), Ok(()));
        assert!(schemas.check(&names, &json!(["x-b", "c"])).is_err());
    }

    #[test]
    fn recently_used_schemas_stay_cached() {
        let schemas = JsonSchemas::default();
        let used = Arc::new(json!({"type": "string"}));
        schemas.compile(&used).unwrap();
        let first = schemas.cache.lock().unwrap().get(&used).unwrap();
        for number in 0..COMPILED_MAX + 10 {
            schemas.compile(&Arc::new(json!({"const": number}))).unwrap();
        }
        let cache = schemas.cache.lock().unwrap();
        assert!(Arc::ptr_eq(&first, &cache.get(&used).unwrap()), "it was not built again");
        assert!(cache.entries.len() <= COMPILED_MAX);
        let parts = cache.entries.values().map(|entry| entry.compiled.weight.parts());
        assert_eq!(cache.parts, parts.sum::<usize>());
    }

    #[test]
    fn unused_schemas_are_evicted_early() {
        let schemas = JsonSchemas::default();
        let members: serde_json::Map<String, Value> =
            (0..500).map(|n| (format!("m{n}"), json!({"type": "string"}))).collect();
        for _ in 0..100 {
            schemas.compile(&Arc::new(json!({"properties": members}))).unwrap();
            let parts = schemas.cache.lock().unwrap().parts;
            assert!(parts <= SWEPT_PARTS + 1_000, "{parts} parts of schemas that no one holds");
        }
    }

    #[test]
    fn the_same_schema_may_be_built_twice_at_once() {
        let schemas = JsonSchemas::default();
        let schema = Arc::new(json!({"properties": {"n": {"type": "integer"}}}));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    assert_eq!(schemas.check(&schema, &json!({"n": 1})), Ok(()));
                    assert!(schemas.check(&schema, &json!({"n": "x"})).is_err());
                });
            }
        });
        assert_eq!(schemas.cache.lock().unwrap().entries.len(), 1);
    }

    #[test]
    fn a_large_value_reports_only_its_first_misfit() {
        let schema = Arc::new(json!({"items": {"properties": {"n": {"type": "integer"}}}}));
        let mut items = vec![json!({"n": 1}); 100_000];
        items[70_000] = json!({"n": "x"});
        let misfits = JsonSchemas::default().check(&schema, &json!(items)).unwrap_err();
        assert_eq!((misfits.len(), misfits[0].pointer.as_str()), (1, "/70000/n"));
    }
}
