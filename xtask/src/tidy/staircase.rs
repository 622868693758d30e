//! Rule: inside a crate, the order of the `mod` lines is the import order. A module imports only
//! what stands above it; a folder's `mod.rs` may import its children, and they may use the items
//! of their `mod.rs`. So no circle of modules can begin.

use std::collections::BTreeMap;

use super::finding::{Finding, Rule};
use super::paths::{self, WrittenPath};
use super::source::Source;

/// Re-exports are followed this far: enough for any honest chain, and a circle of them ends.
const HOPS_MAX: usize = 8;

/// Checks every crate whose `lib.rs` or `main.rs` is among the sources.
pub fn check(sources: &[Source]) -> Vec<Finding> {
    let by_path: BTreeMap<&str, &Source> =
        sources.iter().map(|source| (source.path.as_str(), source)).collect();
    by_path
        .keys()
        .filter(|path| path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs"))
        .flat_map(|path| Crate::read(path, &by_path).findings())
        .collect()
}

/// All modules that one root file declares, directly or through others.
struct Crate<'a> {
    modules: Vec<Module<'a>>,
}

struct Module<'a> {
    /// From the crate's root, which has the empty path.
    path: Vec<String>,
    source: &'a Source,
    code: String,
    /// In the order of the `mod` lines: this order is the rule.
    children: Vec<String>,
    /// What a child can reach by naming this module.
    imports: Vec<WrittenPath>,
}

impl<'a> Crate<'a> {
    fn read(root: &str, sources: &BTreeMap<&str, &'a Source>) -> Self {
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut modules = Vec::new();
        let mut waiting = vec![(Vec::new(), root.to_owned(), folder.to_owned())];
        while let Some((path, file, folder)) = waiting.pop() {
            let Some(source) = sources.get(file.as_str()).copied() else {
                continue;
            };
            let children = declared_modules(source);
            for child in &children {
                let child_folder = format!("{folder}/{child}");
                let single = format!("{child_folder}.rs");
                let is_single = sources.contains_key(single.as_str());
                let child_file = if is_single { single } else { format!("{child_folder}/mod.rs") };
                let mut child_path = path.clone();
                child_path.push(child.clone());
                waiting.push((child_path, child_file, child_folder));
            }
            let code = source.production_code();
            let imports = paths::imports(&code);
            modules.push(Module { path, source, code, children, imports });
        }
        Self { modules }
    }

    fn findings(&self) -> Vec<Finding> {
        // The root imports what it likes: nothing stands above it.
        let below_root = self.modules.iter().filter(|module| !module.path.is_empty());
        below_root.flat_map(|module| self.findings_in(module)).collect()
    }

    fn findings_in(&self, module: &Module<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for written in paths::anchored(&module.code) {
            let Some((wrong, remedy)) = self.judge(&module.path, &written) else {
                continue;
            };
            findings.push(Finding {
                path: module.source.path.clone(),
                line: written.line,
                rule: Rule::Staircase,
                wrong,
                remedy,
            });
        }
        // A group that takes ten names from one module is one mistake.
        findings.dedup();
        findings
    }

    /// What is wrong with this import, and what to do; nothing if it is in order.
    fn judge(&self, from: &[String], written: &WrittenPath) -> Option<(String, &'static str)> {
        let named = absolute(from, &written.segments);
        if written.is_glob() && encloses(&named, from) {
            let wrong =
                format!("`{}::*` takes all of an outer module", written.segments.join("::"));
            return Some((wrong, "import by name, so that the order can be checked"));
        }
        let target = self.target(from, named);
        if self.is_above(from, &target) {
            return None;
        }
        let wrong = format!(
            "module `{}` imports `{}`, which is declared below it",
            from.join("::"),
            target.join("::")
        );
        Some((wrong, "move the shared part up, or change the order of the `mod` lines"))
    }

    /// The module that really holds what a path names, seen through the outer modules' imports.
    fn target(&self, from: &[String], named: Vec<String>) -> Vec<String> {
        let mut named = named;
        for _ in 0..HOPS_MAX {
            let home = self.home(&named);
            let item = named.get(home.len());
            let imported = item.and_then(|item| self.imported(home, item));
            match imported {
                Some(elsewhere) if encloses(home, from) => named = elsewhere,
                _ => break,
            }
        }
        self.home(&named).to_vec()
    }

    /// The longest beginning of a path that is a module.
    fn home<'p>(&self, path: &'p [String]) -> &'p [String] {
        let mut home = path;
        while let Some((_, shorter)) = home.split_last()
            && self.module(home).is_none()
        {
            home = shorter;
        }
        home
    }

    fn module(&self, path: &[String]) -> Option<&Module<'a>> {
        self.modules.iter().find(|module| module.path == path)
    }

    /// Where a module got a name from, if it imported it from within the crate.
    fn imported(&self, home: &[String], name: &str) -> Option<Vec<String>> {
        let module = self.module(home)?;
        let import = module.imports.iter().find(|import| import.name == name)?;
        let first = import.segments.first()?;
        let is_ours = paths::ANCHORS.contains(&first.as_str()) || module.children.contains(first);
        is_ours.then(|| absolute(home, &import.segments))
    }

    /// True as well for a module's own inside and for the modules it lies in.
    fn is_above(&self, from: &[String], target: &[String]) -> bool {
        let shared = from.iter().zip(target).take_while(|(mine, theirs)| mine == theirs).count();
        let (Some(mine), Some(theirs)) = (from.get(shared), target.get(shared)) else {
            return true;
        };
        let order = self
            .module(&from[..shared])
            .map_or(&[] as &[String], |outer| outer.children.as_slice());
        let place = |name: &String| order.iter().position(|child| child == name);
        place(theirs) < place(mine)
    }
}

