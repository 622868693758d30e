//! Rule: a link in a document leads to a file or folder of the workspace, and to a heading that is
//! there. Links to other sites are not followed.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Finding, Rule};
use super::tree::File;

/// Checks every relative link of every Markdown file.
pub fn check(files: &[File]) -> Vec<Finding> {
    let documents = files.iter().filter(|file| is_document(&file.path));
    let headings: BTreeMap<&str, BTreeSet<String>> =
        documents.clone().map(|file| (file.path.as_str(), headings(&file.text))).collect();
    let mut findings = Vec::new();
    for file in documents {
        for (line, target) in links(&file.text) {
            if let Some(wrong) = mistake(files, &headings, &file.path, &target) {
                findings.push(Finding {
                    path: file.path.clone(),
                    line,
                    rule: Rule::Links,
                    wrong,
                    remedy: "name a file of the workspace, and a heading as its page has it",
                });
            }
        }
    }
    findings
}

fn is_document(path: &str) -> bool {
    path.ends_with(".md")
}

fn mistake(
    files: &[File],
    headings: &BTreeMap<&str, BTreeSet<String>>,
    from: &str,
    target: &str,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { from.to_owned() } else { resolved(from, path) };
    let folder = format!("{path}/");
    let is_there = |file: &File| file.path == path || file.path.starts_with(&folder);
    if !path.is_empty() && !files.iter().any(is_there) {
        return Some(format!("`{target}` leads nowhere"));
    }
    let known = headings.get(path.as_str())?;
    let is_heading = heading.is_empty() || known.contains(heading);
    (!is_heading).then(|| format!("`{path}` has no heading `#{heading}`"))
}

/// A path as it is from the workspace root, written in a file of this path.
fn resolved(from: &str, path: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The lines that are no code, each with its number.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push((index + 1, line));
        }
    }
    lines
}

/// Where the links of a text lead, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        // What stands between backticks is shown, and no link.
        let plain: String = line.split('`').step_by(2).collect();
        for rest in plain.split("](").skip(1) {
            let target = rest.split_once(')').and_then(|(inside, _)| inside.split(' ').next());
            links.extend(target.map(|target| (number, target.to_owned())));
        }
    }
    links
}

/// The headings of a text as links name them.
fn headings(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut headings = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let name: String = title.trim().to_lowercase().chars().filter(|c| kept(*c)).collect();
        let name = name.replace(' ', "-");
        let count = seen.entry(name.clone()).or_default();
        headings.insert(if *count == 0 { name } else { format!("{name}-{count}") });
        *count += 1;
    }
    headings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let files = [
            file("docs/guides/a.md", text),
            file("docs/b.md", "# Top\n## 4. Calls and `x`\n## Same\n## Same\n```sh\n# none\n```\n"),
            file("LICENSE", "free"),
        ];
        check(&files).iter().map(|finding| format!("{}: {}", finding.line, finding.wrong)).collect()
    }

    #[test]
    fn what_is_there_is_found() {
        let good = "[a](../b.md) [b](../b.md#4-calls-and-x) [c](../b.md#same-1) [d](#own)\n\
                    [e](../../LICENSE) [f](https://example.com/x.md#y) [g](../guides) `[h](none)`\n\
                    # Own\n```text\n[i](none)\n```\n";
        assert_eq!(found(good), Vec::<String>::new());
    }

    #[test]
    fn what_is_not_there_is_told() {
        assert_eq!(found("x\n[a](c.md)"), ["2: `c.md` leads nowhere"]);
        assert_eq!(found("[a](../b.md#none)"), ["1: `docs/b.md` has no heading `#none`"]);
        assert_eq!(found("[a](#gone)"), ["1: `docs/guides/a.md` has no heading `#gone`"]);
    }
}
