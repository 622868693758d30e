//! JSON that need not be right: a tree whose leaves and keys are raw text. It holds what no JSON
//! value can: a key twice, a number beyond all numbers, half of a surrogate pair, no JSON at all.

use serde_json::Value;
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tree {
    /// Raw text.
    Leaf(String),
    /// `[..]`
    List(Vec<Tree>),
    /// `{..}`, each key with its quotes.
    Object(Vec<(String, Tree)>),
}

impl Tree {
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Array(items) => Tree::List(items.iter().map(Tree::of).collect()),
            Value::Object(members) => {
                let member = |(key, value): (&String, &Value)| {
                    (Value::from(key.as_str()).to_string(), Tree::of(value))
                };
                Tree::Object(members.iter().map(member).collect())
            }
            leaf => Tree::Leaf(leaf.to_string()),
        }
    }

    /// How many nodes it has.
    pub fn count(&self) -> usize {
        let below: usize = match self {
            Tree::Leaf(_) => 0,
            Tree::List(items) => items.iter().map(Tree::count).sum(),
            Tree::Object(members) => members.iter().map(|(_, member)| member.count()).sum(),
        };
        below + 1
    }

    /// The node of this number, counted from the root, each before what is below it.
    pub fn nth(&mut self, number: usize) -> Option<&mut Tree> {
        let mut left = number;
        self.walk(&mut left)
    }

    fn walk(&mut self, left: &mut usize) -> Option<&mut Tree> {
        if *left == 0 {
            return Some(self);
        }
        *left -= 1;
        match self {
            Tree::Leaf(_) => None,
            Tree::List(items) => items.iter_mut().find_map(|item| item.walk(left)),
            Tree::Object(members) => members.iter_mut().find_map(|(_, member)| member.walk(left)),
        }
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tree::Leaf(text) => f.write_str(text),
            Tree::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}{item}")?;
                }
                f.write_str("]")
            }
            Tree::Object(members) => {
                f.write_str("{")?;
                for (index, (key, member)) in members.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}{key}:{member}")?;
                }
                f.write_str("}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_round_trips() {
        let value = json!({"a\"": [1, {"b": null}, "é\n"], "c": {}});
        let tree = Tree::of(&value);
        assert_eq!(serde_json::from_str::<Value>(&tree.to_string()).unwrap(), value);
        assert_eq!(tree.count(), 7);
    }

    #[test]
    fn every_node_can_be_changed() {
        let tree = Tree::of(&json!({"a": [1, 2], "b": {"c": 3}}));
        let changed: Vec<String> = (0..tree.count())
            .map(|number| {
                let mut changed = tree.clone();
                *changed.nth(number).unwrap() = Tree::Leaf("-".to_owned());
                changed.to_string()
            })
            .collect();
        let expected = [
            "-",
            r#"{"a":-,"b":{"c":3}}"#,
            r#"{"a":[-,2],"b":{"c":3}}"#,
            r#"{"a":[1,-],"b":{"c":3}}"#,
            r#"{"a":[1,2],"b":-}"#,
            r#"{"a":[1,2],"b":{"c":-}}"#,
        ];
        assert_eq!(changed, expected);
        assert_eq!(tree.clone().nth(6), None);
    }
}
