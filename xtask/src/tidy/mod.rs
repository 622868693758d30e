//! `cargo xtask tidy`: the house rules as a check. Each rule is a function from sources to
//! findings; the lists here are all there are.

mod finding;
mod lexer;
pub mod source;
pub mod tree;
mod layers;
mod paths;
mod staircase;
mod tokens;
mod shape;
mod realm;
mod ranges;
mod machine_paths;
mod invariants;
mod requirements;
mod query_rules;
mod links;
mod exceptions;

use std::path::Path;

use crate::shell::Failure;
use exceptions::EXCEPTIONS;
use finding::Finding;
use source::Source;
use tree::Tree;

/// Rules that look at one source at a time.
const SOURCE_RULES: &[fn(&Source) -> Vec<Finding>] = &[
    tokens::clock,
    tokens::clients,
    tokens::banned,
    shape::head,
    shape::name,
    realm::named,
    ranges::given,
];

/// Checks the whole tree and prints every finding; any finding is a failure.
pub fn run(root: &Path) -> Result<(), Failure> {
    let findings = check(root)?;
    if findings.is_empty() {
        println!("   the tree is tidy");
        return Ok(());
    }
    for finding in &findings {
        eprintln!("{finding}");
    }
    Err(Failure::new(format!(
        "house rules broken in `{}` places; each line above says what to do",
        findings.len()
    )))
}

fn check(root: &Path) -> Result<Vec<Finding>, Failure> {
    let tree = Tree::read(root)?;
    let sources = tree.sources();
    let mut findings = layers::check(&tree.manifests());
    findings.extend(staircase::check(&sources));
    findings.extend(tree.files.iter().flat_map(machine_paths::check));
    findings.extend(invariants::check(&tree.files, &sources));
    findings.extend(requirements::check(&tree.files, &sources));
    findings.extend(query_rules::check(&tree.files));
    findings.extend(links::check(&tree.files));
    for rule in SOURCE_RULES {
        findings.extend(sources.iter().flat_map(rule));
    }
    let mut findings = exceptions::apply(findings, EXCEPTIONS);
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell;

    #[test]
    fn the_tree_is_tidy() {
        match check(&shell::workspace_root()) {
            Ok(findings) => {
                let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
                assert!(lines.is_empty(), "\n{}", lines.join("\n"));
            }
            Err(failure) => panic!("{failure}"),
        }
    }
}
