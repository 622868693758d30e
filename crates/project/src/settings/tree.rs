//! A settings file as a tree in which every key and value has its position: one tree for TOML and
//! JSON, so that a mistake is reported with file and line in either format.

use super::text::Text;
use crate::layer::{Layer, Location, Locator};
use kernel::definition::plan::mistake::Mistake;
use kernel::definition::plan::source::{Key, Node, NodeKind};
use kernel::limits::Limits;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and where it stands.
#[derive(Clone, PartialEq, Eq)]
pub struct SettingsTree {
    pub place: Location,
    pub value: Shape,
}

/// Without the value: it may be a secret.
impl fmt::Debug for SettingsTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)
    }
}

/// What a value is.
#[derive(Clone, PartialEq, Eq)]
pub enum Shape {
    Text(String),
    Whole(u64),
    /// A number with a fraction, as it is written.
    Fraction(String),
    Flag(bool),
    List(Vec<SettingsTree>),
    Table(Table),
    /// Something that no setting here is, in words.
    Other(&'static str),
}

/// Keys and values, in the order of their file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table(pub Vec<(Text, SettingsTree)>);

impl Table {
    fn of_toml(locator: &Locator<'_>, table: &DeTable<'_>) -> Self {
        let mut entries = Vec::new();
        for (key, value) in table {
            let text: &str = key.get_ref();
            let key = Text { text: text.to_owned(), place: locator.of(Some(&key.span())) };
            entries.push((key, SettingsTree::of_value(locator, value)));
        }
        entries.sort_by_key(|(key, _)| (key.place.line, key.place.column));
        Self(entries)
    }

    /// Puts a table over this one, key by key.
    fn put_over(&mut self, above: Table) {
        let known = self.0.iter().enumerate().map(|(index, (key, _))| (key.text.clone(), index));
        let known: BTreeMap<String, usize> = known.collect();
        for (key, value) in above.0 {
            match known.get(&key.text) {
                Some(index) => {
                    let (old_key, old) = &mut self.0[*index];
                    *old_key = key;
                    old.put_over(value);
                }
                None => self.0.push((key, value)),
            }
        }
    }
}

impl SettingsTree {
    /// A table that says nothing.
    pub fn empty() -> Self {
        Self { place: Location::whole(""), value: Shape::Table(Table::default()) }
    }

    /// What a layer says.
    pub fn of_toml(layer: &Layer) -> Result<Self, Mistake> {
        let locator = layer.locator();
        let table = DeTable::parse(&layer.text).map_err(|error| {
            locator.of(error.span().as_ref()).mistake(Mistake::error(error.message().to_owned()))
        })?;
        let value = Shape::Table(Table::of_toml(&locator, table.get_ref()));
        Ok(Self { place: locator.of(None), value })
    }

    fn of_value(locator: &Locator<'_>, value: &Spanned<DeValue<'_>>) -> Self {
        let place = locator.of(Some(&value.span()));
        let value = match value.get_ref() {
            DeValue::String(text) => Shape::Text(text.to_string()),
            DeValue::Integer(number) => {
                match u64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => Shape::Whole(number),
                    Err(_) => Shape::Other("a number below 0 or far too large"),
                }
            }
            DeValue::Float(number) => Shape::Fraction(number.as_str().to_owned()),
            DeValue::Boolean(flag) => Shape::Flag(*flag),
            DeValue::Datetime(_) => Shape::Other("a date"),
            DeValue::Array(items) => {
                Shape::List(items.iter().map(|item| Self::of_value(locator, item)).collect())
            }
            DeValue::Table(table) => Shape::Table(Table::of_toml(locator, table)),
        };
        Self { place, value }
    }

    /// Puts a later value over this one: a table goes into the table below it, anything else, a
    /// list too, takes the place of what is there.
    pub fn put_over(&mut self, above: SettingsTree) {
        let SettingsTree { place, value } = above;
        match (value, &mut self.value) {
            (Shape::Table(new), Shape::Table(old)) => old.put_over(new),
            (value, _) => *self = SettingsTree { place, value },
        }
    }

