//! How long a validator takes. A schema is refused at once if there are too many ways through it
//! for a single value, or no end of them. How the ways grow with a value's depth is decided when
//! the value is there: a schema of trees is harmless and may still double its work with every
//! level of a value that is made for it.

use super::graph::{Graph, Node, read, too_many};
use super::size::Size;
use super::{Misfit, SCHEMA_DEPTH_MAX, SCHEMA_PARTS_MAX, SCHEMA_WAYS_MAX, refused};
use serde_json::Value;

/// How deep values are read before their depth counts as decisive.
const LEVELS: usize = 64;
/// How many schemas may be applied one inside the other, at all levels of a value together: each
/// takes some of the stack.
const HOPS_MAX: usize = 600;
/// More steps than this are counted, not estimated.
const ESTIMATED_MAX: u64 = 10_000;
/// So many schemas that are applied take as long to search for one as another takes.
const HOPS_PER_STEP: usize = 16;
/// So many steps to look for what tells alternatives apart take as long as one schema to build.
const LOOKS_PER_PART: u64 = 16;

/// What it costs to check values against a schema.
#[derive(Debug)]
pub struct Weight {
    graph: Graph,
    parts: usize,
    /// How many schemas are applied to one value, one inside the other.
    height: usize,
    /// What any place of a value costs at most, where that does not depend on the value's depth.
    steady: Option<u64>,
    compares: bool,
    alternatives: bool,
}

/// Measures a schema; refuses one that is too complex to be used.
pub fn weigh(schema: &Value) -> Result<Weight, Misfit> {
    let graph = read(schema)?;
    let mut census = Census {
        graph: &graph,
        counts: vec![Count::Unknown; graph.nodes.len()],
        order: Vec::new(),
    };
    let mut looks = 0_u64;
    let mut height = 0;
    for id in 0..graph.nodes.len() as u32 {
        let ways = census.ways(id, 0)?;
        let node = &graph.nodes[id as usize];
        height = height.max(ways.height);
        if node.looks_again {
            looks = looks.saturating_add(ways.built.saturating_mul(LOOKS_PER_PART));
        }
        if node.alternatives > 0 {
            looks = looks.saturating_add(ways.built);
        }
    }
    let more = usize::try_from(looks / LOOKS_PER_PART).unwrap_or(usize::MAX);
    let parts = graph.parts.saturating_add(more);
    if parts > SCHEMA_PARTS_MAX {
        return Err(too_many());
    }
    let order = census.order;
    let steady = steady(&graph, &order);
    let compares = graph.nodes.iter().any(|node| node.compares);
    let alternatives = graph.nodes.iter().any(|node| node.alternatives > 0);
    Ok(Weight { graph, parts, height, steady, compares, alternatives })
}

impl Weight {
    /// How many parts there are to build, once references are followed.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Whether there are patterns that can only be matched by trying. An engine must give up on
    /// one after `BACKTRACKS_MAX` tries.
    pub fn backtracks(&self) -> bool {
        self.graph.backtracks
    }

    /// Whether one misfit of a value may be made of many others.
    pub fn has_alternatives(&self) -> bool {
        self.alternatives
    }

    /// Whether a value can be held against the schema in so many steps, and without going too
    /// deep. A step is about what it takes to apply one keyword.
    pub fn is_within(&self, value: &Value, steps_max: u64) -> bool {
        self.estimate(value).is_some_and(|steps| steps <= steps_max)
            || self.trial(value, steps_max).is_some()
    }

    /// How many steps that takes; nothing if it takes more than so many, or goes too deep.
    pub fn steps(&self, value: &Value, steps_max: u64) -> Option<u64> {
        match self.estimate(value) {
            Some(steps) if steps <= steps_max.min(ESTIMATED_MAX) => Some(steps),
            _ => self.trial(value, steps_max),
        }
    }

    /// At most how many steps it takes, by the value's size alone, where that can be said.
    fn estimate(&self, value: &Value) -> Option<u64> {
        let size = Size::of(value);
        let hops = size.depth * self.height;
        let steady = self.steady.filter(|_| hops <= HOPS_MAX && !size.is_too_deep())?;
        let compared = if self.compares { 16 * size.depth } else { 0 };
        let each = steady.saturating_mul((1 + hops / HOPS_PER_STEP + compared) as u64);
        Some(size.units().saturating_mul(each))
    }

    fn trial(&self, value: &Value, steps_max: u64) -> Option<u64> {
        let mut trial = Trial { graph: &self.graph, left: steps_max, hops: 0 };
        trial.hold(0, value)?;
        Some(steps_max - trial.left)
    }
}

/// How a schema is applied to one value.
#[derive(Debug, Clone, Copy, Default)]
struct Ways {
    /// How many schemas are applied, each as often as a way leads to it.
    applied: u64,
    /// How many more are if it looks again at what is beside it.
    again: u64,
    /// How many are built where they are not shared.
    built: u64,
    /// How many are applied one inside the other.
    height: usize,
}

#[derive(Debug, Clone, Copy)]
enum Count {
    Unknown,
    /// It is being counted: who comes here again has gone round in a circle.
    Begun,
    Done(Ways),
}

struct Census<'a> {
    graph: &'a Graph,
    counts: Vec<Count>,
    /// The nodes, each after those beside it.
    order: Vec<u32>,
}

