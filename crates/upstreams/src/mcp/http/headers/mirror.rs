//! Arguments that a tool wants mirrored in HTTP headers (`x-mcp-header` in its input schema), so
//! that proxies can route a call without parsing it. A tool with an invalid annotation is left out:
//! a proxy and the server would see different values.

use super::header_text;
use serde_json::Value;
use wire::mcp::HEADER_PARAM;

/// In the schema of an argument: the header that repeats it.
const ANNOTATION: &str = "x-mcp-header";
/// How deep arguments that are repeated may lie.
const DEPTH_MAX: usize = 16;

/// The arguments of one tool that are repeated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MirroredArguments {
    /// Where each lies in the arguments, and its header.
    arguments: Vec<(Vec<String>, String)>,
}

impl MirroredArguments {
    /// Parses the annotations of a tool's input schema.
    pub(crate) fn read(schema: &Value) -> Result<Self, String> {
        let mut mistakes = Vec::new();
        let mut mirrored = Self::default();
        mirrored.look(schema, &mut Vec::new(), &mut mistakes);
        if let Some(mistake) = mistakes.into_iter().next() {
            return Err(mistake);
        }
        let repeated = mirrored.arguments.len();
        let written = annotations(schema, 0);
        if written != repeated {
            return Err(format!("`{ANNOTATION}` stands where no argument of its own is"));
        }
        Ok(mirrored)
    }

    /// What a tool's input schema says of it, as far as that can be done. For who passes on a call
    /// and has not to judge its tool.
    pub fn found(schema: &Value) -> Self {
        let mut mirrored = Self::default();
        mirrored.look(schema, &mut Vec::new(), &mut Vec::new());
        mirrored
    }

    /// Takes in the arguments of one object.
    fn look(&mut self, schema: &Value, place: &mut Vec<String>, mistakes: &mut Vec<String>) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return;
        };
        if place.len() >= DEPTH_MAX {
            return;
        }
        for (name, property) in properties {
            place.push(name.clone());
            if let Some(header) = property.get(ANNOTATION) {
                mistakes.extend(self.take(header, property, place).err());
            }
            self.look(property, place, mistakes);
            place.pop();
        }
    }

    fn take(&mut self, header: &Value, property: &Value, place: &[String]) -> Result<(), String> {
        let argument = place.join(".");
        let header = header.as_str().filter(|header| is_token(header));
        let Some(header) = header else {
            return Err(format!("`{ANNOTATION}` of `{argument}` is no name of a header"));
        };
        let header = format!("{HEADER_PARAM}{}", header.to_ascii_lowercase());
        if self.arguments.iter().any(|(_, other)| *other == header) {
            return Err(format!("two arguments have the `{ANNOTATION}` of `{argument}`"));
        }
        self.arguments.push((place.to_vec(), header));
        let kind = property.get("type").and_then(Value::as_str);
        if matches!(kind, Some("string" | "integer" | "boolean")) {
            return Ok(());
        }
        Err(format!("`{argument}` has `{ANNOTATION}`, but is no text, integer or boolean"))
    }

    /// The headers of a call with these arguments, ready to be sent. What is absent or null has
    /// none.
    pub fn headers(&self, arguments: &Value) -> Vec<(String, String)> {
        let header = |(place, header): &(Vec<String>, String)| {
            let value = place.iter().try_fold(arguments, |value, name| value.get(name))?;
            Some((header.clone(), written(value)?))
        };
        self.arguments.iter().filter_map(header).collect()
    }
}

/// Whether it can be a part of a header's name.
fn is_token(text: &str) -> bool {
    let of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(of_token)
}

/// How many annotations there are in a schema, wherever they stand. Values are no schemas.
fn annotations(schema: &Value, depth: usize) -> usize {
    const VALUES: [&str; 4] = ["const", "enum", "default", "examples"];
    const NAMED: [&str; 5] =
        ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
    match schema {
        _ if depth > 2 * DEPTH_MAX => 0,
        Value::Array(items) => items.iter().map(|item| annotations(item, depth + 1)).sum(),
        Value::Object(members) => {
            let count = |(key, value): (&String, &Value)| match value {
                _ if key == ANNOTATION => 1,
                _ if VALUES.contains(&key.as_str()) => 0,
                // Here the keys are names, whatever they are.
                Value::Object(named) if NAMED.contains(&key.as_str()) => {
                    named.values().map(|value| annotations(value, depth + 1)).sum()
                }
                value => annotations(value, depth + 1),
            };
            members.iter().map(count).sum()
        }
        _ => 0,
    }
}

