//! `query_find`: the rows of one page.

use super::arguments::{Direction, PageArg, SortArg, read_page};
use super::asked::{read_field, read_query};
use super::parts::{RecordTools, Target};
use super::refusal::{bad_record, by_store, members, refused};
use crate::typed::TypedTool;
use kernel::tool::call::{Call, Caller, Reach, ToolError};
use kernel::values::fault::Fault;
use query::evaluate::order::{Position, SortField, WrittenSort};
use query::records::cursor;
use query::records::reach::{Reach as RecordReach, RecordAct};
use query::records::requests::{Cut, Find as FindRequest, Found, Page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// How many rows a page has, if the call does not say.
const LIMIT_DEFAULT: u64 = 50;

pub(super) struct Find(pub(super) RecordTools);

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FindArgs {
    /// The type of the records, such as `Order`, or with its namespace, `shop.Order`
    root_type: String,
    /// Which records, such as `status:open && total:>#100`. Default: every record. At most 16 KiB
    query: Option<String>,
    /// `limit` and `skip`, instead of these arguments beside it
    page: Option<PageArg>,
    /// How many rows at most. Default: 50. Maximum: `find_rows_max` of the server, which is 1,000
    /// unless it is set, or `max_find_limit` of the realm; `limited` says where it was cut
    limit: Option<u64>,
    /// How many rows are skipped first. Default: 0. Maximum: `find_skip_max` of the server, which
    /// is 100,000 unless it is set. `cursor` has no maximum
    skip: Option<u64>,
    /// `nextCursor` of the page before, with the same query and sort. Default: the first page
    cursor: Option<String>,
    /// The order: a list of fields, or a text such as `-total,refName`. Default: by id, ascending.
    /// At most 16 fields
    sort: Option<SortArg>,
    /// Whether to count all rows. Without that, `totalCount` is null
    #[serde(default = "is_counted")]
    total: bool,
    /// The realm of the call itself, which is the default. Any other one is refused
    realm: Option<String>,
}

fn is_counted() -> bool {
    true
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FindAnswer {
    /// How many rows were skipped
    offset: u64,
    /// How many rows the page could have
    limit: usize,
    as_of: String,
    /// Of the first field that is sorted by
    sort_direction: Option<Direction>,
    sort_fields: Vec<SortedBy>,
    #[schemars(with = "Vec<Map<String, Value>>")]
    rows: Vec<Value>,
    row_count: usize,
    /// Of all pages
    total_count: Option<u64>,
    /// The query
    filter: Option<String>,
    realm: String,
    /// Always empty
    action_list: Vec<String>,
    /// Leads to the next page, if there is one
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// The limit that made the page shorter than what was asked for
    #[serde(skip_serializing_if = "Option::is_none")]
    limited: Option<Limited>,
}

#[derive(Serialize, JsonSchema)]
struct SortedBy {
    field: String,
    dir: Direction,
}

#[derive(Serialize, JsonSchema)]
struct Limited {
    limit: String,
    reason: String,
}

/// A find that may be run.
struct Prepared {
    reach: RecordReach,
    find: FindRequest,
    sorted_by: Vec<SortedBy>,
    /// As the call gives it, if it does.
    limit: Option<u64>,
    skip: u64,
    question: Question,
}

/// What a cursor belongs to.
struct Question([String; 4]);

impl Find {
    fn prepared(&self, caller: &Caller, args: &FindArgs) -> Result<Prepared, ToolError> {
        let target = Target { root_type: &args.root_type, realm: args.realm.as_deref() };
        let reach = self.0.reach(caller, target, RecordAct::Read)?;
        let query = read_query(&reach, args.query.as_deref())?.checked;
        let written = args.sort.as_ref().map(SortArg::read).transpose()?.unwrap_or_default();
        let sort = read_sort_fields(&reach, &written)?;
        let (limit, skip) = read_page(args.page.as_ref(), args.limit, args.skip)?;
        let question = Question::of(&reach, args.query.as_deref(), &written);
        let after = match &args.cursor {
            Some(cursor) => Some(question.position(&sort, cursor)?),
            None => None,
        };
        let page = Page {
            after,
            skip: read_skip(skip, reach.find_skip_max)?,
            limit: fewer(limit.unwrap_or(LIMIT_DEFAULT), reach.find_rows_max),
        };
        let find = FindRequest {
            record_type: reach.record_type.clone(),
            query,
            sort,
            page,
            total: args.total,
        };
        let sorted_by = written.iter().map(SortedBy::of).collect();
        Ok(Prepared { reach, find, sorted_by, limit, skip, question })
    }
}

impl TypedTool for Find {
    type Args = FindArgs;
    type Out = FindAnswer;
    const NAME: &'static str = "query_find";
    const TITLE: &'static str = "Find records";
    const DESCRIPTION: &'static str = "Finds records of a type by a query, such as \
        `city:Atlanta && opened:>=2024-01-01`, sorted and page by page. `expand(customer)` in the \
        query embeds the record that a field refers to, `fields:[id,total]` chooses fields.";
    const REACH: Reach = Reach::Reads;
    const UNRECORDED: bool = true;

    fn check(&self, caller: &Caller, args: &FindArgs) -> Result<(), ToolError> {
        self.prepared(caller, args).map(drop)
    }

    async fn call(
        &self,
        caller: &Caller,
        args: FindArgs,
        _call: &Call,
    ) -> Result<FindAnswer, ToolError> {
        let Prepared { reach, find, sorted_by, limit, skip, question } =
            self.prepared(caller, &args)?;
        let as_of = self.0.clock.now().rfc3339();
        let realm = reach.access.realm.to_string();
        let page_limit = find.page.limit;
        let found = self.0.records.find(reach.access, find).await;
        let found = found.map_err(|error| by_store(&error))?;
        let limited = Limited::of(limit, reach.find_rows_max, &found);
        Ok(FindAnswer {
            offset: skip,
            limit: page_limit,
            as_of,
            sort_direction: sorted_by.first().map(|first| first.dir),
            sort_fields: sorted_by,
            row_count: found.rows.len(),
            rows: found.rows,
            total_count: found.total,
            filter: args.query,
            realm,
            action_list: Vec::new(),
            next_cursor: found.next.map(|position| question.cursor(&position)),
            limited,
        })
    }
}

impl SortedBy {
    fn of(sort: &WrittenSort) -> Self {
        let dir = if sort.descends { Direction::Desc } else { Direction::Asc };
        Self { field: sort.path.to_string(), dir }
    }
}

impl Limited {
    /// What ended the page comes before what it could have had.
    fn of(asked: Option<u64>, rows_max: usize, found: &Found) -> Option<Self> {
        let (limit, reason) = match found.cut {
            Some(Cut::Bytes) => {
                let reason =
                    "one more row would exceed the bytes of a page; `nextCursor` continues";
                ("find_bytes_max", reason.to_owned())
            }
            Some(Cut::Embedded) => {
                let reason = "one more row would embed too many records; `nextCursor` continues";
                ("expand_records_max", reason.to_owned())
            }
            None => {
                let wanted = asked.unwrap_or(LIMIT_DEFAULT);
                // Who asked for no number learns of it only if there are more rows.
                let concerns = asked.is_some() || found.next.is_some();
                let is_cut = concerns && wanted > rows_max as u64;
                let reason = format!("a page has at most {rows_max} rows, not {wanted}");
                return is_cut.then(|| Self { limit: "find_rows_max".to_owned(), reason });
            }
        };
        Some(Self { limit: limit.to_owned(), reason })
    }
}

impl Question {
    fn of(reach: &RecordReach, query: Option<&str>, sort: &[WrittenSort]) -> Self {
        let signed =
            |sort: &WrittenSort| format!("{}{}", if sort.descends { "-" } else { "+" }, sort.path);
        let sort: Vec<String> = sort.iter().map(signed).collect();
        let query = query.unwrap_or_default().trim();
        let realm = reach.access.realm.to_string();
        Self([realm, reach.record_type.clone(), query.to_owned(), sort.join(",")])
    }

    fn position(&self, sort: &[SortField], cursor: &str) -> Result<Position, ToolError> {
        cursor::read(&self.parts(), sort, cursor).map_err(|error| bad_record(&error))
    }

    fn cursor(&self, position: &Position) -> String {
        cursor::write(&self.parts(), position)
    }

    fn parts(&self) -> [&str; 4] {
        self.0.each_ref().map(String::as_str)
    }
}

fn read_sort_fields(
    reach: &RecordReach,
    written: &[WrittenSort],
) -> Result<Vec<SortField>, ToolError> {
    let read = |sort: &WrittenSort| -> Result<SortField, ToolError> {
        let path = read_field(reach, "sort", &sort.path)?;
        Ok(SortField { path, descends: sort.descends })
    };
    written.iter().map(read).collect()
}

fn read_skip(skip: u64, max: usize) -> Result<usize, ToolError> {
    match usize::try_from(skip) {
        Ok(skip) if skip <= max => Ok(skip),
        Ok(_) | Err(_) => {
            let message = format!("`skip` is {skip}, and at most {max} rows are skipped");
            let fault = Fault::new("InvalidPage", message)
                .hint("narrow the query, or go on with `cursor` and `nextCursor`")
                .detail(members([("max", json!(max))]));
            Err(refused(fault))
        }
    }
}

/// The lesser of a number that is asked for and its maximum.
fn fewer(asked: u64, max: usize) -> usize {
    usize::try_from(asked).map_or(max, |asked| asked.min(max))
}
