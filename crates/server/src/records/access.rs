//! How far callers reach among records, as policy says: the types that they may use, the rows and
//! fields of these, and what new records are stamped with. Beside what policies say, a caller that
//! does not administer sees only its tenant's records.

use super::engine_link::EngineLink;
use super::person::Person;
use super::reachable::touched;
use super::served_types::ServedTypes;
use engine::RefusalCode;
use kernel::contracts::Policy;
use kernel::contracts::policy::{Context, Decision, Request, Resource};
use kernel::identity::directory::Directory;
use kernel::limits::Limits;
use kernel::tool::call::Verdict;
use kernel::values::caller::{Act, Caller};
use kernel::values::ids::RealmId;
use project::entities::built_in::{AGENT, is_built_in};
use query::check::{HiddenFields, Scope, check_row_filter};
use query::parser::parse;
use query::records::reach::{
    Reach, ReachError, ReachRequest, RecordAccess, RecordAct, TypeRights, Visible,
};
use query::records::requests::Access;
use query::records::scope::CallerScope;
use query::types::{RecordType, TypeSet, UnknownType};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The tenant whose records are seen, and the filter that says so.
const TENANT: &str = "tenant";
const OF_TENANT: &str = "dataDomain.tenantId:${tenant}~cs";

/// The agents that are seen, and the filter that says so.
const READABLE: &str = "readable";
const OF_READABLE: &str = "refName:^${readable}";

/// What decides.
pub(crate) struct AccessParts {
    pub(crate) types: Arc<ServedTypes>,
    pub(crate) policy: Arc<dyn Policy>,
    /// Who is known now.
    pub(crate) directory: Box<dyn Fn() -> Arc<Directory> + Send + Sync>,
    pub(crate) engine: Arc<EngineLink>,
    pub(crate) limits: Arc<Limits>,
}

pub(crate) struct PolicyAccess(AccessParts);

impl PolicyAccess {
    pub(crate) fn new(parts: AccessParts) -> Self {
        Self(parts)
    }

    /// The names of the agents that a caller may read.
    fn readable_agents(&self, caller: &Caller) -> Vec<Value> {
        let Some(engine) = self.0.engine.get() else { return Vec::new() };
        let known = engine.catalog().agents(caller).into_iter();
        known.map(|known| Value::from(known.agent.name.as_str())).collect()
    }

    /// Whether this realm may store more for the caller.
    fn may_store(&self, caller: &Caller) -> Result<(), ReachError> {
        let Some(engine) = self.0.engine.get() else { return Ok(()) };
        let Err(refusal) = engine.admin().may_store(caller) else { return Ok(()) };
        let max = match &refusal.code {
            RefusalCode::StoredBytesMax(quota) => quota.max,
            _ => self.0.limits.stored_bytes_max,
        };
        Err(ReachError::StoredBytesMax { max })
    }

    fn find_rows_max(&self, realm: &RealmId) -> usize {
        let own = self.0.policy.settings(realm).max_find_limit;
        let own = own.map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
        self.0.limits.find_rows_max.min(own)
    }
}

impl RecordAccess for PolicyAccess {
    fn types(&self, realm: &RealmId) -> Arc<TypeSet> {
        self.0.types.of(realm)
    }

    fn reach(&self, request: ReachRequest<'_>) -> Result<Reach, ReachError> {
        let ReachRequest { caller, record_type, act, realm } = request;
        check_realm(caller, realm)?;
        let types = self.types(&caller.realm);
        let asker = Asker::new(self, caller, &types, act);
        let root = asker.find(record_type)?;
        let full_name = root.full_name();
        let mut decisions = vec![asker.may(Act::Read, &full_name)?];
        match act {
            RecordAct::Read => {}
            RecordAct::Save | RecordAct::Remove if is_built_in(&full_name) => {
                let hint = elsewhere(&full_name).to_owned();
                return Err(ReachError::BuiltIn { record_type: full_name, hint });
            }
            RecordAct::Save => {
                decisions.push(asker.may(Act::Save, &full_name)?);
                self.may_store(caller)?;
            }
            RecordAct::Remove => decisions.push(asker.may(Act::Remove, &full_name)?),
        }
        let mut scope = CallerScope::default();
        asker.admit(&mut scope, root, &decisions)?;
        for other in touched(&types, root, act) {
            asker.admit_readable(&mut scope, other);
        }
        scope.close_others(&types);
        let Asker { person, variables, administers, .. } = asker;
        Ok(Reach {
            record_type: full_name,
            access: Access {
                realm: caller.realm.clone(),
                types: types.clone(),
                scope: Arc::new(scope),
            },
            author: person.author(administers),
            variables,
            find_rows_max: self.find_rows_max(&caller.realm),
            find_skip_max: self.0.limits.find_skip_max,
            explains: administers,
        })
    }

