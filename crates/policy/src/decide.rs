//! The verdict: permits and plain forbids first, then those that ask. Every policy is evaluated by
//! itself, because Cedar skips one that fails and names no permit where a forbid holds. Here a
//! `forbid` that fails holds as what it is, and a `permit` that fails does not.

use crate::arguments::Inexpressible;
use crate::dependencies::{Members, Reads};
use crate::entities::{CedarQuestion, Names, context};
use crate::evaluation::{Outcome, Tally};
use crate::files::{self, Effect, FilePolicy, error};
use crate::index::Index;
use crate::narrowing::Narrowing;
use crate::schema::identity;
use crate::validation::{Fits, FittedPolicies, validate};
use cedar_policy::{Authorizer, Context, PolicySet, Request as CedarRequest, RestrictedExpression};
use kernel::contracts::policy::{Decision, Request, Resource};
use kernel::definition::plan::mistake::{CheckResult, Mistake};
use kernel::identity::principal::Roster;
use kernel::identity::roles::{Role, Roles, answerers};
use kernel::tool::call::ToolSpec;
use kernel::values::caller::Act;
use kernel::values::ids::{Hashing, Millis};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

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
    pub file: Arc<str>,
    /// The line at which it begins.
    pub line: u32,
    /// `permit`, `forbid`, `ask` or `narrow`.
    pub effect: &'static str,
    /// The question of an ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The query that leaves only some rows of records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Arc<str>>,
    /// The fields of records that it hides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hide: Vec<Arc<str>>,
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
    /// The principals, for policies that read what is known of one.
    pub principals: &'a Roster,
    /// The present moment.
    pub now: Millis,
    /// Whether all built-in roles permit something; else only `admin` does.
    pub builtin: bool,
}

/// A question, answered as far as arguments and time do not change the answer. It belongs to the
/// policies and to the roles that it was made with.
pub(crate) struct PartialDecision {
    /// None where no policy could apply, or Cedar does not take it.
    stated: Option<CedarQuestion>,
    /// Outcomes of the applicable policies, in order; `None` if an outcome is dynamic.
    outcomes: Vec<(usize, Option<Outcome>)>,
    /// The built-in role that permits it, if one does.
    role: Option<Role>,
    /// The arguments that change the answer.
    members: Members,
    /// Inputs that change it.
    reads: Reads,
}

impl PartialDecision {
    /// Whether the same question always has the same answer.
    pub(crate) fn is_settled(&self) -> bool {
        self.outcomes.iter().all(|(_, outcome)| outcome.is_some())
    }
}

