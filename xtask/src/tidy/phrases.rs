//! Rule: texts that users read are standard technical English. Checked are all literals of code
//! that ships, the doc comments of files whose doc comments become help texts or schemas, and the
//! pages for users.

use super::finding::{Finding, Rule};
use super::lexer::{has_token, is_word};
use super::source::{Line, Source};
use super::tree::File;

/// Tests and what only tests use: no user reads it.
const UNREAD: &[&str] = &["crates/testkit/", "crates/fixture/"];

/// Where pages for users are.
const PAGES: &[&str] = &["README.md", "docs/", "examples/"];

/// Pages that are left as they are: decisions are history.
const KEPT: &[&str] = &["docs/decisions/"];

/// A source with one of these shows its doc comments to users.
const SHOWS_DOCS: &[&str] = &["clap::", "JsonSchema"];

/// Stored in journals or hashed with a plan since the first release: these stay as they are.
const STORED: &[&str] = &[
    "nobody answered in time",
    "nobody knows whether these calls happened",
    "somebody sent: it is no instruction",
];

/// A phrase that is never right in such a text.
struct Phrase {
    /// In lower case, with single blanks.
    words: &'static str,
    remedy: &'static str,
}

const fn phrase(words: &'static str, remedy: &'static str) -> Phrase {
    Phrase { words, remedy }
}

const ACTOR: &str = "name the actor, such as the caller, a user or an administrator";
const NO_ACTOR: &str = "write `no one`, or name the actor, such as no caller or no client";
const NOTIFIED: &str = "name the actor and write `notifies`, `reports` or `returns`";
const CONTINUES: &str = "write `continues` or `resumes`";

const PHRASES: &[Phrase] = &[
    phrase("whoever", ACTOR),
    phrase("somebody", ACTOR),
    phrase("nobody", NO_ACTOR),
    phrase("is told", NOTIFIED),
    phrase("are told", NOTIFIED),
    phrase("was told", NOTIFIED),
    phrase("were told", NOTIFIED),
    phrase("be told", NOTIFIED),
    phrase("been told", NOTIFIED),
    phrase("not told", NOTIFIED),
    phrase("goes on", CONTINUES),
    phrase("went on", CONTINUES),
    phrase("goes before", "write `overrides` or `takes precedence over`"),
    phrase("that is none", "write `invalid`"),
    phrase("must be there", "write `required`"),
    phrase("made of rules", "write `rule-based`"),
    phrase("said by us", "write `set by Waypost`"),
    phrase("is looked", "name the actor and write `checks` or `polls`"),
    phrase("chance in it", "write `jitter`"),
    phrase("comes to", "write `results in`, `reaches` or `is`"),
    phrase("came of it", "write `the outcome`"),
    phrase("anew", "write `again`"),
    phrase("road", "write `path`"),
];

/// Finds these phrases in texts that users read.
pub fn standard(source: &Source) -> Vec<Finding> {
    if UNREAD.iter().any(|folder| source.path.starts_with(folder)) {
        return Vec::new();
    }
    let mut findings = in_prose(source, |line| Some(&line.literal));
    if source.production().any(|line| SHOWS_DOCS.iter().any(|token| has_token(&line.code, token))) {
        let is_doc = |line: &Line| line.comment.trim_start().starts_with("///");
        findings.extend(in_prose(source, |line| is_doc(line).then_some(&line.comment)));
    }
    findings
}

/// Finds them in pages for users, outside of blocks of code.
pub fn in_pages(files: &[File]) -> Vec<Finding> {
    let is_in = |path: &str, places: &[&str]| places.iter().any(|place| path.starts_with(place));
    let pages = files.iter().filter(|file| {
        let path = file.path.as_str();
        path.ends_with(".md") && is_in(path, PAGES) && !is_in(path, KEPT)
    });
    pages.flat_map(in_page).collect()
}

fn in_page(page: &File) -> Vec<Finding> {
    let mut prose = Prose::default();
    let mut is_code = false;
    for (index, line) in page.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            // What stands between backticks is a name or a command.
            let plain: String = line.split('`').step_by(2).collect();
            prose.add(index + 1, &plain);
        }
    }
    findings(&prose, &page.path)
}

/// Finds the phrases in one part of the lines that reach the product.
fn in_prose(source: &Source, part: impl Fn(&Line) -> Option<&String>) -> Vec<Finding> {
    let mut prose = Prose::default();
    for line in source.production() {
        if let Some(text) = part(line) {
            prose.add(line.number, text);
        }
    }
    findings(&prose, &source.path)
}

fn findings(prose: &Prose, path: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for banned in PHRASES {
        findings.extend(prose.lines_with(banned.words).map(|line| Finding {
            path: path.to_owned(),
            line,
            rule: Rule::Phrases,
            wrong: format!("`{}` in a text that users read", banned.words),
            remedy: banned.remedy,
        }));
    }
    findings
}

/// A text without its line breaks, so that a phrase is found across them.
#[derive(Default)]
struct Prose {
    /// In lower case, with single blanks.
    text: String,
    /// The line of every byte of the text.
    lines: Vec<usize>,
}

