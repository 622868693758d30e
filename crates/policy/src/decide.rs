//! The verdict: permits and plain forbids first, then those that ask. Every policy is evaluated by
//! itself, because Cedar skips one that fails and names no permit where a forbid holds. Here a
//! `forbid` that fails holds as what it is, and a `permit` that fails does not.

use crate::arguments::Inexpressible;
use crate::entities::{Names, context};
use crate::files::{self, Effect, FilePolicy, error};
use crate::fit::{Fits, Fitted, validate};
use crate::index::Index;
use crate::schema::identity;
use cedar_policy::{Authorizer, Entities, PolicySet, Request as CedarRequest};
use kernel::contracts::policy::{Decision, Obligation, Request, Resource};
use kernel::definition::plan::mistake::{Checked, Mistake, Severity};
use kernel::identity::roles::{Role, Roles, answerers};
use kernel::tool::call::{ToolSpec, Verdict};
use kernel::values::caller::Act;
use kernel::values::ids::{Hashing, Millis};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the id of a built-in role begins with, where one decided.
const ROLE: &str = "role:";
/// How many characters of the hash of all texts make the version.
const VERSION_CHARS: usize = 12;

/// The policies of all files, ready to decide.
#[derive(Debug)]
pub struct Policies {
    policies: Vec<FilePolicy>,
    index: Index,
    names: Names,
    /// The tools whose own actions are named.
    tools: BTreeSet<String>,
    fits: Fits,
    version: Arc<str>,
}

/// One policy, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedPolicy {
    /// The text of `@id`, else its file and line.
    pub id: Arc<str>,
    /// Its file.
    pub file: Arc<str>,
    /// The line at which it begins.
    pub line: u32,
    /// `permit`, `forbid` or `ask`.
    pub effect: &'static str,
    /// What is asked, where it asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The tools whose own actions it names.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub tools: BTreeSet<String>,
}

/// A question, with what is known at the moment.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The question itself.
    pub request: &'a Request<'a>,
    /// The roles of who asks, in its realm.
    pub roles: &'a Roles,
    /// The present moment.
    pub now: Millis,
    /// Whether all built-in roles permit something; else only `admin` does.
    pub builtin: bool,
}

/// What was decided, and whether the same question has the same answer later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// What was decided; it has no version yet.
    pub decision: Decision,
    /// No policy that could apply reads arguments or time.
    pub is_lasting: bool,
}

