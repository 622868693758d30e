//! Policy files: texts in, policies out, each with its place, its effect and what it applies to.
//! What Cedar would accept and Waypost has no meaning for, such as a template or an annotation that
//! is not known, is a mistake here. Whether a policy fits the schema is asked later.

use crate::dependencies::{
    ARGUMENTS, Members, NOW, Reads, named_action, named_arguments, named_entities, read_members,
    reads, reads_principal,
};
use crate::narrowing::{AnnotationFault, HIDE, Narrowing, ROWS, read_hidden, read_rows};
use crate::schema::{Kind, TOOL_ACTION};
use crate::source_text::{Piece, annotated_at, annotation_at, pieces, position, too_deep};
use cedar_policy::ffi::DetailedError;
use cedar_policy::{
    ActionConstraint, Effect as CedarEffect, EntityUid, Policy, PolicyId, PolicySet,
    PrincipalConstraint, ResourceConstraint, Template,
};
use kernel::contracts::policy::{Answerer, Obligation};
use kernel::definition::plan::mistake::{Mistake, Position, meant};
use kernel::values::caller::Act;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

const ID: &str = "id";
const ASK: &str = "ask";
const APPROVERS: &str = "approvers";
const OTHER: &str = "other";
const DESCRIPTION: &str = "description";
/// The annotations that mean something.
const ANNOTATIONS: [&str; 7] = [ID, ASK, APPROVERS, OTHER, ROWS, HIDE, DESCRIPTION];

/// One policy of a file.
#[derive(Debug)]
pub(crate) struct FilePolicy {
    /// The text of `@id`, else its file and line.
    pub(crate) id: Arc<str>,
    pub(crate) source: Source,
    pub(crate) effect: Effect,
    /// Whom its head names, where that is one role or one subject.
    pub(crate) who: Option<Answerer>,
    pub(crate) actions: Actions,
    pub(crate) resources: Resources,
    /// The types of records that it names.
    pub(crate) record_types: BTreeSet<String>,
    pub(crate) reads: Reads,
    /// Whether it could read what is known of a principal.
    pub(crate) reads_principal: bool,
    /// The arguments that it names, each by the names that lead to it.
    pub(crate) arguments: Vec<Vec<String>>,
    /// The members of arguments that can change what it says.
    pub(crate) members: Members,
    /// The policy alone.
    pub(crate) whole: PolicySet,
    /// The same without the clauses that read arguments, or where they came from: to whom it could
    /// apply with some arguments. Only where it reads any of that.
    pub(crate) bare: Option<PolicySet>,
}

/// Where a policy stands.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) file: Arc<str>,
    /// The text of the whole file.
    text: Arc<str>,
    /// The byte of the file at which the policy begins.
    start: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    Permit,
    Forbid,
    /// A `forbid` with `@ask`: a person may allow it.
    Ask(AskEffect),
    /// A `forbid` with `@rows` or `@hide`: of records, something is left.
    Narrow(Narrowing),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AskEffect {
    pub(crate) why: String,
    pub(crate) obligations: Vec<Obligation>,
}

/// The actions of a policy's head.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Actions {
    is_any: bool,
    acts: Vec<Act>,
    /// Whether it names something that is no action. Validation reports it.
    has_unknown: bool,
    /// The tools whose own actions it names.
    pub(crate) tools: BTreeSet<String>,
}

impl Actions {
    fn of(constraint: &ActionConstraint) -> Self {
        let named = match constraint {
            ActionConstraint::Any => return Self { is_any: true, ..Self::default() },
            ActionConstraint::Eq(one) => std::slice::from_ref(one),
            ActionConstraint::In(several) => several.as_slice(),
        };
        let ids = named.iter().map(|action| action.id().unescaped());
        let mut found = Self::default();
        for id in ids {
            match id.strip_prefix(TOOL_ACTION) {
                Some(tool) => {
                    found.tools.insert(tool.to_owned());
                }
                None => match Act::from_name(id) {
                    Some(act) => found.acts.push(act),
                    None => found.has_unknown = true,
                },
            }
        }
        found
    }

    /// Whether it could apply to this act, tools with actions of their own aside.
    pub(crate) fn cover(&self, act: Act) -> bool {
        self.is_any || self.acts.contains(&act)
    }

    fn are_calls(&self) -> bool {
        !self.is_any && self.acts.iter().all(|act| *act == Act::Call)
    }

    /// Whether it could apply to nothing but what is done with records, if its resources are those.
    fn are_of_records(&self) -> bool {
        let is_of_records = |act: &Act| matches!(act, Act::Read | Act::Save | Act::Remove);
        self.is_any || (self.tools.is_empty() && self.acts.iter().all(is_of_records))
    }

