//! `waypost pipeline ls`: the server's pipelines, each with its route and what it knows.

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::remote::client::{Request, read};
use crate::terminal::output::Table;
use serde::Deserialize;
use serde_json::Value;
use wire::rest::Page;

/// What a list shows of a pipeline.
#[derive(Debug, Deserialize)]
struct Listed {
    name: String,
    description: String,
    route: String,
    #[serde(default)]
    handlers: Vec<Value>,
    #[serde(default)]
    tools: Vec<String>,
    llm: String,
}

pub(super) async fn run(context: &Context, limit: usize) -> Result<Exit, Failure> {
    let body = context.client().await?.list(Request::to(&["pipelines"]), limit).await?;
    if context.output.is_json() {
        context.output.document(&body)?;
        return Ok(Exit::Ok);
    }
    let page: Page<Listed> = read(&body)?;
    let mut table = Table::new(&["pipeline", "route", "handlers", "tools", "model", "description"]);
    for pipeline in page.items {
        table.row(vec![
            pipeline.name,
            pipeline.route,
            pipeline.handlers.len().to_string(),
            pipeline.tools.join(","),
            pipeline.llm,
            pipeline.description,
        ]);
    }
    context.output.text(&table.text())?;
    Ok(Exit::Ok)
}
