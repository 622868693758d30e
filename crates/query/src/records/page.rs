//! The rows of a page, one after the other, until a limit ends it.

use super::error::RecordError;
use super::requests::{Cut, RecordLimits};
use super::save::record_bytes;
use crate::checked::CheckedQuery;
use crate::evaluate::Row;
use crate::evaluate::shape::{Lookup, shape};
use serde_json::Value;
use std::cell::Cell;

/// What is embedded in one row may be so many times a page, before fields of it are chosen.
const EMBEDDED_PAGES_MAX: usize = 16;

pub struct PageRows<'p> {
    query: &'p CheckedQuery,
    realm: &'p str,
    limits: &'p RecordLimits,
    rows: Vec<Value>,
    bytes: usize,
    embedded: usize,
}

impl<'p> PageRows<'p> {
    pub fn new(query: &'p CheckedQuery, realm: &'p str, limits: &'p RecordLimits) -> Self {
        Self { query, realm, limits, rows: Vec::new(), bytes: 0, embedded: 0 }
    }

    /// Adds a row, unless a limit ends the page before it. The first row of a page is never too
    /// long, so that every page leads further.
    pub fn push(
        &mut self,
        record: &Value,
        lookup: &Lookup<'_>,
    ) -> Result<Option<Cut>, RecordError> {
        let embedded = Cell::new(self.embedded);
        let bytes = Cell::new(0);
        let is_over = || {
            embedded.get() > self.limits.expand_records_max
                || bytes.get() > self.limits.find_bytes_max.saturating_mul(EMBEDDED_PAGES_MAX)
        };
        let counted = |record_type: &str, id: &str| -> Option<Value> {
            if is_over() {
                return None;
            }
            let found = lookup(record_type, id)?;
            embedded.set(embedded.get() + 1);
            bytes.set(bytes.get() + record_bytes(&found));
            (!is_over()).then_some(found)
        };
        let row = shape(self.query, Row { realm: self.realm, record }, &counted);
        let is_first = self.rows.is_empty();
        if is_over() {
            let max = self.limits.expand_records_max;
            let too_many = RecordError::TooManyEmbedded { max };
            return if is_first { Err(too_many) } else { Ok(Some(Cut::Embedded)) };
        }
        let row_bytes = record_bytes(&row);
        if !is_first && self.bytes + row_bytes > self.limits.find_bytes_max {
            return Ok(Some(Cut::Bytes));
        }
        self.embedded = embedded.get();
        self.bytes += row_bytes;
        self.rows.push(row);
        Ok(None)
    }

    pub fn rows(self) -> Vec<Value> {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_ends_before_the_row_that_would_be_too_many_bytes() {
        let query = CheckedQuery {
            filter: None,
            expansions: Vec::new(),
            selection: crate::checked::Selection::default(),
        };
        let limits = RecordLimits { find_bytes_max: 20, ..RecordLimits::default() };
        let mut page = PageRows::new(&query, "r", &limits);
        let long = json!({"text": "x".repeat(100)});
        assert_eq!(page.push(&long, &|_, _| None), Ok(None));
        assert_eq!(page.push(&json!({"a": 1}), &|_, _| None), Ok(Some(Cut::Bytes)));
        assert_eq!(page.rows(), [long]);
    }
}
