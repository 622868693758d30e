//! The built-in tools with their schemas.

use super::head;
use kernel::tool::call::ToolSpec;
use kernel::values::canonical;
use serde_json::{Value, json};
use tools::{BuiltInSettings, HttpSettings};

const ABOUT: &str = "\
The tools that Waypost brings itself. `math::add`, `validate::is_positive` and `test::always_fail`
are tools of the demo: a project has them if it sets `demo = true` under `[tools]`. It has
`http::request` if `allow` under `[tools.http]` names a host. A plan calls a tool with a `tool_call`
step, a person with `waypost tool call`. `reads` changes nothing and may be repeated; `writes` is
never repeated when it is unknown whether it happened, unless it is idempotent. The tools on typed
records are in [record-tools.md](record-tools.md).";

pub(super) fn page() -> String {
    let mut page = head("Built-in tools", ABOUT);
    let http = HttpSettings::new(&["example.com"]).unwrap();
    for tool in tools::builtin(BuiltInSettings { demo: true, http }) {
        page.push_str(&section(tool.spec()));
    }
    page
}

fn section(spec: &ToolSpec) -> String {
    let reach = json!(spec.reach);
    let idempotent = if spec.idempotent { "idempotent" } else { "not idempotent" };
    let mut section = format!(
        "\n## `{}`\n\n{}\n\nReach: {}, {idempotent}.",
        spec.name,
        spec.description,
        reach.as_str().unwrap_or_default(),
    );
    if !spec.tags.is_empty() {
        section.push_str(&format!(" Tags: {}.", spec.tags.join(", ")));
    }
    section.push_str(&format!("\n\nInput:\n\n{}", block(&spec.input_schema)));
    if let Some(schema) = &spec.output_schema {
        section.push_str(&format!("\nOutput:\n\n{}", block(schema)));
    }
    section
}

fn block(schema: &Value) -> String {
    // Cannot fail: the keys of a `Value` are texts.
    let text = serde_json::to_string_pretty(&canonical::sorted(schema)).unwrap_or_default();
    format!("```json\n{text}\n```\n")
}
