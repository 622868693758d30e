//! What callers ask of a store, as plain values: the same operations can be asked of another store,
//! and with some of them left out.

use super::queries;
use super::world::{Caller, World, entity, id, name, realm_of};
use crate::contract::records::scene::NOW;
use crate::sim::rng::Rng;
use futures::executor::block_on;
use kernel::values::ids::CallId;
use query::check::{Scope, check, check_path};
use query::checked::CheckedQuery;
use query::evaluate::group::{Function, Grouping, Measure};
use query::evaluate::order::{SortField, read_sort};
use query::fault::QueryFault;
use query::parser::{parse, parse_path};
use query::records::error::RecordError;
use query::records::names::{RecordName, fresh_id};
use query::records::requests::{
    Access, Count, Counted, Delete, DeleteMany, Find, Found, Get, Page, Save, SaveMode, Saved,
    Write,
};
use query::records::{Records, cursor, domain_of};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A walk that is longer goes in circles.
const PAGES_MAX: usize = 500;

/// What one caller asks about one type, both by their places in the world.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub(super) caller: usize,
    pub(super) record_type: usize,
    pub(super) deed: Deed,
}

#[derive(Debug, Clone)]
pub(super) enum Deed {
    /// The store is closed, and opened again.
    Reopen,
    Save {
        mode: SaveMode,
        entity: Value,
        expected: Option<u64>,
        fresh: u64,
        call: Option<u64>,
    },
    Delete {
        id: String,
        expected: Option<u64>,
        call: Option<u64>,
    },
    DeleteMany {
        query: String,
        expected: Option<u64>,
        is_dry_run: bool,
        call: Option<u64>,
    },
    Get {
        name: String,
    },
    Find {
        query: String,
        sort: String,
        skip: usize,
        limit: usize,
        total: bool,
    },
    /// All pages, each by the cursor of the one before.
    Walk {
        query: String,
        sort: String,
        limit: usize,
    },
    Count {
        query: String,
        by: Vec<String>,
        measures: Vec<(Function, Option<String>)>,
    },
}

/// What a store says.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    /// Nothing was asked: the caller may not ask that.
    NotAsked(QueryFault),
    Saved(Result<Saved, RecordError>),
    Deleted(Result<u64, RecordError>),
    Record(Result<Option<Value>, RecordError>),
    Pages(Vec<Found>, Option<RecordError>),
    Counted(Result<Counted, RecordError>),
}

/// The operations of a seed: first enough saves that there is something to ask about.
pub(super) fn operations(rng: &mut Rng, world: &World, count: usize) -> Vec<Operation> {
    (0..count as u64)
        .map(|number| {
            let caller = if rng.chance(45) { 0 } else { rng.below(4) as usize };
            let record_type = rng.below(world.types.all().len() as u64) as usize;
            let is_first = number < count as u64 / 4;
            let share = if is_first { rng.below(50) } else { rng.below(100) };
            let deed = deed(rng, world, record_type, number, share);
            Operation { caller, record_type, deed }
        })
        .collect()
}

fn deed(rng: &mut Rng, world: &World, record_type: usize, number: u64, share: u64) -> Deed {
    let types = &world.types;
    let record_type = world.record_type(record_type);
    let spots = queries::spots(record_type);
    let call = rng.chance(20).then(|| rng.below(12));
    let version = |rng: &mut Rng| rng.chance(10).then(|| rng.below(4));
    match share {
        0..48 => {
            let mode = [SaveMode::Put, SaveMode::Put, SaveMode::Merge, SaveMode::Insert];
            Deed::Save {
                mode: mode[rng.below(4) as usize],
                entity: entity(rng, record_type),
                expected: version(rng),
                fresh: number,
                call,
            }
        }
        48..50 => Deed::Reopen,
        50..56 => Deed::Delete { id: id(rng), expected: version(rng), call },
        56..61 => Deed::DeleteMany {
            query: queries::filter(rng, record_type),
            expected: rng.chance(20).then(|| rng.below(4)),
            is_dry_run: rng.chance(30),
            call,
        },
        61..66 => Deed::Get { name: if rng.chance(50) { id(rng) } else { name(rng).to_owned() } },
        66..78 => Deed::Find {
            query: queries::query(rng, types, record_type),
            sort: queries::sort(rng, &spots),
            skip: rng.below(5) as usize,
            limit: rng.below(9) as usize + 1,
            total: rng.chance(50),
        },
        78..89 => Deed::Walk {
            query: queries::query(rng, types, record_type),
            sort: queries::sort(rng, &spots),
            limit: rng.below(5) as usize + 1,
        },
        _ => Deed::Count {
            query: queries::filter(rng, record_type),
            by: (0..rng.below(3)).map(|_| queries::field(rng, &spots)).collect(),
            measures: (0..rng.below(4)).map(|_| measure(rng, &spots)).collect(),
        },
    }
}