    fn are_tools(&self) -> bool {
        !self.is_any && self.acts.is_empty() && !self.has_unknown && !self.tools.is_empty()
    }
}

/// The resources of a policy's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resources {
    Any,
    /// All of one type, by its name.
    Kind(String),
    /// One, by the name of its type and its own.
    One {
        kind: String,
        id: String,
    },
}

impl Resources {
    fn of(constraint: ResourceConstraint) -> Self {
        let one = |uid: &EntityUid| Self::One {
            kind: uid.type_name().to_string(),
            id: uid.id().unescaped().to_owned(),
        };
        // Resources are in their realm and in nothing else, beside themselves.
        let is_realm = |uid: &EntityUid| uid.type_name().basename() == Kind::Realm.name();
        match constraint {
            ResourceConstraint::Any => Self::Any,
            ResourceConstraint::In(uid) if is_realm(&uid) => Self::Any,
            ResourceConstraint::In(uid) | ResourceConstraint::Eq(uid) => one(&uid),
            ResourceConstraint::Is(kind) => Self::Kind(kind.to_string()),
            ResourceConstraint::IsIn(kind, uid) if is_realm(&uid) => Self::Kind(kind.to_string()),
            ResourceConstraint::IsIn(_, uid) => one(&uid),
        }
    }

    /// The type of records that it names; none if these are others, or several.
    pub(crate) fn record_type(&self) -> Option<&str> {
        match self {
            Self::One { kind, id } if kind == Kind::RecordType.name() => Some(id.as_str()),
            _ => None,
        }
    }

    fn are_records(&self) -> bool {
        let (Self::Kind(kind) | Self::One { kind, .. }) = self else { return false };
        kind == Kind::RecordType.name()
    }
}

impl Source {
    /// A mistake at this byte of the policy.
    pub(crate) fn place(&self, mistake: Mistake, offset: usize) -> Mistake {
        let mut placed = mistake.at(position(&self.text, self.start + offset), "");
        placed.file = Some(self.file.to_string());
        placed
    }

    /// Cedar's message about the policy, with its place.
    pub(crate) fn reported(
        &self,
        error: &DetailedError,
        mistake: fn(String) -> Mistake,
    ) -> Mistake {
        let offset = error.source_locations.first().map_or(0, |label| label.loc.start);
        let found = mistake(error.message.clone());
        let found = match &error.help {
            Some(help) => found.hint(help.clone()),
            None => found,
        };
        self.place(found, offset)
    }

    /// What is wrong in the text of an annotation, at its place.
    pub(crate) fn place_in_annotation(
        &self,
        fault: &AnnotationFault,
        severity: fn(String) -> Mistake,
    ) -> Mistake {
        let policy = &self.text[self.start..];
        let offset = annotated_at(policy, fault.annotation, fault.position);
        self.place(fault.mistake(severity), offset)
    }

    /// A mistake where the policy names this entity, else at its beginning.
    pub(crate) fn place_at_entity(&self, mistake: Mistake, kind: Kind, id: &str) -> Mistake {
        let written = format!("{}::\"{id}\"", kind.name());
        let offset = self.text[self.start..].find(&written);
        self.place(mistake, offset.unwrap_or_default())
    }

    pub(crate) fn begin(&self) -> Position {
        position(&self.text, self.start)
    }
}

/// An error; a function and not a constructor, because it takes a text that is owned.
pub(crate) fn error(message: String) -> Mistake {
    Mistake::error(message)
}

/// The same as a warning.
pub(crate) fn warning(message: String) -> Mistake {
    Mistake::warning(message)
}

/// Reads the policies of these files, given by name and text.
pub(crate) fn read<'f>(
    files: impl IntoIterator<Item = (&'f str, &'f str)>,
) -> Result<Vec<FilePolicy>, Vec<Mistake>> {
    let mut policies = Vec::new();
    let mut mistakes = Vec::new();
    for (file, text) in files {
        let file: Arc<str> = file.into();
        let whole: Arc<str> = text.into();
        for piece in pieces(text) {
            let source = Source { file: file.clone(), text: whole.clone(), start: piece.start };
            match Draft::read(&piece, source) {
                Ok(policy) => policies.push(policy),
                Err(found) => mistakes.extend(found),
            }
        }
    }
    mistakes.extend(same_ids(&policies));
    if mistakes.is_empty() { Ok(policies) } else { Err(mistakes) }
}