impl Census<'_> {
    fn ways(&mut self, id: u32, depth: usize) -> Result<Ways, Misfit> {
        match self.counts[id as usize] {
            Count::Done(ways) => return Ok(ways),
            Count::Begun => {
                let why = "the schema is too complex: a reference leads back to where it stands \
                           without going into the value";
                return Err(Misfit { pointer: String::new(), message: why.to_owned() });
            }
            Count::Unknown => self.counts[id as usize] = Count::Begun,
        }
        let graph = self.graph;
        let node = &graph.nodes[id as usize];
        let built = 1 + node.members.len() as u64 / 4;
        let mut sum = Ways { applied: 1, again: 0, built, height: 1 };
        if depth > SCHEMA_DEPTH_MAX {
            return Err(refused("its references nest deeper", SCHEMA_DEPTH_MAX));
        }
        for next in &node.beside {
            let ways = self.ways(*next, depth + 1)?;
            sum.applied = sum.applied.saturating_add(ways.applied);
            sum.again = sum.again.saturating_add(ways.applied.saturating_add(ways.again));
            sum.built = sum.built.saturating_add(ways.built);
            sum.height = sum.height.max(ways.height + 1);
        }
        if node.looks_again {
            sum.applied = sum.applied.saturating_add(sum.again);
        }
        if sum.height > SCHEMA_DEPTH_MAX + 1 {
            return Err(refused("its references nest deeper", SCHEMA_DEPTH_MAX));
        }
        if sum.applied > SCHEMA_WAYS_MAX {
            return Err(refused("it has more ways to hold one value against it", SCHEMA_WAYS_MAX));
        }
        self.counts[id as usize] = Count::Done(sum);
        self.order.push(id);
        Ok(sum)
    }
}

/// What each node costs for a value at one depth below the value that it is applied to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Level {
    cost: Vec<u64>,
    again: Vec<u64>,
}

/// What a place of a value costs at most, however deep it is; nothing if it costs more the deeper
/// it is.
fn steady(graph: &Graph, order: &[u32]) -> Option<u64> {
    let top = level(graph, order, None, &[]);
    let mut most = top.cost[0];
    let mut now = top.clone();
    for _ in 0..LEVELS {
        let next = level(graph, order, Some(&now), &top.cost);
        most = most.max(next.cost[0]);
        if next == now {
            return Some(most);
        }
        now = next;
    }
    None
}

/// The next level, by what the schemas inside a node cost one level less deep, and texts at the
/// top; the top itself without these.
fn level(graph: &Graph, order: &[u32], inside: Option<&Level>, texts: &[u64]) -> Level {
    let zeros = vec![0_u64; graph.nodes.len()];
    let mut level = Level { cost: zeros.clone(), again: zeros };
    for id in order.iter().map(|id| *id as usize) {
        let node = &graph.nodes[id];
        let mut cost = match inside {
            None => node.most(),
            Some(inside) => below(node, inside)
                .saturating_add(sum(node.names.iter().map(|name| texts[*name as usize]))),
        };
        let mut again = 0_u64;
        for next in node.beside.iter().map(|next| *next as usize) {
            cost = cost.saturating_add(level.cost[next]);
            again = again.saturating_add(level.cost[next]).saturating_add(level.again[next]);
        }
        if node.looks_again {
            cost = cost.saturating_add(again);
        }
        level.cost[id] = cost;
        level.again[id] = again;
    }
    level
}

/// What a node costs for a member or an item, by what the schemas inside it cost for the same
/// place.
fn below(node: &Node, inside: &Level) -> u64 {
    let cost = |id: &u32| inside.cost[*id as usize];
    let named = node.members.values().map(cost).max().unwrap_or(0);
    let other = sum(node.other_member.iter().map(cost));
    let member = named.max(other).saturating_add(sum(node.any_member.iter().map(cost)));
    let place = node.places.iter().map(cost).max().unwrap_or(0);
    let item = place.saturating_add(sum(node.items.iter().map(cost)));
    member.max(item)
}

fn sum(costs: impl Iterator<Item = u64>) -> u64 {
    costs.fold(0, u64::saturating_add)
}

/// A value is held against a schema as a validator would do it that never stops early.
struct Trial<'a> {
    graph: &'a Graph,
    left: u64,
    hops: usize,
}

impl Trial<'_> {
    /// Nothing if it takes too long or goes too deep.
    fn hold(&mut self, id: u32, value: &Value) -> Option<()> {
        let graph = self.graph;
        let node = &graph.nodes[id as usize];
        let cost = node.cost(value).saturating_add((self.hops / HOPS_PER_STEP) as u64);
        self.left = self.left.checked_sub(cost)?;
        self.hops += 1;
        if self.hops > HOPS_MAX {
            return None;
        }
        self.hold_all(&node.beside, value)?;
        if node.looks_again {
            self.look_again(id, value)?;
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    match node.members.get(name) {
                        Some(own) => self.hold(*own, member)?,
                        None => self.hold_all(&node.other_member, member)?,
                    }
                    self.hold_all(&node.any_member, member)?;
                    if !node.names.is_empty() {
                        self.hold_all(&node.names, &Value::String(name.clone()))?;
                    }
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    if let Some(own) = node.places.get(at) {
                        self.hold(*own, item)?;
                    }
                    self.hold_all(&node.items, item)?;
                }
            }
            _ => {}
        }
        self.hops -= 1;
        Some(())
    }

    fn hold_all(&mut self, ids: &[u32], value: &Value) -> Option<()> {
        ids.iter().try_for_each(|id| self.hold(*id, value))
    }

    fn look_again(&mut self, id: u32, value: &Value) -> Option<()> {
        let graph = self.graph;
        for next in &graph.nodes[id as usize].beside {
            self.hold(*next, value)?;
            self.look_again(*next, value)?;
        }
        Some(())
    }
}