    fn visible(&self, caller: &Caller) -> Result<Visible, ReachError> {
        let types = self.types(&caller.realm);
        let asker = Asker::new(self, caller, &types, RecordAct::Read);
        let mut scope = CallerScope::default();
        let mut rights = BTreeMap::new();
        for record_type in types.all() {
            if !asker.admit_readable(&mut scope, record_type) {
                continue;
            }
            let full_name = record_type.full_name();
            let is_built_in = is_built_in(&full_name);
            let may = |act: Act| !is_built_in && asker.may(act, &full_name).is_ok();
            let right = TypeRights { save: may(Act::Save), remove: may(Act::Remove), is_built_in };
            rights.insert(full_name, right);
        }
        scope.close_others(&types);
        let realm = caller.realm.clone();
        let variables = asker.variables;
        let access = Access { realm, types: types.clone(), scope: Arc::new(scope) };
        Ok(Visible { access, rights, variables })
    }
}

/// One caller among the types of its realm.
struct Asker<'a> {
    access: &'a PolicyAccess,
    caller: &'a Caller,
    types: &'a TypeSet,
    person: Person,
    administers: bool,
    /// The tenants that a record must be of, all of them.
    tenants: BTreeSet<String>,
    variables: BTreeMap<String, Value>,
}

impl<'a> Asker<'a> {
    fn new(
        access: &'a PolicyAccess,
        caller: &'a Caller,
        types: &'a TypeSet,
        act: RecordAct,
    ) -> Self {
        let policy = &*access.0.policy;
        let directory = (access.0.directory)();
        let realm = &caller.realm;
        let person = Person::of(&directory, &caller.subject);
        let administers = administers(policy, caller);
        let mut tenants = BTreeSet::new();
        if !administers {
            tenants.insert(person.tenant(realm));
        }
        if let Some(principal) = policy.acts_as(realm) {
            let acting = Caller::new(realm.clone(), principal.clone());
            if !self::administers(policy, &acting) {
                tenants.insert(Person::of(&directory, &principal).tenant(realm));
            }
        }
        let variables = person.variables(realm, act);
        Self { access, caller, types, person, administers, tenants, variables }
    }

