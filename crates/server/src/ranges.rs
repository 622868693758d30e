//! Limits with values that they cannot have, told where these are written.

use crate::layer::Layer;
use kernel::limits::{Limits, OutOfRange};
use kernel::plan::mistake::Mistake;
use std::ops::Range;
use toml::de::DeTable;

/// The mistake that a layer makes with the limit at this path.
pub(crate) fn out_of_range(
    layer: &Layer,
    table: &DeTable<'_>,
    path: &[&str],
    bad: &OutOfRange,
) -> Mistake {
    layer.found(span_of(table, path).as_ref(), mistake(bad))
}

/// Limits that contradict each other once all layers are merged; each is told where the last of
/// the two was set.
pub(crate) fn crossed(layers: &[Layer], limits: &Limits) -> Vec<Mistake> {
    limits.check().iter().map(|bad| set_last(layers, bad)).collect()
}

fn set_last(layers: &[Layer], bad: &OutOfRange) -> Mistake {
    for layer in layers.iter().rev() {
        let Ok(table) = DeTable::parse(&layer.text) else { continue };
        let mut names = std::iter::once(bad.name).chain(bad.bounded_by);
        let span = names.find_map(|name| span_of(table.get_ref(), &["limits", name]));
        if let Some(span) = span {
            return layer.found(Some(&span), mistake(bad));
        }
    }
    // Not reached: the defaults fit each other.
    mistake(bad)
}

fn mistake(bad: &OutOfRange) -> Mistake {
    Mistake::error(bad.to_string()).hint(bad.hint())
}

/// Where the value of this key stands.
fn span_of(table: &DeTable<'_>, path: &[&str]) -> Option<Range<usize>> {
    let (first, rest) = path.split_first()?;
    let (_, value) = table.iter().find(|(key, _)| {
        let name: &str = key.get_ref();
        name == *first
    })?;
    if rest.is_empty() {
        return Some(value.span());
    }
    span_of(value.get_ref().as_table()?, rest)
}
