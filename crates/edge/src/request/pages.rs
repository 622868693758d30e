//! Pages of lists that are in memory: sorted by name, with the last name as the cursor.

use super::cursors::Purpose;
use super::params::page;
use super::server_state::ServerState;
use crate::problem::Result;
use axum::Json;
use serde::Deserialize;
use wire::rest::Page;

/// `?limit=&cursor=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PageQuery {
    pub limit: Option<usize>,
    pub cursor: Option<String>,
}

/// One page of what is in memory, in order of name; the cursor is the last name of the page before,
/// sealed.
pub fn paged<T, V>(
    server: &ServerState,
    of: &Purpose,
    mut items: Vec<T>,
    query: PageQuery,
    name: fn(&T) -> &str,
    show: impl Fn(T) -> V,
) -> Result<Json<Page<V>>> {
    let page = page(query.limit, server.cursors.start(of, query.cursor)?, server.limits());
    items.sort_by(|left, right| name(left).cmp(name(right)));
    if let Some(cursor) = &page.cursor {
        items.retain(|item| name(item) > cursor.as_str());
    }
    let more = items.len() > page.limit;
    items.truncate(page.limit);
    let last = items.last().filter(|_| more).map(|item| server.cursors.seal(of, name(item)));
    Ok(Json(Page { items: items.into_iter().map(show).collect(), next_cursor: last }))
}