impl Prose {
    fn add(&mut self, number: usize, line: &str) {
        for c in line.replace("\\n", " ").to_lowercase().chars().chain([' ']) {
            // Slashes begin comments, and backslashes end a line inside of a literal.
            let is_blank = c.is_whitespace() || c == '/' || c == '\\';
            if !is_blank {
                self.text.push(c);
            } else if !self.text.ends_with(' ') {
                self.text.push(' ');
            }
            self.lines.resize(self.text.len(), number);
        }
    }

    fn lines_with(&self, words: &'static str) -> impl Iterator<Item = usize> {
        let found = self.text.match_indices(words);
        let prose = found.filter(move |(at, _)| self.is_prose(*at, at + words.len()));
        prose.map(move |(at, _)| self.lines[at])
    }

    /// False for a part of a longer word, for a stored text and for what is a name: a member of
    /// JSON (`"road"`), a value in a format string (`{road}`), code in backticks.
    fn is_prose(&self, start: usize, end: usize) -> bool {
        let before = self.text[..start].chars().next_back();
        let after = self.text[end..].chars().next();
        let is_part = before.is_some_and(is_word) || after.is_some_and(is_word);
        let is_name = matches!(
            (before, after),
            (Some('"'), Some('"')) | (Some('`'), Some('`')) | (Some('{'), Some('}' | ':'))
        );
        let is_stored = STORED.iter().any(|stored| self.text[start..].starts_with(stored));
        !is_part && !is_name && !is_stored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(path: &str, text: &str) -> Vec<String> {
        let findings = standard(&Source::parse(path, text));
        findings.iter().map(|finding| format!("{}: {}", finding.line, finding.wrong)).collect()
    }

    #[test]
    fn pages_hold_to_it_outside_of_code() {
        let page = |path: &str, text: &str| {
            in_pages(&[File { path: path.to_owned(), text: text.to_owned() }])
                .iter()
                .map(|finding| finding.line)
                .collect::<Vec<_>>()
        };
        let text = "It goes\non. `nobody` knows.\n```sh\nwhoever\n```\nNobody knows.\n";
        assert_eq!(page("README.md", text), [6, 1]);
        assert_eq!(page("docs/guides/other.md", text), [6, 1]);
        for path in ["docs/decisions/0001-a.md", "CONTRIBUTING.md", "docs/deploy/a.service"] {
            assert!(page(path, text).is_empty(), "{path}");
        }
    }

    #[test]
    fn every_phrase_is_found_in_a_literal() {
        for Phrase { words, .. } in PHRASES {
            let text = format!("fn f() {{\n    fail(\"a {words}, b\");\n}}\n");
            let expected = format!("2: `{words}` in a text that users read");
            assert_eq!(report("crates/engine/src/gate/mod.rs", &text), [expected], "{words}");
        }
    }

    #[test]
    fn a_broken_line_and_a_capital_hide_nothing() {
        let text = "const A: &str = \"It goes \\\n    on.\\nNobody knows.\";\n";
        assert_eq!(
            report("crates/engine/src/gate/mod.rs", text),
            ["2: `nobody` in a text that users read", "1: `goes on` in a text that users read",]
        );
    }

    #[test]
    fn two_literals_are_two_texts() {
        let text = "fn f() {\n    g(\"it goes\", \"on\");\n}\n";
        assert!(report("crates/engine/src/gate/mod.rs", text).is_empty());
    }

    #[test]
    fn names_and_longer_words_are_no_phrases() {
        let text = "fn nobody() { f(\"road\", \"a {road} b {road:?}\", \"`road` broadly\"); }\n";
        assert!(report("crates/engine/src/gate/mod.rs", text).is_empty());
    }

    #[test]
    fn stored_texts_stay() {
        let text = "fn f() { g(\"nobody answered in time\", \"nobody answered\"); }\n";
        assert_eq!(report("crates/kernel/src/ask/mod.rs", text).len(), 1);
    }

    #[test]
    fn doc_comments_count_where_they_are_shown() {
        let text = "use clap::Args;\n/// It goes\n/// on.\n// nobody\nstruct A;\n";
        let path = "crates/waypost/src/commands/up.rs";
        assert_eq!(report(path, text), ["2: `goes on` in a text that users read"]);
        let schema = text.replace("use clap::Args", "use schemars::JsonSchema");
        assert_eq!(report(path, &schema).len(), 1);
        assert!(report(path, &text.replace("clap", "serde")).is_empty());
    }

    #[test]
    fn tests_are_not_checked() {
        let text = "fn f() { g(\"nobody knows\"); }\n";
        assert!(report("crates/testkit/src/kill.rs", text).is_empty());
        assert!(report("crates/engine/tests/it/main.rs", text).is_empty());
        let behind = format!("#[cfg(test)]\nmod tests {{\n{text}}}\n");
        assert!(report("crates/engine/src/gate/mod.rs", &behind).is_empty());
        assert_eq!(report("crates/engine/src/gate/mod.rs", text).len(), 1);
    }
}
