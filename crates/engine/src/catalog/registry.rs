//! The tools: those that code brings at the start, and those of other servers, which come and go.
//! Each has a name of its own that every endpoint can say, schemas that compile, and what the
//! operator's rules say of it. What the rules keep out is not there.

use kernel::contracts::Tool;
use kernel::definition::plan::check::KEPT_OUT;
use kernel::definition::plan::mistake::{Mistake, meant};
use kernel::tool::breaker::BreakerScope;
use kernel::tool::call::ToolSpec;
use kernel::tool::rules::{ToolLimits, ToolRules};
use kernel::tool::schema::{Schemas, sentence};
use kernel::values::ids::{ContentHash, RealmId, ToolName};
use kernel::values::names::{Alphabet, MCP_NAME_CHARS_MAX, may_come, outward};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tokio::sync::Semaphore;

/// Tools and who brings them, as a person would say it: `the built-in tools`.
pub struct ToolSource {
    pub name: String,
    pub tools: Vec<Arc<dyn Tool>>,
    /// The server behind this one that they are of, also where it has none now.
    pub upstream: Option<String>,
    /// The one realm that they are there for; the realms of their server, or all, where it is not
    /// said.
    pub realm: Option<RealmId>,
}

impl ToolSource {
    /// Tools from there.
    pub fn new(name: impl Into<String>, tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { name: name.into(), tools, upstream: None, realm: None }
    }

    /// The same, of this server.
    #[must_use]
    pub fn of_upstream(self, name: &str) -> Self {
        Self { upstream: Some(name.to_owned()), ..self }
    }

    /// The same, for this realm alone: another may have tools of the same names.
    #[must_use]
    pub fn for_realm(self, realm: &RealmId) -> Self {
        Self { realm: Some(realm.clone()), ..self }
    }
}

/// A tool with what the gate needs at every call.
pub(crate) struct ListedTool {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) spec_hash: ContentHash,
    /// The server behind this one that it is of, where it is of one.
    pub(crate) upstream: Option<Arc<str>>,
    pub(crate) limits: ToolLimits,
    /// One permit for each of its calls that runs, where they are counted.
    pub(crate) permits: Option<Arc<Semaphore>>,
    /// With what its calls are refused after failures, where they are counted.
    pub(crate) guarded: Option<BreakerScope>,
}

/// All tools: those that were there at the start, and those of sources that come and go.
pub(crate) struct Registry {
    book: RwLock<Arc<Book>>,
    /// The tools that single realms have for themselves. What all may have takes precedence.
    own: RwLock<BTreeMap<RealmId, Arc<Book>>>,
    rules: ToolRules,
    /// Beginnings of the names of tools that may come later.
    awaited: Vec<String>,
    switched_off: SwitchedOff,
}

/// The names of tools that the settings leave out, each with what to set for it.
pub type SwitchedOff = BTreeMap<ToolName, &'static str>;

/// The tools as they are now. A change makes a new book; who reads keeps the old one.
#[derive(Default, Clone)]
pub(crate) struct Book {
    pub(super) tools: BTreeMap<ToolName, Arc<ListedTool>>,
    /// The names of those that the rules keep out.
    withheld: BTreeSet<ToolName>,
    /// Tools that stand for others, which are in no list.
    open: BTreeMap<ToolName, Arc<OpenTool>>,
    /// The source of each tool.
    brought: BTreeMap<ToolName, Arc<str>>,
}

/// A tool that stands for others.
struct OpenTool {
    tool: Arc<dyn Tool>,
    /// What the names of these begin with.
    prefix: String,
    /// Those that were called, so that their limits count for all calls.
    called: Mutex<BTreeMap<ToolName, Arc<ListedTool>>>,
}

/// How many of them are kept; one more, and the list starts over.
const CALLED_MAX: usize = 1_000;

impl OpenTool {
    fn new(tool: Arc<dyn Tool>) -> Self {
        let name = tool.spec().name.as_str();
        let prefix = name.strip_suffix('*').unwrap_or(name).to_owned();
        Self { tool, prefix, called: Mutex::default() }
    }

