//! Rule: which crate may import which. The table below is the architecture; cargo refuses
//! circles, but only this table keeps siblings apart.

use super::finding::{Finding, Rule};
use super::tree::File;

/// Every crate of ours and the crates it may name in `[dependencies]`. Development dependencies
/// are free: a test may use anything, above all `testkit`.
const LAYERS: &[(&str, &[&str])] = &[
    ("kernel", &[]),
    ("wire", &[]),
    ("outbound", &["kernel"]),
    ("identity", &["kernel", "outbound"]),
    ("query", &["kernel"]),
    ("transfer", &["kernel", "query"]),
    ("policy", &["kernel", "query"]),
    ("demo", &["kernel", "wire"]),
    ("engine", &["kernel"]),
    ("tools", &["kernel", "wire", "outbound", "query"]),
    ("upstreams", &["kernel", "wire", "outbound"]),
    ("stores", &["kernel", "query"]),
    ("llms", &["kernel", "outbound", "demo"]),
    ("sinks", &["kernel", "outbound"]),
    ("telemetry", &["kernel", "outbound"]),
    (
        "project",
        &[
            "kernel", "wire", "outbound", "query", "demo", "engine", "tools", "upstreams", "llms",
            "sinks", "telemetry",
        ],
    ),
    (
        "edge",
        &[
            "kernel", "query", "wire", "outbound", "identity", "policy", "engine", "upstreams",
            "telemetry", "project",
        ],
    ),
    // The endpoints: none of them imports another.
    (
        "rest",
        &[
            "kernel", "query", "wire", "outbound", "identity", "policy", "engine", "upstreams",
            "telemetry", "project", "edge",
        ],
    ),
    (
        "mcp",
        &[
            "kernel", "query", "wire", "outbound", "identity", "policy", "engine", "tools",
            "upstreams", "telemetry", "project", "edge",
        ],
    ),
    (
        "a2a",
        &[
            "kernel", "wire", "outbound", "identity", "policy", "engine", "upstreams", "telemetry",
            "project", "edge",
        ],
    ),
    (
        "compat",
        &[
            "kernel", "query", "wire", "outbound", "identity", "policy", "engine", "upstreams",
            "telemetry", "project", "edge",
        ],
    ),
    (
        "server",
        &[
            "kernel", "query", "wire", "outbound", "identity", "policy", "demo", "engine", "tools",
            "upstreams", "stores", "llms", "sinks", "telemetry", "project", "edge", "rest", "mcp",
            "a2a", "compat",
        ],
    ),
    (
        "waypost",
        &[
            "kernel", "query", "wire", "outbound", "identity", "policy", "demo", "engine", "tools",
            "upstreams", "stores", "llms", "sinks", "telemetry", "project", "server",
        ],
    ),
    ("testkit", &["kernel", "wire", "query", "engine", "stores", "tools", "upstreams", "project"]),
    ("fixture", &["kernel", "query", "wire", "engine", "tools", "project", "server", "testkit"]),
    (
        "bench",
        &[
            "kernel", "query", "wire", "outbound", "demo", "engine", "tools", "upstreams",
            "stores", "llms", "sinks", "telemetry", "project", "server", "testkit",
        ],
    ),
    // No member of the workspace: it must not change how the product is built.
    ("bench-grpc", &[]),
    ("xtask", &[]),
];

/// Checks the manifests against the table; only crates that exist are looked at.
pub fn check(files: &[&File]) -> Vec<Finding> {
    let manifests: Vec<Manifest> = files.iter().filter_map(|file| Manifest::read(file)).collect();
    let ours: Vec<&str> = manifests.iter().map(|manifest| manifest.name.as_str()).collect();
    manifests.iter().flat_map(|manifest| manifest.findings(&ours)).collect()
}

/// What the rule needs to know of a `Cargo.toml`.
struct Manifest {
    path: String,
    name: String,
    name_line: usize,
    /// With the line that names it.
    dependencies: Vec<(usize, String)>,
}

impl Manifest {
    /// Nothing when the file describes no package.
    fn read(file: &File) -> Option<Self> {
        let mut section = String::new();
        let mut package = None;
        let mut dependencies = Vec::new();
        for (index, line) in file.text.lines().enumerate() {
            let number = index + 1;
            let line = line.trim();
            if let Some(header) = line.strip_prefix('[') {
                section = header.split(']').next().unwrap_or_default().to_owned();
                let detailed = section.rsplit_once('.');
                if let Some((table, name)) = detailed
                    && is_dependency_table(table)
                {
                    dependencies.push((number, name.to_owned()));
                }
            } else if section == "package" && key(line) == Some("name") {
                package = quoted(line).map(|name| (name, number));
            } else if is_dependency_table(&section) {
                dependencies.extend(dependency(line).map(|name| (number, name)));
            }
        }
        let (name, name_line) = package?;
        Some(Self { path: file.path.clone(), name, name_line, dependencies })
    }

