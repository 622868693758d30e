//! A Rust source as the rules see it: line by line, with code, comments and literals apart, and
//! with the lines that exist only for tests marked.

use super::lexer::{self, Kind};

/// How the attributes begin that keep an item for tests.
const TEST_ATTRIBUTES: &[&str] = &["#[cfg(test)]", "#[cfg(all(test,"];

/// One file of Rust.
pub struct Source {
    /// From the workspace root, with forward slashes.
    pub path: String,
    /// All lines, in order.
    pub lines: Vec<Line>,
}

/// One line of a source.
pub struct Line {
    /// Counted from one.
    pub number: usize,
    /// As it stands in the file.
    pub raw: String,
    /// With comments and literals blanked out.
    pub code: String,
    /// With everything but comments blanked out.
    pub comment: String,
    /// How many characters the longest literal has on this line.
    pub literal_length: usize,
    /// True in test files and in items that are compiled for tests only.
    pub in_test: bool,
}

impl Source {
    /// Reads a source; text that is no Rust gives odd lines but no error.
    pub fn parse(path: &str, text: &str) -> Self {
        let characters: Vec<char> = text.chars().collect();
        let kinds = lexer::classify(&characters);
        let code = lexer::view(&characters, &kinds, Kind::Code);
        let comments = lexer::view(&characters, &kinds, Kind::Comment);
        let masks = lexer::literal_mask(&characters, &kinds);
        let in_test = test_lines(path, &code);
        let views = code.lines().zip(comments.lines()).zip(masks.lines()).zip(in_test);
        let lines = text
            .lines()
            .zip(views)
            .enumerate()
            .map(|(index, (raw, (((code, comment), mask), in_test)))| Line {
                number: index + 1,
                raw: raw.to_owned(),
                code: code.to_owned(),
                comment: comment.to_owned(),
                literal_length: mask.split(' ').map(str::len).max().unwrap_or(0),
                in_test,
            })
            .collect();
        Self { path: path.to_owned(), lines }
    }

    /// The lines that reach the product.
    pub fn production(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| !line.in_test)
    }

    /// The code of those lines in one piece; test lines are empty, so line numbers still hold.
    pub fn production_code(&self) -> String {
        let lines: Vec<&str> = self
            .lines
            .iter()
            .map(|line| if line.in_test { "" } else { line.code.as_str() })
            .collect();
        lines.join("\n")
    }
}

/// Tests live in folders called `tests`, in files called `tests.rs`, or behind `#[cfg(test)]`.
fn test_lines(path: &str, code: &str) -> Vec<bool> {
    let whole_file = path.ends_with("/tests.rs")
        || path.split('/').any(|part| part == "tests")
        || code.contains("#![cfg(test)]");
    let mut marks = vec![whole_file; code.lines().count()];
    let attributes = TEST_ATTRIBUTES.iter().flat_map(|attribute| code.match_indices(*attribute));
    for (start, _) in attributes {
        let item = start + code[start..].find(']').map_or(0, |end| end + 1);
        let end = item + item_length(&code[item..]);
        let first = code[..start].matches('\n').count();
        let last = code[..end].matches('\n').count();
        marks.iter_mut().take(last + 1).skip(first).for_each(|mark| *mark = true);
    }
    marks
}

/// How far the item at the beginning of `code` reaches: to its `;` or its closing brace.
fn item_length(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            // The block around the item ends: it was a field or a variant without a comma.
            ')' | ']' | '}' if depth == 0 => return at,
            '}' if depth == 1 => return at + 1,
            ')' | ']' | '}' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_line_numbers(path: &str, text: &str) -> Vec<usize> {
        let source = Source::parse(path, text);
        source.lines.iter().filter(|line| line.in_test).map(|line| line.number).collect()
    }

    #[test]
    fn a_test_module_is_marked_to_its_closing_brace() {
        let text =
            "fn a() {}\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        assert_eq!(test_line_numbers("crates/a/src/b.rs", text), [2, 3, 4, 5, 6]);
    }

    #[test]
    fn tests_of_one_system_are_tests() {
        let text = "fn a() {}\n#[cfg(all(test, unix))]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        assert_eq!(test_line_numbers("crates/a/src/b.rs", text), [2, 3, 4, 5]);
    }

    #[test]
    fn a_declared_test_module_does_not_hide_what_follows() {
        let text = "#[cfg(test)]\nmod tests;\nmod a;\n";
        assert_eq!(test_line_numbers("crates/a/src/lib.rs", text), [1, 2]);
    }

    #[test]
    fn the_attribute_in_a_literal_marks_nothing() {
        let text = "const A: &str = \"#[cfg(test)]\";\nfn b() {}\n";
        assert!(test_line_numbers("crates/a/src/b.rs", text).is_empty());
    }

    #[test]
    fn test_files_are_marked_whole() {
        assert_eq!(test_line_numbers("crates/a/tests/it/main.rs", "fn a() {}\n"), [1]);
        assert_eq!(test_line_numbers("crates/a/src/plan/tests.rs", "fn a() {}\n"), [1]);
        assert_eq!(test_line_numbers("crates/a/src/b.rs", "#![cfg(test)]\nfn a() {}\n"), [1, 2]);
    }

    #[test]
    fn production_code_keeps_its_line_numbers() {
        let text = "fn a() {}\n#[cfg(test)]\nfn b() {}\nfn c() {} // why\n";
        let source = Source::parse("crates/a/src/b.rs", text);
        assert_eq!(source.production_code().trim_end(), "fn a() {}\n\n\nfn c() {}");
        assert_eq!(source.production().count(), 2);
    }

    #[test]
    fn a_line_knows_its_longest_literal() {
        let source =
            Source::parse("crates/a/src/b.rs", "f(\"ab\", \"a b c\"); // \"longer than\"\n");
        let lengths: Vec<usize> = source.lines.iter().map(|line| line.literal_length).collect();
        assert_eq!(lengths, [7]);
    }
}
