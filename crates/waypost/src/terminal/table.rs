//! Tables with aligned columns. At a terminal a table fits its width: ids are cut as far as they
//! stay distinct, times are relative, long texts are cut. A pipe gets everything.

use crate::terminal::output::one_line;
use crate::terminal::screen::{Screen, Tone};
use kernel::values::ids::Millis;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

const GAP: &str = "  ";
/// A text is not cut below this width: less of it says nothing.
const CUT_MIN: usize = 8;
/// An id is shown with at least so many of its digits.
const ID_DIGITS_MIN: usize = 8;
/// An id has so many digits after its prefix.
const ID_DIGITS: usize = 32;

/// What stands in a row under a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// May be cut.
    Text,
    /// `ask_` and 32 digits, which may be shortened; everything else is a text.
    Id,
    /// RFC 3339, which may be shown relative to now; everything else stays as it is.
    Time,
    /// A word that is never cut, with its colour.
    Word,
}

impl Cell {
    /// An id of the server's, or a name that stands for one.
    pub(crate) fn id(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: Kind::Id }
    }

    /// A time as the server writes it, or a word instead of one.
    pub(crate) fn time(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: Kind::Time }
    }

    /// A status, a kind or a number: short, and never cut.
    pub(crate) fn word(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: Kind::Word }
    }

    fn is_text(&self) -> bool {
        match self.kind {
            Kind::Text => true,
            Kind::Id => digits(&self.text).is_none(),
            Kind::Time | Kind::Word => false,
        }
    }

    fn tone(&self) -> Tone {
        match self.kind {
            Kind::Word => Tone::of_status(&self.text),
            Kind::Time => Tone::Faint,
            Kind::Text | Kind::Id => Tone::Plain,
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, kind: Kind::Text }
    }
}

/// Rows under heads.
#[derive(Debug)]
pub(crate) struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new<C: Into<Cell>>(
        heads: &[&str],
        rows: impl IntoIterator<Item = Vec<C>>,
    ) -> Self {
        let cells = |row: Vec<C>| -> Vec<Cell> { row.into_iter().map(Into::into).collect() };
        Self {
            heads: heads.iter().map(|head| head.to_uppercase()).collect(),
            rows: rows.into_iter().map(cells).collect(),
        }
    }

    /// The table as it is shown there and then, without trailing blanks.
    pub(crate) fn text(&self, screen: Screen, now: Millis) -> String {
        let mut columns: Vec<Column> =
            (0..self.heads.len()).map(|index| self.column(index, screen, now)).collect();
        if let Some(width) = screen.width {
            fit(&mut columns, width);
        }
        let lines: Vec<String> =
            (0..=self.rows.len()).map(|row| line(&columns, row, screen)).collect();
        lines.join("\n")
    }

    fn column(&self, index: usize, screen: Screen, now: Millis) -> Column {
        let cells: Vec<&Cell> = self.rows.iter().filter_map(|row| row.get(index)).collect();
        let id_digits = shared_digits(&cells);
        let mut column = Column {
            cells: vec![(self.heads[index].clone(), Tone::Strong)],
            natural: 0,
            width: 0,
            may_cut: cells.iter().any(|cell| cell.is_text()),
        };
        for cell in cells {
            let shown = match (screen.width, cell.kind) {
                (Some(_), Kind::Id) => short_id(&cell.text, id_digits),
                (Some(_), Kind::Time) => relative(&cell.text, now),
                _ => cell.text.clone(),
            };
            column.cells.push((one_line(&shown), cell.tone()));
        }
        column.natural = column.cells.iter().map(|(text, _)| text.width()).max().unwrap_or(0);
        column.width = column.natural;
        column
    }
}

/// The same as text without colours for standard output.
pub(crate) fn table(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    table_beside(0, heads, rows)
}

/// The same where so many columns of each line are taken. None of its cells is a time.
pub(crate) fn table_beside(
    columns: usize,
    heads: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    Table::new(heads, rows).text(Screen::of_stdout().beside(columns), Millis(0))
}

/// A column from its head down.
#[derive(Debug)]
struct Column {
    cells: Vec<(String, Tone)>,
    /// The width of its widest cell.
    natural: usize,
    /// The width that it is given.
    width: usize,
    may_cut: bool,
}

