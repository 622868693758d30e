//! The administrator who makes, changes or lists keys, principals and realms. Nobody gives, changes
//! or sees more than they administer.

use crate::snapshot::Snapshot;
use kernel::identity::audit::{Entry, Object};
use kernel::identity::directory::Directory;
use kernel::identity::grants::{ExceededGrant, Grants, RealmPattern};
use kernel::identity::key::{ApiKey, KeyId};
use kernel::identity::roles::{Role, Roles};
use kernel::values::caller::{KeyMakers, Via};
use kernel::values::ids::Millis;
use std::sync::Arc;

/// Prefix of the subjects of keys.
const KEY_SUBJECT: &str = "key:";

/// The administrator who makes, changes or lists keys and principals.
#[derive(Debug, Clone)]
pub struct Maker {
    pub subject: Arc<str>,
    /// The actor, if it is not the subject.
    pub actor: Option<Arc<str>>,
    /// The key that its request came with, or that its token was given for. A principal has
    /// several, and one of them may be revoked.
    pub key: Option<KeyId>,
    /// Others who could have its credential.
    pub makers: KeyMakers,
    /// Grants that it administers. Anything beyond these is neither shown nor made nor changed.
    pub grants: Grants,
    /// Where its request came in.
    pub via: Via,
}

impl Maker {
    /// Everyone who is shown what it makes: it, who really calls, and who else could have its
    /// credential.
    pub(crate) fn people(&self) -> impl Iterator<Item = &Arc<str>> {
        std::iter::once(&self.subject).chain(&self.actor).chain(self.makers.subjects())
    }

    /// Whether it administers every realm that there is or may be.
    pub fn administers_everything(&self) -> bool {
        let everywhere = RealmPattern::parse("*").map(|all| Grants::one(all, Roles::default()));
        everywhere.is_ok_and(|everywhere| self.administers(&everywhere))
    }

    /// Whether it administers all that these reach.
    pub(crate) fn administers(&self, grants: &Grants) -> bool {
        grants.is_within(&self.grants).is_ok()
    }

    /// Whether it may be shown a text of this key: who has one has all roles that the key gives, so
    /// these must be roles that it may give.
    pub(crate) fn may_be_shown(
        &self,
        key: &ApiKey,
        directory: &Directory,
    ) -> Result<(), ExceededGrant> {
        // It has no roles while it is disabled, and has them again afterwards.
        let is_away = key.of.as_ref().is_some_and(|of| !directory.is_active(of));
        if is_away
            && !self.administers_everything()
            && let Ok(realm) = RealmPattern::parse("*")
        {
            return Err(ExceededGrant { realm, role: Role::Admin.name().into() });
        }
        let given = match &key.of {
            Some(of) => directory.all_grants(of).limited_to(key.realms.0.keys()),
            None => key.realms.clone(),
        };
        given.may_be_given_by(&self.grants)
    }

    /// A key that was revoked while its request was on the way changes nothing any more, and
    /// neither does a principal that was disabled.
    pub(crate) fn is_good(&self, snapshot: &Snapshot) -> bool {
        let directory = &snapshot.directory;
        let subject = &*self.subject;
        let is_good = |key: &Arc<ApiKey>| key.revoked.is_none();
        let came_well =
            self.key.as_ref().is_none_or(|id| directory.keys.get(id).is_some_and(is_good));
        let is_well = match subject.starts_with(KEY_SUBJECT) {
            true => directory.key_of(subject).is_some_and(is_good),
            false => !directory.is_disabled(subject),
        };
        came_well && is_well
    }

    /// The audit entry of its change, to be completed by the caller.
    pub(crate) fn entry(&self, now: Millis, act: &'static str, object: Object) -> Entry {
        let entry = Entry::new(now, self.subject.clone(), act, object);
        Entry { actor: self.actor.clone(), ..entry.come_by(&self.via) }
    }
}
