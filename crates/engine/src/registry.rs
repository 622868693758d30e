//! The tools that code brings, taken in once at the start: each with a name of its own that every
//! door can say, schemas that compile, and what the operator's rules say of it. What the rules keep
//! out is not there.

use kernel::call::ToolSpec;
use kernel::contracts::Tool;
use kernel::ids::{ContentHash, ToolName};
use kernel::names::{Alphabet, MCP_NAME_CHARS_MAX, outward};
use kernel::plan::mistake::{Mistake, meant};
use kernel::rules::{ToolLimits, ToolRules};
use kernel::schema::{Schemas, sentence};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Tools and who brings them, as a person would say it: `the built-in tools`.
pub struct ToolSource {
    /// Who brings them.
    pub name: String,
    /// They.
    pub tools: Vec<Arc<dyn Tool>>,
}

impl ToolSource {
    /// Tools from there.
    pub fn new(name: impl Into<String>, tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { name: name.into(), tools }
    }
}

/// A tool with what the gate needs at every call.
pub(crate) struct Listed {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) spec_hash: ContentHash,
    /// What its calls may cost.
    pub(crate) limits: ToolLimits,
    /// One permit for each of its calls that runs, where they are counted.
    pub(crate) places: Option<Arc<Semaphore>>,
}

/// All tools from code.
pub(crate) struct Registry {
    tools: BTreeMap<ToolName, Listed>,
    /// The names of those that the rules keep out.
    withheld: BTreeSet<ToolName>,
    rules: ToolRules,
}

impl Registry {
    /// The tools of these sources, or all that is wrong with them.
    pub(crate) fn new(
        sources: Vec<ToolSource>,
        rules: ToolRules,
        schemas: &dyn Schemas,
    ) -> Result<Self, Vec<Mistake>> {
        let mut brought: BTreeMap<ToolName, Arc<str>> = BTreeMap::new();
        let mut mistakes = Vec::new();
        let (mut tools, mut withheld) = (BTreeMap::new(), BTreeSet::new());
        for ToolSource { name: source, tools: of_source } in sources {
            let source: Arc<str> = source.into();
            for tool in of_source {
                let spec = tool.spec().clone();
                mistakes.extend(misnamed(&spec, &source));
                if let Some(first) = brought.insert(spec.name.clone(), source.clone()) {
                    mistakes.push(twice(&spec.name, &first, &source));
                }
                if rules.allows(spec.name.as_str()) {
                    mistakes.extend(unusable(&spec, &source, schemas));
                    let limits = rules.limits(spec.name.as_str());
                    tools.insert(spec.name.clone(), listed(tool, limits));
                } else {
                    withheld.insert(spec.name.clone());
                }
            }
        }
        if mistakes.is_empty() { Ok(Self { tools, withheld, rules }) } else { Err(mistakes) }
    }

    /// A tool by its name.
    pub(crate) fn tool(&self, name: &str) -> Option<&Listed> {
        self.tools.get(name)
    }

    /// All of them, by name.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &Listed> {
        self.tools.values()
    }

    /// Whether the rules keep a tool of this name out.
    pub(crate) fn withholds(&self, name: &str) -> bool {
        self.withheld.contains(name)
    }

    /// What the operator says of tools.
    pub(crate) fn rules(&self) -> &ToolRules {
        &self.rules
    }

    /// Warnings of patterns that fit no tool, nor any of these plans.
    pub(crate) fn idle_rules(&self, plans: &[&str]) -> Vec<Mistake> {
        let tools = self.tools.keys().chain(&self.withheld).map(ToolName::as_str);
        let names: Vec<&str> = tools.chain(plans.iter().copied()).collect();
        let idle = self.rules.idle(&names);
        let warning = |(list, pattern): (&str, &kernel::rules::Pattern)| {
            let message = format!("`{pattern}` in `{list}` of `[tools]` fits no tool and no plan");
            let hint = meant(pattern.as_str(), names.iter().copied())
                .unwrap_or_else(|| "`waypost tool ls` lists the tools".to_owned());
            Mistake::warning(message).hint(hint)
        };
        idle.into_iter().map(warning).collect()
    }
}

/// Why nothing that can be called may have this name, if so.
pub(crate) fn bad_name(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("the name is empty".to_owned());
    }
    let written = outward(name, Alphabet::Mcp).len();
    let max = MCP_NAME_CHARS_MAX;
    (written > max).then(|| {
        format!("the name has {written} characters as it is written in MCP, which takes {max}")
    })
}

fn listed(tool: Arc<dyn Tool>, limits: ToolLimits) -> Listed {
    let spec_hash = tool.spec().hash();
    let places = limits.concurrency.map(|places| {
        let places = usize::try_from(places.get()).unwrap_or(usize::MAX);
        Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS)))
    });
    Listed { tool, spec_hash, limits, places }
}

fn misnamed(spec: &ToolSpec, source: &str) -> Option<Mistake> {
    let why = bad_name(spec.name.as_str())?;
    let message = format!("tool `{}` of {source} cannot be called: {why}", spec.name);
    Some(Mistake::error(message).hint("give it a short name, such as `math::add`"))
}

fn twice(name: &ToolName, first: &str, second: &str) -> Mistake {
    let from = if first == second {
        format!("comes twice from {first}")
    } else {
        format!("comes from {first} and from {second}")
    };
    Mistake::error(format!("tool `{name}` {from}")).hint("give one of them another name")
}

/// Schemas of a tool that do not compile.
fn unusable(spec: &ToolSpec, source: &str, schemas: &dyn Schemas) -> Vec<Mistake> {
    let output = spec.output_schema.as_ref();
    let both = [("input", Some(&spec.input_schema)), ("output", output)];
    let mistake = |(which, schema): (&str, Option<&Arc<Value>>)| {
        let misfit = schemas.compile(schema?).err()?;
        let why = sentence(&[misfit]);
        let message =
            format!("the {which} schema of tool `{}` of {source} cannot be used: {why}", spec.name);
        Some(Mistake::error(message).hint(
            "schemas are JSON Schema 2020-12, or draft 7 where `$schema` says so, and a `$ref` \
             stays inside its schema",
        ))
    };
    both.into_iter().filter_map(mistake).collect()
}