impl Policies {
    /// Reads policy files, given by name and text: the policies with warnings, or what is wrong.
    /// Their order does not matter.
    pub fn read<'f>(texts: impl IntoIterator<Item = (&'f str, &'f str)>) -> CheckResult<Self> {
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
        let index = Index::new(&policies);
        let fits = Fits::default();
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
                Effect::Narrow(_) => ("narrow", None),
            };
            let (rows, hide) = match &policy.effect {
                Effect::Narrow(Narrowing { rows, hidden }) => {
                    (rows.clone(), hidden.iter().map(|field| field.path.clone()).collect())
                }
                _ => (None, Vec::new()),
            };
            let id = policy.id.clone();
            let file = policy.source.file.clone();
            let line = policy.source.begin().line;
            let tools = policy.actions.tools.clone();
            ListedPolicy { id, file, line, effect, why, rows, hide, tools }
        };
        self.policies.iter().map(listed).collect()
    }

    /// All of them, as they were read.
    pub(crate) fn all(&self) -> &[FilePolicy] {
        &self.policies
    }

    /// A version that changes with every change of a text.
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

    /// Mistakes of the policies with tools that stay the same while a server runs. A policy that
    /// does not fit such a tool can never be evaluated, which is an error. One about a missing tool
    /// is pending.
    pub fn check<'t>(&self, tools: impl IntoIterator<Item = &'t ToolSpec>) -> Vec<Mistake> {
        let mut missing = self.tools.clone();
        let mut found = Vec::new();
        for spec in tools {
            let name = spec.name.as_str();
            missing.remove(name);
            if self.tools.contains(name) {
                let fitted = self.fits.of(spec, &self.policies, &self.tools);
                found.extend(misfits(&fitted, name));
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

    /// The mistakes of policies that do not fit one of these tools. It takes time for a version
    /// of a tool that was not seen before.
    pub fn misfits<'t>(&self, tools: impl IntoIterator<Item = &'t ToolSpec>) -> Vec<Mistake> {
        self.check(tools).into_iter().filter(Mistake::is_error).collect()
    }

    /// The answer to one question. It has no version yet.
    pub fn judge(&self, question: &Question<'_>) -> Decision {
        self.finish(&self.prepare(question), question.request, question.now)
    }

    /// A question, as far as it can be answered for all arguments and times.
    pub(crate) fn prepare(&self, question: &Question<'_>) -> PartialDecision {
        let Request { act, resource, .. } = question.request;
        let (kind, name) = identity(resource);
        let candidates = self.index.candidates(*act, kind, &name);
        let role = permitting_role(question);
        if candidates.is_empty() {
            let outcomes = Vec::new();
            let members = Members::default();
            return PartialDecision {
                stated: None,
                outcomes,
                role,
                members,
                reads: Reads::default(),
            };
        }
        let mut could_apply = candidates.iter().filter_map(|place| self.policies.get(*place));
        let reads_principal = could_apply.any(|policy| policy.reads_principal);
        let principals = reads_principal.then_some(question.principals);
        let stated = self.names.stated(question.request, question.roles, principals);
        let outcomes = self.settled(candidates, question.request, stated.as_ref());
        let mut members = Members::default();
        let mut reads = Reads::default();
        for policy in self.open(&outcomes) {
            members = members.or(&policy.members);
            reads = reads.or(policy.reads);
        }
        PartialDecision { stated, outcomes, role, members, reads }
    }

    /// The policies that have not said anything yet.
    fn open(&self, outcomes: &[(usize, Option<Outcome>)]) -> impl Iterator<Item = &FilePolicy> {
        let open = outcomes.iter().filter(|(_, outcome)| outcome.is_none());
        open.filter_map(|(place, _)| self.policies.get(*place))
    }

    /// The answer to a question that was prepared, at this moment.
    pub(crate) fn finish(
        &self,
        prepared: &PartialDecision,
        request: &Request<'_>,
        now: Millis,
    ) -> Decision {
        let mut tally = Tally::default();
        let mut moment: Option<Moment<'_>> = None;
        for (place, outcome) in &prepared.outcomes {
            let Some(policy) = self.policies.get(*place) else { continue };
            match outcome {
                Some(known) => tally.note(policy, known),
                None => {
                    let begun = || Moment::new(self, prepared, request, now);
                    let moment = moment.get_or_insert_with(begun);
                    tally.note(policy, &moment.outcome(*place, policy));
                }
            }
        }
        tally.decision(request.act, prepared.role)
    }

    /// Static outcomes of these policies: those that depend neither on arguments, nor on their
    /// sources, nor on time.
    fn settled(
        &self,
        candidates: Vec<usize>,
        request: &Request<'_>,
        stated: Option<&CedarQuestion>,
    ) -> Vec<(usize, Option<Outcome>)> {
        let trigger = request.context.trigger;
        let tool = self.own_tool(request).map(|spec| spec.name.as_str());
        let plain = || context(trigger, None, None, None);
        let view = View::new(stated, plain(), tool.and_then(|_| plain()));
        let outcome = |place: usize| {
            let policy = self.policies.get(place)?;
            let Reads { arguments, sources, time } = policy.reads;
            let changes = arguments || sources || time;
            let names_tool = tool.is_some_and(|tool| policy.actions.tools.contains(tool));
            Some((place, (!changes).then(|| view.said(&policy.whole, names_tool))))
        };
        candidates.into_iter().filter_map(outcome).collect()
    }

    /// The tool that is called, where a policy names its own action.
    fn own_tool<'r>(&self, request: &Request<'r>) -> Option<&'r ToolSpec> {
        match request.resource {
            Resource::Tool(spec)
                if request.act == Act::Call && self.tools.contains(spec.name.as_str()) =>
            {
                Some(spec)
            }
            _ => None,
        }
    }
}

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

/// A question with a context, in the words of Cedar.
struct View<'p> {
    authorizer: Authorizer,
    stated: Option<&'p CedarQuestion>,
    /// For policies that do not name the own action of the tool.
    plain: Option<CedarRequest>,
    own: Option<CedarRequest>,
}

impl<'p> View<'p> {
    fn new(
        stated: Option<&'p CedarQuestion>,
        plain: Option<Context>,
        own: Option<Context>,
    ) -> Self {
        Self {
            authorizer: Authorizer::new(),
            stated,
            plain: stated.zip(plain).and_then(|(stated, context)| stated.request(context)),
            own: stated.zip(own).and_then(|(stated, context)| stated.tool_request(context)),
        }
    }

    fn said(&self, policy: &PolicySet, names_tool: bool) -> Outcome {
        let request = if names_tool { &self.own } else { &self.plain };
        let (Some(request), Some(stated)) = (request, self.stated) else {
            return Outcome::Fails("the request cannot be expressed".to_owned());
        };
        let response = self.authorizer.is_authorized(request, policy, &stated.entities);
        let diagnostics = response.diagnostics();
        match diagnostics.errors().next() {
            Some(told) => Outcome::Fails(told.to_string()),
            None if diagnostics.reason().next().is_some() => Outcome::Holds,
            None => Outcome::DoesNot,
        }
    }
}

/// The arguments of a call, as far as they can be judged.
enum Arguments {
    /// It is only asked whether there could be some.
    Unknown,
    Expressed,
    Inexpressible(Inexpressible),
}

