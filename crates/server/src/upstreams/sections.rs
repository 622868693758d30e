//! `[mcp.servers]` and `[providers]` of our settings, layer by layer.

use super::entry::Entry;
use super::keys::Dialect;
use super::listed;
use super::text::Reading;
use super::written::{Shape, Table};
use crate::layer::Layer;
use kernel::plan::mistake::Mistake;
use toml::de::DeTable;

/// What layers say of upstreams, still as it is written.
#[derive(Debug, Default)]
pub(crate) struct Sections {
    servers: Table,
    providers: Table,
}

const SERVERS: &str = "mcp.servers";
const PROVIDERS: &str = "providers";

impl Sections {
    /// What a layer says, and the mistakes in it. Whether an entry is whole is known only with all
    /// layers.
    pub(crate) fn of(layer: &Layer, root: &DeTable<'_>, mistakes: &mut Vec<Mistake>) -> Self {
        let root = Table::of_toml(layer, root);
        let mcp = root.get("mcp").and_then(|(_, mcp)| match &mcp.value {
            Shape::Table(table) => Some(table),
            // Told by whoever reads the other keys of `[mcp]`.
            Shape::Text(_)
            | Shape::Whole(_)
            | Shape::Fraction(_)
            | Shape::Flag(_)
            | Shape::List(_)
            | Shape::Other(_) => None,
        });
        let servers = mcp.and_then(|mcp| mcp.get("servers"));
        let servers = servers.and_then(|(_, value)| Reading::new(mistakes).table(SERVERS, value));
        let providers = root.get(PROVIDERS);
        let providers =
            providers.and_then(|(_, value)| Reading::new(mistakes).table(PROVIDERS, value));
        let sections = Self {
            servers: servers.cloned().unwrap_or_default(),
            providers: providers.cloned().unwrap_or_default(),
        };
        listed::keys(Dialect::Servers, SERVERS, &sections.servers, mistakes);
        listed::keys(Dialect::Providers, PROVIDERS, &sections.providers, mistakes);
        sections
    }

    /// Puts a later layer over these.
    pub(crate) fn put_over(&mut self, above: Sections) {
        self.servers.put_over(above.servers);
        self.providers.put_over(above.providers);
    }

    /// The entries that all layers make together.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, Vec<Mistake>> {
        let mut mistakes = Vec::new();
        let mut all = listed::entries(Dialect::Servers, SERVERS, &self.servers, &mut mistakes);
        all.extend(listed::entries(Dialect::Providers, PROVIDERS, &self.providers, &mut mistakes));
        if mistakes.is_empty() { Ok(all) } else { Err(mistakes) }
    }
}
