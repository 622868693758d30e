//! Ranks tools by how well they match a text.

use kernel::definition::text_search::{SearchItem, find};
use kernel::tool::call::ToolSpec;
use std::sync::Arc;

/// These tools, those that fit a text first, and at most so many.
pub(crate) fn best_first(tools: &[Arc<ToolSpec>], text: &str, most: usize) -> Vec<Arc<ToolSpec>> {
    let items: Vec<SearchItem<'_>> = tools.iter().map(|spec| of_tool(spec)).collect();
    let mut positions = find(text, &items, most);
    let others: Vec<usize> =
        (0..tools.len()).filter(|position| !positions.contains(position)).collect();
    positions.extend(others);
    positions.truncate(most);
    at(tools, positions)
}

pub(crate) fn at<T: Clone>(items: &[T], positions: Vec<usize>) -> Vec<T> {
    positions.into_iter().filter_map(|position| items.get(position).cloned()).collect()
}

/// A tool as the search sees it.
pub(crate) fn of_tool(spec: &ToolSpec) -> SearchItem<'_> {
    SearchItem {
        id: spec.name.as_str(),
        description: &spec.description,
        parameters: Some(&spec.input_schema),
        examples: Vec::new(),
    }
}
