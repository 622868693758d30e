//! Everyone who is known, as one value: a decision looks at one of them, so that it cannot see half
//! of a change.

use crate::identity::grants::Grants;
use crate::identity::key::{ApiKey, KeyId, SUBJECT_PREFIX};
use crate::identity::roles::{Role, Roles};
use crate::values::ids::RealmId;
use std::collections::HashMap;
use std::sync::Arc;

/// The subject of the admin key.
pub const ADMIN: &str = "admin";

/// Everyone who is known at one moment.
#[derive(Debug, Clone, Default)]
pub struct Directory {
    /// Grows with every change.
    pub number: u64,
    /// The keys, those that were revoked included.
    pub keys: Arc<HashMap<KeyId, Arc<ApiKey>>>,
    /// The roles of subjects that tokens of issuers name, as their newest tokens claim.
    pub claims: Arc<HashMap<Arc<str>, Arc<Grants>>>,
    /// Whether there is an admin key, so that the subject `admin` is someone.
    pub has_admin_key: bool,
}

impl Directory {
    /// The roles of a subject in a realm, as they are now. A key that was revoked has none. One
    /// that only expired keeps its roles: what was begun with it continues.
    pub fn roles(&self, realm: &RealmId, subject: &str) -> Roles {
        if subject == ADMIN && self.has_admin_key {
            return Roles::of(&[Role::Admin]);
        }
        self.grants(subject).map(|grants| grants.roles_in(realm)).unwrap_or_default()
    }

    /// The roles of a subject in each realm, as they are now; none of the admin key, which has one
    /// everywhere.
    pub fn grants(&self, subject: &str) -> Option<&Grants> {
        match self.key_of(subject) {
            Some(key) => key.revoked.is_none().then_some(&key.realms),
            None => self.claims.get(subject).map(|grants| &**grants),
        }
    }

    /// Whether there is or was such a subject: a key that was revoked is still known.
    pub fn is_known(&self, subject: &str) -> bool {
        (subject == ADMIN && self.has_admin_key)
            || self.key_of(subject).is_some()
            || self.claims.contains_key(subject)
    }

    /// The key that this subject is.
    pub fn key_of(&self, subject: &str) -> Option<&Arc<ApiKey>> {
        self.keys.get(subject.strip_prefix(SUBJECT_PREFIX)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::grants::RealmPattern;
    use crate::values::caller::LOCAL;
    use crate::values::ids::Millis;

    const GOOD: &str = "aaaaaaaaaa";
    const EXPIRED: &str = "bbbbbbbbbb";
    const REVOKED: &str = "cccccccccc";

    fn key(id: &str) -> ApiKey {
        let realms = Grants::one(RealmPattern::parse("acme*").unwrap(), Roles::of(&[Role::Member]));
        ApiKey {
            id: KeyId(id.into()),
            name: id.to_owned(),
            realms,
            scopes: None,
            secrets: Vec::new(),
            by: ADMIN.into(),
            created: Millis(1),
            expires: None,
            revoked: None,
        }
    }

    fn directory() -> Directory {
        let keys = [
            key(GOOD),
            ApiKey { expires: Some(Millis(2)), ..key(EXPIRED) },
            ApiKey { revoked: Some(Millis(2)), ..key(REVOKED) },
        ];
        let keys: HashMap<_, _> =
            keys.into_iter().map(|key| (key.id.clone(), Arc::new(key))).collect();
        let viewer = Grants::one(RealmPattern::parse("acme").unwrap(), Roles::of(&[Role::Viewer]));
        let claims: HashMap<Arc<str>, _> = HashMap::from([("corp:ann".into(), Arc::new(viewer))]);
        Directory { number: 1, keys: keys.into(), claims: claims.into(), has_admin_key: true }
    }

    #[test]
    fn each_subject_has_the_roles_that_it_has_now() {
        let (admin, member, viewer) = ([Role::Admin], [Role::Member], [Role::Viewer]);
        let cases: [(&str, &str, &[Role], bool); 18] = [
            (ADMIN, "acme", &admin, true),
            (ADMIN, "default", &admin, true),
            ("key:aaaaaaaaaa", "acme", &member, true),
            ("key:aaaaaaaaaa", "acme-eu", &member, true),
            ("key:aaaaaaaaaa", "default", &[], true),
            ("key:bbbbbbbbbb", "acme", &member, true),
            ("key:cccccccccc", "acme", &[], true),
            ("key:dddddddddd", "acme", &[], false),
            ("key:", "acme", &[], false),
            ("KEY:aaaaaaaaaa", "acme", &[], false),
            ("key:key:aaaaaaaaaa", "acme", &[], false),
            ("corp:ann", "acme", &viewer, true),
            ("corp:ann", "acme-eu", &[], true),
            ("corp:bob", "acme", &[], false),
            ("ann", "acme", &[], false),
            (GOOD, "acme", &[], false),
            (LOCAL, "acme", &[], false),
            ("", "acme", &[], false),
        ];
        let directory = directory();
        for (subject, realm, roles, is_known) in cases {
            let found = directory.roles(&realm.into(), subject);
            assert_eq!(found, Roles::of(roles), "{subject} in {realm}");
            assert_eq!(directory.is_known(subject), is_known, "{subject}");
        }
    }

    #[test]
    fn a_key_is_found_by_the_subject_that_it_gives_its_callers() {
        let directory = directory();
        for (id, key) in directory.keys.iter() {
            assert_eq!(directory.key_of(&key.subject()).map(|found| &found.id), Some(id));
        }
    }

    #[test]
    fn without_an_admin_key_admin_is_no_one() {
        let directory = Directory { has_admin_key: false, ..directory() };
        assert!(directory.roles(&"acme".into(), ADMIN).is_empty());
        assert!(!directory.is_known(ADMIN));
        assert!(!Directory::default().is_known("key:aaaaaaaaaa"));
    }
}
