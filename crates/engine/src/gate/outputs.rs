//! Checks a tool's output against its schema and the size limits.

use super::{CallAllowance, Gate, OutgoingCall};
use crate::catalog::registry::ListedTool;
use kernel::tool::call::{
    CallContext, CallProgress, InputRequest, InputRequired, OutputKind, Reach, ToolError, ToolSpec,
};
use kernel::tool::schema::{PARTS_AT_ONCE_MAX, sentence};
use kernel::values::datum::larger_than;
use kernel::values::fault::Fault;
use kernel::values::ids::ToolName;
use serde_json::{Value, json};

/// In `_meta` of an output: how it breaks the schema that its own tool lists.
const META_MISFIT: &str = "waypost/misfit";

impl Gate {
    /// Required input must be small enough to store, and a form must be one that can be filled in.
    pub(super) fn check_wants(
        &self,
        tool: &ToolName,
        wants: &InputRequired,
    ) -> Result<(), ToolError> {
        let max = self.limits.call_output_bytes_max;
        let bytes = serde_json::to_string(wants).map_or(usize::MAX, |text| text.len());
        let mut parts = 0_usize;
        let misfit = |(key, want): (&String, &InputRequest)| match want {
            InputRequest::Form { schema, .. } => match self.schemas.compile(schema) {
                Err(misfit) => {
                    Some(format!("the schema of `{key}` is wrong: {}", sentence(&[misfit])))
                }
                Ok(more) => {
                    parts = parts.saturating_add(more);
                    let most = PARTS_AT_ONCE_MAX;
                    (parts > most).then(|| format!("its forms have more than {most} parts"))
                }
            },
            InputRequest::Url { .. } | InputRequest::Sample { .. } | InputRequest::Roots => None,
        };
        let misfit = if bytes > max {
            Some(format!("it is larger than {max} bytes"))
        } else {
            wants.inputs.iter().find_map(misfit)
        };
        let Some(misfit) = misfit else { return Ok(()) };
        let message = format!("what `{tool}` wants cannot be asked for: {misfit}");
        Err(ToolError::failed("OutputValidationError", message))
    }

    pub(super) fn check_output(
        &self,
        spec: &ToolSpec,
        call: &OutgoingCall,
        pass: &CallAllowance,
        output: Value,
    ) -> Result<Value, ToolError> {
        let max = pass.output_bytes_max;
        if larger_than(&output, max) && output.to_string().len() > max {
            let misfit = format!("it is larger than {max} bytes");
            return Err(not_as_promised(spec, call.reach, &misfit));
        }
        let promised = match spec.yields {
            OutputKind::Value => Some(&output),
            // An error keeps no promise about its structure.
            OutputKind::Content if output["isError"] == Value::Bool(true) => None,
            OutputKind::Content => Some(&output["structuredContent"]),
        };
        let promise = spec.output_schema.as_ref().zip(promised);
        let checked = promise.map(|(schema, value)| self.schemas.check(schema, value));
        let Some(misfits) = checked.and_then(Result::err) else { return Ok(output) };
        let misfit = sentence(&misfits);
        // Who calls directly can read it all the same, and judge.
        if spec.yields == OutputKind::Content && is_direct(&call.context) {
            return Ok(marked(output, misfit));
        }
        Err(not_as_promised(spec, call.reach, &misfit))
    }
}

/// An output as a value for plans. Content blocks become their structured content, or their text if
/// they contain nothing else.
pub(super) fn value_of(spec: &ToolSpec, mut output: Value) -> Value {
    if spec.yields == OutputKind::Value || output["isError"] == Value::Bool(true) {
        return output;
    }
    if let Some(value) = output.get_mut("structuredContent") {
        return value.take();
    }
    let text = |block: &Value| {
        let is_text = block["type"] == "text";
        block["text"].as_str().filter(|_| is_text).map(str::to_owned)
    };
    let blocks = output["content"].as_array().filter(|blocks| !blocks.is_empty());
    let texts: Option<Vec<String>> = blocks.and_then(|blocks| blocks.iter().map(text).collect());
    texts.map_or(output, |texts| Value::String(texts.join("\n")))
}

/// Whether it is a call of its own, and no step of anything.
fn is_direct(context: &CallContext) -> bool {
    context.session.as_ref().is_none_or(|key| key.space.is_call())
}

/// The same output, with a word about what is not as promised.
fn marked(mut output: Value, misfit: String) -> Value {
    if let Some(output) = output.as_object_mut() {
        let meta = output.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(META_MISFIT.to_owned(), Value::String(misfit));
        }
    }
    output
}

/// A tool's own limit of outputs holds for those in blobs, too.
pub(super) fn narrowed(context: CallContext, listed: &ListedTool) -> CallContext {
    match listed.limits.output_bytes {
        Some(most) => CallContext { blobs: context.blobs.at_most(most.get() as u64), ..context },
        None => context,
    }
}

/// A write whose output is wrong has happened all the same: no one may take it for undone.
pub(super) fn not_as_promised(spec: &ToolSpec, reach: Reach, misfit: &str) -> ToolError {
    let (how, done) = match reach {
        Reach::Reads => (CallProgress::Failed, ""),
        Reach::Writes | Reach::Runs => (CallProgress::Unknown, "the call happened, but "),
    };
    let message = format!("{done}the output of `{}` is not as promised: {misfit}", spec.name);
    ToolError::new(how, Fault::new("OutputValidationError", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(yields: OutputKind) -> ToolSpec {
        ToolSpec { idempotent: true, yields, ..testkit::specs::tool("t") }
    }

    #[test]
    fn a_plan_gets_the_structure_of_a_result_or_its_text() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
        let kept = |output: Value| (output.clone(), output);
        for (output, expected) in [
            (json!({"content": [text("x")], "structuredContent": {"a": 1}}), json!({"a": 1})),
            (json!({"content": [image], "structuredContent": null}), json!(null)),
            (json!({"content": [text("{\"a\": 1}")]}), json!("{\"a\": 1}")),
            (json!({"content": [text("a"), text("b")], "_meta": {}}), json!("a\nb")),
            kept(json!({"content": [text("a"), image]})),
            kept(json!({"content": []})),
            kept(json!({"content": [text("no")], "isError": true})),
        ] {
            assert_eq!(value_of(&spec(OutputKind::Content), output), expected);
        }
        let own = json!({"content": [text("a")], "structuredContent": 1});
        assert_eq!(value_of(&spec(OutputKind::Value), own.clone()), own, "it means what it is");
    }
}
