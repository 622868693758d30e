//! Reads the paths out of a module's code: those that begin at `crate`, `super` or `self`, in a
//! `use` or anywhere else, and those of all `use` declarations. Groups are taken apart.

use super::lexer::is_word;

/// Words that anchor a path in our own crate.
pub const ANCHORS: &[&str] = &["crate", "super", "self"];

/// One path as it was written, alone or as a branch of a group.
#[derive(Debug, PartialEq, Eq)]
pub struct WrittenPath {
    /// Where its last branch begins.
    pub line: usize,
    /// Its names from the first; a final `self` of a group is left out.
    pub segments: Vec<String>,
    /// What it is called here: its last name, what follows `as`, or `*`.
    pub name: String,
}

impl WrittenPath {
    /// True for `path::*`.
    pub fn is_glob(&self) -> bool {
        self.name == "*"
    }
}

/// All paths that begin at an anchor. Inline modules are not followed: this house has none
/// outside of tests.
pub fn anchored(code: &str) -> Vec<WrittenPath> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let continues = at > 0 && tokens[at - 1].text == "::";
        let leads_on = text(&tokens, at + 1) == "::";
        if ANCHORS.contains(&token.text) && leads_on && !continues {
            read_branch(&tokens, at, &[], &mut found);
        }
    }
    found
}

/// All paths of `use` declarations.
pub fn imports(code: &str) -> Vec<WrittenPath> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.text == "use" {
            read_branch(&tokens, at + 1, &[], &mut found);
        }
    }
    found
}

struct Token<'a> {
    text: &'a str,
    line: usize,
}

fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if is_word(first) {
                rest.find(|c: char| !is_word(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            let (text, after) = rest.split_at(length);
            tokens.push(Token { text, line: index + 1 });
            rest = after.trim_start();
        }
    }
    tokens
}

fn text<'a>(tokens: &[Token<'a>], at: usize) -> &'a str {
    tokens.get(at).map_or("", |token| token.text)
}

/// Reads one path, or the group that ends it, and returns the place behind it.
fn read_branch(
    tokens: &[Token<'_>],
    start: usize,
    prefix: &[String],
    found: &mut Vec<WrittenPath>,
) -> usize {
    let mut segments = prefix.to_vec();
    let mut at = start;
    loop {
        match text(tokens, at) {
            "{" => return read_group(tokens, at + 1, &segments, found),
            "*" => {
                found.push(WrittenPath {
                    line: tokens[start].line,
                    segments,
                    name: "*".to_owned(),
                });
                return at + 1;
            }
            word if word.starts_with(is_word) => segments.push(word.to_owned()),
            // A turbofish, or no path at all.
            _ => break,
        }
        at += 1;
        if text(tokens, at) != "::" {
            break;
        }
        at += 1;
    }
    if segments.len() > 1 && segments.last().is_some_and(|last| last == "self") {
        segments.pop();
    }
    let alias = (text(tokens, at) == "as").then(|| text(tokens, at + 1).to_owned());
    if let Some(name) = alias.or_else(|| segments.last().cloned()) {
        let line = tokens.get(start).map_or(0, |token| token.line);
        found.push(WrittenPath { line, segments, name });
    }
    at
}

fn read_group(
    tokens: &[Token<'_>],
    start: usize,
    prefix: &[String],
    found: &mut Vec<WrittenPath>,
) -> usize {
    let mut at = start;
    while at < tokens.len() && text(tokens, at) != "}" {
        at = read_branch(tokens, at, prefix, found);
        while at < tokens.len() && !matches!(text(tokens, at), "," | "}") {
            at += 1;
        }
        if text(tokens, at) == "," {
            at += 1;
        }
    }
    at + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(paths: &[WrittenPath]) -> Vec<String> {
        let one =
            |path: &WrittenPath| format!("{} {} {}", path.line, path.segments.join("/"), path.name);
        paths.iter().map(one).collect()
    }

    #[test]
    fn uses_and_paths_in_code_are_read() {
        let code = "use crate::plan::Plan;\nfn f() -> crate::value::Value { super::g::<u8>() }\n";
        assert_eq!(
            show(&anchored(code)),
            ["1 crate/plan/Plan Plan", "2 crate/value/Value Value", "2 super/g g"]
        );
    }

    #[test]
    fn groups_are_taken_apart() {
        let code =
            "use crate::{\n    a::{self, B as C},\n    d::*,\n    e,\n};\nuse super::super::F;\n";
        assert_eq!(
            show(&anchored(code)),
            ["2 crate/a a", "2 crate/a/B C", "3 crate/d *", "4 crate/e e", "6 super/super/F F",]
        );
    }

    #[test]
    fn what_only_looks_like_a_path_is_left_alone() {
        let code = "pub(crate) fn f(&self) { self.g(); other::self_made(); Self::h(); }\n";
        assert!(anchored(code).is_empty());
    }

    #[test]
    fn imports_need_no_anchor() {
        let code = "pub use plan::{Plan, Step};\nuse std::fmt;\nfn f() -> impl Sized + use<> {}\n";
        assert_eq!(show(&imports(code)), ["1 plan/Plan Plan", "1 plan/Step Step", "2 std/fmt fmt"]);
    }
}
