//! `waypost pipeline ls`: the server's pipelines, each with its route and what it knows.

use crate::context::Context;
use crate::exit::{Exit, Result};
use crate::remote::client::Request;
use wire::rest::PipelineSummary;

pub(super) async fn run(context: &Context, limit: usize) -> Result<Exit> {
    let body = context.client().await?.list(Request::to(&["pipelines"]), limit).await?;
    let heads = ["pipeline", "route", "handlers", "tools", "model", "description"];
    context.table(&body, &heads, None, |pipeline: PipelineSummary| {
        vec![
            pipeline.name,
            pipeline.route,
            pipeline.handlers.len().to_string(),
            pipeline.tools.join(","),
            pipeline.llm,
            pipeline.description,
        ]
    })
}
