//! Entries under their names, in whatever file: a table of tables.

use super::entry::Entry;
use super::keys::{Dialect, Keys};
use super::text::Reading;
use super::written::{Table, Word};
use kernel::plan::mistake::Mistake;

/// What a table holds under each name; `list` is how mistakes name it.
pub(crate) fn keys<'t>(
    dialect: Dialect,
    list: &str,
    table: &'t Table,
    mistakes: &mut Vec<Mistake>,
) -> Vec<(&'t Word, Keys)> {
    let mut all = Vec::new();
    for (word, value) in &table.0 {
        let path = format!("{list}.{}", word.text);
        let path = if dialect.is_ours() { format!("[{path}]") } else { path };
        let inner = Reading::new(mistakes).table(&path, value);
        if let Some(inner) = inner {
            all.push((word, Keys::read(dialect, inner, &path, mistakes)));
        }
    }
    all
}

/// The entries of a table.
pub(crate) fn entries(
    dialect: Dialect,
    list: &str,
    table: &Table,
    mistakes: &mut Vec<Mistake>,
) -> Vec<Entry> {
    let mut all = Vec::new();
    for (word, keys) in keys(dialect, list, table, mistakes) {
        match Entry::new(dialect, (word.text.as_str(), &word.place), keys) {
            Ok(entry) => all.push(entry),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    all
}
