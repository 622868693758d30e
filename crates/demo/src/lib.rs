//! What the demo and the examples need, and nothing more: the rule-based model (`rules`), calendars
//! that are kept as JSON files, and maps over a small gazetteer. The tools are not built in:
//! `waypost example calendar-server` serves them over MCP, so that the demo has a real server
//! behind it and needs no other service; `waypost example filesystem-server` does the same for the
//! files of one folder. A shop whose tools go wrong is for one story of `waypost demo` alone.

pub mod rules;
mod zone;
mod keep;
mod card;
mod calendar;
mod maps;
mod shop;
mod files;

use kernel::contracts::{Clock, Entropy, Spawn, Tool};
use std::io;
use std::path::Path;
use std::sync::Arc;

pub use calendar::Login;
pub use files::files;
pub use shop::shop;
pub use zone::Zone;

/// What the demo's tools are made of.
#[derive(Clone)]
pub struct DemoParts {
    /// The time zone in which they tell and understand times.
    pub zone: Zone,
    pub clock: Arc<dyn Clock>,
    /// Threads: files are read and written there.
    pub spawn: Arc<dyn Spawn>,
    /// The login that the calendars want first, where they want one.
    pub login: Option<Arc<Login>>,
}

/// All tools of the demo, over the calendars in this folder. A folder without calendars is given
/// some.
pub fn all(folder: &Path, parts: DemoParts) -> io::Result<Vec<Arc<dyn Tool>>> {
    let mut tools = calendar::all(folder, parts)?;
    tools.extend(maps::all());
    Ok(tools)
}

/// A login that is remembered in this folder.
pub fn login(folder: &Path, entropy: Arc<dyn Entropy>) -> io::Result<Login> {
    Login::open(folder, entropy)
}
