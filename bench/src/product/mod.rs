//! The product: the real server in its own process, loaded and watched from outside.

mod plans;
pub mod receiver;
pub mod server;
pub mod rows;
pub mod throughput;
mod marginal;
pub mod paused;
mod start;

pub use marginal::Marginal;
pub use paused::Paused;
pub use start::Start;
pub use throughput::Throughput;

use crate::Result;
use crate::baseline::Baselines;
use crate::options::{Options, Section};
use crate::report;
use server::Site;
use throughput::Kind;

/// What was measured; `None` where `--only` left a section out.
#[derive(Debug, Default)]
pub struct Product {
    /// Runs of three reading steps.
    pub read_only: Option<Throughput>,
    /// Runs of three writing steps.
    pub writing: Option<Throughput>,
    /// One more step, in short and in long sessions.
    pub marginal: Option<Marginal>,
    /// Memory with many paused sessions.
    pub paused: Option<Paused>,
    /// From spawn to ready.
    pub start: Option<Start>,
}

/// Measures and reports the product's sections that the options ask for.
pub async fn measure(options: &Options, baselines: &Baselines) -> Result<Product> {
    let mut product = Product::default();
    if !options.wants_product() {
        return Ok(product);
    }
    let site = Site::build(options.server.as_deref(), &options.dir)?;
    match sections(options, baselines, &site, &mut product).await {
        Ok(()) => Ok(product),
        Err(error) => Err(site.explain(&*error).into()),
    }
}

async fn sections(
    options: &Options,
    baselines: &Baselines,
    site: &Site,
    product: &mut Product,
) -> Result<()> {
    if options.wants(Section::ReadOnly) {
        product.read_only = Some(runs(options, baselines, site, Kind::ReadOnly).await?);
    }
    if options.wants(Section::Writing) {
        product.writing = Some(runs(options, baselines, site, Kind::Writing).await?);
    }
    if options.wants(Section::Marginal) {
        report::progress("marginal step");
        let marginal = marginal::measure(site).await?;
        report::section("Marginal step", marginal::NOTE, &marginal.table());
        product.marginal = Some(marginal);
    }
    if options.wants(Section::Paused) {
        report::progress(&format!("{} paused sessions", options.paused));
        let paused = paused::measure(site, options.paused).await?;
        report::section("Paused sessions", "", &paused.table());
        product.paused = Some(paused);
    }
    if options.wants(Section::Start) {
        report::progress("start to ready");
        let start = start::measure(site, product.paused.as_ref()).await?;
        report::section("Start to ready", start::NOTE, &start.table());
        product.start = Some(start);
    }
    Ok(())
}

async fn runs(
    options: &Options,
    baselines: &Baselines,
    site: &Site,
    kind: Kind,
) -> Result<Throughput> {
    report::progress(&format!("{} runs", kind.name()));
    let throughput = throughput::measure(site, kind, &options.clients, options.span).await?;
    let title = format!("Product: {} runs", kind.name());
    report::section(&title, kind.note(), &throughput.load_table(baselines));
    let title = format!("Rows of {} runs", kind.name());
    report::section(&title, "", &throughput.row_table());
    Ok(throughput)
}