impl Policies {
    /// Reads policy files, given by name and text: the policies with warnings, or what is wrong.
    /// Their order does not matter.
    pub fn read<'f>(texts: impl IntoIterator<Item = (&'f str, &'f str)>) -> Checked<Self> {
        let mut texts: Vec<(&str, &str)> = texts.into_iter().collect();
        texts.sort_unstable();
        let version = version_of(&texts);
        let policies = files::read(texts)?;
        let names = Names::new().map_err(|told| vec![error(told)])?;
        let tools = policies.iter().flat_map(|one| one.actions.tools.iter().cloned()).collect();
        let found = validate(&policies, &tools);
        if found.iter().any(Mistake::is_error) {
            return Err(found);
        }
        let (index, fits) = (Index::new(&policies), Fits::default());
        Ok((Self { policies, index, names, tools, fits, version }, found))
    }

    /// Whether there is no policy at all, so that roles alone decide.
    pub fn is_empty(&self) -> bool {
        self.policies.is_empty()
    }

    /// How many policies there are.
    pub fn len(&self) -> usize {
        self.policies.len()
    }

    /// All of them, in the order of files and lines.
    pub fn listed(&self) -> Vec<ListedPolicy> {
        let listed = |policy: &FilePolicy| {
            let (effect, why) = match &policy.effect {
                Effect::Permit => ("permit", None),
                Effect::Forbid => ("forbid", None),
                Effect::Ask(asking) => ("ask", Some(asking.why.clone())),
            };
            let (id, file) = (policy.id.clone(), policy.source.file.clone());
            let (line, tools) = (policy.source.begin().line, policy.actions.tools.clone());
            ListedPolicy { id, file, line, effect, why, tools }
        };
        self.policies.iter().map(listed).collect()
    }

    /// What changes with every change of a text.
    pub fn version(&self) -> &Arc<str> {
        &self.version
    }

    /// Whether a policy reads time, so that an answer is not good for long.
    pub fn read_time(&self) -> bool {
        self.policies.iter().any(|policy| policy.reads.time)
    }

    /// Who may answer what runs ask, as far as roles and the heads of permits say it: a permit
    /// whose condition says who it is for is not among them.
    pub fn answerers(&self, builtin: bool) -> Vec<String> {
        let mut all = answerers(counting(builtin));
        let permits = |policy: &&FilePolicy| {
            policy.effect == Effect::Permit && policy.actions.cover(Act::Answer)
        };
        let named = self.policies.iter().filter(permits).filter_map(|policy| policy.who.as_ref());
        for who in named.map(ToString::to_string) {
            if !all.contains(&who) {
                all.push(who);
            }
        }
        all
    }

    /// What is to be known of the policies beside these tools: one about a tool that is not there
    /// waits for it, and one that does not fit its tool denies it or does not count.
    pub fn warnings<'t>(&self, tools: impl IntoIterator<Item = &'t ToolSpec>) -> Vec<Mistake> {
        let mut missing = self.tools.clone();
        let mut found = Vec::new();
        for spec in tools {
            let name = spec.name.as_str();
            missing.remove(name);
            if self.tools.contains(name) {
                let fitted = self.fits.of(spec, &self.policies, &self.tools);
                found.extend(self.misfits(&fitted, name));
            }
        }
        for policy in &self.policies {
            for tool in policy.actions.tools.intersection(&missing) {
                let mistake = Mistake::warning(format!("there is no tool `{tool}`"))
                    .hint("the policy waits for it; check the name if it should be there");
                found.push(policy.source.place(mistake, 0));
            }
        }
        found.sort_by(|one, other| {
            (&one.file, one.line, one.column).cmp(&(&other.file, other.line, other.column))
        });
        found
    }

    fn misfits(&self, fitted: &Fitted, tool: &str) -> Vec<Mistake> {
        let told = fitted.misfits.iter().flat_map(|(place, mistakes)| {
            let effect = self.policies.get(*place).map(|policy| &policy.effect);
            let outcome = match effect {
                Some(Effect::Permit) => "it does not count there",
                _ => "calls of the tool are denied",
            };
            mistakes.iter().map(move |mistake| {
                let message = &mistake.message;
                Mistake {
                    message: format!("does not fit the tool `{tool}`, so {outcome}: {message}"),
                    severity: Severity::Warning,
                    ..mistake.clone()
                }
            })
        });
        told.collect()
    }

    /// The answer to one question.
    pub fn judge(&self, question: &Question<'_>) -> Judged {
        let Request { act, resource, .. } = question.request;
        let (kind, name) = identity(resource);
        let candidates = self.index.candidates(*act, kind, &name);
        let mut tally = Tally::default();
        let mut is_lasting = true;
        if !candidates.is_empty() {
            let read = candidates.iter().filter_map(|place| self.policies.get(*place));
            let reads_time = read.clone().any(|policy| policy.reads.time);
            is_lasting = !reads_time && !read.clone().any(|policy| policy.reads.arguments);
            let view = View::new(self, question, reads_time);
            for place in candidates {
                if let Some(policy) = self.policies.get(place) {
                    tally.note(policy, view.outcome(place, policy));
                }
            }
        }
        let role = permitting_role(question);
        Judged { decision: tally.decision(*act, role), is_lasting }
    }
}

