//! A JSON Schema as a graph: which schemas are applied to the same value, which to its members and
//! items, and what each costs. References are followed once, so that the graph is as large as what
//! a validator has to build.

use super::index::{Applicator, Index, address, children};
use super::pattern::{PATTERN_BYTES_MAX, backtracks, states};
use super::size::{Size, TEXT_UNIT};
use super::{Misfit, SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SCHEMA_PARTS_MAX, refused};
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap, HashSet};

/// What a metaschema costs for each value: it cannot be read here, and is known.
const METASCHEMA_COST: u64 = 64;
/// What one try costs of a pattern that backtracks, and what every 16 bytes cost on top. An engine
/// must give up so early that this holds.
const BACKTRACKING: Text = Text { each: 10_000, per_unit: 1_600 };
/// So many states of a pattern take as long to build as one schema.
const STATES_PER_PART: u64 = 16;
/// So many bytes take as long to read again as one schema takes to build.
const REREAD_PER_PART: usize = 128;
/// In so many resources we look for a reference while one schema is built.
const HOMES_PER_PART: usize = 16;

/// What a schema does with texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Text {
    /// What it costs at least.
    pub(super) each: u64,
    /// What 16 bytes cost, and what is left of them.
    pub(super) per_unit: u64,
}

impl Text {
    pub(super) fn cost(self, text: &str) -> u64 {
        let units = 1 + text.len() as u64 / TEXT_UNIT;
        self.each.saturating_add(self.per_unit.saturating_mul(units))
    }

    /// What it costs at most for each unit of a value's size.
    fn most(self) -> u64 {
        self.each.saturating_add(self.per_unit)
    }

    fn add(&mut self, other: Self) {
        self.each = self.each.saturating_add(other.each);
        self.per_unit = self.per_unit.saturating_add(other.per_unit);
    }
}

/// One schema.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// Schemas for the same value.
    pub(super) beside: Vec<u32>,
    /// Schemas for members, by their names.
    pub(super) members: HashMap<String, u32>,
    /// Schemas for all members.
    pub(super) any_member: Vec<u32>,
    /// Schemas for the members that are not named.
    pub(super) other_member: Vec<u32>,
    /// Schemas for the names of members.
    pub(super) names: Vec<u32>,
    /// Schemas for the first items, one each.
    pub(super) places: Vec<u32>,
    /// Schemas for all items.
    pub(super) items: Vec<u32>,
    /// It looks a second time at what is beside it, to learn what that has looked at.
    pub(super) looks_again: bool,
    /// How many schemas stand in its largest `anyOf` or `oneOf`.
    pub(super) alternatives: usize,
    /// It compares all items of an array.
    pub(super) compares: bool,
    cost: u64,
    object_cost: u64,
    text: Text,
    /// What the names of an object's members cost.
    name: Text,
}

impl Node {
    /// What it costs to hold this value against it, without all other schemas.
    pub(super) fn cost(&self, value: &Value) -> u64 {
        let more = match value {
            Value::Object(members) if self.name != Text::default() => members
                .keys()
                .fold(self.object_cost, |cost, name| cost.saturating_add(self.name.cost(name))),
            Value::Object(_) => self.object_cost,
            Value::String(text) => self.text.cost(text),
            Value::Array(_) if self.compares => 16 * Size::of(value).units(),
            _ => 0,
        };
        self.cost.saturating_add(more)
    }

    /// What it costs at most for each unit of a value's size; comparisons excepted.
    pub(super) fn most(&self) -> u64 {
        let parts = [self.object_cost, self.text.most(), self.name.most()];
        parts.into_iter().fold(self.cost, u64::saturating_add)
    }

    fn put(&mut self, how: Applicator<'_>, schema: u32) {
        match how {
            Applicator::Beside => self.beside.push(schema),
            Applicator::Member(name) => {
                self.members.insert(name.to_owned(), schema);
            }
            Applicator::AnyMember => self.any_member.push(schema),
            Applicator::OtherMember => self.other_member.push(schema),
            Applicator::Name => self.names.push(schema),
            Applicator::Place => self.places.push(schema),
            Applicator::Item => self.items.push(schema),
            Applicator::Aside => {}
        }
    }
}

/// A schema, taken apart. The first node is the whole.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// How much a validator has to build.
    pub(super) parts: usize,
    /// There are patterns that an engine can only match by trying.
    pub(super) backtracks: bool,
}