/// A value as a header holds it; none where it has no plain form.
fn written(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    Some(header_text(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(properties: Value) -> Value {
        json!({"type": "object", "properties": properties})
    }

    fn is_right(properties: Value) -> bool {
        MirroredArguments::read(&schema(properties)).is_ok()
    }

    #[test]
    fn annotated_arguments_are_mirrored_in_headers() {
        let mirrored = MirroredArguments::read(&schema(json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "size": {"type": "integer", "x-mcp-header": "Size"},
            "sure": {"type": "boolean", "x-mcp-header": "Sure"},
            "free": {"type": "string"},
            "options": {"type": "object",
                "properties": {"limit": {"type": "integer", "x-mcp-header": "Limit"}}},
        })))
        .unwrap();
        let headers = |arguments: Value| {
            let mut headers = mirrored.headers(&arguments);
            headers.sort();
            headers
        };
        let header = |name: &str, value: &str| (format!("mcp-param-{name}"), value.to_owned());
        let all = headers(json!({"region": "us-west1", "size": 42, "sure": false, "free": "x",
            "options": {"limit": 3}}));
        let expected = vec![
            header("limit", "3"),
            header("region", "us-west1"),
            header("size", "42"),
            header("sure", "false"),
        ];
        assert_eq!(all, expected);
        assert_eq!(headers(json!({"region": "", "sure": null})), [header("region", "")]);
        assert!(headers(json!({"options": 1})).is_empty());
        assert_eq!(
            MirroredArguments::read(&json!({"type": "object"})),
            Ok(MirroredArguments::default())
        );
    }

    #[test]
    fn a_bridge_mirrors_every_argument_that_fits_a_header() {
        let schema = schema(json!({
            "a": {"type": "string", "x-mcp-header": "no header"},
            "b": {"type": "number", "x-mcp-header": "B"},
            "c": {"x-mcp-header": "C"},
            "d": {"type": "string", "x-mcp-header": "c"},
        }));
        assert!(MirroredArguments::read(&schema).is_err());
        let headers =
            MirroredArguments::found(&schema).headers(&json!({"a": 1, "b": 1.5, "c": 2, "d": 3}));
        let header = |name: &str, value: &str| (format!("mcp-param-{name}"), value.to_owned());
        assert_eq!(headers, [header("b", "1.5"), header("c", "2")]);
    }

    #[test]
    fn mirrored_values_unfit_for_headers_are_encoded() {
        let plain = |text: &str| written(&json!(text)).unwrap();
        assert_eq!(plain("us west 1"), "us west 1");
        for (text, encoded) in [
            ("Hello, 世界", "SGVsbG8sIOS4lueVjA=="),
            (" padded ", "IHBhZGRlZCA="),
            ("line1\nline2", "bGluZTEKbGluZTI="),
            ("\tx", "CXg="),
            ("=?base64?YQ==?=", "PT9iYXNlNjQ/WVE9PT89"),
        ] {
            assert_eq!(plain(text), format!("=?base64?{encoded}?="), "{text:?}");
        }
    }

    #[test]
    fn a_tool_with_an_invalid_mirror_annotation_is_left_out() {
        assert!(is_right(json!({"a": {"type": "string", "x-mcp-header": "A"}})));
        for header in [json!(""), json!("My Region"), json!("a:b"), json!("Région"), json!("a\t1")]
        {
            let wrong = json!({"a": {"type": "string", "x-mcp-header": header}});
            assert!(!is_right(wrong), "{header}");
        }
        for kind in ["object", "array", "null", "number"] {
            assert!(!is_right(json!({"a": {"type": kind, "x-mcp-header": "A"}})), "{kind}");
        }
        assert!(!is_right(json!({"a": {"type": "string", "x-mcp-header": "My"},
            "b": {"type": "string", "x-mcp-header": "my"}})));
        let inner = json!({"type": "string", "x-mcp-header": "A"});
        assert!(!is_right(json!({"a": {"type": "array", "items": inner}})));
        assert!(!is_right(json!({"a": {"anyOf": [inner]}})));
        let values = json!({"a": {"type": "object", "default": {"x-mcp-header": "A"}}});
        assert!(is_right(values));
        let named = json!({"x-mcp-header": {"type": "string"}});
        assert!(is_right(named), "an argument may have that name");
    }
}