/// A question at one moment, with its arguments: for policies that read them, or the time.
struct Moment<'p> {
    view: View<'p>,
    tool: Option<CalledTool>,
    /// It is only asked whether some call could be allowed.
    is_any_call: bool,
}

/// The tool that is called, where a policy names its own action.
struct CalledTool {
    name: String,
    fitted: Arc<FittedPolicies>,
    arguments: Arguments,
}

impl<'p> Moment<'p> {
    fn new(
        policies: &Policies,
        prepared: &'p PartialDecision,
        request: &Request<'_>,
        now: Millis,
    ) -> Self {
        let Reads { sources: reads_sources, time: reads_time, .. } = prepared.reads;
        let asked = &request.context;
        let trigger = asked.trigger;
        let now = reads_time.then_some(now);
        let sources = asked.sources.filter(|_| reads_sources);
        let mut tool = None;
        let mut own = None;
        if let Some(spec) = policies.own_tool(request) {
            let (called, expression) =
                CalledTool::new(policies, spec, asked.arguments, &prepared.members);
            tool = Some(called);
            own = context(trigger, now, sources, expression);
        }
        // A policy that reads arguments names the tool's own action.
        let is_plain = reads_sources || reads_time;
        let plain = is_plain.then(|| context(trigger, now, sources, None)).flatten();
        let is_any_call = request.act == Act::Call && asked.arguments.is_none();
        Self { view: View::new(prepared.stated.as_ref(), plain, own), tool, is_any_call }
    }

    fn outcome(&self, place: usize, policy: &FilePolicy) -> Outcome {
        let named = |tool: &&CalledTool| policy.actions.tools.contains(&tool.name);
        let Some(tool) = self.tool.as_ref().filter(named) else {
            return self.view.said(self.read_of(policy), false);
        };
        if !policy.reads.arguments {
            return self.view.said(self.read_of(policy), true);
        }
        let could_hold = || match &policy.bare {
            Some(bare) => !matches!(self.view.said(bare, true), Outcome::DoesNot),
            None => true,
        };
        if let Some(mistakes) = tool.fitted.misfits.get(&place) {
            return match could_hold() {
                true => Outcome::Misfit(reason(mistakes)),
                false => Outcome::DoesNot,
            };
        }
        let is_permit = policy.effect == Effect::Permit;
        match &tool.arguments {
            Arguments::Expressed => self.view.said(&policy.whole, true),
            // Whether there are arguments that it permits: what a list shows.
            Arguments::Unknown if is_permit => match &policy.bare {
                Some(bare) => self.view.said(bare, true),
                None => Outcome::DoesNot,
            },
            Arguments::Unknown => Outcome::DoesNot,
            Arguments::Inexpressible(Inexpressible(why)) if !is_permit && could_hold() => {
                Outcome::Fails(format!("the arguments cannot be expressed: {why}"))
            }
            Arguments::Inexpressible(_) => Outcome::DoesNot,
        }
    }

    /// What is evaluated of a policy that reads no arguments. While there are none, a permit that
    /// reads where they came from is taken without that: a list shows what it could permit.
    fn read_of<'f>(&self, policy: &'f FilePolicy) -> &'f PolicySet {
        let is_shown = self.is_any_call && policy.reads.sources && policy.effect == Effect::Permit;
        policy.bare.as_ref().filter(|_| is_shown).unwrap_or(&policy.whole)
    }
}

impl CalledTool {
    /// The tool with these arguments, and the arguments as Cedar takes them.
    fn new(
        policies: &Policies,
        spec: &ToolSpec,
        arguments: Option<&Value>,
        read: &Members,
    ) -> (Self, Option<RestrictedExpression>) {
        let fitted = policies.fits.of(spec, &policies.policies, &policies.tools);
        let expressed = arguments.map(|value| fitted.arguments.express(value, read));
        let (arguments, expression) = match expressed {
            None => (Arguments::Unknown, None),
            Some(Ok(expression)) => (Arguments::Expressed, Some(expression)),
            Some(Err(why)) => (Arguments::Inexpressible(why), None),
        };
        (Self { name: spec.name.as_str().to_owned(), fitted, arguments }, expression)
    }
}

/// Why a policy does not fit, and what it should say.
fn reason(mistakes: &[Mistake]) -> String {
    let told = |Mistake { message, hint, .. }: &Mistake| match hint {
        Some(hint) => format!("{message}; {hint}"),
        None => message.clone(),
    };
    mistakes.iter().map(told).collect::<Vec<_>>().join("; ")
}

/// The mistakes of the policies that do not fit this tool.
fn misfits(fitted: &FittedPolicies, tool: &str) -> Vec<Mistake> {
    let named = |mistake: &Mistake| {
        let message = format!("does not fit the tool `{tool}`: {}", mistake.message);
        Mistake { message, ..mistake.clone() }
    };
    fitted.misfits.values().flatten().map(named).collect()
}
