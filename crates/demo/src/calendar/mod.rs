//! Calendars: four tools over a folder of JSON files.

mod event;
mod book;
mod seed;
mod login;
mod desk;
mod arguments;
mod tool;
mod list_calendars;
mod list_events;
mod create_event;
mod update_event;
#[cfg(test)]
mod tests;

use super::DemoParts;
use book::Book;
use desk::Desk;
use kernel::contracts::Tool;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tool::CalendarTool;

pub use login::Login;

pub(crate) const FAMILY: &str = "calendar";

/// The family, over the calendars in this folder.
pub(crate) fn all(folder: &Path, parts: DemoParts) -> io::Result<Vec<Arc<dyn Tool>>> {
    let book = Book::open(folder)?;
    let desk = Arc::new(Desk::new(book, parts));
    desk.seed()?;
    let tools = [
        list_calendars::tool(&desk),
        list_events::tool(&desk),
        create_event::tool(&desk),
        update_event::tool(&desk),
    ];
    Ok(tools.into_iter().map(|tool: CalendarTool| Arc::new(tool) as Arc<dyn Tool>).collect())
}
