//! `cargo xtask size`: how many lines of code ship, crate by crate. Tests, comments and blank lines
//! are not counted, nor is what never ships.

use std::collections::BTreeMap;
use std::path::Path;

use crate::shell::Failure;
use crate::tidy::source::{Line, Source};
use crate::tidy::tree::Tree;

/// In `crates/`, but for tests only.
const NEVER_SHIPPED: &str = "testkit";

/// How the report is written.
#[derive(Clone, Copy)]
pub enum Form {
    /// For people.
    Table,
    Json,
}

/// Counts the workspace and prints the report.
pub fn run(root: &Path, form: Form) -> Result<(), Failure> {
    let tree = Tree::read(root)?;
    let report = Report { crates: crates(&tree.sources()) };
    match form {
        Form::Table => print!("{}", report.table()),
        Form::Json => println!("{}", report.json()),
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
struct Report {
    /// In the order of their names.
    crates: Vec<CrateSize>,
}

#[derive(Debug, PartialEq, Eq)]
struct CrateSize {
    name: String,
    files: usize,
    lines: usize,
}

impl Report {
    fn total(&self) -> CrateSize {
        let files = self.crates.iter().map(|size| size.files).sum();
        let lines = self.crates.iter().map(|size| size.lines).sum();
        CrateSize { name: "total".to_owned(), files, lines }
    }

    fn table(&self) -> String {
        let mut table = format!("{:<16}{:>8}{:>10}\n", "crate", "files", "lines");
        for CrateSize { name, files, lines } in self.crates.iter().chain([&self.total()]) {
            table.push_str(&format!("{name:<16}{files:>8}{lines:>10}\n"));
        }
        table
    }

    fn json(&self) -> String {
        // Rust quotes a name as JSON does, as long as it has no control characters.
        let crates = self.crates.iter().map(|CrateSize { name, files, lines }| {
            format!("{{\"name\":{name:?},\"files\":{files},\"lines\":{lines}}}")
        });
        let crates = crates.collect::<Vec<_>>().join(",");
        let CrateSize { files, lines, .. } = self.total();
        format!("{{\"crates\":[{crates}],\"total\":{{\"files\":{files},\"lines\":{lines}}}}}")
    }
}

/// The size of every crate that ships.
fn crates(sources: &[Source]) -> Vec<CrateSize> {
    let test_modules: Vec<String> = sources.iter().flat_map(test_modules).collect();
    let is_test = |path: &str| {
        let in_module = |module: &String| {
            let rest = path.strip_prefix(module.as_str());
            rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        test_modules.iter().any(in_module)
    };
    let mut sizes: BTreeMap<&str, CrateSize> = BTreeMap::new();
    for source in sources.iter().filter(|source| !is_test(&source.path)) {
        let Some(name) = shipped_crate(&source.path) else { continue };
        let lines = source.production().filter(|line| has_code(line)).count();
        let size = sizes.entry(name).or_insert_with(|| CrateSize {
            name: name.to_owned(),
            files: 0,
            lines: 0,
        });
        // A file of tests has no line that ships.
        size.files += usize::from(lines > 0);
        size.lines += lines;
    }
    sizes.into_values().collect()
}

/// `kernel` of `crates/kernel/src/definition/plan.rs`.
fn shipped_crate(path: &str) -> Option<&str> {
    let (name, inside) = path.strip_prefix("crates/")?.split_once('/')?;
    (name != NEVER_SHIPPED && inside.starts_with("src/")).then_some(name)
}

/// A line inside a literal counts as well; blank ones and comments do not.
fn has_code(line: &Line) -> bool {
    !line.code.trim().is_empty() || line.literal_length > 0
}

/// The modules that this source declares for tests only, as paths without an ending.
fn test_modules(source: &Source) -> Vec<String> {
    let folder = folder_of_children(&source.path);
    let declarations = source.lines.iter().filter(|line| line.in_test);
    declarations
        .filter_map(|line| {
            let declaration = line.code.trim().strip_suffix(';')?;
            let (before, name) = declaration.rsplit_once("mod ")?;
            let is_declaration = before.is_empty() || before.starts_with("pub");
            is_declaration.then(|| format!("{folder}/{}", name.trim()))
        })
        .collect()
}

/// Where the files of a module's children are.
fn folder_of_children(path: &str) -> &str {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    match file {
        "lib.rs" | "main.rs" | "mod.rs" => folder,
        _ => path.trim_end_matches(".rs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(name: &str, files: usize, lines: usize) -> CrateSize {
        CrateSize { name: name.to_owned(), files, lines }
    }

    fn count(text: &str) -> usize {
        crates(&[Source::parse("crates/a/src/b.rs", text)]).iter().map(|size| size.lines).sum()
    }

    #[test]
    fn only_lines_with_code_are_counted() {
        assert_eq!(count("//! Head.\n\nfn f() {} // why\n    \n/* a /* b */\nc */ fn g() {}\n"), 2);
        assert_eq!(count("fn f<'a>(c: char) -> bool {\n    // '\n    c == '\"' // \"\n}\n"), 3);
    }

    #[test]
    fn what_stands_in_a_literal_is_code() {
        assert_eq!(count("const A: &str = r#\"\n// no comment\n\n/* nor this\n\"#;\n"), 4);
        assert_eq!(count("const A: &str = \"\\\"// not one\";\nconst B: u8 = 1;\n"), 2);
    }

    #[test]
    fn tests_are_not_counted() {
        assert_eq!(count("fn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n"), 1);
        assert_eq!(count("fn f() {}\n#[cfg(all(test, unix))]\nmod tests {\n    fn g() {}\n}\n"), 1);
        let sources = [
            ("crates/a/src/lib.rs", "mod b;\n#[cfg(test)]\npub(crate) mod stage;\nmod stages;\n"),
            ("crates/a/src/b.rs", "#[cfg(test)]\nmod c;\nfn f() {}\n"),
            ("crates/a/src/b/c.rs", "fn f() {}\n"),
            ("crates/a/src/b/tests.rs", "fn f() {}\n"),
            ("crates/a/src/stage/mod.rs", "fn f() {}\n"),
            ("crates/a/src/stages.rs", "fn f() {}\n"),
            ("crates/a/tests/it.rs", "fn f() {}\n"),
            ("crates/testkit/src/lib.rs", "fn f() {}\n"),
            ("xtask/src/main.rs", "fn main() {}\n"),
        ];
        let sources = sources.map(|(path, text)| Source::parse(path, text));
        assert_eq!(crates(&sources), [size("a", 3, 4)]);
    }

    #[test]
    fn the_report_has_two_forms() {
        let report = Report { crates: vec![size("engine", 2, 30), size("kernel", 10, 1200)] };
        let expected = [
            "crate              files     lines",
            "engine                 2        30",
            "kernel                10      1200",
            "total                 12      1230",
            "",
        ];
        assert_eq!(report.table(), expected.join("\n"));
        assert_eq!(
            report.json(),
            "{\"crates\":[{\"name\":\"engine\",\"files\":2,\"lines\":30},\
             {\"name\":\"kernel\",\"files\":10,\"lines\":1200}],\
             \"total\":{\"files\":12,\"lines\":1230}}"
        );
    }
}
