//! What a terminal shows after all that was written to it. It knows as much as line editors and
//! progress lines use, and forgets no row.

use std::str::Chars;
use unicode_width::UnicodeWidthChar;

/// Stands behind a letter that takes two columns.
const SECOND_HALF: char = '\0';

#[derive(Default)]
struct Row {
    cells: Vec<char>,
    /// Whether its text goes over into the next row.
    continues: bool,
}

/// The rows of a terminal, and where its cursor is.
pub struct Screen {
    columns: usize,
    rows: Vec<Row>,
    row: usize,
    column: usize,
    /// The last column is written: the next letter begins a row.
    is_full: bool,
}

impl Screen {
    pub fn new(columns: u16) -> Self {
        let columns = usize::from(columns);
        let rows = vec![Row::default()];
        Self { columns, rows, row: 0, column: 0, is_full: false }
    }

    pub fn resize(&mut self, columns: u16) {
        self.columns = usize::from(columns);
        self.go(self.row, self.column);
    }

    pub fn write(&mut self, text: &str) {
        let mut rest = text.chars();
        while let Some(character) = rest.next() {
            match character {
                '\u{1b}' => self.escape(&mut rest),
                '\r' => self.go(self.row, 0),
                '\n' => self.go(self.row + 1, self.column),
                '\u{8}' => self.go(self.row, self.column.saturating_sub(1)),
                control if control.is_control() => {}
                letter => self.put(letter),
            }
        }
    }

    /// The rows, without what is blank at their ends.
    pub fn lines(&self) -> Vec<String> {
        self.rows.iter().map(|row| text_of(row).trim_end().to_owned()).collect()
    }

    /// All text; what is longer than a row is one line of it.
    pub fn text(&self) -> String {
        let line = |row: &Row| text_of(row) + if row.continues { "" } else { "\n" };
        self.rows.iter().map(line).collect()
    }

    fn escape(&mut self, rest: &mut Chars<'_>) {
        if rest.next() != Some('[') {
            return;
        }
        let mut digits = String::new();
        let end = loop {
            match rest.next() {
                Some(digit @ ('0'..='9' | ';' | '?')) => digits.push(digit),
                Some(end) => break end,
                None => return,
            }
        };
        let count = digits.parse::<usize>().unwrap_or(1).max(1);
        match end {
            'A' => self.go(self.row.saturating_sub(count), self.column),
            'B' => self.go(self.row + count, self.column),
            'C' => self.go(self.row, self.column + count),
            'D' => self.go(self.row, self.column.saturating_sub(count)),
            'J' => {
                self.erase(self.row, self.column);
                (self.row + 1..self.rows.len()).for_each(|row| self.erase(row, 0));
            }
            'K' if digits == "2" => self.erase(self.row, 0),
            'K' => self.erase(self.row, self.column),
            _ => {}
        }
    }

    fn erase(&mut self, row: usize, column: usize) {
        let row = &mut self.rows[row];
        row.cells.truncate(column);
        row.continues = false;
    }

    fn go(&mut self, row: usize, column: usize) {
        while self.rows.len() <= row {
            self.rows.push(Row::default());
        }
        self.row = row;
        self.column = column.min(self.columns - 1);
        self.is_full = false;
    }

    fn put(&mut self, letter: char) {
        let width = letter.width().unwrap_or_default();
        if width == 0 {
            return;
        }
        if self.is_full || self.column + width > self.columns {
            self.rows[self.row].continues = true;
            self.go(self.row + 1, 0);
        }
        let cells = &mut self.rows[self.row].cells;
        cells.resize(cells.len().max(self.column + width), ' ');
        cells[self.column] = letter;
        if width == 2 {
            cells[self.column + 1] = SECOND_HALF;
        }
        self.is_full = self.column + width >= self.columns;
        self.column = (self.column + width).min(self.columns - 1);
    }
}

fn text_of(row: &Row) -> String {
    row.cells.iter().filter(|cell| **cell != SECOND_HALF).collect()
}

#[test]
fn a_screen_applies_cursor_and_erase_sequences() {
    let mut screen = Screen::new(6);
    screen.write("> abc\u{1b}[2D\u{1b}[KX\r\n\u{1b}[31mlonger than\u{1b}[0m\r\n");
    assert_eq!(screen.lines(), ["> aX", "longer", " than", ""]);
    assert_eq!(screen.text(), "> aX\nlonger than\n\n");
    screen.write("\u{1b}[A\r\u{1b}[K\u{1b}[A\r\u{1b}[K日本語x\u{1b}[?2004l");
    assert_eq!(screen.text(), "> aX\n日本語x\n\n");
}
