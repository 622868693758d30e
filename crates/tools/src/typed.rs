//! Typed tools: a tool is a type that names its arguments and its output as Rust types and has one
//! function. Both schemas are derived from these types, so what is listed is what is read.

use futures::future::BoxFuture;
use kernel::contracts::Tool;
use kernel::tool::arguments::read;
use kernel::tool::call::{Call, Caller, OutputKind, Pace, Reach, ToolError, ToolOutput, ToolSpec};
use kernel::values::datum::BlobRef;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// A tool whose arguments and output are Rust types.
pub(crate) trait TypedTool: Send + Sync + 'static {
    /// Its arguments. The doc comment of a field is the description that is listed. A field that is
    /// an `Option` may be left out; null is not a value of it.
    type Args: DeserializeOwned + JsonSchema + Send;
    /// Its output. `Value` promises nothing, and then no schema is listed.
    type Out: Serialize + JsonSchema;

    /// Its stable name. What stands before the first `::`, `.` or `_` is its family, and its tag.
    const NAME: &'static str;
    /// A short title for people.
    const TITLE: &'static str;
    /// What it does, for people and models.
    const DESCRIPTION: &'static str;
    /// What it does to the world.
    const REACH: Reach;
    /// Whether a repeat with the same key has no further effect. One that writes must say so.
    const IDEMPOTENT: bool = matches!(Self::REACH, Reach::Reads);
    /// Whether a direct call of it is never kept as a run.
    const UNRECORDED: bool = false;

    /// What the schema cannot check, and whether it serves this caller, before policy: no one is
    /// asked to approve a call that cannot run.
    fn check(&self, _caller: &Caller, _args: &Self::Args) -> Result<(), ToolError> {
        Ok(())
    }

    /// What a call with these arguments does to the world, and whether it may be repeated under its
    /// key.
    fn reach(&self, _args: &Self::Args) -> (Reach, bool) {
        (Self::REACH, Self::IDEMPOTENT)
    }

    /// Where its output is, if it put that into a blob instead of holding it.
    fn stored(_output: &Self::Out) -> Option<BlobRef> {
        None
    }

    /// Does it for this caller.
    fn call(
        &self,
        caller: &Caller,
        args: Self::Args,
        call: &Call,
    ) -> impl Future<Output = Result<Self::Out, ToolError>> + Send;
}

/// A typed tool in the shape that the catalog takes.
pub(crate) fn typed<T: TypedTool>(tool: T) -> Arc<dyn Tool> {
    let family = T::NAME.split([':', '.', '_']).next().unwrap_or_default();
    let output = plain_schema::<T::Out>(SchemaSettings::draft2020_12().for_serialize());
    let promises = output.as_object().is_some_and(|schema| !schema.is_empty());
    let spec = ToolSpec {
        name: T::NAME.into(),
        title: T::TITLE.to_owned(),
        description: T::DESCRIPTION.to_owned(),
        input_schema: Arc::new(plain_schema::<T::Args>(SchemaSettings::draft2020_12())),
        output_schema: promises.then(|| Arc::new(output)),
        reach: T::REACH,
        idempotent: T::IDEMPOTENT,
        tags: vec![family.to_owned()],
        pace: Pace::Quick,
        yields: OutputKind::Value,
        unrecorded: T::UNRECORDED,
        listed: None,
    };
    Arc::new(Typed { tool, spec: Arc::new(spec) })
}

struct Typed<T> {
    tool: T,
    spec: Arc<ToolSpec>,
}

impl<T: TypedTool> Tool for Typed<T> {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn check(&self, caller: &Caller, arguments: &Value) -> Result<(), ToolError> {
        self.tool.check(caller, &read::<T::Args>(arguments)?)
    }

    fn reach(&self, arguments: &Value) -> (Reach, bool) {
        match read::<T::Args>(arguments) {
            Ok(args) => self.tool.reach(&args),
            Err(_) => (T::REACH, T::IDEMPOTENT),
        }
    }

    fn call<'a>(
        &'a self,
        caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args = read::<T::Args>(&call.arguments)?;
            let output = self.tool.call(caller, args, call).await?;
            if let Some(blob) = T::stored(&output) {
                return Ok(ToolOutput::Blob(blob));
            }
            serde_json::to_value(output).map(ToolOutput::Value).map_err(|error| {
                let message =
                    format!("`{}` was done, but its output is not JSON: {error}", T::NAME);
                ToolError::unknown("OutputValidationError", message)
            })
        })
    }
}

/// The schema of a type as it is listed: in one piece, without references and without what is true
/// of Rust alone.
fn plain_schema<T: JsonSchema>(mut settings: SchemaSettings) -> Value {
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let generator = settings.with_transform(RecursiveTransform(plain)).into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    // The tool has a title and a description of its own.
    schema.remove("title");
    schema.remove("description");
    // Listed by name, in whatever order the keywords above were taken out.
    let mut listed = schema.to_value();
    listed.sort_all_objects();
    listed
}

/// Takes the keywords out of one schema that say nothing, or nothing that the others do not say.
fn plain(schema: &mut Schema) {
    let Some(keywords) = schema.as_object_mut() else { return };
    if keywords.get("additionalProperties") == Some(&Value::Bool(true)) {
        keywords.remove("additionalProperties");
    }
    // A doc comment has lines because the source has.
    if let Some(Value::String(description)) = keywords.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    // The format of a number is the width of its Rust type.
    let is_text = |kind: &Value| kind == "string" || kind[0] == "string";
    if !keywords.get("type").is_some_and(is_text) {
        keywords.remove("format");
    }
    if let Some(Value::Array(values)) = keywords.get("enum") {
        if let [only] = values.as_slice() {
            let only = only.clone();
            keywords.remove("enum");
            keywords.insert("const".to_owned(), only);
        }
        keywords.remove("type");
    }
    let required = keywords.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(Value::Object(properties)) = keywords.get_mut("properties") {
        for (name, property) in properties {
            if !required.iter().any(|needed| needed == name.as_str()) {
                refuse_null(property);
            }
        }
    }
}

