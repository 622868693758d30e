//! The same records found by hand: the statements that any program would write against the same
//! table of the same file, with rows read as JSON.

use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, params};
use serde_json::Value;

use super::wire::{PAGE, REALM};
use crate::Result;

/// The file of records in a data folder.
pub const DATABASE: &str = "records.db";

/// The table of a type holds the whole record beside the columns of its fields.
const TABLE: &str = "SELECT name FROM sqlite_master WHERE type = 'table' \
    AND sql LIKE '%record TEXT NOT NULL, PRIMARY KEY (realm, id)%'";

/// A connection with its statements.
#[derive(Debug)]
pub struct Hand {
    connection: Connection,
    find: String,
    total: String,
    count: String,
}

/// What a page came to.
#[derive(Debug)]
pub struct Page {
    pub rows: Vec<Value>,
    pub total: Option<u64>,
}

impl Hand {
    /// Opens the file for reading.
    pub fn open(data: &Path) -> Result<Self> {
        let path = data.join(DATABASE);
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let table: String = connection.query_row(TABLE, [], |row| row.get(0))?;
        let columns = Columns::of(&connection, &table)?;
        let Columns { customer, status } = &columns;
        // One more row says whether there is another page.
        let find = format!(
            "SELECT record FROM {table} WHERE realm = ?1 AND {customer} = ?2 ORDER BY id LIMIT {}",
            PAGE + 1
        );
        let counted = |column: &str| {
            format!("SELECT count(*) FROM {table} WHERE realm = ?1 AND {column} = ?2")
        };
        let total = counted(customer);
        let count = counted(status);
        Ok(Self { connection, find, total, count })
    }

    /// A page of the records of a customer, with the number of all of them where that is wanted.
    pub fn find(&self, customer: &str, with_total: bool) -> Result<Page> {
        let mut statement = self.connection.prepare_cached(&self.find)?;
        let mut found = statement.query(params![REALM, customer])?;
        let mut rows = Vec::with_capacity(PAGE);
        while let Some(row) = found.next()? {
            if rows.len() == PAGE {
                break;
            }
            rows.push(serde_json::from_str(row.get_ref(0)?.as_str()?)?);
        }
        let total = with_total.then(|| self.counted(&self.total, customer)).transpose()?;
        Ok(Page { rows, total })
    }

    /// How many records have this status.
    pub fn count(&self, status: &str) -> Result<u64> {
        self.counted(&self.count, status)
    }

    fn counted(&self, sql: &str, value: &str) -> Result<u64> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let count: i64 = statement.query_row(params![REALM, value], |row| row.get(0))?;
        Ok(u64::try_from(count)?)
    }
}

/// Which columns have the fields that are asked for.
struct Columns {
    customer: String,
    status: String,
}

impl Columns {
    /// Those that have what a record says, as the names of columns are the store's own.
    fn of(connection: &Connection, table: &str) -> Result<Self> {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table} LIMIT 1"))?;
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.query([])?;
        let row = rows.next()?.ok_or("there are no records to find")?;
        let record: String = row.get("record")?;
        let record: Value = serde_json::from_str(&record)?;
        let column = |field: &str| -> Result<String> {
            let wanted = record[field].as_str().ok_or("a record lacks a field")?;
            for (place, name) in names.iter().enumerate() {
                if matches!(row.get_ref(place)?, ValueRef::Text(text) if text == wanted.as_bytes())
                {
                    return Ok(name.clone());
                }
            }
            Err(format!("no column of `{table}` has the field `{field}`").into())
        };
        Ok(Self { customer: column("customer")?, status: column("status")? })
    }
}
