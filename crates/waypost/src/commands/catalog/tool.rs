//! `waypost tool`: the catalog as this caller sees it, plans included, and direct calls.

use crate::commands::Most;
use crate::context::{Context, Listing};
use crate::exit::{Exit, Failure, Result};
use crate::outcome;
use crate::remote::client::{Request, read};
use crate::terminal::input;
use crate::terminal::output::Fields;
use crate::terminal::table::Cell;
use clap::Subcommand;
use kernel::values::names::{Alphabet, outward};
use serde_json::{Value, json};
use wire::rest::{CallAnswer, PendingCall, Tool};

const EXAMPLES: &str = "\
Examples:
  waypost tool ls
  waypost tool show math::add
  waypost tool call math::add a=1 b=2
  waypost tool call math::conditional_add a=1 b=2    # a plan is called like a tool
  waypost tool call http::request @request.json";

/// What `waypost tool` takes.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum ToolCommand {
    /// List the tools, and the plans as tools
    Ls(Most),
    /// Show one tool with its schemas and its name in MCP
    Show {
        /// Its name, such as math::add
        name: String,
    },
    /// Call a tool and print its output
    #[command(alias = "run")]
    Call {
        /// Its name, such as math::add
        name: String,
        /// `key=value ..` (JSON where it reads as JSON, else text), a JSON text or @file
        arguments: Vec<String>,
    },
}

/// Runs `waypost tool`.
pub(crate) async fn run(command: ToolCommand, context: &Context) -> Result<Exit> {
    match command {
        ToolCommand::Ls(Most { limit }) => list(context, limit).await,
        ToolCommand::Show { name } => show(context, &name).await,
        ToolCommand::Call { name, arguments } => call(context, &name, &arguments).await,
    }
}

async fn list(context: &Context, limit: usize) -> Result<Exit> {
    let body = context.client().await?.list(Request::to(&["tools"]), limit).await?;
    let heads = ["tool", "kind", "reach", "pace", "description"];
    let none = "no tools match: `waypost mcp ls` shows the servers that tools come from";
    context.table(&body, Listing { noun: "tool", heads: &heads, none }, |tool: Tool| {
        vec![
            tool.name.into(),
            Cell::word(tool.kind),
            Cell::word(tool.reach),
            Cell::word(tool.pace),
            tool.description.into(),
        ]
    })
}

async fn show(context: &Context, name: &str) -> Result<Exit> {
    let body = context.client().await?.get(Request::to(&["tools", name])).await?;
    context.show(&body, |tool: Tool| {
        let mut fields = Fields::default();
        let in_mcp = outward(&tool.name, Alphabet::Mcp);
        fields.add("name", tool.name);
        fields.add("in MCP", in_mcp);
        fields.add("kind", tool.kind);
        fields.add("title", tool.title);
        fields.add("description", tool.description);
        fields.add("reach", tool.reach);
        fields.add("pace", tool.pace);
        fields.add("idempotent", if tool.idempotent { "yes" } else { "no" });
        fields.add("journal", if tool.journal { "yes" } else { "no" });
        fields.add("tags", tool.tags.join(", "));
        fields.add("input", outcome::pretty(&tool.input_schema));
        fields.add("output", tool.output_schema.as_ref().map(outcome::pretty).unwrap_or_default());
        context.output.text(&fields.text())
    })
}

async fn call(context: &Context, name: &str, arguments: &[String]) -> Result<Exit> {
    let body = json!({"arguments": input::words(arguments)?});
    let request = Request::to(&["tools", name, "call"]);
    let client = context.client().await?;
    context.leaves_work("a call that writes");
    let posted = context.progress().during("waiting for the tool", client.post(request, &body));
    let answer = posted.await.map_err(with_wants)?;
    if answer.get("result").is_none() {
        // A person is asked first, or it takes longer than we waited.
        let call: PendingCall = read(&answer)?;
        return outcome::tell(context, &answer, &call.run);
    }
    context.show(&answer, |call: CallAnswer| {
        context.output.text(&outcome::value_text(&plain_value(call.result)))
    })
}

/// A result of MCP as a plan gets it: the value or the text in it, where there is nothing else. Any
/// other output is what it is. `--json` shows all of it.
fn plain_value(mut result: Value) -> Value {
    let Some(blocks) = result["content"].as_array() else { return result };
    let is_block = |block: &Value| block["type"].is_string();
    if !blocks.iter().all(is_block) || result["isError"] == true {
        return result;
    }
    let text = |block: &Value| {
        let is_text = block["type"] == "text";
        block["text"].as_str().filter(|_| is_text).map(str::to_owned)
    };
    let texts: Option<Vec<String>> = blocks.iter().map(text).collect();
    if let Some(value) = result.get_mut("structuredContent") {
        return value.take();
    }
    match texts {
        Some(texts) if !texts.is_empty() => Value::String(texts.join("\n")),
        _ => result,
    }
}

/// Where the tool wants something of its caller first, also what: this command cannot provide it.
fn with_wants(mut failure: Failure) -> Failure {
    if failure.code != "input_wanted" {
        return failure;
    }
    let wants = failure.problem.as_ref().and_then(|problem| problem["wants"].as_object());
    let lines = wants.into_iter().flatten().map(|(key, want)| format!("{key}: {want}"));
    failure.lines = lines.collect();
    failure.hint("call it from an MCP client: `waypost mcp snippet --help`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_mcp_result_is_printed_as_a_plan_gets_it() {
        let text = json!({"type": "text", "text": "4"});
        let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
        let structured = json!({"content": [text], "structuredContent": {"result": 4}});
        assert_eq!(plain_value(structured), json!({"result": 4}));
        assert_eq!(plain_value(json!({"content": [text, text]})), "4\n4");
        for whole in [json!({"content": [text, image]}), json!({"content": "page"}), json!(3)] {
            assert_eq!(plain_value(whole.clone()), whole);
        }
    }
}
