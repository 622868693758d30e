//! SQL for what a query asks. It takes every record that the evaluator takes; where it says that it
//! is exact, it takes no other. Names are those of the layout, and every value is bound.

use super::layout::{Column, ColumnKind, Layout, cell_of, microseconds};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use query::checked::{FieldPath, Relation, Test, Wanted, WantedText, folded};
use query::evaluate::order::{Key, Position, SortField};
use query::numbers::Number;
use query::tree::{Case, Piece};
use rusqlite::types::Value as Cell;
use sea_query::{
    Alias, Condition, Expr, ExprTrait, Order, Query, SelectStatement, SqliteQueryBuilder,
};

/// How many conditions stand in a row.
const GROUP_MAX: usize = 32;

/// A condition of records, as far as SQL can tell.
pub(super) struct Matching {
    condition: Option<Condition>,
    pub(super) is_exact: bool,
}

/// A statement and what is bound in it.
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) values: Vec<Cell>,
}

/// The column that records are read in the order of, and in which direction.
pub(super) struct Ordered {
    column: String,
    descends: bool,
}

impl Matching {
    /// What SQL can tell of a filter.
    pub(super) fn of(filter: Option<&Test>, layout: &Layout) -> Self {
        let Some(filter) = filter else { return Self { condition: None, is_exact: true } };
        match told(filter, layout) {
            Some(Told { condition, is_exact }) => Self { condition: Some(condition), is_exact },
            None => Self { condition: None, is_exact: false },
        }
    }

    /// How many records match; of use only where that is exact.
    pub(super) fn count(&self, table: &str, realm: &str) -> Statement {
        let mut select = self.select(table, realm);
        select.expr(Expr::cust("count(*)"));
        built(&select)
    }

    /// The records that match, each with its place in the order.
    pub(super) fn rows(
        &self,
        table: &str,
        realm: &str,
        order: Option<&Ordered>,
        after: Option<&Position>,
    ) -> Statement {
        let mut select = self.select(table, realm);
        select.column(Alias::new("id".to_owned())).column(Alias::new("record".to_owned()));
        let Some(Ordered { column, descends }) = order else { return built(&select) };
        select.column(Alias::new(column.clone()));
        if let Some(beyond) = after.and_then(|after| beyond(column, *descends, after.0.first()?)) {
            select.cond_where(beyond);
        }
        let direction = if *descends { Order::Desc } else { Order::Asc };
        select.order_by(Alias::new(column.clone()), direction);
        built(&select)
    }

    fn select(&self, table: &str, realm: &str) -> SelectStatement {
        let mut select = Query::select();
        select.from(Alias::new(table.to_owned()));
        select.cond_where(Condition::all().add(col("realm").eq(realm.to_owned())));
        if let Some(condition) = &self.condition {
            select.cond_where(Condition::all().add(condition.clone()));
        }
        select
    }
}

impl Ordered {
    /// The order of the first field, if there is a column that has it.
    pub(super) fn of(sort: &[SortField], layout: &Layout) -> Option<Self> {
        let Some(first) = sort.first() else {
            return Some(Self { column: "id".to_owned(), descends: false });
        };
        let column = layout.column(&first.path)?;
        let is_alike = (column.kind == ColumnKind::Time) == first.path.is_time;
        let has_order = column.kind != ColumnKind::Reference && is_alike;
        has_order.then(|| Self { column: column.name.clone(), descends: first.descends })
    }
}

/// Rows that do not stand before this key.
fn beyond(column: &str, descends: bool, key: &Key) -> Option<Condition> {
    let bound = bound(&cell_of(key));
    match (bound, descends) {
        (None, false) => None,
        (None, true) => Some(Condition::all().add(col(column).is_null())),
        (Some(value), false) => Some(Condition::all().add(col(column).gte(value))),
        (Some(value), true) => {
            let reached = Condition::any().add(col(column).lte(value));
            Some(reached.add(col(column).is_null()))
        }
    }
}

/// A condition that is true or false, never null.
struct Told {
    condition: Condition,
    is_exact: bool,
}

