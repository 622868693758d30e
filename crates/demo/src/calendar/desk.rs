//! Shared state of the calendar tools: the calendars, the wall clock, and the login that may be
//! required first. Files are read on a thread of their own.

use super::book::{Book, Held, unusable};
use super::login::Page;
use super::{DemoParts, seed};
use crate::zone::Zone;
use kernel::tool::call::{Call, InputRequest, InputRequired, ToolError, ToolOutput};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use tokio::sync::oneshot;

/// What a person reads who is to log in.
const WHY: &str = "Connect your calendar: open the page and allow it";

/// What the tools share.
pub(super) struct Desk {
    book: Book,
    parts: DemoParts,
}

impl Desk {
    /// A desk with these calendars on it.
    pub(super) fn new(book: Book, parts: DemoParts) -> Self {
        Self { book, parts }
    }

    /// The zone in which times are shown.
    pub(super) fn zone(&self) -> &Zone {
        &self.parts.zone
    }

    /// Fills a folder without calendars.
    pub(super) fn seed(&self) -> io::Result<()> {
        let now = self.zone().at(self.parts.clock.now());
        let now = now.ok_or_else(|| io::Error::other("the clock shows a time beyond all years"))?;
        seed::sow(&self.book.hold()?, self.zone(), &now)
    }

    /// All calendars, for us alone until this is dropped.
    pub(super) fn hold(&self) -> Result<Held<'_>, ToolError> {
        self.book.hold().map_err(|why| unusable(&self.book, &why))
    }

    /// Does this on a thread of its own. It continues to its end, also when no one waits any more.
    pub(super) async fn work(
        self: &Arc<Self>,
        act: impl FnOnce(&Self) -> Result<ToolOutput, ToolError> + Send + 'static,
    ) -> Result<ToolOutput, ToolError> {
        let (sender, done) = oneshot::channel();
        let desk = self.clone();
        let working = async move {
            // The caller may be gone.
            let _ = sender.send(act(&desk));
        };
        self.parts.spawn.thread("calendar", Box::pin(working));
        let lost = || ToolError::unknown("CalendarLost", "the work on the calendar broke off");
        done.await.unwrap_or_else(|_| Err(lost()))
    }

    /// What a call wants before a calendar can be used, where a login is needed and not done.
    pub(super) fn login_first(&self, call: &Call) -> Result<Option<ToolOutput>, ToolError> {
        let Some(login) = &self.parts.login else { return Ok(None) };
        let page = login.page().map_err(|why| {
            ToolError::failed("LoginBroken", format!("the calendar's login cannot be used: {why}"))
        })?;
        let Some(Page { id, url }) = page else { return Ok(None) };
        let action = call.given.inputs.get(&id).map(|answer| &answer["action"]);
        if action.is_some_and(|action| action == "decline" || action == "cancel") {
            let message = "the calendar is not connected: the person did not want to log in";
            return Err(ToolError::failed("LoginDeclined", message)
                .hint(format!("open {url} and allow it, then call again")));
        }
        let want = InputRequest::Url { message: WHY.to_owned(), url };
        // Nothing is kept for the call: it is simply made again.
        let wants = InputRequired { inputs: BTreeMap::from([(id, want)]), state: Value::Null };
        Ok(Some(ToolOutput::Wants(Box::new(wants))))
    }
}
