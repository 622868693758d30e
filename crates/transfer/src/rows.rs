//! The rows of a file in UTF-8, as its bytes come: each with where it begins and ends, so that a
//! row can be read again later. A row beyond a limit is a fault, and takes no memory.

use crate::form::Form;
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowLimits {
    pub cells_max: usize,
    pub cell_bytes_max: usize,
    pub row_bytes_max: usize,
}

impl Default for RowLimits {
    fn default() -> Self {
        Self { cells_max: 1_000, cell_bytes_max: 1024 * 1024, row_bytes_max: 4 * 1024 * 1024 }
    }
}

/// Where a row begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowPlace {
    /// From 1; the header, if there is one, is a row.
    pub number: u64,
    /// In bytes of UTF-8, from 0.
    pub offset: u64,
    /// From 1.
    pub line: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub place: RowPlace,
    /// Behind its last byte, line break included.
    pub end: u64,
    pub content: Result<RowContent, RowFault>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum RowContent {
    Cells(Vec<String>),
    Object(Map<String, Value>),
}

/// Why a row cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowFault {
    #[error("the row has bytes that are not of the charset")]
    Undecodable,
    #[error("the row has more than {0} bytes")]
    TooLong(usize),
    #[error("field {cell} has more than {max} bytes")]
    CellTooLong { cell: usize, max: usize },
    #[error("the row has more than {0} fields")]
    TooManyCells(usize),
    #[error("a quote in the row never ends")]
    OpenQuote,
    #[error("the line is no JSON object: {0}")]
    NoObject(String),
}

/// Reads rows from pieces of a file.
pub struct RowReader {
    form: Form,
    limits: RowLimits,
    csv: Reader,
    /// Where the row begins that is read.
    begin: RowPlace,
    /// How much of the file was read.
    offset: u64,
    line: u64,
    row: RawRow,
}

/// A row as far as it was read.
#[derive(Default)]
struct RawRow {
    text: Vec<u8>,
    ends: Vec<usize>,
    bytes: usize,
    quotes: usize,
    has_break: bool,
    is_too_long: bool,
    has_too_many_cells: bool,
}

impl RowReader {
    /// Reads on from a row; from the first one by `RowPlace { number: 1, offset: 0, line: 1 }`.
    pub fn new(form: Form, limits: RowLimits, from: RowPlace) -> Self {
        let mut builder = ReaderBuilder::new();
        if let Form::Csv { separator, quote } = form {
            builder.delimiter(separator).quote(quote);
        }
        let (offset, line) = (from.offset, from.line);
        let row = RawRow::default();
        Self { form, limits, csv: builder.build(), begin: from, offset, line, row }
    }

    /// The first row of a file.
    pub fn start() -> RowPlace {
        RowPlace { number: 1, offset: 0, line: 1 }
    }

    /// The rows that end in these bytes. Without bytes the file is at its end.
    pub fn read(&mut self, bytes: &[u8], found: &mut Vec<Row>) {
        match self.form {
            Form::Csv { quote, .. } => self.read_csv(bytes, quote, found),
            Form::JsonLines => self.read_lines(bytes, found),
        }
    }

    fn read_csv(&mut self, bytes: &[u8], quote: u8, found: &mut Vec<Row>) {
        let is_last = bytes.is_empty();
        let mut rest = bytes;
        let mut text = [0; 4096];
        let mut ends = [0; 64];
        loop {
            let before = self.row.text.len();
            let (result, read, written, ended) = self.csv.read_record(rest, &mut text, &mut ends);
            let (taken, left) = rest.split_at(read.min(rest.len()));
            rest = left;
            self.take(taken, quote);
            self.keep(text.get(..written).unwrap_or_default(), before);
            self.keep_ends(ends.get(..ended).unwrap_or_default());
            match result {
                ReadRecordResult::InputEmpty if is_last => return,
                ReadRecordResult::InputEmpty => {
                    if rest.is_empty() {
                        return;
                    }
                }
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {}
                ReadRecordResult::Record => {
                    let content = self.cells(is_last);
                    self.end_row(content, found);
                }
                ReadRecordResult::End => return,
            }
        }
    }