/// Narrows the widest texts first; where that is not enough, texts between the first and the last
/// column are left out. A command that shows one item shows all of it.
fn fit(columns: &mut Vec<Column>, room: usize) {
    while total_width(columns) > room {
        let texts = columns.iter_mut().filter(|column| column.may_cut && column.width > CUT_MIN);
        if let Some(widest) = texts.max_by_key(|column| column.width) {
            widest.width -= 1;
            continue;
        }
        let last = columns.len().saturating_sub(1);
        let texts = columns.iter().enumerate().filter(|(_, column)| column.may_cut);
        let inner = texts.filter(|(index, _)| (1..last).contains(index));
        let Some((index, _)) = inner.max_by_key(|(_, column)| column.width) else { return };
        columns.remove(index);
        for column in columns.iter_mut() {
            column.width = column.natural;
        }
    }
}

fn total_width(columns: &[Column]) -> usize {
    let gaps = GAP.len() * columns.len().saturating_sub(1);
    columns.iter().map(|column| column.width).sum::<usize>() + gaps
}

fn line(columns: &[Column], row: usize, screen: Screen) -> String {
    let cells: Vec<(String, &Column, Tone)> = columns
        .iter()
        .map(|column| {
            let (text, tone) = match column.cells.get(row) {
                Some((text, tone)) => (text.as_str(), *tone),
                None => ("", Tone::Plain),
            };
            (cut(text, column.width), column, tone)
        })
        .collect();
    let full = cells.iter().rposition(|(text, ..)| !text.is_empty()).map_or(0, |last| last + 1);
    let mut line = String::new();
    for (index, (text, column, tone)) in cells.iter().take(full).enumerate() {
        line.push_str(&screen.paint(*tone, text));
        if index + 1 < full {
            line.push_str(&" ".repeat(column.width.saturating_sub(text.width())));
            line.push_str(GAP);
        }
    }
    line
}

/// The text in at most so many columns of a terminal: a letter may take two.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut taken = 1;
    for letter in text.chars() {
        taken += letter.width().unwrap_or_default();
        if taken > width {
            break;
        }
        kept.push(letter);
    }
    kept.push('…');
    kept
}

/// The digits of an id; none if this is something else.
fn digits(text: &str) -> Option<&str> {
    let (_, digits) = text.split_once('_')?;
    let is_id = digits.len() == ID_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then_some(digits)
}

/// How many digits tell these ids apart: ids of one moment begin alike.
fn shared_digits(cells: &[&Cell]) -> usize {
    let ids = cells.iter().filter(|cell| cell.kind == Kind::Id);
    let mut ids: Vec<&str> = ids.filter_map(|cell| digits(&cell.text)).collect();
    ids.sort_unstable();
    ids.dedup();
    let alike = |pair: &[&str]| {
        let both = pair[0].bytes().zip(pair[1].bytes());
        both.take_while(|(one, other)| one == other).count()
    };
    let most = ids.windows(2).map(alike).max();
    most.map_or(ID_DIGITS_MIN, |alike| ID_DIGITS_MIN.max(alike + 1))
}

