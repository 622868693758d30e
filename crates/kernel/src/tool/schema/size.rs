//! Size and depth of a JSON value, for code that walks it.

use serde_json::Value;

/// How deep a value may nest before no one walks through it. JSON texts that we read nest less.
pub(super) const DEPTH_MAX: usize = 256;
/// So many bytes of text take as long as one more value.
pub(super) const TEXT_UNIT: u64 = 16;

/// The size of a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// How many values it consists of, itself included.
    pub(super) nodes: u64,
    /// How long its texts and the names of its members are together.
    pub(super) bytes: u64,
    /// How deep it nests; one more than `DEPTH_MAX` if it is deeper than that.
    pub(super) depth: usize,
}

impl Size {
    pub(super) fn of(value: &Value) -> Self {
        let mut size = Self::default();
        size.add(value, 1);
        size
    }

    /// Whether it nests deeper than anybody should walk.
    pub(super) fn is_too_deep(&self) -> bool {
        self.depth > DEPTH_MAX
    }

    /// How long it takes to look at all of it once.
    pub(super) fn units(&self) -> u64 {
        self.nodes + self.bytes / TEXT_UNIT
    }

    fn add(&mut self, value: &Value, depth: usize) {
        self.nodes += 1;
        self.depth = self.depth.max(depth);
        if depth > DEPTH_MAX {
            return;
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => self.bytes += text.len() as u64,
            Value::Array(items) => items.iter().for_each(|item| self.add(item, depth + 1)),
            Value::Object(members) => members.iter().for_each(|(name, member)| {
                self.bytes += name.len() as u64;
                self.add(member, depth + 1);
            }),
        }
    }
}