fn same_ids(policies: &[FilePolicy]) -> Vec<Mistake> {
    let mut first: HashMap<&str, &Source> = HashMap::new();
    let mut found = Vec::new();
    for FilePolicy { id, source, .. } in policies {
        let Some(before) = first.get(&**id) else {
            first.insert(id, source);
            continue;
        };
        let file = &before.file;
        let line = before.begin().line;
        let mistake = Mistake::error(format!("two policies have the id `{id}`"))
            .hint(format!("the other one is in {file}, line {line}; give each an id of its own"));
        let text = &source.text[source.start..];
        found.push(source.place(mistake, annotation_at(text, ID)));
    }
    found
}

/// A policy that is being read.
struct Draft<'t> {
    text: &'t str,
    source: Source,
    policy: Policy,
    mistakes: Vec<Mistake>,
}

impl<'t> Draft<'t> {
    fn read(piece: &Piece<'t>, source: Source) -> Result<FilePolicy, Vec<Mistake>> {
        if let Some(why) = too_deep(piece.text) {
            let mistake = Mistake::error(why).hint("write several policies instead of one");
            return Err(vec![source.place(mistake, 0)]);
        }
        let policy = match Policy::parse(None, piece.text) {
            Ok(policy) => policy,
            Err(errors) => {
                if Template::parse(None, piece.text).is_ok() {
                    let mistake = Mistake::error("a template is not a policy")
                        .hint("write one policy for each principal or resource, without `?`");
                    return Err(vec![source.place(mistake, 0)]);
                }
                return Err(unreadable(&source, &DetailedError::from(&errors)));
            }
        };
        let draft = Self { text: piece.text, source, policy, mistakes: Vec::new() };
        draft.finish()
    }

    fn finish(mut self) -> Result<FilePolicy, Vec<Mistake>> {
        self.check_annotations();
        let actions = Actions::of(&self.policy.action_constraint());
        let resources = Resources::of(self.policy.resource_constraint());
        let effect = self.effect(&actions, &resources);
        let id = self.id();
        let who = named(&self.policy.principal_constraint());
        self.check_resources(&resources);
        let json = self.policy.to_json().unwrap_or_else(|error| {
            self.note(Mistake::error(error.to_string()), 0);
            Value::Null
        });
        let clauses = &json["conditions"];
        let reads = reads(clauses);
        let record_types = named_record_types(&resources, clauses);
        let reads_principal = reads_principal(clauses);
        let arguments = named_arguments(clauses);
        let members = read_members(clauses);
        self.check_reads(reads, &actions, clauses);
        let policy = self.policy.new_id(PolicyId::new(&id));
        let is_of_calls = reads.arguments || reads.sources;
        let bare = if is_of_calls { without_arguments(&policy, json) } else { None };
        let whole = PolicySet::from_policies([policy]).unwrap_or_else(|error| {
            self.mistakes.push(self.source.place(Mistake::error(error.to_string()), 0));
            PolicySet::new()
        });
        if !self.mistakes.is_empty() {
            return Err(self.mistakes);
        }
        let source = self.source;
        Ok(FilePolicy {
            id,
            source,
            effect,
            who,
            actions,
            resources,
            record_types,
            reads,
            reads_principal,
            arguments,
            members,
            whole,
            bare,
        })
    }

    fn note(&mut self, mistake: Mistake, offset: usize) {
        self.mistakes.push(self.source.place(mistake, offset));
    }

    fn note_annotation(&mut self, name: &str, mistake: Mistake) {
        self.note(mistake, annotation_at(self.text, name));
    }

    fn annotation(&self, name: &str) -> Option<String> {
        self.policy.annotation(name).map(str::to_owned)
    }

    fn check_annotations(&mut self) {
        let names = self.policy.annotations().map(|(name, _)| name.to_owned());
        let unknown: Vec<String> =
            names.filter(|name| !ANNOTATIONS.contains(&name.as_str())).collect();
        for name in unknown {
            let known = ANNOTATIONS.map(|name| format!("`@{name}`")).join(", ");
            let hint = meant(&name, ANNOTATIONS);
            let hint = hint.unwrap_or_else(|| format!("the annotations are {known}"));
            let mistake = Mistake::error(format!("unknown annotation `@{name}`")).hint(hint);
            self.note_annotation(&name, mistake);
        }
    }

    fn id(&mut self) -> Arc<str> {
        match self.annotation(ID) {
            Some(id) if id.trim().is_empty() => {
                let mistake = Mistake::error("`@id` has no text").hint("write `@id(\"a-name\")`");
                self.note_annotation(ID, mistake);
                id.into()
            }
            Some(id) => id.into(),
            None => {
                let Position { line, column } = self.source.begin();
                let file = &self.source.file;
                // Several policies can stand in one line.
                let is_first = column == 1;
                let place = if is_first { String::new() } else { format!(":{column}") };
                format!("{file}:{line}{place}").into()
            }
        }
    }

