//! JSON Schema by the `jsonschema` crate: draft 7 and 2020-12, nothing fetched from the network.

use jsonschema::{Draft, Validator};
use kernel::schema::{Misfit, Schemas};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How many misfits of one value are told.
const MISFITS_MAX: usize = 8;
/// How many compiled schemas are kept.
const COMPILED_MAX: usize = 4_096;
/// How much of a faulty value a message repeats.
const MESSAGE_CHARS_MAX: usize = 300;

/// Compiles and keeps schemas.
#[derive(Default)]
pub struct JsonSchemas {
    /// By the address of the shared schema, which the entry keeps alive: schemas of tools and
    /// plans live long, and hashing a schema for each call would cost more than checking.
    compiled: Mutex<HashMap<usize, Compiled>>,
}

/// A schema and its validator.
type Compiled = (Arc<Value>, Arc<Validator>);

impl std::fmt::Debug for JsonSchemas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JsonSchemas")
    }
}

impl JsonSchemas {
    fn validator(&self, schema: &Arc<Value>) -> Result<Arc<Validator>, Misfit> {
        let address = Arc::as_ptr(schema) as usize;
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((kept, validator)) = compiled.get(&address)
            && Arc::ptr_eq(kept, schema)
        {
            return Ok(validator.clone());
        }
        let validator = Arc::new(build(schema)?);
        if compiled.len() >= COMPILED_MAX {
            compiled.clear();
        }
        compiled.insert(address, (schema.clone(), validator.clone()));
        Ok(validator)
    }
}

fn build(schema: &Value) -> Result<Validator, Misfit> {
    let draft = match schema.get("$schema").and_then(Value::as_str) {
        None => Draft::Draft202012,
        Some(uri) if uri.contains("draft-07") => Draft::Draft7,
        Some(uri) if uri.contains("2020-12") => Draft::Draft202012,
        Some(uri) => {
            let message = format!("`$schema` is `{uri}`; draft-07 and 2020-12 are known");
            return Err(Misfit { pointer: "/$schema".to_owned(), message });
        }
    };
    jsonschema::options().offline().with_draft(draft).build(schema).map_err(|error| Misfit {
        pointer: error.instance_path().to_string(),
        message: shortened(&error.to_string()),
    })
}

impl Schemas for JsonSchemas {
    fn compile(&self, schema: &Arc<Value>) -> Result<(), Misfit> {
        self.validator(schema).map(|_| ())
    }

    fn check(&self, schema: &Arc<Value>, value: &Value) -> Result<(), Vec<Misfit>> {
        let validator = self.validator(schema).map_err(|misfit| vec![misfit])?;
        if validator.is_valid(value) {
            return Ok(());
        }
        let misfit = |error: jsonschema::ValidationError<'_>| Misfit {
            pointer: error.instance_path().to_string(),
            message: shortened(&error.to_string()),
        };
        Err(validator.iter_errors(value).take(MISFITS_MAX).map(misfit).collect())
    }
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
    fn both_drafts_are_known_and_nothing_is_fetched() {
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
}
