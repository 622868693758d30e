//! One reader for all settings: `waypost.toml` in its layers, and the files in which clients list
//! their servers. A file becomes a tree in which everything knows its place; `serde` reads the tree
//! into types, and what does not fit is a mistake with file, line, column and hint. What the tables
//! mean is said by the types, each beside what it configures.

mod text;
mod tree;
mod reader;
mod located;

pub use located::{
    Each, IfTable, Kept, KnownKeys, Located, Number, checked, checked_list, hosts, limited,
    meaning, named, realm_patterns, refused,
};
pub use reader::{Owner, read};
pub use text::{Named, Text, bare_or_quoted, quoted};
pub use tree::{SettingsTree, Shape, Table};

#[cfg(test)]
mod tests;