/// The version of these texts.
fn version_of(texts: &[(&str, &str)]) -> Arc<str> {
    let mut hashing = Hashing::default();
    for (file, text) in texts {
        for part in [*file, *text] {
            // With its length, so that a text cannot move from one file to the next unnoticed.
            hashing.add(&part.len().to_be_bytes());
            hashing.add(part.as_bytes());
        }
    }
    hashing.hash().as_str().chars().take(VERSION_CHARS).collect::<String>().into()
}

/// The built-in role that permits it, if one does.
fn permitting_role(question: &Question<'_>) -> Option<Role> {
    let Request { act, subject, resource, .. } = question.request;
    let target = resource.target(*act, &subject.subject);
    let mut counting = counting(question.builtin).iter().copied();
    counting.find(|role| question.roles.has(*role) && role.permits(*act, target))
}

/// The built-in roles that permit something.
fn counting(builtin: bool) -> &'static [Role] {
    if builtin { Role::ALL } else { &[Role::Admin] }
}

/// What one policy says.
enum Outcome {
    Holds,
    DoesNot,
    /// It cannot be evaluated.
    Fails(String),
    /// It does not fit the tool, and could apply.
    Misfit,
}

/// The arguments of a call, as far as they can be judged.
enum Arguments {
    /// It is only asked whether there could be some.
    Unknown,
    Expressed,
    Inexpressible(Inexpressible),
}

/// One question in the words of Cedar.
struct View {
    authorizer: Authorizer,
    entities: Option<Entities>,
    plain: Option<CedarRequest>,
    tool: Option<ToolView>,
}

/// The same for policies that name the own action of the tool.
struct ToolView {
    name: String,
    fitted: Arc<Fitted>,
    arguments: Arguments,
    request: Option<CedarRequest>,
}

impl View {
    fn new(policies: &Policies, question: &Question<'_>, reads_time: bool) -> Self {
        let Question { request, roles, now, .. } = question;
        let now = reads_time.then_some(*now);
        let trigger = request.context.trigger;
        let tool = match request.resource {
            Resource::Tool(spec)
                if request.act == Act::Call && policies.tools.contains(spec.name.as_str()) =>
            {
                Some(ToolView::new(policies, request, spec, now))
            }
            _ => None,
        };
        let plain = context(trigger, now, None);
        Self {
            authorizer: Authorizer::new(),
            entities: policies.names.entities(request, roles),
            plain: plain.and_then(|context| policies.names.request(request, context)),
            tool,
        }
    }

    fn outcome(&self, place: usize, policy: &FilePolicy) -> Outcome {
        let named = |tool: &&ToolView| policy.actions.tools.contains(&tool.name);
        let Some(tool) = self.tool.as_ref().filter(named) else {
            return self.evaluated(&policy.whole, self.plain.as_ref());
        };
        let request = tool.request.as_ref();
        if !policy.reads.arguments {
            return self.evaluated(&policy.whole, request);
        }
        let could_hold = || match &policy.bare {
            Some(bare) => !matches!(self.evaluated(bare, request), Outcome::DoesNot),
            None => true,
        };
        let is_permit = policy.effect == Effect::Permit;
        if tool.fitted.misfits.contains_key(&place) {
            let counts = !is_permit && could_hold();
            return if counts { Outcome::Misfit } else { Outcome::DoesNot };
        }
        match &tool.arguments {
            Arguments::Expressed => self.evaluated(&policy.whole, request),
            // Whether there are arguments that it permits: what a list shows.
            Arguments::Unknown if is_permit => match &policy.bare {
                Some(bare) => self.evaluated(bare, request),
                None => Outcome::DoesNot,
            },
            Arguments::Unknown => Outcome::DoesNot,
            Arguments::Inexpressible(Inexpressible(why)) if !is_permit && could_hold() => {
                Outcome::Fails(format!("the arguments cannot be expressed: {why}"))
            }
            Arguments::Inexpressible(_) => Outcome::DoesNot,
        }
    }