    fn effect(&mut self, actions: &Actions, resources: &Resources) -> Effect {
        let is_permit = self.policy.effect() == CedarEffect::Permit;
        let obligations = self.obligations();
        let narrowing = self.narrowing(actions, resources);
        let Some(why) = self.annotation(ASK) else {
            return match narrowing {
                _ if is_permit => Effect::Permit,
                Some(narrowing) => Effect::Narrow(narrowing),
                None => Effect::Forbid,
            };
        };
        if let Some(mistake) = self.misasked(is_permit, actions, resources) {
            self.note_annotation(ASK, mistake);
        }
        Effect::Ask(AskEffect { why, obligations })
    }

    /// Why `@ask` cannot stand on this policy. That it stands beside others is their mistake.
    fn misasked(
        &self,
        is_permit: bool,
        actions: &Actions,
        resources: &Resources,
    ) -> Option<Mistake> {
        let (wrong, hint) = if self.narrows().is_some() {
            return None;
        } else if is_permit {
            ("is on a `permit`", "put it on a `forbid`: what that forbids can then be approved")
        } else if resources.are_records() {
            (
                "is on a policy about records",
                "only calls of tools can be approved: ask about the tool that does it, such as \
                 `action == Action::\"call:query_deleteMany\"`",
            )
        } else if !actions.are_calls() {
            (
                "needs the action `call`",
                "only calls of tools can be approved: write `action == Action::\"call\"`, or the \
                 own action of a tool, `Action::\"call:<tool>\"`",
            )
        } else {
            return None;
        };
        Some(Mistake::error(format!("`@{ASK}` {wrong}")).hint(hint))
    }

    /// The first of `@rows` and `@hide` that it has.
    fn narrows(&self) -> Option<&'static str> {
        [ROWS, HIDE].into_iter().find(|name| self.policy.annotation(name).is_some())
    }

    /// What `@rows` and `@hide` leave of records; none if there is neither, or not rightly.
    fn narrowing(&mut self, actions: &Actions, resources: &Resources) -> Option<Narrowing> {
        let name = self.narrows()?;
        if let Some(mistake) = self.misplaced(name, actions, resources) {
            self.note_annotation(name, mistake);
            return None;
        }
        let rows = self.annotation(ROWS).map(|text| read_rows(&text)).transpose();
        let hidden = self.annotation(HIDE).map(|text| read_hidden(&text)).transpose();
        let faults = [rows.as_ref().err(), hidden.as_ref().err()];
        for fault in faults.into_iter().flatten() {
            self.mistakes.push(self.source.place_in_annotation(fault, error));
        }
        Some(Narrowing { rows: rows.ok()?, hidden: hidden.ok()?.unwrap_or_default() })
    }

    /// Why `@rows` or `@hide` cannot stand on this policy. On any other resource the policy would
    /// have to deny, or mean nothing.
    fn misplaced(&self, name: &str, actions: &Actions, resources: &Resources) -> Option<Mistake> {
        let (wrong, hint) = if self.policy.effect() == CedarEffect::Permit {
            ("is on a `permit`", "put it on a `forbid`, and permit in a policy of its own")
        } else if self.policy.annotation(ASK).is_some() {
            (
                "stands beside `@ask`",
                "a person approves calls, not rows: ask in a policy of its own, about the tool",
            )
        } else if !resources.are_records() {
            (
                "needs a type of records",
                "write `resource == RecordType::\"<full name>\"` in the head, or \
                 `resource is RecordType` for all types",
            )
        } else if !actions.are_of_records() {
            (
                "needs acts on records",
                "these are `read`, `save` and `remove`: write `action in [Action::\"read\", \
                 Action::\"save\"]`, or `action` for all of them",
            )
        } else {
            return None;
        };
        Some(Mistake::error(format!("`@{name}` {wrong}")).hint(hint))
    }

    fn obligations(&mut self) -> Vec<Obligation> {
        let approvers = self.annotation(APPROVERS);
        let other = self.annotation(OTHER);
        if self.annotation(ASK).is_none() {
            for (name, given) in [(APPROVERS, &approvers), (OTHER, &other)] {
                if given.is_some() {
                    let mistake = Mistake::error(format!("`@{name}` is used without `@ask`"))
                        .hint("it says who may answer what `@ask` asks; add `@ask(\"why\")`");
                    self.note_annotation(name, mistake);
                }
            }
        }
        let mut obligations = Vec::new();
        if let Some(text) = approvers {
            match answerers(&text) {
                Some(answerers) => obligations.push(Obligation::Answerers(answerers)),
                None => {
                    let mistake = Mistake::error(format!("`@approvers` cannot be read: `{text}`"))
                        .hint("write `@approvers(\"role:approver, principal:ann\")`");
                    self.note_annotation(APPROVERS, mistake);
                }
            }
        }
        if let Some(text) = other {
            if !text.is_empty() {
                let mistake = Mistake::error("`@other` takes no text").hint("write `@other`");
                self.note_annotation(OTHER, mistake);
            }
            obligations.push(Obligation::Other);
        }
        obligations
    }

    /// A policy about a name that nothing can have would never apply.
    fn check_resources(&mut self, resources: &Resources) {
        let Resources::One { kind, .. } = resources else { return };
        let unnamed = Kind::ALL.iter().find(|known| known.name() == kind && !known.is_named());
        if let Some(unnamed) = unnamed {
            let name = unnamed.name();
            let mistake = Mistake::error(format!("policies know no name of a `{name}`"))
                .hint(format!("write `resource is {name}`, and ask for its attributes"));
            self.note(mistake, 0);
        }
    }

    /// Arguments have a type only where their tool is named, and that must be in the head: there
    /// the index finds it.
    fn check_reads(&mut self, reads: Reads, actions: &Actions, clauses: &Value) {
        if let Some(action) = named_action(clauses, TOOL_ACTION) {
            let mistake = Mistake::error(format!("the action `{action}` is in a condition"))
                .hint(format!("name it in the head: `action == Action::\"{action}\"`"));
            self.note(mistake, 0);
        }
        if reads.arguments && !actions.are_tools() {
            let mistake = Mistake::error(format!(
                "the policy reads `context.{ARGUMENTS}`, and its head does not name tools alone"
            ))
            .hint(format!(
                "arguments are typed by their tool: write \
                 `action == Action::\"{TOOL_ACTION}<tool>\"`; of others it can read \
                 `context.trigger` and `context.{NOW}`"
            ));
            self.note(mistake, 0);
        }
    }
}