fn told(test: &Test, layout: &Layout) -> Option<Told> {
    match test {
        Test::Never => Some(never()),
        Test::All(tests) => {
            let all: Vec<Option<Told>> = tests.iter().map(|test| told(test, layout)).collect();
            let is_exact = all.iter().all(|one| one.as_ref().is_some_and(|one| one.is_exact));
            let known = all.into_iter().flatten().map(|one| one.condition).collect();
            let condition = joined(known, &|| Condition::all().add(holds(true)));
            Some(Told { condition, is_exact })
        }
        Test::Any(tests) => any(tests.iter().map(|test| told(test, layout))),
        Test::Not(inner) => {
            let inner = told(inner, layout).filter(|inner| inner.is_exact)?;
            Some(exact(Condition::all().add(inner.condition).not()))
        }
        Test::Compare(path, relation, wanted) => compared(path, *relation, wanted, layout),
        Test::OneOf(path, wanted) => listed(path, wanted, layout).or_else(|| {
            any(wanted.iter().map(|wanted| compared(path, Relation::Equal, wanted, layout)))
        }),
        Test::Exists(path) => {
            let column = layout.column(path).filter(|it| it.kind != ColumnKind::Reference)?;
            Some(exact(Condition::all().add(col(&column.name).is_not_null())))
        }
        Test::Element(..) | Test::Words(_) => None,
    }
}

/// If one cannot be told, none can.
fn any(tests: impl Iterator<Item = Option<Told>>) -> Option<Told> {
    let mut is_exact = true;
    let mut conditions = Vec::new();
    for one in tests {
        let told = one?;
        conditions.push(told.condition);
        is_exact &= told.is_exact;
    }
    let condition = joined(conditions, &|| Condition::any().add(holds(false)));
    Some(Told { condition, is_exact })
}

/// Many conditions in groups of groups: SQLite takes only so many in a row.
fn joined(mut conditions: Vec<Condition>, begun: &dyn Fn() -> Condition) -> Condition {
    while conditions.len() > GROUP_MAX {
        let groups = conditions.chunks(GROUP_MAX);
        conditions =
            groups.map(|group| group.iter().cloned().fold(begun(), Condition::add)).collect();
    }
    conditions.into_iter().fold(begun(), Condition::add)
}

/// Whether the column has one of these values, if it has each of them as it is.
fn listed(path: &FieldPath, wanted: &[Wanted], layout: &Layout) -> Option<Told> {
    let column = layout.column(path)?;
    let cell = |wanted: &Wanted| match (wanted, column.kind) {
        (Wanted::Number(number), ColumnKind::Number) => match number {
            Number::Whole(whole) if i64::try_from(*whole).is_err() => None,
            _ => bound(&cell_of(&Key::Number(*number))),
        },
        (Wanted::Text(text), ColumnKind::Text) if text.case == Case::Folded => {
            Some(sea_query::Value::from(text.text.clone()))
        }
        _ => None,
    };
    let cells: Vec<sea_query::Value> = wanted.iter().map(cell).collect::<Option<_>>()?;
    if cells.is_empty() {
        return Some(never());
    }
    let is_there = Condition::all().add(col(&column.name).is_not_null());
    Some(exact(is_there.add(col(&column.name).is_in(cells))))
}

fn never() -> Told {
    exact(Condition::any().add(holds(false)))
}

/// Begins a condition, so that none is empty.
fn holds(is_true: bool) -> Expr {
    Expr::cust(if is_true { "1 = 1" } else { "1 = 0" })
}

fn exact(condition: Condition) -> Told {
    Told { condition, is_exact: true }
}

fn loose(condition: Condition) -> Told {
    Told { condition, is_exact: false }
}

fn compared(
    path: &FieldPath,
    relation: Relation,
    wanted: &Wanted,
    layout: &Layout,
) -> Option<Told> {
    let column = layout.column(path)?;
    let is_equality = relation == Relation::Equal;
    match (wanted, column.kind) {
        (Wanted::Nothing, _) => Some(never()),
        (Wanted::Null, kind) if is_equality && kind != ColumnKind::Reference => {
            Some(exact(Condition::all().add(col(&column.name).is_null())))
        }
        (Wanted::Bool(wanted), ColumnKind::Boolean) if is_equality => {
            Some(exact(related(column, relation, Cell::Integer(i64::from(*wanted)))?))
        }
        (Wanted::Number(number), ColumnKind::Number) => {
            let is_exact = match number {
                Number::Whole(whole) => i64::try_from(*whole).is_ok(),
                Number::Decimal(_) => true,
            };
            let condition = related(column, relation, cell_of(&Key::Number(*number)))?;
            is_exact.then(|| exact(condition))
        }
        (Wanted::Text(text), ColumnKind::Text) => compared_text(column, relation, text),
        (Wanted::Pattern(pieces, _), ColumnKind::Text) if is_equality => begins(column, pieces),
        (Wanted::Reference(id), ColumnKind::Reference) if is_equality => {
            Some(loose(related(column, relation, Cell::Text(id.to_ascii_lowercase()))?))
        }
        (Wanted::Day(day), ColumnKind::Time) => of_day(column, relation, *day),
        (Wanted::Moment(moment), ColumnKind::Time) => {
            // Moments of the same microsecond stand for each other.
            let relation = match relation {
                Relation::Less => Relation::LessOrEqual,
                Relation::Greater => Relation::GreaterOrEqual,
                Relation::Equal | Relation::LessOrEqual | Relation::GreaterOrEqual => relation,
            };
            Some(loose(related(column, relation, Cell::Integer(microseconds(*moment)))?))
        }
        _ => None,
    }
}

