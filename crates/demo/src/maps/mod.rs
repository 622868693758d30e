//! Maps: two tools over a small gazetteer that is part of the program. No network, no streets.

mod globe;
mod gazetteer;
mod tool;
mod search_places;
mod get_directions;

use kernel::contracts::Tool;
use std::sync::Arc;

/// The family's name.
pub(crate) const FAMILY: &str = "maps";

pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(search_places::tool()), Arc::new(get_directions::tool())]
}