/// True when `outer` is a module that `inner` lies in, not `inner` itself.
fn encloses(outer: &[String], inner: &[String]) -> bool {
    outer.len() < inner.len() && inner.starts_with(outer)
}

/// A path as seen from the crate's root.
fn absolute(from: &[String], segments: &[String]) -> Vec<String> {
    let mut path = from.to_vec();
    for segment in segments {
        match segment.as_str() {
            "crate" => path.clear(),
            "super" => {
                path.pop();
            }
            "self" => {}
            name => path.push(name.to_owned()),
        }
    }
    path
}

/// The `mod name;` lines that reach the product, in their order.
fn declared_modules(source: &Source) -> Vec<String> {
    source
        .production()
        .filter_map(|line| {
            let declaration = without_visibility(line.code.trim_end());
            let name = declaration.strip_prefix("mod ")?.strip_suffix(';')?;
            Some(name.trim().to_owned())
        })
        .collect()
}

fn without_visibility(line: &str) -> &str {
    let Some(rest) = line.strip_prefix("pub") else {
        return line;
    };
    let after_scope = rest.strip_prefix('(').and_then(|scope| scope.split_once(')'));
    after_scope.map_or(rest, |(_, after)| after).trim_start()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::parse(&format!("crates/a/src/{path}"), text))
            .collect();
        check(&sources)
            .iter()
            .map(|finding| {
                let file = finding.path.trim_start_matches("crates/a/src/");
                format!("{file}:{}: {}", finding.line, finding.wrong)
            })
            .collect()
    }

    #[test]
    fn an_import_from_below_is_found() {
        let files = [
            ("lib.rs", "mod plan;\npub mod session; // why\npub(crate) mod next;\n"),
            ("plan.rs", "use crate::{\n    next::A,\n    session::{B, C},\n};\n"),
            ("session.rs", "use crate::plan::Plan;\nfn f() { super::next::g() }\n"),
            ("next.rs", "use crate::{plan, session};\n"),
        ];
        assert_eq!(
            report(&files),
            [
                "session.rs:2: module `session` imports `next`, which is declared below it",
                "plan.rs:2: module `plan` imports `next`, which is declared below it",
                "plan.rs:3: module `plan` imports `session`, which is declared below it",
            ]
        );
    }

    #[test]
    fn folders_follow_the_same_order() {
        let files = [
            ("main.rs", "mod plan;\nmod next;\nmod value;\n"),
            ("plan.rs", ""),
            ("value.rs", ""),
            (
                "next/mod.rs",
                "mod frame;\nmod step;\nuse frame::F;\nuse self::step::S;\nstruct N;\n",
            ),
            ("next/frame.rs", "use super::N;\nuse crate::plan::P;\nuse super::step::S;\n"),
            (
                "next/step.rs",
                "use super::frame::F;\nuse crate::next::frame;\nuse crate::value::V;\n",
            ),
        ];
        assert_eq!(
            report(&files),
            [
                "next/step.rs:3: module `next::step` imports `value`, which is declared below it",
                "next/frame.rs:3: module `next::frame` imports `next::step`, \
                 which is declared below it",
            ]
        );
    }

    #[test]
    fn a_folder_beside_its_file_is_a_folder_too() {
        let files = [
            ("lib.rs", "mod next;\n"),
            ("next.rs", "mod frame;\nmod step;\n"),
            ("next/frame.rs", "use super::step::S;\n"),
            ("next/step.rs", ""),
        ];
        assert_eq!(report(&files).len(), 1);
    }

    #[test]
    fn re_exports_are_seen_through() {
        let files = [
            ("lib.rs", "mod plan;\nmod next;\npub use next::{Next as N, Own};\npub struct Root;\n"),
            ("plan.rs", "use crate::N;\nuse crate::Root;\n"),
            ("next.rs", "use crate::Own;\nuse super::plan;\n"),
        ];
        assert_eq!(
            report(&files),
            ["plan.rs:1: module `plan` imports `next`, which is declared below it"]
        );
    }

    #[test]
    fn a_circle_of_re_exports_ends() {
        let files = [
            ("lib.rs", "mod plan;\nuse crate::A as B;\nuse crate::B as A;\n"),
            ("plan.rs", "use crate::A;\n"),
        ];
        assert!(report(&files).is_empty());
    }

    #[test]
    fn a_glob_of_an_outer_module_is_found() {
        let files = [
            ("lib.rs", "mod plan;\nmod next;\n"),
            ("plan.rs", "enum Kind { A }\nuse self::Kind::*;\nuse super::*;\n"),
            ("next.rs", "use crate::plan::*;\n"),
        ];
        assert_eq!(report(&files), ["plan.rs:3: `super::*` takes all of an outer module"]);
    }

    #[test]
    fn tests_comments_and_literals_are_exempt() {
        let files = [
            ("lib.rs", "mod plan;\nmod next;\n#[cfg(test)]\nmod tests;\n"),
            (
                "plan.rs",
                "// crate::next::A\nconst S: &str = \"crate::next\";\n#[cfg(test)]\nmod tests {\n\
                 use super::*;\nuse crate::next::A;\n}\n",
            ),
            ("next.rs", ""),
            ("tests.rs", "use crate::next::A;\n"),
        ];
        assert!(report(&files).is_empty());
    }
}