    fn evaluated(&self, policy: &PolicySet, request: Option<&CedarRequest>) -> Outcome {
        let (Some(request), Some(entities)) = (request, &self.entities) else {
            return Outcome::Fails("the request cannot be expressed".to_owned());
        };
        let response = self.authorizer.is_authorized(request, policy, entities);
        let diagnostics = response.diagnostics();
        match diagnostics.errors().next() {
            Some(told) => Outcome::Fails(told.to_string()),
            None if diagnostics.reason().next().is_some() => Outcome::Holds,
            None => Outcome::DoesNot,
        }
    }
}

impl ToolView {
    fn new(
        policies: &Policies,
        request: &Request<'_>,
        spec: &ToolSpec,
        now: Option<Millis>,
    ) -> Self {
        let fitted = policies.fits.of(spec, &policies.policies, &policies.tools);
        let (arguments, expression) = match request.context.arguments {
            None => (Arguments::Unknown, None),
            Some(value) => match fitted.arguments.express(value) {
                Ok(expression) => (Arguments::Expressed, Some(expression)),
                Err(why) => (Arguments::Inexpressible(why), None),
            },
        };
        let name = spec.name.as_str();
        let known = context(request.context.trigger, now, expression);
        let request = known.and_then(|known| policies.names.tool_request(request, name, known));
        Self { name: name.to_owned(), fitted, arguments, request }
    }
}

/// What all policies said.
#[derive(Default)]
struct Tally {
    permits: Vec<Arc<str>>,
    forbids: Vec<(Arc<str>, String)>,
    asks: Vec<(Arc<str>, String)>,
    obligations: Vec<Obligation>,
}

impl Tally {
    fn note(&mut self, policy: &FilePolicy, outcome: Outcome) {
        let id = &policy.id;
        let why = match (&outcome, &policy.effect) {
            (Outcome::DoesNot, _) | (Outcome::Fails(_) | Outcome::Misfit, Effect::Permit) => return,
            (Outcome::Holds, Effect::Permit) => {
                self.permits.push(id.clone());
                return;
            }
            (Outcome::Misfit, _) => {
                let why = format!("policy `{id}` does not fit the arguments of the tool");
                self.forbids.push((id.clone(), why));
                return;
            }
            (Outcome::Holds, _) => None,
            (Outcome::Fails(why), _) => {
                Some(format!("policy `{id}` cannot be evaluated, so it holds: {why}"))
            }
        };
        match &policy.effect {
            Effect::Ask(asking) => {
                self.asks.push((id.clone(), asking.why.clone()));
                for obligation in &asking.obligations {
                    if !self.obligations.contains(obligation) {
                        self.obligations.push(obligation.clone());
                    }
                }
            }
            _ => {
                let why = why.unwrap_or_else(|| format!("policy `{id}` forbids it"));
                self.forbids.push((id.clone(), why));
            }
        }
    }

    fn decision(self, act: Act, role: Option<Role>) -> Decision {
        let texts = |said: &[(Arc<str>, String)]| {
            let whys: Vec<&str> = said.iter().map(|(_, why)| why.as_str()).collect();
            whys.join("; ")
        };
        let ids = |said: &[(Arc<str>, String)]| -> Vec<Arc<str>> {
            said.iter().map(|(id, _)| id.clone()).collect()
        };
        let role = role.map(|role| Arc::<str>::from(format!("{ROLE}{}", role.name())));
        let permits: Vec<Arc<str>> = role.into_iter().chain(self.permits).collect();
        if !self.forbids.is_empty() {
            let verdict = Verdict::Deny(texts(&self.forbids));
            return Decision { policies: ids(&self.forbids), ..Decision::from(verdict) };
        }
        if permits.is_empty() {
            let why = format!("no role or policy permits `{}` here", act.name());
            return Verdict::Deny(why).into();
        }
        if !self.asks.is_empty() {
            let (verdict, policies) = (Verdict::Ask(texts(&self.asks)), ids(&self.asks));
            let obligations = self.obligations;
            return Decision { obligations, policies, ..Decision::from(verdict) };
        }
        Decision { policies: permits, ..Decision::allow() }
    }
}
