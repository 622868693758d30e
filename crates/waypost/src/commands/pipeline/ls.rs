//! `waypost pipeline ls`: lists the server's pipelines, each with its route, the number of its
//! handlers, and its agent's tools and model.

use crate::context::{Context, Listing};
use crate::exit::{Exit, Result};
use crate::remote::client::Request;
use crate::terminal::table::Cell;
use wire::rest::PipelineSummary;

pub(super) async fn run(context: &Context, limit: usize) -> Result<Exit> {
    let body = context.client().await?.list(Request::to(&["pipelines"]), limit).await?;
    let heads = ["pipeline", "route", "handlers", "tools", "model", "description"];
    let none = "there are no pipelines: write one in `pipelines/`";
    let listing = Listing { noun: "pipeline", heads: &heads, none };
    context.table(&body, listing, |pipeline: PipelineSummary| {
        vec![
            pipeline.name.into(),
            pipeline.route.into(),
            Cell::word(pipeline.handlers.len().to_string()),
            pipeline.tools.join(",").into(),
            pipeline.llm.into(),
            Cell::from(pipeline.description),
        ]
    })
}