    /// Counts what was read of the file. Line breaks before a row are not part of it.
    fn take(&mut self, taken: &[u8], quote: u8) {
        let blank = match self.row.bytes {
            0 => taken.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count(),
            _ => 0,
        };
        let (blank, taken) = taken.split_at(blank);
        self.offset += blank.len() as u64;
        self.line += breaks(blank);
        if self.row.bytes == 0 {
            self.begin = RowPlace { offset: self.offset, line: self.line, ..self.begin };
        }
        self.offset += taken.len() as u64;
        self.line += breaks(taken);
        self.row.bytes += taken.len();
        self.row.has_break |= taken.contains(&b'\n');
        self.row.quotes += taken.iter().filter(|byte| **byte == quote).count();
    }

    fn keep(&mut self, text: &[u8], before: usize) {
        self.row.is_too_long |= before + text.len() > self.limits.row_bytes_max;
        if self.row.is_too_long {
            self.row.text = Vec::new();
        } else {
            self.row.text.extend_from_slice(text);
        }
    }

    fn keep_ends(&mut self, ends: &[usize]) {
        self.row.has_too_many_cells |= self.row.ends.len() + ends.len() > self.limits.cells_max;
        if self.row.has_too_many_cells {
            self.row.ends = Vec::new();
        } else {
            self.row.ends.extend_from_slice(ends);
        }
    }

    fn cells(&self, is_last: bool) -> Result<RowContent, RowFault> {
        let row = &self.row;
        if is_last && row.quotes % 2 == 1 && row.has_break {
            return Err(RowFault::OpenQuote);
        }
        if row.is_too_long {
            return Err(RowFault::TooLong(self.limits.row_bytes_max));
        }
        if row.has_too_many_cells {
            return Err(RowFault::TooManyCells(self.limits.cells_max));
        }
        let mut cells = Vec::with_capacity(row.ends.len());
        let mut begin = 0;
        for (index, end) in row.ends.iter().enumerate() {
            let cell = row.text.get(begin..*end).unwrap_or_default();
            begin = *end;
            let max = self.limits.cell_bytes_max;
            if cell.len() > max {
                return Err(RowFault::CellTooLong { cell: index + 1, max });
            }
            let cell = std::str::from_utf8(cell).map_err(|_| RowFault::Undecodable)?;
            cells.push(cell.to_owned());
        }
        Ok(RowContent::Cells(cells))
    }

    fn read_lines(&mut self, bytes: &[u8], found: &mut Vec<Row>) {
        if bytes.is_empty() {
            if self.row.bytes > 0 {
                self.end_line(found);
            }
            return;
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.offset += piece.len() as u64;
            self.line += breaks(piece);
            self.row.bytes += piece.len();
            let before = self.row.text.len();
            self.keep(piece, before);
            if piece.ends_with(b"\n") {
                self.end_line(found);
            }
        }
    }

    fn end_line(&mut self, found: &mut Vec<Row>) {
        let is_blank = !self.row.is_too_long && self.row.text.trim_ascii().is_empty();
        if is_blank {
            self.row = RawRow::default();
            self.begin = RowPlace { offset: self.offset, line: self.line, ..self.begin };
            return;
        }
        let content = self.object();
        self.end_row(content, found);
    }

    fn object(&self) -> Result<RowContent, RowFault> {
        if self.row.is_too_long {
            return Err(RowFault::TooLong(self.limits.row_bytes_max));
        }
        let text = std::str::from_utf8(&self.row.text).map_err(|_| RowFault::Undecodable)?;
        match serde_json::from_str(text.trim()) {
            Ok(Value::Object(members)) => Ok(RowContent::Object(members)),
            Ok(_) => Err(RowFault::NoObject("it is another value".to_owned())),
            Err(error) => Err(RowFault::NoObject(error.to_string())),
        }
    }

    fn end_row(&mut self, content: Result<RowContent, RowFault>, found: &mut Vec<Row>) {
        self.row = RawRow::default();
        let place = self.begin;
        found.push(Row { place, end: self.offset, content });
        let number = place.number + 1;
        self.begin = RowPlace { number, offset: self.offset, line: self.line };
    }
}

fn breaks(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}