fn short_id(text: &str, count: usize) -> String {
    match digits(text) {
        Some(digits) => text[..text.len() - digits.len() + count].to_owned(),
        None => text.to_owned(),
    }
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// What is further away is a date.
const DAYS_MAX: u64 = 60;

/// `5m ago` or `in 2h`; the date alone of what is far away. What is not a time stays as it is.
pub(crate) fn relative(time: &str, now: Millis) -> String {
    let Ok(at) = time.parse::<jiff::Timestamp>() else { return time.to_owned() };
    let away = at.as_millisecond() - now.0;
    let seconds = away.unsigned_abs() / 1_000;
    let amount = match seconds {
        0 => return "now".to_owned(),
        1..MINUTE => format!("{seconds}s"),
        MINUTE..HOUR => format!("{}m", seconds / MINUTE),
        HOUR..DAY => format!("{}h", seconds / HOUR),
        _ if seconds / DAY <= DAYS_MAX => format!("{}d", seconds / DAY),
        _ => return time.split('T').next().unwrap_or(time).to_owned(),
    };
    if away < 0 { format!("{amount} ago") } else { format!("in {amount}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-16T12:00:00Z
    const NOW: Millis = Millis(1_794_830_400_000);

    fn terminal(width: usize) -> Screen {
        Screen { width: Some(width), has_colour: false }
    }

    fn asks() -> Table {
        let ask = |id: &str, kind: &str, step: &str, at: &str, title: &str| {
            let id = format!("ask_{id}{}", "0".repeat(ID_DIGITS - id.len()));
            let id = Cell::id(id);
            let kind = Cell::word(kind);
            let at = Cell::time(at);
            vec![id, kind, Cell::from(step.to_owned()), at, Cell::from(title.to_owned())]
        };
        let heads = ["ask", "kind", "step", "created", "title"];
        let long = "May the meeting with 田中さん in the large room be moved to Monday at four?";
        let rows = [
            ask("14a641770", "approve", "move-the-meeting", "2026-11-16T11:57:00.000Z", long),
            ask("14a641771", "fill", "名前", "2026-11-14T12:00:00.000Z", "あなたの名前は?"),
        ];
        Table::new(&heads, rows)
    }

    #[test]
    fn columns_are_aligned_and_lines_do_not_trail() {
        let rows = [["math::add", "adds\ntwo"], ["é", ""]];
        let rows = rows.map(|cells| cells.map(str::to_owned).to_vec());
        let text = Table::new(&["name", "what"], rows).text(Screen::PIPE, NOW);
        assert_eq!(text, "NAME       WHAT\nmath::add  adds two\né");
    }

    #[test]
    fn a_table_fits_its_terminal() {
        for width in [60, 80, 140] {
            let text = asks().text(terminal(width), NOW);
            let fits = text.lines().all(|line| line.width() <= width);
            assert!(fits && text.lines().count() == 3, "{width} columns:\n{text}");
            assert!(text.contains("3m ago") && text.contains("2d ago"), "{text}");
            assert!(text.contains("ask_14a641770 ") && text.contains("ask_14a641771 "), "{text}");
        }
    }

    #[test]
    fn wide_letters_take_two_columns() {
        let rows = [["名前", "a"], ["name", "b"]];
        let rows = rows.map(|cells| cells.map(str::to_owned).to_vec());
        let text = Table::new(&["field", "is"], rows).text(terminal(80), NOW);
        assert_eq!(text, "FIELD  IS\n名前   a\nname   b");
        assert_eq!(cut("田中さん", 5), "田中…");
        assert_eq!(cut("田中さん", 4), "田…");
        assert_eq!(cut("田中さん", 8), "田中さん");
    }

    #[test]
    fn a_narrow_table_leaves_out_middle_columns() {
        let wide = asks().text(terminal(60), NOW);
        assert!(wide.starts_with("ASK            KIND     STEP"), "{wide}");
        let narrow = asks().text(terminal(46), NOW);
        assert!(narrow.starts_with("ASK            KIND     CREATED  TITLE"), "{narrow}");
    }

    #[test]
    fn a_pipe_gets_everything() {
        let text = asks().text(Screen::PIPE, NOW);
        assert!(text.contains(&format!("ask_14a641770{}", "0".repeat(23))), "{text}");
        assert!(text.contains("2026-11-16T11:57:00.000Z"), "{text}");
        assert!(text.contains("be moved to Monday at four?"), "{text}");
    }

    #[test]
    fn colours_do_not_move_columns() {
        let plain = asks().text(terminal(80), NOW);
        let coloured = asks().text(Screen { width: Some(80), has_colour: true }, NOW);
        assert!(coloured.contains("\u{1b}[1mASK\u{1b}[0m"), "{coloured}");
        let mut bare = coloured;
        for code in ["[1m", "[2m", "[0m"] {
            bare = bare.replace(&format!("\u{1b}{code}"), "");
        }
        assert_eq!(bare, plain);
    }

    #[test]
    fn times_are_relative() {
        for (time, shown) in [
            ("2026-11-16T12:00:00.000Z", "now"),
            ("2026-11-16T11:59:18.000Z", "42s ago"),
            ("2026-11-16T07:00:00.000Z", "5h ago"),
            ("2026-11-16T14:00:00.000Z", "in 2h"),
            ("2025-01-31T12:00:00.000Z", "2025-01-31"),
            ("never", "never"),
        ] {
            assert_eq!(relative(time, NOW), shown, "{time}");
        }
    }
}