    /// Whether it stands for a tool of this name.
    fn covers(&self, name: &str) -> bool {
        name.strip_prefix(&*self.prefix).is_some_and(|rest| !rest.is_empty())
    }

    fn listed(&self, name: &str, rules: &ToolRules) -> Option<Arc<ListedTool>> {
        if !self.covers(name) || bad_name(name).is_some() {
            return None;
        }
        let mut called = self.called.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = called.get(name) {
            return Some(known.clone());
        }
        let tool = self.tool.opened(name)?;
        // The rules judge it as policy does, by one name.
        let judged = tool.judged().name.clone();
        if !rules.allows(judged.as_str()) {
            return None;
        }
        let opened = Arc::new(listed(tool, rules.limits(judged.as_str())));
        if called.len() >= CALLED_MAX {
            called.clear();
        }
        called.insert(ToolName::from(name), opened.clone());
        Some(opened)
    }
}

impl Book {
    /// Takes in the tools of a source; those that are wrong are left out and told.
    fn take(
        &mut self,
        CheckedSource { source, tools }: CheckedSource,
        rules: &ToolRules,
    ) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        for (tool, mut wrong) in tools {
            let name = tool.spec().name.clone();
            if let Some(first) = self.brought.get(&name) {
                wrong.push(twice(&name, first, &source));
            }
            let allowed = rules.allows(name.as_str());
            if !wrong.is_empty() {
                mistakes.append(&mut wrong);
                continue;
            }
            self.brought.insert(name.clone(), source.clone());
            if tool.is_open() {
                // The rules judge each name by itself.
                self.open.insert(name, Arc::new(OpenTool::new(tool)));
            } else if allowed {
                let limits = rules.limits(name.as_str());
                self.tools.insert(name, Arc::new(listed(tool, limits)));
            } else {
                self.withheld.insert(name);
            }
        }
        mistakes
    }

    /// A tool by its name, listed or not.
    fn tool(&self, name: &str, rules: &ToolRules) -> Option<Arc<ListedTool>> {
        let opened = || self.open.values().find_map(|opening| opening.listed(name, rules));
        self.tools.get(name).cloned().or_else(opened)
    }

    pub(super) fn source(&self, name: &str) -> Option<&Arc<str>> {
        let covering = || self.open.iter().find(|(_, opening)| opening.covers(name));
        let opened = || self.brought.get(covering()?.0);
        self.brought.get(name).or_else(opened)
    }

    /// Forgets all that a source brought.
    fn forget(&mut self, source: &str) {
        let Self { tools, withheld, open, brought } = self;
        brought.retain(|name, from| {
            let stays = from.as_ref() != source;
            if !stays {
                tools.remove(name);
                withheld.remove(name);
                open.remove(name);
            }
            stays
        });
    }
}

/// The tools of a source, each with what is wrong with it whatever else there is.
struct CheckedSource {
    source: Arc<str>,
    tools: Vec<(Arc<dyn Tool>, Vec<Mistake>)>,
}

impl CheckedSource {
    /// Looks at the tools of a source. Their schemas are compiled here, which takes its time.
    fn at(source: ToolSource, rules: &ToolRules, schemas: &dyn Schemas) -> Self {
        let ToolSource { name, tools, .. } = source;
        let looked = |tool: Arc<dyn Tool>| {
            let spec = tool.spec();
            let mut wrong: Vec<Mistake> = misnamed(spec, &name).into_iter().collect();
            if rules.allows(spec.name.as_str()) {
                wrong.extend(unusable(spec, &name, schemas));
            }
            (tool, wrong)
        };
        let tools = tools.into_iter().map(looked).collect();
        Self { source: name.into(), tools }
    }
}

