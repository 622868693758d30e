//! Every answer that a test gets is held against `/openapi.json`: its status is listed by its own
//! number, its type and body are as told, and no key is in it that is not told.

use crate::house::Answer;
use axum::http::Method;
use engine::catalog::schema::JsonSchemas;
use kernel::tool::schema::Schemas;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

/// These may carry more than is listed: the state of a conflict, who won; the place of a fault in a
/// query; what others keep beside an agent; the id of a case, under the name that its pipeline
/// gives it.
const OPEN: [&str; 7] =
    ["Problem", "PlainError", "NamedError", "ThreadError", "Agent", "CaseAnswer", "PendingCase"];

static CONTRACT: LazyLock<Contract> = LazyLock::new(Contract::read);

struct Contract {
    document: Value,
    schemas: JsonSchemas,
    /// By the text of the schema: compiling one takes longer than a request.
    bodies: Mutex<HashMap<String, Arc<Value>>>,
}

/// Endpoints that speak a protocol of their own, which the document cannot tell.
const PROTOCOLS: [&str; 2] = ["/mcp", "/rpc"];

/// Holds one answer against the document.
pub fn hold(method: &Method, path: &str, answer: &Answer) {
    if PROTOCOLS.contains(&path) {
        return;
    }
    CONTRACT.hold(method, path, answer);
}

impl Contract {
    fn read() -> Self {
        let mut document = server::openapi();
        let schemas = document["components"]["schemas"].as_object_mut().unwrap();
        for (name, schema) in schemas {
            let closes = schema.get("properties").is_some() && !OPEN.contains(&name.as_str());
            if closes {
                schema["additionalProperties"] = json!(false);
            }
        }
        Self { document, schemas: JsonSchemas::default(), bodies: Mutex::default() }
    }

    fn hold(&self, method: &Method, path: &str, answer: &Answer) {
        // Some endpoints are open with a slash at the end too.
        let path = path.split('?').next().unwrap_or_default().trim_end_matches('/');
        let Some(operation) = self.operation(method, path) else {
            // The frame refuses strangers before it looks at the path.
            let status = answer.status;
            assert!([403, 404, 405].contains(&status), "{method} {path} answered {status}");
            return;
        };
        let told = &operation["responses"][answer.status.to_string()];
        assert!(told.is_object(), "{method} {path} answered what is not told: {answer:?}");
        let Some(content) = self.resolved(told)["content"].as_object() else {
            assert_eq!(answer.text, "", "{method} {path}");
            return;
        };
        let sent = answer.header("content-type");
        let kind = sent.split(';').next().unwrap_or_default();
        let media = content.get(kind);
        let media = media.unwrap_or_else(|| panic!("{method} {path} answered `{kind}`"));
        if kind.ends_with("json") {
            let fits = self.schemas.check(&self.body(&media["schema"]), &answer.body);
            assert_eq!(fits, Ok(()), "{method} {path}: {}", answer.text);
        }
    }

    /// The operation of a path; one without names goes before one with them.
    fn operation(&self, method: &Method, path: &str) -> Option<&Value> {
        let paths = self.document["paths"].as_object().unwrap();
        let named = paths.iter().find(|(template, _)| is_like(template, path));
        let (_, found) = paths.get_key_value(path).or(named)?;
        found.get(method.as_str().to_lowercase())
    }

    fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            Some(reference) => self.document.pointer(&reference[1..]).unwrap(),
            None => value,
        }
    }

    fn body(&self, schema: &Value) -> Arc<Value> {
        let mut bodies = self.bodies.lock().unwrap();
        let whole = bodies.entry(schema.to_string()).or_insert_with(|| {
            let components = &self.document["components"];
            Arc::new(json!({"allOf": [schema], "components": components}))
        });
        whole.clone()
    }
}

fn is_like(template: &str, path: &str) -> bool {
    let template: Vec<&str> = template.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    let same = |(known, given): (&&str, &&str)| known.starts_with('{') || known == given;
    template.len() == path.len() && template.iter().zip(&path).all(same)
}