/// Takes a schema apart.
pub(super) fn read(schema: &Value) -> Result<Graph, Misfit> {
    let size = Size::of(schema);
    if size.is_too_deep() {
        return Err(refused("it nests deeper", SCHEMA_DEPTH_MAX));
    }
    let bytes = usize::try_from(size.bytes + 4 * size.nodes).unwrap_or(usize::MAX);
    if bytes > SCHEMA_BYTES_MAX {
        return Err(refused("it has more bytes", SCHEMA_BYTES_MAX));
    }
    let index = Index::read(schema)?;
    let mut reader = Reader {
        parts: vec![0; index.homes()],
        backtracks: any_backtracks(schema),
        index,
        nodes: Vec::new(),
        known: HashMap::new(),
        targets: HashSet::new(),
        waiting: vec![(schema, 0)],
        moves: BTreeSet::new(),
        left: SCHEMA_PARTS_MAX,
        outside: None,
    };
    while let Some((schema, home)) = reader.waiting.pop() {
        reader.add(schema, home, 0)?;
    }
    let mut left = SCHEMA_PARTS_MAX;
    let mut on_path = vec![false; reader.parts.len()];
    reader.build(0, &mut on_path, &mut left).ok_or_else(too_many)?;
    let parts = SCHEMA_PARTS_MAX - left;
    Ok(Graph { nodes: reader.nodes, parts, backtracks: reader.backtracks })
}

/// A schema that has too many parts.
pub(super) fn too_many() -> Misfit {
    refused("it has more parts, once its references are followed,", SCHEMA_PARTS_MAX)
}

/// Whether any pattern of a schema backtracks, wherever it stands.
fn any_backtracks(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().any(any_backtracks),
        Value::Object(members) => {
            members.iter().any(|(key, member)| match (key.as_str(), member) {
                ("pattern", Value::String(pattern)) => backtracks(pattern),
                ("patternProperties", Value::Object(named)) => named
                    .iter()
                    .any(|(pattern, inner)| backtracks(pattern) || any_backtracks(inner)),
                (_, member) => any_backtracks(member),
            })
        }
        _ => false,
    }
}

struct Reader<'a> {
    index: Index<'a>,
    nodes: Vec<Node>,
    /// The nodes, by the places of their schemas in memory.
    known: HashMap<usize, u32>,
    /// The schemas that something refers to, which are built by themselves.
    targets: HashSet<u32>,
    waiting: Vec<(&'a Value, usize)>,
    /// How much of each resource there is to build.
    parts: Vec<usize>,
    /// Which resource leads to which.
    moves: BTreeSet<(usize, usize)>,
    left: usize,
    backtracks: bool,
    outside: Option<u32>,
}

impl<'a> Reader<'a> {
    fn add(&mut self, schema: &'a Value, around: usize, depth: usize) -> Result<u32, Misfit> {
        if depth > SCHEMA_DEPTH_MAX {
            return Err(refused("it nests deeper", SCHEMA_DEPTH_MAX));
        }
        let home = self.index.home_of(schema, around);
        self.moved(around, home);
        self.count(home, 1)?;
        let (id, is_new) = self.id(schema);
        let mut node = Node { cost: 1, ..Node::default() };
        if let Value::Object(map) = schema {
            let is_reference = self.index.is_draft_7 && map.contains_key("$ref");
            let inner = if is_reference { Vec::new() } else { children(map) };
            // What is built again with everything around it counts again.
            for (how, child) in inner.into_iter().filter(|(how, _)| *how != Applicator::Aside) {
                let child = self.add(child, home, depth + 1)?;
                node.put(how, child);
            }
            for key in ["$ref", "$dynamicRef"] {
                if let Some(reference) = map.get(key).and_then(Value::as_str) {
                    node.beside.extend(self.refer(reference, schema, home)?);
                }
            }
            if is_new {
                self.price(map, home, &mut node)?;
            }
        }
        if is_new {
            self.nodes[id as usize] = node;
        }
        Ok(id)
    }

    /// All that a reference may lead to, which is applied to the same value.
    fn refer(&mut self, reference: &str, schema: &Value, home: usize) -> Result<Vec<u32>, Misfit> {
        let found = self.index.resolve(reference, home)?;
        self.count(home, found.schemas.len() + self.index.homes() / HOMES_PER_PART)?;
        let mut beside = Vec::new();
        let mut seen = HashSet::new();
        for (target, at) in found.schemas {
            // A schema that refers to itself says nothing by that.
            if std::ptr::eq(target, schema) || !seen.insert(address(target)) {
                continue;
            }
            self.moved(home, at);
            let (id, _) = self.id(target);
            beside.push(id);
            if self.targets.insert(id) {
                self.waiting.push((target, at));
            }
        }
        if found.is_outside {
            beside.push(self.outside()?);
        }
        Ok(beside)
    }