impl Registry {
    /// The tools of these sources, or all that is wrong with them. Tools whose names begin so may
    /// come later.
    pub(crate) fn new(
        sources: Vec<ToolSource>,
        rules: ToolRules,
        awaited: Vec<String>,
        switched_off: SwitchedOff,
        schemas: &dyn Schemas,
    ) -> Result<Self, Vec<Mistake>> {
        let mut book = Book::default();
        let mut mistakes = Vec::new();
        for source in sources {
            mistakes.extend(book.take(CheckedSource::at(source, &rules, schemas), &rules));
        }
        if mistakes.is_empty() {
            let book = RwLock::new(Arc::new(book));
            let own = RwLock::default();
            Ok(Self { book, own, rules, awaited, switched_off })
        } else {
            Err(mistakes)
        }
    }

    /// The tools as they are now.
    pub(crate) fn book(&self) -> Arc<Book> {
        self.book.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a source brings now, in place of what it brought before. What is wrong with it is left
    /// out and told. `first` says who else brings a tool to the realm that has the source for
    /// itself.
    pub(crate) fn replace(
        &self,
        mut source: ToolSource,
        schemas: &dyn Schemas,
        first: impl Fn(&str) -> Option<Arc<str>>,
    ) -> Vec<Mistake> {
        let realm = source.realm.take();
        let mut looked = CheckedSource::at(source, &self.rules, schemas);
        if let Some(realm) = realm {
            for (tool, wrong) in &mut looked.tools {
                let name = &tool.spec().name;
                let taken = first(name.as_str());
                wrong.extend(taken.map(|first| twice(name, &first, &looked.source)));
            }
            return self.replace_own(&realm, looked);
        }
        let mut book = self.book.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = Book::clone(&book);
        next.forget(&looked.source);
        let mistakes = next.take(looked, &self.rules);
        *book = Arc::new(next);
        mistakes
    }

    /// The same of what is one realm's own.
    fn replace_own(&self, realm: &RealmId, looked: CheckedSource) -> Vec<Mistake> {
        let mut own = self.own.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = own.get(realm).map(|book| Book::clone(book)).unwrap_or_default();
        next.forget(&looked.source);
        let mistakes = next.take(looked, &self.rules);
        match next.brought.is_empty() {
            true => drop(own.remove(realm)),
            false => drop(own.insert(realm.clone(), Arc::new(next))),
        }
        mistakes
    }

    /// A tool by its name, of those that are no realm's own.
    pub(crate) fn tool(&self, name: &str) -> Option<Arc<ListedTool>> {
        // Looked up in place: every call does, and threads that count who has the book wait for
        // each other.
        let book = self.book.read().unwrap_or_else(PoisonError::into_inner);
        book.tool(name, &self.rules)
    }

    /// A tool by its name, of those that a realm has for itself.
    pub(crate) fn own_tool(&self, realm: &RealmId, name: &str) -> Option<Arc<ListedTool>> {
        let own = self.own.read().unwrap_or_else(PoisonError::into_inner);
        own.get(realm)?.tool(name, &self.rules)
    }

    /// The tools that a realm has for itself.
    pub(crate) fn own_book(&self, realm: &RealmId) -> Option<Arc<Book>> {
        self.own.read().unwrap_or_else(PoisonError::into_inner).get(realm).cloned()
    }

    /// Forgets the tools that a realm has for itself.
    pub(crate) fn forget_own(&self, realm: &RealmId) {
        self.own.write().unwrap_or_else(PoisonError::into_inner).remove(realm);
    }

    /// All books: what all may have, and what single realms have for themselves.
    fn books(&self) -> Vec<Arc<Book>> {
        let own = self.own.read().unwrap_or_else(PoisonError::into_inner);
        let own: Vec<Arc<Book>> = own.values().cloned().collect();
        [vec![self.book()], own].concat()
    }

    /// Whether a source brings a tool that is not of a server behind this one.
    pub(crate) fn brings_own(&self, source: &str) -> bool {
        let book = self.book();
        let mut brought = book.brought.iter().filter(|(_, from)| &***from == source);
        brought
            .any(|(name, _)| book.tools.get(name).is_some_and(|listed| listed.upstream.is_none()))
    }

    /// How many tools of a source can be called.
    pub(crate) fn count_of(&self, source: &str) -> usize {
        let count = |book: Arc<Book>| {
            let is_its =
                |name: &&ToolName| book.source(name.as_str()).is_some_and(|from| **from == *source);
            book.tools.keys().filter(is_its).count()
        };
        self.books().into_iter().map(count).sum()
    }

    /// What the operator can set to have a tool of this name in a realm, where the settings keep it
    /// out.
    pub(crate) fn kept_out(&self, realm: &RealmId, name: &str) -> Option<&'static str> {
        let is_out = |book: &Arc<Book>| book.withheld.contains(name);
        let own = || self.own_book(realm).is_some_and(|book| is_out(&book));
        let by_rules = || (is_out(&self.book()) || own()).then_some(KEPT_OUT);
        self.switch_of(name).or_else(by_rules)
    }