fn compared_text(column: &Column, relation: Relation, wanted: &WantedText) -> Option<Told> {
    match (wanted.case, relation) {
        (Case::Folded, _) => {
            Some(exact(related(column, relation, Cell::Text(wanted.text.clone()))?))
        }
        (Case::Exact, Relation::Equal) => {
            Some(loose(related(column, relation, Cell::Text(folded(&wanted.text)))?))
        }
        (Case::Exact, _) => None,
    }
}

/// Texts that begin with what the pattern begins with.
fn begins(column: &Column, pieces: &[Piece]) -> Option<Told> {
    let Some(Piece::Text(start)) = pieces.first() else { return None };
    let start = folded(start);
    let mut condition = related(column, Relation::GreaterOrEqual, Cell::Text(start.clone()))?;
    if let Some(end) = next_start(&start) {
        condition = condition.add(related(column, Relation::Less, Cell::Text(end))?);
    }
    Some(loose(condition))
}

/// The least text that is greater than all that begin so.
fn next_start(start: &str) -> Option<String> {
    let mut chars: Vec<char> = start.chars().collect();
    while let Some(last) = chars.pop() {
        // Between these two are no characters.
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            _ => char::from_u32(u32::from(last) + 1),
        };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

fn of_day(column: &Column, relation: Relation, day: Date) -> Option<Told> {
    let start = Cell::Integer(midnight(day)?);
    let end = Cell::Integer(midnight(day.tomorrow().ok()?)?);
    let condition = match relation {
        Relation::Less => related(column, Relation::Less, start),
        Relation::LessOrEqual => related(column, Relation::Less, end),
        Relation::Greater => related(column, Relation::GreaterOrEqual, end),
        Relation::GreaterOrEqual => related(column, Relation::GreaterOrEqual, start),
        Relation::Equal => {
            let from = related(column, Relation::GreaterOrEqual, start)?;
            Some(from.add(related(column, Relation::Less, end)?))
        }
    };
    condition.map(exact)
}

fn midnight(day: Date) -> Option<i64> {
    day.to_zoned(TimeZone::UTC).ok().map(|start| microseconds(start.timestamp()))
}

/// Whether the column is so to the value; where there is none, it is not.
fn related(column: &Column, relation: Relation, cell: Cell) -> Option<Condition> {
    let name = &column.name;
    let value = bound(&cell)?;
    let related = match relation {
        Relation::Equal => col(name).eq(value),
        Relation::Less => col(name).lt(value),
        Relation::Greater => col(name).gt(value),
        Relation::LessOrEqual => col(name).lte(value),
        Relation::GreaterOrEqual => col(name).gte(value),
    };
    Some(Condition::all().add(col(name).is_not_null()).add(related))
}

fn col(name: &str) -> Expr {
    Expr::col(Alias::new(name.to_owned()))
}

fn bound(cell: &Cell) -> Option<sea_query::Value> {
    match cell {
        Cell::Integer(value) => Some(sea_query::Value::from(*value)),
        Cell::Real(value) => Some(sea_query::Value::from(*value)),
        Cell::Text(value) => Some(sea_query::Value::from(value.clone())),
        Cell::Null | Cell::Blob(_) => None,
    }
}

fn built(select: &SelectStatement) -> Statement {
    let (sql, values) = select.build(SqliteQueryBuilder);
    let cell = |value: sea_query::Value| match value {
        sea_query::Value::BigInt(Some(value)) => Cell::Integer(value),
        sea_query::Value::Double(Some(value)) => Cell::Real(value),
        sea_query::Value::String(Some(value)) => Cell::Text(value.as_str().to_owned()),
        // Nothing else is put into a condition.
        _ => Cell::Null,
    };
    Statement { sql, values: values.0.into_iter().map(cell).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_start_is_greater_than_all_that_begin_so() {
        assert_eq!(next_start("ab").as_deref(), Some("ac"));
        assert_eq!(next_start("a\u{d7ff}").as_deref(), Some("a\u{e000}"));
        assert_eq!(next_start("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(next_start("\u{10ffff}"), None);
    }
}
