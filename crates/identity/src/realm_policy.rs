//! Policy of a realm's settings, applied on top of the configured policy: enabled tools, agents and
//! pipelines, and the principal that must be allowed too. It only narrows verdicts.

use crate::Identity;
use kernel::contracts::policy::{Context, Decision, Policy, Request, Resource};
use kernel::identity::audit::Ruling;
use kernel::identity::directory::Directory;
use kernel::identity::realm::RealmSettings;
use kernel::tool::call::Verdict;
use kernel::values::caller::{Act, Caller};
use kernel::values::ids::RealmId;
use std::sync::Arc;

/// Another policy, within what is set for each realm. Where nothing is set that could refuse
/// something, there is no need of it.
pub struct RealmPolicy {
    inner: Arc<dyn Policy>,
    identity: Arc<Identity>,
}

impl RealmPolicy {
    /// This policy within the settings of the realms that are known here.
    pub fn new(inner: Arc<dyn Policy>, identity: Arc<Identity>) -> Self {
        Self { inner, identity }
    }

    fn narrowed(
        &self,
        directory: &Directory,
        settings: &RealmSettings,
        request: &Request<'_>,
    ) -> Decision {
        if let Some(denied) = not_enabled(settings, request) {
            return denied;
        }
        let own = self.inner.decide(request);
        match &settings.run_as {
            Some(principal) if own.shows() && request.is_run_as() => {
                self.run_as(directory, principal, request, own)
            }
            Some(_) | None => own,
        }
    }

    /// Narrows a decision to what the principal that the realm acts as may do. An unusable
    /// principal allows nothing.
    fn run_as(
        &self,
        directory: &Directory,
        principal: &Arc<str>,
        request: &Request<'_>,
        own: Decision,
    ) -> Decision {
        let realm = &request.subject.realm;
        if !directory.can_run_as(realm, principal) {
            let why = format!("the realm acts as `{principal}`, which cannot be used");
            return Verdict::Deny(why).into();
        }
        let subject = Caller::new(realm.clone(), principal.clone());
        let other = self.inner.decide(&Request { subject: &subject, ..*request });
        if !other.shows() {
            return other;
        }
        // What must hold for one of both holds, and what one of both must be asked about is asked
        // about.
        let is_allowed = own.allows();
        let is_narrowed = !own.rows().is_empty() || !own.hidden().is_empty();
        let obligations = own.obligations.into_iter().chain(other.obligations).collect();
        if is_allowed && !is_narrowed {
            return Decision { obligations, ..other };
        }
        let policies = own.policies.into_iter().chain(other.policies).collect();
        if is_allowed {
            return Decision { obligations, policies, ..other };
        }
        Decision { obligations, policies, ..own }
    }
}

impl Policy for RealmPolicy {
    fn decide(&self, request: &Request<'_>) -> Decision {
        let directory = self.identity.directory();
        match directory.realms.restricting(&request.subject.realm) {
            Some(settings) => self.narrowed(&directory, settings, request),
            None => self.inner.decide(request),
        }
    }

    fn ruling(&self, request: &Request<'_>) -> Ruling {
        let directory = self.identity.directory();
        match directory.realms.restricting(&request.subject.realm) {
            Some(settings) => self.narrowed(&directory, settings, request).ruling(),
            None => self.inner.ruling(request),
        }
    }

    fn decide_all(&self, subject: &Caller, act: Act, resources: &[Resource<'_>]) -> Vec<Decision> {
        let directory = self.identity.directory();
        let Some(settings) = directory.realms.restricting(&subject.realm) else {
            return self.inner.decide_all(subject, act, resources);
        };
        let context = Context::default();
        let judged = |resource: &Resource<'_>| {
            let request = Request { act, subject, resource: *resource, context };
            self.narrowed(&directory, settings, &request)
        };
        resources.iter().map(judged).collect()
    }

    fn answerers(&self) -> Option<Vec<String>> {
        self.inner.answerers()
    }

    fn is_named(&self, caller: &Caller, answerer: &str) -> bool {
        self.inner.is_named(caller, answerer)
    }

    fn is_other(&self, caller: &Caller, subject: &str) -> bool {
        self.inner.is_other(caller, subject)
    }

    fn is_other_than_maker(&self, caller: &Caller, maker: &str) -> bool {
        self.inner.is_other_than_maker(caller, maker)
    }

    fn version(&self) -> Option<Arc<str>> {
        self.inner.version()
    }

    fn settings(&self, realm: &RealmId) -> RealmSettings {
        self.identity.directory().realms.0.get(realm).cloned().unwrap_or_default()
    }

    fn acts_as(&self, realm: &RealmId) -> Option<Arc<str>> {
        self.identity.directory().realms.0.get(realm)?.run_as.clone()
    }

    /// True if the inner policy allows everything and no setting restricts it.
    fn allows_everything(&self) -> bool {
        self.inner.allows_everything() && !self.identity.directory().realms.restrict()
    }
}

/// The denial of a tool, agent or pipeline that a realm does not enable. It can still be defined
/// there: a definition is another resource.
pub fn not_enabled(settings: &RealmSettings, request: &Request<'_>) -> Option<Decision> {
    let (kind, is_enabled) = match request.resource {
        Resource::Tool(spec) if request.act == Act::Call => {
            ("tool", settings.enables_tool(spec.name.as_str()))
        }
        Resource::Agent(name) => ("agent", settings.enables_agent(name)),
        Resource::Pipeline(name) => ("pipeline", settings.enables_pipeline(name)),
        _ => return None,
    };
    let denied = || Verdict::Deny(format!("the realm does not enable this {kind}")).into();
    (!is_enabled).then(denied)
}