    /// The same for a tool that has a switch, and that no one else brings.
    pub(crate) fn switch_of(&self, name: &str) -> Option<&'static str> {
        let switch = self.switched_off.get(name).copied()?;
        (self.tool(name).is_none() && !self.awaits(name)).then_some(switch)
    }

    /// Whether a tool of this name may come later.
    pub(crate) fn awaits(&self, name: &str) -> bool {
        self.awaits_of(name, |_| true)
    }

    /// The same of those whose beginnings fit.
    pub(crate) fn awaits_of(&self, name: &str, fits: impl Fn(&str) -> bool) -> bool {
        self.awaited.iter().any(|beginning| may_come(name, beginning) && fits(beginning))
    }

    /// What the operator says of tools.
    pub(crate) fn rules(&self) -> &ToolRules {
        &self.rules
    }

    /// Warnings of patterns that fit no tool, nor any of these plans, nor what may come later,
    /// which `comes` says of what single realms have for themselves.
    pub(crate) fn idle_rules(&self, plans: &[&str], comes: impl Fn(&str) -> bool) -> Vec<Mistake> {
        let books = self.books();
        let listed = books.iter().flat_map(|book| book.tools.keys().chain(&book.withheld));
        let tools = listed.chain(self.switched_off.keys()).map(ToolName::as_str);
        let names: Vec<&str> = tools.chain(plans.iter().copied()).collect();
        let idle = self.rules.idle(&names);
        let warning = |(list, pattern): (&str, &kernel::tool::rules::Pattern)| {
            let message = format!("`{pattern}` in `{list}` of `[tools]` fits no tool and no plan");
            let hint = meant(pattern.as_str(), names.iter().copied())
                .unwrap_or_else(|| "`waypost tool ls` lists the tools".to_owned());
            Mistake::warning(message).hint(hint)
        };
        let known = |(_, pattern): &(&str, &kernel::tool::rules::Pattern)| {
            !self.awaits(pattern.as_str()) && !comes(pattern.as_str())
        };
        idle.into_iter().filter(known).map(warning).collect()
    }
}

/// Why nothing that can be called may have this name, if so.
pub(crate) fn bad_name(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("the name is empty".to_owned());
    }
    if name.chars().any(char::is_control) {
        return Some("the name has a control character".to_owned());
    }
    let written = outward(name, Alphabet::Mcp).len();
    let max = MCP_NAME_CHARS_MAX;
    (written > max).then(|| {
        format!("the name has {written} characters as it is written in MCP, which takes {max}")
    })
}

fn listed(tool: Arc<dyn Tool>, limits: ToolLimits) -> ListedTool {
    let spec_hash = tool.spec().hash();
    let upstream = tool.upstream().map(|upstream| upstream.name);
    let permits = limits.concurrency.map(|permits| {
        let permits = usize::try_from(permits.get()).unwrap_or(usize::MAX);
        Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)))
    });
    let guarded = match limits.breaker_failures {
        Some(_) => Some(BreakerScope::Tool(tool.judged().name.clone())),
        None => upstream.clone().map(BreakerScope::Upstream),
    };
    ListedTool { tool, spec_hash, upstream, limits, permits, guarded }
}

fn misnamed(spec: &ToolSpec, source: &str) -> Option<Mistake> {
    let why = bad_name(spec.name.as_str())?;
    let name = spec.name.as_str().escape_debug();
    let message = format!("tool `{name}` of {source} cannot be called: {why}");
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
