//! Whether the running server has sessions that it cannot read.

use super::Site;
use super::report::Finding;
use crate::remote::client::{Request, read};
use crate::terminal::output::one_line;
use wire::rest::{Page, Session};

/// The check's name.
const NAME: &str = "parked";
/// How many are counted; who has more of them needs no exact number.
const LOOKED_AT: usize = 1_000;

/// What there is to say of parked sessions; nothing where there are none.
pub(super) async fn check(site: &Site<'_>) -> Option<Finding> {
    let client = site.server.client.as_ref()?;
    // Who may not list them is told nothing of them.
    let request = Request::to(&["sessions"]).with("status", Some("parked"));
    let body = client.list(request, LOOKED_AT).await.ok()?;
    let page: Page<Session> = read(&body).ok()?;
    let first = page.items.first()?;
    let reason = first.parked.as_ref().map(|parked| one_line(&parked.reason)).unwrap_or_default();
    let more = if page.next_cursor.is_some() { " or more" } else { "" };
    let what = format!(
        "{}{more} sessions cannot be read and are tried again later; {}: {reason}",
        page.items.len(),
        first.id
    );
    Some(Finding::warn(NAME, what, "`waypost session ls --status parked` lists them"))
}