    fn findings(&self, ours: &[&str]) -> Vec<Finding> {
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == self.name) else {
            return vec![Finding {
                path: self.path.clone(),
                line: self.name_line,
                rule: Rule::Layers,
                wrong: format!("crate `{}` has no place in the layers", self.name),
                remedy: "give it a row in `xtask/src/tidy/layers.rs`, with a reason in the commit",
            }];
        };
        self.dependencies
            .iter()
            .filter(|(_, name)| {
                let name = name.as_str();
                ours.contains(&name) && !allowed.contains(&name)
            })
            .map(|(line, name)| Finding {
                path: self.path.clone(),
                line: *line,
                rule: Rule::Layers,
                wrong: format!("crate `{}` may not import `{name}`", self.name),
                remedy: "put a contract into `kernel` and hand the implementation in from above",
            })
            .collect()
    }
}

fn is_dependency_table(section: &str) -> bool {
    let for_target = section.starts_with("target.") && section.ends_with(".dependencies");
    for_target || section == "dependencies" || section == "build-dependencies"
}

/// The crate a line of a dependency table asks for, behind any other name it is given.
fn dependency(line: &str) -> Option<String> {
    let name = key(line)?;
    let renamed = line.split_once("package").and_then(|(_, after)| quoted(after));
    Some(renamed.unwrap_or_else(|| name.to_owned()))
}

/// `kernel` in `kernel.workspace = true` and in `kernel = { .. }`.
fn key(line: &str) -> Option<&str> {
    if line.starts_with('#') {
        return None;
    }
    let (left, _) = line.split_once('=')?;
    left.split('.').next().map(|name| name.trim().trim_matches('"'))
}

fn quoted(text: &str) -> Option<String> {
    text.split('"').nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(name: &str, rest: &str) -> File {
        File {
            path: format!("crates/{name}/Cargo.toml"),
            text: format!("[package]\nname = \"{name}\"\n\n{rest}"),
        }
    }

    fn report(files: &[File]) -> Vec<String> {
        let files: Vec<&File> = files.iter().collect();
        check(&files).iter().map(|finding| format!("{}: {}", finding.line, finding.wrong)).collect()
    }

    #[test]
    fn a_sibling_import_is_found() {
        let files = [
            manifest("kernel", "[dependencies]\nserde.workspace = true\n"),
            manifest("stores", "[dependencies]\nkernel.workspace = true\n"),
            manifest(
                "engine",
                "[dependencies]\nkernel.workspace = true\nstores.workspace = true\n",
            ),
        ];
        assert_eq!(report(&files), ["6: crate `engine` may not import `stores`"]);
    }

    #[test]
    fn development_dependencies_are_free() {
        let files = [
            manifest("kernel", "[dev-dependencies]\ntestkit.workspace = true\n"),
            manifest("testkit", "[dependencies]\nkernel = { path = \"../kernel\" }\n"),
        ];
        assert!(report(&files).is_empty());
    }

    #[test]
    fn other_spellings_are_seen_through() {
        let files = [
            manifest("tools", ""),
            manifest("wire", "[dependencies.tools]\nworkspace = true\n"),
            manifest("kernel", "[dependencies]\nt = { path = \"..\", package = \"tools\" }\n"),
            manifest("llms", "[target.'cfg(unix)'.dependencies]\ntools = \"1\"\n"),
        ];
        assert_eq!(
            report(&files),
            [
                "4: crate `wire` may not import `tools`",
                "5: crate `kernel` may not import `tools`",
                "5: crate `llms` may not import `tools`",
            ]
        );
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        let files = [manifest("shed", "")];
        assert_eq!(report(&files), ["2: crate `shed` has no place in the layers"]);
    }

    #[test]
    fn the_table_is_a_staircase_itself() {
        for (index, (name, allowed)) in LAYERS.iter().enumerate() {
            for import in *allowed {
                let above = LAYERS[..index].iter().any(|(earlier, _)| earlier == import);
                assert!(above, "`{name}` imports `{import}`, which is not listed before it");
            }
        }
    }
}