/// The types of records that a policy names in its head or its conditions.
fn named_record_types(resources: &Resources, clauses: &Value) -> BTreeSet<String> {
    let named = named_entities(clauses, Kind::RecordType.name());
    resources.record_type().into_iter().chain(named).map(str::to_owned).collect()
}

/// All that Cedar says of a text that it cannot read.
fn unreadable(source: &Source, errors: &DetailedError) -> Vec<Mistake> {
    let told = std::iter::once(errors).chain(&errors.related);
    let all = told.map(|one| {
        let mistake = source.reported(one, error);
        match mistake.hint {
            Some(_) => mistake,
            None => mistake.hint("a policy is `permit (..);` or `forbid (..);`, with conditions"),
        }
    });
    all.collect()
}

/// The role or the subject that the head of a policy names.
fn named(constraint: &PrincipalConstraint) -> Option<Answerer> {
    let uid = match constraint {
        PrincipalConstraint::In(uid)
        | PrincipalConstraint::Eq(uid)
        | PrincipalConstraint::IsIn(_, uid) => uid,
        PrincipalConstraint::Any | PrincipalConstraint::Is(_) => return None,
    };
    let name = uid.id().unescaped();
    match uid.type_name().basename() {
        kind if kind == Kind::Role.name() => Some(Answerer::Role(name.into())),
        kind if kind == Kind::Subject.name() => Some(Answerer::Principal(name.into())),
        _ => None,
    }
}

/// Parses `@approvers`.
fn answerers(text: &str) -> Option<Vec<Answerer>> {
    let one = |word: &str| {
        let (kind, name) = word.split_once(':')?;
        match (kind.trim(), name.trim()) {
            (_, "") => None,
            ("role", name) => Some(Answerer::Role(name.into())),
            ("principal", name) => Some(Answerer::Principal(name.into())),
            _ => None,
        }
    };
    text.split(',').map(one).collect()
}

/// A policy without the clauses that read arguments, or where they came from.
fn without_arguments(policy: &Policy, mut json: Value) -> Option<PolicySet> {
    let is_of_call = |clause: &Value| {
        let Reads { arguments, sources, .. } = reads(clause);
        arguments || sources
    };
    json.get_mut("conditions")?.as_array_mut()?.retain(|clause| !is_of_call(clause));
    let bare = Policy::from_json(Some(policy.id().clone()), json).ok()?;
    PolicySet::from_policies([bare]).ok()
}