    /// The type of this name. Of several that it could mean only those count that the caller may
    /// read.
    fn find(&self, name: &str) -> Result<&'a RecordType, ReachError> {
        let (name, mut candidates) = match self.types.find(name) {
            Ok(found) => return Ok(found),
            Err(UnknownType::Ambiguous { name, candidates }) => (name, candidates),
            Err(unknown) => return Err(unknown.into()),
        };
        candidates.retain(|candidate| self.may(Act::Read, candidate).is_ok());
        match candidates.as_slice() {
            [] => Err(UnknownType::Unknown(name).into()),
            [one] => Ok(self.types.find(one)?),
            _ => Err(UnknownType::Ambiguous { name, candidates }.into()),
        }
    }

    fn may(&self, act: Act, full_name: &str) -> Result<Decision, ReachError> {
        let subject = &self.caller.subject;
        let word = act.name();
        if self.caller.scopes.is_some_and(|scopes| !scopes.allow(act)) {
            let scope = act.scope().name();
            let why = format!(
                "the credential of `{subject}` does not cover `{word}`: use one with the scope \
                 `{scope}`"
            );
            return Err(ReachError::Forbidden(why));
        }
        let resource = Resource::RecordType(full_name);
        let decision = decide(&*self.access.0.policy, self.caller, act, resource);
        match &decision.verdict {
            Verdict::Allow => Ok(decision),
            Verdict::Ask(_) => Err(ReachError::Forbidden(format!(
                "`{word}` on {resource} needs an approval, which can only be asked for the call of \
                 a tool: have the policy ask about the tool instead"
            ))),
            Verdict::Deny(why) => {
                let message = format!("`{subject}` may not do this: `{word}` on {resource}");
                let is_told = self.caller.admin;
                let message = if is_told { format!("{message}: {why}") } else { message };
                Err(ReachError::Forbidden(message))
            }
        }
    }

    /// Admits a type if it may be read. A row filter that cannot be used lets nothing through.
    fn admit_readable(&self, scope: &mut CallerScope, record_type: &RecordType) -> bool {
        let Ok(decision) = self.may(Act::Read, &record_type.full_name()) else { return false };
        self.admit(scope, record_type, &[decision]).is_ok()
    }

    /// Admits what of a type these decisions leave.
    fn admit(
        &self,
        scope: &mut CallerScope,
        record_type: &RecordType,
        decisions: &[Decision],
    ) -> Result<(), ReachError> {
        let full_name = record_type.full_name();
        let rows: BTreeSet<Arc<str>> = decisions.iter().flat_map(Decision::rows).collect();
        for text in &rows {
            self.restrict(scope, record_type, text, &self.variables)?;
        }
        if !is_built_in(&full_name) {
            for tenant in &self.tenants {
                let variables = one(TENANT, Value::from(tenant.as_str()));
                self.restrict(scope, record_type, OF_TENANT, &variables)?;
            }
        } else if full_name == AGENT {
            let variables = one(READABLE, self.access.readable_agents(self.caller).into());
            self.restrict(scope, record_type, OF_READABLE, &variables)?;
        }
        for field in decisions.iter().flat_map(Decision::hidden) {
            scope.hide(self.types, record_type, &field);
        }
        scope.admit(record_type);
        Ok(())
    }

    fn restrict(
        &self,
        scope: &mut CallerScope,
        record_type: &RecordType,
        text: &str,
        variables: &BTreeMap<String, Value>,
    ) -> Result<(), ReachError> {
        let hidden = HiddenFields::default();
        let checked = Scope { types: self.types, root: record_type, variables, hidden: &hidden };
        match parse(text).and_then(|query| check_row_filter(&query, checked)) {
            Ok(filter) => {
                scope.restrict(record_type, &filter);
                Ok(())
            }
            Err(fault) => {
                let record_type = record_type.full_name();
                let why = fault.to_string();
                tracing::error!(%record_type, %why, "a policy's row filter lets nothing through");
                Err(ReachError::RowFilter { record_type, why })
            }
        }
    }
}

fn one(name: &str, value: Value) -> BTreeMap<String, Value> {
    BTreeMap::from([(name.to_owned(), value)])
}

/// A call stays in its own realm, whatever its arguments name.
fn check_realm(caller: &Caller, named: Option<&str>) -> Result<(), ReachError> {
    match named.map(str::trim).filter(|named| *named != caller.realm.as_str()) {
        None => Ok(()),
        Some(named) => Err(ReachError::OtherRealm {
            realm: caller.realm.as_str().to_owned(),
            named: named.to_owned(),
        }),
    }
}

fn decide(policy: &dyn Policy, subject: &Caller, act: Act, resource: Resource<'_>) -> Decision {
    policy.decide(&Request { act, subject, resource, context: Context::default() })
}

/// In local mode everybody does.
fn administers(policy: &dyn Policy, caller: &Caller) -> bool {
    let act = Act::Administer;
    caller.scopes.is_none_or(|scopes| scopes.allow(act))
        && decide(policy, caller, act, Resource::Server).allows()
}

/// What changes records of a built-in type.
fn elsewhere(full_name: &str) -> &'static str {
    match full_name {
        AGENT => "agents are changed in `agents/` of the project or at `/api/v1/agents`",
        _ => "providers of tools are changed at `/api/v1/providers`",
    }
}

#[cfg(test)]
mod tests;