/// Makes the schema of a property that may be left out refuse null: one way to say nothing is
/// enough.
fn refuse_null(property: &mut Value) {
    if let Some(kinds) = property.get_mut("type")
        && let Some(others) = kinds.as_array_mut()
    {
        others.retain(|kind| kind != "null");
        if let [only] = others.as_slice() {
            *kinds = only.clone();
        }
    }
    if let Some(Value::Array(values)) = property.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_calls::{answer, call_of};
    use futures::executor::block_on;
    use kernel::tool::call::CallProgress;
    use serde::Deserialize;
    use serde_json::json;
    use std::collections::BTreeMap;

    /// The tool has a description: this one is not listed.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Trip {
        /// How far,
        /// in all
        metres: u32,
        #[serde(default)]
        by: Means,
        back: Option<Means>,
        stops: Vec<Stop>,
        fare: Option<f64>,
    }

    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Means {
        #[default]
        Land,
        Water,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Stop {
        minutes: i64,
        #[serde(flatten)]
        more: BTreeMap<String, Value>,
    }

    #[test]
    fn derived_schemas_contain_no_rust_details() {
        let stops = json!({"type": "array", "items": {"type": "object",
            "properties": {"minutes": {"type": "integer"}}, "required": ["minutes"]}});
        let metres = json!({"type": "integer", "minimum": 0, "description": "How far, in all"});
        let by = json!({"enum": ["land", "water"], "default": "land"});
        let read = json!({"type": "object", "additionalProperties": false,
            "properties": {"metres": metres, "by": by, "back": {"enum": ["land", "water"]},
                "stops": stops, "fare": {"type": "number"}},
            "required": ["metres", "stops"]});
        assert_eq!(plain_schema::<Trip>(SchemaSettings::draft2020_12()), read);
        // An output has all its members, and null in the place of what is missing.
        let written = json!({"type": "object", "additionalProperties": false,
            "properties": {"metres": metres, "by": by, "back": {"enum": ["land", "water", null]},
                "stops": stops, "fare": {"type": ["number", "null"]}},
            "required": ["metres", "by", "back", "stops", "fare"]});
        let settings = SchemaSettings::draft2020_12().for_serialize();
        assert_eq!(plain_schema::<Trip>(settings), written);
    }

    /// Writes, and then has an output that JSON cannot hold.
    struct Broken;

    impl TypedTool for Broken {
        type Args = Stop;
        type Out = BTreeMap<(u8, u8), u8>;
        const NAME: &'static str = "broken::tool";
        const TITLE: &'static str = "Broken";
        const DESCRIPTION: &'static str = "Has an output that JSON cannot hold.";
        const REACH: Reach = Reach::Writes;

        async fn call(
            &self,
            _caller: &Caller,
            _stop: Stop,
            _call: &Call,
        ) -> Result<Self::Out, ToolError> {
            Ok(BTreeMap::from([((1, 2), 3)]))
        }
    }

    #[test]
    fn misfit_arguments_are_not_sent_and_a_lost_output_is_unknown() {
        let told = |arguments: Value| {
            let error = answer(Broken, &call_of("broken::tool", arguments)).unwrap_err();
            (error.how, error.fault.name, error.fault.message)
        };
        let misfit = "the arguments do not fit: missing field `minutes`";
        let refused = (CallProgress::NotSent, "InputValidationError".to_owned(), misfit.to_owned());
        assert_eq!(told(json!({})), refused);
        let (how, name, message) = told(json!({"minutes": 1}));
        assert_eq!((how, name), (CallProgress::Unknown, "OutputValidationError".to_owned()));
        assert!(message.starts_with("`broken::tool` was done"), "{message}");
        let tool = typed(Broken);
        let caller = Caller::new("default", "local");
        assert_eq!(tool.check(&caller, &json!({})).unwrap_err().fault.message, misfit);
        assert_eq!(tool.reach(&json!({})), (Reach::Writes, false));
        assert_eq!(tool.spec().tags, ["broken"]);
    }

    /// Serves one realm, and says for whom.
    struct Own;

    impl TypedTool for Own {
        type Args = Stop;
        type Out = String;
        const NAME: &'static str = "own::tool";
        const TITLE: &'static str = "Own";
        const DESCRIPTION: &'static str = "Serves one realm.";
        const REACH: Reach = Reach::Reads;

        fn check(&self, caller: &Caller, _stop: &Stop) -> Result<(), ToolError> {
            match caller.realm.as_str() {
                "acme" => Ok(()),
                other => Err(ToolError::not_sent("NotServed", format!("not for `{other}`"))),
            }
        }

        async fn call(&self, caller: &Caller, _: Stop, _: &Call) -> Result<String, ToolError> {
            Ok(caller.subject.to_string())
        }
    }

    #[test]
    fn a_typed_tool_knows_who_calls() {
        let tool = typed(Own);
        let arguments = json!({"minutes": 1});
        let ann = Caller::new("acme", "ann");
        let eve = Caller::new("other", "eve");
        assert_eq!(tool.check(&ann, &arguments), Ok(()));
        let refused = ToolError::not_sent("NotServed", "not for `other`");
        assert_eq!(tool.check(&eve, &arguments), Err(refused));
        let done = block_on(tool.call(&ann, &call_of("own::tool", arguments)));
        assert_eq!(done, Ok(ToolOutput::Value(json!("ann"))));
    }
}