    /// What stands below these keys.
    pub fn at(&self, path: &[&str]) -> Option<&SettingsTree> {
        let Some((first, rest)) = path.split_first() else { return Some(self) };
        let Shape::Table(table) = &self.value else { return None };
        let (_, value) = table.0.iter().find(|(key, _)| key.text == *first)?;
        value.at(rest)
    }

    /// The names in a table; none in anything else.
    pub fn names(&self) -> Vec<&str> {
        match &self.value {
            Shape::Table(table) => table.0.iter().map(|(key, _)| key.text.as_str()).collect(),
            _ => Vec::new(),
        }
    }

    /// What a flag says.
    pub fn flag(&self) -> Option<bool> {
        match &self.value {
            Shape::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    /// What a JSON text holds. Comments and commas before a bracket are read past: editors write
    /// them into files of this kind.
    pub fn of_json(file: &str, text: &str) -> Result<Self, Mistake> {
        let file: Arc<str> = file.into();
        let plain = plain_json(text);
        let value: serde_json::Value = serde_json::from_str(&plain).map_err(|error| {
            let told = error.to_string();
            let why = told.rsplit_once(" at line ").map_or(told.as_str(), |(why, _)| why);
            let line = number(error.line());
            let column = number(error.column()).max(1);
            Location { file: file.clone(), line, column }
                .mistake(Mistake::error(format!("this is no JSON: {why}")))
        })?;
        let limits = Limits { plan_bytes_max: usize::MAX, ..Limits::default() };
        // Read a second time for the places; what only JSON can say is taken without them.
        let node = Node::parse(&plain, &limits).unwrap_or_else(|_| Node::from_value(&value));
        Ok(Self::of_node(&file, &node))
    }

    fn of_node(file: &Arc<str>, node: &Node) -> Self {
        let place = Location { file: file.clone(), line: node.line, column: node.column };
        let value = match &node.kind {
            NodeKind::Null => Shape::Other("nothing"),
            NodeKind::Bool(flag) => Shape::Flag(*flag),
            NodeKind::Number(number) => match number.as_u64() {
                Some(number) => Shape::Whole(number),
                None if number.as_f64().is_some_and(|number| number >= 0.0) => {
                    Shape::Fraction(number.to_string())
                }
                None => Shape::Other("a number below 0"),
            },
            NodeKind::Text(text) => Shape::Text(text.clone()),
            NodeKind::List(items) => {
                Shape::List(items.iter().map(|item| Self::of_node(file, item)).collect())
            }
            NodeKind::Map(entries) => {
                let entry = |(key, node): &(Key, Node)| {
                    let place = Location { file: file.clone(), line: key.line, column: key.column };
                    (Text { text: key.text.clone(), place }, Self::of_node(file, node))
                };
                Shape::Table(Table(entries.iter().map(entry).collect()))
            }
        };
        Self { place, value }
    }

    /// The same as a tree that readers of plans take. Files are left out: a tree has one.
    pub fn node(&self) -> Node {
        let kind = match &self.value {
            Shape::Text(text) => NodeKind::Text(text.clone()),
            Shape::Whole(number) => NodeKind::Number((*number).into()),
            Shape::Fraction(number) => {
                let number = number.parse().ok().and_then(serde_json::Number::from_f64);
                number.map_or(NodeKind::Null, NodeKind::Number)
            }
            Shape::Flag(flag) => NodeKind::Bool(*flag),
            Shape::List(items) => NodeKind::List(items.iter().map(Self::node).collect()),
            Shape::Table(table) => {
                let entry = |(key, value): &(Text, SettingsTree)| {
                    let Location { line, column, .. } = key.place;
                    (Key { text: key.text.clone(), line, column }, value.node())
                };
                NodeKind::Map(table.0.iter().map(entry).collect())
            }
            Shape::Other(_) => NodeKind::Null,
        };
        Node { line: self.place.line, column: self.place.column, kind }
    }

    /// What it is, in words.
    pub fn what(&self) -> &'static str {
        match &self.value {
            Shape::Text(_) => "a text",
            Shape::Whole(_) => "a number",
            Shape::Fraction(_) => "a number with a fraction",
            Shape::Flag(_) => "true or false",
            Shape::List(_) => "a list",
            Shape::Table(_) => "a table",
            Shape::Other(what) => what,
        }
    }
}

fn number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

/// The text with blanks in the place of comments and of commas that nothing follows, so that every
/// line and column stays what it was.
fn plain_json(text: &str) -> String {
    let mut letters: Vec<char> = text.strip_prefix('\u{feff}').unwrap_or(text).chars().collect();
    let mut at = 0;
    let mut comma = None;
    while at < letters.len() {
        match (letters[at], letters.get(at + 1).copied()) {
            ('"', _) => {
                at = after_string(&letters, at);
                comma = None;
                continue;
            }
            ('/', Some('/')) => {
                let end = (at..letters.len()).find(|place| letters[*place] == '\n');
                blank(&mut letters, at, end);
            }
            ('/', Some('*')) => {
                let closes = |place: &usize| letters[*place - 1] == '*' && letters[*place] == '/';
                let end = (at + 3..letters.len()).find(closes).map(|last| last + 1);
                blank(&mut letters, at, end);
            }
            (',', _) => comma = Some(at),
            ('}' | ']', _) => {
                if let Some(comma) = comma.take() {
                    letters[comma] = ' ';
                }
            }
            // The reader of places takes no tabs between its words.
            ('\t', _) => letters[at] = ' ',
            (letter, _) if letter.is_whitespace() => {}
            _ => comma = None,
        }
        at += 1;
    }
    letters.into_iter().collect()
}

/// The place after the string that begins here.
fn after_string(letters: &[char], begin: usize) -> usize {
    let mut at = begin + 1;
    while at < letters.len() {
        match letters[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    letters.len()
}

fn blank(letters: &mut [char], begin: usize, end: Option<usize>) {
    let end = end.unwrap_or(letters.len());
    for letter in &mut letters[begin..end] {
        if *letter != '\n' {
            *letter = ' ';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_ignored() {
        let text =
            "{ // why \"x\"\n\t\"a\": \"//no/*comment*/,\", /* 1,\n 2 */\n \"b\": [1, 2, ],\n}";
        let plain = plain_json(text);
        let value: serde_json::Value = serde_json::from_str(&plain).unwrap();
        assert_eq!(value, serde_json::json!({"a": "//no/*comment*/,", "b": [1, 2]}));
        assert_eq!(plain.lines().count(), text.lines().count());
        for broken in ["{\"a\": \"\\", "/*", "/", "{,", "//"] {
            assert_eq!(plain_json(broken).chars().count(), broken.chars().count());
        }
    }

    #[test]
    fn a_value_of_json_knows_its_position() {
        let written =
            SettingsTree::of_json(".mcp.json", "{\n  \"a\": {\n\t\"b\": true}\n}").unwrap();
        assert_eq!(written.at(&["a"]).unwrap().place.to_string(), ".mcp.json:2");
        assert_eq!(written.at(&["a", "b"]).unwrap().place.to_string(), ".mcp.json:3");
        assert!(written.at(&["a", "c"]).is_none() && written.at(&["a", "b", "c"]).is_none());
        let mistake = SettingsTree::of_json(".mcp.json", "{\n  \"a\" 1}").unwrap_err();
        assert!(mistake.to_string().starts_with(".mcp.json:2:"), "{mistake}");
        assert!(mistake.to_string().contains("this is no JSON: expected `:`"), "{mistake}");
    }

    #[test]
    fn a_table_is_merged_over_another_key_by_key() {
        let table =
            |file: &str, text: &str| SettingsTree::of_toml(&Layer::file(file, text)).unwrap();
        let mut merged = SettingsTree::empty();
        merged.put_over(table("below.toml", "[a]\nb = 1\nc = [1]\n"));
        merged.put_over(table("above.toml", "[a]\nc = [2, 3]\n[d]\n"));
        let Shape::Table(root) = &merged.value else { panic!("{}", merged.what()) };
        let keys: Vec<String> = root.0.iter().map(|(key, _)| key.place.to_string()).collect();
        assert_eq!(keys, ["above.toml:1", "above.toml:3"]);
        assert_eq!(merged.at(&["a", "b"]).unwrap().place.to_string(), "below.toml:2");
        let list = &merged.at(&["a", "c"]).unwrap().value;
        assert!(matches!(list, Shape::List(items) if items.len() == 2));
    }
}