    /// The one node for all metaschemas.
    fn outside(&mut self) -> Result<u32, Misfit> {
        if self.index.is_extensible {
            let why = "it refers to another schema while it has a `$dynamicAnchor` or a \
                       `$recursiveAnchor`, by which that leads back";
            return Err(Misfit { pointer: String::new(), message: why.to_owned() });
        }
        if let Some(id) = self.outside {
            return Ok(id);
        }
        let id = self.nodes.len() as u32;
        let cost = METASCHEMA_COST;
        let any_member = vec![id];
        let items = vec![id];
        self.nodes.push(Node { cost, any_member, items, ..Node::default() });
        self.outside = Some(id);
        Ok(id)
    }

    /// The node of a schema, and whether it is a new one.
    fn id(&mut self, schema: &Value) -> (u32, bool) {
        let next = self.nodes.len() as u32;
        let id = *self.known.entry(address(schema)).or_insert(next);
        if id == next {
            self.nodes.push(Node { cost: 0, ..Node::default() });
        }
        // A reference may have come first: it is new until it is read.
        (id, self.nodes[id as usize].cost == 0)
    }

    fn moved(&mut self, from: usize, to: usize) {
        if from != to {
            self.moves.insert((from, to));
        }
    }

    fn count(&mut self, home: usize, parts: usize) -> Result<(), Misfit> {
        self.left = self.left.checked_sub(parts).ok_or_else(too_many)?;
        self.parts[home] += parts;
        Ok(())
    }

    /// A validator builds a resource again for each way that leads there, because a dynamic
    /// reference may mean something else each time. Nothing if that is too much.
    fn build(&self, home: usize, on_path: &mut [bool], left: &mut usize) -> Option<()> {
        *left = left.checked_sub(self.parts[home].max(1))?;
        on_path[home] = true;
        for (_, next) in self.moves.range((home, 0)..(home + 1, 0)) {
            if !on_path[*next] {
                self.build(*next, on_path, left)?;
            }
        }
        on_path[home] = false;
        Some(())
    }

    /// Adds what a schema costs by itself.
    fn price(
        &mut self,
        map: &Map<String, Value>,
        home: usize,
        node: &mut Node,
    ) -> Result<(), Misfit> {
        for (key, value) in map {
            let length = value.as_array().map_or(0, Vec::len);
            match (key.as_str(), value) {
                ("enum" | "const", _) => node.cost += Size::of(value).units(),
                ("required", _) => node.object_cost += length as u64,
                ("properties", Value::Object(named)) => node.object_cost += named.len() as u64,
                ("dependentRequired" | "dependencies", Value::Object(named)) => {
                    let lists = named.values().filter_map(Value::as_array);
                    node.object_cost += lists.map(|list| list.len() as u64).sum::<u64>();
                }
                ("anyOf" | "oneOf", _) => node.alternatives = node.alternatives.max(length),
                ("unevaluatedProperties" | "unevaluatedItems", _) => node.looks_again = true,
                ("uniqueItems", Value::Bool(true)) => node.compares = true,
                ("minLength" | "maxLength", _) => node.text.per_unit += 1,
                ("format" | "contentEncoding" | "contentMediaType", _) => node.text.per_unit += 8,
                ("pattern", Value::String(pattern)) => {
                    let text = self.pattern(pattern, home)?;
                    node.text.add(text);
                }
                ("patternProperties", Value::Object(named)) => {
                    for pattern in named.keys() {
                        let text = self.pattern(pattern, home)?;
                        node.name.add(text);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What a pattern costs.
    fn pattern(&mut self, pattern: &str, home: usize) -> Result<Text, Misfit> {
        if pattern.len() > PATTERN_BYTES_MAX {
            let why = format!("a pattern is longer than {PATTERN_BYTES_MAX} bytes");
            return Err(Misfit { pointer: String::new(), message: why });
        }
        let states = states(pattern);
        let parts = usize::try_from(states / STATES_PER_PART).unwrap_or(usize::MAX);
        // Each `\c` is replaced, and the whole read again.
        let rereads = pattern.matches("\\c").count() * pattern.len() / REREAD_PER_PART;
        self.count(home, parts.saturating_add(rereads))?;
        let linear = Text { each: 4, per_unit: states };
        Ok(if self.backtracks { BACKTRACKING } else { linear })
    }
}