fn measure(rng: &mut Rng, spots: &[queries::Spot]) -> (Function, Option<String>) {
    use Function::{Avg, Max, Min, Sum};
    match rng.below(6) {
        0 => (Function::Count, None),
        1 => (Function::Count, Some(queries::field(rng, spots))),
        other => {
            let function = [Sum, Avg, Min, Max][other as usize - 2];
            (function, Some(queries::field(rng, spots)))
        }
    }
}

/// Asks a store. `run` makes the realms those of one run.
pub(super) fn ask(store: &dyn Records, world: &World, operation: &Operation, run: &str) -> Said {
    let asking = Asking {
        store,
        world,
        caller: &world.callers[operation.caller],
        place: operation.record_type,
        run,
    };
    asking.said(&operation.deed).unwrap_or_else(Said::NotAsked)
}

struct Asking<'a> {
    store: &'a dyn Records,
    world: &'a World,
    caller: &'a Caller,
    /// Of the type.
    place: usize,
    run: &'a str,
}

impl Asking<'_> {
    fn said(&self, deed: &Deed) -> Result<Said, QueryFault> {
        let record_type = self.world.record_type(self.place).full_name();
        Ok(match deed {
            Deed::Reopen => Said::Deleted(Ok(0)),
            Deed::Save { mode, entity, expected, fresh, call } => {
                let save = Save {
                    record_type,
                    mode: *mode,
                    entity: entity.clone(),
                    expected: *expected,
                    fresh_id: fresh_id(NOW, *fresh),
                };
                Said::Saved(block_on(self.store.save(self.access(), save, self.write(*call))))
            }
            Deed::Delete { id, expected, call } => {
                let delete = Delete { record_type, id: id.clone(), expected: *expected };
                let deleted = block_on(self.store.delete(self.access(), delete, self.write(*call)));
                Said::Deleted(deleted.map(|()| 1))
            }
            Deed::DeleteMany { query, expected, is_dry_run, call } => {
                let filter = self.checked(query)?.filter;
                let (expected, is_dry_run) = (*expected, *is_dry_run);
                let delete = DeleteMany { record_type, filter, expected, is_dry_run };
                let write = self.write(*call);
                Said::Deleted(block_on(self.store.delete_many(self.access(), delete, write)))
            }
            Deed::Get { name } => {
                let domain = domain_of(&self.caller.author, &self.access().realm);
                let get = Get { record_type, name: RecordName::read(name, &domain) };
                Said::Record(block_on(self.store.get(self.access(), get)))
            }
            Deed::Find { query, sort, skip, limit, total } => {
                let page = Page { after: None, skip: *skip, limit: *limit };
                match self.page(query, sort, page, *total)? {
                    Ok(found) => Said::Pages(vec![found], None),
                    Err(error) => Said::Pages(Vec::new(), Some(error)),
                }
            }
            Deed::Walk { query, sort, limit } => self.walked(query, sort, *limit)?,
            Deed::Count { query, by, measures } => {
                let filter = self.checked(query)?.filter;
                let grouping = Some(self.grouping(by, measures)?);
                let count = Count { record_type, filter, grouping };
                Said::Counted(block_on(self.store.count(self.access(), count)))
            }
        })
    }

    fn page(
        &self,
        query: &str,
        sort: &str,
        page: Page,
        total: bool,
    ) -> Result<Result<Found, RecordError>, QueryFault> {
        let find = Find {
            record_type: self.world.record_type(self.place).full_name(),
            query: self.checked(query)?,
            sort: self.sort(sort)?,
            page,
            total,
        };
        Ok(block_on(self.store.find(self.access(), find)))
    }

    fn walked(&self, query: &str, sort: &str, limit: usize) -> Result<Said, QueryFault> {
        let asked = [query, sort];
        let fields = self.sort(sort)?;
        let mut pages: Vec<Found> = Vec::new();
        let mut after = None;
        while pages.len() < PAGES_MAX {
            let found = match self.page(query, sort, Page { after, skip: 0, limit }, true)? {
                Ok(found) => found,
                Err(error) => return Ok(Said::Pages(pages, Some(error))),
            };
            let next = found.next.clone();
            pages.push(found);
            let Some(next) = next else {
                assert_is_whole(&pages);
                return Ok(Said::Pages(pages, None));
            };
            let cursor = cursor::write(&asked, &next);
            after = match cursor::read(&asked, &fields, &cursor) {
                Ok(read) => Some(read),
                Err(error) => return Ok(Said::Pages(pages, Some(error))),
            };
        }
        panic!("the walk through `{query}` by `{sort}` has no end");
    }

    fn grouping(
        &self,
        by: &[String],
        measures: &[(Function, Option<String>)],
    ) -> Result<Grouping, QueryFault> {
        let none = BTreeMap::new();
        let path =
            |name: &str| parse_path(name).and_then(|path| check_path(&path, self.scope(&none)));
        let mut grouping = Grouping { by: Vec::new(), measures: Vec::new() };
        for name in by {
            grouping.by.push((name.clone(), path(name)?));
        }
        for (number, (function, name)) in measures.iter().enumerate() {
            grouping.measures.push(Measure {
                name: format!("{number} {function:?}"),
                function: *function,
                path: name.as_deref().map(path).transpose()?,
            });
        }
        Ok(grouping)
    }

    fn checked(&self, query: &str) -> Result<CheckedQuery, QueryFault> {
        let none = BTreeMap::new();
        parse(query).and_then(|query| check(&query, self.scope(&none)))
    }

    fn sort(&self, sort: &str) -> Result<Vec<SortField>, QueryFault> {
        let none = BTreeMap::new();
        let mut fields = Vec::new();
        for field in read_sort(sort)? {
            let path = check_path(&field.path, self.scope(&none))?;
            fields.push(SortField { path, descends: field.descends });
        }
        Ok(fields)
    }

    fn scope<'s>(&'s self, variables: &'s BTreeMap<String, Value>) -> Scope<'s> {
        Scope {
            types: &self.world.types,
            root: self.world.record_type(self.place),
            variables,
            hidden: self.caller.scope.hidden(),
        }
    }

    fn access(&self) -> Access {
        Access {
            realm: realm_of(self.caller, self.run),
            types: self.world.types.clone(),
            scope: Arc::new(self.caller.scope.clone()),
        }
    }

    fn write(&self, call: Option<u64>) -> Write {
        let call = call.map(|call| CallId::of(&[call.to_string().as_bytes()]));
        Write { author: self.caller.author.clone(), at: NOW, call, asked: None }
    }
}

/// No row is there twice, as far as ids are shown, and none of those that were counted is missing.
fn assert_is_whole(pages: &[Found]) {
    let rows: Vec<&Value> = pages.iter().flat_map(|page| &page.rows).collect();
    let ids: Vec<&str> = rows.iter().filter_map(|row| row["id"].as_str()).collect();
    let different: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(different.len(), ids.len(), "a row is there twice: {rows:?}");
    for page in pages {
        assert_eq!(page.total, Some(rows.len() as u64), "rows are missing: {rows:?}");
    }
}
