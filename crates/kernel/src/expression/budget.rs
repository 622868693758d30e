//! How much the pointers and the condition of one decision may look at and copy. The work of a
//! query grows with the data, so every node that is visited, compared or copied is charged before
//! it is touched.

use serde_json::Value;
use std::cell::Cell;

/// So many bytes of a text are charged as one node.
const TEXT_BYTES: usize = 64;
/// A map with one field has room for several.
const MAP_NODES: usize = 12;
/// How deep a value that a pointer copies may nest. JSON that nests deeper cannot be read again,
/// and cloning or dropping it recurses.
const DEPTH_MAX: usize = 128;

/// Remaining budget of nodes.
#[derive(Debug)]
pub struct Budget {
    max: usize,
    left: Cell<usize>,
}

impl Budget {
    /// A budget of so many nodes.
    pub fn new(max: usize) -> Self {
        Self { max, left: Cell::new(max) }
    }

    /// Takes so many nodes. The error says that there are not enough left.
    pub(crate) fn charge(&self, nodes: usize) -> Result<(), String> {
        match self.left.get().checked_sub(nodes) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                self.left.set(0);
                Err(format!("it looks at more than {} nodes", self.max))
            }
        }
    }

    /// Takes one node for a text of so many bytes, and more for a long one.
    pub(crate) fn charge_text(&self, bytes: usize) -> Result<(), String> {
        self.charge(1 + bytes / TEXT_BYTES)
    }

    /// Takes as many nodes as a copy of this value has.
    pub(crate) fn charge_copy(&self, value: &Value) -> Result<(), String> {
        let mut open = vec![(value, 1)];
        while let Some((value, depth)) = open.pop() {
            if depth > DEPTH_MAX {
                return Err(format!("what it selects nests deeper than {DEPTH_MAX} levels"));
            }
            match value {
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
                Value::String(text) => self.charge(text.len() / TEXT_BYTES)?,
                Value::Array(items) => {
                    self.charge(items.len())?;
                    open.extend(items.iter().map(|item| (item, depth + 1)));
                }
                Value::Object(fields) => {
                    self.charge(if fields.is_empty() { 0 } else { MAP_NODES })?;
                    for (key, field) in fields {
                        self.charge_text(key.len())?;
                        open.push((field, depth + 1));
                    }
                }
            }
        }
        Ok(())
    }
}
