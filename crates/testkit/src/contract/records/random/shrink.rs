//! Makes a difference between two stores small: fewer operations, and a shorter query in the last.

use super::operations::{Deed, Operation};
use super::{Difference, Runs, Tally};
use query::parser::parse;
use query::tree::{Condition, Query};

/// How many runs may be spent on one difference.
const RUNS_MAX: u64 = 600;

/// The smallest operations that are found, and how the stores differ by them.
pub(super) fn smallest(
    runs: &mut Runs<'_>,
    mut asked: Vec<Operation>,
    mut difference: Difference,
) -> (Vec<Operation>, Difference) {
    asked.truncate(difference.place + 1);
    let mut length = asked.len() / 2;
    while length > 0 {
        let mut start = 0;
        while start + length < asked.len() && runs.count < RUNS_MAX {
            let mut fewer = asked.clone();
            fewer.drain(start..start + length);
            match runs.difference(&fewer, &mut Tally::default()) {
                Some(found) => {
                    fewer.truncate(found.place + 1);
                    (asked, difference) = (fewer, found);
                }
                None => start += length,
            }
        }
        length /= 2;
    }
    while let Some((simpler, found)) = simplified(runs, &asked) {
        (asked, difference) = (simpler, found);
    }
    (asked, difference)
}

/// The operations with a simpler last one, if the stores still differ by it.
fn simplified(runs: &mut Runs<'_>, asked: &[Operation]) -> Option<(Vec<Operation>, Difference)> {
    let (last, before) = asked.split_last()?;
    for deed in simpler_deeds(&last.deed) {
        if runs.count >= RUNS_MAX {
            return None;
        }
        let mut simpler = before.to_vec();
        simpler.push(Operation { deed, ..last.clone() });
        let found = runs.difference(&simpler, &mut Tally::default());
        if let Some(found) = found.filter(|found| found.place == before.len()) {
            return Some((simpler, found));
        }
    }
    None
}

fn simpler_deeds(deed: &Deed) -> Vec<Deed> {
    let with = |changed: &dyn Fn(&mut Deed)| {
        let mut deed = deed.clone();
        changed(&mut deed);
        deed
    };
    let mut simpler = Vec::new();
    if let Some(written) = query_of(deed) {
        for query in simpler_queries(written) {
            let replaced = |deed: &mut Deed| set_query(deed, &query);
            simpler.push(with(&replaced));
        }
    }
    match deed {
        Deed::Find { sort, .. } | Deed::Walk { sort, .. } if !sort.is_empty() => {
            simpler.push(with(&|deed: &mut Deed| match deed {
                Deed::Find { sort, .. } | Deed::Walk { sort, .. } => sort.clear(),
                _ => {}
            }));
        }
        Deed::Count { by, measures, .. } => {
            for place in 0..by.len() {
                simpler.push(with(&|deed: &mut Deed| {
                    if let Deed::Count { by, .. } = deed {
                        by.remove(place);
                    }
                }));
            }
            for place in 0..measures.len() {
                simpler.push(with(&|deed: &mut Deed| {
                    if let Deed::Count { measures, .. } = deed {
                        measures.remove(place);
                    }
                }));
            }
        }
        _ => {}
    }
    simpler
}

fn query_of(deed: &Deed) -> Option<&str> {
    match deed {
        Deed::DeleteMany { query, .. }
        | Deed::Find { query, .. }
        | Deed::Walk { query, .. }
        | Deed::Count { query, .. } => Some(query),
        Deed::Reopen | Deed::Save { .. } | Deed::Delete { .. } | Deed::Get { .. } => None,
    }
}

fn set_query(deed: &mut Deed, new: &str) {
    match deed {
        Deed::DeleteMany { query, .. }
        | Deed::Find { query, .. }
        | Deed::Walk { query, .. }
        | Deed::Count { query, .. } => new.clone_into(query),
        Deed::Reopen | Deed::Save { .. } | Deed::Delete { .. } | Deed::Get { .. } => {}
    }
}

/// The query with one part less, in every way.
fn simpler_queries(written: &str) -> Vec<String> {
    let Ok(query) = parse(written) else {
        return Vec::new();
    };
    let mut simpler = Vec::new();
    if query.fields.is_some() {
        simpler.push(Query { fields: None, ..query.clone() });
    }
    for place in 0..query.expands.len() {
        let mut fewer = query.clone();
        fewer.expands.remove(place);
        simpler.push(fewer);
        if query.expands[place].filter.is_some() {
            let mut open = query.clone();
            open.expands[place].filter = None;
            simpler.push(open);
        }
    }
    if let Some(filter) = &query.filter {
        simpler.push(Query { filter: None, ..query.clone() });
        let filters = simpler_conditions(filter).into_iter();
        simpler.extend(filters.map(|filter| Query { filter: Some(filter), ..query.clone() }));
    }
    simpler.iter().map(Query::to_string).collect()
}

fn simpler_conditions(condition: &Condition) -> Vec<Condition> {
    match condition {
        Condition::All(parts) => fewer_parts(parts, Condition::All),
        Condition::Any(parts) => fewer_parts(parts, Condition::Any),
        Condition::Not(inner) => {
            let inside = simpler_conditions(inner).into_iter();
            let negated = inside.map(|inner| Condition::Not(Box::new(inner)));
            [(**inner).clone()].into_iter().chain(negated).collect()
        }
        Condition::Element(path, inner) => {
            let inside = simpler_conditions(inner).into_iter();
            inside.map(|inner| Condition::Element(path.clone(), Box::new(inner))).collect()
        }
        Condition::OneOf(membership) => (0..membership.operands.len())
            .map(|place| {
                let mut fewer = membership.clone();
                fewer.operands.remove(place);
                Condition::OneOf(fewer)
            })
            .collect(),
        Condition::Compare(_) | Condition::Exists(_) | Condition::Text(_) | Condition::Edge(_) => {
            Vec::new()
        }
    }
}

/// Each part alone, and all with one of them simpler.
fn fewer_parts(parts: &[Condition], join: fn(Vec<Condition>) -> Condition) -> Vec<Condition> {
    let mut simpler = parts.to_vec();
    for (place, part) in parts.iter().enumerate() {
        for inner in simpler_conditions(part) {
            let mut all = parts.to_vec();
            all[place] = inner;
            simpler.push(join(all));
        }
    }
    simpler
}
